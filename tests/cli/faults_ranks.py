#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Faults in a rank during training: the named rank, the exit code, and the time to end."""
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time

from configs import LICENCE, tiny
from interpose import FEW_MAPPINGS, interpose
from processes import finish, gone, long_run, ranks_of, shared_memory_names
from tap import case, drawn_case, main, some


def train(weft, code, says, failpoint=None, seconds=20, **changes):
    """Checks that a run ends by itself with this code and leaves no shared memory."""
    before = shared_memory_names()
    config = weft.write("run.json", tiny(**changes))
    env = {"WEFT_FAILPOINT": failpoint} if failpoint else None
    start = time.monotonic()
    weft.expect(code, "train", config, "--run", weft.fresh("run"), "-q", env=env, says=says)
    assert time.monotonic() - start < seconds, "took too long"
    assert shared_memory_names() == before


@case
def a_rank_killed_anywhere_in_a_step(weft):
    # all-fsdp without overlap reaches every one of these places.
    places = ("update", "load", "forward", "backward", "norm", "all_gather", "reduce_scatter", "agree")
    for rank in (0, 2):
        for place in some(places, 4):
            train(weft, 69, [f"rank {rank}", "signal 9"], f"{place}:rank={rank}:step=2",
                  cluster__ranks=3, plan__planner="all-fsdp")


@case
def work_that_fails_ends_all_ranks_at_once(weft):
    """The emulated link makes a step take seconds. The failure must not wait for its end."""
    link = {"intra": {"alpha": "300ms", "bandwidth": "1GB/s"}}
    for place in ("forward", "backward", "update"):
        process, pids = long_run(weft, cluster__link=link, cluster__emulate=True,
                                 plan__planner="all-fsdp",
                                 env={"WEFT_FAILPOINT": f"{place}:rank=1:step=2:do=error"})
        code, err = finish(process, 2.5)
        assert code == 70 and "rank 1: failed as WEFT_FAILPOINT asks" in err, (code, err)
        assert gone(pids), "a rank is left"


@case
def a_layer_that_leaves_its_buffers_is_named(weft):
    """With --poison guards surround buffers, and dead ones are closed. The other rank ends soon. AddressSanitizer also
    knows poisoned memory and would report it first.
    """
    asan = os.environ.get("ASAN_OPTIONS", "") + ":allow_user_poisoning=0"
    wide = {"cluster__memory_limit": "64MiB", "train__seq_len": 16, "train__micro_batch": 4}
    config = weft.write("run.json", tiny(**wide))
    for do, says in (("overrun", "touched byte 1 after the output of layer h.1"),
                     ("stale", "which was dead")):
        start = time.monotonic()
        weft.expect(70, "train", config, "--run", weft.fresh("run"), "-q", "--poison", "--planner", "all-fsdp",
                    env={"WEFT_FAILPOINT": f"forward:rank=1:at=2:step=2:do={do}",
                         "ASAN_OPTIONS": asan},
                    says=["rank 1: step 2: forward of layer h.1 touched ", says])
        assert time.monotonic() - start < 20


@drawn_case
def random_kills(weft):
    draw = random.Random(7)
    before = shared_memory_names()
    for _ in range(6):
        process, pids = long_run(weft, ranks=3)
        victim = draw.randrange(3)
        time.sleep(draw.random() * 0.3)
        os.kill(pids[victim], signal.SIGKILL)
        code, err = finish(process, 2.5)
        assert code == 69 and "signal 9" in err and f"rank {victim} " in err, (victim, code, err)
        assert gone(pids), "a rank is left"
    assert shared_memory_names() == before


@case
def a_stopped_rank_is_named(weft):
    for do in ("stop", None):
        env = {"WEFT_FAILPOINT": f"backward:rank=1:step=2:do={do}"} if do else None
        process, pids = long_run(weft, ranks=3, env=env, cluster__timeout="700ms")
        if not do:
            os.kill(pids[1], signal.SIGSTOP)
        code, err = finish(process, 5.0)
        assert code == 80, (code, err)
        assert f"rank 1 (process {pids[1]}) is stopped by a signal" in err, err
        assert "its last calls were" in err and "rank 0 (process" not in err, err
        assert gone(pids), "a rank is left"


@drawn_case
def a_stopped_rank_of_a_node_is_named(weft):
    """Another node may be the first that waits too long, for a rank that waits for the stopped one."""
    inter = {"intra": {"alpha": "20us", "bandwidth": "1GB/s"}, "inter": {"alpha": "100us", "bandwidth": "100MB/s"}}
    for _ in range(4):
        process, pids = long_run(weft, ranks=4, cluster__ranks_per_node=2, cluster__link=inter, cluster__timeout="900ms",
                                 plan__policies="hsdp", plan__planner="all-hsdp")
        os.kill(pids[1], signal.SIGSTOP)
        code, err = finish(process, 6.0)
        assert code == 80 and f"did not come: rank 1 (process {pids[1]}) is stopped by a signal" in err, (code, err)
        assert gone(pids), "a rank is left"


@case
def a_stopped_rank_that_no_other_waits_for_is_named(weft):
    """There is no other rank, or all of them are stopped."""
    for ranks in (1, 2):
        process, pids = long_run(weft, ranks=ranks, cluster__timeout="700ms")
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        code, err = finish(process, 5.0)
        assert code == 80 and f"rank 0 (process {pids[0]}) was stopped by a signal" in err, (code, err)
        assert gone(pids), "a rank is left"


@drawn_case
def a_rank_that_goes_on_in_time_changes_nothing(weft):
    def fingerprint():
        with open(weft.path("run/result.json"), encoding="utf-8") as file:
            return json.load(file)["fingerprint"]

    weft.expect(0, "train", weft.write("run.json", tiny(train__steps=1500)), "--run", "run", "-q")
    wanted = fingerprint()
    os.remove(weft.path("run/result.json"))
    process, pids = long_run(weft, train__steps=1500, cluster__timeout="30s")
    reader = threading.Thread(target=process.stdout.read, daemon=True)
    reader.start()
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
        time.sleep(0.3)
        os.kill(pid, signal.SIGCONT)
    process.wait(timeout=60)
    reader.join()
    assert process.returncode == 0, process.stderr.read()
    assert "warning" not in process.stderr.read()
    assert fingerprint() == wanted


JUMPING_CLOCK = """
static long jump(void)
{
    static atomic_long calls;
    long call = atomic_fetch_add(&calls, 1);
    return (call % 2 ? -1 : 1) * (call * 3600 + 86400);
}
int clock_gettime(clockid_t clock, struct timespec *now)
{
    long failed = syscall(SYS_clock_gettime, clock, now);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        now->tv_sec += jump();
    return (int)failed;
}
int gettimeofday(struct timeval *now, void *zone)
{
    struct timespec real;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &real);
    now->tv_sec = real.tv_sec;
    now->tv_usec = real.tv_nsec / 1000;
    return 0;
}
time_t time(time_t *out)
{
    struct timespec real;
    clock_gettime(CLOCK_REALTIME, &real);
    if (out) *out = real.tv_sec;
    return real.tv_sec;
}
"""


@drawn_case
def the_time_of_day_does_not_matter(weft):
    """The clock jumps by days at each reading, forwards and back, while timeouts are short."""
    env = interpose(weft, "clock", JUMPING_CLOCK)
    shown = subprocess.run([sys.executable, "-c", "import time; a = time.time(); b = time.time(); "
                            "print(abs(a - b))"], env={**os.environ, **env}, check=True,
                           capture_output=True, text=True).stdout
    assert float(shown) > 80000, f"the clock does not jump: {shown}"
    config = weft.write("run.json", tiny(train__steps=400, train__checkpoint={"every": 150},
                                         cluster__timeout="2s"))
    prints = []
    for run, more in (("plain", {}), ("jumping", env)):
        start = time.monotonic()
        out = weft.expect(0, "train", config, "--run", run, "--json", env=more)
        prints.append(json.loads(out.splitlines()[-1])["fingerprint"])
        lines = [json.loads(line) for line in out.splitlines()]
        spent = sum(line.get("step_ns", 0) for line in lines[:-1]) / 1e9
        assert 0 < spent < time.monotonic() - start, spent
    assert prints[0] == prints[1], prints
    weft.expect(80, "train", config, "--run", "hangs", "-q", says="is stopped by a signal",
                env={**env, "WEFT_FAILPOINT": "backward:rank=1:step=2:do=stop"}, timeout=30)


@case
def a_slow_rank_is_named(weft):
    """The rank is stopped most of the time, as by a CPU quota. Most of a step is compute, so the rank stops there. A
    busy machine slows the other rank too, so the share of the stops grows.
    """
    process, pids = long_run(weft, cluster__timeout="30s", train__micro_batch=64)
    reader = threading.Thread(target=process.stdout.read, daemon=True)
    reader.start()
    begun, text, ran = time.monotonic(), b"", 0.01
    os.set_blocking(process.stderr.fileno(), False)
    while b"warning" not in text and time.monotonic() < begun + 150:
        os.kill(pids[1], signal.SIGSTOP)
        time.sleep(min(10 * 2 ** min((time.monotonic() - begun) // 12, 3) * ran, 3))
        os.kill(pids[1], signal.SIGCONT)
        since = time.monotonic()
        time.sleep(0.01)
        ran = time.monotonic() - since
        text += process.stderr.buffer.read() or b""
    process.send_signal(signal.SIGTERM)
    process.wait(timeout=30)
    reader.join()
    assert b"warning: rank 1 takes" in text and b"rank 0 takes" not in text, text
    assert process.returncode == 75


@case
def numbers_that_are_not_finite(weft):
    for place, layer, text in (("forward", 2, "forward pass of layer h.1"),
                               ("backward", 3, "backward pass of layer h.2"),
                               ("forward", 5, "forward pass of layer head")):
        for planner in ("all-fsdp", "all-dp"):
            train(weft, 79, ["step 2", f"Not finite first on rank 1, in the {text}"],
                  f"{place}:rank=1:step=2:at={layer}:do=nan", plan__planner=planner)
    train(weft, 79, ["Not finite first on all ranks, in the"], train__steps=50,
          train__optimizer={"type": "adamw", "lr": 1e6, "weight_decay": 1e6})


@drawn_case
def gradients_that_are_not_finite_without_clipping(weft):
    """Found before the updates of the next period; at the run's end, after the last step."""
    for planner in ("all-fsdp", "all-dp"):
        for accumulate in (1, 2):
            for place, at in (("backward", 3), ("forward", 2)):
                says = f"Not finite first on rank 1, in the {place} pass of layer h.{at - 1}"
                train(weft, 79, ["step 3" if place == "backward" else "step 2", says],
                      f"{place}:rank=1:step={3 if place == 'backward' else 2}:at={at}:do=nan",
                      plan__planner=planner, train__steps=9, train__clip_norm=0,
                      train__grad_accum=accumulate)
    train(weft, 79, ["step 2: loss ", "on rank 1, in the forward pass of layer head"],
          "forward:rank=1:step=2:at=5:do=nan", train__clip_norm=0)
    # The last gradients are applied if no step follows, and before a save of them.
    says = ["gradients are not finite", "Nothing was updated", "rank 1, in the backward pass of "
            "layer h.2"]
    train(weft, 79, says,
          "backward:rank=1:step=10:at=3:do=nan", train__clip_norm=0, train__steps=9)
    train(weft, 79, says,
          "backward:rank=1:step=7:at=3:do=nan", train__clip_norm=0, train__steps=9,
          train__checkpoint={"every": 3})
    assert sorted(os.listdir(weft.path("run/checkpoints"))) == ["step-3"]
    shutil.rmtree(weft.path("run"))
    train(weft, 79, ["Not finite first on all ranks, in the"], train__steps=50, train__clip_norm=0,
          train__optimizer={"type": "adamw", "lr": 1e6, "weight_decay": 1e6})


@case
def replicas_that_differ(weft):
    for ranks, text in ((2, "rank 0, 1 (which of them is wrong cannot be told)"),
                        (3, "rank 1 holds other bits than the other ranks")):
        for planner in ("all-dp", "all-zero1"):
            train(weft, 79, ["replicas of unit", text], "replica:rank=1:step=4:do=flip",
                  cluster__ranks=ranks, plan__planner=planner, train__compare_every=2,
                  train__steps=9)
    train(weft, 0, [], "replica:rank=1:step=4:do=flip", plan__planner="all-dp",
          train__compare_every=0, train__steps=9)


@case
def ranks_with_different_configs_or_builds(weft):
    train(weft, 76, ["rank 1: another config than rank 0"], "config:rank=1", cluster__ranks=3)
    train(weft, 76, ["rank 2: another build of the program or of libweft than rank 0", "one program file"],
          "program:rank=2", cluster__ranks=3)
    train(weft, 76, ["rank 2: computes other bits than rank 0: ", ", other there", "WEFT_KERNELS"], "bits:rank=2",
          cluster__ranks=3)
    assert not os.path.exists(weft.path("run/metrics.jsonl")) or \
        not os.path.getsize(weft.path("run/metrics.jsonl")), "a step was done"


@case
def data_that_are_cut_short_during_the_run(weft):
    with open(LICENCE, "rb") as file:
        data = weft.write("data.txt", file.read())
    process, pids = long_run(weft, train__data=data)
    os.truncate(data, 100)
    code, err = finish(process, 5.0)
    assert code == 65 and "data.txt ends at byte" in err, (code, err)
    assert gone(pids), "a rank is left"


@case
def signals_stop_behind_a_step(weft):
    for number in (signal.SIGTERM, signal.SIGUSR1):
        process, pids = long_run(weft)
        process.send_signal(number)
        code, err = finish(process, 5.0)
        assert code == 75 and "after step" in err, (code, err)
        assert gone(pids), "a rank is left"
        with open(weft.path("run/result.json"), encoding="utf-8") as file:
            assert json.load(file)["stopped"]
    # One rank gets the signal; all ranks stop after the same step.
    process, pids = long_run(weft)
    os.kill(pids[1], signal.SIGTERM)
    code, err = finish(process, 5.0)
    assert code == 75 and "after step" in err, (code, err)


@case
def a_signal_when_the_ranks_have_ended(weft):
    """The launcher must write the result despite the signal. A pipe without a reader holds the launcher there. After a
    stop the signal is the same request.
    """
    for steps, seen, stopped in ((6, 5, False), (1000000, 7, True)):
        config = weft.write("run.json", tiny(train__steps=steps,
                                             train__checkpoint={"at_end": True}))
        os.mkdir(weft.path("run"))
        weft.write("run/weft-run", "weft run 1\n")
        os.mkfifo(weft.path("run/result.json"))
        process = weft.start("train", config, "--run", "run")
        while not process.stdout.readline().lstrip("step ").startswith(f"{seen}/"):
            assert process.poll() is None, process.stderr.read()
        reader = threading.Thread(target=process.stdout.read, daemon=True)
        reader.start()
        pids = ranks_of(process.pid) if stopped else []
        if stopped:
            process.send_signal(signal.SIGTERM)
        assert gone(pids or ranks_of(process.pid)), "a rank is left"
        time.sleep(0.2)
        assert process.poll() is None, "the launcher did not wait for a reader"
        process.send_signal(signal.SIGTERM)
        time.sleep(0.2)
        assert process.poll() is None, "the signal ended the launcher"
        with open(weft.path("run/result.json"), encoding="utf-8") as file:
            assert json.load(file)["stopped"] == stopped
        code, err = process.wait(timeout=10), process.stderr.read()
        assert code == (75 if stopped else 0), (code, err)
        if stopped:
            told = "which is saved. Go on with: weft train --resume --run run\n"
            assert err.endswith(told), err
        kept = os.listdir(weft.path("run/checkpoints"))
        assert len(kept) == 1 and (kept == ["step-6"]) != stopped, kept
        shutil.rmtree(weft.path("run"))


SAVED = {"train__steps": 60, "train__checkpoint": {"every": 7}}


def resume(weft, wanted):
    """Checks that the run resumes to the same bits, and that committed checkpoints remain. It resumes without the
    emulated link, which only costs time.
    """
    config = weft.write("run.json", tiny(**SAVED))
    kept = os.listdir(weft.path("run/checkpoints"))
    assert any(name.startswith("step-") and "tmp" not in name for name in kept), kept
    out = weft.expect(0, "train", config, "--run", "run", "--resume", "--json")
    said = json.loads(out.splitlines()[-1])
    assert said["fingerprint"] == wanted and said["steps_done"] == 60, said
    shutil.rmtree(weft.path("run"))


@drawn_case
def what_ends_a_run_loses_at_most_what_was_not_saved(weft):
    config = weft.write("run.json", tiny(**SAVED))
    out = weft.expect(0, "train", config, "--run", "run", "--json")
    wanted = json.loads(out.splitlines()[-1])["fingerprint"]
    shutil.rmtree(weft.path("run"))
    for code, failpoint in ((69, "forward:rank=1:step=30"), (69, "all_gather:rank=0:step=16"),
                            (69, "reduce_scatter:rank=1:step=59"), (69, "agree:rank=0:step=15"),
                            (70, "backward:rank=0:step=33:do=error"),
                            (80, "update:rank=1:step=40:do=stop"),
                            (79, "backward:rank=0:step=20:do=nan")):
        config = weft.write("run.json", tiny(cluster__timeout="2s", **SAVED))
        weft.expect(code, "train", config, "--run", "run", "-q", "--planner", "all-fsdp",
                    env={"WEFT_FAILPOINT": failpoint})
        resume(weft, wanted)


@drawn_case
def signals_save_once(weft):
    config = weft.write("run.json", tiny(**SAVED))
    out = weft.expect(0, "train", config, "--run", "run", "--json")
    wanted = json.loads(out.splitlines()[-1])["fingerprint"]
    shutil.rmtree(weft.path("run"))
    # The emulated link makes steps long enough for the signal.
    link = {"cluster__emulate": True,
            "cluster__link": {"intra": {"alpha": "10ms", "bandwidth": "1GB/s"}}}
    for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT, signal.SIGHUP):
        process, pids = long_run(weft, **SAVED, **link)
        process.send_signal(number)
        code, err = finish(process, 10.0)
        assert code == 75 and "which is saved" in err, (code, err)
        assert gone(pids), "a rank is left"
        resume(weft, wanted)


@case
def the_launcher_killed_while_training_loses_nothing(weft):
    config = weft.write("run.json", tiny(**SAVED))
    out = weft.expect(0, "train", config, "--run", "run", "--json")
    wanted = json.loads(out.splitlines()[-1])["fingerprint"]
    shutil.rmtree(weft.path("run"))
    link = {"cluster__emulate": True,
            "cluster__link": {"intra": {"alpha": "1ms", "bandwidth": "1GB/s"}}}
    process, pids = long_run(weft, **SAVED, **link)
    end = time.monotonic() + 20
    while not os.path.isdir(weft.path("run/checkpoints/step-7")):
        assert time.monotonic() < end, "nothing was saved"
        time.sleep(0.01)
    process.kill()
    process.communicate(timeout=30)
    assert gone(pids), "a rank is left"
    resume(weft, wanted)


MAPPING_FAILS = """
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
/* A rank takes the pages of its arena. */
int fallocate(int fd, int mode, off_t at, off_t bytes)
{
    const char *rank = getenv("RANK"), *dies = getenv("DIES");
    if (rank != NULL && dies != NULL && strcmp(rank, dies) == 0) raise(SIGKILL);
    return (int)syscall(SYS_fallocate, fd, mode, at, bytes);
}
int fallocate64(int fd, int mode, off_t at, off_t bytes) __attribute__((alias("fallocate")));
/* Pages cannot be made large. */
int madvise(void *at, size_t bytes, int advice)
{
    errno = EINVAL;
    return advice == 25 ? -1 : (int)syscall(SYS_madvise, at, bytes, advice);
}
"""


@case
def what_fails_while_ranks_map(weft):
    """A rank that dies while others map ends all of them. A lack of large pages changes nothing."""
    config = weft.write("run.json", tiny(cluster__ranks=3, model__layers__0__vocab=20000, train__steps=2))
    env = interpose(weft, "mapping", MAPPING_FAILS)
    for rank in (0, 2):
        start = time.monotonic()
        weft.expect(69, "train", config, "--run", weft.fresh("run"), "-q", env={**env, "DIES": str(rank)},
                    says=[f"rank {rank} ", "signal 9"])
        assert time.monotonic() - start < 20
    seen = [json.loads(weft.expect(0, "train", config, "--run", f"run{way}", "--json", env=with_)
                       .splitlines()[-1])["fingerprint"] for way, with_ in enumerate((None, env))]
    assert seen[0] == seen[1], seen


@case
def limits_of_the_system_are_named(weft):
    config = weft.write("run.json", tiny(cluster__ranks=8))

    def files(n):
        return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (n, n))

    for n in (9, 12, 16):
        weft.expect(71, "train", config, "--run", "run", preexec_fn=files(n), says="ulimit -n")

    def address_space(kib):
        return lambda: resource.setrlimit(resource.RLIMIT_AS, (kib * 1024, kib * 1024))

    # Mappings are counted before any rank starts; larger pages need fewer.
    config = weft.write("run.json", tiny(cluster__ranks=8, train__micro_batch=16, train__steps=2))
    few = interpose(weft, "maps", FEW_MAPPINGS)
    rule = ("--planner", "all-fsdp")
    err = weft.run("train", config, "--run", "few", *rule, env={**few, "MAPPINGS": "400"})[2]
    assert "planned in pages of 64.0 KiB: in pages of 4.00 KiB a rank has " in err, err
    assert "above half of the 400 that the system lets a process have (vm.max_map_count)" in err, err
    weft.expect(71, "train", config, "--run", "none", *rule, env={**few, "MAPPINGS": "40"},
                says=["above half of the 40 that the system lets", "sysctl vm.max_map_count="])
    weft.expect(0, "plan", config, "-o", weft.path("plan.json"), *rule)
    weft.expect(71, "train", config, "--plan", weft.path("plan.json"), "--run", "none",
                env={**few, "MAPPINGS": "400"}, says="plan again, with larger pages (cluster.page)")
    # Addresses of eight arenas of 200 MiB are counted too.
    config = weft.write("run.json", tiny(cluster__ranks=8, model__layers__0__vocab=400000))
    code, _, err = weft.run("train", config, "--run", "none", "--planner", "all-dp",
                            preexec_fn=address_space(600000))
    assert code == 71 and "a rank maps " in err and "(RLIMIT_AS)" in err or "Sanitizer" in err, (code, err)

    # None of these may wait for memory that never comes. A sanitizer needs more by itself.
    config = weft.write("run.json", tiny())
    for kib in (120000, 200000, 250000):
        code, _, err = weft.run("train", config, "--run", "run", timeout=30,
                                preexec_fn=address_space(kib))
        assert code in (0, 71) or "Sanitizer" in err, (kib, code, err)


main(sys.argv[1])
