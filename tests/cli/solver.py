#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""If the solver fails, `weft plan` returns the best plan so far with a true gap and reports the failure. Exit code 0
always means a plan that verifies.
"""
import json
import os
import signal
import sys
import time

from configs import tiny
from processes import gone
from tap import Skip, case, main


# Added to a plan's time limit for the rest of a test.
SLACK_S = 2.5


def script(weft, name, body):
    path = weft.write(name, "#!/bin/sh\n" + body)
    os.chmod(path, 0o755)
    return path


def real_solver(weft):
    beside = os.path.join(os.path.dirname(weft.program), "..", "scheduler", "weft-solve")
    path = os.environ.get("WEFT_SOLVE", beside)
    if not os.access(path, os.X_OK):
        raise Skip("no weft-solve: build with GLPK")
    return os.path.realpath(path)


def plan(weft, solver, code=0, time_limit="5s", work_limit="30G", **options):
    """Plans, and checks that the plan is no worse than greedy's and that its bound verifies without a solver."""
    config = weft.write("run.json", tiny(**options))
    path = weft.path(f"plan-{len(os.listdir(weft.directory))}.json")
    out = weft.expect(code, "plan", config, "--json", "-o", path, "--time-limit", time_limit,
                      "--work-limit", work_limit, env={"WEFT_SOLVE": solver})
    if code != 0:
        assert not os.path.exists(path), "a plan was left"
        return None
    said = json.loads(out)
    greedy = json.loads(weft.expect(0, "plan", config, "--json", "--planner", "greedy"))
    assert 0 < said["bound_ns"] <= said["step_ns"] <= greedy["step_ns"], (said, greedy)
    assert abs(said["gap"] - (said["step_ns"] / said["bound_ns"] - 1)) < 1e-6, said
    assert said["total_bytes"] <= said["memory_limit_bytes"], said
    weft.expect(0, "verify", path, "--config", config, env={"WEFT_SOLVE": "/no/such/solver"})
    return said


# READ consumes one question; ONE passes one to a solver that answers it and ends.
READ = "sed '/^end$/q' >/dev/null\n"
ONE = "sed '/^end$/q' |"

# Here gathers must block and the search leaves a gap, so that the solver is asked.
TIGHT = {"cluster__link": {"intra": {"alpha": "20us", "bandwidth": "200MB/s"}}, "plan__recompute": "none"}


def least_limit(weft, **options):
    config = weft.write("run.json", tiny(**TIGHT, **options))
    message = weft.run("plan", config, "--memory-limit", "1KiB")[2]
    return int(message.split("the least limit that fits is ")[1].split("(")[1].split(" bytes")[0])


def plan_without(weft, solver, says):
    """Checks a failing solver with spare memory, at the least limit, and below it: it is never an error."""
    stop = plan(weft, solver)["solver_stop"]
    assert says in stop, stop
    least = least_limit(weft)
    plan(weft, solver, cluster__memory_limit=f"{least}B", **TIGHT)
    plan(weft, solver, cluster__memory_limit=f"{least * 6 // 5}B", **TIGHT)
    plan(weft, solver, code=78, cluster__memory_limit=f"{least // 2}B", **TIGHT)


@case
def solver_missing(weft):
    plan_without(weft, "/no/such/solver", "missing")


@case
def solver_crashed(weft):
    plan_without(weft, script(weft, "solve", READ + "kill -SEGV $$\n"), "crashed")


@case
def solver_that_fails(weft):
    plan_without(weft, script(weft, "solve", READ + "echo out of luck >&2\nexit 3\n"),
                 "out of luck")


@case
def solver_that_babbles(weft):
    plan_without(weft, script(weft, "solve", READ + "echo weft-lp-result banana\n"),
                 "solver")


@case
def solver_hung(weft):
    start = time.monotonic()
    said = plan(weft, script(weft, "solve", "exec sleep 1000\n"), time_limit="4s")
    assert "no answer in" in said["solver_stop"]
    assert time.monotonic() - start < 4 + SLACK_S


@case
def solver_hung_leaves_time_for_a_bound(weft):
    """The result is as good as without a solver, apart from the waiting time."""
    limit = {"cluster__memory_limit": f"{least_limit(weft) * 21 // 20}B", **TIGHT}
    hung = plan(weft, script(weft, "solve", "exec sleep 1000\n"), time_limit="4s", **limit)
    missing = plan(weft, "/no/such/solver", time_limit="4s", **limit)
    assert "no answer in" in hung["solver_stop"], hung
    assert hung["gap"] <= missing["gap"] + 0.001, (hung, missing)


@case
def solver_that_falls_silent(weft):
    """It closes its output without an answer and does not end."""
    start = time.monotonic()
    said = plan(weft, script(weft, "solve", "exec >&- 2>&-\nexec sleep 1000\n"), time_limit="4s")
    assert "no answer in" in said["solver_stop"]
    assert time.monotonic() - start < 4 + SLACK_S


@case
def solver_that_says_control_characters(weft):
    out = weft.expect(0, "plan", weft.write("run.json", tiny()), "--json", env={
        "WEFT_SOLVE": script(weft, "solve", "printf 'a\\033[31mb\\377' >&2\nexit 3\n")})
    assert "a\\u001b[31mb\\xff" in json.loads(out)["solver_stop"], out


def planning(weft, *verb):
    """Starts a verb; returns it and the pid of the solver that it waits for."""
    solver = script(weft, "solve", "echo $$ > pid\nexec sleep 1000\n")
    process = weft.start(*verb, env={"WEFT_SOLVE": solver})
    end = time.monotonic() + 10
    while not (os.path.exists(weft.path("pid")) and os.path.getsize(weft.path("pid"))):
        assert time.monotonic() < end, "the solver was not started"
        time.sleep(0.01)
    with open(weft.path("pid"), encoding="utf-8") as file:
        pid = int(file.read())
    os.remove(weft.path("pid"))
    return process, pid


def many_questions():
    """More layers near the least limit, and no accepted gap."""
    layers = tiny()["model"]["layers"]
    layers[1]["repeat"] = 24
    return {"model__layers": layers, "cluster__memory_limit": "2950kB", "plan__gap": 0, **TIGHT}


@case
def solver_stays_for_a_plan_and_is_told_what_changed(weft):
    solver = real_solver(weft)
    body = f"echo $$ >>started\ntee -a questions | '{solver}'\n"
    said = plan(weft, script(weft, "solve", body), time_limit="1min", work_limit="1G", **many_questions())
    assert "solver failed" not in said["solver_stop"], said["solver_stop"]
    with open(weft.path("started"), encoding="utf-8") as file:
        pids = [int(line) for line in file]
    with open(weft.path("questions"), encoding="utf-8") as file:
        titles = [line.split()[0] for line in file if line.startswith("weft-")]
    whole, changes = titles.count("weft-lp"), titles.count("weft-lp-changes")
    assert whole == len(pids) and changes > whole, (titles, pids)
    assert gone(pids), "a solver is left"


@case
def solver_that_answers_but_once(weft):
    """It is started again for every question, and the plan is as good."""
    body = f"echo $$ >>started\n{ONE} '{real_solver(weft)}'\n"
    said = plan(weft, script(weft, "solve", body), time_limit="1min", work_limit="1G", **many_questions())
    assert "solver failed" not in said["solver_stop"], said["solver_stop"]
    with open(weft.path("started"), encoding="utf-8") as file:
        pids = [int(line) for line in file]
    assert len(pids) > 1 and gone(pids), pids


@case
def periods_have_what_work_others_leave(weft):
    """Four periods are planned in turn; the last may use all work that is left."""
    body = f"echo start >>questions\ntee -a questions | '{real_solver(weft)}'\n"
    least = least_limit(weft, train__clip_norm=0)
    plan(weft, script(weft, "solve", body), work_limit="400M", train__clip_norm=0,
         cluster__memory_limit=f"{least * 11 // 10}B", **TIGHT)
    with open(weft.path("questions"), encoding="utf-8") as file:
        periods = file.read().split("start\n")[1:]
    assert len(periods) == 4, len(periods)
    first, last = (int(periods[i].split("limits ")[1].split()[0]) for i in (0, -1))
    assert last > 2 * first, (first, last)


@case
def solver_ends_with_its_caller(weft):
    process, pid = planning(weft, "plan", weft.write("run.json", tiny()))
    process.kill()
    process.communicate(timeout=30)
    assert gone([pid]), "the solver is left"


@case
def a_signal_while_a_run_is_planned_stops_it(weft):
    """A job system does not know whether the first step was reached."""
    for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT, signal.SIGHUP):
        process, pid = planning(weft, "train", weft.write("run.json", tiny()), "--run", "run")
        process.send_signal(number)
        _, err = process.communicate(timeout=30)
        assert process.returncode == 75, (number, process.returncode, err)
        assert err == "weft: stopped by a signal while no rank was running\n", err
        assert gone([pid]) and not os.path.exists(weft.path("run")), "something is left"


@case
def solver_killed_half_way_through_its_answer(weft):
    """A partial answer counts as none, wherever it ends."""
    solver = real_solver(weft)
    for part in ("head -c 20", "head -n 3", "head -c 1500"):
        body = f"{ONE} '{solver}' | {part}\nkill -KILL $$\n"
        assert "signal 9" in plan(weft, script(weft, "solve", body))["solver_stop"]
        body = f"{ONE} '{solver}' | {part}\n"
        said = plan(weft, script(weft, "solve", body))
        assert "solver failed" in said["solver_stop"], said["solver_stop"]
    said = plan(weft, script(weft, "solve", f"{ONE} '{solver}'\nkill -KILL $$\n"))
    assert "solver failed" not in said["solver_stop"], "a whole answer is one"


@case
def solver_out_of_memory(weft):
    """It runs out of memory at its start, while reading the question, and during its work."""
    solver = real_solver(weft)
    layers = tiny()["model"]["layers"]
    layers[1]["repeat"] = 24
    told = set()
    for kib in (3000, 5500, 7000):
        body = f"ulimit -v {kib}\nexec '{solver}'\n"
        said = plan(weft, script(weft, "solve", body), model__layers=layers,
                    cluster__memory_limit="4MB", **TIGHT)
        told.add(said["solver_stop"])
    assert any("solver failed" in stop for stop in told), told
    assert not any("protocol" in stop for stop in told), told


@case
def solver_that_never_stops_talking(weft):
    """The question's size bounds the length of an answer."""
    start = time.monotonic()
    said = plan(weft, script(weft, "solve", READ + "exec yes weft-lp-result\n"))
    assert "solver failed" in said["solver_stop"], said["solver_stop"]
    assert time.monotonic() - start < 30


@case
def solver_that_answers_another_question(weft):
    """An answer to a smaller model is refused."""
    solver = real_solver(weft)
    body = f"sed '/^end$/q' >question\n[ -e first ] || cp question first\n'{solver}' <first\n"
    path = script(weft, "solve", body)
    plan(weft, path)
    said = plan(weft, path, model__layers=tiny()["model"]["layers"][:1] +
                [{"name": "h.{i}", "type": "transformer_block", "repeat": 6, "hidden": 32,
                  "heads": 2, "ffn": 64}] + tiny()["model"]["layers"][2:])
    assert "solver failed" in said["solver_stop"], said["solver_stop"]


@case
def a_plan_names_another_solver(weft):
    """The plan is the same but for the name. The same solver gives the same bytes."""
    real, least = real_solver(weft), {"cluster__memory_limit": f"{least_limit(weft)}B", **TIGHT}
    other = script(weft, "other", f"'{real}' | sed -u 's/^stop .*/&\\nby Other 9.8.7/'\n")
    config, texts = weft.write("run.json", tiny(**least)), {}
    for name, solver in ("plain", real), ("named", other), ("again", other):
        out = weft.expect(0, "plan", config, "-o", f"{name}.json", "--work-limit", "1G", env={"WEFT_SOLVE": solver})
        assert ("by Other 9.8.7\n" in out) == (name != "plain"), out
        texts[name] = (weft.directory / f"{name}.json").read_bytes()
        told = json.loads(weft.expect(0, "verify", f"{name}.json", "--config", config, "--json"))
        assert told.get("solver") == (None if name == "plain" else "Other 9.8.7"), told
    plain, named = json.loads(texts["plain"]), json.loads(texts["named"])
    assert texts["named"] == texts["again"] and "name" not in plain["solver"]
    assert named["solver"].pop("name") == "Other 9.8.7" and named == plain
    assert "; planned with Other 9.8.7" in weft.expect(0, "verify", "named.json")


main(sys.argv[1])
