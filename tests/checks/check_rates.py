#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Each rate of a machine that is built in, or that examples/published has, has its source, or is an assumption with a range.

The numbers of a rate's "from" must stand in its "quote", but for powers of ten, 2 and 8 (two edges of a clock,
two directions of a link, the bits of a byte); what "from" comes to must be the rate. All figures of a machine
with rates must have one. Machines from before have a sentence for each part instead; no other may lack rates.
"""
import json
import math
import pathlib
import re
import sys

FIELDS = {"device": ("memory_bytes", "memory_bytes_per_second", "sm_count", "flops_per_second",
                     "bf16_flops_per_second", "tf32_flops_per_second"),
          "link": ("bytes_per_second",), "host_link": ("bytes_per_second",), "nic": ("count", "bytes_per_second")}
OLDER = {"dgx-a100", "dgx-a100-x2", "dgx-b200", "dgx-b200-x2", "dgx-h100", "dgx-h100-x2", "dgx-h200", "dgx-h200-x2",
         "dgx-h200-x64", "pcie-l40s-4"}
NUMBER = r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?:e\d+)?"


def faults_of_rate(rate):
    if "assumed" in rate:
        if not rate.get("low", 0) < rate.get("high", 0) or len(rate["assumed"]) < 20:
            yield "is assumed without a range or a reason"
        return
    if not re.match(r"https://\S+( and https://\S+)*$", rate.get("url", "")):
        yield "has no address of a source"
    if not re.fullmatch(r"[\d.e+*/() ]+", rate.get("from", "")):
        yield "has no arithmetic in \"from\""
        return
    quoted = {float(each.replace(",", "")) for each in re.findall(r"\d[\d,]*(?:\.\d+)?", rate.get("quote", ""))}
    for number in re.findall(NUMBER, rate["from"]):
        exempt = re.fullmatch(r"1e\d+|[128]", number)
        if not exempt and float(number) not in quoted:
            yield f"takes {number}, which its quote does not hold"
    if not math.isclose(eval(rate["from"]), rate["value"], rel_tol=1e-3):
        yield f"is {rate['value']}, and \"from\" comes to {eval(rate['from'])}"
    for end in ("low", "high"):
        if end in rate and rate[end] not in quoted:
            yield f"has a \"{end}\" that its quote does not hold"


def faults_of_machine(machine):
    rates = {rate["name"]: rate for rate in machine.get("rates", [])}
    for part, names in FIELDS.items():
        for name in names if part in machine else ():
            full = name if part == "device" else f"{part}_{name}"
            if full not in rates:
                yield f"{full} has no source"
    for name, rate in rates.items():
        for fault in faults_of_rate(rate):
            yield f"{name} {fault}"


def main(root):
    faults = []
    paths = [*pathlib.Path(root, "device/api/topologies").glob("*.json"),
             *pathlib.Path(root, "examples/published").glob("*.json")]
    for path in sorted(paths):
        if path.stem not in OLDER:
            faults += [f"{path.name}: {fault}" for fault in faults_of_machine(json.loads(path.read_text()))]
    # The check itself: a rate whose source is taken away, or says another number, is found.
    good = {"name": "x", "value": 2e9, "from": "2.0 * 1e9", "url": "https://a/b", "quote": "2.0 GB/s"}
    assert not list(faults_of_rate(good))
    for bad in ({**good, "url": ""}, {**good, "quote": "3 GB/s"}, {**good, "value": 3e9}, {**good, "from": ""},
                {"name": "x", "value": 1, "assumed": "nobody says what it is"}):
        assert list(faults_of_rate(bad)), bad
    print("\n".join(faults) or "each rate has its source")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
