"""treble_passes against the goldens: python3 passes_test.py PROGRAM DATA_FOLDER"""

import array
import itertools
import json
import math
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PASSES = Path(sys.argv[1]).resolve()
MICRO = Path(sys.argv[2]).resolve() / "micro"
NAMES = ("plain_string", "three_types")
LAYERS = 4


def read(path):
    """Name -> (shape, values) of a safetensors file of f32 and i32 tensors."""
    data = path.read_bytes()
    begin = 8 + struct.unpack_from("<Q", data)[0]
    tensors = {}
    for name, entry in json.loads(data[8:begin]).items():
        if name == "__metadata__":
            continue
        values = array.array("f" if entry["dtype"] == "F32" else "i")
        values.frombytes(data[begin + entry["data_offsets"][0]:begin + entry["data_offsets"][1]])
        tensors[name] = (entry["shape"], values)
    return tensors


class Passes(unittest.TestCase):
    def run_passes(self, *options):
        with tempfile.TemporaryDirectory() as name:
            requests, out = Path(name) / "requests.jsonl", Path(name) / "out.safetensors"
            known = json.loads((MICRO / "requests.json").read_text(encoding="utf-8"))
            requests.write_text("".join(json.dumps(known[name]) + "\n" for name in NAMES), encoding="utf-8")
            subprocess.run([PASSES, *options, MICRO / "release", out, requests], check=True, capture_output=True)
            return read(out)

    def test_logits_are_the_original_stacks(self):
        expected = json.loads((MICRO / "expected_fp32.json").read_text(encoding="utf-8"))
        tensors = self.run_passes("--repeats", "2")
        for record, name in enumerate(NAMES):
            logits = [x for question in expected[name]["logits"].values() for x in question]
            shape, values = tensors[f"{record}.logits"]
            self.assertEqual(shape, [len(logits)])
            for one, other in zip(values, logits):
                self.assertAlmostEqual(one, other, delta=5e-5)
            sizes = [len(question) for question in expected[name]["logits"].values()]
            self.assertEqual(list(tensors[f"{record}.cu_options"][1]), [0, *itertools.accumulate(sizes)])
            self.assertEqual(list(tensors[f"{record}.repeat_error"][1]), [0])
            self.assertNotIn(f"{record}.embed", tensors)

    def test_weights_are_quantised_where_that_is_asked_for(self):
        plain, quantised = self.run_passes(), self.run_passes("--weights", "int8-convrot")
        error = math.dist(plain["0.logits"][1], quantised["0.logits"][1])
        self.assertGreater(error, 1e-4)
        self.assertLess(error, 0.5)

    def test_hidden_states_of_a_packed_pass_are_each_records_own(self):
        alone, packed = self.run_passes("--hidden"), self.run_passes("--hidden", "--records-per-pass", "2")
        for record in range(len(NAMES)):
            for stage in ("embed", *(f"layer{i:02}.out" for i in range(LAYERS)), "hidden"):
                name = f"{record}.{stage}"
                self.assertEqual(alone[name][0], [alone[f"{record}.input_ids"][0][0], 256], name)
                error = math.dist(alone[name][1], packed[name][1]) / math.hypot(*alone[name][1])
                self.assertLess(error, 2e-5, name)  # the goldens' limit


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
