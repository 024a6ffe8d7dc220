# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""sql.py FILE STATEMENT: runs a statement on an SQLite file."""

import sqlite3
import sys

with sqlite3.connect(sys.argv[1]) as database:
    database.execute(sys.argv[2])
