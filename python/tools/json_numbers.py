"""Number tokens and what CPython prints for them: python3 json_numbers.py > tests/data/json_numbers.json"""

import json
import random
import struct

random.seed(7)
tokens = ["0", "-0", "7", "-12", "123456789012345678901234567890", "0.0", "-0.0", "-0e5", "0E-7", "1250.0", "1250.00",
          "2.50", "1E3", "1e+3", "1e15", "1e16", "1e17", "1e22", "1e23", "9007199254740993.0", "9999999999999998.0",
          "9999999999999999.0", "0.0001", "0.00009999999999999999", "1e-4", "1e-5", "1.5e-7", "1e-400", "-1e-400",
          "5e-324", "2.2250738585072014e-308", "1.7976931348623157e308", "-1.7976931348623157E+308",
          "1e-99999999999999999999", "0." + "0" * 400 + "1e401", "1" + "0" * 320 + "e-320", "0." + "0" * 400 + "1e50",
          "100000000000000000.5", "1.00000000000000011102230246251565404236316680908203125", "0.1",
          "0.30000000000000004", "8.41", "5e-5", "123e-2"]
for _ in range(60):
    tokens.append(repr(random.uniform(2.0 ** 53, 1e16)))                # more digits than a shortest form needs
for _ in range(60):
    tokens.append(f"{random.uniform(-1, 1) * 10 ** random.randint(-7, 18):.{random.randint(1, 9)}f}")
while len(tokens) < 330:                                                # any double
    value = struct.unpack("<d", random.getrandbits(64).to_bytes(8, "little"))[0]
    if abs(value) < float("inf"):
        tokens.append(f"{value:.{random.randint(3, 18)}e}")
print("[" + ",\n".join(json.dumps([token, json.dumps(json.loads(token))]) for token in tokens) + "]")
