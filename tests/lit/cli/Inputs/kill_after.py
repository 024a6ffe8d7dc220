# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# kill_after.py WORD COMMAND...: kills the command (SIGKILL) once a line of its standard error
# begins with WORD; fails if none does.
import subprocess
import sys

with subprocess.Popen(sys.argv[2:], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
    found = any(line.startswith(sys.argv[1]) for line in process.stderr)
    process.kill()
    sys.exit(0 if found else "it said nothing of '%s'" % sys.argv[1])
