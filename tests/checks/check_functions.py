#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks how long the C++ functions outside tests/ are. None may have more than LIMIT lines, but
for those in LONGER, and the number of those with more than LONG lines may only fall."""

import os
import re
import subprocess
import sys

LIMIT = 120
LONG = 70
# How many functions have more than LONG lines. Lower it when the check says so; never raise it.
ALLOWED = 0
# Functions that are longer than LIMIT; the list may only get shorter.
LONGER = set()
EXEMPT = ("tests/", "third_party/")

# What is not code, in the order in which it is recognised.
NOT_CODE = re.compile(r"""
    //[^\n]*(?:\\\n[^\n]*)*                        # a comment to the end of the line
  | /\*.*?\*/                                      # a comment
  | (?:u8|[uUL])?R"(?P<mark>[^()\\\s]*)\(.*?\)(?P=mark)"   # a raw string
  | "(?:\\.|[^"\\\n])*"                            # a string
  | (?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'            # a character, not a separator of digits
  | ^[ \t]*\#[^\n]*?(?:\\\n[^\n]*?)*$              # a line of the preprocessor
""", re.M | re.S | re.X)
TYPE = re.compile(r"\b(class|struct|union|enum)\b")


def code_of(text):
    """The text with all that is not code made blank; the lines stay where they are."""
    def blank(match):
        piece = match.group(0)
        # A literal stays an operand: a '0', then spaces.
        return ("0" if piece[0] in "\"'uULR" else "") + re.sub(r"[^\n]", " ", piece)[piece[0] in "\"'uULR":]
    return NOT_CODE.sub(blank, text)


def without_template(head):
    """The head of a declaration without `template <...>` before it."""
    while match := re.match(r"\s*template\s*<", head):
        at, depth = match.end(), 1
        while at < len(head) and depth:
            depth += {"<": 1, ">": -1}.get(head[at], 0)
            at += 1
        head = head[at:]
    return head


def kind_of(head):
    """What a brace opens after this head, outside any function: "scope", "function" or "value"."""
    plain = without_template(re.sub(r"\[\[[^\]]*\]\]", " ", head)).strip()
    if re.match(r"(inline\s+)?namespace\b|extern\s+0?\s*$", plain):
        return "scope"
    if plain.count("(") > plain.count(")"):  # a default argument, for example
        return "value"
    outside = plain
    while (shorter := re.sub(r"\([^()]*\)", "()", outside.replace("()", "\0"))) != outside.replace("()", "\0"):
        outside = shorter
    outside = re.sub(r"operator\s*(==|!=|<=>|<=|>=|[-+*/%&|^]=|=)", "operator", outside.replace("\0", "()"))
    if re.search(r"(?<![=!<>])=(?!=)", outside):
        return "value"
    if TYPE.search(plain) and "(" not in re.sub(r"\b(alignas|__attribute__)\s*\(\)", "", outside):
        return "scope"
    if "(" not in outside:
        return "value"  # int x{3}
    # Behind the colon of a constructor, a brace that follows a name is a member's value.
    if re.search(r"\)[^()?]*(?<!:):(?!:)", outside) and re.search(r"[\w>]$", plain):
        return "value"
    return "function"


def functions(path, text):
    """(line, lines, head) of each function; those inside another one count with it."""
    code = code_of(text)
    found, scopes = [], []  # scopes: kind, where the head begins
    begin = 0               # of the declaration that is being read
    for match in re.finditer(r"[{};]|\b(?:public|protected|private)\s*:", code):
        token, at = match.group(0), match.start()
        inside = scopes[-1][0] if scopes else "scope"
        if token == "{":
            kind = kind_of(code[begin:at]) if inside == "scope" else "block"
            scopes.append((kind, begin, at))
        elif token == "}":
            if not scopes:
                raise ValueError(f"{path}:{code.count(chr(10), 0, at) + 1}: a brace is closed that was not opened")
            kind, head, opened = scopes.pop()
            if kind == "function":
                declaration = code[head:opened]
                start = head + declaration.rfind(without_template(declaration)) if "template" in declaration else head
                start += len(code[start:opened]) - len(code[start:opened].lstrip())
                first, last = code.count("\n", 0, start) + 1, code.count("\n", 0, at) + 1
                found.append((first, last - first + 1, " ".join(code[start:opened].split())))
            if kind != "value" and inside != "block":
                begin = match.end()
            if kind == "value":
                continue  # the declaration goes on
        if inside == "scope" and token != "}" and not (token == "{" and scopes[-1][0] == "value"):
            if token != ";" or code.count("(", begin, at) <= code.count(")", begin, at):
                begin = match.end()
    if scopes:
        line = code.count("\n", 0, scopes[-1][2]) + 1
        raise ValueError(f"{path}:{line}: a brace is not closed")
    return found


def self_test():
    """Functions that the check must find, with their lengths, and texts in which it must find none."""
    body = " {\n  if (x) {\n    y();\n  }\n}\n"  # five lines
    good = {
        "void f()" + body: [5],
        "int f(int a,\n      int b) const noexcept" + body: [6],
        "template <typename T = std::vector<int>>\nstatic auto f(T x) -> T" + body: [5],
        "namespace a::b {\nnamespace {\nvoid f()" + body + "}\nvoid g()" + body + "}\n": [5, 5],
        "class A final : public B<int> {\npublic:\n  A() : x{1}, y(2)" + body + "  int z() { return 1; }\n  int x{1};\n};\n": [5, 1],
        "A::A(int x)\n    : a(x), b{x, {1, 2}} {}\n": [2],
        "bool operator==(A a, B b)" + body: [5],
        "A &A::operator=(const A &)" + body: [5],
        "void f(std::vector<int> x = {}, A b = {1, 2})" + body: [5],
        "void f() {\n  auto g = [&] {\n    h();\n  };\n  for (;;) {\n  }\n}\n": [7],
        "void f() {\n  struct A {\n    void g() {}\n  };\n}\nvoid g() {}\n": [5, 1],
        "void f() {\n  say(\"}\"); // }\n  say('}', '\\'', R\"x(}\n)\")x\"); /* } */\n}\n": [5],
        "#define OPEN {\n#define F(x) \\\n  void x() {\n\nvoid f() {}\n": [1],
        "int million = 1'000'000;\nvoid f() {\n}\n": [2],
        "extern \"C\" {\nvoid f()" + body + "}\n": [5],
        "extern \"C\" int f(void)" + body: [5],
        "[[nodiscard]] int f()" + body: [5],
        "struct A f(struct B b)" + body: [5],
        "enum class E { a, b };\nstruct A {\n  int x = 1;\n};\nvoid f() {}\n": [1],
        "struct A {\n  std::function<int(int)> f = [](int x) {\n    return x;\n  };\n  void g() {}\n};\n": [1],
    }
    none = ["int x = 1;\n", "const int a[] = {1,\n2};\n", "enum E : int { a };\n", "class A;\nvoid f();\n", "A a{1, 2};\n",
            "const std::map<int, int> m = {\n{f(1), 2}};\n", "struct A {\nint f() const;\n} a;\n"]
    for text, lengths in good.items():
        assert [lines for _, lines, _ in functions("good", text)] == lengths, (text, functions("good", text))
    for text in none:
        assert not functions("none", text), (text, functions("none", text))
    for text in ["void f() {\n", "void f() {}\n}\n"]:
        try:
            functions("bad", text)
        except ValueError:
            continue
        raise AssertionError(text)
    # A verdict for each side of every number.
    def of(lines, times=1, name="f"):
        return [("a.cpp", 1, lines, f"void A::{name}(int x)")] * times

    good_ones = [(of(LIMIT) + of(LONG, 9), 1, set()), (of(LIMIT + 1), 1, {("a.cpp", "f")}), (of(LONG + 1, 2), 2, set())]
    bad_ones = [(of(LIMIT + 1), 1, set()), (of(LONG + 1, 2), 1, set()), (of(LONG, 2), 1, set()),
                (of(LIMIT + 1, name="ff"), 1, {("a.cpp", "f")}), (of(LIMIT), 1, {("a.cpp", "f")})]
    for arguments in good_ones:
        assert not verdict(*arguments), arguments
    for arguments in bad_ones:
        assert len(verdict(*arguments)) >= 1, arguments


def verdict(found, allowed, longer):
    """What is wrong with these functions, as sentences."""
    here = os.path.basename(__file__)
    faults, seen = [], set()
    for path, line, lines, head in found:
        if lines <= LIMIT:
            continue
        name = re.search(r"([\w~]+)\s*\(", head)
        key = (path, name.group(1) if name else head)
        seen.add(key)
        if key not in longer:
            faults.append(f"{path}:{line}: {head} has {lines} lines; {LIMIT} are the most that a function may have")
    faults += [f"{path}: {name} has no more than {LIMIT} lines: take it out of LONGER in {here}" for path, name in sorted(longer - seen)]
    long = sorted((row for row in found if row[2] > LONG), key=lambda row: -row[2])
    if len(long) > allowed:
        faults += [f"{path}:{line}: {head} has {lines} lines" for path, line, lines, head in long]
        faults.append(f"{len(long)} functions have more than {LONG} lines, and {allowed} may: split one into steps with names")
    if len(long) < allowed:
        faults.append(f"{len(long)} functions have more than {LONG} lines, and {allowed} may: set ALLOWED in {here} to {len(long)}")
    return faults


def main():
    self_test()
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
    listing = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                             check=True, capture_output=True, text=True).stdout
    files = [f for f in listing.split("\0") if f.endswith((".cpp", ".h", ".c")) and not f.startswith(EXEMPT) and os.path.isfile(f)]
    if not files:
        sys.exit("no source file found")
    found = []
    for path in files:
        with open(path, encoding="utf-8") as file:
            found += [(path, *row) for row in functions(path, file.read())]
    if "--list" in sys.argv[1:]:  # the long ones, the longest first
        for path, line, lines, head in sorted(found, key=lambda row: -row[2]):
            if lines > LONG:
                print(f"{lines:5} {path}:{line}: {head[:80]}")
    faults = verdict(found, ALLOWED, LONGER)
    print("\n".join(faults) if faults else f"{len(found)} functions, {ALLOWED} of them of more than {LONG} lines and {len(LONGER)} of more than {LIMIT}")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
