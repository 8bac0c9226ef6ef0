#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts words that make prose hard to read: prose.py check|write|show SOURCE_ROOT.

Figures stand in prose.txt by folder and may only fall: `check` fails if one is higher, `write` lowers them to the tree's
figures and never raises one. A folder without a line has the limits. Counted are comments, docs, and the program's help
(literals of cli/). Code in documents is left out: indented lines and text in backticks. `check` also counts pointers in
docs/, and reads the subjects of commits after FIRST, where git history is there: at most 72 characters, no semicolon.
"""
import re
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

from tree import list_files

STORED = Path(__file__).with_name("prose.txt")
FIRST = "7682288f1e97"  # the last commit before this rule
SUBJECT_MOST = 72
SENTENCE_MOST = 30  # words, in README and docs
# Per 1,000 words, and the limit that a new folder has.
WORDS = {"joints": (re.compile(r"\b(?:what|whatever|who|whoever)\b", re.I), 2.0),
         "relatives": (re.compile(r"\b(?:whose|of which|those that)\b", re.I), 1.0),
         "places": (re.compile(r"\b(?:behind|beside|else)\b", re.I), 1.0)}
# Comments that begin so, and sentences of README and docs over SENTENCE_MOST words.
COUNTS = {"openings": 0, "long": 0}
OPENING = re.compile(r"(?:What|Who|Where|As|Those)\b")
COLUMNS = [*WORDS, *COUNTS]
# Words that point at another sentence, per 1,000 words of docs/. They have no stored figure.
POINTERS = re.compile(r"\b(?:those|these|that of|the same|such)\b", re.I)
POINTERS_MOST = 3.5


def tracked(root):
    return [path for path in list_files(root) if path.suffix in (".c", ".h", ".cu", ".cc", ".py", ".sh", ".md")]


def folder_of(path):
    parts = path.parts
    if len(parts) == 1:
        return path.name if path.suffix == ".md" else "."
    return "/".join(parts[:2]) if parts[0] == "runtime" and len(parts) > 2 else parts[0]


def comments_of_c(text):
    """Comments without their signs; consecutive `//` lines are one. A string or character is no comment."""
    literal = r""""(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'"""
    comment = r"(/\*.*?\*/|(?:^[ \t]*//[^\n]*\n?)+|//[^\n]*)"
    found = [match[1] for match in re.finditer(f"{literal}|{comment}", text, re.S | re.M) if match[1]]
    return [re.sub(r"(?m)^\s*(?:/\*+|\*/|\*|//)|\*/$", " ", comment) for comment in found]


def literals_of(text):
    """String literals of several words, adjacent ones joined."""
    joined = re.findall(r'"(?:[^"\\\n]|\\.)*"(?:\s*"(?:[^"\\\n]|\\.)*")*', text)
    plain = [re.sub(r'"\s*"|\\n', " ", literal).strip('"') for literal in joined]
    return [literal for literal in plain if literal.count(" ") >= 3]


def comments_of_script(text):
    found = re.findall(r'"""(.*?)"""', text, re.S)
    return found + [re.sub(r"(?m)^\s*#", " ", lines) for lines in re.findall(r"(?:^[ \t]*#(?!!).*\n?)+", text, re.M)]


def paragraphs_of(text):
    """Paragraphs, items and cells of a document, without code."""
    text = re.sub(r"(?ms)^```.*?^```", "", text)
    lines = [re.sub(r"`[^`]*`", "`", line) for line in text.splitlines() if not re.match(r" {4}|\t|#|\|[- |]*$", line)]
    return [part for block in re.split(r"\n\s*\n|\n(?=[-*] |\d+\. |\|)", "\n".join(lines)) for part in block.split(" | ")]


def texts_of(path, folder):
    """(comments, other texts, whether sentences are measured)."""
    text = path.read_text(encoding="utf-8", errors="replace")
    if path.suffix == ".md":
        return [], paragraphs_of(text), folder in ("docs", "README.md")
    if path.suffix in (".py", ".sh"):
        return comments_of_script(text), [], False
    return comments_of_c(text), literals_of(text) if folder == "cli" else [], False


def long_sentences(paragraphs):
    sentences = [sentence for part in paragraphs for sentence in re.split(r"(?<=[.!?:;])\s+", part)]
    return sum(len(re.findall(r"[\w'`/-]+", sentence)) > SENTENCE_MOST for sentence in sentences)


def figures(root):
    """{folder: {column: figure}}"""
    words, counts = Counter(), defaultdict(Counter)
    for path in tracked(root):
        relative = path.relative_to(root)
        if relative.parts[0] == "LICENSES" or path.name == Path(__file__).name:
            continue
        folder = folder_of(relative)
        comments, others, measured = texts_of(path, folder)
        for text in comments + others:
            words[folder] += len(re.findall(r"[A-Za-z']+", text))
            for name, (pattern, _) in WORDS.items():
                counts[folder][name] += len(pattern.findall(text))
        counts[folder]["openings"] += sum(bool(OPENING.match(comment.strip())) for comment in comments)
        counts[folder]["long"] += long_sentences(others) if measured else 0
    return {folder: {name: round(1000 * counts[folder][name] / words[folder], 1) if name in WORDS
                     else counts[folder][name] for name in COLUMNS}
            for folder in sorted(words) if words[folder]}


def read_stored():
    stored = {}
    for line in STORED.read_text(encoding="utf-8").splitlines() if STORED.exists() else []:
        if line and not line.startswith("#"):
            folder, *numbers = line.split()
            stored[folder] = dict(zip(COLUMNS, map(float, numbers)))
    return stored


def limit_of(stored, folder, name):
    least = WORDS[name][1] if name in WORDS else COUNTS[name]
    return max(stored.get(folder, {}).get(name, least), least)


def pointers(root):
    """Documents in order of their pointers, if all documents together have too many."""
    found, words = Counter(), 0
    for path in tracked(root):
        if path.suffix == ".md" and path.relative_to(root).parts[0] == "docs":
            for text in paragraphs_of(path.read_text(encoding="utf-8")):
                words += len(re.findall(r"[A-Za-z']+", text))
                found[path.name] += len(POINTERS.findall(text))
    figure = round(1000 * found.total() / max(words, 1), 1)
    most = ", ".join(f"{name} {n}" for name, n in found.most_common(5))
    return [f"docs: {figure} pointers per 1,000 words, at most {POINTERS_MOST}; {most}"] if figure > POINTERS_MOST else []


def subjects(root):
    """Bad subjects of commits after FIRST; none where there is no such history."""
    def git(*words):
        return subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=False)
    if git("merge-base", "--is-ancestor", FIRST, "HEAD").returncode != 0:
        print("commit subjects are not checked: there is no history")
        return []
    listed = git("log", "--no-merges", "--format=%h %s", f"{FIRST}..HEAD").stdout.splitlines()
    return [f"commit {line}" for line in listed
            if len(line.split(" ", 1)[1]) > SUBJECT_MOST or ";" in line]


def check(root):
    now, stored = figures(root), read_stored()
    bad = [f"{folder}: {name} {value}, at most {limit_of(stored, folder, name):g}"
           for folder, of in now.items() for name, value in of.items() if value > limit_of(stored, folder, name)]
    return bad + pointers(root) + subjects(root)


def show(now):
    lines = ["# joints, relatives and places per 1,000 words; openings and long sentences in all. Figures may only fall:",
             "# tests/style/prose.py write . lowers them.", f"# {'folder':22}" + "".join(f"{name:>11}" for name in COLUMNS)]
    lines += [f"{folder:24}" + "".join(f"{of[name]:11g}" for name in COLUMNS) for folder, of in now.items()]
    return "\n".join(lines) + "\n"


def main():
    root = Path(sys.argv[2]).resolve()
    if sys.argv[1] == "check":
        bad = check(root)
        print("\n".join(bad))
        sys.exit(1 if bad else 0)
    now, stored = figures(root), read_stored()
    if sys.argv[1] == "write":
        lowered = {folder: {name: min(value, limit_of(stored, folder, name)) if stored else value
                            for name, value in of.items()} for folder, of in now.items()}
        STORED.write_text(show(lowered), encoding="utf-8")
    else:
        print(show(now), end="")


main()
