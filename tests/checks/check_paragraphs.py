#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks how long the paragraphs of README.md and docs/*.md are. A paragraph or an item of a list may
have LIMIT words. Tables, headings and blocks of code do not count."""

import glob
import os
import re
import sys

LIMIT = 80

FENCE = re.compile(r"\s*(`{3,}|~{3,})")
ITEM = re.compile(r"\s*(?:[-*+]|\d+[.)])\s+")
# A table's row, a heading, a rule, or a definition of a link or an image.
ALONE = re.compile(r"\s*\||#{1,6}\s|\s*(?:-{3,}|\*{3,}|_{3,})\s*$|\s*\[[^\]]+\]:\s")


def paragraphs(text):
    """(line, words) of each paragraph and each item of a list. An item ends where another begins."""
    found, fence, is_open = [], None, False
    for number, line in enumerate(text.splitlines(), 1):
        mark = FENCE.match(line)
        if mark or fence:
            if not fence:
                fence = mark[1]
            elif mark and mark[1].startswith(fence) and line.strip() == mark[1]:
                fence = None
            is_open = False
        elif not line.strip() or ALONE.match(line):
            is_open = False
        else:
            item = ITEM.match(line)
            if item or not is_open:
                found.append([number, 0])
            found[-1][1] += len(line[item.end() if item else 0:].split())
            is_open = True
    return [tuple(row) for row in found]


def verdict(found):
    """The paragraphs that are too long, of a list of (line, words) for each file, as sentences."""
    return [f"{path}:{line}: a paragraph of {words} words; say it in at most {LIMIT}, or divide it by headings or a list"
            for path in sorted(found) for line, words in found[path] if words > LIMIT]


def self_test():
    """Texts with the words of their paragraphs, and a verdict for each side of every number."""
    texts = {
        "one two\nthree\n\nfour\n": [3, 1],
        "# A heading\none\n## Another\ntwo three\n": [1, 2],
        "- one two\n  three\n- four\n  - five six\n\n  seven\n1. eight\n2) nine\n": [3, 1, 2, 1, 1, 1],
        "one:\n- two\n* three four\n+ five\n": [1, 1, 2, 1],
        "one\n| a b | c |\n|---|---|\ntwo\n": [1, 1],
        "one\n```\na b\n\n# c\n- d\n```\ntwo\n": [1, 1],
        "````md\n```\na b\n```\n````\none\n": [1],
        "  ```sh\n  a b\n  ```\none\n~~~\n```\na\n~~~\ntwo three\n": [1, 2],
        "**one** two\n-three 4.5 six\n": [5],
        "one\n---\n[a]: https://b.c d\n": [1],
        "": [],
    }
    for text, words in texts.items():
        assert [count for _, count in paragraphs(text)] == words, (text, paragraphs(text))
    assert paragraphs("\na\n\nb\n") == [(2, 1), (4, 1)]
    good, long = (1, LIMIT), (1, LIMIT + 1)
    assert not verdict({"a": [good, good], "b": []})
    assert len(verdict({"a": [good, long], "b": [long, good, long]})) == 3


def main():
    self_test()
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
    names = ["README.md", *sorted(glob.glob("docs/*.md"))]
    if len(names) < 2:
        sys.exit("no file found in docs")
    found = {}
    for name in names:
        with open(name, encoding="utf-8") as file:
            found[name] = paragraphs(file.read())
    faults = verdict(found)
    total = sum(len(rows) for rows in found.values())
    print("\n".join(faults) if faults else
          f"{total} paragraphs in {len(names)} files, none of them of more than {LIMIT} words")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
