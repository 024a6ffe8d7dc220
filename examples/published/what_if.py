# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Answers what people ask about the steps: tokens a second by devices, batch, link and overlap.

predict.py draws the answers as docs/predicted.svg.
"""
import json

import picture
from predictions import POSITIONS, measured_us, planned, predict, rows

DECODING = {"id": "what-if", "kind": "decode", "weight_bytes": "2", "batch": "1", "machine": "a100-hybrid-cube-330w"}
MEASURED = {"Llama-2-7B": ("2", "3", "8", "9"), "Llama-2-70B": ("10", "11", "4")}
BATCHES, FACTORS = (1, 4, 16, 64), (0.125, 0.25, 0.5, 1, 2)


def decoded(tune, **changes):
    """Tokens a second of all users."""
    row = {**DECODING, **{name: str(value) for name, value in changes.items()}}
    return int(row["batch"]) * 1e6 / predict(tune, row)[0]


def trained(tune, row, change):
    """Tokens a second of a device when something changes, as planned and with one node after the other."""
    told = json.loads(planned(tune, row, "--json", "--what-if", change))["what_if"]
    tokens = int(row["batch"]) * POSITIONS[row["kind"]]
    return [tokens * 1e6 / told[name] for name in ("contended_replay_us", "contended_serial_replay_us")]


def by_link(tune, row, name, title, words):
    answers = [trained(tune, row, f"{name}={factor}x") for factor in FACTORS]
    lines = [(kind, [(factor, each[k]) for factor, each in zip(FACTORS, answers)])
             for k, kind in enumerate(("beside kernels", "one after the other"))]
    return picture.Chart(title, words, "tokens/s of a GPU", FACTORS, lines,
                         [("", [(1, 1e6 * int(row["batch"]) * POSITIONS[row["kind"]] / measured_us(row))])])


def answer(tune):
    known = {row["id"]: row for row in rows()}
    by_devices = {model: [(int(known[each]["devices"]), decoded(tune, model=model, devices=known[each]["devices"]))
                          for each in each_row] for model, each_row in MEASURED.items()}
    measured = [("", [(int(known[each]["devices"]), 1e6 / measured_us(known[each])) for each in each_row])
                for each_row in MEASURED.values()]
    by_batch = [(f"{devices} GPU{'s' if devices > 1 else ''}",
                 [(batch, decoded(tune, model="Llama-2-7B", devices=devices, batch=batch)) for batch in BATCHES])
                for devices in (1, 8)]
    return picture.draw([
        picture.Chart("Decoding for one user (circles: measured)", "GPUs", "tokens/s", (1, 2, 4, 8),
                      list(by_devices.items()), measured),
        picture.Chart("Decoding Llama-2-7B by batch", "users at once", "tokens/s of all", BATCHES, by_batch),
        by_link(tune, known["6"], "link", "Training on 8 GPUs: collectives by rate of NVLink", "times the machine's rate"),
        by_link(tune, known["13"], "nic", "Training on 128 GPUs: collectives by rate of the NICs", "times the machine's rate")])

