# SPDX-License-Identifier: Apache-2.0
"""A terminal of a given size, and the screen that the program's output makes."""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

ESCAPE = re.compile(rb"\x1b\[([0-9;?]*)([A-Za-z])")


class Screen:
    """The written lines, as a terminal shows them."""

    def __init__(self, columns):
        self.columns = columns
        self.cells = []
        self.at = 0
        self.lines = []     # ended lines, without colours
        self.wrapped = []   # ended lines that passed the last column
        self.colours = set()
        self.drawn = []     # lines that were redrawn in place
        self.over = False

    def put(self, character):
        if self.at >= self.columns:
            self.over = True
        self.cells[self.at:self.at + 1] = [character]
        self.at += 1

    def end_line(self):
        line = "".join(self.cells)
        self.lines.append(line)
        if self.over:
            self.wrapped.append(line)
        self.cells, self.at, self.over = [], 0, False

    def feed(self, data):
        """Handles the data; returns an incomplete escape sequence."""
        while data:
            if data[:1] == b"\x1b":
                escape = ESCAPE.match(data)
                if escape is None:
                    return data
                if escape[2] == b"m":
                    self.colours.add(escape[1].decode())
                elif escape[2] == b"K":
                    self.cells[self.at:] = []
                    if self.cells:
                        self.drawn.append("".join(self.cells))
                data = data[escape.end():]
                continue
            length = 1 if data[0] < 0x80 else 2 if data[0] < 0xE0 else 3 if data[0] < 0xF0 else 4
            if len(data) < length:
                return data
            character, data = data[:length], data[length:]
            if character == b"\n":
                self.end_line()
            elif character == b"\r":
                if self.cells and self.over:
                    self.wrapped.append("".join(self.cells))
                self.over, self.at = False, 0
            else:
                self.put(character.decode("utf-8", "replace"))
        return b""

    @property
    def text(self):
        return "\n".join(self.lines + (["".join(self.cells)] if self.cells else []))


def show(weft, *arguments, columns=80, rows=24, env=None, timeout=120):
    """Runs the program on a terminal; returns exit code and screen."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    around = {key: value for key, value in os.environ.items()
              if key not in ("CI", "NO_COLOR", "COLUMNS")}
    process = subprocess.Popen([weft.program, *arguments], cwd=weft.directory, stdin=slave,
                               stdout=slave, stderr=slave, start_new_session=True,
                               env={**around, "TERM": "xterm", **(env or {})})
    os.close(slave)
    screen, left, end = Screen(columns), b"", time.monotonic() + timeout
    try:
        while True:
            ready, _, _ = select.select([master], [], [], max(0, end - time.monotonic()))
            if not ready:
                process.send_signal(signal.SIGKILL)
                raise AssertionError(f"weft {' '.join(arguments)} hung:\n{screen.text}")
            try:
                data = os.read(master, 65536)
            except OSError:  # no process has the terminal open
                break
            if not data:
                break
            left = screen.feed(left + data)
        return process.wait(), screen
    finally:
        os.close(master)
