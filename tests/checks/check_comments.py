#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks that no sentence of a comment begins with a word of BEGINNINGS: such a sentence has to be
decoded. A comment says first what a thing is for, in a sentence with a subject and a verb."""

import os
import re
import subprocess
import sys

BEGINNINGS = ("Of", "What of", "Where it")
# These are refused in sources, but not in tests and emitted texts.
IN_SOURCES = ("What", "Those", "As", "The same")
NOT_SOURCES = re.compile(r"tests/|kernels/cuda/\w+Helpers\.cpp$|.*\.py$")
ENDINGS = (".h", ".cpp", ".td", ".py")
# Where a comment begins, with what of it is on the same line. Those in texts that are emitted count.
CXX = re.compile(r"//+!?<? *(?P<text>.*)|^\s*\*+ +(?P<block>.*)")
PYTHON = re.compile(r'(?:^|\s)#+ *(?P<text>.*)|^\s*"""(?P<block>.*)')
BEGINS, BEGINS_IN_SOURCES = (re.compile(rf"(?:^|[.:;!?] )({'|'.join(words)})(?= |$)")
                             for words in (BEGINNINGS, BEGINNINGS + IN_SOURCES))


def beginning_of(line, is_python, is_source=False):
    """The words that a sentence in the line's comment begins with; None if they are allowed."""
    comment = (PYTHON if is_python else CXX).search(line)
    if not comment:
        return None
    found = (BEGINS_IN_SOURCES if is_source else BEGINS).search(comment["text"] if comment["text"] is not None else comment["block"])
    return found and found[1]


def self_test():
    """The check itself, on lines that it must and must not refuse."""
    for words in BEGINNINGS:
        for line in (f"/// {words} the node.", f"int a; ///< Two. {words} them: one.", f" * {words} not", f"// {words}"):
            assert beginning_of(line, False) == words
        for line in (f"A = 1  # {words} B", f'    """{words} B."""'):
            assert beginning_of(line, True) == words
    for line in ("/// Offsets of the node.", "int a; ///< of the node", "// It is where it was.", "return Of(a);"):
        assert not beginning_of(line, False)
    assert not beginning_of("A = 1  # one of B", True)
    for words in IN_SOURCES:
        assert beginning_of(f"/// {words} the node.", False, True) == words
        assert not beginning_of(f"/// {words} the node.", False)


def main():
    self_test()
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                            cwd=root, check=True, capture_output=True, text=True).stdout
    names = [name for name in listed.split("\0")
             if name.endswith(ENDINGS) and os.path.isfile(os.path.join(root, name))]
    if not names:
        sys.exit("no source file found")
    wrong = []
    for name in names:
        with open(os.path.join(root, name), encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if words := beginning_of(line.rstrip("\n"), name.endswith(".py"), not NOT_SOURCES.match(name)):
                    wrong.append(f"{name}:{number}: a sentence begins with '{words}': "
                                 "say first what this is for, with a subject and a verb")
    if wrong:
        sys.exit("\n".join(wrong))
    print(f"the comments of {len(names)} files begin with their subject")


if __name__ == "__main__":
    main()
