# SPDX-License-Identifier: Apache-2.0
"""Help, topics, manual pages and completion come from the program's tables. They are compared with the sources of these
tables.
"""
import json
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

from tap import Skip, case, main

SOURCE = Path(__file__).resolve().parents[2]
TOPICS = ("exit-codes", "flags", "keys", "planners", "policies", "environment", "files")


def verbs(weft):
    return re.findall(r"^  (\w+) ", weft.expect(0, "help").split("\n\n")[2], re.M)


def sources_of_verbs():
    """Returns {verb: the text of its row}."""
    rows = {}
    for path in sorted((SOURCE / "cli").rglob("*.c")):
        for row in re.findall(r"^const struct weft_command \w+ = \{.*?^\};", path.read_text(), re.M | re.S):
            rows[re.search(r'\.name = "(\w+)"', row)[1]] = row
    return rows


def flags_of(row):
    listed = re.search(r"\.flags =\s*((?:\s*\"[^\"]*\")+)", row)
    return "".join(re.findall(r'"([^"]*)"', listed[1])).split() if listed else []


@case
def every_flag_of_a_verb_is_in_its_help(weft):
    rows = sources_of_verbs()
    assert len(rows) > 15 and any(flags_of(row) for row in rows.values()), rows.keys()
    for verb in verbs(weft):
        told = weft.expect(0, "help", verb)
        assert f"usage: weft {verb}" in told, told
        for flag in [*flags_of(rows[verb]), "--output", "--json", "--color"]:
            assert re.search(rf"^  (-\w, )?{flag}[ \[\n]", told, re.M), (verb, flag, told)


@case
def every_topic_is_told(weft):
    overview = weft.expect(0, "help")
    for topic in TOPICS:
        assert re.search(rf"^  {topic}  ", overview, re.M), (topic, overview)
        assert weft.expect(0, "help", topic).count("\n") > 4, topic
    header = (SOURCE / "include/weft.h").read_text()
    statuses = re.findall(r"^    X\(\w+, (\d+), \"(.*?)\"\)", header, re.M)
    told = weft.expect(0, "help", "exit-codes")
    assert len(statuses) > 10
    for code, text in statuses:
        assert re.search(rf"^  {code} +{text}$", told, re.M), (code, text, told)
    listed = re.search(r'define WEFT_PLANNER_NAMES((?:\s*\\?\s*"[^"]*")+)', (SOURCE / "scheduler/planners/names.h").read_text())
    planners = "".join(re.findall(r'"([^"]*)"', listed[1])).split(", ")
    told = weft.expect(0, "help", "planners")
    assert "ilp" in planners and len(planners) > 15
    for planner in planners:
        assert re.search(rf"^  {planner}  ", told, re.M), (planner, told)
    told = weft.expect(0, "help", "policies")
    for name in ("dp", "zero1", "sdp", "fsdp", "FULL_SHARD", "zero2"):
        assert re.search(rf"\b{name}\b", told), (name, told)
    told = weft.expect(0, "help", "flags")
    assert re.search(r"^  -j, --jobs N\n.*of\s+sweep,\s+study,\s+best$", told, re.M), told


@case
def every_key_is_told_with_its_value(weft):
    told = weft.expect(0, "help", "keys")
    reference = (SOURCE / "docs/keys.md").read_text()
    paths = set()
    for path, table in re.findall(r"^## (\S+)\n(.*?)(?=^## |\Z)", reference, re.M | re.S):
        table = table.split("\n| type |")[0]
        keys = re.findall(r"^\| `(\w+)` \| (?!an object|an array|not in this|.*file that holds)", table,
                          re.M)
        paths |= {key if path == "config" else f"{path}.{key}" for key in keys}
    assert len(paths) > 80, paths
    for path in paths:
        assert f"\n  {path}\n" in told, path
    steps = weft.expect(0, "help", "train.steps")
    assert re.search(r"train\.steps\n +training steps: an integer; 1 to \d+; default 100\n", steps), steps
    section = weft.expect(0, "help", "train.checkpoint.")
    assert "train.checkpoint.every" in section and "train.steps" not in section, section


@case
def what_is_not_there_is_told(weft):
    weft.expect(64, "help", "exit-code", says="did you mean exit-codes?")
    weft.expect(64, "help", "paln", says="did you mean plan?")
    weft.expect(64, "help", "train.nothing", says="no such verb, topic or key")
    weft.expect(64, "completion", "csh", says=["csh", "fish", "bash", "zsh"])
    weft.expect(64, "man", "paln", says="no such verb")
    weft.expect(64, "profile", says="usage: weft profile CONFIG [flags]")
    weft.expect(64, "plan", "x.json", "--color=red", says="one of auto|always|never")


@case
def help_is_a_document_with_json(weft):
    for arguments in ((), ("plan",), ("planners",), ("train.steps",)):
        text = json.loads(weft.expect(0, "help", *arguments, "--json"))["text"]
        assert len(text) > 40, text


@case
def every_verb_has_a_manual_page(weft):
    pages = {verb: weft.expect(0, "man", verb) for verb in verbs(weft)}
    pages["weft"] = weft.expect(0, "man")
    rows = sources_of_verbs()
    for verb, page in pages.items():
        for heading in ("NAME", "SYNOPSIS", "DESCRIPTION"):
            assert f".SH {heading}\n" in page, (verb, heading)
        for flag in flags_of(rows.get(verb, "")):
            assert flag.replace("-", "\\-") in page, (verb, flag)
    for heading in ("EXIT STATUS", "ENVIRONMENT", "FILES", "PLANNERS"):
        assert f".SH {heading}\n" in pages["weft"], heading
    if not shutil.which("groff"):
        raise Skip("groff is not installed")
    for verb, page in pages.items():
        done = subprocess.run(["groff", "-man", "-ww", "-z", "-Tutf8"], input=page, text=True,
                              capture_output=True, check=False)
        assert done.returncode == 0 and done.stderr == "", (verb, done.stderr)


# Typed text and its completion, which depend on no file.
COMPLETED = (
    ("weft pla", "plan"), ("weft help exi", "exit-codes"), ("weft help train.ste", "train.steps"),
    ("weft schema met", "metrics"), ("weft completion z", "zsh"),
    ("weft plan --mem", "--memory-limit"), ("weft generate --no-", "--no-cache"),
    ("weft plan --planner fsdp2-m", "fsdp2-mix"), ("weft plan --color=al", "always"),
    ("weft train --resume=if", "if-any"), ("weft sweep --to a", "all"),
    ("weft train --set train.step", "train.steps="), ("weft check some-f", "some-file.json"),
    ("weft plan -o some-f", "some-file.json"), ("weft plan gpt2-me", "gpt2-medium"), ("weft train --run some-d", "some-directory"),
    ("weft plan --model gpt2-me", "gpt2-medium"), ("weft best --cluster t4-16-10g", "t4-16-10gbe"),
)


def prepare(weft):
    weft.write("some-file.json", "{}")
    os.mkdir(weft.path("some-directory"))


@case
def bash_completes(weft):
    if not shutil.which("bash"):
        raise Skip("bash is not installed")
    prepare(weft)
    weft.write("weft.bash", weft.expect(0, "completion", "bash"))
    for typed, wanted in COMPLETED:
        words = [word for word in re.split(r"(=)| ", typed) if word]
        script = ('source ./weft.bash; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _weft; '
                  'printf "%s\\n" "${COMPREPLY[@]}"')
        done = subprocess.run(["bash", "--norc", "-c", script, "bash", *words], text=True,
                              capture_output=True, check=False, cwd=weft.directory)
        assert done.stdout.split() == [wanted] and not done.stderr, (typed, done.stdout, done.stderr)


class Shell:
    """An interactive zsh on a terminal."""

    def __init__(self, directory):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(directory)
            os.environ.update(TERM="dumb", HOME=str(directory))
            os.execvp("zsh", ["zsh", "-f", "-i"])
        self.shown = ""

    def type(self, text, until):
        """Types, and returns the output once it matches the pattern."""
        self.shown = ""
        os.write(self.fd, text.encode())
        end = time.monotonic() + 60
        while not re.search(until, self.shown):
            assert time.monotonic() < end, (text, until, self.shown)
            if select.select([self.fd], [], [], 1)[0]:
                self.shown += os.read(self.fd, 65536).decode("utf-8", "replace")
                self.shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.shown)
        return self.shown

    def close(self):
        os.close(self.fd)
        os.waitpid(self.pid, 0)


@case
def zsh_completes(weft):
    if not shutil.which("zsh"):
        raise Skip("zsh is not installed")
    prepare(weft)
    weft.write("_weft", weft.expect(0, "completion", "zsh"))
    shell = Shell(weft.directory)
    try:
        # The prompt is written in two parts, so its echo does not match.
        shell.type("autoload -U compinit; compinit -u -D; source ./_weft; unsetopt beep; "
                   "PS1='rea''dy> '\n", "ready> $")
        for typed, wanted in COMPLETED:
            whole = re.escape(typed[:max(typed.rfind(" "), typed.rfind("=")) + 1] + wanted)
            shell.type(typed + "\t", whole)
            shell.type("\x15\n", "ready> $")
    finally:
        shell.close()


@case
def fish_completes(weft):
    if not shutil.which("fish"):
        raise Skip("fish is not installed")
    prepare(weft)
    weft.write("weft.fish", weft.expect(0, "completion", "fish"))
    for typed, wanted in (("weft pla", "plan"), ("weft plan --mem", "--memory-limit"),
                          ("weft plan --planner fsdp2-m", "fsdp2-mix"), ("weft plan -o some-f", "some-file.json"),
                          ("weft train --run some-d", "some-directory/"), ("weft plan gpt2-me", "gpt2-medium"),
                          ("weft plan --model gpt2-me", "gpt2-medium"), ("weft best --cluster t4-16-10g", "t4-16-10gbe")):
        done = subprocess.run(["fish", "--no-config", "-c", f"source weft.fish; complete -C '{typed}'"], text=True,
                              capture_output=True, check=False, cwd=weft.directory, stdin=subprocess.DEVNULL,
                              timeout=30, env={**os.environ, "HOME": str(weft.directory)})
        offered = [line.split("\t")[0] for line in done.stdout.splitlines()]
        assert offered == [wanted] and not done.stderr, (typed, offered, done.stderr)


main(sys.argv[1])
