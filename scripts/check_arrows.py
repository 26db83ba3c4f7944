"""Fails where the code points at a folder that it may not know: python3 scripts/check_arrows.py [ROOT]

The allowed arrows are the rows "| `src/NAME` | what it is | folders it may depend on |" of ARCHITECTURE.md; there is no
second table. An arrow also allows what its target may depend on; src/base and include/treble are open to all. Apps see
the public API and the single headers of ENTRY_HEADERS. What is checked:

  - the arrows make no cycle, and every folder of src/ and apps/ has its row;
  - the DEPENDS of each src/*/CMakeLists.txt, which the build obeys, stay within the arrows;
  - shipped code in src/ includes only its own folder, base and its DEPENDS; in apps/, public headers and its entry
    headers; in include/treble/, other public headers and the standard library;
  - only engine, the quantizer and tests name a backend, and src/model has no #if;
  - only tests include test support (testing/ folders).

Tests (*_test.cpp, testing/) may include any folder: their CMake target says what they link.
"""

import re
import sys
from pathlib import Path

ENTRY_HEADERS = {
    "apps/cli": {"checkpoint/inspect.h", "engine/bench.h", "engine/fit.h", "eval/eval.h", "quantize/quantize.h"},
}
BACKENDS = {"cpu", "cuda"}
MAY_NAME_BACKENDS = {"src/engine", "apps/quantize"}
OPEN_TO_ALL = "base"
SOURCE_SUFFIXES = {".h", ".cpp", ".cu", ".cuh"}

ARROW_ROW = re.compile(r"^\|\s*`?((?:src|apps)/\w+)/?`?\s*\|.*\|([^|]*)\|\s*$")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
CONDITIONAL = re.compile(r"^\s*#\s*(?:if|ifdef|ifndef|elif)\b")
DEPENDS = re.compile(r"treble_folder\s*\(\s*(\w+)([^)]*)\)")
KEYWORDS = {"SOURCES", "TESTS", "DEPENDS", "LIBRARIES", "TEST_DEPENDS"}


def read_arrows(text):
    """{"src/record": ["text", ...], ...} of ARCHITECTURE.md; apps have their row, but no folders."""
    arrows = {}
    for line in text.splitlines():
        match = ARROW_ROW.match(line)
        if match:
            names = [name.strip().strip("`") for name in match[2].split(",")] if match[1].startswith("src/") else []
            arrows[match[1]] = [name for name in names if name]
    return arrows


def reachable(arrows, folder):
    """Folders of src/ that `folder` may depend on, itself included."""
    seen, open_folders = {folder, OPEN_TO_ALL}, [folder]
    while open_folders:
        for target in arrows.get(f"src/{open_folders.pop()}", []):
            if target not in seen:
                seen.add(target)
                open_folders.append(target)
    return seen


def find_cycle(arrows):
    """A list of folders each of which points at the next, the first being the last; or None."""
    done = set()

    def walk(folder, path):
        if folder in path:
            return path[path.index(folder):] + [folder]
        if folder in done:
            return None
        for target in arrows.get(f"src/{folder}", []):
            cycle = walk(target, path + [folder])
            if cycle:
                return cycle
        done.add(folder)
        return None

    folders = [name.removeprefix("src/") for name in arrows if name.startswith("src/")]
    return next(filter(None, (walk(folder, []) for folder in folders)), None)


def read_depends(cmake):
    """{folder: [DEPENDS]} of the treble_folder() calls in one CMakeLists.txt."""
    depends = {}
    for name, arguments in DEPENDS.findall(re.sub(r"#.*", "", cmake)):
        keyword, found = None, []
        for word in arguments.split():
            if word in KEYWORDS:
                keyword = word
            elif keyword == "DEPENDS":
                found.append(word)
        depends[name] = found
    return depends


def is_test(path):
    return path.stem.endswith("_test") or "testing" in path.parts


class Checker:
    def __init__(self, root):
        self.root = root
        self.problems = []
        self.folders = {path.name for path in (root / "src").iterdir() if path.is_dir()}
        self.arrows = read_arrows((root / "ARCHITECTURE.md").read_text(encoding="utf-8"))
        self.depends = {}

    def report(self, where, problem):
        self.problems.append(f"{where}: {problem}")

    def check(self):
        """Problems as lines of text, and the number of includes that were looked at."""
        self.check_table()
        self.check_cmake()
        count = sum(self.check_file(path) for top in ("include", "src", "apps")
                    for path in sorted((self.root / top).rglob("*")) if path.suffix in SOURCE_SUFFIXES)
        return self.problems, count

    def check_table(self):
        cycle = find_cycle(self.arrows)
        if cycle:
            self.report("ARCHITECTURE.md", f"the arrows make a cycle: {' → '.join(cycle)}")
        for top in ("src", "apps"):
            for path in sorted((self.root / top).glob("*/")):
                if path.is_dir() and f"{top}/{path.name}" not in self.arrows:
                    self.report("ARCHITECTURE.md", f"has no row for {top}/{path.name}")

    def check_cmake(self):
        for folder in sorted(self.folders):
            path = self.root / "src" / folder / "CMakeLists.txt"
            declared = read_depends(path.read_text(encoding="utf-8")) if path.exists() else {}
            if folder not in declared:
                self.report(path.relative_to(self.root), f"has no treble_folder({folder} ...)")
            self.depends[folder] = declared.get(folder, [])
            for target in self.depends[folder]:
                if target not in reachable(self.arrows, folder):
                    self.report(path.relative_to(self.root), f"DEPENDS {target}: ARCHITECTURE.md has no such arrow")

    def check_file(self, absolute):
        path = absolute.relative_to(self.root)
        count = 0
        for number, line in enumerate(absolute.read_text(encoding="utf-8").splitlines(), 1):
            where = f"{path}:{number}"
            match = INCLUDE.match(line)
            if match:
                count += 1
                if not is_test(path):
                    self.check_include(where, path, match[1] == "<", match[2])
            elif CONDITIONAL.match(line) and path.parts[:2] == ("src", "model") and not is_test(path):
                self.report(where, "the model is the same code for every build: no #if in src/model")
        return count

    def check_include(self, where, path, angled, header):
        target, _, rest = header.partition("/")
        if ".." in header.split("/"):
            self.report(where, f'"{header}": name the folder, no ".."')
        elif path.parts[0] == "include":
            if not (header.startswith("treble/") or (angled and rest == "" and "." not in header)):
                self.report(where, f"{header}: a public header includes public and standard headers only")
        elif target == "treble":
            return
        elif target in self.folders or not angled:
            self.check_inner(where, path, header)

    def check_inner(self, where, path, header):
        """An include of a header that is ours but not public."""
        target = header.partition("/")[0]
        top, name = path.parts[:2]
        owner = f"{top}/{name}"
        own = target == name or (self.root / path.parent / header).exists()
        if top == "apps":
            allowed = own or header in ENTRY_HEADERS.get(owner, set())
        else:
            allowed = target in {name, OPEN_TO_ALL, *self.depends[name]}
        if "testing" in header.split("/"):
            self.report(where, f'"{header}" is test support, included by code that ships')
        if not allowed:
            self.report(where, f'includes "{header}", which {owner} may not know; {self.allowed_text(owner)}')
        elif target in BACKENDS and not own and owner not in MAY_NAME_BACKENDS:
            self.report(where, f'includes "{header}": only {", ".join(sorted(MAY_NAME_BACKENDS))} may name a backend')

    def allowed_text(self, owner):
        top, name = owner.split("/")
        names = ENTRY_HEADERS.get(owner, set()) if top == "apps" else {OPEN_TO_ALL, *self.depends[name]} - {name}
        return f"it may include {', '.join(['treble/', *sorted(names)])}"


def main(arguments):
    root = Path(arguments[0]) if arguments else Path(__file__).resolve().parent.parent
    problems, count = Checker(root).check()
    for problem in problems:
        print(problem, file=sys.stderr)
    if problems or count == 0:
        sys.exit(f"arrows: {len(problems)} problems in {count} includes")
    print(f"arrows: {count} includes are in order")


if __name__ == "__main__":
    main(sys.argv[1:])
