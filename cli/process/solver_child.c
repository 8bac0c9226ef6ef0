/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/process/solver_child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process.h"
#include "cli/process/pipes.h"

/* Between two looks at a solver that says nothing. */
static const int64_t look_ns = INT64_C(100000000);
static const int64_t usual_idle_ns = INT64_C(600000000000);

/* weft ignores SIGPIPE. The solver must not, so that it ends once its reader is gone. */
static void heed_closed_pipes(const void *context)
{
    (void)context;
    signal(SIGPIPE, SIG_DFL);
}

enum weft_status weft_solver_child_start(const char *path, const char *flag,
                                         struct weft_solver_child *child, struct weft_error *err)
{
    int pipes[3][2];
    if (!weft_pipes_open(pipes, 3))
        return weft_fail(err, WEFT_E_SYSTEM, "weft-solve cannot be started: %s", strerror(errno));
    struct weft_process process = {.path = path,
                                   .argv = (char *[]){(char *)path, (char *)flag, NULL},
                                   .in = pipes[0][0],
                                   .out = pipes[1][1],
                                   .note = pipes[2][1],
                                   .prepare = heed_closed_pipes};
    struct weft_error failure = {0};
    pid_t pid = 0;
    enum weft_status status = weft_process_start(&process, &pid, &failure);
    if (status != WEFT_OK) {
        weft_pipes_close(pipes, 3);
        return weft_fail(err, status, "weft-solve cannot be started: %s", failure.text);
    }
    close(pipes[0][0]);
    close(pipes[1][1]);
    close(pipes[2][1]);
    *child = (struct weft_solver_child){.pid = pid,
                                        .path = path,
                                        .in = pipes[0][1],
                                        .out = pipes[1][0],
                                        .note = pipes[2][0],
                                        .idle_ns = usual_idle_ns};
    fcntl(child->in, F_SETFL, O_NONBLOCK);
    return WEFT_OK;
}

static void close_ends(struct weft_solver_child *child)
{
    weft_pipe_close_end(&child->in);
    weft_pipe_close_end(&child->out);
    weft_pipe_close_end(&child->note);
}

void weft_solver_child_stop(struct weft_solver_child *child)
{
    if (child->pid <= 0) return;
    close_ends(child);
    kill(child->pid, SIGKILL);
    while (waitpid(child->pid, NULL, 0) < 0 && errno == EINTR) {
    }
    *child = (struct weft_solver_child){0};
}

bool weft_solver_child_is_ready(const struct weft_solver_child *child)
{
    struct pollfd fd = {child->out, POLLIN, 0};
    return child->pid > 0 && poll(&fd, 1, 0) == 0;
}

/* Keeps the solver's stderr for the error message: as much as fits, as one line. */
static void read_note(struct weft_solver_child *child)
{
    char bytes[WEFT_SOLVER_NOTE_BYTES];
    ssize_t n = read(child->note, bytes, sizeof bytes);
    if (n <= 0) {
        if (n == 0 || errno != EINTR) weft_pipe_close_end(&child->note);
        return;
    }
    for (ssize_t i = 0; i < n && child->said_length + 1 < sizeof child->said; i++)
        child->said[child->said_length++] = bytes[i] == '\n' || bytes[i] == 0 ? ' ' : bytes[i];
}

static void read_answer(struct weft_solver_child *child, struct weft_text *answer)
{
    char bytes[65536];
    ssize_t n = read(child->out, bytes, sizeof bytes);
    if (n > 0)
        weft_text_append(answer, bytes, (size_t)n);
    else if (n == 0 || errno != EINTR)
        weft_pipe_close_end(&child->out);
}

/* Writes more of the question. True if all is written or the solver stopped reading; its end
 * reports that later. */
static bool write_question(struct weft_solver_child *child, const struct weft_text *question,
                           size_t *written)
{
    ssize_t n = write(child->in, weft_text_chars(question) + *written, question->length - *written);
    if (n > 0) *written += (size_t)n;
    bool broken = n < 0 && errno != EINTR && errno != EAGAIN;
    return broken || *written == question->length;
}

/* True if the last line is "end". */
static bool is_whole(const struct weft_text *answer)
{
    static const char last[] = "\nend\n";
    size_t n = sizeof last - 1;
    return answer->length >= n && memcmp(answer->data + answer->length - n, last, n) == 0;
}

enum talk { TALK_WHOLE, TALK_CLOSED, TALK_LATE, TALK_IDLE, TALK_TOO_LONG };

/* CPU time that a process has used; 0 if it cannot be told. */
static int64_t cpu_time_ns(pid_t pid)
{
    clockid_t clock;
    struct timespec used = {0};
    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &used) != 0) return 0;
    return INT64_C(1000000000) * used.tv_sec + used.tv_nsec;
}

/* Time in which a solver used no CPU time, in looks that took place: a machine under load, or
 * asleep, makes no solver idle. */
struct idleness {
    int64_t cpu_ns, idle_ns;
};

static bool is_idle(const struct weft_solver_child *child, struct idleness *of)
{
    const int64_t cpu_ns = cpu_time_ns(child->pid);
    of->idle_ns = cpu_ns == of->cpu_ns ? of->idle_ns + look_ns : 0;
    of->cpu_ns = cpu_ns;
    return of->idle_ns >= child->idle_ns;
}

/* Moves bytes both ways until the answer is complete, the solver closes its output, `deadline_ns`
 * comes, the solver is idle, or the answer is longer than `most_bytes`. */
static enum talk talk_to_solver(struct weft_solver_child *child, const struct weft_text *question,
                                int64_t deadline_ns, size_t most_bytes, struct weft_watch *watch,
                                struct weft_text *answer)
{
    struct idleness idleness = {0};
    size_t written = 0;
    bool asked = false;
    while (child->out >= 0) {
        int64_t left_ns = deadline_ns - weft_clock_now_ns();
        if (left_ns <= 0) return TALK_LATE;
        struct pollfd fds[3] = {{child->out, POLLIN, 0},
                                {child->note, POLLIN, 0},
                                {asked ? -1 : child->in, POLLOUT, 0}};
        int timeout_ms = (int)((left_ns > look_ns ? look_ns : left_ns) / 1000000) + 1;
        weft_watch_look(watch);
        const int n_ready = poll(fds, 3, timeout_ms);
        if (n_ready < 0 && errno != EINTR) return TALK_LATE;
        if (n_ready == 0 && is_idle(child, &idleness)) return TALK_IDLE;
        if (fds[2].revents) asked = write_question(child, question, &written);
        if (fds[1].revents) read_note(child);
        if (fds[0].revents) read_answer(child, answer);
        if (!weft_text_ok(answer) || answer->length > most_bytes) return TALK_TOO_LONG;
        if (is_whole(answer)) return asked ? TALK_WHOLE : TALK_TOO_LONG;
    }
    return TALK_CLOSED;
}

/* Waits for the solver to end after it closed its output; false if `deadline_ns` comes first, or
 * the solver is idle. */
static bool wait_for_end(const struct weft_solver_child *child, int64_t deadline_ns,
                         int *wait_status)
{
    enum { LOOKS = 20 }; /* in look_ns */
    const struct timespec look = {.tv_nsec = look_ns / LOOKS};
    struct idleness idleness = {0};
    for (int64_t looks = 1;; looks++) {
        pid_t ended = waitpid(child->pid, wait_status, WNOHANG);
        if (ended == child->pid || (ended < 0 && errno != EINTR)) return true;
        if (weft_clock_now_ns() >= deadline_ns) return false;
        if (looks % LOOKS == 0 && is_idle(child, &idleness)) return false;
        nanosleep(&look, NULL);
    }
}

/* Fails unless the exit code is 0. The scheduler prints "solver failed: " before these words. */
static enum weft_status judge_exit(int wait_status, const struct weft_solver_child *child,
                                   struct weft_error *err)
{
    if (WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0) return WEFT_OK;
    const char *path = child->path, *note = child->said, *colon = note[0] ? ": " : "";
    if (WIFSIGNALED(wait_status))
        return weft_fail(err, WEFT_E_INTERNAL, "crashed (%s, signal %d)%s%s", path,
                         WTERMSIG(wait_status), colon, note);
    if (WEXITSTATUS(wait_status) == 127)
        return weft_fail(err, WEFT_E_ENVIRONMENT, "missing (%s cannot be executed)", path);
    return weft_fail(err, WEFT_E_INTERNAL, "exit %d (%s)%s%s", WEXITSTATUS(wait_status), path,
                     colon, note);
}

enum weft_status weft_solver_child_ask(struct weft_solver_child *child,
                                       const struct weft_text *question, int64_t patience_ns,
                                       size_t most_bytes, struct weft_watch *watch,
                                       struct weft_text *answer, struct weft_error *err)
{
    int64_t deadline_ns = patience_ns > 0 ? weft_clock_now_ns() + patience_ns : INT64_MAX;
    child->said[0] = '\0'; /* an earlier question's note does not explain this one */
    child->said_length = 0;
    enum talk ended = talk_to_solver(child, question, deadline_ns, most_bytes, watch, answer);
    if (ended == TALK_WHOLE) return WEFT_OK;
    int wait_status = 0;
    close_ends(child);
    bool by_itself = ended == TALK_CLOSED && wait_for_end(child, deadline_ns, &wait_status);
    struct weft_solver_child was = *child;
    if (by_itself)
        *child = (struct weft_solver_child){0};
    else
        weft_solver_child_stop(child);
    if (!weft_text_ok(answer)) return weft_fail_memory(err, "the solver's answer");
    if (ended == TALK_TOO_LONG)
        return weft_fail(err, WEFT_E_INTERNAL, "its answer does not end (%s), killed", was.path);
    const bool is_late = ended == TALK_LATE || weft_clock_now_ns() >= deadline_ns;
    if (!by_itself && !is_late)
        return weft_fail(err, WEFT_E_HANG, "no answer, and no CPU time used in %.1f s, killed",
                         (double)was.idle_ns / 1e9);
    if (!by_itself)
        return weft_fail(err, WEFT_E_HANG, "no answer in %.1f s, killed",
                         (double)patience_ns / 1e9);
    return judge_exit(wait_status, &was, err);
}
