"""models/tiny, the trained model that ships with the project, through the program."""

import json
import sys
from pathlib import Path

from program import ProgramTest, dump, main

DATA = Path(sys.argv[2]).resolve()
PROJECT = DATA.parent.parent
TINY = PROJECT / "models" / "tiny"
EXPECTED = [json.loads(line) for line in (DATA / "tiny" / "expected.jsonl").read_text().splitlines()]

# Of logits, between two fp32 stacks that add in different orders.
TOLERANCE = 5e-4


class TrebleTiny(ProgramTest):
    def example(self, name):
        response = json.loads(self.run_treble("answer", "--model", TINY, PROJECT / "examples" / f"{name}.json").stdout)
        return response["answers"]

    def test_logits_equal_the_original_stack_s(self):
        records = []
        for expected in EXPECTED:
            lines = (PROJECT / "data" / "eval" / expected["file"]).read_text(encoding="utf-8").splitlines()
            records.append(json.loads(lines[expected["line"]]))
        requests = self.file("requests.jsonl", "".join(dump(record["request"]) + "\n" for record in records))
        result = self.run_treble("answer", "--model", TINY, "--logits", "--format", "json", requests)
        answered = result.stdout.splitlines()
        self.assertEqual(len(answered), len(EXPECTED))
        for response, expected in zip(answered, EXPECTED):
            logits = list(json.loads(response)["x_logits"].values())
            self.check_close(logits, expected["logits"], TOLERANCE, f"{expected['file']}:{expected['line'] + 1}")

    def test_the_invoice_of_the_quick_start_is_answered_rightly(self):
        answers = self.example("invoice")
        self.assertLess(answers["over_limit"]["noul"], 0.5)
        self.assertEqual(answers["most_expensive"]["choice"], "office chair")
        self.assertEqual(answers["payment"]["choice"], "open")

    def test_the_message_of_the_quick_start_is_answered_rightly(self):
        answers = self.example("message")
        self.assertGreater(answers["refund"]["noul"], 0.5)
        self.assertEqual(answers["team"]["choice"], "billing")
        self.assertGreater(answers["urgency"]["score"], 1.5)

    def test_the_picture_of_the_quick_start_is_answered_rightly(self):
        answers = self.example("shapes")
        self.assertEqual(answers["background"]["choice"], "black")
        self.assertEqual(answers["count"]["choice"], "2")
        self.assertLess(answers["red_square"]["noul"], 0.5)

    def test_the_folder_is_small(self):
        sizes = [path.stat().st_size for path in TINY.iterdir()]
        self.assertLessEqual(max(sizes), 15 * 2**20)
        self.assertLessEqual(sum(sizes), 18e6)


if __name__ == "__main__":
    main()
