# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Usage: same-work.py BUFFERS.json TENSORS.json: plans of one program, written on buffers and on tensors."""
import collections
import json
import sys

plans = []
for path in sys.argv[1:]:
    with open(path, encoding="utf-8") as file:
        plans.append(json.load(file))
kinds = [collections.Counter(node["kind"] for node in plan["nodes"]) for plan in plans]
arenas = [max(plan["arena_bytes"]) for plan in plans]
print(kinds, arenas)
if kinds[1] - kinds[0] or arenas[1] > arenas[0]:
    sys.exit("the program on tensors has more work, or a larger arena")
