"""treble encode."""

import base64
import json

from program import EXPECTED, MEDIA, RELEASE, REQUESTS, SMALL, ProgramTest, main, with_limit


class Encode(ProgramTest):
    def test_ids_and_spans_equal_the_original_stack_s(self):
        for name, request in REQUESTS.items():
            request, options = with_limit(request)
            result = self.run_treble("encode", "--model", RELEASE, *options, self.file("r.json", request))
            with self.subTest(name):
                expected = {key: EXPECTED[name][key] for key in ("input_ids", "questions")}
                encoded = json.loads(result.stdout)
                media = encoded.pop("media", [])
                self.assertEqual(encoded, expected)
                kinds = [kind for kind in ("image", "video") for _ in request.get(kind + "s", [])]
                self.assertEqual([item["type"] for item in media], kinds)
                self.assertEqual("were cut off" in result.stderr, bool(options))

    def test_a_video_file_is_sampled_by_its_own_rate(self):
        clip = MEDIA / "h264_25.mp4"
        expected = next(case for case in json.loads((MEDIA / "expected_videos.json").read_text())
                        if case["file"] == clip.name and not case["options"])
        for video in (str(clip), {"content_type": "video/mp4", "base64": base64.b64encode(clip.read_bytes()).decode()}):
            result = self.run_treble("encode", "--model", RELEASE, self.file("r.json", {**SMALL, "videos": [video]}))
            item, = json.loads(result.stdout)["media"]
            self.assertEqual((item["type"], item["grid_thw"]), ("video", expected["grid"]))
            self.check_close(item["timestamps"], expected["timestamps"], 1e-9)

    def test_limits_on_media_can_be_set(self):
        request = self.file("r.json", {**SMALL, "images": [str(MEDIA / "large_4000_by_3000.png")] * 2})
        self.check_refused(["encode", "--model", RELEASE, "--max-media", "1", request], 3, "2 items", "limit is 1")
        self.check_refused(["encode", "--model", RELEASE, "--max-megapixels", "11", request], 3, "images[0]", "4000")

    def test_needs_no_weights(self):
        folder = self.copy_release(without=["model.safetensors", "joint_head.safetensors", "joint_head_config.json",
                                            "processor_config.json", "generation_config.json"])
        self.run_treble("encode", "--model", folder, self.file("r.json", SMALL))

    def test_pretokenizer_can_be_chosen(self):
        # One more merge, of a letter with the first byte of a combining mark, tells the two patterns apart.
        tokenizer = json.loads((RELEASE / "tokenizer.json").read_text())
        vocab, merges = tokenizer["model"]["vocab"], tokenizer["model"]["merges"]
        joined = 1 + max([*vocab.values(), *(token["id"] for token in tokenizer["added_tokens"])])
        vocab["qÌ"] = joined
        merges.append(["q", "Ì"] if isinstance(merges[0], list) else "q Ì")
        folder = self.copy_release(tokenizer__json=json.dumps(tokenizer))
        request = self.file("r.json", {**SMALL, "state": "q\u0303"})
        for choice, is_joined in (("auto", False), ("file", False), ("plain", False), ("marks", True)):
            result = self.run_treble("encode", "--model", folder, "--pretokenizer", choice, request)
            self.assertEqual(joined in json.loads(result.stdout)["input_ids"], is_joined, choice)

    def test_model_s_own_limit_counts(self):
        config = json.loads((RELEASE / "config.json").read_text())
        config["text_config"]["max_position_embeddings"] = 200
        folder = self.copy_release(config__json=json.dumps(config))
        self.check_refused(["encode", "--model", folder, self.file("r.json", SMALL)], 3, "307", "200")

    def test_errors(self):
        request = self.file("r.json", SMALL)
        self.check_refused(["encode", "--model", RELEASE, "--max-tokens", "308", request], 3, "309", "308")
        self.check_refused(["encode", "--model", self.folder / "none", request], 4, "none")
        self.check_refused(["encode", "--model", RELEASE, self.file("bad.json", "{")], 3, "request")
        self.check_refused(["encode", request], 2, "--model is required", "treble help encode")


if __name__ == "__main__":
    main()
