#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Saves: the schedule, damage, disk faults, signals and kills."""
import os
import random
import shutil
import signal
import subprocess
import sys
import time

from interpose import interpose
from processes import gone, ranks_of
from saved import (FILES, copy_step, metrics, parameters, refuses, same_files, saved_run, saving,
                   steps)
from tap import Skip, case, drawn_case, main


@case
def saves_only_when_asked(weft):
    config = weft.write("run.json", saving(train__checkpoint={"every": 0, "at_end": False}))
    weft.expect(0, "train", config, "--run", "run", "-q")
    assert not os.path.exists(weft.path("run/checkpoints"))
    weft.expect(0, "train", config, "--run", "saved", "-q", "--set", "train.checkpoint.at_end=true")
    assert steps(weft, "saved") == ["step-8"]


@drawn_case
def a_signal_saves_once(weft):
    config = weft.write("run.json", saving(train__steps=1000000, train__checkpoint={"every": 0}))
    for run, number in (("a", signal.SIGTERM), ("b", signal.SIGUSR1)):
        process = weft.start("train", config, "--run", run)
        while "step" not in process.stdout.readline():
            assert process.poll() is None, process.stderr.read()
        while not process.stdout.readline().startswith("step   3"):
            pass
        process.send_signal(number)
        _, err = process.communicate(timeout=30)
        assert process.returncode == 75, (process.returncode, err)
        assert f"which is saved. Go on with: weft train --resume --run {run}\n" in err, err
        assert len(steps(weft, run)) == 1
        done = int(steps(weft, run)[0].removeprefix("step-"))
        weft.expect(0, "train", config, "--run", run, "-q", "--resume", "--set",
                    f"train.steps={done + 2}")


@drawn_case
def metrics_have_each_step_once(weft):
    changes = {"train__validation": {"share": 0.1, "every": 3, "samples": 8}}
    config = weft.write("run.json", saving(**changes))
    weft.expect(0, "train", config, "--run", "whole", "-q")
    lines = metrics(weft, "whole")
    wanted = [(line["step"], line["loss"]) for line in lines if "loss" in line]
    assert [step for step, _ in wanted] == list(range(1, 9)), wanted
    for torn in (b'{"step":9,"los', b'{"step":9,"loss":1}', bytes(100), b"[]\n7\n\xff\xfe\n"):
        weft.expect(69, "train", config, "--run", "run", "-q",
                    env={"WEFT_FAILPOINT": "backward:rank=1:step=8"})
        assert [line["step"] for line in metrics(weft, "run") if "loss" in line][-1] == 7
        with open(weft.path("run/metrics.jsonl"), "ab") as file:
            file.write(torn)
        weft.expect(0, "train", config, "--run", "run", "-q", "--resume")
        lines = metrics(weft, "run")
        assert [(line["step"], line["loss"]) for line in lines if "loss" in line] == wanted
        assert [line["step"] for line in lines if "validation_loss" in line] == [3, 6, 8], lines
        saved = [line["step"] for line in lines if line["kind"] == "checkpoint"]
        assert saved in ([3, 6, 8], [3, 8]), lines  # a kill may come between a commit and its line
        shutil.rmtree(weft.path("run"))
    # Metrics of a start that saved nothing do not count after a resume from another run's checkpoint.
    weft.expect(69, "train", config, "--run", "other", "-q",
                env={"WEFT_FAILPOINT": "backward:rank=1:step=2"})
    weft.expect(0, "train", config, "--run", "other", "-q", "--resume=whole/checkpoints/step-6")
    assert [line["step"] for line in metrics(weft, "other") if "loss" in line] == [7, 8]


@case
def two_runs_on_one_directory(weft):
    config = weft.write("run.json", saving(train__steps=1000000, train__checkpoint={"every": 0}))
    process = weft.start("train", config, "--run", "run")
    while "step" not in process.stdout.readline():
        assert process.poll() is None, process.stderr.read()
    weft.expect(73, "train", config, "--run", "run", says="another run is writing")
    process.kill()
    process.communicate(timeout=30)
    # The ranks and the lock end with the launcher, so the same command can resume at once.
    weft.expect(0, "train", config, "--run", "run", "-q", "--resume=if-any",
                "--set", "train.steps=2")


# Damage


def flip(path, byte, bit):
    with open(path, "r+b") as file:
        file.seek(byte)
        value = file.read(1)[0]
        file.seek(byte)
        file.write(bytes([value ^ 1 << bit]))


@case
def damage_is_refused(weft):
    config = saved_run(weft)
    step = weft.path("run/checkpoints/step-8")
    good = weft.path("good")
    shutil.copytree(step, good)
    draw = random.Random(3)
    places = []
    for name in FILES + ["manifest.json"]:
        size = os.path.getsize(f"{step}/{name}")
        places += [(name, draw.randrange(size), draw.randrange(8)) for _ in range(6)]
    places += [(FILES[0], at, 0) for at in (0, 7, 8, 9, 100, 4095, 4096)]
    for name, byte, bit in places:
        flip(f"{step}/{name}", byte, bit)
        refuses(weft, config, [f"run/checkpoints/step-8/{name}"])
        flip(f"{step}/{name}", byte, bit)
    refused_data(weft, config, step)
    for name in FILES + ["manifest.json"]:
        os.truncate(f"{step}/{name}", os.path.getsize(f"{step}/{name}") - 1)
        refuses(weft, config, [f"step-8/{name}"])
        os.remove(f"{step}/{name}")
        refuses(weft, config, [f"step-8/{name}"])
        shutil.copy(f"{good}/{name}", f"{step}/{name}")
    with open(f"{step}/{FILES[1]}", "ab") as file:
        file.write(b"\0")
    refuses(weft, config, [f"step-8/{FILES[1]}"])
    shutil.copy(f"{good}/{FILES[1]}", f"{step}/{FILES[1]}")
    for name in FILES + ["manifest.json"]:
        os.remove(f"{step}/{name}")
        os.mkfifo(f"{step}/{name}")
        refuses(weft, config, [f"step-8/{name}: is not a plain file"])
        os.remove(f"{step}/{name}")
        os.symlink(name, f"{step}/{name}")
        refuses(weft, config, [f"step-8/{name}", "levels of symbolic links"])
        os.remove(f"{step}/{name}")
        shutil.copy(f"{good}/{name}", f"{step}/{name}")
    shutil.rmtree(step)
    for target in ("step-8", "nowhere"):
        os.symlink(target, step)
        refuses(weft, config, ["step-8: no such checkpoint"])
        os.remove(step)
    shutil.copytree(good, step)
    # The earlier checkpoint is intact, and is used once this one is removed.
    shutil.rmtree(step)
    weft.expect(0, "train", config, "--run", "run", "-q", "--resume")
    same_files(weft, "run/checkpoints/step-8", "good")


def refused_data(weft, config, step):
    flip(f"{step}/{FILES[0]}", 5000, 3)
    refuses(weft, config, ["damaged in chunk 0", "from the header to head.weight"])
    flip(f"{step}/{FILES[0]}", 5000, 3)


# The disk


STRACE = ["strace", "-f", "-qq"]
# The filter stops processes at the traced calls alone, which halves the CPU time of a traced run.
FILTERED = [*STRACE, "--seccomp-bpf"]


def without_leak_checks():
    """A traced process cannot check for leaks, and would fail."""
    return {"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}


def strace(weft, inject, *arguments, paths=(), expected=None, env=None):
    """Runs weft under strace with one injected fault, on calls that concern one of `paths` if given."""
    # With the filter, strace 6.1 does not send a signal at a later call than the first.
    tool = STRACE if ":signal=" in inject else FILTERED
    if not shutil.which("strace"):
        raise Skip("strace is not installed")
    calls = inject.split(":", 1)[0]
    command = [*tool, "-o", weft.path("strace.log"), "-e", f"trace={calls}",
               "-e", f"inject={inject}"]
    for path in paths:
        command += ["-P", path, "-P", weft.path(path)]
    process = subprocess.Popen(command + [weft.program, *arguments], cwd=weft.directory,
                               env={**os.environ, **without_leak_checks(), **(env or {})},
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        out, err = process.communicate(timeout=120)
    finally:
        # A killed strace lets its tracees go on.
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    done = subprocess.CompletedProcess(command, process.returncode, out, err)
    if "strace:" in done.stderr and "ptrace" in done.stderr:
        raise Skip("strace may not trace here")
    assert expected is None or done.returncode == expected, (done.returncode, done.stderr)
    return done


def attempts(run, name):
    """Returns a file of step 3 in the first save, and in the retry after a failed sync."""
    return [f"{run}/checkpoints/step-3.tmp-{attempt}{name}" for attempt in (1, 2)]


@drawn_case
def disk_errors_are_warned_of(weft):
    config = weft.write("run.json", saving())
    weft.expect(0, "train", config, "--run", "plain", "-q")
    for number, (inject, name, says) in enumerate([
            ("pwrite64:error=ENOSPC:when=3", "/model.safetensors", "No space left"),
            ("pwrite64:error=EIO:when=1", "/manifest.json.tmp", "Input/output error"),
            ("fsync:error=EIO:when=1+", "/optimizer.safetensors", "Input/output error"),
            ("fsync:error=EIO:when=1+", "/manifest.json.tmp", "Input/output error"),
            ("fsync:error=EIO:when=1+", "", "Input/output error"),
            ("fallocate:error=ENOSPC:when=1", "/model.safetensors", "No space left"),
            ("openat:error=EMFILE:when=1", "/optimizer.safetensors", "Too many open files"),
            ("rename:error=EIO:when=1", "/manifest.json.tmp", "Input/output error"),
            ("rename:error=EIO:when=1", "", "Input/output error"),
            ("mkdir:error=EROFS:when=1", "", "Read-only")]):
        run = f"run{number}"
        done = strace(weft, inject, "train", config, "--run", run, "-q",
                      paths=attempts(run, name), expected=0)
        assert says in done.stderr and "Training goes on" in done.stderr, (inject, done.stderr)
        assert done.stderr.count("weft: ") == 1, done.stderr
        assert steps(weft, run) == ["step-6", "step-8"], (inject, steps(weft, run))
        same_files(weft, f"{run}/checkpoints/step-8", "plain/checkpoints/step-8")
        required = strace(weft, inject, "train", config, "--run", f"{run}r", "-q", "--set",
                          "train.checkpoint.required=true", paths=attempts(f"{run}r", name),
                          expected=74)
        assert "step 3 cannot be saved" in required.stderr, required.stderr
        assert steps(weft, f"{run}r") == [], steps(weft, f"{run}r")


# Rank 1 cannot write its part of the model.
BROKEN = """
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

ssize_t pwrite64(int fd, const void *bytes, size_t n, off_t at)
{
    char link[64], path[4096] = "";
    const char *rank = getenv("RANK");
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (rank && strcmp(rank, "1") == 0 && length > 0 && strstr(path, "/model.safetensors")) {
        errno = EIO;
        return -1;
    }
    return syscall(SYS_pwrite64, fd, bytes, n, at);
}
"""


@case
def the_rank_that_cannot_save_is_named_once(weft):
    """All ranks report the same words, so the first one to end does not matter."""
    config = weft.write("run.json", saving(train__checkpoint={"every": 3, "required": True}))
    code, _, err = weft.run("train", config, "--run", "run", "-q",
                            env=interpose(weft, "broken", BROKEN))
    assert code == 74, (code, err)
    assert err.startswith("weft: step 3 cannot be saved: rank 1: cannot write "), err
    assert err.count("rank ") == 1 and "Input/output error" in err, err
    alone = strace(weft, "fallocate:error=ENOSPC:when=1", "train", config, "--run", "alone", "-q",
                   "-n", "1", paths=attempts("alone", "/model.safetensors"), expected=74)
    assert "step 3 cannot be saved" in alone.stderr and "rank" not in alone.stderr, alone.stderr


@case
def a_last_step_that_cannot_be_saved_is_an_error(weft):
    """No later save repeats this one, so success would lose the training."""
    config = weft.write("run.json", saving())
    weft.expect(0, "train", config, "--run", "plain", "-q")
    last = "run/checkpoints/step-8.tmp-3"
    done = strace(weft, "fallocate:error=EIO:when=1", "train", config, "--run", "run", "-q",
                  paths=[f"{last}/model.safetensors"], expected=74)
    assert "step 8 cannot be saved" in done.stderr and "output error" in done.stderr, done.stderr
    assert "the latest checkpoint is step-6" in done.stderr, done.stderr
    assert "Training goes on" not in done.stderr and "--resume" in done.stderr, done.stderr
    assert steps(weft, "run") == ["step-3", "step-6"], steps(weft, "run")
    weft.expect(0, "train", config, "--run", "run", "-q", "--resume")
    same_files(weft, "run/checkpoints/step-8", "plain/checkpoints/step-8")


@case
def a_run_that_saved_nothing_is_told_to_begin_again(weft):
    """There is nothing to go on from: the advice is a command that works."""
    config = weft.write("run.json", saving(train__steps=4, train__checkpoint={"at_end": True}))
    done = strace(weft, "fallocate:error=EIO:when=1", "train", config, "--run", "run", "-q",
                  paths=["run/checkpoints/step-4.tmp-1/model.safetensors"], expected=74)
    assert "no other checkpoint was saved. Mend that and begin again with --resume=if-any" in done.stderr, done.stderr
    weft.expect(66, "train", config, "--run", "run", "-q", "--resume")
    weft.expect(0, "train", config, "--run", "run", "-q", "--resume=if-any")
    assert steps(weft, "run") == ["step-4"], steps(weft, "run")


@case
def the_oldest_goes_where_room_is_short(weft):
    """There is room for two checkpoints, not three: the last step replaces step 3."""
    config = weft.write("run.json", saving())
    weft.expect(0, "train", config, "--run", "plain", "-q")
    done = strace(weft, "fallocate:error=ENOSPC:when=1", "train", config, "--run", "run", "-q",
                  paths=["run/checkpoints/step-8.tmp-3/model.safetensors"], expected=0)
    assert "has no room" in done.stderr and "now step-3, goes before" in done.stderr, done.stderr
    assert done.stderr.count("weft: ") == 1 and steps(weft, "run") == ["step-6", "step-8"]
    same_files(weft, "run/checkpoints/step-8", "plain/checkpoints/step-8")


@case
def metrics_that_cannot_be_written_are_left_out(weft):
    """A full disk loses lines of the metrics, but nothing of the training."""
    config = weft.write("run.json", saving())
    weft.expect(0, "train", config, "--run", "plain", "-q")
    done = strace(weft, "write:error=ENOSPC:when=2..4", "train", config, "--run", "run", "-q",
                  paths=["run/metrics.jsonl"], expected=0)
    assert done.stderr.count("warning") == 2 and "No space left" in done.stderr, done.stderr
    assert "lacks 3 lines" in done.stderr, done.stderr
    assert [line["step"] for line in metrics(weft, "run") if "loss" in line] == [1, 5, 6, 7, 8]
    same_files(weft, "run/checkpoints/step-8", "plain/checkpoints/step-8")


@case
def a_reader_that_goes_away_ends_a_run_saved(weft):
    """The reader is a closed pipe, as in `weft train ... | head`, or a closed terminal."""
    config = weft.write("run.json", saving(train__steps=1000000, train__checkpoint={"every": 0}))
    process = weft.start("train", config, "--run", "run")
    while not process.stdout.readline().startswith("step   3"):
        assert process.poll() is None, process.stderr.read()
    process.stdout.close()
    err = process.stderr.read()
    assert process.wait(timeout=30) == 74 and err.count("weft: ") == 1, (process.returncode, err)
    assert "standard output cannot be written" in err, err
    done = int(steps(weft, "run")[0].removeprefix("step-"))
    assert [line["step"] for line in metrics(weft, "run") if "loss" in line][-1] == done
    weft.expect(0, "train", config, "--run", "run", "-q", "--resume", "--set",
                f"train.steps={done + 2}")


@drawn_case
def a_failure_during_a_save_is_told_and_the_save_given_up(weft):
    """The step after a save fails while a slow disk still writes the save."""
    for number, changes in enumerate([{}, {"train__clip_norm": 0, "train__grad_accum": 2}]):
        run = f"run{number}"
        config = weft.write("run.json", saving(**changes))
        done = strace(weft, "pwrite64:delay_enter=100000", "train", config, "--run", run, "-q",
                      paths=attempts(run, "/model.safetensors"), expected=70,
                      env={"WEFT_FAILPOINT": "backward:rank=1:step=4:do=error"})
        assert "rank 1: failed as WEFT_FAILPOINT asks" in done.stderr, done.stderr
        assert "Sanitizer" not in done.stderr and "signal" not in done.stderr, done.stderr
        assert "step-3" not in steps(weft, run), steps(weft, run)


@case
def the_launcher_killed_during_a_save_loses_nothing_saved(weft):
    """The launcher dies while a slow disk has step 6 half written, then half committed."""
    config = weft.write("run.json", saving())
    weft.expect(0, "train", config, "--run", "whole", "-q")
    if not shutil.which("strace"):
        raise Skip("strace is not installed")
    temporary = "run/checkpoints/step-6.tmp-2"
    for name in ("model.safetensors", "manifest.json.tmp"):
        # With -D the launcher, not its tracer, is the child that is killed here.
        paths = [f"{temporary}/{name}", weft.path(f"{temporary}/{name}")]
        process = weft.start("train", config, "--run", "run", "-q", start_new_session=True,
                             env=without_leak_checks(), prefix=[
            *FILTERED, "-D", "-o", weft.path("strace.log"), "-e", "trace=fsync", "-e",
            "inject=fsync:delay_enter=700000", "-P", paths[0], "-P", paths[1]])
        end = time.monotonic() + 30
        while not os.path.exists(weft.path(f"{temporary}/{name}")):
            assert process.poll() is None and time.monotonic() < end, "step 6 is not being saved"
            time.sleep(0.01)
        time.sleep(0.2)
        pids = ranks_of(process.pid)
        assert len(pids) == 2 and "step-6" not in steps(weft, "run"), (pids, steps(weft, "run"))
        process.kill()
        process.communicate(timeout=30)
        assert gone(pids), "a rank is left"
        assert "step-3" in steps(weft, "run") and "step-6" not in steps(weft, "run")
        weft.expect(0, "train", config, "--run", "run", "-q", "--resume")
        same_files(weft, "run/checkpoints/step-8", "whole/checkpoints/step-8")
        assert steps(weft, "run") == ["step-6", "step-8"], steps(weft, "run")
        shutil.rmtree(weft.path("run"))


@drawn_case
def signals_during_a_save_wait_for_it_once(weft):
    """Any number of requests ends the run after one step. The save in progress is completed, and the last step is
    saved.
    """
    if not shutil.which("strace"):
        raise Skip("strace is not installed")
    # Ranks sleep on a slow link, so few steps are done while the disk is slow.
    config = weft.write("run.json", saving(train__steps=1000000, train__checkpoint={"every": 50}, cluster__emulate=True,
                                           cluster__link__intra={"alpha": "10ms", "bandwidth": "1GB/s"}))
    for number, signals in enumerate((1, 2)):
        run = f"run{number}"
        temporary = f"{run}/checkpoints/step-50.tmp-1"
        paths = [f"{temporary}/{name}" for name in FILES]
        process = weft.start("train", config, "--run", run, "-q", start_new_session=True,
                             env=without_leak_checks(), prefix=[
            *FILTERED, "-D", "-o", weft.path("strace.log"), "-e", "trace=fsync", "-e",
            "inject=fsync:delay_enter=1500000",
            *[word for path in paths for word in ("-P", path, "-P", weft.path(path))]])
        end = time.monotonic() + 60
        while not os.path.exists(weft.path(paths[1])):
            assert process.poll() is None and time.monotonic() < end, "step 50 is not being saved"
            time.sleep(0.01)
        for _ in range(signals):
            time.sleep(0.2)
            process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
        assert process.returncode == 75, (process.returncode, err)
        kept = [name for name in steps(weft, run) if ".tmp-" not in name]
        assert "step-50" in kept and len(kept) == 2 and "which is saved" in err, (kept, err)
        done = max([int(name.removeprefix("step-")) for name in kept], default=0)
        weft.expect(0, "train", config, "--run", run, "-q", "--resume=if-any", "--set",
                    f"train.steps={done + 2}", "--set", "train.checkpoint.every=0")
        assert not [name for name in steps(weft, run) if ".tmp-" in name], steps(weft, run)


@drawn_case
def a_directory_that_is_removed_is_told(weft):
    """Saving has become impossible. Training continues, or ends if checkpoints are required."""
    for required in (False, True):
        config = weft.write("run.json", saving(train__steps=400, train__checkpoint={
            "every": 100, "required": required}))
        process = weft.start("train", config, "--run", "run")
        while not process.stdout.readline().startswith("step   3/"):
            assert process.poll() is None, process.stderr.read()
        shutil.rmtree(weft.path("run"))
        out, err = process.communicate(timeout=60)
        assert process.returncode == 74 and "step 100 cannot be saved" in err, err
        # Any rank may be the first to find it gone.
        assert "run/checkpoints/step-100.tmp-1" in err and "No such file" in err, err
        assert ("step 400/400" in out) != required, out[-300:]
        assert not os.path.exists(weft.path("run")), "it was made again"


@case
def one_failed_sync_is_made_good(weft):
    config = weft.write("run.json", saving())
    weft.expect(0, "train", config, "--run", "plain", "-q")
    done = strace(weft, "fsync:error=EIO:when=1", "train", config, "--run", "run", "-q",
                  paths=attempts("run", "/model.safetensors")[:1], expected=0)
    assert done.stderr == "", done.stderr
    with open(weft.path("strace.log"), encoding="utf-8") as file:
        assert "INJECTED" in file.read()
    same_files(weft, "run/checkpoints/step-8", "plain/checkpoints/step-8")


@drawn_case
def interrupted_calls_are_invisible(weft):
    config = weft.write("run.json", saving())
    weft.expect(0, "train", config, "--run", "plain", "-q")
    for call in ("pwrite64", "fsync", "openat"):
        done = strace(weft, f"{call}:error=EINTR:when=1+2", "train", config, "--run", call, "-q",
                      paths=attempts(call, "/model.safetensors"), expected=0)
        assert done.stderr == "", done.stderr
        same_files(weft, f"{call}/checkpoints/step-8", "plain/checkpoints/step-8")


@case
def short_writes_are_invisible(weft):
    """Each positioned write or read of a file handles at most 1000 bytes."""
    env = interpose(weft, "short", """
ssize_t pwrite64(int fd, const void *bytes, size_t n, off64_t at)
{
    return syscall(SYS_pwrite64, fd, bytes, n < 1000 ? n : 1000, at);
}
ssize_t pwrite(int fd, const void *bytes, size_t n, off_t at)
{
    return pwrite64(fd, bytes, n, at);
}
ssize_t pread64(int fd, void *bytes, size_t n, off64_t at)
{
    return syscall(SYS_pread64, fd, bytes, n < 1000 ? n : 1000, at);
}
ssize_t pread(int fd, void *bytes, size_t n, off_t at)
{
    return pread64(fd, bytes, n, at);
}
""")
    config = weft.write("run.json", saving())
    weft.expect(0, "train", config, "--run", "plain", "-q")
    weft.expect(0, "train", config, "--run", "run", "-q", env=env)
    same_files(weft, "run/checkpoints/step-8", "plain/checkpoints/step-8")
    copy_step(weft, "run", "again", 6)
    weft.expect(0, "train", config, "--run", "again", "-q", "--resume", env=env)
    same_files(weft, "again/checkpoints/step-8", "plain/checkpoints/step-8")


@case
def a_directory_that_cannot_be_written_to(weft):
    """A directory that is read-only or another user's is refused before training."""
    config = weft.write("run.json", saving())
    os.mkdir(weft.path("parent"))
    for error, says in (("EROFS", "Read-only"), ("EACCES", "Permission denied")):
        done = strace(weft, f"mkdir:error={error}:when=1+", "train", config, "--run", "parent/run", "-q",
                      paths=["parent/run"])
        assert done.returncode == 73 and says in done.stderr, (done.returncode, done.stderr)
        assert "parent/run" in done.stderr and done.stderr.count("weft: ") == 1, done.stderr
        assert not os.listdir(weft.path("parent"))


def kills(weft, config, call, whole, most):
    """Kills any process at the call's 1st, 2nd, ... use, until a run completes. Returns the number of kills."""
    for when in range(1, most):
        run = f"{call}{when}"
        copy_step(weft, "whole", run, 3)
        done = strace(weft, f"{call}:signal=KILL:when={when}", "train", config, "--run", run, "-q",
                      "--resume")
        if done.returncode == 0:
            return when - 1
        assert done.returncode in (69, -9, 137), (call, when, done.returncode, done.stderr)
        committed = [name for name in steps(weft, run) if ".tmp-" not in name]
        assert committed and set(committed) <= {"step-3", "step-6", "step-8"}, committed
        weft.expect(0, "train", config, "--run", run, "-q", "--resume")
        assert parameters(weft, run) == whole, (call, when)
        assert not [name for name in steps(weft, run) if ".tmp-" in name], steps(weft, run)
        left = [name for name in os.listdir(weft.path(run)) if name.startswith(".weft-")]
        assert not left, (call, when, left)
        shutil.rmtree(weft.path(run))
    raise AssertionError(f"{call} is called more than {most} times")


@drawn_case
def a_kill_at_every_write_sync_and_rename(weft):
    config = weft.write("run.json", saving(train__steps=8))
    weft.expect(0, "train", config, "--run", "whole", "-q", "--set", "train.checkpoint.keep=5")
    whole = parameters(weft, "whole")
    counts = {call: kills(weft, config, call, whole, most)
              for call, most in (("rename", 30), ("fsync", 60))}
    # Each piece is one write, so only the first and every tenth after it are tried.
    for when in range(1, 60, 10):
        run = f"write{when}"
        copy_step(weft, "whole", run, 3)
        strace(weft, f"pwrite64:signal=KILL:when={when}", "train", config, "--run", run, "-q",
               "--resume")
        weft.expect(0, "train", config, "--run", run, "-q", "--resume")
        assert parameters(weft, run) == whole
    assert counts["rename"] >= 4 and counts["fsync"] >= 8, counts


main(sys.argv[1])
