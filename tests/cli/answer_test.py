"""treble answer, one request at a time."""

import base64
import json
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

from program import (EXPECTED, ONE_STEP, RELEASE, REQUESTS, SMALL, TIME_LIMIT_S, TREBLE, ProgramTest, dump, main,
                     run_on_terminal, with_limit)


def changed(**members):
    return {**SMALL, **members}


def one_question(question):
    return {"state": "s", "questions": {"q": question}}


class Answers(ProgramTest):
    def answer(self, request, *options, **keywords):
        result = self.run_treble("answer", "--model", RELEASE, *options, self.file("r.json", request), **keywords)
        return json.loads(result.stdout)

    def test_response_equals_the_original_stack_s(self):
        for name in ("three_types", "truncated_state"):
            request, options = with_limit(REQUESTS[name])
            self.check_close(self.answer(request, *options), EXPECTED[name]["response"], ONE_STEP)

    def test_a_prompt_longer_than_a_pass_is_answered_alike_pictures_and_all(self):
        for name in ("three_types", "image_and_videos", "long_state"):
            response = self.answer(REQUESTS[name], "--pass-tokens", "128")
            self.check_close(response, EXPECTED[name]["response"], ONE_STEP)

    def test_without_its_vision_tower_a_model_refuses_pictures(self):
        request = self.file("r.json", REQUESTS["one_image"])
        self.check_refused(["answer", "--model", RELEASE, "--vision", "off", request], 3, "--vision off", "text only")
        self.check_close(self.answer(SMALL, "--vision", "off"), EXPECTED["plain_string"]["response"], ONE_STEP)

    def test_a_limit_of_memory_is_an_amount_and_for_gpus(self):
        request = self.file("r.json", SMALL)
        for amount in ("much", "1.5TB", "-1GiB", "0", "1e30"):
            self.check_refused(["answer", "--model", RELEASE, "--memory-limit", amount, request], 2, "15.5GiB")
        self.check_refused(["answer", "--model", RELEASE, "--memory-limit", "1.5GiB", request], 2, "--memory-limit",
                           "GPUs")

    def test_pictures_come_as_paths_beside_the_request_data_urls_or_objects(self):
        request, (path,) = REQUESTS["one_image"], REQUESTS["one_image"]["images"]
        shutil.copyfile(path, self.folder / "receipt.png")
        text = base64.b64encode(Path(path).read_bytes()).decode()
        for image in ("receipt.png", path, "data:image/png;base64," + text, text,
                      {"content_type": "image/png", "base64": text},
                      {"type": "image_url", "image_url": {"url": "data:;base64," + text}}):
            response = self.answer({**request, "images": [image]})
            self.check_close(response, EXPECTED["one_image"]["response"], ONE_STEP)

    def test_clips_come_as_folders_or_frames(self):
        request, (path,) = REQUESTS["video"], REQUESTS["video"]["videos"]
        frames = [base64.b64encode(frame.read_bytes()).decode() for frame in sorted(Path(path).iterdir())]
        for video in (path, frames, {"frames": frames}, {"frames": frames, "fps": 24}):
            response = self.answer({**request, "videos": [video]})
            self.check_close(response, EXPECTED["video"]["response"], ONE_STEP)
        # The clip's own rate and the options decide which frames are kept.
        self.assertNotEqual(self.answer({**request, "videos": [{"frames": frames, "fps": 2}]})["usage"],
                            EXPECTED["video"]["response"]["usage"])
        self.assertNotEqual(self.answer({**request, "media_kwargs": {"do_sample_frames": False}})["usage"],
                            EXPECTED["video"]["response"]["usage"])

    def test_a_vocabulary_that_is_larger_than_the_embedding_is_refused_at_load(self):
        tokenizer = json.loads((RELEASE / "tokenizer.json").read_text())
        tokenizer["model"]["vocab"]["a"] = 640
        release = self.copy_release(tokenizer__json=json.dumps(tokenizer))
        request = self.file("r.json", one_question({"type": "noul"}))
        self.check_refused(["answer", "--model", release, request], 4, "tokenizer.json", "vocab_size is 640")

    def test_out_may_not_be_the_request(self):
        request = self.file("r.json", SMALL)
        before = request.read_text()
        self.check_refused(["answer", "--model", RELEASE, request, "--out", request, "--force"], 2, "file of requests")
        self.assertEqual(request.read_text(), before)

    def test_a_model_that_the_system_cannot_reach_is_named_with_its_reason(self):
        request, loop = self.file("r.json", SMALL), self.folder / "loop"
        loop.symlink_to("loop")
        for command in (["answer", "--model"], ["encode", "--model"], ["eval", "--reference"]):
            self.check_refused([*command, loop, request], 4, str(loop), "cannot be opened: Too many levels")
            self.check_refused([*command, self.folder / ("a" * 300), request], 4, "File name too long")
        self.check_refused(["inspect", loop], 4, "cannot be opened: Too many levels")
        self.check_refused(["quantize", "--format", "nf4", "--out", self.folder / "out", loop], 4, "Too many levels")

    def test_a_failed_run_leaves_no_empty_out(self):
        request, out = self.file("r.json", SMALL), self.folder / "out"
        for options in ([], ["--jsonl"]):
            self.check_refused(["answer", "--model", self.folder / "none", request, "--out", out, *options], 4, "none")
            self.assertFalse(out.exists())

    def test_a_model_that_is_no_folder_is_named(self):
        request = self.file("r.json", SMALL)
        self.check_refused(["answer", "--model", self.folder / "none", request], 4, "none", "does not exist")

    def test_bf16_activations_stay_within_their_noise(self):
        response = self.answer(REQUESTS["option_order"], "--precision", "bf16")
        self.check_close(response, EXPECTED["option_order"]["response"], 0.015)

    def test_logits_come_in_the_order_of_encode(self):
        logits = self.answer(REQUESTS["option_order"], "--logits")["x_logits"]
        self.check_close(logits, EXPECTED["option_order"]["logits"], 5e-5)

    def test_confidence_kinds_change_nothing_else(self):
        request = one_question({"type": "choice", "criteria": {"a": None, "b": None, "c": None}})
        answers = {kind: self.answer(request, *options)["answers"]["q"]
                   for kind, options in (("max", []), ("systemone", ["--confidence", "systemone"]),
                                         ("entropy", ["--confidence", "entropy"]))}
        top = max(answers["max"]["probabilities"].values())
        self.assertAlmostEqual(answers["max"]["confidence"], top, delta=ONE_STEP)
        self.assertAlmostEqual(answers["systemone"]["confidence"], (3 * top - 1) / 2, delta=3 * ONE_STEP)
        self.assertTrue(0 <= answers["entropy"]["confidence"] < top)
        for answer in answers.values():
            self.assertEqual(answer["probabilities"], answers["max"]["probabilities"])

    def test_stdin_is_a_request(self):
        result = self.run_treble("answer", "--model", RELEASE, "-", stdin=dump(SMALL))
        self.check_close(json.loads(result.stdout), EXPECTED["plain_string"]["response"], ONE_STEP)
        self.assertEqual(result.stderr, "")

    def test_cut_state_is_reported_on_stderr(self):
        request, options = with_limit(REQUESTS["truncated_state"])
        result = self.run_treble("answer", "--model", RELEASE, *options, self.file("r.json", request))
        self.assertRegex(result.stderr, r"\Atreble: [1-9][0-9]* tokens of the state were cut off\n\Z")

    def test_out_gets_the_response_and_is_not_overwritten_by_accident(self):
        request, out = self.file("r.json", SMALL), self.folder / "out.json"
        command = ["answer", "--model", RELEASE, request, "--out", out]
        self.assertEqual(self.run_treble(*command).stdout, "")
        self.check_close(json.loads(out.read_text()), EXPECTED["plain_string"]["response"], ONE_STEP)
        out.write_text("something precious, and longer than a response" * 100)
        self.check_refused(command, 2, "has text already", "--force")
        self.assertIn("precious", out.read_text())
        self.run_treble(*command, "--force")
        self.check_close(json.loads(out.read_text()), EXPECTED["plain_string"]["response"], ONE_STEP)


class Tables(ProgramTest):
    def test_table_when_it_is_asked_for(self):
        request = self.file("r.json", REQUESTS["three_types"])
        table = self.run_treble("answer", "--model", RELEASE, "--format", "table", request).stdout
        self.assertRegex(table, r"(?m)^question +answer +confidence +probabilities$")
        self.assertRegex(table, r"(?m)^department +billing +0\.548\d +█+\S* +billing 0\.548\d, technical 0\.451\d$")
        self.assertRegex(table, r"(?m)^urgency +0\.98\d\d +0\.391\d .* 0 Can wait 0\.391\d, 1 This week 0\.235\d, 2 T")
        self.assertRegex(table, r"(?m)^outage +false +0\.54\d\d ")
        self.assertRegex(table, r"\n708 tokens in \d+\.\d\d s\n\Z")
        self.assertNotIn("\x1b", table)

    def test_table_in_colour_on_a_terminal_and_within_its_width(self):
        request = self.file("r.json", {"state": "s", "questions": {"どの部署が担当しますか" * 3: {
            "type": "choice", "criteria": {f"{word}担当" * 4: None for word in "営業技術経理"}}}})
        for columns in (50, 200):
            shown, errors, status = run_on_terminal("answer", "--model", RELEASE, request, stream="stdout",
                                                    columns=columns)
            self.assertEqual((errors, status), ("", 0))
            self.assertIn("\x1b[1m", shown)
            for line in re.sub(r"\x1b\[\d+m", "", shown).splitlines():
                wide = sum(1 for character in line if character >= "\u2e80")
                self.assertLessEqual(len(line) + wide, columns)

    def test_json_on_a_terminal_when_it_is_asked_for(self):
        request = self.file("r.json", SMALL)
        shown, _, _ = run_on_terminal("answer", "--model", RELEASE, request, "--format", "json", stream="stdout")
        self.check_close(json.loads(shown), EXPECTED["plain_string"]["response"], ONE_STEP)

    def test_question_ids_cannot_steer_the_terminal(self):
        request = self.file("r.json", {"state": "s", "questions": {"\x1b[2Jq": {"type": "noul"}}})
        table = self.run_treble("answer", "--model", RELEASE, "--format", "table", request).stdout
        self.assertNotIn("\x1b", table)


class BadRequests(ProgramTest):
    def check(self, request, *words):
        self.check_refused(["answer", "--model", RELEASE, self.file("r.json", request)], 3, *words)

    def test_not_json(self):
        self.check('{"state": "s", ', "request")
        self.check("", "request")
        self.check("[1, 2]", "an array", "object")
        self.check(b'{"state": "\xff", "questions": {"q": {"type": "noul"}}}', "UTF-8")
        self.check('{"state": NaN, "questions": {"q": {"type": "noul"}}}', "request")
        self.check('{"state": ["\\ud800"], "questions": {"q": {"type": "noul"}}}', "surrogate")
        self.check('{"state": [1e999], "questions": {"q": {"type": "noul"}}}', "1e999")

    def test_too_deep(self):
        self.check('{"state": ' + "[" * 100_000 + "]" * 100_000 + "}", "level 66")

    def test_members(self):
        self.check({"questions": SMALL["questions"]}, "state is missing")
        self.check(changed(state=None), "state is null")
        self.check(changed(questions={}), "questions has 0 entries")
        self.check(changed(questions=[]), "questions is an array")
        self.check(changed(questions={f"q{i}": {"type": "noul"} for i in range(257)}), "257", "256")
        self.check('{"state": "s", "questions": {"q": {"type": "noul"}, "q": {"type": "noul"}}}', '"q" twice')

    def test_questions(self):
        self.check(one_question({}), "questions.q.type is missing")
        self.check(one_question({"type": "boolean"}), "boolean", "noul")
        self.check(one_question({"type": "choice"}), "questions.q.criteria is missing")
        self.check(one_question({"type": "choice", "criteria": {}}), "0 options", "1 to 255")
        self.check(one_question({"type": "choice", "criteria": {str(i): None for i in range(256)}}), "256 options")
        self.check(one_question({"type": "score", "criteria": ["l"] * 11}), "11 levels", "1 to 10")
        self.check(one_question({"type": "score", "criteria": {"a": 1}}), "criteria is an object")
        self.check('{"state": "s", "questions": {"q": {"type": "choice", "criteria": {"a": 1, "a": 2}}}}',
                   'two options "a"')

    def test_pictures_that_cannot_be_read_are_named(self):
        self.check(changed(images=["a.png"]), "images[0]", '"a.png"', "no file of that name")
        self.check(changed(videos=["a.mp4"]), "videos[0]")
        self.check(changed(images=["https://example.com/a.png"]), "no URL is fetched")
        self.check(changed(images=["data:image/png;base64,aGVsbG8="]), "images[0]")
        self.check(changed(images="a.png"), "images is a string")
        self.check(changed(images=["a"] * 65), "65 items", "64")
        self.check(changed(media_kwargs={"max_pixel": 1}), '"max_pixel"', '"max_pixels"')
        self.check(changed(media_kwargs=[]), "media_kwargs is an array")

    def test_pictures_are_refused_where_the_release_reads_text_only(self):
        release = self.text_release()
        self.check_close(json.loads(self.run_treble("answer", "--model", release, self.file("r.json", SMALL)).stdout),
                         EXPECTED["plain_string"]["response"], ONE_STEP)
        self.check_refused(["answer", "--model", release, self.file("r.json", REQUESTS["one_image"])], 3,
                           "no vision tower")

    def test_too_many_tokens_names_both_numbers(self):
        tokens = len(EXPECTED["plain_string"]["input_ids"])
        request = self.file("r.json", SMALL)
        command = ["answer", "--model", RELEASE, request, "--max-tokens"]
        self.run_treble(*command, tokens)
        self.check_refused([*command, tokens - 1], 3, f"{tokens} tokens", str(tokens - 1))
        # No cut of the state helps here.
        self.check_refused([*command, 100, "--truncate-state"], 3, "100")

    def test_more_than_64_mib(self):
        request = self.file("r.json", "")
        os.truncate(request, (64 << 20) + 1)
        self.check_refused(["answer", "--model", RELEASE, request], 3, "64 MiB")

    def test_request_that_cannot_be_read(self):
        self.check_refused(["answer", "--model", RELEASE, self.folder / "none.json"], 2, "none.json", "No such file")
        self.check_refused(["answer", "--model", RELEASE, self.folder], 2, "is a folder")


class BadArguments(ProgramTest):
    def check(self, arguments, *words, status=2):
        self.check_refused(["answer", "--model", RELEASE, self.file("r.json", SMALL), *arguments], status, *words)

    def test_values(self):
        self.check(["--format", "xml"], "--format", "xml", "table")
        self.check(["--confidence", "median"], "--confidence", "median")
        self.check(["--precision", "fp8"], "--precision", "fp8")
        self.check(["--pretokenizer", "bert"], "--pretokenizer", "bert")
        for value in ("0", "-1", "many", "1.5", "99999999999999999999"):
            self.check(["--max-tokens", value], "--max-tokens")
        for value in ("-1", "many", "4096"):
            self.check(["--threads", value], "threads")

    def test_what_does_not_go_together(self):
        self.check(["--resume"], "--resume")
        self.check(["--resume", "--out", "o.json"], ".jsonl")
        self.check(["--jsonl", "--format", "table"], "--format table")
        self.check(["--jsonl", "--resume"], "--resume needs --out")
        self.check(["--jsonl", "--resume", "--force", "--out", "o.jsonl"], "--resume", "--force")

    def test_missing_and_unknown(self):
        request = self.file("r.json", SMALL)
        self.check_refused(["answer", request], 2, "--model is required", "treble help answer")
        self.check_refused(["answer", "--model", RELEASE], 2, "REQUEST is required")
        self.check(["--bogus"], "--bogus", "treble help answer")
        self.check(["second.json"], "second.json")
        self.check(["--model", RELEASE], "--model")

    def test_unknown_device(self):
        self.check(["--device", "abacus"], "abacus", "cpu", status=5)


class BrokenReleases(ProgramTest):
    def check(self, folder, *words):
        self.check_refused(["answer", "--model", folder, self.file("r.json", SMALL)], 4, "checkpoint", *words)

    def test_missing_files(self):
        self.check(self.folder / "none", "none")
        for name in ("config.json", "joint_head_config.json", "joint_head.safetensors", "model.safetensors",
                     "tokenizer.json"):
            self.check(self.copy_release(without=[name]), name)

    def test_broken_config(self):
        self.check(self.copy_release(config__json='{"text_config": '), "config.json")
        config = json.loads((RELEASE / "config.json").read_text())
        config["text_config"]["hidden_size"] = "wide"
        self.check(self.copy_release(config__json=dump(config)), "config.json", "hidden_size")
        del config["text_config"]
        self.check(self.copy_release(config__json=dump(config)), "config.json")

    def test_broken_tokenizer(self):
        self.check(self.copy_release(tokenizer__json="{}"), "tokenizer.json")
        self.check(self.copy_release(tokenizer__json="no JSON"), "tokenizer.json")

    def test_weights_that_end_too_soon(self):
        weights = (RELEASE / "model.safetensors").read_bytes()
        for length in (0, 7, 100, len(weights) // 2, len(weights) - 1):
            self.check(self.copy_release(model__safetensors=weights[:length]), "model.safetensors")

    def test_header_that_is_longer_than_the_file(self):
        weights = (RELEASE / "joint_head.safetensors").read_bytes()
        broken = (1 << 62).to_bytes(8, "little") + weights[8:]
        self.check(self.copy_release(joint_head__safetensors=broken), "joint_head.safetensors")

    def test_missing_shard(self):
        index = {"metadata": {}, "weight_map": {"model.language_model.norm.weight": "model-00001-of-00002.safetensors"}}
        folder = self.copy_release(without=["model.safetensors"], **{"model__safetensors__index__json": dump(index)})
        self.check(folder, "model-00001-of-00002.safetensors")

    def test_wrong_shape_names_the_tensor(self):
        config = json.loads((RELEASE / "config.json").read_text())
        config["text_config"]["intermediate_size"] += 64
        self.check(self.copy_release(config__json=dump(config)), "mlp", "implies")


class Streams(ProgramTest):
    def command(self):
        return [str(part) for part in (TREBLE, "answer", "--model", RELEASE, self.file("r.json", SMALL))]

    def test_reader_that_leaves_ends_the_program_quietly(self):
        for restores in (True, False):  # False: the program's parent ignores the signal
            process = subprocess.Popen(self.command(), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                       restore_signals=restores)
            process.stdout.close()
            errors = process.stderr.read()
            process.stderr.close()
            self.assertEqual((process.wait(TIME_LIMIT_S), errors), (-signal.SIGPIPE, b""))

    def test_full_disk_and_closed_stdout_are_errors(self):
        with open("/dev/full", "wb") as full:
            result = subprocess.run(self.command(), stdout=full, stderr=subprocess.PIPE, check=False)
        self.assertEqual(result.returncode, 5)
        self.assertIn(b"standard output cannot be written", result.stderr)
        closed = subprocess.run(["sh", "-c", '"$@" >&-', "sh", *self.command()], stderr=subprocess.PIPE, check=False)
        self.assertEqual(closed.returncode, 5)
        self.assertIn(b"standard output cannot be written", closed.stderr)


if __name__ == "__main__":
    main()
