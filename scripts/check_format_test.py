"""The format check finds what it promises to find: python3 scripts/check_format_test.py"""

import unittest
from pathlib import Path

import check_format


def problems(name, text):
    return [problem for _, problem in check_format.text_problems(Path(name), text)]


class CheckFormat(unittest.TestCase):
    def test_a_good_file_has_no_problem(self):
        self.assertEqual(problems("a.cpp", "int a;  // TODO(#12): rename\n"), [])
        self.assertEqual(problems("a.cpp", ""), [])

    def test_each_fault_is_found(self):
        self.assertEqual(problems("a.py", "a"), ["does not end with one newline"])
        self.assertEqual(problems("a.py", "a\n\n"), ["does not end with one newline"])
        self.assertEqual(problems("a.cpp", "\tint a;\n"), ["has a tab"])
        self.assertEqual(problems("a.md", "text \n"), ["ends with blanks"])
        self.assertEqual(problems("quickstart", "#" * 121 + "\n"), ["has 121 characters, 120 are allowed"])
        self.assertEqual(problems("a.cu", "// TO" "DO: later\n"), ["has a to-do without an issue number"])

    def test_prose_may_have_long_lines(self):
        self.assertEqual(problems("a.md", "x" * 500 + "\n"), [])


if __name__ == "__main__":
    unittest.main()
