"""What the tests of the program share. Each runs as: python3 answer_test.py PROGRAM DATA_FOLDER [unittest options]"""

import fcntl
import json
import os
import pty
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import unittest
from pathlib import Path

TREBLE = Path(sys.argv[1]).resolve()
MICRO = Path(sys.argv[2]).resolve() / "micro"
RELEASE = MICRO / "release"
INT8_RELEASE = MICRO.parent / "micro-int8" / "release"
MEDIA = MICRO.parent / "media"
REQUESTS = json.loads((MICRO / "requests.json").read_text(encoding="utf-8"))
EXPECTED = json.loads((MICRO / "expected_fp32.json").read_text(encoding="utf-8"))

# Requests are written to folders of the tests' own, so their pictures need whole paths.
for _request in REQUESTS.values():
    for _kind in ("images", "videos"):
        if _kind in _request:
            _request[_kind] = [str(MICRO / path) for path in _request[_kind]]
SMALL = REQUESTS["plain_string"]

TIME_LIMIT_S = 300  # for the slowest sanitizer on a busy machine


def main():
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])


def with_limit(request):
    """The request alone and the options that stand for its "_max_length"."""
    request = dict(request)
    limit = request.pop("_max_length", None)
    return request, ["--max-tokens", str(limit), "--truncate-state"] if limit else []


def dump(value):
    return json.dumps(value, ensure_ascii=False)


def run_on_terminal(*arguments, stream, columns=80):
    """Runs the program with "stdout" or "stderr" on a terminal: what it shows there, its other output, its status."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    other = "stderr" if stream == "stdout" else "stdout"
    process = subprocess.Popen([TREBLE, *map(str, arguments)], stdin=subprocess.DEVNULL,
                               **{stream: theirs, other: subprocess.PIPE})
    os.close(theirs)
    shown = b""
    while True:
        try:
            piece = os.read(ours, 4096)
        except OSError:  # the last writer is gone
            break
        if not piece:
            break
        shown += piece
    os.close(ours)
    rest = getattr(process, other).read()
    getattr(process, other).close()
    return shown.decode().replace("\r\n", "\n"), rest.decode(), process.wait(TIME_LIMIT_S)


class ProgramTest(unittest.TestCase):
    maxDiff = 2000

    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="treble_cli_"))
        self.addCleanup(shutil.rmtree, self.folder)

    def file(self, name, text):
        """A new file in the test's folder; other values than text are written as JSON."""
        path = self.folder / name
        path.write_bytes(text if isinstance(text, bytes) else (text if isinstance(text, str) else dump(text)).encode())
        return path

    def run_treble(self, *arguments, stdin=None, status=0, **options):
        """Runs the program and checks its exit status; the result's stdout and stderr are text."""
        result = subprocess.run([TREBLE, *map(str, arguments)], input=None if stdin is None else stdin.encode(),
                                stdin=subprocess.DEVNULL if stdin is None else None, capture_output=True,
                                timeout=TIME_LIMIT_S, check=False, **options)
        result.stdout, result.stderr = result.stdout.decode(), result.stderr.decode()
        self.assertEqual(result.returncode, status,
                         f"{arguments}\nstdout: {result.stdout[:500]}\nstderr: {result.stderr}")
        return result

    def check_refused(self, arguments, status, *words, stdin=None, **options):
        """The program prints no answer and one line on stderr that holds the words."""
        result = self.run_treble(*arguments, stdin=stdin, status=status, **options)
        self.assertEqual(result.stdout, "")
        self.assertRegex(result.stderr, r"\Atreble: [^\n]+\n\Z")
        for word in words:
            self.assertIn(word, result.stderr)

    def copy_release(self, without=(), **replaced):
        """A copy of the small release. Keyword: the text of a file, its name with "__" for "."."""
        folder = Path(tempfile.mkdtemp(prefix="release_", dir=self.folder))
        texts = {name.replace("__", "."): text for name, text in replaced.items()}
        for path in RELEASE.iterdir():
            if path.name not in without and path.name not in texts:
                (folder / path.name).symlink_to(path)
        for name, text in texts.items():
            (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        return folder

    def text_release(self):
        """The small release without its vision tower."""
        config = json.loads((RELEASE / "config.json").read_text())
        del config["vision_config"]
        return self.copy_release(config__json=dump(config))

    def check_close(self, actual, expected, tolerance, path="response"):
        """Equal but for numbers, which may differ by the tolerance; the order of members counts."""
        if isinstance(expected, dict):
            self.assertIsInstance(actual, dict, path)
            self.assertEqual(list(actual), list(expected), path)
            for key in expected:
                self.check_close(actual[key], expected[key], tolerance, f"{path}.{key}")
        elif isinstance(expected, list):
            self.assertEqual(len(actual), len(expected), path)
            for index, (one, other) in enumerate(zip(actual, expected)):
                self.check_close(one, other, tolerance, f"{path}[{index}]")
        elif isinstance(expected, float):
            self.assertAlmostEqual(actual, expected, delta=tolerance, msg=path)
        else:
            self.assertEqual(actual, expected, path)


# One step of the last of 4 decimals.
ONE_STEP = 1.001e-4
