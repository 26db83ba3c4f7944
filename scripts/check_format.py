"""Fails on files that are not formatted: python3 scripts/check_format.py [--fix]

C++ and CUDA follow .clang-format, which leaves a line longer than 120 characters only where it cannot be broken. Every
text file of ours ends with one newline, holds no tab and no blank at a line's end; lines of scripts have at most 120
characters (more where WIDE says so); a to-do in a source names its issue: "TODO(#12)". With --fix, clang-format
rewrites the files that differ.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

CLANG_FORMAT_MAJOR = 14  # Debian 12's; other versions break lines elsewhere
MAX_LINE = 120
WIDE = {"python/train/": 150}  # tables of sentences, one template a line

FORMATTED = {".h", ".cpp", ".cu", ".cuh"}
SCRIPTS = {".py", ".sh", ".cmake", ".in", ""}
SOURCES = FORMATTED | SCRIPTS
TEXTS = SOURCES | {".md", ".json", ".txt"}
NOT_OURS = ("tests/data/", "bench/results/", "models/tiny/tokenizer.json", "LICENSE")  # the last but one is generated
TO_DO_WITHOUT_ISSUE = re.compile(r"\bTO[D]O\b(?!\(#\d+\))")


def project_files():
    """Paths of what is, or could be, under version control."""
    listing = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                             check=True, capture_output=True).stdout.decode()
    return [Path(name) for name in sorted(set(filter(None, listing.split("\0"))))
            if not name.startswith(NOT_OURS) and Path(name).is_file()]


def text_problems(path, text):
    """Yields (line number, problem)."""
    if text and (not text.endswith("\n") or text.endswith("\n\n")):
        yield text.count("\n"), "does not end with one newline"
    allowed = next((length for folder, length in WIDE.items() if str(path).startswith(folder)), MAX_LINE)
    for number, line in enumerate(text.split("\n"), 1):
        if "\t" in line:
            yield number, "has a tab"
        if line != line.rstrip():
            yield number, "ends with blanks"
        if path.suffix in SCRIPTS and len(line) > allowed:
            yield number, f"has {len(line)} characters, {allowed} are allowed"
        if path.suffix in SOURCES and TO_DO_WITHOUT_ISSUE.search(line):
            yield number, "has a to-do without an issue number"


def clang_format():
    """The program's name. Exits if the version that the project uses is not there."""
    for name in (f"clang-format-{CLANG_FORMAT_MAJOR}", "clang-format"):
        if shutil.which(name):
            version = subprocess.run([name, "--version"], check=True, capture_output=True, text=True).stdout
            if re.search(rf"version {CLANG_FORMAT_MAJOR}\.", version):
                return name
    sys.exit(f"format: clang-format {CLANG_FORMAT_MAJOR} is missing; apt-get install clang-format-{CLANG_FORMAT_MAJOR}")


def main(arguments):
    fix = arguments == ["--fix"]
    if arguments and not fix:
        sys.exit(__doc__)
    files = [path for path in project_files() if path.suffix in TEXTS]
    if not files:
        sys.exit("format: found no files to check")
    formatted = [str(path) for path in files if path.suffix in FORMATTED]
    mode = ["-i"] if fix else ["--dry-run", "--Werror", "--ferror-limit=1"]
    failed = bool(formatted) and subprocess.run([clang_format(), "--style=file", *mode, *formatted]).returncode != 0
    for path in files:
        for number, problem in text_problems(path, path.read_text(encoding="utf-8")):
            print(f"{path}:{number}: {problem}", file=sys.stderr)
            failed = True
    if failed:
        sys.exit("format: python3 scripts/check_format.py --fix repairs what clang-format reports")
    print(f"format: {len(files)} files are in order")


if __name__ == "__main__":
    main(sys.argv[1:])
