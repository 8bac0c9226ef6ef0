#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes RESULTS.md from bench/results/*.json: bench/results.py [--check]

A file is a subject with `title` and `tables`. A table has the keys of KEYS: `asked` lists goals, the reached values
and whether they meet the goals; `rows` are the measured figures. --check writes nothing; it prints one mistake per
line and exits with 1 if there are any.

A bench that writes its own table calls `record`.
"""
import datetime
import json
import os
import platform
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KEYS = {"name": str, "title": str, "machine": str, "date": str, "commit": str, "command": str,
        "asked": list, "columns": list, "rows": list}
MAY = {"note"}
ASKED = {"what": str, "asked": str, "reached": str, "met": bool}
ASKED_MAY = {"command"}  # if it is not the table's command
# First words of a command that are not looked up in the tree.
STARTERS = ("python3", "meson", "weft")


def read(root):
    """Returns {subject: its content}, ordered by name."""
    return {path.stem: json.loads(path.read_text())
            for path in sorted((root / "bench/results").glob("*.json"))}


def text_of(value, indent=""):
    """Formats JSON with one row per line, so a diff of two versions shows the changed figures."""
    inner = list(value.values()) if isinstance(value, dict) else value
    if not isinstance(value, (dict, list)) or not any(isinstance(one, (dict, list)) for one in inner):
        return json.dumps(value, ensure_ascii=False)
    deeper = indent + "  "
    names = [json.dumps(key) + ": " for key in value] if isinstance(value, dict) else [""] * len(value)
    lines = [deeper + name + text_of(one, deeper) for name, one in zip(names, inner)]
    ends = "{}" if isinstance(value, dict) else "[]"
    return ends[0] + "\n" + ",\n".join(lines) + "\n" + indent + ends[1]


def here():
    """Returns machine, date and commit for figures measured now."""
    model = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.M)
    commit = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"], check=True,
                            capture_output=True, text=True).stdout.strip()
    return {"machine": f"{model[1] if model else platform.machine()} ({os.cpu_count()} cores)",
            "date": datetime.date.today().isoformat(), "commit": commit}


def record(subject, name, rows, reached, machine=None, root=ROOT):
    """Stores a bench's figures: the rows of a table, and {goal: (reached, met)}."""
    path = root / "bench/results" / f"{subject}.json"
    whole = json.loads(path.read_text())
    table = next(table for table in whole["tables"] if table["name"] == name)
    table.update(rows=rows, **(machine or here()))
    for asked in table["asked"]:
        asked["reached"], asked["met"] = reached[asked["what"]]
    path.write_text(text_of(whole) + "\n")


def close(subject, name, rows, reached, stores):
    """Prints the reached goals of a bench, and records its figures if `stores` is set."""
    for goal, (text, met) in reached.items():
        print(f"{goal}: {text}{'' if met else ' (missed)'}")
    if stores:
        record(subject, name, rows, reached)


def wrong_keys(where, entry, keys, may):
    bad = [f"{where}: no {key} that is a {kind.__name__}" for key, kind in keys.items()
           if not isinstance(entry.get(key), kind)]
    return bad + [f"{where}: {key} is not a key" for key in entry if key not in {*keys, *may}]


def missing(root, command):
    """Lists the programs and files of a command that are not in the tree."""
    bad = []
    for part in command.split(" && "):
        words = part.split()
        paths = [word for word in words if word.startswith(("bench/", "configs/", "tests/"))]
        bad += [path for path in paths if not (root / path).exists()]
        if words[0].startswith("build/"):
            source = words[0].removeprefix("build/") + ".c"
            bad += [] if (root / source).exists() else [words[0]]
        elif words[0] == "weft":
            bad += [] if (root / f"cli/verbs/{words[1]}.c").exists() else [part]
        elif words[0] not in STARTERS and words[0] not in paths:
            bad.append(words[0])
    return bad


def mistakes(root, results):
    bad = [] if results else ["bench/results: no results"]
    for subject, whole in results.items():
        if not isinstance(whole.get("title"), str) or not whole.get("tables"):
            bad.append(f"{subject}: no title, or no tables")
            continue
        names = [table.get("name") for table in whole["tables"]]
        bad += [f"{subject}: two tables are called {name}" for name in set(names) if names.count(name) > 1]
        for table in whole["tables"]:
            where = f"{subject}/{table.get('name')}"
            wrong = wrong_keys(where, table, KEYS, MAY)
            for asked in table.get("asked", []):
                wrong += wrong_keys(where, asked, ASKED, ASKED_MAY)
            bad += wrong or wrong_figures(root, where, table)
    return bad


def wrong_figures(root, where, table):
    forms = (("date", r"\d{4}-\d\d-\d\d"), ("commit", "[0-9a-f]{7,40}"))
    bad = [f"{where}: {key} is {table[key]}" for key, form in forms if not re.fullmatch(form, table[key])]
    bad += [] if table["rows"] else [f"{where}: no figures"]
    bad += [f"{where}: a row of {len(row)} cells, {len(table['columns'])} columns" for row in table["rows"]
            if len(row) != len(table["columns"])]
    told = " ".join([table["title"], table.get("note", "")] + [str(cell) for row in table["rows"] for cell in row])
    bad += [f"{where}: there is no {path}" for path in re.findall(r"`([\w/]+/\w+\.\w+)`", told)
            if not (root / path).exists()]
    commands = [table["command"]] + [asked["command"] for asked in table["asked"] if "command" in asked]
    return bad + [f"{where}: there is no {name}" for command in commands for name in missing(root, command)]


def cells(*values):
    return "| " + " | ".join(str(value).replace("|", "\\|") for value in values) + " |"


def head(*names):
    return [cells(*names), cells(*["---"] * len(names))]


def page(results):
    lines = ["# Results", "",
             "`bench/results.py` makes this page from `bench/results/*.json`; `bench/README.md` says how to run the",
             "benches. Each table names its machine, its day, and the commit that recorded it; the build is of that",
             "commit or one shortly before.", "", "## Asked and reached", ""]
    lines += head("subject", "figure", "machine", "asked", "reached", "", "command")
    for subject, whole in results.items():
        for table in whole["tables"]:
            link, machine = f"[{subject}](#{subject}-{table['name']})", short(table["machine"])
            for asked in table["asked"]:
                met, command = "met" if asked["met"] else "**missed**", asked.get("command", table["command"])
                lines.append(cells(link, asked["what"], machine, asked["asked"], asked["reached"], met,
                                   f"`{command}`"))
    for subject, whole in results.items():
        lines += ["", f"## {whole['title']} (`bench/results/{subject}.json`)"]
        for table in whole["tables"]:
            lines += show(subject, table)
    return "\n".join(lines) + "\n"


def short(machine):
    return ", ".join(one.split(" (")[0] for one in machine.split("; "))


def show(subject, table):
    lines = ["", f'<a id="{subject}-{table["name"]}"></a>', "", f"**{table['title']}** (`{table['name']}`).",
             f"{table['machine']}; {table['date']}, {table['commit']}; `{table['command']}`", ""]
    lines += head(*table["columns"]) + [cells(*row) for row in table["rows"]]
    return lines + (["", table["note"]] if "note" in table else [])


def main():
    results = read(ROOT)
    bad = mistakes(ROOT, results)
    if not bad and "--check" not in sys.argv[1:]:
        (ROOT / "RESULTS.md").write_text(page(results))
    elif not bad and (ROOT / "RESULTS.md").read_text() != page(results):
        bad.append("RESULTS.md: run bench/results.py, which makes it from bench/results")
    print("\n".join(bad), file=sys.stderr, end="\n" if bad else "")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
