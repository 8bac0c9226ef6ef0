# SPDX-License-Identifier: Apache-2.0
"""Commands that a page of docs shows, with their outputs."""


def pasted(document):
    """Yields (line number, command, output lines) of every block: an indented line `$ COMMAND`, continued by a
    backslash, and its output, up to a line that is not indented."""
    lines = document.read_text(encoding="utf-8").splitlines()
    for start, line in enumerate(lines):
        if not line.startswith("    $ "):
            continue
        command, end = line[6:], start + 1
        while command.endswith("\\"):
            command, end = command[:-1] + lines[end].strip(), end + 1
        output = []
        while end < len(lines) and lines[end].startswith("    ") and not lines[end].startswith("    $ "):
            output.append(lines[end][4:])
            end += 1
        yield start + 1, command, output
