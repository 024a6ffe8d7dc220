#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What strangers can do to ranks that meet by TCP: nothing that the job's ranks would notice.

Usage: strangers.py crowd MGPU_TUNE BUNDLE      many that connect before rank 1 does, and say nothing, or what is wrong
       strangers.py host MGPU_TUNE BUNDLE       a rank 0 that is none, or that has the secret and sends what no rank would
       strangers.py changed MGPU_TUNE BUNDLE    a network that changes what rank 0 says, after the handshake
       strangers.py bind MGPU_TUNE BUNDLE       at which addresses ranks listen, and what is refused
       strangers.py lines MGPU_TUNE BUNDLE      the lines of docs/distributed.md, by hand and by doubles of torchrun and srun

The handshake is written here a second time, from device/tcp/Handshake.h. MGPU_SWEEPS=all: ten times as many hostile hosts and changes.
"""

import hashlib
import hmac
import os
import random
import re
import resource
import shlex
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import threading
import time

from launch import ALL, OUTS, fail, finish, free_port, read, replay_line

MARK = b"mgmpurv2"
HELLO = struct.Struct("<8s4I32s32s")
CROWD = 1000
WITHIN = 2.0  # seconds from rank 1's start to the job's begin
DEADLINE = 60
GUEST, HOST = 1, 2


def hello(rank=1, count=2, to=0, port=4000, nonce=None, meeting=bytes(32)):
    return HELLO.pack(MARK, rank, count, to, port, nonce or os.urandom(32), meeting)


def proof(side, secret, said, nonce):
    return hmac.new(secret, bytes([side, not secret]) + said + nonce, hashlib.sha256).digest()


def receive(connection, size):
    out = b""
    while len(out) < size and (more := connection.recv(size - len(out))):
        out += more
    return out


class Job:
    """Rank 0 of two waits, until finish() starts rank 1."""

    def __init__(self, tune, bundle, folder, secret, address="127.0.0.1", deadline=DEADLINE, **more):
        self.port, self.address, self.folder = free_port(), address, tempfile.mkdtemp(dir=folder)
        self.line = replay_line(tune, bundle, self.folder, "--distributed=tcp", "--deadline", str(deadline))
        self.variables = {**os.environ, "WORLD_SIZE": "2", "MASTER_PORT": str(self.port), "MASTER_ADDR": address, **more}
        if secret:
            self.variables["MGPU_SECRET_FILE"] = secret
        self.first = self.start(0)
        for _ in range(500):
            try:
                self.connect().close()
                return
            except OSError:
                if self.first.poll() is not None:
                    fail(f"rank 0 ends before rank 1 comes: {self.first.communicate()}")
                time.sleep(0.02)
        fail("rank 0 does not listen")

    def start(self, rank, **more):
        return subprocess.Popen(self.line, env={**self.variables, "RANK": str(rank), **more}, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)

    def connect(self):
        return socket.create_connection((self.address, self.port), 10)

    def finish(self, **more):
        """The seconds from rank 1's start to the job's end, and the job's results."""
        began = time.monotonic()
        done = finish([self.first, self.start(1, **more)])
        took = time.monotonic() - began
        if any(code != 0 for code, _, _ in done):
            fail(f"the job was ended: {done}")
        return took, [read(f"{self.folder}/{name}.npy") for name in OUTS]


def relay(port, heard):
    """A port that leads to this one; what comes there first is noted."""
    listening = socket.create_server(("127.0.0.1", 0))

    def pass_on(source, sink, note):
        try:
            while words := source.recv(1 << 16):
                if note:
                    heard.append(words)
                sink.sendall(words)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def serve():
        guest, _ = listening.accept()
        host = socket.create_connection(("127.0.0.1", port))
        threading.Thread(target=pass_on, args=(guest, host, True), daemon=True).start()
        pass_on(host, guest, False)

    threading.Thread(target=serve, daemon=True).start()
    return listening.getsockname()[1]


def silent(job, held, _secret, _heard):
    for _ in range(CROWD):
        held.append(job.connect())


def wrong_hellos(job, held, _secret, _heard):
    """The hello of former versions among them, which needed no more than a number."""
    rng = random.Random(1)
    former = struct.pack("<8s4I", b"mgmpurv1", 1, 2, 4000, 0)
    for number in range(CROWD):
        words = [rng.randbytes(rng.randrange(1, 200)), former, hello(count=3), hello(rank=0), hello(to=1), hello()[:60],
                 MARK + rng.randbytes(80), hello(rank=2**32 - 1, count=2**32 - 1)][number % 8]
        held.append(job.connect())
        held[-1].sendall(words)


def wrong_proofs(job, held, secret, _heard):
    for number in range(CROWD):
        one = job.connect()
        said = hello(rank=number % 3)
        one.sendall(said)
        nonce, theirs = receive(one, 32), receive(one, 32)
        if theirs != proof(HOST, secret, said, nonce):
            fail("rank 0 proves something else than the secret")
        one.sendall([os.urandom(32), theirs, proof(GUEST, os.urandom(32), said, nonce), proof(GUEST, b"", said, nonce),
                     proof(HOST, secret, said, nonce), proof(GUEST, secret, said, bytes(32))][number % 6])
        if number < 100 and receive(one, 1):
            fail("a wrong proof is welcomed")
        held.append(one)


def replayed(job, held, _secret, heard):
    """What the rank of an earlier job said, word by word."""
    for _ in range(100):
        one = job.connect()
        one.sendall(heard[0][:HELLO.size])
        receive(one, 64)
        one.sendall(b"".join(heard)[HELLO.size:HELLO.size + 32])
        if receive(one, 1):
            fail("a replay is welcomed")
        held.append(one)


def tireless(job, held, _secret, _heard):
    """Who is sent away comes again, as long as the job lasts."""
    def come_again():
        while job.first.poll() is None:
            try:
                one = job.connect()
                one.sendall(hello())
                held.append(one)
            except OSError:
                time.sleep(0.01)
    for _ in range(2):
        threading.Thread(target=come_again, daemon=True).start()
    time.sleep(0.5)


def crowd(tune, bundle):
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most if most == resource.RLIM_INFINITY else min(most, 65536), most))
    with tempfile.TemporaryDirectory() as folder:
        path, heard = f"{folder}/secret", []
        subprocess.run([tune, "secret", path], check=True, stdout=subprocess.DEVNULL)
        secret = bytes.fromhex(read(path).decode())
        quiet = Job(tune, bundle, folder, path)
        undisturbed, wanted = quiet.finish(MASTER_PORT=str(relay(quiet.port, heard)))
        if secret in b"".join(heard) or secret.hex().encode() in b"".join(heard):
            fail("the secret is sent")
        for strangers in (silent, wrong_hellos, wrong_proofs, replayed, tireless):
            for few_files in (False, True):
                if few_files and strangers is not silent:
                    continue
                job = Job(tune, bundle, folder, path)
                if few_files:  # rank 0 may open fewer files than there are strangers
                    resource.prlimit(job.first.pid, resource.RLIMIT_NOFILE, (64, 64))
                held = []
                strangers(job, held, secret, heard)
                took, got = job.finish()
                for one in held:
                    one.close()
                if got != wanted:
                    fail(f"{strangers.__name__} strangers change what is computed")
                if took > undisturbed + WITHIN:
                    fail(f"{strangers.__name__} strangers: the job takes {took:.2f} s from rank 1's start, else {undisturbed:.2f} s")
                print(f"{strangers.__name__}: {len(held)} strangers, {took:.2f} s from rank 1's start (without: {undisturbed:.2f} s)")


def answers(rng, secret):
    """What a host does with a guest: (name, function of the connection, words of the error). Those with `secret` are a rank 0 that has
    it, and sends what no rank would."""
    def prove(connection):
        said, nonce = receive(connection, HELLO.size), os.urandom(32)
        connection.sendall(nonce + proof(HOST, secret, said, nonce))
        if receive(connection, 32) != proof(GUEST, secret, said, nonce):
            fail("rank 1 proves something else than the secret")
        connection.sendall(b"\x57")

    def table(words=b"", port=1):
        body = struct.pack("<Q", len(words)) + words + bytes(32) + 2 * (struct.pack("<Q", 9) + b"127.0.0.1" + struct.pack("<H", port))
        return struct.pack("<Q", len(body)) + body

    def then(words):
        def serve(connection):
            prove(connection)
            connection.sendall(words)
        return serve

    def after_meeting(words):
        def serve(connection):
            prove(connection)
            connection.sendall(table())
            receive(connection, 8)
            connection.sendall(struct.pack("<Q", 0) + words)
            time.sleep(0.2)
        return serve

    def reflect(connection):
        said = receive(connection, HELLO.size)
        connection.sendall(said[24:56] + said[56:88])

    def guess(connection):
        said, nonce = receive(connection, HELLO.size), os.urandom(32)
        connection.sendall(nonce + proof(HOST, os.urandom(32), said, nonce))
        if receive(connection, 1):
            fail("rank 1 goes on with a host that proved nothing")

    junk = rng.randbytes(rng.randrange(1, 5000))
    frame = struct.Struct("<IIQ")
    evil = b"\x1b]0;owned\x07\x1b[2Jlost\nmgpu-tune: all is well\xff\xc2\x9b"
    return [("random bytes", lambda connection: connection.sendall(junk), "rank 0 is not met in time"), ("its own hello sent back", reflect, "prove"),
            ("a guess", guess, "prove"), ("nothing", lambda connection: time.sleep(0.5), "rank 0"),
            ("a huge table", then(struct.pack("<Q", 2**63)), "no rank of mgpu"), ("no table", then(b""), "rank 0 does not answer"),
            ("a random table", then(struct.pack("<Q", len(junk)) + junk), ""), ("words for a terminal", then(table(evil)), "\\x1b]0;owned\\x07"),
            ("random frames", after_meeting(junk), ""), ("a frame of another kind", after_meeting(frame.pack(7, 0, 1)), "what no rank would"),
            ("frames of no bytes", after_meeting(100 * frame.pack(0, 0, 0)), ""),
            ("a frame that is too long", after_meeting(frame.pack(0, 0, 2**63)), "sends 9223372036854775808 bytes"),
            ("a huge step", after_meeting(frame.pack(0, 0, 8) + struct.pack("<Q", 2**62)), "more than a rank has to say"),
            ("a notice for a terminal", after_meeting(frame.pack(1, 0, len(evil)) + evil), "\\x1b]0;owned\\x07"),
            ("a huge notice", after_meeting(frame.pack(1, 0, 2**40)), "what no rank would")]


def host(tune, bundle):
    """Rank 1 alone, whose rank 0 is this one."""
    rng = random.Random(2)
    count = 0
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/secret"
        subprocess.run([tune, "secret", path], check=True, stdout=subprocess.DEVNULL)
        secret = bytes.fromhex(read(path).decode())
        for name, serve, words in [each for _ in range(10 if ALL else 1) for each in answers(rng, secret)]:
            listening = socket.create_server(("127.0.0.1", 0))

            def serve_all(listening=listening, serve=serve):
                while True:
                    try:
                        connection, _ = listening.accept()
                    except OSError:
                        return
                    with connection:
                        try:
                            serve(connection)
                        except OSError:
                            pass

            threading.Thread(target=serve_all, daemon=True).start()
            line = replay_line(tune, bundle, folder, "--distributed=tcp", "--deadline", "1")
            began = time.monotonic()
            done = subprocess.run(line, env={**os.environ, "RANK": "1", "WORLD_SIZE": "2", "MASTER_PORT": str(listening.getsockname()[1]),
                                             "MGPU_SECRET_FILE": path}, capture_output=True, timeout=60)
            listening.shutdown(socket.SHUT_RDWR)
            listening.close()
            said = done.stderr.decode()  # it is UTF-8, whatever came
            if done.returncode != 3 or words not in said or done.stdout:
                fail(f"rank 0 sends {name}, and rank 1 ends with {done.returncode}, not 3, without '{words}': {done.stderr} {done.stdout}")
            if len(said.strip().splitlines()) != 1 or re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", said):
                fail(f"rank 0 sends {name}, and a terminal gets {done.stderr}")
            if time.monotonic() - began > 20:
                fail(f"rank 0 sends {name}, and rank 1 takes {time.monotonic() - began:.1f} s to end")
            count += 1
        if left := [name for name in os.listdir(folder) if name != "secret"]:
            fail(f"written, though the run failed: {left}")
    print(f"{count} hostile ranks 0: exit code 3, one line")


def change(words, rng):
    """A few bytes are others, gone, or there twice."""
    words, at = bytearray(words), rng.randrange(len(words))
    size = rng.choice((1, 1, 4, 8, 64))
    words[at:at + size] = [rng.randbytes(size), bytes(size), b"\xff" * size, b"", 2 * words[at:at + size]][rng.randrange(5)]
    return bytes(words)


def changing(port, rng):
    """A port that leads to this one, by way of a network that changes one of the messages from there once the handshake is over."""
    listening = socket.create_server(("127.0.0.1", 0))

    def pass_on(source, sink, changes):
        passed, chosen = 0, rng.randrange(12)
        try:
            while words := source.recv(1 << 16):
                if changes and passed >= 65:  # the host's answer, and its welcome
                    words = change(words, rng) if chosen == 0 else words
                    chosen -= 1
                passed += len(words)
                sink.sendall(words)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def serve():
        guest, _ = listening.accept()
        try:
            host = socket.create_connection(("127.0.0.1", port))
        except OSError:
            guest.close()
            return
        threading.Thread(target=pass_on, args=(guest, host, False), daemon=True).start()
        pass_on(host, guest, True)

    threading.Thread(target=serve, daemon=True).start()
    return listening.getsockname()[1]


def changed(tune, bundle):
    """Such a network may change what is computed. It is no fault of mgpu's (exit code 4), nor does any rank crash."""
    rng = random.Random(3)
    codes = {}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(300 if ALL else 30):
            job = Job(tune, bundle, folder, None, deadline=2)
            for code, out, err in finish([job.first, job.start(1, MASTER_PORT=str(changing(job.port, rng)))]):
                if code not in (0, 3) or re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", err):
                    fail(f"exit code {code}: {err}{out}")
                codes[code] = codes.get(code, 0) + 1
    if not codes.get(3):
        fail("nothing was changed")
    print(f"ranks whose messages were changed, by exit code: {codes}")


def listening_of(pid):
    """Where a process listens, by the system's tables of sockets."""
    inodes, found = set(), []
    for name in os.listdir(f"/proc/{pid}/fd"):
        try:
            if match := re.fullmatch(r"socket:\[(\d+)\]", os.readlink(f"/proc/{pid}/fd/{name}")):
                inodes.add(match[1])
        except OSError:
            continue
    for table in ("tcp", "tcp6"):
        try:
            rows = read(f"/proc/{pid}/net/{table}").decode().splitlines()[1:]
        except OSError:  # no IPv6
            continue
        for row in (row.split() for row in rows):
            if row[3] == "0A" and row[9] in inodes:
                address, port = row[1].split(":")
                if table == "tcp":
                    address = socket.inet_ntoa(struct.pack("=I", int(address, 16)))
                found.append((address, int(port, 16)))
    return found


def refuses(address, port):
    try:
        socket.create_connection((address, port), 5).close()
        return False
    except ConnectionRefusedError:
        return True


def check_tables(tune, bundle, folder, secret):
    """Ranks 0 and 1 of three wait for the last, and their sockets are looked up."""
    for address, wanted in ((None, "127.0.0.1"), ("127.0.0.1", "127.0.0.1"), ("127.0.0.2", "127.0.0.2"), ("localhost", None)):
        for key in (None, secret):
            more = {"WORLD_SIZE": "3"} if address else {"WORLD_SIZE": "3", "MASTER_ADDR": ""}
            job = Job(tune, bundle, folder, key, address or "127.0.0.1", **{k: v for k, v in more.items() if v})
            if not address:  # the variable is not set at all
                job.first.kill()
                job.first.communicate()
                del job.variables["MASTER_ADDR"]
                job.first = job.start(0)
            second = job.start(1)
            for _ in range(500):
                found = [listening_of(each.pid) for each in (job.first, second)]
                if all(found):
                    break
                time.sleep(0.02)
            if len(found[0]) != 1 or found[0][0][1] != job.port or (wanted and found[0][0][0] != wanted):
                fail(f"with MASTER_ADDR={address} rank 0 listens at {found[0]}")
            if wanted and [place for place, _ in found[1]] != ["127.0.0.1"]:  # its end of a connection to either
                fail(f"rank 1 listens at {found[1]}")
            if wanted and (refuses(wanted, job.port) or not refuses("127.0.0.3", job.port) or
                           not refuses("127.0.0.1" if wanted == "127.0.0.2" else "127.0.0.2", job.port)):
                fail(f"{wanted} is not the only address of rank 0")
            for each in (job.first, second):
                each.kill()
                each.communicate()


def check_refusals(tune, bundle, folder, secret):
    def said(code, words, **variables):
        line = replay_line(tune, bundle, folder, "--distributed=tcp", "--deadline", "2")
        for rank in "01":
            env = {**os.environ, "RANK": rank, "WORLD_SIZE": "2", "MASTER_PORT": str(free_port()), **variables}
            done = subprocess.run(line, env=env, capture_output=True, text=True, timeout=60)
            if done.returncode != code or words not in done.stderr:
                fail(f"{variables}: exit code {done.returncode}, not {code}, or not '{words}': {done.stderr}")
    for address in ("192.0.2.1", "0.0.0.0", "::"):
        said(1, "run `mgpu-tune secret ranks.secret` and start each rank with MGPU_SECRET_FILE=ranks.secret", MASTER_ADDR=address)
    said(2, "cannot open the secret", MGPU_SECRET_FILE=f"{folder}/none")
    said(2, "cannot open the secret", MGPU_SECRET_FILE="")
    os.chmod(secret, 0o640)
    said(1, "so that others can use it", MGPU_SECRET_FILE=secret)
    os.chmod(secret, 0o600)
    before = read(secret)
    done = subprocess.run([tune, "secret", secret], capture_output=True, text=True)
    if done.returncode != 1 or "is there already" not in done.stderr or read(secret) != before:
        fail(f"a secret is written over: {done}")
    if stat.S_IMODE(os.stat(secret).st_mode) != 0o600 or not re.fullmatch(rb"[0-9a-f]{64}\n", before):
        fail("the secret is not 256 bits for its owner alone")


# Two machines: a network namespace each, with a cable between them.
MACHINES = """set -e
ip link set lo up
ip link add cable0 type veth peer name cable1
unshare -n sleep 60 & other=$!
for k in 1 2 3 4 5 6 7 8 9 10; do test "$(readlink /proc/$other/ns/net)" != "$(readlink /proc/$$/ns/net)" && break; sleep 0.1; done
ip link set cable1 netns $other
ip addr add 10.77.0.1/24 dev cable0
ip link set cable0 up
there="nsenter -t $other -n"
$there ip link set lo up
$there ip addr add 10.77.0.2/24 dev cable1
$there ip link set cable1 up
"$@" first & first=$!
$there "$@" second || { kill $first $other; exit 1; }
wait $first
kill $other
"""


def on_machine(which, tune, bundle, secret, port):
    """One of the two; rank 1's looks from outside at what rank 0 listens at."""
    folder = tempfile.mkdtemp()
    variables = {**os.environ, "WORLD_SIZE": "2", "MASTER_ADDR": "10.77.0.1", "MASTER_PORT": port, "MGPU_SECRET_FILE": secret}
    line = replay_line(tune, bundle, folder, "--distributed=tcp", "--deadline", "20")
    if which == "first":
        loopback = subprocess.Popen(line, env={**os.environ, "WORLD_SIZE": "2", "RANK": "0", "MASTER_PORT": str(int(port) + 1)},
                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        done = subprocess.run(line, env={**variables, "RANK": "0"}, capture_output=True, text=True, timeout=60)
        loopback.kill()
        loopback.wait()
    else:
        for _ in range(500):
            if not refuses("10.77.0.1", int(port)):
                break
            time.sleep(0.02)
        time.sleep(0.5)  # the other one is ready, too
        if not refuses("10.77.0.1", int(port) + 1):
            fail("a rank 0 at loopback is reached from another machine")
        done = subprocess.run(line, env={**variables, "RANK": "1"}, capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        fail(f"the {which} machine: {done}")


def bind(tune, bundle):
    with tempfile.TemporaryDirectory() as folder:
        secret = f"{folder}/secret"
        subprocess.run([tune, "secret", secret], check=True, stdout=subprocess.DEVNULL)
        check_tables(tune, bundle, folder, secret)
        check_refusals(tune, bundle, folder, secret)
        skipped = 0
        if subprocess.run(["unshare", "-Urn", "sh", "-c", "ip link add cable0 type veth peer name cable1"], capture_output=True).returncode:
            skipped += 1
        else:
            done = subprocess.run(["unshare", "-Urn", "sh", "-c", MACHINES, "-", sys.executable, __file__, "machine", tune, bundle, secret,
                                   str(free_port())], capture_output=True, text=True, timeout=120)
            if done.returncode != 0:
                fail(f"two machines: {done.stdout}{done.stderr}")
    print(f"ranks listen at one address each, and other than at loopback with a secret alone; skipped, for lack of namespaces: {skipped}")


TORCHRUN = """#!/usr/bin/env python3
import os, socket, subprocess, sys
words = sys.argv[1:]
value = lambda name: words[words.index(name) + 1]
count = int(value("--nnodes")) * int(value("--nproc-per-node"))
store = socket.create_server((value("--rdzv-endpoint").split(":")[0], int(os.environ["FREE_PORT"])))
ranks = [subprocess.Popen(words[words.index("--no-python") + 1:], env={**os.environ, "RANK": str(rank), "WORLD_SIZE": str(count),
    "MASTER_ADDR": store.getsockname()[0], "MASTER_PORT": str(store.getsockname()[1]), "TORCHELASTIC_USE_AGENT_STORE": "True"})
    for rank in range(count)]
sys.exit(max(rank.wait() for rank in ranks))
"""
SRUN = """#!/usr/bin/env python3
import os, subprocess, sys
given = dict(word[2:].split("=") for word in sys.argv[1:] if word.startswith("--") and "=" in word)
count = int(given["nodes"]) * int(given["ntasks-per-node"])
command = sys.argv[sys.argv.index("mgpu-tune"):]
ranks = [subprocess.Popen(command, env={**os.environ, "SLURM_PROCID": str(rank), "SLURM_NTASKS": str(count), "SLURM_STEP_ID": "0",
    "SLURM_JOB_ID": str(os.getpid()), "SLURM_STEP_NODELIST": "127.0.0.2,node1", "MGPU_PORT": os.environ["FREE_PORT"]})
    for rank in range(count)]
sys.exit(max(rank.wait() for rank in ranks))
"""


def lines(tune, bundle):
    """A block is run at once where it is of several ranks; node0 is another address of this machine."""
    text = read(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "distributed.md")).decode()
    blocks = [block for block in re.findall(r"^```\n(.*?)^```$", text.split("## GPUs")[0], re.M | re.S) if not re.search("mpirun|--mpi=pmix", block)]
    count = refused = 0
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(os.path.realpath(tune), f"{folder}/mgpu-tune")
        for name, script in (("torchrun", TORCHRUN), ("srun", SRUN)):
            with open(f"{folder}/{name}", "w", encoding="utf-8") as file:
                file.write(script)
            os.chmod(f"{folder}/{name}", 0o755)
        program = f"run {shlex.quote(bundle)} --arg a=random:1 --arg b=random:2"
        for block in blocks:
            port = str(free_port())
            commands = [re.sub(r"^node\d\$ ", "", line).replace("run model.mlir", program).replace("node0", "127.0.0.2").replace("29500", port)
                        for line in block.splitlines()]
            env = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "FREE_PORT": port}

            def run(commands, env=env):
                return finish([subprocess.Popen(["sh", "-c", command], cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                                text=True) for command in commands])
            done = run(commands)
            if any(code != 0 for code, _, _ in done) or ("run" in block and "".join(out for _, out, _ in done).count("replay ") != 1):
                fail(f"{block}: {done}")
            count += 1
            if "MGPU_SECRET_FILE" in block and "MASTER_ADDR" in block:  # the same without a secret, on a network
                done = run([command.replace("MGPU_SECRET_FILE=ranks.secret ", "").replace("127.0.0.2", "192.0.2.1") for command in commands])
                if any(code != 1 or "mgpu-tune secret ranks.secret" not in err for code, _, err in done):
                    fail(f"without a secret: {done}")
                refused += 1
    if count < 5 or refused < 1 or not all(word in "".join(blocks) for word in ("torchrun", "srun", "RANK=1", "mgpu-tune secret")):
        fail(f"found only {count} blocks: {blocks}")
    print(f"{count} blocks of docs/distributed.md run")


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    if sys.argv[1] == "machine":  # by MACHINES
        tune, bundle, secret, port, which = sys.argv[2:]
        return on_machine(which, tune, bundle, secret, port)
    os.environ.pop("MGPU_SECRET_FILE", None)
    return {"crowd": crowd, "host": host, "changed": changed, "bind": bind, "lines": lines}[sys.argv[1]](*sys.argv[2:])


if __name__ == "__main__":
    main()
