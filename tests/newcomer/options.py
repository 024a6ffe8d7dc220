#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tables of options and of exit codes in the documents are those of the command.

Usage: options.py MGPU_TUNE DOCUMENT... [--update]

A table stands between `<!-- options of COMMAND -->`, `<!-- options of GROUP * -->` (all subcommands of one),
`<!-- common options -->` or `<!-- exit codes -->`, and `<!-- end -->`. An option that is the same in two
commands or more is in the common table alone, and the tables of its commands end with its name.
"""
import json
import re
import subprocess
import sys

PART = re.compile(r"^<!-- (options of ([\w ]+?)( \*)?|common options|exit codes) -->\n(.*?)^<!-- end -->$", re.M | re.S)


def code(text):
    return "`" + text.replace("|", "\\|") + "`"


def option_row(option):
    """The cells of an option: its name, and its meaning."""
    name = ", ".join(option["names"])
    placeholder = option["placeholder"]
    if placeholder:
        name += placeholder if placeholder.startswith("[") else " " + placeholder
    text = option["help"].replace("|", "\\|")
    if option["required"]:
        text += " (required)"
    elif option["default"]:
        text += f" (default {code(option['default'])})"
    return code(name), text + ("; may be repeated" if option["repeat"] else "")


def table(head, rows):
    return "".join("| " + " | ".join(row) + " |\n" for row in [head] + rows).replace(
        "|\n", "|\n" + "|---" * len(head) + "|\n", 1)


class Options:
    """The options of all commands, those of many told apart."""

    def __init__(self, commands):
        self.commands = commands
        self.rows = {name: [option_row(option) for option in command["options"]] for name, command in commands.items()}
        users = {}
        for name, rows in self.rows.items():
            for row in rows:
                users.setdefault(row, []).append(name)
        self.common = {row: names for row, names in users.items() if len(names) > 1}
        programs = set.intersection(*(set(rows) for name, rows in self.rows.items() if "--schedule" in str(rows)))
        self.usual = {row for row in self.common if row in programs}

    def own(self, name):
        return [row for row in self.rows[name] if row not in self.common]

    def shared(self, name):
        """The names of the common options of a command, those that nearly all have as one word."""
        rows = [row for row in self.rows[name] if row in self.common]
        everywhere = [row for row in rows if row in self.usual]
        names = [code(row[0].split(" ")[0].split("[")[0].strip("`").rstrip(",")) for row in rows
                 if len(everywhere) < len(self.usual) or row not in self.usual]
        return ["the usual ones"] * (len(everywhere) == len(self.usual)) + names

    def of(self, name):
        own, names = self.own(name), self.shared(name)
        rows = own + [("[common ones](#common-options)", ", ".join(names))] * bool(names)
        return table(("option", "meaning"), rows)

    def of_group(self, group):
        names = [name for name in self.rows if name.startswith(group + " ")]
        shared = {}
        for name in names:
            shared.setdefault(", ".join(self.shared(name)), []).append(code(name))
        return table(("command", "option", "meaning"), [(code(name), *row) for name in names for row in self.own(name)]) + \
            "\n[Common options](cli.md#common-options): " + "; ".join(f"of {', '.join(of)} {what}" for what, of in shared.items()) + ".\n"

    def shared_table(self):
        usual = [row for row in self.common if row in self.usual]
        return "The usual ones:\n\n" + table(("option", "meaning"), usual) + "\nOthers:\n\n" + \
            table(("option", "meaning"), [row for row in self.common if row not in self.usual])


def codes_table(codes):
    return table(("code", "meaning"), [(str(each["code"]), each["meaning"]) for each in codes])


def main():
    arguments = [word for word in sys.argv[1:] if word != "--update"]
    if len(arguments) < 2:
        sys.exit(__doc__)
    known = json.loads(subprocess.run([arguments[0], "options"], capture_output=True, check=True).stdout)
    options = Options({command["name"]: command for command in known["commands"] if command["name"]})
    seen, faults = set(), []

    def renew(match):
        title, name, group = match[1], match[2], match[3]
        names = [each for each in options.rows if each == name or (group and each.startswith(f"{name} "))]
        if name and not names:
            faults.append(f"there is no command '{name}'")
            return match[0]
        seen.update(names or [title])
        new = (options.of_group(name) if group else options.of(name) if name
               else options.shared_table() if title == "common options" else codes_table(known["exit_codes"]))
        if new != match[4]:
            faults.append(f"{title} differ")
        return f"<!-- {title} -->\n{new}<!-- end -->"

    for path in arguments[1:]:
        with open(path, encoding="utf-8") as file:
            new = PART.sub(renew, file.read())
        if "--update" in sys.argv:
            with open(path, "w", encoding="utf-8") as file:
                file.write(new)
    wanted = {name for name, rows in options.rows.items() if rows} | {"common options", "exit codes"}
    faults += [f"no table: {name}" for name in sorted(wanted - seen)]
    if "--update" in sys.argv:
        return
    for fault in faults:
        print(f"{fault}; {sys.argv[0]} --update writes them")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
