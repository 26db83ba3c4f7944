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

    def test_layout_names_every_tensor_and_why_its_module_is_read_as_it_is(self):
        lines = self.run_treble("inspect", "--dump-layout", RELEASE.parents[1] / "micro-int8/release").stdout
        self.assertRegex(lines, r"\Atreble \d")
        self.assertRegex(lines, r"(?m)^model\.safetensors: \d+ tensors")
        self.assertRegex(lines, r"(?m)^text\.layers\.0\.mlp\.up_proj  int8-convrot: weight is \[256, 256\] i8; "
                                r"comfy_quant says .*\"convrot_groupsize\":256")
        self.assertRegex(lines, r"(?m)^    model\.language_model\.layers\.0\.mlp\.up_proj\.weight_scale  "
                                r"\[256, 1\] f32  model\.safetensors$")
        self.assertRegex(lines, r"(?m)^text\.norm  bf16: weight is \[256\] bf16$")
        broken = self.copy_release(model__safetensors=b"GGUF")
        result = self.run_treble("inspect", "--dump-layout", broken)
        self.assertIn("is a GGUF file", result.stdout)
        self.assertIn("head.hidden_norm", result.stdout)
        self.check_refused(["inspect", "--dump-layout", self.folder / "none"], 4, "none")
        self.check_refused(["inspect", "--dump-layout", "--json", RELEASE], 2, "--json")

    def test_errors(self):
        self.check_refused(["inspect", self.folder / "none"], 4, "none")
        self.check_refused(["inspect"], 2, "DIR is required", "treble help inspect")


class MemoryLimit(ProgramTest):
    def test_what_a_gpu_of_so_much_memory_has_room_for(self):
        def fit(*options):
            return json.loads(self.run_treble("inspect", RELEASE, "--json", *options).stdout)["gpu_memory"]
        roomy = fit("--memory-limit", "2GiB")
        self.assertEqual((roomy["fits"], roomy["tower_fits"], roomy["pass_tokens"]), (True, True, 16384))
        self.assertLess(roomy["weight_bytes"] + roomy["activation_bytes"] + roomy["scratch_bytes"], roomy["room_bytes"])
        self.assertLess(roomy["room_bytes"], roomy["limit_bytes"])
        tight = fit("--memory-limit", "1200MiB")
        self.assertLess(tight["pass_tokens"], 16384)
        self.assertEqual(fit("--memory-limit", "2GiB", "--pass-tokens", "128")["pass_tokens"], 128)
        self.assertIn("of weights", self.run_treble("inspect", RELEASE, "--memory-limit", "2GiB").stdout)
        result = self.run_treble("inspect", RELEASE, "--memory-limit", "900MiB", status=5)
        self.assertIn("does not fit", result.stdout)
        self.assertIn("--memory-limit", result.stderr)


if __name__ == "__main__":
    main()
