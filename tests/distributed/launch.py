#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Starts one program in several processes, and does to them what a cluster may do.

Usage: launch.py cases MPIRUN RANKS RUN_CASES FILE     every program of FILE (Case.h)
       launch.py replay MPIRUN RANKS MGPU_TUNE BUNDLE  a bundle of examples/ops gives the bits of one process
       launch.py embed MPIRUN RANKS PROGRAM BUNDLE     a program that opens the bundle by the C interface
       launch.py embed-gpus MPIRUN RANKS MGPU_TUNE SOURCE LIBRARIES PROGRAM...
                                                       the same on GPUs that are doubles
       launch.py measure-gpus MPIRUN RANKS MGPU_TUNE SOURCE LIBRARIES
                                                       plan, profile, tune and calibrate on GPUs that are doubles
       launch.py lose RANKS PROGRAM BUNDLE             a rank that is killed or late loses such a program for all
       launch.py harm MPIRUN RANKS MGPU_TUNE BUNDLE    one rank is killed or stopped at some moment
       launch.py measure MPIRUN RANKS MGPU_TUNE BUNDLE plan, profile and tune, and what a replay makes of it
       launch.py forged MGPU_TUNE BUNDLE [EXAMPLES]    ranks that do not fit together
       launch.py gpus MPIRUN RANKS MGPU_TUNE SOURCE LIBRARIES
                                                       examples/ops on GPUs that are doubles, a process for each

MPIRUN is a command; "tcp" for processes that meet without MPI, "torchrun" and "srun" with the variables that
those set; or "none" where there is no MPI: then the test is skipped. MGPU_SWEEPS=all: 100 ranks are harmed instead of 3, and
the machine is calibrated.
"""

import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

ALL = os.environ.get("MGPU_SWEEPS") == "all"
SKIPPED = 77
DEADLINE = 3  # seconds; of ranks that are harmed
WITHOUT_MPI = ("tcp", "torchrun", "srun")
stores = []
OUTS = ["gathered", "maximum", "minimum", "product", "broadcasted", "chained", "uneven"]


def fail(message):
    sys.exit("FAIL: " + message)


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def as_by_hand(ranks):
    port = str(free_port())
    return [{"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "RANK": str(rank), "WORLD_SIZE": str(ranks)} for rank in range(ranks)]


def as_torchrun(ranks):
    """Two nodes of torchrun's, whose own store listens at MASTER_PORT as long as the workers run."""
    while True:
        store = socket.create_server(("127.0.0.1", 0))
        port = store.getsockname()[1]
        try:
            socket.create_server(("127.0.0.1", port + 1)).close()
            break
        except OSError:
            store.close()
    stores.append(store)
    here = (ranks + 1) // 2
    return [{**of_rank, "MASTER_PORT": str(port), "TORCHELASTIC_USE_AGENT_STORE": "True", "TORCHELASTIC_RUN_ID": "none",
             "TORCHELASTIC_RESTART_COUNT": "0", "TORCHELASTIC_MAX_RESTARTS": "0", "LOCAL_RANK": str(rank % here),
             "LOCAL_WORLD_SIZE": str(here if rank < here else ranks - here), "GROUP_RANK": str(rank // here), "GROUP_WORLD_SIZE": "2",
             "ROLE_RANK": str(rank), "ROLE_WORLD_SIZE": str(ranks), "ROLE_NAME": "default", "OMP_NUM_THREADS": "1",
             "MGPU_NODE": f"node{rank // here}"} for rank, of_rank in enumerate(as_by_hand(ranks))]


def as_srun(ranks):
    """A step of Slurm's without MPI. The port is of the job, so its number is one with a free port."""
    job = next(job for job in range(os.getpid() * 100, os.getpid() * 100 + 15000) if is_free(15000 + (job % 15000 * 31) % 15000))
    return [{"SLURM_JOB_ID": str(job), "SLURM_JOBID": str(job), "SLURM_STEP_ID": "0", "SLURM_PROCID": str(rank), "SLURM_NTASKS": str(ranks),
             "SLURM_LOCALID": str(rank), "SLURM_NODEID": "0", "SLURM_NNODES": "1", "SLURM_NTASKS_PER_NODE": str(ranks),
             "SLURM_JOB_NODELIST": "localhost", "SLURM_STEP_NODELIST": "localhost"} for rank in range(ranks)]


def is_free(port):
    try:
        socket.create_server(("127.0.0.1", port)).close()
        return True
    except OSError:
        return False


def start(launcher, ranks, command):
    """The processes that make up one run: mpirun, or each rank."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    if launcher not in WITHOUT_MPI:
        extra = ["--allow-run-as-root", "--oversubscribe"] if "openmpi" in launcher else []
        # MPICH's own messages would go by shared memory that small machines do not have.
        return [subprocess.Popen([launcher, *extra, "-n", str(ranks), *command], **pipes)]
    variables = {"tcp": as_by_hand, "torchrun": as_torchrun, "srun": as_srun}[launcher](ranks)
    return [subprocess.Popen(command, env={**os.environ, **of_rank}, **pipes) for of_rank in variables]


def finish(processes, seconds=120):
    """[(exit code, stdout, stderr)] of each."""
    done = []
    for process in processes:
        try:
            out, err = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            for each in processes:
                each.terminate()
            fail(f"a process did not end within {seconds} s")
        done.append((process.returncode, out, err))
    return done


def run(launcher, ranks, command):
    done = finish(start(launcher, ranks, command))
    for code, out, err in done:
        if code != 0:
            fail(f"{' '.join(command)} in {ranks} processes by {launcher}: exit code {code}\n{out}{err}")
    return "".join(out for _, out, _ in done)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def replay_line(tune, bundle, folder, *words):
    outs = [word for name in OUTS for word in ("--out", f"{name}={folder}/{name}.npy")]
    return [tune, "replay", bundle, "--arg", "a=random:1", "--arg", "b=random:2", *outs, *words]


def replay(launcher, ranks, tune, bundle):
    with tempfile.TemporaryDirectory() as folder:
        single, several = f"{folder}/1", f"{folder}/n"
        os.mkdir(single)
        os.mkdir(several)
        subprocess.run(replay_line(tune, bundle, single), check=True, stdout=subprocess.DEVNULL)
        trace = f"{folder}/trace.json"
        out = run(launcher, ranks, replay_line(tune, bundle, several, "--distributed", "--repeat", "3", "--trace", trace))
        if out.count("replay ") != 1:
            fail(f"one rank alone speaks, but this was printed:\n{out}")
        for name in OUTS:
            if read(f"{single}/{name}.npy") != read(f"{several}/{name}.npy"):
                fail(f"{name} differs from that of one process")
        if os.path.getsize(trace) == 0:
            fail("there is no trace")
    print(f"{len(OUTS)} results of {ranks} processes by {launcher} equal those of one")


def has_compiler(tune):
    return "LLVM: " in subprocess.run([tune, "--version"], check=True, capture_output=True, text=True).stdout


def measure(launcher, ranks, tune, bundle):
    with tempfile.TemporaryDirectory() as folder:
        database = f"{folder}/mgpu.db"
        shared = [bundle, "--distributed", "--db", database]
        for line, words in ((["profile", *shared, "--repeat", "3"], "stored in"), (["tune", *shared, "--budget", "4"], "coverage"),
                            (["plan", *shared, "-o", f"{folder}/plan"], "written to")):
            out = run(launcher, ranks, [tune, *line])
            if out.count(words) != 1:
                fail(f"{line[0]}: one rank alone speaks, but this was printed:\n{out}")
        if not read(f"{folder}/plan").startswith(b"mgpu-plan"):
            fail("no plan was written")
        line = [tune, "replay", bundle, "--db", database, "--arg", "a=random:1", "--arg", "b=random:2", "--json"]
        # Times of several processes are not those of one.
        if '"tuned": true' not in run(launcher, ranks, [*line, "--distributed"]):
            fail("what was tuned is not found")
        if '"tuned": true' in subprocess.run(line, check=True, capture_output=True, text=True).stdout:
            fail("what several processes tuned was taken for one")
        subprocess.run([tune, "db", "verify", database], check=True, stdout=subprocess.DEVNULL)
        if ALL and has_compiler(tune):
            out = run(launcher, ranks, [tune, "calibrate", "--distributed", "-o", f"{folder}/machine.json"])
            if out.count("written to") != 1 or b"calibration" not in read(f"{folder}/machine.json"):
                fail(f"nothing was calibrated:\n{out}")
    print(f"{ranks} processes by {launcher} plan, profile and tune together")


def working_program(tune):
    """The program that a command with a program becomes, where the build has the compiler."""
    return f"{tune}-compiler" if os.path.exists(f"{tune}-compiler") else tune


def ranks_of(tune, processes):
    """The process ids of the ranks, by rank; those that mpirun started are found by their command."""
    if len(processes) > 1:
        return [process.pid for process in processes]
    found = {}
    for entry in sorted(os.listdir("/proc"), key=lambda name: -int(name) if name.isdigit() else 0):  # children first
        try:
            if entry.isdigit() and os.readlink(f"/proc/{entry}/exe") == os.path.realpath(working_program(tune)):
                env = read(f"/proc/{entry}/environ").decode(errors="replace").split("\0")
                values = dict(pair.split("=", 1) for pair in env if "=" in pair)
                if values.get("MGPU_TEST_RUN") == os.environ["MGPU_TEST_RUN"]:
                    found[int(values.get("OMPI_COMM_WORLD_RANK", values.get("PMI_RANK", -1)))] = int(entry)
        except OSError:
            continue
    return [found[rank] for rank in sorted(found)]


def check_left(tune, folder):
    """No result is written, whole or half, and what a database holds is whole."""
    left = os.listdir(folder)
    if others := [name for name in left if not name.startswith("mgpu.db")]:
        fail(f"written, though the run failed: {others}")
    if "mgpu.db" in left:
        subprocess.run([tune, "db", "verify", f"{folder}/mgpu.db"], check=True, stdout=subprocess.DEVNULL)


def is_running(pid):
    """A process that has ended may be there until it is waited for."""
    try:
        return b") Z " not in read(f"/proc/{pid}/stat")
    except OSError:
        return False


def end_mpirun(process, pids):
    """mpirun ends once its ranks have; PMIx may lock itself out then (PMIx_server_finalize), which is no fault of theirs."""
    for patience in (600, 50):
        for _ in range(patience):
            if process.poll() is not None:
                return
            if patience == 600 and not any(is_running(pid) for pid in pids):
                break
            time.sleep(0.1)
    process.kill()


def harm_once(launcher, ranks, tune, bundle, folder, rng, tunes):
    """Harms one rank of a run that would take for ever, or of a search. All others have to end, and to name it."""
    for name in os.listdir(folder):
        if not name.startswith("mgpu.db"):
            os.remove(f"{folder}/{name}")
    shared = ["--distributed", "--deadline", str(DEADLINE)]
    if tunes:  # one search after the other goes on in the database of those that were harmed
        line = [tune, "tune", bundle, *shared, "--budget", "1000", "--db", f"{folder}/mgpu.db"]
    else:
        line = replay_line(tune, bundle, folder, *shared, "--repeat", "5000000")
    processes = start(launcher, ranks, line)
    how = rng.choice([signal.SIGKILL, signal.SIGSTOP])
    time.sleep(rng.uniform(0.05, 1.0))
    pids = ranks_of(tune, processes)
    for _ in range(100):
        if len(pids) == ranks:
            break
        time.sleep(0.05)
        pids = ranks_of(tune, processes)
    if len(pids) != ranks:
        fail(f"{len(pids)} of {ranks} ranks are there")
    victim = rng.randrange(ranks)
    os.kill(pids[victim], how)
    began = time.monotonic()
    survivors = [p for p in processes if p.pid != pids[victim]]
    if launcher != "tcp":
        end_mpirun(processes[0], pids)
    done = finish(survivors, 60)
    took = time.monotonic() - began
    if launcher == "tcp":
        os.kill(pids[victim], signal.SIGKILL)
        finish([p for p in processes if p.pid == pids[victim]])
    for code, out, err in done:
        words = err + out
        if code == 0 or not re.search(rf"rank:?\s+{victim}\b|process {victim}\b", words, re.I):
            if launcher == "tcp" or how == signal.SIGSTOP or code == 0:
                fail(f"rank {victim} got signal {how.name}; exit code {code} and no word of it:\n{words}")
    if took > 3 * DEADLINE + 10:
        fail(f"it took {took:.1f} s until all had ended")
    time.sleep(0.2)
    for pid in pids:
        if launcher != "tcp" and is_running(pid):
            fail(f"process {pid} is left")
    check_left(tune, folder)


def harm(launcher, ranks, tune, bundle):
    os.environ["MGPU_TEST_RUN"] = str(os.getpid())
    rng = random.Random(1)
    count = 100 if ALL else 3
    with tempfile.TemporaryDirectory() as folder:
        for number in range(count):
            harm_once(launcher, ranks, tune, bundle, folder, rng, number % 3 == 1)
    print(f"{count} ranks were harmed, and all others ended and said so")


def forge_program(tune, folder, old, new):
    """A copy of the program with other words in it."""
    path = f"{folder}/forged"
    if old not in (program := read(tune)):
        fail(f"the program does not hold {old}")
    with open(path, "wb") as file:
        file.write(program.replace(old, new))
    os.chmod(path, 0o755)
    return path


def forge_words(port, old, new):
    """A port that leads to this one, but that words which come back from there are others."""
    listening = socket.create_server(("127.0.0.1", 0))

    def pass_on(source, sink):
        try:
            while words := source.recv(1 << 16):
                sink.sendall(words.replace(old, new))
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def serve():
        guest, _ = listening.accept()
        for _ in range(200):
            try:
                host = socket.create_connection(("127.0.0.1", port))
                break
            except OSError:
                time.sleep(0.05)
        else:
            return
        threading.Thread(target=pass_on, args=(guest, host), daemon=True).start()
        pass_on(host, guest)

    threading.Thread(target=serve, daemon=True).start()
    return listening.getsockname()[1]


def expect_refusal(lines, words, sizes=None, forged_words=None):
    """Ranks with lines of their own: each ends with these words. `forged_words` are changed on their way to rank 1."""
    port, processes = free_port(), []
    for rank, line in enumerate(lines):
        reached = forge_words(port, *forged_words) if forged_words and rank == 1 else port
        env = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(reached), "RANK": str(rank),
               "WORLD_SIZE": str(sizes[rank] if sizes else len(lines))}
        processes.append(subprocess.Popen(line, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    for rank, (code, out, err) in enumerate(finish(processes)):
        if code == 0 or words not in err:
            fail(f"rank {rank}: exit code {code}, and not '{words}':\n{err}{out}")


def forged(tune, bundle, examples):
    with tempfile.TemporaryDirectory() as folder:
        good = replay_line(tune, bundle, folder, "--distributed", "--deadline", "5")
        expect_refusal([good, good], "rank 0 is one of 2 ranks, and rank 1 one of 3", [2, 3])
        missing = [word if word != "b=random:2" else f"b={folder}/none.npy" for word in good]
        expect_refusal([missing, good], "none.npy")
        other = [*good, "--db"]
        expect_refusal([[*other, f"{folder}/a.db"], [*other, f"{folder}/b.db"]], "rank 1 has another database than rank 0")
        expect_refusal([good, good], "rank 1 has another plan than rank 0", forged_words=(b'scheduler "list"', b'scheduler "lost"'))
        said = subprocess.run([tune, "--version"], check=True, capture_output=True, text=True).stdout
        commit = re.search(r"commit (\w+)", said).group(1).encode()
        with tempfile.TemporaryDirectory() as other_folder:
            forged_version = forge_program(working_program(tune), other_folder, commit, commit[1:] + commit[:1])
            expect_refusal([good, [forged_version, *good[1:]]], "rank 1 has another version than rank 0")
        alone = {key: value for key, value in os.environ.items() if key not in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")}
        done = subprocess.run(good, env=alone, capture_output=True, text=True)
        if done.returncode != 2 or "nothing says which of several processes" not in done.stderr:
            fail(f"exit code {done.returncode}: {done.stderr}")
        done = subprocess.run([*good[:-3], "--distributed=openmpi"], env={**alone, "MGPU_MPI_PLUGIN": f"{folder}/none.so"},
                              capture_output=True, text=True)
        if done.returncode != 3 or "no plug-in for openmpi" not in done.stderr:
            fail(f"exit code {done.returncode}: {done.stderr}")
        if examples:
            saxpy = [tune, "run", f"{examples}/saxpy/saxpy.mlir", "--arg", "x=1", "--arg", "y=1", "--distributed", "--arg"]
            expect_refusal([[*saxpy, "a=2"], [*saxpy, "a=2"], [*saxpy, "a=3"]], "rank 2 has another program than rank 0")
        if os.listdir(folder):
            fail(f"written, though the run failed: {os.listdir(folder)}")
    print("forged ranks are refused by all")


def gpus(launcher, ranks, tune, source, libraries):
    """GPUs of one machine and of two, as processes that share no memory see them."""
    with tempfile.TemporaryDirectory() as folder:
        use_doubles(folder, libraries)
        ops = [tune, "run", f"{source}/examples/ops/ops.mlir", "--no-tuned", "--arg", "a=iota", "--arg", "b=random:3"]
        names = ["gathered", "maximum", "product", "chained", "uneven"]

        def outs(place):
            os.mkdir(f"{folder}/{place}")
            return [word for name in names for word in ("--out", f"{name}={folder}/{place}/{name}.npy")]

        def said(line, count=ranks):
            forget_world(folder)
            return finish(start(launcher, count, line))

        subprocess.run([*ops, "--target", "host:4", *outs("host")], check=True, stdout=subprocess.DEVNULL)
        rank = "${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-$RANK}}"
        on = ["sh", "-c", f'MGPU_NODE=node$(({rank} % $NODES)) exec "$@"', "-"]
        for nodes, target, count in (("1", "cuda", ranks), ("2", "cuda:2,0", ranks), ("1", "cuda", 3), ("2", "cuda:1,3", 2)):
            os.environ["NODES"] = nodes
            place = f"{nodes} nodes, {count} processes"
            done = said([*on, *ops, "--distributed", "--target", target, "--repeat", "3", "--json", *outs(place)], count)
            if any(code != 0 for code, _, _ in done):
                fail(f"on {place}: {done}")
            if "".join(out for _, out, _ in done).count(f"shared with {count - 1} other process") != 1:
                fail(f"one rank alone speaks, but this was printed: {done}")
            for name in names:
                if read(f"{folder}/host/{name}.npy") != read(f"{folder}/{place}/{name}.npy"):
                    fail(f"{name} of GPUs on {place} differs from the host's")
        check_rules(folder)
        other = f'test {rank} = 1 && export MGPU_REHEARSAL_NCCL=22708; exec "$@"'
        for line, words, count in (
                ([*ops, "--target", "cuda"], "start as many or fewer", ranks + 1),
                ([*ops, "--target", "cuda:0/4"], "GPUs of several processes are one for each", ranks),
                ([*ops, "--target", "cuda:0,1"], "name more, or start fewer processes there", ranks),
                (["sh", "-c", other, "-", *ops, "--target", "cuda"], "rank 1 has another NCCL than rank 0", ranks)):
            done = said([*line, "--distributed", "--deadline", "10"], count)
            if any(code == 0 for code, _, _ in done) or words not in "".join(err for _, _, err in done):
                fail(f"not '{words}': {done}")
        if launcher == "tcp":
            forget_world(folder)
            processes = start(launcher, ranks, [*ops, "--distributed", "--target", "cuda", "--deadline", "10", "--repeat", "5000000"])
            time.sleep(3)
            os.kill(processes[2].pid, signal.SIGSTOP)
            done = finish([process for process in processes if process is not processes[2]])
            processes[2].kill()
            if any(code == 0 or "rank 2" not in err for code, _, err in done):
                fail(f"rank 2 stands still, and this is said: {done}")
        print(f"GPUs that are not there give the bits of the host to {ranks} processes by {launcher}")


def use_doubles(folder, libraries):
    os.environ.update({"LD_LIBRARY_PATH": libraries, "MGPU_REHEARSAL": folder, "MGPU_REHEARSAL_GPUS": "4",
                       "MGPU_REHEARSAL_WORLD": f"{folder}/world", "MGPU_DB": f"{folder}/db"})


def forget_world(folder):
    """What the ranks of NCCL's double met in."""
    if os.path.exists(f"{folder}/world"):
        os.remove(f"{folder}/world")


def check_rules(folder, keeps=False):
    """`keeps`: programs of several processes leave their memory to the process when they are closed (docs/limits.md)."""
    if os.path.exists(f"{folder}/violations"):
        with open(f"{folder}/violations", encoding="utf-8") as file:
            broken = [line for line in file if not keeps or ": left behind: " not in line]
        if broken:
            fail(f"rules of CUDA's that were broken:\n{''.join(broken)}")


def embed_gpus(launcher, ranks, tune, source, libraries, *program):
    with tempfile.TemporaryDirectory() as folder:
        use_doubles(folder, libraries)
        bundle = f"{folder}/ops.mgpu"
        subprocess.run([tune, "bundle", f"{source}/examples/ops/ops.mlir", "--arch", "sm_90", "-o", bundle], check=True,
                       stdout=subprocess.DEVNULL)
        os.environ["NCCL_GRAPH_MIXING_SUPPORT"] = "0"
        for target, count in (("cuda", ranks), ("cuda:3,1,0,2", ranks // 2)):
            forget_world(folder)
            os.environ["MGPU_TEST_TARGET"] = target
            print(f"{target} in {count} processes by {launcher}:", run(launcher, count, [*program, bundle]), end="")
        check_rules(folder, keeps=True)


SMALLER = [("4194304", "4096"), ("16384", "16"), ("65536", "1024"), ("#few = 256", "#few = 4"),
           ("%rounds = arith.constant 512", "%rounds = arith.constant 8"), ("512x512", "32x32"), ("256x256", "16x16")]


def measure_gpus(launcher, ranks, tune, source, libraries):
    with tempfile.TemporaryDirectory() as folder:
        use_doubles(folder, libraries)
        ops, shared = f"{source}/examples/ops/ops.mlir", ["--distributed", "--target", "cuda", "--deadline", "30"]

        def once(count, line, words):
            forget_world(folder)
            out = run(launcher, count, [tune, *line, *shared])
            if out.count(words) != 1:
                fail(f"{line[0]}: one rank alone speaks, but this was printed:\n{out}")
            return out

        for count in (ranks, ranks // 2) if ALL else (ranks,) if launcher == "tcp" else (ranks // 2,):  # a GPU each, and two
            once(count, ["plan", ops, "-o", f"{folder}/plan"], "written to")
            once(count, ["profile", ops, "--repeat", "3"], "nodes timed by CUDA events")
            out = once(count, ["tune", ops, "--budget", "2"], "coverage")
            if "2 tried" not in out:
                fail(f"nothing was tried:\n{out}")
            once(count, ["run", ops, "--arg", "a=iota", "--arg", "b=random:3", "--json"], '"tuned": true')
        if ALL:
            with open(f"{source}/pipeline/calibrate.mlir", encoding="utf-8") as text:
                program = text.read()
            for old, new in SMALLER:
                program = program.replace(old, new)
            with open(f"{folder}/kernels.mlir", "w", encoding="utf-8") as text:
                text.write(program)
            once(2, ["calibrate", f"{folder}/kernels.mlir", "-o", f"{folder}/node.json"], "24 times of collectives")
            if b'"devices": 2' not in read(f"{folder}/node.json"):
                fail("the calibration is not of two devices")
        check_rules(folder)
        if launcher == "tcp":  # a GPU that faults ends the search on all ranks, and leaves the database whole
            forget_world(folder)
            os.environ["MGPU_REHEARSAL_FAULT"] = "1:100"
            done = finish(start(launcher, ranks, [tune, "tune", ops, "--budget", "50", "--no-pin", *shared]))
            if any(code == 0 or "rank 1" not in err for code, _, err in done):
                fail(f"GPU 1 faults, and this is said: {done}")
            subprocess.run([tune, "db", "verify", f"{folder}/db"], check=True, stdout=subprocess.DEVNULL)
            del os.environ["MGPU_REHEARSAL_FAULT"]
            stray = read(f"{source}/tests/lit/run/guard.mlir").decode()  # on rank 1, which alone can see it
            for old, new in (("numDevices = 1", "numDevices = 2"), ("get_device %c0 ", "get_device %c1 ")):
                stray = stray.replace(old, new)
            with open(f"{folder}/stray.mlir", "w", encoding="utf-8") as file:
                file.write(stray)
            forget_world(folder)
            done = finish(start(launcher, 2, [tune, "tune", f"{folder}/stray.mlir", "--arg", "at=70", *shared]))
            if any(code == 0 or "wrote outside of its buffers, 24 bytes after buffer 'a'" not in err for code, _, err in done):
                fail(f"a kernel on rank 1 writes past its buffer, and this is said: {done}")
    print(f"{ranks} processes by {launcher} plan, profile and tune GPUs together")


def lose(ranks, program, bundle):
    for how in ("killed", "late"):
        with tempfile.TemporaryDirectory() as folder:
            done = finish(start("tcp", ranks, [program, bundle, how, os.path.join(folder, "given up")]))
        for rank, (code, out, err) in enumerate(done):
            if code != (-signal.SIGKILL if (rank, how) == (1, "killed") else 0):
                fail(f"rank 1 is {how}, and rank {rank} ends with {code}:\n{out}{err}")
            print(out, end="")


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    what, words = sys.argv[1], sys.argv[2:]
    if what == "forged":
        return forged(words[0], words[1], words[2] if len(words) > 2 else None)
    if what == "lose":
        return lose(int(words[0]), words[1], words[2])
    launcher, ranks = words[0], int(words[1])
    if launcher == "none":
        print("skipped: no MPI was found when this was built")
        sys.exit(SKIPPED)
    if what == "embed":
        print(run(launcher, ranks, words[2:]), end="")
    elif what == "embed-gpus":
        embed_gpus(launcher, ranks, *words[2:])
    elif what == "measure-gpus":
        measure_gpus(launcher, ranks, *words[2:])
    elif what == "gpus":
        gpus(launcher, ranks, *words[2:])
    elif what == "cases":
        print(run(launcher, ranks, [words[2], words[3], "tcp" if launcher == "tcp" else "auto"]), end="")
    else:
        {"replay": replay, "harm": harm, "measure": measure}[what](launcher, ranks, words[2], words[3])


if __name__ == "__main__":
    main()
