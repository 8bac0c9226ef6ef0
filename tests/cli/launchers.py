#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Verbs under MPI launchers: one task runs a verb of no ranks, and doctor looks at all hosts."""
import json
import os
import re
import sys

from configs import tiny
from hosts_run import each_library, run_hosts
from interpose import interpose
from namespaces import Namespaces, Unavailable
from tap import Skip, case, main

# Rank 1 has these variables too.
ONE = '[ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = 1 ] && export %s; exec "$@"\n'


@case
def verbs_of_no_ranks_run_once(weft):
    """They print once, write once, and the launcher has their exit code."""
    config = weft.write("run.json", tiny(plan__work_limit="20M"))
    alone = weft.expect(0, "plan", config, "-o", "alone.json")
    for library, command in each_library(weft, 3):
        code, out, told, err = run_hosts(weft, command, library, "plan", config, "-o", "plan.json")
        assert code == 0 and not told, (library, code, err)
        assert out.replace("plan.json", "alone.json") == alone, (library, out)
        assert (weft.directory / "plan.json").read_bytes() == (weft.directory / "alone.json").read_bytes()
        for verb in (["check", config], ["estimate", config], ["explain", "alone.json"], ["verify", "alone.json"],
                     ["simulate", "alone.json"], ["version"], ["help"], ["schema", "config"],
                     ["sweep", config, "--points", "2", "--limits", "1GiB"]):
            expected = weft.run(*verb)
            code, out, told, err = run_hosts(weft, command, library, *verb)
            out = re.sub(r"\x1b\[\d*m", "", out)  # a launcher may give a terminal
            assert (code, out) == expected[:2] and len(told) == expected[2].count("weft: "), (library, verb, code, out, err)
        for verb, expected, says in ((["plan", "none.json"], 66, "none.json"), (["check", config, "--set", "train.steps=-1"], 65, "train.steps"),
                                     (["verify", config], 65, "run.json"), (["plan"], 64, "plan"), (["demo"], 1, "local ranks"),
                                     (["launch", "-n", "2", "true"], 1, "local ranks")):
            code, out, told, err = run_hosts(weft, command, library, *verb)
            assert code == expected and len(told) == 1 and says in told[0], (library, verb, code, err)
        code, out, told, err = run_hosts(weft, command, library, "plan", "none.json", "--json")
        assert code == 66 and json.loads(out)["error"]["exit_code"] == 66, (library, code, out, err)
        code, out, told, err = run_hosts(weft, command, library, "train", "none.json", "--json")
        assert code in (66, 255) and json.loads(out)["error"]["exit_code"] == 66, (library, code, out, err)


def doctor(weft, command, library, *flags):
    code, out, told, err = run_hosts(weft, command, library, "doctor", "--json", *flags)
    return code, json.loads(out), told, err


@case
def doctor_compares_all_ranks(weft):
    for library, command in each_library(weft, 3):
        code, out, told, err = doctor(weft, command, library)
        assert code == 0 and not told, (library, code, err)
        assert re.fullmatch(r"\S+ \(rank 0 to 2\)", out["hosts"]["text"]), out["hosts"]
        assert out["hosts_alike"]["text"] == "version, commit, compiler, libraries, machine, cores: as on rank 0", out
        assert out["hosts_clocks"]["state"] == "ok" and "ms apart" in out["hosts_clocks"]["text"], out
        assert out["hosts_shared"]["state"] == "ok" and str(weft.directory) in out["hosts_shared"]["text"], out
        code, text, told, err = run_hosts(weft, command, library, "doctor")
        assert code == 0 and len(re.findall(r"^hosts ", text, re.M)) == 1 and len(re.findall("^version ", text, re.M)) == 1, text
    assert "hosts" not in json.loads(weft.run("doctor", "--json")[1])


LATE_CLOCK = """
#include <dlfcn.h>
#include <time.h>
int clock_gettime(clockid_t clock, struct timespec *out)
{
    const int code = (int)syscall(SYS_clock_gettime, clock, out);
    if (clock == CLOCK_REALTIME) out->tv_sec -= 90;
    return code;
}
"""


@case
def doctor_names_a_clock_and_a_program_that_differ(weft):
    library, command = each_library(weft, 3)[0]
    late = " ".join(f"{name}={value}" for name, value in interpose(weft, "late", LATE_CLOCK).items() if name == "LD_PRELOAD")
    wrap = weft.write("late.sh", ONE % late)
    code, out, told, err = doctor(weft, [*command, "sh", wrap], library)
    assert code == 0 and not told, (code, err)
    assert out["hosts_clocks"]["state"] == "off", out
    assert re.match(r"rank 1 \(host \S+\) is (89\.\d|90\.\d) s late of rank 0's clock", out["hosts_clocks"]["text"]), out
    # Rank 1 has the same program of another commit.
    commit = json.loads(weft.run("doctor", "--json")[1])["commit"]["text"]
    data = open(weft.program, "rb").read()
    other = commit[:-1] + ("0" if commit[-1] != "0" else "1")
    assert data.count(commit.encode()) >= 1, commit
    weft.write("other", data.replace(commit.encode(), other.encode()))
    os.chmod(weft.path("other"), 0o755)
    module = os.path.join(os.path.dirname(os.path.dirname(weft.program)), f"runtime/weft_{library}.so")
    wrap = weft.write("other.sh", f'[ "${{OMPI_COMM_WORLD_RANK:-$PMI_RANK}}" = 1 ] || exec "$@"\nshift\nexec {weft.path("other")} "$@"\n')
    code, out, told, err = run_hosts(weft, [*command, "sh", wrap], library, "doctor", "--json",
                                     env={f"WEFT_{library.upper()}_MODULE": module})
    out = json.loads(out)
    assert code == 1 and len(told) == 1, (code, err)
    assert out["hosts_commit"] == {"state": "missing", "text": f"{commit} (rank 0, 2); {other} (rank 1)"}, out
    assert "commit" not in out["hosts_alike"]["text"].split(": ")[0].split(", "), out


@case
def doctor_names_a_directory_that_hosts_do_not_share(weft):
    os.makedirs(weft.path("own"))
    try:
        with Namespaces(2, directory=weft.directory, hidden=weft.path("own")) as hosts:
            command = hosts.command(weft.program, "openmpi", 2)
            for flags, state, words in (((), "ok", "all ranks see"), (("-wdir", weft.path("own")), "off", "rank 2 (host weft-host-1), rank 3")):
                code, out, told, err = doctor(weft, [*command, *flags], "openmpi")
                assert code == 0 and not told, (code, err)
                assert out["hosts"]["text"] == "weft-host-0 (rank 0 to 1); weft-host-1 (rank 2 to 3)", out
                assert out["hosts_shared"]["state"] == state and words in out["hosts_shared"]["text"], out
    except Unavailable as why:
        raise Skip(str(why)) from why
    assert os.listdir(weft.path("own")) == []


main(sys.argv[1])
