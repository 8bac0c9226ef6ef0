#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Cures that messages name are followed as they are printed, and must work. Cures of data files are in data.py, of
stopped and longer runs in resume.py.
"""
import json
import re
import shlex
import shutil
import sys
from pathlib import Path

from configs import LICENCE, tiny
from tap import case, main

SOURCE = Path(__file__).resolve().parents[2]


def literals():
    """Returns (file, text) of the string literals of the product, adjacent ones joined."""
    found = []
    for path in sorted(SOURCE.glob("*/**/*.[ch]")):
        if path.relative_to(SOURCE).parts[0] in ("tests", "bench", "examples") or "build" in path.parts[-3]:
            continue
        text = re.sub(r"/\*.*?\*/", "", path.read_text(encoding="utf-8"), flags=re.S)
        for joined in re.findall(r'"(?:[^"\\\n]|\\.)*"(?:\s*(?:PRI\w+\s*)?"(?:[^"\\\n]|\\.)*")*', text):
            parts = re.findall(r'"((?:[^"\\\n]|\\.)*)"', joined)
            found.append((str(path.relative_to(SOURCE)), "".join(parts).replace("\\n", " ")))
    return found


def known_keys():
    keys, section = set(), ""
    for line in (SOURCE / "docs/keys.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            section = line[3:].strip()
        for key in re.findall(r"^\| `(\w+)` \|", line):
            keys.add(key if section == "config" else f"{section}.{key}")
    return keys


@case
def keys_flags_and_verbs_that_messages_name_are_there(weft):
    keys, texts = known_keys(), literals()
    flags = set(re.findall(r'\{"(--[a-z-]+)"', (SOURCE / "cli/flags.c").read_text(encoding="utf-8")))
    flags |= {"--help", "--version", "--flag"}
    verbs = {path.stem for path in (SOURCE / "cli/verbs").glob("*.c")} | {"help", "man", "completion"}
    # Flags of other programs that messages name, and words after the program's name.
    others = {"--ulimit", "--shm-size", "--mpi", "--map-by", "--ntasks-per-node", "--bind"}
    words = {"run", "itself", "checkpoint", "that", "needs", "wrote", "writes", "alone", "can"}
    count = [0, 0, 0]
    for path, text in texts:
        for key in re.findall(r"(?<![\w/.-])((?:train|plan|cluster)(?:\.[a-z_]+)+)(?!\w)", text):
            if re.search(r"\.json$|\.profile$", key) or path.startswith("report/export"):
                continue
            assert key in keys, (path, key)
            count[0] += 1
        if path.startswith("report/html"):
            continue  # names of a style sheet begin alike
        for flag in re.findall(r"(?<![\w-])(--[a-z][a-z-]*[a-z])", text):
            assert flag in flags | others, (path, flag)
            count[1] += 1
        for verb in re.findall(r"`weft ([a-z]+)|: weft ([a-z]+) ", text):
            verb = verb[0] or verb[1]
            assert verb in verbs or verb in words, (path, verb)
            count[2] += 1
    assert count[0] > 250 and count[1] > 300 and count[2] > 20, count


def first_cells():
    """Yields (line, quoted text) of the tables of docs/troubleshooting.md."""
    for number, line in enumerate((SOURCE / "docs/troubleshooting.md").read_text(encoding="utf-8").splitlines(), 1):
        found = re.match(r"\| `([^`]+)` \|", line)
        if found:
            yield number, found[1]


def is_told(quoted, texts):
    """Whether one message has all parts of the text, in their order; conversions stand for "..."."""
    pattern = re.compile(".*".join(re.escape(part) for part in quoted.split("...")))
    return any(pattern.search(text) for text in texts)


@case
def texts_that_the_docs_quote_are_messages(weft):
    texts = [text for _, text in literals()]
    cells = list(first_cells())
    missing = [cell for cell in cells if not is_told(cell[1], texts)]
    assert not missing, missing
    assert len(cells) > 25
    assert not is_told("no plan fits the memory limitt of", texts), "a changed letter is found"


def settings(*pairs):
    return [word for pair in pairs for word in ("--set", pair)]


CHECK = ["check", "run.json"]
PLAN = ["plan", "run.json", "--planner", "greedy"]
TRAIN = ["train", "run.json", "--run", "new", "-q", "--planner", "greedy"]
AGAIN = ["train", "run.json", "-q"]
VALIDATION = {"data": LICENCE, "share": "0.1"}
FIGURES = [f"cluster.device={json.dumps(tiny()['cluster']['device'])}",
           f"cluster.link={json.dumps({'inter': tiny()['cluster']['link']['intra']})}"]
OTHER_LIMIT = [*AGAIN, "--plan", "plan.json", "--run", "new"]

# (command, its faulty end, pattern of the cures in the message, the end by each cure). A cure that is a whole command
# has no function.
CURES = [
    (CHECK, settings("train.stepz=3"), r'did you mean "(.*?)"\?', lambda c: settings(f"{c}=3")),
    (CHECK, settings("train.optimizer.type=adam"), r'did you mean "(\w+)"', lambda c: settings(f"train.optimizer.type={c}")),
    (CHECK, settings("train.lr_schedule.type=cosin"), r'did you mean "(\w+)"',
     lambda c: settings(f"train.lr_schedule.type={c}")),
    (CHECK, settings("train.loss_scale.initial=1000"), r"try (\d+)", lambda c: settings(f"train.loss_scale.initial={c}")),
    (CHECK, settings("train.batch=7"), r"try (\d+)", lambda c: settings(f"train.batch={c}")),
    (CHECK, settings("train.batch=1", "train.micro_batch=3"), r"try (\d+)",
     lambda c: settings(f"train.batch={c}", "train.micro_batch=3")),
    (CHECK, settings("train.batch=6"), r'try "(auto)"', lambda c: settings("train.batch=6", f"train.micro_batch={c}")),
    (CHECK, settings("train.grad_accum=0"), r"must be (\d+) to (\d+)", lambda c: settings(f"train.grad_accum={c}")),
    (CHECK, settings('cluster.link.intra.bandwidth="9"'), r'did you mean "(.*?)" \(.*?\) or "(.*?)"',
     lambda c: settings(f"cluster.link.intra.bandwidth={c}")),
    (CHECK, settings("cluster.link={}", "cluster.emulate=true"), r"give (link\.intra\.bandwidth)",
     lambda c: settings("cluster.link={}", f"cluster.{c}=1GB/s", "cluster.emulate=true")),
    (CHECK, settings('train.validation={"share":0.1,"data":"x"}'), r"give (data) or (share)",
     lambda c: settings(f"train.validation.{c}={VALIDATION[c]}")),
    (CHECK, settings("train.lr_schedule.type=wsd", "train.lr_schedule.decay_steps=3", "train.lr_schedule.warmup_steps=2"),
     r"are more than all (\d+) steps; lower one",
     lambda c: settings("train.lr_schedule.type=wsd", "train.lr_schedule.warmup_steps=2",
                        f"train.lr_schedule.decay_steps={int(c) - 2}")),
    (PLAN, ["--memory-limit", "2G"], r'"(2GiB)" \(\d+ bytes\) or "(2GB)"', lambda c: ["--memory-limit", c]),
    (PLAN, ["--memory-limit", "200KiB"], r"the least limit that fits is .*? \((\d+) bytes\)",
     lambda c: ["--memory-limit", f"{c}B"]),
    (["plan", "run.json"], ["--planner", "gredy"], r"did you mean (\w+)\?", lambda c: ["--planner", c]),
    (["plan", "bare.json", "--planner", "greedy"], [], r"(cluster\.device|device\.flops)", lambda c: settings(*FIGURES)),
    (["explain", "plan.json"], ["--time-limit", "1us"], r"a time from (\w+) to (\w+)", lambda c: ["--time-limit", c]),
    (["sweep", "run.json", "--planners", "greedy", "-q"], ["--points", "x"], r"a number from (\d+) to",
     lambda c: ["--points", c]),
    (["verify", "plan.json"], ["--memory-limit", "1GiB"], r"give (--config) CONFIG",
     lambda c: [c, "run.json", "--memory-limit", "1GiB"]),
    (["generate", "old"], ["--tokens", "0"], r"a number from (\d+) to", lambda c: ["--tokens", c]),
    (["estimate"], [], r"weft estimate (CONFIG)", lambda c: ["run.json"]),
    (TRAIN, settings("model.layers.0.vocab=100", "model.layers.3.vocab=100"), r"set vocab to (\d+) or more",
     lambda c: settings(f"model.layers.0.vocab={c}", f"model.layers.3.vocab={c}")),
    (TRAIN, settings("train.data=short"), r"a smaller (train\.seq_len)", lambda c: settings(f"{c}=4", "train.data=short")),
    (TRAIN, settings("plan.for=fsdp2"), r"(leave it out) to train with Weft", lambda c: []),
    (TRAIN, ["--clock", "virtuel"], r": (wall) or (virtual)", lambda c: ["--clock", c]),
    (TRAIN, ["-o", "x"], r"give --run DIR, (not -o)", lambda c: []),
    (TRAIN, ["--from", "old", *settings("model.layers.1.heads=4")], r"give (--from \S+)",
     lambda c: [*shlex.split(c), *settings("model.layers.1.heads=4")]),
    (AGAIN, ["--run", "old"], r"another directory with (--run)", lambda c: [c, "new"]),
    (AGAIN, ["--run", "old"], r"go on with (--resume)", lambda c: ["--run", "old", c, *settings("train.steps=4")]),
    (AGAIN, ["--resume"], r"say of which run with (--run) DIR", lambda c: ["--resume", c, "old", *settings("train.steps=4")]),
    (AGAIN, ["--run", "old", "--resume", *settings("train.steps=1")], r"set it to the last step of (all)",
     lambda c: ["--run", "old", "--resume", *settings("train.steps=3")]),
    (OTHER_LIMIT, ["--memory-limit", "2GiB"], r"give (--memory-limit \S+), or", shlex.split),
    (OTHER_LIMIT, ["--memory-limit", "2GiB"], r"(leave the flag out)", lambda c: []),
    (OTHER_LIMIT, ["--memory-limit", "2GiB"], r"or plan again \((weft plan .*?)\)", None),
    (["train"], ["-q"], r"(weft train --resume --run DIR)", None),
]


@case
def every_listed_cure_works_as_it_is_printed(weft):
    weft.write("run.json", tiny())
    weft.write("bare.json", tiny(cluster__device=None, cluster__link=None, cluster__ranks_per_node=1))
    weft.write("short", b"a few words\n")
    weft.expect(0, *PLAN, "-o", "plan.json")
    weft.expect(0, *AGAIN, "--run", "kept", "--planner", "greedy", *settings("train.checkpoint.at_end=true"))
    followed = 0
    for command, faulty, pattern, end in CURES:
        shutil.rmtree(weft.path("old"), ignore_errors=True)
        shutil.copytree(weft.path("kept"), weft.path("old"))
        weft.fresh("new")
        code, _, err = weft.run(*command, *faulty)
        found = re.search(pattern, err)
        assert code != 0 and found, (command, faulty, code, err)
        for cure in found.groups():
            whole = shlex.split(cure.replace("DIR", "old"))[1:] if end is None else [*command, *end(cure)]
            weft.fresh("new")
            got, _, err = weft.run(*whole)
            assert got == 0, (command, faulty, cure, whole, got, err)
            followed += 1
    assert followed > len(CURES), followed


main(sys.argv[1])
