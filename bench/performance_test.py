"""The curves of bench/performance.py: python3 bench/performance_test.py"""

import argparse
import json
import tempfile
import unittest
import xml.dom.minidom
from pathlib import Path

import performance


def row(tokens, batch, ms):
    figure = {"median": ms, "p10": ms, "p90": ms}
    return {"name": f"{tokens} tokens x {batch}", "batch": batch, "total_tokens": tokens * batch, "total_ms": figure,
            "backbone_ms": figure, "head_ms": figure, "decisions_per_s": 8e3 * batch / ms, "tflops": 100.0}


def result(rows, batches, **report):
    def one(each):
        return {"arguments": [], "report": {"rows": [each], **report}}

    return {"machine": ["a GPU"], "commit": "abc", "version": "treble 0",
            "lengths": [one(each) for each in rows], "batches": [one(each) for each in batches]}


class Performance(unittest.TestCase):
    def draw(self, results):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            (root / "results").mkdir()
            for name, each in results.items():
                (root / "results" / f"{name}.json").write_text(json.dumps(each))
            performance.draw(argparse.Namespace(results=root / "results", docs=root))
            pictures = {path.name: path.read_text() for path in (root / "performance").iterdir()}
            return (root / "performance.md").read_text(), pictures

    def test_each_result_is_a_line_of_each_plot_and_a_table(self):
        rows, batches = [row(298, 1, 28.0), row(1502, 1, 114.0)], [row(1502, 1, 114.0), row(1502, 16, 1800.0)]
        batches[1]["against_batch_1"] = {"decisions": 128, "differing": 1}
        gpu = result(rows, batches, peak_device_bytes=48 << 30, pass_tokens=2304)
        page, pictures = self.draw({"one": gpu, "a <b> & c": result(rows, batches)})
        self.assertEqual(sorted(pictures), ["decisions.svg", "latency.svg", "memory.svg"])
        for name, svg in pictures.items():
            lines = xml.dom.minidom.parseString(svg).getElementsByTagName("polyline")
            self.assertEqual(len(lines), 1 if name == "memory.svg" else 2)
            self.assertIn(f"](performance/{name})", page)
        self.assertIn("| 298 tokens x 1 | 28.0 |", page)
        self.assertIn("| 1 of 128 |", page)

    def test_one_figure_alone_is_drawn_too(self):
        page, pictures = self.draw({"cpu": result([row(298, 1, 500.0)], [])})
        self.assertEqual(list(pictures), ["latency.svg"])
        xml.dom.minidom.parseString(pictures["latency.svg"])
        self.assertIn("## cpu", page)

    def test_ticks_are_round_and_inside(self):
        self.assertEqual(performance.ticks(20, 2000, True), [20, 50, 100, 200, 500, 1000, 2000])
        self.assertEqual(performance.ticks(0, 10, False), [0, 2, 4, 6, 8, 10])


if __name__ == "__main__":
    unittest.main()
