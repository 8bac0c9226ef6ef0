#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Changes one line at a time and sees whether the test that must notice it does.

    tests/mutants/mutants.py [NAME...] [--sample K] [--seed S] [--work DIR | --build BUILD [--seconds S]] [--record] [-j N]
    tests/mutants/mutants.py --restore BUILD
    tests/mutants/mutants.py --check [BUILD [--no-gpu]]

mutants.txt lists the changes ("mutants"), by file:

    file runtime/exec/work.c

    clip_epsilon: exec-work
    - (out->norm + 1e-6);
    + (out->norm + 1e-5);

A mutant has a name, the test that must fail (as `meson test --list` calls it, and of a program of
Criterion's the cases: `plan certificate/*`), the exact text that is replaced, which stands once in the
file, and the text that takes its place. Text of several lines has a sign on each. NAME is a mutant's
name or a pattern (`exec_*`); --sample takes K of them at random.

The tree is copied to DIR (build-mutants unless said), changed there and built in DIR/build, which stay
for the next time. With --build, BUILD is used after its tests: the file is changed in place for the time
of a mutant, and BUILD/mutant-changed keeps its text until it is restored; --restore does so after a kill.
Each mutant builds only the program that its test runs. A test must
pass before anything is changed, else nothing it says of a mutant counts. Every mutant is killed (the
test failed, or ran ten times as long as it should), alive (it passed) or not applicable (it cannot be
run here). The last line counts. Exit 1 if any is alive, 2 if the list is wrong: a text that stands
nowhere or twice, a change that does not compile, a test that there is not or that fails unchanged.

judged.txt names the mutants that were killed in a build with warnings as errors. --record adds the killed
ones to it, and removes those with another verdict. --seconds takes judged mutants of quick tests, in an
order drawn from the seed, until the time is over. All tests draw the same cases as when mutants were judged,
a mutant that another compiler warns of is not applicable, and a mutant counts as alive if its test passes twice.

--check looks at the lists alone, and with BUILD at its tests' names. A build without nvcc lacks some or all
of the tests named `emulation...`; with --no-gpu they may be absent.
"""
import argparse
import fnmatch
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIST = Path(__file__).with_name("mutants.txt")
JUDGED = Path(__file__).with_name("judged.txt")
HEAD = re.compile(r"(\w+): ([\w-]+)(?: (\S+))?")
BUILD, SKIPPED = "build", 77
JOURNAL = "mutant-changed"
QUICK_SECONDS = 5
OF_GPU = re.compile(r"emulation(-|$)")  # not in a build without CUDA


class Wrong(Exception):
    """A fault of the list, not of a test."""


class Refused(Wrong):
    """A change that this compiler warns of, where warnings are errors."""


class Mutant:
    def __init__(self, file, line, name, test, cases):
        self.file, self.line, self.name, self.test, self.cases = file, line, name, test, cases
        self.old, self.new = [], []

    def texts(self):
        return "\n".join(self.old), "\n".join(self.new)

    def apply(self, text):
        """The file's text with the change in it."""
        old, new = self.texts()
        if not old or old == new:
            raise Wrong(f"{self.where()}: changes nothing")
        if text.count(old) != 1:
            raise Wrong(f"{self.where()}: its text stands {text.count(old)} times in {self.file}")
        return text.replace(old, new)

    def where(self):
        return f"{LIST.name}:{self.line}: {self.name}"

    def what(self):
        return f"{self.test} {self.cases}" if self.cases else self.test


def read_list():
    mutants, file = [], None
    for number, line in enumerate(LIST.read_text(encoding="utf-8").splitlines(), 1):
        head = HEAD.fullmatch(line)
        if not line or line.startswith("#"):
            continue
        if line.startswith("file "):
            file = line[5:]
        elif head:
            mutants.append(Mutant(file, number, *head.groups()))
        elif line[:2] in ("- ", "+ ") and mutants:
            (mutants[-1].old if line[0] == "-" else mutants[-1].new).append(line[2:])
        else:
            raise Wrong(f"{LIST.name}:{number}: is neither a file, a mutant nor its text")
    names = [mutant.name for mutant in mutants]
    for name in names:
        if names.count(name) > 1:
            raise Wrong(f"{LIST.name}: {name} is there twice")
    return mutants


def read_judged():
    """Returns the head and the names of judged.txt."""
    lines = JUDGED.read_text(encoding="utf-8").splitlines() if JUDGED.is_file() else []
    return [line for line in lines if line.startswith("#")], {line for line in lines if line and not line.startswith("#")}


def record(verdicts):
    """Writes verdicts {name: verdict} to judged.txt."""
    head, names = read_judged()
    names |= {name for name, verdict in verdicts.items() if verdict == "killed"}
    names -= {name for name, verdict in verdicts.items() if verdict in ("alive", "wrong")}
    JUDGED.write_text("\n".join([*head, *sorted(names)]) + "\n", encoding="utf-8")


def check(mutants, build, no_gpu):
    """Faults of the lists that show without building anything."""
    known = {mutant.name for mutant in mutants}
    wrong = [f"{JUDGED.name}: {LIST.name} has no mutant {name}" for name in sorted(read_judged()[1] - known)]
    for mutant in mutants:
        try:
            mutant.apply((ROOT / mutant.file).read_text(encoding="utf-8"))
        except (Wrong, OSError) as fault:
            wrong.append(str(fault))
    if build:
        known = {test["name"] for test in tests_of(build)}
        wrong += [f"{mutant.where()}: there is no test {mutant.test}"
                  for mutant in mutants if mutant.test not in known
                 and not (no_gpu and OF_GPU.match(mutant.test))]
    return wrong


def choose(mutants, options):
    chosen = [mutant for mutant in mutants
              if not options.names or any(fnmatch.fnmatch(mutant.name, name)
                                          for name in options.names)]
    for name in options.names:
        if not any(fnmatch.fnmatch(mutant.name, name) for mutant in mutants):
            raise Wrong(f"no mutant is called {name}")
    if options.sample is not None and options.sample < len(chosen):
        picked = set(random.Random(options.seed).sample(range(len(chosen)), options.sample))
        chosen = [mutant for i, mutant in enumerate(chosen) if i in picked]
    return chosen


def tests_of(build):
    return json.loads((Path(build) / "meson-info/intro-tests.json").read_text(encoding="utf-8"))


def copy_tree(tree):
    """Makes the copy equal to the tree. Unchanged files keep their times, for ninja."""
    listed = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-zco", "--exclude-standard"],
                            check=True, capture_output=True, text=True).stdout.split("\0")
    wanted = {name for name in listed if name and (ROOT / name).is_file()}
    for path in [p for p in tree.rglob("*") if p.is_file()]:
        name = path.relative_to(tree)
        if name.parts[0] != BUILD and str(name) not in wanted:
            path.unlink()
    for name in wanted:
        source, copy = ROOT / name, tree / name
        if copy.is_file() and copy.read_bytes() == source.read_bytes():
            continue
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, copy)


def has_nvcc():
    home = subprocess.run(["sh", ROOT / "scripts/find_cuda.sh"], capture_output=True, text=True).stdout
    return home != "" and os.access(Path(home.strip()) / "bin/nvcc", os.X_OK)


def set_up_copy(tree, build):
    tree.mkdir(parents=True, exist_ok=True)
    copy_tree(tree)
    if not (build / "build.ninja").is_file():
        subprocess.run(["meson", "setup", str(build), str(tree), "--buildtype=release",
                        f"-Dgpu={'enabled' if has_nvcc() else 'auto'}"],
                       check=True, stdout=subprocess.DEVNULL)


def restore(build):
    """Writes back a file that a killed run has left changed."""
    journal = build / JOURNAL
    if journal.is_file():
        kept = json.loads(journal.read_text(encoding="utf-8"))
        path = ROOT / kept["file"]
        if path.read_text(encoding="utf-8") == kept["changed"]:
            path.write_text(kept["text"], encoding="utf-8")
            print(f"restored {kept['file']} from {kept['mutant']}", flush=True)
        journal.unlink()


def seconds_of_tests(build):
    """Returns {test: seconds} of the tests that passed, by meson's log; {} without one."""
    log = build / "meson-logs/testlog.json"
    lines = log.read_text(encoding="utf-8").splitlines() if log.is_file() else []
    return {test["name"].split(" / ", 1)[-1]: test["duration"] for test in map(json.loads, lines)
            if test["result"] == "OK" and "duration" in test}


class Bench:
    """A tree, its build, and the results of its tests. `build` None: a copy of the tree below `work`."""

    def __init__(self, work, build, jobs):
        self.tree, self.build, self.jobs = (ROOT if build else work), build or work / BUILD, jobs
        self.logged = seconds_of_tests(build) if build else {}
        if build:
            restore(build)
        else:
            set_up_copy(self.tree, self.build)
        subprocess.run(["ninja", "-C", str(self.build), "build.ninja"], check=True,
                       stdout=subprocess.DEVNULL)
        self.tests = {test["name"]: test for test in tests_of(self.build)}
        told = (self.build / "meson-info/intro-targets.json").read_text(encoding="utf-8")
        self.targets = {target["id"]: target["filename"] for target in json.loads(told)}
        self.outputs = {os.path.relpath(name, self.build)
                        for names in self.targets.values() for name in names}
        self.patience_s = 60
        # Without the tree's seed a test draws the same cases in every tree.
        self.around = {key: value for key, value in os.environ.items() if key != "WEFT_TEST_SEED"}
        self.usual = {}  # by test and cases: seconds unchanged, None where it cannot be run

    def make(self, test):
        """Builds the programs of a test. Returns the failure, or None."""
        depends = [name for target in test["depends"] for name in self.targets.get(target, [])]
        names = {os.path.relpath(os.path.join(self.build, name), self.build)
                 for name in [*test["cmd"], *depends]}
        names = sorted(name for name in names if name in self.outputs)
        done = subprocess.run(["ninja", "-C", str(self.build), f"-j{self.jobs}", *names], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return done.stdout if done.returncode else None

    def run(self, mutant, seconds):
        """The exit code of a mutant's test, None when it took too long, and its report."""
        test = self.tests[mutant.test]
        command = test["cmd"] + ([f"--filter={mutant.cases}"] if mutant.cases else [])
        process = subprocess.Popen(command, cwd=test["workdir"] or self.build,
                                   env={**self.around, **test["env"]}, text=True, errors="replace",
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, start_new_session=True)
        try:
            report = process.communicate(timeout=seconds)[0]
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return None, ""
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        return process.returncode, report

    def measure(self, mutant):
        """Seconds that the test takes unchanged; None when it cannot be run here."""
        if mutant.test not in self.tests:
            if OF_GPU.match(mutant.test) and not has_nvcc():
                return None
            raise Wrong(f"{mutant.where()}: there is no test {mutant.test}")
        if not mutant.cases and mutant.test in self.logged:
            return self.logged[mutant.test]  # a skipped test is not in the log of passed ones
        if mutant.what() not in self.usual:
            test = self.tests[mutant.test]
            fault = self.make(test)
            if fault:
                raise Wrong(f"the tree does not build:\n{fault[-2000:]}")
            begun = time.monotonic()
            code, report = self.run(mutant, test["timeout"])
            if code not in (0, SKIPPED):
                begun = time.monotonic()
                code, report = self.run(mutant, test["timeout"])
            took = time.monotonic() - begun
            if code not in (0, SKIPPED):
                raise Wrong(f"{mutant.where()}: {mutant.what()} fails unchanged:\n{report[-2000:]}")
            cases = re.findall(r"^ok\b(?!.*# SKIP).*", report, re.M)
            ran = code == 0 and (bool(cases) or test["protocol"] != "tap")
            self.usual[mutant.what()] = took if ran else None
            if code == 0 and not ran and not re.search(r"^ok\b", report, re.M):
                raise Wrong(f"{mutant.where()}: {mutant.what()} has no case")
        return self.usual[mutant.what()]

    def judge(self, mutant):
        """killed, alive or not applicable."""
        usual = self.measure(mutant)
        if usual is None:
            return "not applicable"
        path = self.tree / mutant.file
        text = path.read_text(encoding="utf-8")
        changed = mutant.apply(text)
        journal = self.build / JOURNAL
        journal.write_text(json.dumps({"file": mutant.file, "mutant": mutant.name, "text": text, "changed": changed}),
                           encoding="utf-8")
        try:
            path.write_text(changed, encoding="utf-8")
            fault = self.make(self.tests[mutant.test])
            if fault:
                raise (Refused if "[-Werror" in fault else Wrong)(f"{mutant.where()}: does not compile:\n{fault[-2000:]}")
            # A fault that depends on time may be missed once.
            killed = any(self.run(mutant, self.patience_s + 10 * usual)[0] != 0 for _ in range(2))
        finally:
            path.write_text(text, encoding="utf-8")
            journal.unlink()
        return "killed" if killed else "alive"


def is_quick(mutant, bench):
    """True for cases of a program, and for a test that passed in QUICK_SECONDS."""
    return mutant.test in bench.logged and (mutant.cases is not None or bench.logged[mutant.test] <= QUICK_SECONDS)


def judge_all(mutants, options):
    counts = {"killed": 0, "alive": 0, "not applicable": 0, "wrong": 0}
    bench = Bench(options.work.resolve(), options.build and options.build.resolve(), options.jobs)
    end, known = None, len(mutants)
    if options.seconds is not None:
        end = time.monotonic() + options.seconds
        bench.patience_s = 10
        judged = read_judged()[1]
        mutants = [mutant for mutant in mutants if mutant.name in judged and is_quick(mutant, bench)]
        random.Random(options.seed).shuffle(mutants)
    verdicts = {}
    for mutant in mutants:
        begun = time.monotonic()
        if end is not None and begun >= end:
            break
        try:
            verdict = bench.judge(mutant)
        except (Wrong, OSError) as fault:
            verdict = "not applicable" if end is not None and isinstance(fault, Refused) else "wrong"
            print(fault, file=sys.stderr)
        counts[verdict] += 1
        verdicts[mutant.name] = verdict
        print(f"{verdict:8} {mutant.name}: {mutant.what()}, {time.monotonic() - begun:.1f} s",
              flush=True)
    rest = "".join(f", {counts[kind]} {kind}" for kind in ("not applicable", "wrong")
                   if counts[kind])
    of = f" of {len(mutants)} judged quick and {known} in all" if end is not None else ""
    print(f"{len(verdicts)} mutants{of}, {counts['killed']} killed, {counts['alive']} alive{rest}")
    if options.record:
        record(verdicts)
    if end is not None and mutants and counts["killed"] == 0:
        print("no mutant was killed", file=sys.stderr)
        return 2
    return 2 if counts["wrong"] else 1 if counts["alive"] else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--sample", type=int, metavar="K")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--build", type=Path, metavar="BUILD")
    parser.add_argument("--seconds", type=float, metavar="S")
    parser.add_argument("--restore", type=Path, metavar="BUILD")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--work", type=Path, default=ROOT / "build-mutants")
    parser.add_argument("-j", dest="jobs", type=int, default=2)
    parser.add_argument("--check", nargs="?", const="", metavar="BUILD")
    parser.add_argument("--no-gpu", action="store_true")
    options = parser.parse_args()
    if options.seconds is not None and not options.build:
        parser.error("--seconds needs --build, with the log of its tests")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.default_int_handler)
    try:
        if options.restore:
            restore(options.restore.resolve())
            sys.exit(0)
        mutants = read_list()
        if options.check is None:
            sys.exit(judge_all(choose(mutants, options), options))
        wrong = check(mutants, options.check, options.no_gpu)
        print("\n".join([*wrong, f"{len(mutants)} mutants, {len(wrong)} wrong"]))
        sys.exit(2 if wrong or not mutants else 0)
    except Wrong as fault:
        print(fault, file=sys.stderr)
        sys.exit(2)


main()
