#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""There are few ways to a plan. The table has every function of a header of planner or pipeline that returns one,
or a struct that holds one; what is not in it is a fault, as is a row without a function, and more than six rows are.
"""

import re
import subprocess
import sys

MOST = 6
# Header, function -> what it is for.
WAYS = {
    ("planner/schedule/MakePlan.h", "makePlan"): "of a DAG on a machine: the one road",
    ("planner/schedule/TargetSearch.h", "searchPlan"): "of a DAG as it is: a step of makePlan()",
    ("planner/schedule/list/Schedulers.h", "schedule"): "of an order, or of a scheduler's",
    ("planner/plan/Plan.h", "parsePlan"): "of a text",
    ("pipeline/plan/ProgramPlan.h", "makePlan"): "of a program for its target, stored or made",
    ("pipeline/plan/ProgramPlan.h", "readPlan"): "of a file, after its transforms",
}
# Structs that hold a plan and are given for it; Prepared and others hold one beside what they are for.
HELD = r"(?:\w+::)*(?:Plan|TargetPlan|ChangedPlan)"
RETURNS = re.compile(
    rf"^[ ]*(?:static |inline |virtual |friend )*(?:\w+::)*(?:(?:Result|std::(?:optional|vector|shared_ptr|unique_ptr|pair))<[^;(){{}}]*?)?"
    rf"\b{HELD}\b[>\s,\w:]*?\s+(\w+)\(", re.MULTILINE)

found = {}
listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "planner/*.h", "pipeline/*.h"], check=True,
                        text=True, capture_output=True).stdout.split()
for path in listed:
    try:
        with open(path) as file:
            text = file.read()
    except FileNotFoundError:
        continue
    text = re.sub(r"//[^\n]*", "", text)
    for match in RETURNS.finditer(text):
        found.setdefault((path, match[1]), text.count("\n", 0, match.start(1)) + 1)
faults = [f"{path}:{line}: {name}() is one more way to a plan: see the table of check_plans.py"
          for (path, name), line in found.items() if (path, name) not in WAYS]
faults += [f"{path} has no {name}(): take its row out of check_plans.py"
           for path, name in WAYS if (path, name) not in found]
if len(WAYS) > MOST:
    faults.append(f"check_plans.py: {len(WAYS)} ways to a plan; {MOST} are the most")
print("\n".join(faults) if faults else f"{len(found)} ways to a plan")
sys.exit(bool(faults))
