"""treble quantize, from outside."""

import json
import signal
import subprocess
import time
import unittest

from program import MICRO, RELEASE, SMALL, TREBLE, ProgramTest, main, run_on_terminal

FORMATS = ["int8-convrot", "int8", "nf4"]
# The micro release has random weights; its probabilities are near each other and move with every rounding.
MOST_DRIFT = 0.1


class Quantize(ProgramTest):
    def quantize(self, *arguments, **options):
        return self.run_treble("quantize", *arguments, RELEASE, **options)

    def answer(self, model):
        return json.loads(self.run_treble("answer", "--model", model, self.file("request.json", SMALL)).stdout)

    def test_every_format_makes_a_complete_release_with_almost_the_same_answers(self):
        expected = self.answer(RELEASE)
        for name in FORMATS:
            with self.subTest(name):
                out = self.folder / name
                result = self.quantize("--format", name, "--out", out)
                self.assertEqual(result.stdout, "")
                self.assertRegex(result.stderr, rf"\Atreble: [^\n]* modules as {name}, [^\n]*\n\Z")
                self.assertIn("state      complete", self.run_treble("inspect", out).stdout)
                self.check_close(self.answer(out), expected, MOST_DRIFT)

    def test_a_release_is_replaced_only_when_asked(self):
        out = self.folder / "out"
        self.quantize("--format", "int8", "--out", out)
        before = (out / "model.safetensors").read_bytes()
        self.check_refused(["quantize", "--format", "nf4", "--out", out, RELEASE], 2, str(out), "--force")
        self.assertEqual((out / "model.safetensors").read_bytes(), before)
        self.quantize("--format", "nf4", "--out", out, "--force")
        self.assertNotEqual((out / "model.safetensors").read_bytes(), before)
        self.assertEqual([path.name for path in self.folder.iterdir()], ["out"])

    def test_what_is_kept_stays_in_bf16(self):
        out = self.folder / "out"
        result = self.quantize("--format", "nf4", "--out", out, "--keep", "*.down_proj", "--keep", "visual.*")
        self.assertIn("kept", result.stderr)
        modules = json.loads(self.run_treble("inspect", "--json", out).stdout)["modules"]
        formats = {module["name"]: module["format"] for module in modules}
        for name, stored_as in formats.items():
            if name.endswith("down_proj") or name.startswith("visual."):
                self.assertEqual(stored_as, "bf16", name)
        self.assertIn("nf4", formats.values())

    def test_what_makes_no_sense_is_refused(self):
        out = self.folder / "out"
        refused = [(["--format", "nf4"], 2, "--out"),
                   (["--out", out], 2, "--format"),
                   (["--format", "int4", "--out", out], 2, "int4"),
                   (["--format", "nf4", "--out", out, "--group-size", "48"], 2, "48"),
                   (["--format", "nf4", "--out", ""], 2, "--out is empty"),
                   (["--format", "int8", "--out", out, "--keep", "typo"], 2, "typo"),
                   (["--format", "int8-convrot", "--out", out, "--group-size", "4096"], 4, "4096"),
                   (["--format", "nf4", "--out", RELEASE, "--force"], 2, "lie in each other")]
        for size in ("-1", "0", "abc", "", "99999999999999999999999"):
            refused.append((["--format", "nf4", "--out", out, "--group-size", size], 2, "4"))
        for arguments, status, word in refused:
            with self.subTest(arguments):
                self.check_refused(["quantize", *arguments, RELEASE], status, word)
        for name, stored_as in [("micro-nf4", "nf4"), ("micro-int8", "int8-convrot")]:
            self.check_refused(["quantize", "--format", "nf4", "--out", out, MICRO.parent / name / "release"], 4,
                               f"is stored as {stored_as} already")
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_a_stopped_run_leaves_nothing_behind(self):
        source = self.copy_release()
        with open(source / "recording", "wb") as recording:  # copied before the first weight
            recording.truncate(300_000_000)
        out = self.folder / "out"
        process = subprocess.Popen([TREBLE, "quantize", "--format", "int8", "--out", out, source],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None and not (self.folder / "out.partial" / "recording").exists():
            time.sleep(0.001)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(60), -signal.SIGTERM)
        self.assertEqual([path for path in self.folder.iterdir() if path != source], [])

    def test_a_group_size_out_of_range_is_shown_as_it_was_given(self):
        for size in ("-1", "0", "abc", "99999999999999999999999"):
            self.check_refused(["quantize", "--format", "nf4", "--out", self.folder / "out", "--group-size", size,
                                RELEASE], 2, f"Value {size} not in range 4 to 4096")

    def test_a_signal_that_the_parent_ignores_does_not_stop_it(self):
        source, out = self.copy_release(), self.folder / "out"
        with open(source / "recording", "wb") as recording:
            recording.truncate(300_000_000)
        process = subprocess.Popen([TREBLE, "quantize", "--format", "int8", "--out", out, source],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
        while process.poll() is None and not (self.folder / "out.partial" / "recording").exists():
            time.sleep(0.001)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(60), 0)
        self.assertTrue((out / "model.safetensors").exists())

    def test_a_terminal_sees_the_progress(self):
        shown, _, status = run_on_terminal("quantize", "--format", "int8", "--out", self.folder / "out", RELEASE,
                                           stream="stderr")
        self.assertEqual(status, 0)
        self.assertRegex(shown, r"\[[#.]{20}\] +\d+%  \d+ MB")


if __name__ == "__main__":
    main()
