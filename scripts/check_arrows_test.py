"""The arrow check finds what it promises to find: python3 scripts/check_arrows_test.py"""

import tempfile
import unittest
from pathlib import Path

import check_arrows

ARCHITECTURE = """
| folder | what it is | depends on |
|---|---|---|
| `include/treble` | the public API | |
| `src/base` | files | |
| `src/text` | the tokenizer: text → ids | base |
| `src/ops` | operations | base |
| `src/cpu` | operations in C++ | ops |
| `src/model` | the model | ops |
| `src/engine` | the whole | text, model, cpu |
| `apps/cli` | the program | include/treble and entry headers |
"""

GOOD = {
    "ARCHITECTURE.md": ARCHITECTURE,
    "include/treble/error.h": "#include <string>\n",
    "include/treble/engine.h": "#include <treble/error.h>\n#include <vector>\n",
    "src/base/CMakeLists.txt": "treble_folder(base SOURCES file.cpp)",
    "src/base/file.cpp": '#include <treble/error.h>\n#include <fmt/core.h>\n#include "base/file.h"\n',
    "src/base/file.h": "#pragma once\n",
    "src/text/CMakeLists.txt": "treble_folder(text SOURCES tokenizer.cpp DEPENDS base)",
    "src/text/tokenizer.cpp": '#include "text/tokenizer.h"\n#include "base/file.h"\n',
    "src/text/tokenizer.h": "#pragma once\n",
    "src/ops/CMakeLists.txt": "treble_folder(ops SOURCES ops.cpp DEPENDS base)",
    "src/ops/ops.h": "#pragma once\n",
    "src/cpu/CMakeLists.txt": "treble_folder(cpu SOURCES cpu_ops.cpp DEPENDS ops base)",
    "src/cpu/cpu_ops.h": '#include "ops/ops.h"\n',
    "src/model/CMakeLists.txt": "treble_folder(model SOURCES backbone.cpp DEPENDS ops base)",
    "src/model/backbone.cpp": '#include "ops/ops.h"\n',
    "src/model/backbone_test.cpp": '#include "cpu/cpu_ops.h"\n#include "base/testing/files.h"\n',
    "src/base/testing/files.h": "#pragma once\n",
    "src/engine/CMakeLists.txt": "treble_folder(engine SOURCES engine.cpp DEPENDS text model cpu ops base)",
    "src/engine/engine.cpp": '#include "cpu/cpu_ops.h"\n#include "model/backbone.h"\n',
    "apps/cli/main.cpp": '#include <treble/engine.h>\n#include "checkpoint/inspect.h"\n#include "cli/options.h"\n',
}


def problems(**changes):
    """What the check says about the good tree with some files replaced. Names use "__" for "/" and "_dot_" for "."."""
    files = GOOD | {name.replace("__", "/").replace("_dot_", "."): text for name, text in changes.items()}
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return check_arrows.Checker(Path(folder)).check()[0]


class CheckArrows(unittest.TestCase):
    def assert_one(self, found, *words):
        self.assertEqual(len(found), 1, found)
        for word in words:
            self.assertIn(word, found[0])

    def test_a_good_tree_has_no_problem(self):
        self.assertEqual(problems(), [])

    def test_an_include_against_the_arrows(self):
        self.assert_one(problems(src__text__tokenizer_dot_cpp='\n#include "model/backbone.h"\n'),
                        "src/text/tokenizer.cpp:2", "model/backbone.h")

    def test_an_include_that_angle_brackets_hide(self):
        self.assert_one(problems(src__text__tokenizer_dot_cpp="#include <model/backbone.h>\n"), "model/backbone.h")

    def test_an_include_that_climbs_out_of_its_folder(self):
        self.assert_one(problems(src__text__tokenizer_dot_cpp='#include "../model/backbone.h"\n'), "..")

    def test_an_include_that_the_arrows_allow_but_the_target_does_not_declare(self):
        self.assert_one(problems(src__engine__CMakeLists_dot_txt="treble_folder(engine DEPENDS cpu base)"),
                        "model/backbone.h")

    def test_a_declared_dependency_without_an_arrow(self):
        self.assert_one(problems(src__text__CMakeLists_dot_txt="treble_folder(text DEPENDS base ops)"), "DEPENDS ops")

    def test_a_cycle(self):
        cyclic = ARCHITECTURE.replace("operations | base", "operations | model")
        self.assert_one(problems(ARCHITECTURE_dot_md=cyclic), "cycle", "ops → model → ops")

    def test_a_folder_without_a_row(self):
        self.assert_one(problems(src__media__CMakeLists_dot_txt="treble_folder(media SOURCES a.cpp)"), "src/media")

    def test_a_folder_without_a_target(self):
        self.assert_one(problems(src__text__CMakeLists_dot_txt="# empty", src__text__tokenizer_dot_cpp=""),
                        "treble_folder(text")

    def test_a_backend_named_where_an_arrow_was_drawn_to_it(self):
        drawn = ARCHITECTURE.replace("the model | ops", "the model | cpu")
        self.assert_one(problems(ARCHITECTURE_dot_md=drawn, src__model__backbone_dot_cpp='#include "cpu/cpu_ops.h"\n',
                                 src__model__CMakeLists_dot_txt="treble_folder(model DEPENDS cpu)"), "backend")

    def test_an_app_that_reaches_inside(self):
        self.assert_one(problems(apps__cli__main_dot_cpp='#include "engine/pack.h"\n'), "engine/pack.h")

    def test_a_public_header_that_needs_a_library(self):
        self.assert_one(problems(include__treble__error_dot_h="#include <fmt/core.h>\n"), "fmt/core.h")
        self.assert_one(problems(include__treble__error_dot_h='#include "base/file.h"\n'), "base/file.h")

    def test_shipped_code_that_includes_test_support(self):
        self.assert_one(problems(src__text__tokenizer_dot_cpp='#include "base/testing/files.h"\n'), "test support")

    def test_a_condition_in_the_model(self):
        self.assert_one(problems(src__model__backbone_dot_cpp="#ifdef TREBLE_CUDA\n#endif\n"), "#if")


if __name__ == "__main__":
    unittest.main()
