# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""interrupt.py WORD COMMAND...: interrupts the command as one does with Ctrl-C
once a line of its standard error holds WORD, however long that takes. Fails
unless the command ends with 130."""
import signal
import subprocess
import sys

child = subprocess.Popen(sys.argv[2:], stderr=subprocess.PIPE, text=True)
for line in child.stderr:
    if sys.argv[1] in line:
        child.send_signal(signal.SIGINT)
        break
for line in child.stderr:  # or the pipe fills
    pass
code = child.wait()
sys.exit(f"exit code {code}, expected 130" if code != 130 else 0)
