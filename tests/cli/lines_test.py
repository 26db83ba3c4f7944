"""treble answer on files of one request a line."""

import json
import os
import signal
import subprocess
import time

from program import (EXPECTED, ONE_STEP, RELEASE, REQUESTS, SMALL, TIME_LIMIT_S, TREBLE, ProgramTest, dump, main,
                     run_on_terminal)

BAD_LINES = ['{"state": ', '{"state": "s", "questions": {}}']


def small_request(number):
    question = {"type": "noul", "instructions": "Is it?"}
    return {"state": f"Parcel {number} is late.", "questions": {f"q{number}": question}}


class LinesTest(ProgramTest):
    def command(self, requests, *options):
        return ["answer", "--model", RELEASE, *options, requests]

    def requests(self, lines, name="r.jsonl"):
        return self.file(name, "".join(line + "\n" for line in lines))

    def responses(self, text):
        self.assertTrue(text.endswith("\n"))
        return [json.loads(line) for line in text.splitlines()]


class Lines(LinesTest):
    def test_every_line_is_answered_in_order(self):
        names = ("option_order", "json_numbers", "plain_string", "noul_criteria", "json_unicode")
        requests = self.requests([dump(REQUESTS[name]) for name in names])
        result = self.run_treble(*self.command(requests))
        responses = self.responses(result.stdout)
        self.assertEqual(len(responses), len(names))
        for name, response in zip(names, responses):
            self.check_close(response, EXPECTED[name]["response"], ONE_STEP, name)
        self.assertEqual(result.stderr, "")

    def test_bad_lines_are_reported_in_place(self):
        long_request = {**SMALL, "state": "word " * 200}
        lines = ["", dump(SMALL), BAD_LINES[0], " \t\r", BAD_LINES[1], dump(long_request), dump(SMALL)]
        result = self.run_treble(*self.command(self.requests(lines), "--max-tokens", "400"), status=3)
        responses = self.responses(result.stdout)
        self.assertEqual([list(response)[0] for response in responses], ["model", "error", "error", "error", "model"])
        self.assertEqual([response["error"]["line"] for response in responses[1:4]], [3, 5, 6])
        self.assertEqual([response["error"]["code"] for response in responses[1:4]], ["request", "request", "too_long"])
        self.assertIn("questions has 0 entries", responses[2]["error"]["message"])
        self.assertEqual(responses[0], responses[4])
        self.assertRegex(result.stderr, r"\Atreble: answer: 3 of 5 lines were not answered[^\n]*\n\Z")

    def test_last_line_needs_no_line_feed_and_an_empty_file_no_answer(self):
        result = self.run_treble(*self.command(self.file("r.jsonl", dump(SMALL))))
        self.assertEqual(len(self.responses(result.stdout)), 1)
        self.assertEqual(self.run_treble(*self.command(self.file("empty.jsonl", ""))).stdout, "")
        out = self.folder / "out.jsonl"
        self.run_treble(*self.command(self.folder / "empty.jsonl", "--out", out))
        self.assertEqual(out.read_text(), "")

    def test_stdin(self):
        result = self.run_treble("answer", "--model", RELEASE, "--jsonl", "-", stdin=dump(SMALL) + "\n" + dump(SMALL))
        self.assertEqual(len(self.responses(result.stdout)), 2)

    def test_line_of_more_than_64_mib_is_an_error_in_place(self):
        requests = self.file("r.jsonl", "")
        os.truncate(requests, (64 << 20) + 1)
        with open(requests, "a", encoding="utf-8") as file:
            file.write("\n" + dump(SMALL) + "\n")
        responses = self.responses(self.run_treble(*self.command(requests), status=3).stdout)
        self.assertIn("64 MiB", responses[0]["error"]["message"])
        self.assertIn("answers", responses[1])

    def test_cut_states_are_reported_with_their_line(self):
        requests = self.requests([dump(SMALL), dump({**SMALL, "state": "word " * 100})])
        result = self.run_treble(*self.command(requests, "--max-tokens", "400", "--truncate-state"))
        self.assertRegex(result.stderr, r"\Atreble: line 2: \d+ tokens of the state were cut off\n\Z")

    def test_progress_is_drawn_on_a_terminal_only(self):
        requests, out = self.requests([dump(SMALL)] * 3), self.folder / "out.jsonl"
        shown, _, status = run_on_terminal(*self.command(requests, "--out", out), stream="stderr")
        self.assertEqual(status, 0)
        self.assertRegex(shown, r"\r\x1b\[K\[#+\.*\] +\d+%  \d answered  \d+\.\d/s  \d+:\d\d left")
        self.assertTrue(shown.endswith("\r\x1b[K"))
        self.assertEqual(len(self.responses(out.read_text())), 3)

    def test_out_that_has_text_is_left_alone(self):
        requests, out = self.requests([dump(SMALL)]), self.file("out.jsonl", "precious\n")
        self.check_refused(self.command(requests, "--out", out), 2, "has text already", "--resume", "--force")
        self.assertEqual(out.read_text(), "precious\n")
        self.run_treble(*self.command(requests, "--out", out, "--force"))
        self.assertIn("answers", self.responses(out.read_text())[0])

    def test_out_keeps_its_text_until_the_model_is_there(self):
        requests, out = self.requests([dump(SMALL)]), self.file("out.jsonl", "precious\n")
        command = ["answer", "--model", self.folder / "none", requests, "--out", out, "--force"]
        self.check_refused(command, 4, "none")
        self.assertEqual(out.read_text(), "precious\n")

    def test_out_may_not_be_the_requests(self):
        requests = self.requests([dump(SMALL)])
        self.check_refused(self.command(requests, "--out", requests, "--force"), 2, "is the file of requests")
        self.assertEqual(requests.read_text(), dump(SMALL) + "\n")

    def test_out_may_not_be_a_file_of_the_release(self):
        release = self.copy_release(without=["config.json"], config__json=(RELEASE / "config.json").read_text())
        requests = self.requests([dump(SMALL)])
        command = ["answer", "--model", release, requests, "--out", release / "config.json", "--force"]
        self.check_refused(command, 2, "is a file of the release")
        self.assertEqual((release / "config.json").read_text(), (RELEASE / "config.json").read_text())


class Resume(LinesTest):
    def setUp(self):
        super().setUp()
        first, second, third = [dump(small_request(number)) for number in range(3)]
        lines = [first, "", BAD_LINES[0], second, "", third]
        self.input = self.requests(lines)
        self.out = self.folder / "out.jsonl"

    def resume(self, status):
        return self.run_treble(*self.command(self.input, "--out", self.out, "--resume"), status=status)

    def test_any_cut_ends_as_if_never_stopped(self):
        self.assertEqual(self.resume(status=3).stdout, "")
        whole = self.out.read_bytes()
        self.assertEqual(len(whole.splitlines()), 4)
        first_end = whole.index(b"\n") + 1
        error_end = first_end + whole[first_end:].index(b'{"error"') + 40
        for cut in (1, first_end - 1, first_end, error_end, len(whole) - 1, len(whole)):
            self.out.write_bytes(whole[:cut])
            result = self.resume(status=3)
            self.assertEqual(self.out.read_bytes(), whole, f"cut at {cut}")
            self.assertIn("1 of 4 lines", result.stderr)

    def test_a_killed_run_can_be_continued(self):
        self.input = self.requests([dump(small_request(number)) for number in range(8)])
        for stop in (signal.SIGKILL, signal.SIGINT):
            self.out = self.folder / f"out{stop.value}.jsonl"
            command = self.command(self.input, "--out", self.out, "--resume")
            process = subprocess.Popen([str(part) for part in (TREBLE, *command)])
            while process.poll() is None and not (self.out.exists() and self.out.read_bytes().count(b"\n") >= 2):
                time.sleep(0.001)
            process.send_signal(stop)
            process.wait(TIME_LIMIT_S)
            self.assertEqual(process.returncode, -stop)
            kept = self.out.read_bytes()
            self.resume(status=0)
            whole = self.out.read_bytes()
            self.assertTrue(whole.startswith(kept))
            questions = [list(response["answers"]) for response in self.responses(whole.decode())]
            self.assertEqual(questions, [[f"q{number}"] for number in range(8)])

    def test_output_of_other_requests_is_refused_and_kept(self):
        self.resume(status=3)
        whole = self.out.read_bytes()
        for other, words in (
                ([dump(small_request(0))], ["more lines than", "1 requests"]),
                ([dump(small_request(number)) for number in (0, 1, 2, 7)], ["line 2", "does not belong"]),
                ([dump(small_request(0)), *BAD_LINES, BAD_LINES[0]], ["does not belong"])):
            self.input = self.requests(other, "other.jsonl")
            self.check_refused(self.command(self.input, "--out", self.out, "--resume"), 2, *words)
            self.assertEqual(self.out.read_bytes(), whole)
        first_line_changed = b"{}" + whole[whole.index(b"\n"):]
        self.out.write_bytes(first_line_changed)
        self.check_refused(self.command(self.input, "--out", self.out, "--resume"), 2, "line 1", "does not belong")
        self.out.write_text("precious tail without a line feed")
        self.check_refused(self.command(self.input, "--out", self.out, "--resume"), 2, "not the beginning of an answer")
        self.assertEqual(self.out.read_text(), "precious tail without a line feed")
        self.out.write_text("precious text\n")
        self.check_refused(self.command(self.input, "--out", self.out, "--resume"), 2, "does not belong")
        self.assertEqual(self.out.read_text(), "precious text\n")

    def test_two_runs_do_not_write_one_file(self):
        reader, writer = os.pipe()
        command = [str(part) for part in (TREBLE, "answer", "--model", RELEASE, "--jsonl", "-", "--out", self.out)]
        first = subprocess.Popen(command, stdin=reader)
        os.close(reader)
        os.write(writer, dump(small_request(0)).encode() + b"\n")
        while not (self.out.exists() and self.out.read_bytes()) and first.poll() is None:
            time.sleep(0.005)
        self.check_refused(self.command(self.input, "--out", self.out, "--resume"), 2, "another run")
        os.close(writer)
        self.assertEqual(first.wait(TIME_LIMIT_S), 0)


if __name__ == "__main__":
    main()
