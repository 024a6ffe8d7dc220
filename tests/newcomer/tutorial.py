#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the documents show is what the command answers.

Usage: tutorial.py MGPU_TUNE SOURCE_DIR [--update] DOCUMENT...

A fenced block whose first line is `// NAME.mlir` is a file. In a block that has lines with `$ `,
each is a command, and what follows it is the whole of its answer. All blocks of a document run in
its order, in one folder with a link to examples/. In an answer, a number before ns, us, ms or s is
any number, for commands that measure; `...` is any text, and alone on a line any lines. A block
marked `text` is a sample: each command must end well, or say that a library is not here, and each line that is shown must be there, by
its first word; others may be there, and times and verdicts are what they are.
With --update the answers of commands that measure nothing are written anew, but those with `...`.
"""
import os
import re
import subprocess
import sys
import tempfile

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
NAMED = re.compile(r"^(?://|#) (\w[\w.-]*\.(?:mlir|py|json|c))\n")
MEASURES = re.compile(r"mgpu-tune (run|replay|tune|compare|profile|report|db|calibrate)\b")
TIME = re.compile(r"\b\d[\d.]*(?:e[+-]?\d+)? (?:ns|us|ms|s)\b")


def pattern(answer, measures):
    """A regular expression for an answer as it is written down."""
    out = ""
    for line in answer.splitlines():
        if line.strip() == "...":
            out += r"(?:[^\n]*\n)*?"
            continue
        parts = []
        for words in line.split("..."):
            words = TIME.sub("\0", words) if measures else words
            parts.append(re.sub(r"(?:\\ )+", " +", re.escape(words)).replace("\0", r"[\d.]+ (?:ns|us|ms|s)"))
        out += r"[^\n]*".join(parts) + r" *\n"
    return out


def commands(block):
    """(command, answer) of each; a command goes on where its line ends with a backslash."""
    for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
        typed = re.match(r"(?:[^\n]*\\\n)*[^\n]*\n", part)[0]
        yield typed.rstrip("\n"), part[len(typed):]


class Document:
    def __init__(self, path, environment, source):
        self.path, self.environment, self.source = path, environment, source
        with open(path, encoding="utf-8") as file:
            self.text = file.read()
        self.count, self.faults = 0, []

    def run(self, command, folder):
        done = subprocess.run(["sh", "-c", f"exec 2>&1\n{command}"], cwd=folder, env=self.environment,
                              stdout=subprocess.PIPE, timeout=300)
        return done.stdout.decode(errors="replace"), done.returncode

    def sample(self, block, folder):
        for command, answer in commands(block):
            self.count += 1
            found, code = self.run(command, folder)
            if code == 3:  # a library is not here
                continue
            words = {line.split()[0] for line in found.splitlines() if line.strip()}
            if words & {"use", "keep"}:  # what tune decides depends on the machine
                words |= {"use", "keep"}
            lost = [line for line in answer.splitlines() if line.strip() and line.split()[0] not in words]
            if code or lost:
                self.faults.append(f"{os.path.basename(self.path)}: $ {command}\nends with {code} and lacks "
                                   f"{lost}:\n{found}")

    def check(self, folder, update):
        os.symlink(os.path.join(self.source, "examples"), os.path.join(folder, "examples"))
        for language, block in FENCE.findall(self.text):
            name = NAMED.match(block)
            if name:
                with open(os.path.join(folder, name[1]), "w", encoding="utf-8") as file:
                    file.write(block)
            if language == "text":
                self.sample(block, folder)
            if language or not re.search(r"^\$ ", block, re.M):
                continue
            new = ""
            for command, answer in commands(block):
                self.count += 1
                found, _ = self.run(command, folder)
                wanted = pattern(answer, MEASURES.search(command))
                fits = re.fullmatch(wanted, found)
                if not fits:
                    self.faults.append(f"{os.path.basename(self.path)}: $ {command}\nis said to answer\n{answer}"
                                       f"and answers\n{found}")
                keep = fits or "..." in answer
                new += f"$ {command}\n" + (answer if keep else found)
            if update:
                self.text = self.text.replace(block, new, 1)
        if update:
            with open(self.path, "w", encoding="utf-8") as file:
                file.write(self.text)


def main():
    words = [word for word in sys.argv[1:] if word != "--update"]
    if len(words) < 3:
        sys.exit(__doc__)
    tune, source = map(os.path.realpath, words[:2])
    count, faults = 0, []
    for path in words[2:]:
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as home:
            environment = {**os.environ, "PATH": os.path.dirname(tune) + ":" + os.environ["PATH"], "HOME": home,
                           "XDG_CACHE_HOME": home, "XDG_STATE_HOME": home}
            for name in ("MGPU_DB", "MGPU_DB_SITE"):
                environment.pop(name, None)
            document = Document(os.path.join(source, path), environment, source)
            document.check(folder, "--update" in sys.argv)
        if not document.count:
            faults.append(f"{path}: shows no command")
        count += document.count
        faults += document.faults
    print("\n".join(faults) if faults else f"{count} commands answer as the documents say")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
