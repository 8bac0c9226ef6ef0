#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files that a run may overwrite, and files that stay if nothing is left to do."""
import fcntl
import json
import os
import shutil
import sys

from configs import tiny
from saved import copy_step, metrics, saved_run, saving, steps
from tap import case, main

NAMES = ("config.json", "plan.json", "profile.json", "metrics.jsonl", "result.json", "checkpoints")
RESUMES = ((), ("--resume",), ("--resume=if-any",))


def contents(weft, directory):
    """Returns all entries with bytes and times; equal contents were not touched."""
    found = {}
    for root, names, files in os.walk(weft.path(directory)):
        for name in names + files:
            path = os.path.join(root, name)
            about = os.lstat(path)
            data = open(path, "rb").read() if os.path.isfile(path) else b""
            found[path] = (about.st_mtime_ns, about.st_ino, about.st_size, data)
    return found


def refuses_and_touches_nothing(weft, directory, says, *arguments):
    before = contents(weft, directory)
    weft.expect(73, "train", *arguments, "--run", directory, says=says)
    assert contents(weft, directory) == before, f"{directory} was touched by {arguments}"


@case
def files_of_others_are_not_written_over(weft):
    config = weft.write("run.json", saving())
    for name in NAMES:
        os.mkdir(weft.path("mine"))
        if name == "checkpoints":
            os.mkdir(weft.path("mine/checkpoints"))
            weft.write("mine/checkpoints/model.pt", "weights of another program")
        else:
            weft.write(f"mine/{name}", '{"model_type": "gpt2", "n_layer": 12}')
        weft.write("mine/.weft-999999-0.tmp", "left by `weft plan -o`")
        for resume in RESUMES:
            refuses_and_touches_nothing(weft, "mine", [f"mine/{name}", "is not of a run"], config,
                                        *resume)
        shutil.rmtree(weft.path("mine"))
    os.mkdir(weft.path("mine"))
    os.symlink("../elsewhere.json", weft.path("mine/config.json"))
    refuses_and_touches_nothing(weft, "mine", "mine/config.json", config)
    assert not os.path.exists(weft.path("elsewhere.json"))
    # A foreign config is not read as a run's config.
    os.remove(weft.path("mine/config.json"))
    weft.write("mine/config.json", '{"model_type": "gpt2"}')
    refuses_and_touches_nothing(weft, "mine", "is not of a run", "--resume")
    os.remove(weft.path("mine/config.json"))
    weft.write("mine/weft-run", "a diary of runs")
    refuses_and_touches_nothing(weft, "mine", "mine/weft-run: is no mark", config)


@case
def the_directory_of_ones_config_is_not_a_run(weft):
    weft.write("config.json", saving())
    shutil.copy(weft.path("config.json"), weft.path("before.json"))
    weft.expect(73, "train", "config.json", "--run", ".", says="./config.json")
    assert open(weft.path("config.json"), "rb").read() == open(weft.path("before.json"), "rb").read()
    assert sorted(os.listdir(weft.directory)) == ["before.json", "config.json"]
    # A run may start next to files with other names.
    os.rename(weft.path("config.json"), weft.path("mine.json"))
    weft.expect(0, "train", "mine.json", "--run", ".", "-q")
    assert os.path.exists(weft.path("weft-run")) and steps(weft, ".") == ["step-6", "step-8"]
    weft.expect(0, "train", "mine.json", "--run", ".", "-q", "--resume", "--set", "train.steps=9")


@case
def it_is_refused_before_anything_is_planned(weft):
    """This config has no profile, so a late check would measure for seconds first."""
    config = weft.write("run.json", tiny(cluster__device=None, cluster__link=None))
    os.mkdir(weft.path("mine"))
    weft.write("mine/config.json", "{}")
    code, out, err = weft.run("train", config, "--run", "mine")
    assert code == 73 and "measuring" not in err and "planner" not in out + err, (out, err)


@case
def a_mark_that_is_no_file_is_not_waited_for(weft):
    config = weft.write("run.json", tiny())
    os.mkdir(weft.path("run"))
    os.mkfifo(weft.path("run/weft-run"))
    code, _, err = weft.run("train", config, "--run", "run", timeout=60)
    assert code == 73 and "weft-run: is no mark of a run" in err, err


@case
def steps_that_were_not_saved_are_a_run(weft):
    config = weft.write("run.json", tiny())
    weft.expect(0, "train", config, "--run", "run", "-q")
    refuses_and_touches_nothing(weft, "run", "has trained here", config)
    os.remove(weft.path("run/result.json"))  # as after a kill
    refuses_and_touches_nothing(weft, "run", ["has trained here", "--resume=if-any"], config)
    before = metrics(weft, "run")
    weft.expect(66, "train", config, "--run", "run", "-q", "--resume", says="no checkpoint")
    weft.expect(0, "train", config, "--run", "run", "-q", "--resume=if-any")
    assert [json.loads(line) for line in open(weft.path("run/metrics.1.jsonl"))] == before
    assert [line["step"] for line in metrics(weft, "run")] == [1, 2, 3]


@case
def a_start_that_failed_does_not_stand_in_the_way(weft):
    config = weft.write("run.json", saving())
    weft.expect(66, "train", config, "--run", "run", "--set", 'train.data="nothing.txt"')
    weft.expect(78, "train", config, "--run", "run", "--memory-limit", "100KiB")
    assert not os.path.exists(weft.path("run")), "something was made"
    for fault in ("forward:rank=1:step=1", "backward:rank=0:step=1"):
        weft.expect(69, "train", config, "--run", "run", "-q", env={"WEFT_FAILPOINT": fault})
        assert metrics(weft, "run") == []
    weft.expect(0, "train", config, "--run", "run", "-q")
    # The run was interrupted before its mark: there is only a directory and a lock.
    os.mkdir(weft.path("new"))
    weft.write("new/lock", "")
    weft.expect(0, "train", config, "--run", "new", "-q")


@case
def a_run_that_is_being_written_is_told_from_one_that_has_ended(weft):
    config = weft.write("run.json", tiny())
    weft.expect(0, "train", config, "--run", "run", "-q")
    with open(weft.path("run/lock"), "r+b") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        weft.expect(73, "train", config, "--run", "run", says="another run is writing")
    weft.expect(73, "train", config, "--run", "run", says="has trained here")


@case
def a_run_of_an_older_version_goes_on(weft):
    """It has no mark, but its checkpoints are enough."""
    config = saved_run(weft)
    for name in ("old", "bare"):
        shutil.copytree(weft.path("run"), weft.path(name))
        os.remove(weft.path(f"{name}/weft-run"))
    for name in NAMES[:-1]:
        os.remove(weft.path(f"bare/{name}"))
    refuses_and_touches_nothing(weft, "old", "has checkpoints already", config)
    for name in ("old", "bare"):
        weft.expect(0, "train", config, "--run", name, "-q", "--resume", "--set", "train.steps=9")
        assert os.path.exists(weft.path(f"{name}/weft-run"))
    assert [line["step"] for line in metrics(weft, "old") if "loss" in line] == list(range(1, 10))
    # Checkpoints of another program have no manifest.
    os.makedirs(weft.path("theirs/checkpoints/step-100"))
    weft.write("theirs/checkpoints/step-100/model.safetensors", "x")
    for resume in RESUMES:
        refuses_and_touches_nothing(weft, "theirs", "theirs/checkpoints", config, *resume)


@case
def a_finished_run_keeps_its_files(weft):
    validates = {"train__validation": {"share": 0.1, "every": 3, "batches": 2}}
    config = saved_run(weft, **validates)
    before = contents(weft, "run")
    for arguments in (("--resume",), ("--resume=if-any",), ("--resume=run/checkpoints/step-8",)):
        out = weft.expect(0, "train", config, "--run", "run", *arguments)
        assert "all 8 were done before: nothing to do" in out, out
    assert "nothing to do" in weft.expect(0, "train", "--resume", "--run", "run", "-q")
    said = weft.expect(0, "train", config, "--run", "run", "--resume=if-any", "--json")
    with open(weft.path("run/result.json"), encoding="utf-8") as file:
        assert said == file.read()
    assert contents(weft, "run") == before, "a file was touched"
    weft.expect(0, "train", config, "--run", "run", "-q", "--resume", "--set", "train.steps=9")
    assert steps(weft, "run") == ["step-8", "step-9"]
    # A run without a save at its end has still finished.
    weft.expect(0, "train", config, "--run", "unsaved", "-q", "--set",
                "train.checkpoint.at_end=false")
    before = contents(weft, "unsaved")
    weft.expect(0, "train", "--run", "unsaved", "-q", "--resume=if-any")
    weft.expect(0, "train", config, "--run", "nothing", "-q", "--set", 'train.checkpoint={"at_end": false}')
    said = " ".join(weft.expect(0, "train", "--run", "nothing", "--resume=if-any").split())
    assert "nothing is saved to go on from" in said and "raise train.steps" not in said, said
    assert contents(weft, "unsaved") == before, "a file was touched"
    weft.expect(0, "train", "--run", "unsaved", "-q", "--resume", "--set",
                "train.checkpoint.at_end=true")
    assert steps(weft, "unsaved") == ["step-6", "step-8"]


@case
def two_starts_at_once_train_once(weft):
    """The second start waits for the lock, and then finds nothing to do."""
    config = weft.write("run.json", saving(train__steps=40))
    both = [weft.start("train", config, "--run", "run", "--resume=if-any", "-q") for _ in range(2)]
    codes = [process.wait(60) for process in both]
    for process in both:
        process.communicate()
    assert 0 in codes and set(codes) <= {0, 73}, codes
    with open(weft.path("run/result.json"), encoding="utf-8") as file:
        result = json.load(file)
    assert result["last_loss"] is not None and result["steps_done"] == 40, result


@case
def what_was_not_measured_is_null(weft):
    """A finished run with a lost result, and a resume elsewhere with no steps left."""
    config = saved_run(weft)
    os.remove(weft.path("run/result.json"))
    weft.expect(0, "train", config, "--run", "run", "-q", "--resume")
    weft.expect(0, "train", config, "--run", "moved", "-q", "--resume=run/checkpoints/step-8")
    unmeasured = {"first_loss", "last_loss", "validation_loss", "step_ns", "exposed_ns",
                  "overlapped_ns", "data_wait_ns", "measured_bytes", "outside_measured_bytes"}
    for run in ("run", "moved"):
        with open(weft.path(f"{run}/result.json"), encoding="utf-8") as file:
            result = json.load(file)
        assert {key for key, value in result.items() if value is None} == unmeasured, result
        assert result["steps_done"] == 8 and result["fingerprint"].strip("0"), result
    line = metrics(weft, "moved")[0]
    assert line["kind"] == "checkpoint", line
    assert line["tokens_per_s"] is None and line["held_bytes"] is None, line
    # A run of two steps has no steady step to measure data waits in.
    weft.expect(0, "train", config, "--run", "short", "-q", "--set", "train.steps=2")
    with open(weft.path("short/result.json"), encoding="utf-8") as file:
        result = json.load(file)
    assert result["data_wait_ns"] is None and result["last_loss"] > 0, result


@case
def a_copied_checkpoint_is_enough_to_go_on(weft):
    config = saved_run(weft)
    copy_step(weft, "run", "again", 6)
    weft.expect(0, "train", config, "--run", "again", "-q", "--resume")
    assert sorted(os.listdir(weft.path("again")))[-1] == "weft-run"


main(sys.argv[1])
