# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads `db export` and writes it with PAIRS ("bucket=on,") before the configuration of each decision.

Usage: decide.py PAIRS < export > changed
"""

import json
import sys

decided = 0
is_decision = False
for line in sys.stdin:
    record = json.loads(line)
    if "configuration" in record:
        if is_decision:
            record["configuration"] = sys.argv[1] + record["configuration"]
            decided += 1
    else:
        is_decision = line.count("; decided") == 1
    print(json.dumps(record))
if decided == 0:
    sys.exit("there is no decision")
