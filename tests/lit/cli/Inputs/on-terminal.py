# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a command on a terminal of so many columns and prints what it wrote there, a line for each rewrite."""

import fcntl
import os
import pty
import struct
import sys
import termios

columns, command = int(sys.argv[1]), sys.argv[2:]
child, terminal = pty.fork()
if child == 0:
    fcntl.ioctl(2, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    os.execvp(command[0], command)
out = b""
try:
    while part := os.read(terminal, 4096):
        out += part
except OSError:  # the terminal's other side is closed
    pass
for line in out.decode().replace("\r\n", "\n").split("\r\033[K")[1:-1]:
    line = line.split("\n")[0]
    assert len(line) < columns, (columns, line)
    print(line)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
