#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""mgpu-lsp-server lives on after any message: odd ones that were found, then random ones.

Usage: lsp_messages.py MGPU_LSP_SERVER [SEED]

After each batch a question must be answered. MGPU_FAULTS=all: 2,000 messages instead of 60.
"""

import json
import os
import random
import select
import subprocess
import sys
import time

PATIENCE = 60  # seconds of a busy machine
PROGRAM = "func.func @f() {\n  %c = arith.constant 0 : index\n  %d = mgpu.get_device %c : !mgpu.device\n  return\n}\n"


def notification(method, **parameters):
    return {"jsonrpc": "2.0", "method": method, "params": parameters}


def opened(uri, text=PROGRAM):
    return notification("textDocument/didOpen",
                        textDocument={"uri": uri, "languageId": "mlir", "version": 1, "text": text})


# Each ended the server once, or is near one that did.
KNOWN = [
    opened("file:///home/me/50%.mlir"),
    opened("file:///home/me/100%zz.mlir"),
    opened("file:///home/me/%"),
    opened("file:///home/me/a%00b.mlir"),
    {"jsonrpc": "2.0", "method": 5},
    {"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": []},
    {"jsonrpc": "2.0", "method": "textDocument/didOpen"},
    {"jsonrpc": "2.0", "id": 7, "method": "textDocument/hover"},
    opened(5),
    opened("test:///number.mlir", 5),
    notification("textDocument/didChange", textDocument={"uri": "test:///a.mlir", "version": {}}, contentChanges=7),
    notification("textDocument/didChange", textDocument={"uri": "test:///a.mlir"}, contentChanges=["x", {"text": 1}]),
    {"jsonrpc": "2.0", "id": [1, 2], "method": "textDocument/hover",
     "params": {"textDocument": {"uri": "test:///a.mlir"}, "position": {"line": -1, "character": 1e300}}},
    {"method": "textDocument/didOpen"},
    {"jsonrpc": "1.0", "id": 8, "method": "initialize"},
    {"jsonrpc": "2.0"},
    {"jsonrpc": "2.0", "id": 9, "result": 5},
    {},
]
RAW = [b"Content-Length: 3\r\n\r\n[1]", b"Content-Length: -5\r\n\r\n", b"Content-Length: x\r\n\r\n",
       b"Content-Length: 18446744073709551615\r\n\r\n", b"Content-Length: 2\r\n\r\n\xff\xfe",
       b"Content-Length: 400000\r\n\r\n" + b"[" * 400000,
       b"Content-Length: 600017\r\n\r\n" + b'{"jsonrpc":"2.0",' + b'"a":[' * 120000]


class Server:
    def __init__(self, command):
        self.process = subprocess.Popen([command], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL)
        self.read = b""
        self.ask({"jsonrpc": "2.0", "id": "first", "method": "initialize",
                  "params": {"processId": None, "rootUri": None, "capabilities": {}}})

    def write(self, data, seen):
        try:
            self.process.stdin.write(data)
            self.process.stdin.flush()
        except BrokenPipeError:
            sys.exit(f"FAIL: the server is gone (exit code {self.process.wait()}) after {seen}")

    def send(self, message, seen=None):
        text = json.dumps(message).encode()
        self.write(b"Content-Length: %d\r\n\r\n" % len(text) + text, seen or message)

    def ask(self, message, seen=None):
        """Sends a request and waits for its answer."""
        self.send(message, seen)
        mark = b'"id":' + json.dumps(message["id"]).encode()
        end = time.monotonic() + PATIENCE
        while mark not in self.read:
            ready, _, _ = select.select([self.process.stdout], [], [], max(end - time.monotonic(), 0))
            data = os.read(self.process.stdout.fileno(), 1 << 16) if ready else b""
            if not data:
                sys.exit(f"FAIL: no answer{'' if ready else ' in time'} after {seen}")
            self.read += data
        self.read = self.read[self.read.rindex(mark):]


def odd_value():
    return random.choice([None, True, -1, 0, 2**63, 1e300, "", "x", "%", "file:///%", [], {}, [[]], {"uri": 1},
                          "\x00\ud7ff", PROGRAM])


def mutated(value):
    """The same message with something in it that is of another kind, or left out."""
    if random.random() < 0.15:
        return odd_value()
    if isinstance(value, dict):
        return {key: mutated(each) for key, each in value.items() if random.random() > 0.05}
    if isinstance(value, list):
        return [mutated(each) for each in value]
    return value


def well_formed():
    uri = random.choice(["test:///a.mlir", "test:///b.mlir", "file:///tmp/c.mlir"])
    place = {"textDocument": {"uri": uri}, "position": {"line": random.randrange(5), "character": random.randrange(9)}}
    requests = ["hover", "definition", "references", "completion", "documentSymbol", "codeAction", "inlayHint"]
    return random.choice([
        opened(uri), notification("textDocument/didClose", textDocument={"uri": uri}),
        notification("textDocument/didSave", textDocument={"uri": uri}),
        notification("textDocument/didChange", textDocument={"uri": uri, "version": 2},
                     contentChanges=[{"text": PROGRAM}]),
        {"jsonrpc": "2.0", "id": random.randrange(99), "method": "textDocument/" + random.choice(requests),
         "params": place}])


def main():
    seed = int(sys.argv[2]) if len(sys.argv) == 3 else random.randrange(10**6)
    print(f"seed {seed}", flush=True)
    random.seed(seed)
    server = Server(sys.argv[1])
    count = 0

    def judge(seen):
        nonlocal count
        count += 1
        server.ask({"jsonrpc": "2.0", "id": f"after {count}", "method": "textDocument/hover",
                    "params": {"textDocument": {"uri": "test:///none.mlir"}, "position": {"line": 0, "character": 0}}},
                   seen)

    for message in KNOWN:
        server.send(message)
        judge(message)
    for raw in RAW:
        server.write(raw, raw[:80])
        judge(raw[:80])
    for _ in range(2000 if os.environ.get("MGPU_FAULTS") == "all" else 60):
        message = mutated(well_formed())
        server.send(message)
        judge(message)
    server.process.stdin.close()
    server.process.wait(PATIENCE)
    print(f"{count} messages")


if __name__ == "__main__":
    main()
