# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""exits.py CODE COMMAND...: runs the command, prints what it prints, stderr after stdout.

Fails unless the command exits with CODE and, where that is not 0, says why in one last line on
stderr that starts with "mgpu-tune: error: ". The `not` of LLVM takes any code but 0.
"""

import subprocess
import sys

expected, command = int(sys.argv[1]), sys.argv[2:]
done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
sys.stdout.buffer.write(done.stdout + done.stderr)
if done.returncode != expected:
    sys.exit(f"exit code {done.returncode}, expected {expected}: {' '.join(command)}")
last = done.stderr.decode(errors="replace").rstrip("\n").rpartition("\n")[2]
if expected != 0 and not last.startswith("mgpu-tune: error: "):
    sys.exit(f"no error line of ours at the end of stderr: {' '.join(command)}")
