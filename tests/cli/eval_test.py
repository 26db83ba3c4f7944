"""treble eval: figures that can be foreseen, files it reads and writes, and what it refuses."""

import json

from program import EXPECTED, MICRO, RELEASE, REQUESTS, SMALL, ProgramTest, dump, main, run_on_terminal

THREE_TYPES = REQUESTS["three_types"]
NAMES = ("three_types", "option_order", "noul_criteria")


def decisions(name):
    """The original stack's answers to a request, as labels."""
    labels = {}
    for question, answer in EXPECTED[name]["response"]["answers"].items():
        if answer["type"] == "noul":
            labels[question] = answer["noul"] >= 0.5
        else:
            best = max(answer["probabilities"], key=answer["probabilities"].get)
            labels[question] = best if answer["type"] == "choice" else int(best)
    return labels


def record(name, **members):
    return {"request": REQUESTS[name], **members}


class EvalTest(ProgramTest):
    def records(self, lines, name="r.jsonl"):
        return self.file(name, "".join((line if isinstance(line, str) else dump(line)) + "\n" for line in lines))

    def labelled(self):
        return self.records([record(name, set="held-out" if name == "three_types" else "regression", family=name,
                                    answers=decisions(name)) for name in NAMES])

    def evaluate(self, *arguments):
        out = self.folder / "eval.json"
        result = self.run_treble("eval", "--reference", RELEASE, *arguments, "--json", out, "--force")
        return json.loads(out.read_text()), result

    def changed_release(self):
        """The small release with zeros in place of some weights in the middle of its joint head's file."""
        folder = self.copy_release(without=["joint_head.safetensors"])
        blob = bytearray((RELEASE / "joint_head.safetensors").read_bytes())
        half = len(blob) // 2
        blob[half:half + 20000] = bytes(20000)
        (folder / "joint_head.safetensors").write_bytes(blob)
        return folder


class Figures(EvalTest):
    def test_reference_alone_is_measured_against_labels_and_itself(self):
        report, result = self.evaluate(self.labelled())
        self.assertEqual((report["records"], report["questions"], report["labelled"]), (3, 6, 6))
        total = report["reference"]["slices"][0]
        self.assertEqual((total["slice"], total["questions"]), ("total", 6))
        self.assertEqual(total["quality"]["accuracy"]["share"], 1.0)
        self.assertEqual(sum(bin["count"] for bin in total["quality"]["bins"]), 6)
        self.assertIsNone(total["comparison"])
        self.assertEqual([slice["slice"] for slice in report["reference"]["slices"]],
                         ["total", "type choice", "type score", "type noul", "set held-out", "set regression",
                          "family three_types", "family option_order", "family noul_criteria"])
        self.assertEqual([run["name"] for run in report["runs"]],
                         ["reference, bf16 activations", "reference, 3 records a pass"])
        bf16, packed = (run["slices"][0]["comparison"] for run in report["runs"])
        self.assertTrue(1e-6 < bf16["drift_max"] < 0.02, bf16)
        self.assertTrue(1e-4 < bf16["hidden_l2_mean"] < 0.05, bf16)
        self.assertLess(packed["logit_l2_centred"], 1e-5)
        self.assertEqual(packed["agreement"]["share"], 1.0)
        self.assertLess(packed["agreement"]["low"], 1.0)
        self.assertEqual(sum(bf16["drift_counts"]), 6)
        self.assertEqual(len(report["drift_edges"]), len(bf16["drift_counts"]) + 1)
        self.assertIn("against the labels", result.stdout)

    def test_every_layer_has_its_drift(self):
        report, _ = self.evaluate(self.labelled())
        stages = report["runs"][0]["hidden_l2"]
        self.assertEqual([stage["stage"] for stage in stages],
                         ["embed", "layer00.out", "layer01.out", "layer02.out", "layer03.out", "hidden"])
        self.assertEqual(stages[0]["mean"], 0.0)  # the table is bf16 itself
        for stage in stages[1:]:
            self.assertTrue(0 < stage["mean"] < stage["p95"] * 2, stage)
            self.assertLess(stage["aggregate"], 0.05)

    def test_a_release_does_not_differ_from_itself(self):
        report, result = self.evaluate("--model", RELEASE, "--no-noise-floor", self.labelled())
        run, = report["runs"]
        self.assertFalse(run["is_noise_floor"])
        total = run["slices"][0]["comparison"]
        for name in ("drift_max", "total_variation_mean", "kl_mean", "logit_l2_raw", "logit_l2_centred",
                     "hidden_l2_p95", "score_difference_mean"):
            self.assertEqual(total[name], 0.0, name)
        self.assertEqual((total["agreement"]["count"], total["record_agreement"]["count"]), (6, 3))
        self.assertEqual(total["mcnemar_p"], 1.0)
        self.assertEqual(result.stderr, "")

    def test_weights_quantise_the_models_and_leave_the_reference(self):
        alone, _ = self.evaluate("--weights", "int8-convrot", self.labelled())
        name = f"{RELEASE}, int8-convrot"
        self.assertEqual([run["name"] for run in alone["runs"]],
                         ["reference, bf16 activations", "reference, 3 records a pass", name])
        self.assertLess(alone["runs"][1]["slices"][0]["comparison"]["logit_l2_centred"], 1e-5)
        quantised = alone["runs"][2]["slices"][0]["comparison"]
        self.assertTrue(1e-3 < quantised["hidden_l2_mean"] < 0.1, quantised)
        beside, _ = self.evaluate("--model", RELEASE, "--weights", "int8-convrot", "--no-noise-floor", self.labelled())
        self.assertEqual([run["name"] for run in beside["runs"]], [name])
        self.assertEqual(beside["runs"][0]["slices"][0]["comparison"], quantised)

    def test_another_head_changes_logits_and_leaves_hidden_states(self):
        report, _ = self.evaluate("--model", self.changed_release(), "--no-noise-floor", self.labelled())
        total = report["runs"][0]["slices"][0]["comparison"]
        self.assertGreater(total["logit_l2_centred"], 1e-4)
        self.assertGreater(total["drift_max"], 0)
        self.assertEqual(total["hidden_l2_mean"], 0.0)

    def test_releases_of_other_shapes_are_compared_by_their_logits(self):
        config = json.loads((RELEASE / "config.json").read_text())
        config["text_config"]["num_hidden_layers"] = 3
        config["text_config"]["layer_types"] = config["text_config"]["layer_types"][:3]
        # The last layer's tensors become some that nothing reads; names of equal length leave the file's size.
        weights = (RELEASE / "model.safetensors").read_bytes().replace(b'"model.language_model.layers.3.',
                                                                       b'"mtp.language_models_.layers.3.')
        shallow = self.copy_release(config__json=dump(config), model__safetensors=weights)
        report, _ = self.evaluate("--model", shallow, "--no-noise-floor", self.labelled())
        run, = report["runs"]
        self.assertEqual(run["hidden_l2"], [])
        self.assertIsNone(run["slices"][0]["comparison"]["hidden_l2_mean"])
        self.assertGreater(run["slices"][0]["comparison"]["logit_l2_raw"], 0)

    def test_plain_requests_have_no_quality(self):
        report, result = self.evaluate(self.records([SMALL, THREE_TYPES]))
        self.assertEqual(report["labelled"], 0)
        self.assertIsNone(report["reference"]["slices"][0]["quality"])
        self.assertIsNone(report["runs"][0]["slices"][0]["comparison"]["mcnemar_p"])
        self.assertNotIn("against the labels", result.stdout)

    def test_several_files_are_one_set_and_media_are_run(self):
        first = self.records([record("one_image", set="pictures", answers=decisions("one_image")), REQUESTS["video"],
                              SMALL])
        report, _ = self.evaluate(first, self.records([SMALL], "s.jsonl"))
        self.assertEqual((report["records"], report["skipped_image_records"], report["skipped_video_records"]),
                         (4, 0, 0))
        self.assertEqual(report["reference"]["slices"][0]["quality"]["accuracy"]["share"], 1.0)

    def test_media_are_left_out_where_a_release_reads_text_only(self):
        first = self.records([record("one_image", set="pictures"), REQUESTS["video"], SMALL])
        report, result = self.evaluate("--model", self.text_release(), "--no-noise-floor", first)
        self.assertEqual((report["records"], report["skipped_image_records"], report["skipped_video_records"]),
                         (1, 1, 1))
        self.assertEqual(result.stderr,
                         "treble: 1 records with images and 1 with videos were left out: not every model reads them\n")

    def test_media_are_left_out_where_a_release_has_no_tensors_of_a_tower(self):
        records = self.records([record("one_image"), record("three_types")])
        nf4 = MICRO.parent / "micro-nf4" / "release"  # with a vision_config
        report, _ = self.evaluate("--model", nf4, "--no-noise-floor", records)
        self.assertEqual((report["records"], report["skipped_image_records"]), (1, 1))


class Groups(EvalTest):
    def test_groups_of_options(self):
        groups = self.file("groups.json", {"department": {"money": ["billing"], "machines": ["technical"]}})
        report, result = self.evaluate("--groups", groups, self.labelled())
        group, = report["runs"][0]["groups"]
        self.assertEqual((group["question"], group["agreement"]["total"], group["labelled"]), ("department", 1, 1))
        self.assertEqual(list(group["groups"]), ["money", "machines"])
        expected = EXPECTED["three_types"]["response"]["answers"]["department"]["probabilities"]["billing"]
        label = decisions("three_types")["department"] == "billing"
        money, machines = group["groups"]["money"], group["groups"]["machines"]
        self.assertAlmostEqual(money["brier_reference"], (expected - label) ** 2, delta=2e-4)
        self.assertAlmostEqual(money["difference_max"], machines["difference_max"], delta=1e-9)
        self.assertIn("option groups", result.stdout)

    def test_groups_that_do_not_fit(self):
        def check(groups, *words):
            path = self.file("groups.json", groups)
            self.check_refused(["eval", "--reference", RELEASE, "--groups", path, self.labelled()], 2, *words)

        check({"department": {"a": ["billing"], "b": []}}, '"technical"', "no group", "line 1")
        check({"nobody": {"a": ["x"], "b": ["y"]}}, '"nobody"')
        check({"department": {"a": ["billing", "technical"]}}, "two or more groups")
        check("{", "groups.json")
        self.check_refused(["eval", "--reference", RELEASE, "--groups", self.folder / "none", self.labelled()], 2,
                           "none")


class Output(EvalTest):
    def test_report_is_one_page_with_plots(self):
        page = self.folder / "eval.html"
        self.evaluate(self.labelled(), "--report", page)
        text = page.read_text()
        self.assertEqual(text.count("<svg"), 3)
        self.assertNotIn("<script", text)
        self.assertNotRegex(text, r"(?:src|href)=")
        self.assertIn("Against the labels", text)

    def test_files_with_text_are_kept(self):
        records = self.labelled()
        for option in ("--report", "--json"):
            out = self.file("out", "precious")
            self.check_refused(["eval", "--reference", RELEASE, option, out, records], 2, option, "--force")
            self.check_refused(["eval", "--reference", RELEASE, option, records, records, "--force"], 2, option,
                               "is a file that is read")
            self.assertEqual(out.read_text(), "precious")

    def test_a_failed_run_leaves_no_empty_files(self):
        page, figures = self.folder / "eval.html", self.folder / "eval.json"
        self.check_refused(["eval", "--reference", self.folder / "none", self.labelled(), "--report", page, "--json",
                            figures], 4, "none")
        self.assertFalse(page.exists() or figures.exists())

    def test_page_and_figures_are_two_files(self):
        out = self.folder / "out"
        self.check_refused(["eval", "--reference", RELEASE, self.labelled(), "--report", out, "--json", out], 2,
                           "--report", "--json", "are one file")
        self.assertFalse(out.exists())

    def test_table_for_people(self):
        result = self.run_treble("eval", "--reference", RELEASE, self.labelled())
        self.assertRegex(result.stdout, r"(?m)^records +3, 6 questions, 6 labelled$")
        self.assertRegex(result.stdout, r"(?m)^reference, 3 records a pass +total +6 +100\.00 +61\.0-100\.0 ")
        shown, _, status = run_on_terminal("eval", "--reference", RELEASE, "--no-noise-floor",
                                           self.records([SMALL]), stream="stderr")
        self.assertEqual(status, 0)
        self.assertTrue(shown == "" or "answered" in shown, shown)


class Refused(EvalTest):
    def check(self, lines, status, *words):
        self.check_refused(["eval", "--reference", RELEASE, self.records(lines)], status, *words)

    def test_bad_lines_are_named(self):
        self.check([SMALL, "", '{"state": '], 3, "r.jsonl line 3")
        self.check([SMALL, {"request": {"state": "s", "questions": {}}}], 3, "r.jsonl line 2", "questions")
        self.check([SMALL, "[]"], 3, "r.jsonl line 2", "an array")

    def test_unknown_labels_are_named(self):
        self.check([record("three_types", answers={"department": "sales"})], 3, "r.jsonl line 1", '"sales"',
                   '"billing", "technical"')
        self.check([record("three_types", answers={"size": True})], 3, '"size"', "no question")

    def test_records_that_are_too_long_are_named(self):
        records = self.records([SMALL, {**SMALL, "state": "word " * 400}])
        self.check_refused(["eval", "--reference", RELEASE, "--max-tokens", "400", records], 3, "r.jsonl line 2", "400")

    def test_nothing_to_measure(self):
        self.check([], 2, "no record")
        self.check_refused(["eval", "--reference", self.text_release(), self.records([REQUESTS["one_image"]])], 2,
                           "all 1 records", "images")
        self.check_refused(["eval", "--reference", RELEASE, self.folder / "none.jsonl"], 2, "none.jsonl")
        self.check_refused(["eval", "--reference", RELEASE], 2, "RECORDS")
        self.check_refused(["eval", self.records([SMALL])], 2, "--reference")

    def test_a_release_with_fewer_rows_than_its_tokenizer_has_ids_is_named(self):
        config = (RELEASE / "config.json").read_text().replace('"vocab_size": 640', '"vocab_size": 500')
        other = self.copy_release(config__json=config)
        self.check_refused(["eval", "--reference", RELEASE, "--model", other, self.records([SMALL])], 4, str(other),
                           "vocab_size is 500")

    def test_a_missing_image_is_named_with_the_folder_it_was_looked_for_in(self):
        self.records([{**SMALL, "images": ["none.png"]}])
        self.check_refused(["eval", "--reference", RELEASE, "r.jsonl"], 3, "r.jsonl line 1", '"none.png"', 'in "."',
                           cwd=self.folder)

    def test_releases_that_cannot_be_compared(self):
        records = self.records([REQUESTS["whitespace"]])
        self.check_refused(["eval", "--reference", self.folder / "none", records], 4, "none")
        self.check_refused(["eval", "--reference", RELEASE, "--model", self.folder / "none", records], 4, "none")
        tokenizer = json.loads((RELEASE / "tokenizer.json").read_text())
        tokenizer["model"]["merges"] = tokenizer["model"]["merges"][:100]
        other = self.copy_release(tokenizer__json=dump(tokenizer))
        self.check_refused(["eval", "--reference", RELEASE, "--model", other, records], 4, "r.jsonl line 1",
                           "other tokens", "tokenizer")


if __name__ == "__main__":
    main()
