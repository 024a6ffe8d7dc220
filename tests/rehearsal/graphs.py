#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Graphs built in Python on GPUs that are not there: their CUDA C++ over the doubles of CUDA's
libraries gives what their C++ for the host does. One is examples/embed/step.py, opened as it is and
as a bundle, the others are random.

Usage: graphs.py LIBMGT SOURCE_DIR LIBRARIES
"""

import os
import subprocess
import sys
import tempfile

CHECK = """
def results(program):
    values = program(x=range(16), y=[3] * 16)["sum"].tolist()
    assert [time.name for time in program.times()].count("all_reduce_6") == 1
    return values

expected = results(g.open("host:2"))
assert expected == [float(2 * k + 14) for k in range(8)], expected
assert results(g.open("cuda:0/2")) == expected
try:
    g.open("cuda:0,1")
    raise SystemExit("several GPUs take a bundle")
except mgpu.UnsupportedError as error:
    assert "save the program with their architecture" in str(error), error
g.save(FILE, arch="sm_90", cpu="none")
for target in ("cuda:1/2", "cuda:3,1"):
    with mgpu.load(FILE, target) as program:
        assert program(x=range(16), y=[3] * 16)["sum"].tolist() == expected, target
"""


def main():
    library, source, libraries = sys.argv[1:]
    package = os.path.join(source, "pipeline/c/python")
    with open(os.path.join(source, "examples/embed/step.py"), encoding="utf-8") as file:
        text = file.read().split("program = ")[0]
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "LD_LIBRARY_PATH": libraries, "MGPU_REHEARSAL": folder, "MGPU_REHEARSAL_GPUS": "4",
                       "MGPU_DB": os.path.join(folder, "db"), "NCCL_GRAPH_MIXING_SUPPORT": "0", "MGPU_LIBRARY": library, "PYTHONPATH": package}
        # Ends without the double's list of what is left: under load its table of contexts was once found
        # damaged there, and the walk over it did not end.
        end = "\nimport os, sys\nsys.stdout.flush()\nos._exit(0)\n"
        program = text + f"FILE = {os.path.join(folder, 'step.mgpu')!r}\n" + CHECK + end
        script = os.path.join(source, "tests/embed/random_graphs.py")
        random = f"import runpy, sys\nsys.argv = [{script!r}, '8', '100', 'cuda:0/{{}}']\nrunpy.run_path({script!r}, run_name='__main__')" + end
        for words in (["-c", program], ["-c", random]):
            done = subprocess.run([sys.executable, *words], env=environment, capture_output=True, text=True)
            if done.returncode != 0:
                sys.exit(f"exit code {done.returncode}\n{done.stdout}{done.stderr}")
    print("graphs on GPUs' doubles give what they give on the host")


if __name__ == "__main__":
    main()
