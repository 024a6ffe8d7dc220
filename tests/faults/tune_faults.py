#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Does to a whole `mgpu-tune tune` what a machine may do to it, and counts what is left.

Usage: tune_faults.py MGPU_TUNE PROGRAM kills|together|full|readonly|damaged [SEED]

MGPU_FAULTS=all: 200 kills instead of 6, a minute of two tuners and a reader instead of 4 s.
"""

import json
import os
import pty
import random
import re
import resource
import select
import signal
import subprocess
import sys
import tempfile
import time

ALL = os.environ.get("MGPU_FAULTS") == "all"
ENDLESS = "1000000000"


def fail(message):
    sys.exit("FAIL: " + message)


def without_origin(rows):
    """Where a trial ran may be lost alone, as it lies in a row of its own."""
    return {re.sub(r',"version":.*', "", row) for row in rows}


class Command:
    def __init__(self, tune, program):
        self.tune, self.program = tune, program

    def run(self, *arguments, codes=(0,), **more):
        done = subprocess.run([self.tune, *arguments], capture_output=True, text=True, timeout=300, **more)
        if done.returncode not in codes:
            fail(f"{' '.join(arguments)}: exit code {done.returncode}, not {codes}:\n{done.stdout}{done.stderr}")
        return done

    def tuning(self, path, *more):
        return [self.tune, "tune", self.program, "--db", path, *more]

    def rows(self, path):
        """Every trial of the database, as text; each must be there as often as it was stored."""
        lines = self.run("db", "export", "--db", path).stdout.splitlines()
        problem, found = "", []
        for line in lines:
            record = json.loads(line)
            if "configuration" in record:
                found.append(problem + line)
            else:
                problem = line
        return found


def members(session):
    """Processes of a session, zombies left out."""
    found = []
    for name in os.listdir("/proc"):
        try:
            with open(f"/proc/{name}/stat", encoding="ascii", errors="replace") as file:
                state, _, _, owner = file.read().rsplit(")", 1)[1].split()[:4]
        except (OSError, ValueError):
            continue
        if int(owner) == session and state not in "ZX":
            found.append(int(name))
    return found


def killed_once(command, path, delay):
    """Runs `tune` and kills it; the number of candidates it had said it tried."""
    ours, theirs = pty.openpty()  # on a terminal it speaks ten times a second
    process = subprocess.Popen(command.tuning(path, "--budget", ENDLESS, "--seed", str(random.randrange(10**6))),
                               stdout=subprocess.DEVNULL, stderr=theirs, start_new_session=True)
    os.close(theirs)
    said, until = b"", time.monotonic() + delay
    while (left := until - time.monotonic()) > 0:
        if select.select([ours], [], [], left)[0]:
            try:
                said += os.read(ours, 65536)
            except OSError:
                break
    if process.poll() is not None:
        fail(f"tune ended on its own: {said.decode(errors='replace')}")
    process.kill()
    process.wait()
    while select.select([ours], [], [], 0)[0]:
        try:
            said += os.read(ours, 65536)
        except OSError:
            break
    os.close(ours)
    # Its workers go with it, and with them whatever they were doing.
    for _ in range(100):
        if not members(process.pid):
            break
        time.sleep(0.1)
    else:
        fail(f"workers outlived their tuner: {members(process.pid)}")
    tried = re.findall(rb"(\d+) tried", said)
    return int(tried[-1]) if tried else 0


def kills(command, folder):
    path, count = os.path.join(folder, "t.db"), 200 if ALL else 6
    before, in_flight, tried = [], 0, 0
    for number in range(count):
        said = killed_once(command, path, random.uniform(0.05, 2.5))
        tried += said
        if not os.path.exists(path):
            continue
        if os.path.getsize(path) > 0:
            command.run("db", "verify", path)
        after = command.rows(path)
        lost = set(before) - set(after)
        if lost or len(after) < len(before):
            fail(f"kill {number}: {len(lost)} rows are gone, as {sorted(lost)[:1]}")
        new = len(after) - len(before)
        # It says so before it stores the last one, which may be in flight.
        if new < said - 1:
            fail(f"kill {number}: {said} were tried and {new} stored")
        in_flight += said > new
        before = after
    if not before or tried == 0:
        fail(f"{count} kills came before anything was measured: the test proves nothing")
    done = json.loads(command.run("tune", command.program, "--db", path, "--budget", "1", "--json").stdout)
    if done["resumed"] < 1 or done["interrupted"]:
        fail(f"the session after the kills did not go on: {done}")
    print(f"{count} kills: {tried} candidates said, {len(before)} rows kept, {in_flight} lost in flight")


def together(command, folder):
    path, seconds = os.path.join(folder, "t.db"), 60 if ALL else 4
    tuners = [subprocess.Popen(command.tuning(path, "--budget", f"{seconds}s", "--seed", str(seed), "--json"),
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for seed in (1, 2)]
    seen, reads = set(), 0
    while any(tuner.poll() is None for tuner in tuners):
        if os.path.exists(path) and os.path.getsize(path) > 0:
            now = set(command.rows(path))
            if lost := seen - now:
                fail(f"a reader saw {len(lost)} rows go")
            seen, reads = now, reads + 1
        time.sleep(0.02)
    evaluated = 0
    for tuner in tuners:
        out, error = tuner.communicate()
        if tuner.returncode != 0:
            fail(f"a tuner ended with {tuner.returncode}: {error}")
        evaluated += json.loads(out)["evaluated"]
    rows = command.rows(path)
    if seen - set(rows):
        fail("rows that a reader saw are gone")
    if len(rows) < evaluated:
        fail(f"{evaluated} were evaluated and {len(rows)} stored")
    if reads < 3 or evaluated < 4:
        fail(f"{reads} reads of {evaluated} results prove nothing")
    command.run("db", "verify", path)
    print(f"two tuners and a reader for {seconds} s: {evaluated} evaluated, {len(rows)} rows, {reads} reads")


class SmallDisk:
    """A file system of so many bytes, where this process may mount one."""

    def __init__(self, folder, size):
        self.path = os.path.join(folder, "disk")
        os.mkdir(self.path)
        self.mounted = os.geteuid() == 0 and subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", self.path], capture_output=True).returncode == 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.mounted:
            subprocess.run(["umount", "-l", self.path], check=True)

    def remount(self, options):
        subprocess.run(["mount", "-o", "remount," + options, self.path], check=True)


def full(command, folder):
    with SmallDisk(folder, 512 << 10) as disk:
        path, limit = os.path.join(disk.path, "t.db"), None
        if not disk.mounted:
            # No file grows beyond this. Workers inherit it; the kernels' objects are smaller.
            def limit():
                signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
                resource.setrlimit(resource.RLIMIT_FSIZE, (512 << 10, 512 << 10))
        done = command.run("tune", command.program, "--db", path, "--budget", ENDLESS, codes=(1,), preexec_fn=limit)
        message = done.stderr.strip().splitlines()[-1]
        if not message.startswith("mgpu-tune: error:") or path not in message or "full" not in message:
            fail(f"a full disk is not named: {message}")
        kept = command.rows(path)
        if len(kept) < 3:
            fail(f"only {len(kept)} rows were kept")
        if disk.mounted:
            disk.remount(f"size={64 << 20}")
        command.run("db", "verify", path)
        more = command.run("tune", command.program, "--db", path, "--budget", "3s", "--json")
        after = command.rows(path)
        if set(kept) - set(after) or len(after) <= len(kept):
            fail(f"with room again: {len(kept)} rows were {len(after)} after {more.stdout}")
    print(f"full disk ({'a small file system' if disk.mounted else 'a limit of file size'}): "
          f"{len(kept)} rows kept, {len(after)} with room again; {message}")


def readonly(command, folder):
    with SmallDisk(folder, 64 << 20) as disk:
        path = os.path.join(disk.path, "t.db")
        command.run("tune", command.program, "--db", path, "--budget", "3")
        kept = command.rows(path)
        if disk.mounted:
            disk.remount("ro")
        elif os.geteuid() != 0:
            os.chmod(path, 0o444)
            os.chmod(disk.path, 0o555)
        else:
            print("SKIP: root, and no file system can be mounted")
            sys.exit(0)
        began = time.monotonic()
        done = command.run("tune", command.program, "--db", path, "--budget", "60s", codes=(1, 2))
        message = done.stderr.strip().splitlines()[-1]
        if not message.startswith("mgpu-tune: error:") or path not in message:
            fail(f"a read-only file is not named: {message}")
        if time.monotonic() - began > 30:
            fail("it tuned for nothing before it looked at the file")
        if command.rows(path) != kept:
            fail("the file has changed")
        out = os.path.join(folder, "r.md")
        command.run("report", "--db", path, "-o", out)
        said = command.run("run", command.program, "--db", path, "--arg", "a=1", "--arg", "b=1").stderr
        if "warning" in said or "error" in said:
            fail(f"it cannot be read: {said}")
        if not disk.mounted:
            os.chmod(disk.path, 0o755)
    print(f"read-only file: {message}")


def damaged(command, folder):
    path = os.path.join(folder, "t.db")
    command.run("tune", command.program, "--db", path, "--budget", "40")
    kept = without_origin(command.rows(path))
    with open(path, "rb") as file:
        whole = bytearray(file.read())
    counts = {"refused": 0, "went on": 0}
    for number in range(20 if ALL else 6):
        broken, saved = os.path.join(folder, f"b{number}.db"), os.path.join(folder, f"s{number}.db")
        bytes_now = bytearray(whole)
        if number == 0:
            bytes_now = bytes_now[:len(bytes_now) // 2]  # cut short
        elif number == 1:
            bytes_now[:100] = bytes(100)  # no header
        else:
            start = random.randrange(4096, len(bytes_now) - 4096)
            bytes_now[start:start + 4096] = random.randbytes(4096)
        with open(broken, "wb") as file:
            file.write(bytes_now)
        done = command.run("tune", command.program, "--db", broken, "--budget", "2", codes=(0, 1, 2))
        if done.returncode != 0:
            message = done.stderr.strip().splitlines()[-1]
            if not message.startswith("mgpu-tune: error:") or broken not in message:
                fail(f"damage is not named: {message}")
        # What only reads goes on without it, and says so.
        said = command.run("run", command.program, "--random", "--db", broken).stderr
        if number < 2 and not ("warning: not tuned: " in said and broken in said):
            fail(f"run does not warn of the damaged file: {said}")
        command.run("plan", command.program, "--db", broken)
        counts["refused" if done.returncode else "went on"] += 1
        # Whatever is taken over is what was written.
        with open(broken, "wb") as file:
            file.write(bytes_now)
        command.run("db", "verify", broken, codes=(0, 1))
        done = command.run("db", "import", broken, "--db", saved, codes=(0, 1))
        if done.returncode == 0 and (made_up := without_origin(command.rows(saved)) - kept):
            fail(f"merge made up {len(made_up)} rows, as {sorted(made_up)[:1]}")
    print(f"damaged files: {counts}")


def main():
    if len(sys.argv) not in (4, 5):
        sys.exit(__doc__)
    seed = int(sys.argv[4]) if len(sys.argv) == 5 else random.randrange(10**6)
    random.seed(seed)
    print(f"seed {seed}", flush=True)
    command = Command(os.path.realpath(sys.argv[1]), os.path.realpath(sys.argv[2]))
    with tempfile.TemporaryDirectory() as folder:
        {"kills": kills, "together": together, "full": full, "readonly": readonly,
         "damaged": damaged}[sys.argv[3]](command, folder)


if __name__ == "__main__":
    main()
