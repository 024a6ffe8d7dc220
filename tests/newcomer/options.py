#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tables of options and of exit codes in docs/cli.md are those of the command.

Usage: options.py MGPU_TUNE DOCUMENT [--update]

A table stands between `<!-- options of COMMAND -->`, or `<!-- exit codes -->`, and `<!-- end -->`.
"""
import json
import re
import subprocess
import sys

PART = re.compile(r"^<!-- (options of ([\w ]+)|exit codes) -->\n(.*?)^<!-- end -->$", re.M | re.S)


def code(text):
    return "`" + text.replace("|", "\\|") + "`"


def option_row(option):
    name = ", ".join(option["names"])
    placeholder = option["placeholder"]
    if placeholder:
        name += placeholder if placeholder.startswith("[") else " " + placeholder
    text = option["help"].replace("|", "\\|")
    if option["required"]:
        text += " (required)"
    elif option["default"]:
        text += f" (default {code(option['default'])})"
    return f"| {code(name)} | {text}{'; may be repeated' if option['repeat'] else ''} |\n"


def options_table(command):
    return "| option | meaning |\n|---|---|\n" + "".join(map(option_row, command["options"]))


def codes_table(codes):
    return "| code | meaning |\n|---|---|\n" + "".join(f"| {each['code']} | {each['meaning']} |\n" for each in codes)


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    tune, path = sys.argv[1:3]
    known = json.loads(subprocess.run([tune, "options"], capture_output=True, check=True).stdout)
    commands = {command["name"]: command for command in known["commands"]}
    with open(path, encoding="utf-8") as file:
        text = file.read()
    seen, faults = set(), []

    def renew(match):
        name = match[2]
        if name and name not in commands:
            faults.append(f"there is no command '{name}'")
            return match[0]
        seen.add(name)
        table = options_table(commands[name]) if name else codes_table(known["exit_codes"])
        if table != match[3]:
            faults.append(f"{match[1]} differ")
        return f"<!-- {match[1]} -->\n{table}<!-- end -->"

    new = PART.sub(renew, text)
    wanted = {name for name, command in commands.items() if name and command["options"]} | {None}
    faults += [f"no table: {name or 'exit codes'}" for name in sorted(wanted - seen, key=str)]
    if sys.argv[3:] == ["--update"]:
        with open(path, "w", encoding="utf-8") as file:
            file.write(new)
        return
    for fault in faults:
        print(f"{path}: {fault}; {sys.argv[0]} --update writes them")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
