/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* memfd_create */
#include "runtime/launch/launch.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "runtime/launch/spawn.h"

enum { NS_PER_S = 1000000000, NS_PER_MS = 1000000 };

static const int64_t never_ns = INT64_MAX;
static const int64_t ask_after_ns = INT64_C(500) * NS_PER_MS;   /* after the first failure */
static const int64_t kill_after_ns = INT64_C(1500) * NS_PER_MS; /* after the first failure */
static const int64_t look_ns = INT64_C(1) * NS_PER_S;
static const int64_t look_often_ns = INT64_C(100) * NS_PER_MS; /* with a look function */

struct child {
    pid_t pid; /* 0: not started */
    bool ended;
    bool stopped; /* by SIGSTOP or alike, and not continued */
    int status;   /* waitpid's, once ended */
};

struct watch {
    const struct weft_launch_options *options;
    struct child *children; /* [ranks] */
    int control_fd;
    int *arena_fds;                /* [ranks] */
    sigset_t signals;              /* signals that the launcher takes */
    sigset_t mask;                 /* mask before that */
    struct sigaction child_action; /* before */
    int32_t first;                 /* first failed rank, or -1 */
    struct weft_stop *stop;        /* the caller's, or own */
    struct weft_stop own_stop;
    sigset_t passed_on;         /* signals sent to ranks */
    bool at_once;               /* a second request ended the ranks */
    int64_t ask_ns;             /* when to send SIGTERM */
    int64_t kill_ns;            /* when to send SIGKILL */
    bool interfered;            /* either was sent: later failures are not their own */
    int64_t looked_ns, idle_ns; /* time of the last look; time that all have been stopped, or -1 */
    int32_t hung;               /* first rank that was ended for that, or -1 */
};

/* Signals: taken one at a time with sigtimedwait, so there is no handler and no global state */

static void add_unless_ignored(sigset_t *set, int signal_number)
{
    struct sigaction action;
    if (sigaction(signal_number, NULL, &action) == 0 && action.sa_handler != SIG_IGN)
        sigaddset(set, signal_number);
}

static void take_signals(struct watch *w)
{
    /* With SIGCHLD ignored, the kernel would discard exit codes of ranks. */
    struct sigaction wait_for_children = {.sa_handler = SIG_DFL};
    sigemptyset(&wait_for_children.sa_mask);
    sigaction(SIGCHLD, &wait_for_children, &w->child_action);
    sigemptyset(&w->signals);
    sigaddset(&w->signals, SIGCHLD);
    for (int i = 0; i < WEFT_STOP_SIGNALS; i++) {
        const int number = weft_stop_signals[i];
        if (number == SIGINT || number == SIGHUP) /* for background jobs, nohup */
            add_unless_ignored(&w->signals, number);
        else
            sigaddset(&w->signals, number);
    }
    pthread_sigmask(SIG_BLOCK, &w->signals, &w->mask);
}

static void give_back_signals(struct watch *w)
{
    sigaction(SIGCHLD, &w->child_action, NULL);
    pthread_sigmask(SIG_SETMASK, &w->mask, NULL);
}

static void send_all(struct watch *w, int signal_number)
{
    for (int32_t i = 0; i < w->options->ranks; i++) {
        /* A child that has ended but is not waited for still owns its number. */
        if (w->children[i].pid > 0 && !w->children[i].ended)
            kill(w->children[i].pid, signal_number);
    }
}

/* State of a child */

static bool has_failed(const struct child *child)
{
    return child->ended && !(WIFEXITED(child->status) && WEXITSTATUS(child->status) == 0);
}

static bool has_stopped(const struct child *child)
{
    return WIFEXITED(child->status) &&
           WEXITSTATUS(child->status) == weft_status_exit_code(WEFT_E_STOPPED);
}

/* How likely this child caused the others' failures; 0 if it has not failed. */
static int weight_of_cause(const struct child *child)
{
    if (!has_failed(child)) return 0;
    if (WIFSIGNALED(child->status)) return 3;
    return WEXITSTATUS(child->status) == weft_status_exit_code(WEFT_E_LOST) ? 1 : 2;
}

/* True if the child has ended. Notes its status, and whether it is stopped. */
static bool has_ended(struct child *child)
{
    pid_t changed;
    int status = 0;
    while ((changed = waitpid(child->pid, &status, WNOHANG | WUNTRACED | WCONTINUED)) > 0) {
        child->stopped = WIFSTOPPED(status);
        if (!WIFSTOPPED(status) && !WIFCONTINUED(status)) break;
    }
    if (changed == 0 || (changed < 0 && errno == EINTR)) return false;
    /* Another part of this process has waited for it, so its status is lost. */
    child->status = changed < 0 ? weft_status_exit_code(WEFT_E_INTERNAL) << 8 : status;
    child->ended = true;
    return true;
}

static void pass_on(struct watch *w, int signal_number)
{
    sigaddset(&w->passed_on, signal_number);
    send_all(w, signal_number);
}

/* Notes the first failure, and sets the times at which the others are ended. A rank that was asked
 * to stop may be the only one asked. Then the others are asked too, and may take any time to
 * save. */
static void blame_rank(struct watch *w, int32_t rank)
{
    int64_t now_ns = weft_clock_now_ns();
    w->first = rank;
    if (has_stopped(&w->children[rank])) {
        w->interfered = true;
        if (atomic_load(&w->stop->signal_number) == 0) pass_on(w, SIGTERM);
        return;
    }
    if (w->ask_ns == never_ns) w->ask_ns = now_ns + ask_after_ns;
    if (w->kill_ns > now_ns + kill_after_ns) w->kill_ns = now_ns + kill_after_ns;
}

/* Collects ended ranks. Returns the number of running ones. A failing rank makes its peers fail
 * with WEFT_E_LOST, and these may end sooner. So a more likely cause replaces the first one, until
 * the launcher interferes. */
static int32_t collect_ended(struct watch *w)
{
    int32_t running = 0, cause = w->first;
    for (int32_t i = 0; i < w->options->ranks; i++) {
        struct child *child = &w->children[i];
        if (child->pid <= 0 || child->ended) continue;
        if (!has_ended(child)) {
            running++;
            continue;
        }
        int best = cause < 0 ? 0 : weight_of_cause(&w->children[cause]);
        if (weight_of_cause(child) > best) cause = i;
    }
    if (cause != w->first && (w->first < 0 || !w->interfered)) blame_rank(w, cause);
    return running;
}

/* Passes on each signal number once. Ranks of `weft train` count all of them as one request, but
 * another program may ignore the first one. */
static void take_request(struct watch *w, const siginfo_t *info)
{
    int64_t now_ns = weft_clock_now_ns();
    enum weft_stop_answer answer = weft_stop_note(w->stop, info, now_ns);
    if (answer == WEFT_STOP_AT_ONCE) {
        w->at_once = true;
        w->kill_ns = now_ns;
        return;
    }
    if (!sigismember(&w->passed_on, info->si_signo)) pass_on(w, info->si_signo);
    if (weft_stop_is_interrupt(info))
        weft_log(WEFT_LOG_INFO, "the ranks are asked to stop; Ctrl-C again ends them at once");
}

/* Waits for a signal, at most until the next time that is due. */
static void wait_for_signal(struct watch *w)
{
    int64_t now_ns = weft_clock_now_ns();
    int64_t due_ns = now_ns + (w->options->look ? look_often_ns : look_ns);
    int64_t patience_ns = w->idle_ns < 0 ? 0 : w->options->hang_ns - w->idle_ns;
    if (patience_ns > 0 && patience_ns < look_ns) due_ns = now_ns + patience_ns;
    if (w->ask_ns < due_ns) due_ns = w->ask_ns;
    if (w->kill_ns < due_ns) due_ns = w->kill_ns;
    int64_t left_ns = due_ns > now_ns ? due_ns - now_ns : 0;
    struct timespec timeout = {.tv_sec = (time_t)(left_ns / NS_PER_S),
                               .tv_nsec = (long)(left_ns % NS_PER_S)};
    siginfo_t info;
    int signal_number = sigtimedwait(&w->signals, &info, &timeout);
    if (signal_number > 0 && signal_number != SIGCHLD) take_request(w, &info);
}

/* Ranks that wait for a stopped rank report it, with more details. If no rank runs, as with a
 * single rank, the launcher does. A launcher that was stopped too counts little of that time. */
static void look_for_stopped(struct watch *w)
{
    int32_t stopped = -1;
    bool runs = false;
    int64_t now_ns = weft_clock_now_ns(), since_ns = now_ns - w->looked_ns;
    w->looked_ns = now_ns;
    for (int32_t i = w->options->ranks - 1; i >= 0; i--) {
        const struct child *child = &w->children[i];
        if (child->pid <= 0 || child->ended) continue;
        runs = runs || !child->stopped;
        stopped = i;
    }
    if (runs || stopped < 0) {
        w->idle_ns = -1;
        return;
    }
    int64_t most_ns = w->options->hang_ns / 2 < look_ns ? w->options->hang_ns / 2 : look_ns;
    w->idle_ns = w->idle_ns < 0 ? 0 : w->idle_ns + (since_ns < most_ns ? since_ns : most_ns);
    if (w->idle_ns < w->options->hang_ns || w->kill_ns != never_ns) return;
    w->hung = stopped;
    w->kill_ns = now_ns;
}

static void see_to_the_end(struct watch *w)
{
    while (collect_ended(w) > 0) {
        if (w->options->hang_ns > 0) look_for_stopped(w);
        if (w->options->look) w->options->look(w->options->look_context);
        int64_t now_ns = weft_clock_now_ns();
        if (now_ns >= w->kill_ns) {
            w->interfered = true;
            send_all(w, SIGKILL);
            w->kill_ns = now_ns + look_ns;
        } else if (now_ns >= w->ask_ns) {
            w->interfered = true;
            send_all(w, SIGTERM);
            w->ask_ns = never_ns;
        }
        wait_for_signal(w);
    }
}

/* Outcome */

static enum weft_status judge_outcome(const struct watch *w, struct weft_launch_outcome *outcome,
                                      struct weft_error *err)
{
    *outcome = (struct weft_launch_outcome){.rank = w->first};
    if (w->hung >= 0) {
        *outcome = (struct weft_launch_outcome){.rank = w->hung,
                                                .exit_code = weft_status_exit_code(WEFT_E_HANG)};
        return weft_fail(err, WEFT_E_HANG,
                         "rank %d (process %d) was stopped by a signal (SIGCONT continues), and no "
                         "other rank ran that would have waited for it",
                         w->hung, (int)w->children[w->hung].pid);
    }
    if (w->first < 0) return WEFT_OK;
    const struct child *child = &w->children[w->first];
    if (WIFSIGNALED(child->status)) {
        outcome->signal_number = WTERMSIG(child->status);
    } else {
        outcome->exit_code = WEXITSTATUS(child->status);
    }
    enum weft_status status = weft_status_of_exit_code(outcome->exit_code);
    const int stop_signal = atomic_load(&w->stop->signal_number);
    if (stop_signal != 0 &&
        (outcome->signal_number != 0 || status == WEFT_E_LOST || status == WEFT_E_STOPPED)) {
        return weft_fail(err, WEFT_E_STOPPED,
                         w->at_once ? "ended at once by a second request to stop (%s)"
                                    : "stopped by %s, which was passed on to all ranks",
                         strsignal(stop_signal));
    }
    if (weft_stop_asks(outcome->signal_number)) { /* no handler yet: it had not begun to train */
        return weft_fail(err, WEFT_E_STOPPED,
                         "rank %d (process %d) was asked to stop (%s) when it had nothing to "
                         "finish; the other ranks were ended",
                         w->first, (int)child->pid, strsignal(outcome->signal_number));
    }
    if (outcome->signal_number != 0) {
        return weft_fail(err, WEFT_E_LOST, "rank %d (process %d) was killed by signal %d (%s)%s",
                         w->first, (int)child->pid, outcome->signal_number,
                         strsignal(outcome->signal_number),
                         outcome->signal_number == SIGKILL
                             ? ": if nobody sent it, the system ran out of memory (see dmesg); a "
                               "lower memory limit helps"
                             : "");
    }
    if (status == WEFT_E_STOPPED) {
        return weft_fail(err, status, "rank %d was asked to stop, and all ranks did", w->first);
    }
    bool known = weft_status_exit_code(status) == outcome->exit_code;
    return weft_fail(err, status,
                     "rank %d failed first, with exit code %d%s%s%s; the other ranks "
                     "were ended. Its own message says why",
                     w->first, outcome->exit_code, known ? " (" : "",
                     known ? weft_status_text(status) : "", known ? ")" : "");
}

/* Start and end */

static enum weft_status make_memory(struct watch *w, struct weft_error *err)
{
    w->control_fd = memfd_create("weft-control", MFD_CLOEXEC);
    bool failed =
        w->control_fd < 0 || ftruncate(w->control_fd, (off_t)w->options->control_bytes) != 0;
    for (int32_t i = 0; i < w->options->ranks && !failed; i++) {
        w->arena_fds[i] = memfd_create("weft-arena", MFD_CLOEXEC);
        failed = w->arena_fds[i] < 0;
    }
    if (!failed) return WEFT_OK;
    return weft_fail(err, WEFT_E_SYSTEM, "cannot make shared memory for %d ranks: %s%s",
                     w->options->ranks, strerror(errno),
                     errno == EMFILE ? ": raise the limit of open files (ulimit -n)" : "");
}

static enum weft_status start_all(struct watch *w, struct weft_error *err)
{
    const struct weft_rendezvous meeting = {.ranks = w->options->ranks};
    const struct weft_spawn spawn = {
        .options = w->options,
        .control_fd = w->control_fd,
        .arena_fds = w->arena_fds,
        .signals = &w->mask,
        .threads = weft_rendezvous_threads(&meeting, w->options->threads),
    };
    for (int32_t i = 0; i < w->options->ranks; i++) {
        enum weft_status status = weft_spawn_rank(&spawn, i, &w->children[i].pid, err);
        if (status == WEFT_OK) continue;
        send_all(w, SIGKILL);
        return status;
    }
    return WEFT_OK;
}

static enum weft_status run_ranks(struct watch *w, struct weft_launch_outcome *outcome,
                                  struct weft_error *err)
{
    WEFT_TRY(make_memory(w, err));
    take_signals(w);
    /* Signals wait from here on. The caller's handler may have noted one just before. */
    const int asked = atomic_load(&w->stop->signal_number);
    enum weft_status status =
        asked != 0
            ? weft_fail(err, WEFT_E_STOPPED, "stopped by %s before ranks started", strsignal(asked))
            : start_all(w, err);
    see_to_the_end(w);
    give_back_signals(w);
    return status != WEFT_OK ? status : judge_outcome(w, outcome, err);
}

static void finish_watch(struct watch *w)
{
    if (w->control_fd >= 0) close(w->control_fd);
    for (int32_t i = 0; w->arena_fds != NULL && i < w->options->ranks; i++) {
        if (w->arena_fds[i] >= 0) close(w->arena_fds[i]);
    }
    free(w->arena_fds);
    free(w->children);
}

enum weft_status weft_launch(const struct weft_launch_options *asked,
                             struct weft_launch_outcome *outcome, struct weft_error *err)
{
    if (asked->ranks < 1 || asked->ranks > WEFT_LAUNCH_MOST_RANKS) {
        return weft_fail(err, WEFT_E_USAGE, "%d local ranks: 1 to %d can be started", asked->ranks,
                         WEFT_LAUNCH_MOST_RANKS);
    }
    struct weft_launch_options options = *asked;
    struct weft_launch_outcome unwanted;
    size_t ranks = (size_t)options.ranks;
    struct watch w = {
        .options = &options,
        .own_stop = {.grace_ns = options.stop_grace_ns},
        .control_fd = -1,
        .children = calloc(ranks, sizeof *w.children),
        .arena_fds = malloc(ranks * sizeof *w.arena_fds),
        .first = -1,
        .ask_ns = never_ns,
        .kill_ns = never_ns,
        .idle_ns = -1,
        .hung = -1,
    };
    w.stop = options.stop != NULL ? options.stop : &w.own_stop;
    sigemptyset(&w.passed_on);
    for (size_t i = 0; w.arena_fds != NULL && i < ranks; i++)
        w.arena_fds[i] = -1;
    enum weft_status status = w.children != NULL && w.arena_fds != NULL
                                  ? run_ranks(&w, outcome != NULL ? outcome : &unwanted, err)
                                  : weft_fail_memory(err, "a launch");
    finish_watch(&w);
    return status;
}
