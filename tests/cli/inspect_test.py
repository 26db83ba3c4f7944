"""treble inspect."""

import json

from program import RELEASE, ProgramTest, main


class Inspect(ProgramTest):
    def test_complete_release(self):
        result = self.run_treble("inspect", RELEASE)
        self.assertIn("complete", result.stdout)
        self.assertIn("model.safetensors", result.stdout)
        self.assertIn("bf16", result.stdout.lower())
        self.assertEqual(result.stderr, "")

    def test_json(self):
        summary = json.loads(self.run_treble("inspect", "--json", RELEASE).stdout)
        self.assertTrue(summary["is_complete"])
        self.assertEqual(summary["missing_files"], [])
        self.assertGreater(summary["weight_bytes"], 9 << 20)

    def test_broken_release_is_shown_and_refused(self):
        for folder, name in ((self.copy_release(without=["joint_head.safetensors"]), "joint_head.safetensors"),
                             (self.copy_release(config__json="{"), "config.json"),
                             (self.copy_release(model__safetensors=b"\xff" * 64), "model.safetensors")):
            result = self.run_treble("inspect", folder, status=4)
            self.assertIn(name, result.stdout)
            self.assertRegex(result.stderr, r"\Atreble: [^\n]+\n\Z")
            result = self.run_treble("inspect", "--json", folder, status=4)
            self.assertFalse(json.loads(result.stdout)["is_complete"])

    def test_errors(self):
        self.check_refused(["inspect", self.folder / "none"], 4, "none")
        self.check_refused(["inspect"], 2, "DIR is required", "treble help inspect")


if __name__ == "__main__":
    main()
