"""The generated decision records: records_test.py TREBLE PROJECT"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

TREBLE, PROJECT = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
sys.path.insert(0, str(PROJECT / "python" / "train"))

import make_eval  # noqa: E402
from records import MEDIA, core, families, record_of  # noqa: E402

SAMPLES = 40
EVAL = PROJECT / "data" / "eval"


def samples(role):
    for family in families():
        for i in range(SAMPLES):
            yield family, *record_of(family, role, "test", i)


def options(question):
    match question["type"]:
        case "noul":
            return [True, False]
        case "choice":
            return list(question["criteria"])
        case "score":
            return list(range(len(question["criteria"])))


def without_arrays(request):
    return {name: value for name, value in request.items() if name in ("state", "questions")}


class Families(unittest.TestCase):
    def test_every_family_has_at_least_twenty_templates_of_at_least_five_wordings(self):
        for family in families().values():
            templates = [wordings for kind in family.templates.values() for wordings in kind]
            self.assertGreaterEqual(len(templates), 20, family.name)
            self.assertGreaterEqual(min(map(len, templates)), 5, family.name)

    def test_a_fifth_of_every_kind_s_templates_is_held_out(self):
        for family in families().values():
            for kind, templates in family.templates.items():
                self.assertEqual(len(family.held_out[kind]), max(1, round(len(templates) / 5)), (family.name, kind))
                self.assertEqual(len(family.known[kind]) + len(family.held_out[kind]), len(templates))

    def test_a_fifth_of_every_template_s_wordings_is_held_out(self):
        for family in families().values():
            for templates in family.known.values():
                for template in templates:
                    count = len(template.known) + len(template.held_out)
                    self.assertEqual(len(template.held_out), round(count / 5))
                    self.assertFalse(set(template.known) & set(template.held_out))


    def test_only_training_asks_the_harder_kinds_oftener(self):
        for family in families().values():
            self.assertLessEqual(set(family.harder), set(family.kinds), family.name)
        shares = {}
        for role in ("train", "values"):
            names = [name for i in range(1000) for name in record_of("invoices", role, "harder", i)[0]["questions"]]
            shares[role] = sum(name.startswith(families()["invoices"].harder) for name in names) / len(names)
        self.assertGreater(shares["train"], 1.3 * shares["values"])   # 4/13 against 2/11, five deviations apart


class Records(unittest.TestCase):
    def test_the_same_key_gives_the_same_record(self):
        for family in families():
            first, second = (record_of(family, "train", "again", 7) for _ in range(2))
            self.assertEqual(str(first), str(second), family)

    def test_every_answer_is_an_option_of_its_question(self):
        for role in core.ROLES:
            for family, request, answers in samples(role):
                self.assertEqual(list(request["questions"]), list(answers))
                for name, question in request["questions"].items():
                    self.assertIn(answers[name], options(question), (family, role, question))

    def test_noul_answers_are_balanced_in_every_family(self):
        # 600 records a family give at least 300 questions with that type: five deviations of a fair coin are 0.145.
        for family in families():
            given = [answer for i in range(600) for answer in record_of(family, "train", "balance", i)[1].values()
                     if isinstance(answer, bool)]
            if len(given) >= 300:
                self.assertAlmostEqual(sum(given) / len(given), 0.5, delta=0.145, msg=family)

    def test_dates_that_are_compared_lie_two_months_apart(self):
        for i in range(200):
            scene = families()["dates"].scene(core.Draw("train", "apart", i))
            dates = sorted([*scene.events.values(), scene.today])
            self.assertTrue(all((after - before).days >= 60 for before, after in zip(dates, dates[1:])), dates)

    def test_held_out_numbers_are_a_fifth_of_all(self):
        share = sum(map(core.number_is_held_out, range(100_000))) / 100_000
        self.assertAlmostEqual(share, 0.2, delta=0.01)

    def test_pools_that_share_values_share_what_is_held_out(self):
        letters = [f"value {i}" for i in range(100)]
        first, second = core.Pool("a", letters), core.Pool("b", reversed(letters))
        self.assertEqual(set(first.held_out), set(second.held_out))
        self.assertEqual(len(first.held_out), 20)

    def test_the_program_answers_a_record_of_every_family(self):
        requests = [without_arrays(record_of(family, "values", "program", 0)[0]) for family in families()
                    if family not in MEDIA]
        with tempfile.TemporaryDirectory() as folder:
            lines = pathlib.Path(folder) / "requests.jsonl"
            lines.write_text("".join(json.dumps(request) + "\n" for request in requests))
            command = [TREBLE, "answer", "--model", PROJECT / "tests/data/micro/release", "--format", "json", lines]
            answered = subprocess.run(command, check=True, capture_output=True, text=True, timeout=300)
        self.assertEqual(len(answered.stdout.splitlines()), len(requests))


class Evaluation(unittest.TestCase):
    def test_files_hold_labelled_records_of_every_family_and_are_small(self):
        total = 0
        for name in core.HELD_OUT_ROLES + ("calibration", "selection"):
            text = (EVAL / f"{name}.jsonl").read_text()
            total += len(text.encode())
            records = [json.loads(line) for line in text.splitlines()]
            self.assertEqual({record["family"] for record in records}, set(families()), name)
            for record in records:
                self.assertEqual(record["set"], name)
                for question, answer in record["answers"].items():
                    self.assertIn(answer, options(record["request"]["questions"][question]))
        self.assertLessEqual(total, 2_000_000)

    def test_records_are_those_that_the_generators_make_here(self):
        # A draw that depended on the process would make others. Pictures are left out: files depend on the encoder.
        families_of_text = [family for family in families() if family not in MEDIA]
        for name in core.HELD_OUT_ROLES + ("calibration", "selection"):
            records = [json.loads(line) for line in (EVAL / f"{name}.jsonl").read_text().splitlines()]
            text = [record for record in records if record["family"] in families_of_text]
            for i, record in enumerate(text[:2 * len(families_of_text)]):
                family = families_of_text[i % len(families_of_text)]
                request, answers = record_of(family, name, make_eval.SEED, i // len(families_of_text), 0)
                made = json.loads(json.dumps({"request": request, "answers": answers}))
                self.assertEqual({key: record[key] for key in made}, made, (name, family))

    def test_no_record_stands_in_two_files_or_twice_in_one(self):
        lines = [json.dumps(json.loads(line)["request"]) for file in EVAL.glob("*.jsonl")
                 for line in file.read_text().splitlines()]
        self.assertEqual(len(lines), len(set(lines)))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
