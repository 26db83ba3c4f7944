"""treble bench: that it runs and adds up; figures are for bench/."""

import json

from program import INT8_RELEASE, RELEASE, REQUESTS, SMALL, ProgramTest, dump, main


class Bench(ProgramTest):
    def test_release_at_two_lengths(self):
        result = self.run_treble("bench", "--model", RELEASE, "--tokens", "40,70", "--questions", "2", "--options", "3",
                                 "--batch", "2", "--repeats", "2", "--json")
        report = json.loads(result.stdout)
        self.assertEqual([row["total_tokens"] for row in report["rows"]], [80, 140])
        for row in report["rows"]:
            self.assertEqual(row["decisions"], 4)
            total, parts = row["total_ms"], (row["encode_ms"], row["vision_ms"], row["backbone_ms"], row["head_ms"])
            self.assertLessEqual(total["p10"], total["median"])
            self.assertLessEqual(total["median"], total["p90"])
            self.assertLessEqual(sum(part["p10"] for part in parts), total["p90"])
            self.assertAlmostEqual(row["tokens_per_s"], row["total_tokens"] / total["median"] * 1e3, delta=1)
        self.assertGreater(report["peak_resident_bytes"], report["activation_bytes"])

    def test_synthetic_model_as_a_table(self):
        result = self.run_treble("bench", "--synthetic", "4x256", "--tokens", "16", "--repeats", "1",
                                 "--precision", "bf16")
        self.assertRegex(result.stdout, r"(?m)^model +4x256 synthetic$")
        self.assertRegex(result.stdout, r"(?m)^device +cpu")
        self.assertRegex(result.stdout,
                         r"(?m)^memory +\S+ [MG]iB weights, \S+ [MG]iB activations, \S+ [MG]iB peak resident$")
        self.assertRegex(result.stdout,
                         r"(?m)^run +median ms +p10 +p90 +encode +vision +backbone +head +tokens/s +decisions/s"
                         r" +TFLOP/s$")
        self.assertRegex(result.stdout, r"(?m)^16 tokens x 1( +[0-9.]+){10}$")
        self.assertEqual(result.stderr, "")

    def test_weights_quantised_on_the_way(self):
        sizes = {}
        for weights in ("as-stored", "int8-convrot", "int8", "nf4"):
            report = json.loads(self.run_treble("bench", "--synthetic", "4x256", "--tokens", "20", "--repeats", "1",
                                                "--weights", weights, "--profile", "--json").stdout)
            sizes[weights] = report["weight_bytes"]
            ops = report["rows"][0]["ops"]
            formats = {"as-stored": "896 bf16", "int8-convrot": "896 int8", "int8": "896 int8", "nf4": "896 nf4"}
            self.assertIn("linear_swiglu 256 -> " + formats[weights].replace("896", "1792"), [op["name"] for op in ops])
            self.assertLessEqual(sum(op["ms"] for op in ops), 1.01 * report["rows"][0]["total_ms"]["median"])
            for op in ops:
                self.assertGreater(op["gbytes_per_s"], 0)
                self.assertEqual(op["tflops"] > 0, op["name"].split()[0] in ("linear", "linear_swiglu", "attention",
                                                                             "gated_delta_rule"))
        self.assertLess(sizes["nf4"], sizes["int8"])
        self.assertEqual(sizes["int8"], sizes["int8-convrot"])
        self.assertLess(sizes["int8"], sizes["as-stored"])

    def test_batches_one_after_the_other_are_compared_with_each_record_alone(self):
        arguments = ["bench", "--synthetic", "4x256", "--tokens", "20,30", "--batch", "1,3", "--questions", "2",
                     "--repeats", "1"]
        rows = json.loads(self.run_treble(*arguments, "--json").stdout)["rows"]
        self.assertEqual([(row["tokens"], row["batch"], row["total_tokens"]) for row in rows],
                         [(20, 1, 20), (20, 3, 60), (30, 1, 30), (30, 3, 90)])
        for row in rows:
            self.assertGreater(row["tflops"], 0)
            self.assertEqual("against_batch_1" in row, row["batch"] > 1)
        agreement = rows[1]["against_batch_1"]
        self.assertEqual(agreement["decisions"], 6)
        self.assertEqual(agreement["differing"], 0)
        self.assertLess(agreement["max_dp"], 1e-4)
        self.assertIn("20 tokens x 3: 0 of 6 decisions are others than alone", self.run_treble(*arguments).stdout)

    def test_real_requests_one_at_a_time(self):
        records = self.file("r.jsonl", "\n".join(dump(r) for r in (SMALL, REQUESTS["card_example"])) + "\n")
        rows = json.loads(self.run_treble("bench", "--model", RELEASE, "--records", records, "--json").stdout)["rows"]
        self.assertEqual(len(rows), 1)
        self.assertEqual(rows[0]["total_tokens"], (309 + 604) // 2)
        self.assertGreater(rows[0]["encode_ms"]["median"], 0)

    def test_pictures_that_come_again_are_timed_again(self):
        records = self.file("r.jsonl", (dump(REQUESTS["one_image"]) + "\n") * 2)
        row, = json.loads(self.run_treble("bench", "--model", RELEASE, "--records", records, "--json").stdout)["rows"]
        self.assertGreater(row["vision_ms"]["p10"], 0.1)

    def test_pictures_of_synthetic_models(self):
        def bench(*arguments):
            return json.loads(self.run_treble("bench", "--synthetic", "4x256", "--tokens", "16", "--repeats", "1",
                                              "--json", *arguments).stdout)

        text, picture = bench(), bench("--image", "300x420", "--batch", "2")
        nf4 = bench("--image", "300x420", "--weights", "nf4")
        row, = picture["rows"]
        self.assertEqual(row["name"], "16 tokens + 300x420 x 2")
        self.assertEqual(row["total_tokens"], 2 * (16 + 288 // 32 * 416 // 32))
        self.assertGreater(row["vision_ms"]["p10"], 0)
        self.assertGreater(picture["weight_bytes"], text["weight_bytes"])
        self.assertLess(nf4["weight_bytes"], picture["weight_bytes"])
        row, = json.loads(self.run_treble("bench", "--model", RELEASE, "--tokens", "16", "--image", "64x64",
                                          "--repeats", "1", "--json").stdout)["rows"]
        self.assertGreater(row["vision_ms"]["p10"], 0)

    def test_arguments(self):
        def check(*arguments, words, status=2):
            self.check_refused(["bench", *arguments], status, *words)

        check(words=["--model", "--synthetic"])
        check("--model", RELEASE, "--synthetic", "4x256", words=["--model", "--synthetic"])
        check("--synthetic", "3b", words=["3b", "0.8b"])
        check("--synthetic", "4x257", words=["4x257"])
        check("--synthetic", "4x256", "--tokens", "12,many", words=["--tokens"])
        check("--synthetic", "4x256", "--tokens", "1", words=["1"])
        check("--synthetic", "4x256", "--repeats", "0", words=["repeats"])
        check("--synthetic", "4x256", "--batch", "2,0", words=["batch", "0"])
        check("--synthetic", "4x256", "--pass-tokens", "7", words=["--pass-tokens"])
        check("--model", INT8_RELEASE, "--weights", "nf4", words=["nf4", "quantised already"])
        check("--synthetic", "4x256", "--profile", "--records", "r.jsonl", words=["--records"])
        check("--synthetic", "4x256", "--weights", "fp4", words=["--weights", "fp4"])
        check("--model", RELEASE, "--records", self.folder / "none.jsonl", words=["none.jsonl"])
        check("--model", RELEASE, "--records", "r.jsonl", "--tokens", "12", words=["--records", "--tokens"])
        for size in ("64", "64x", "x64", "64x64x3", "0x64", "64x-1", "99999x64"):
            check("--synthetic", "4x256", "--image", size, words=["image"])
        check("--synthetic", "4x256", "--image", "1x64000", words=["200 times"])
        for option, value in {"--image": "64x64", "--batch": "2", "--questions": "3", "--options": "3",
                              "--repeats": "3"}.items():
            check("--model", RELEASE, "--records", "r.jsonl", option, value, words=["--records", option])
        check("--model", INT8_RELEASE, "--image", "64x64", words=["--image", "vision tower"])
        check("--synthetic", "4x256", "--device", "abacus", words=["abacus"], status=5)
        check("--model", self.folder / "none", words=["none"], status=4)


if __name__ == "__main__":
    main()
