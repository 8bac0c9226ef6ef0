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
    *child = (struct weft_solver_child){
        .pid = pid, .path = path, .in = pipes[0][1], .out = pipes[1][0], .note = pipes[2][0]};
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

enum talk { TALK_WHOLE, TALK_CLOSED, TALK_LATE, TALK_TOO_LONG };

/* Moves bytes both ways until the answer is complete, the solver closes its output, `deadline_ns`
 * comes, or the answer is longer than `most_bytes`. */
static enum talk talk_to_solver(struct weft_solver_child *child, const struct weft_text *question,
                                int64_t deadline_ns, size_t most_bytes, struct weft_watch *watch,
                                struct weft_text *answer)
{
    const int64_t look_ns = INT64_C(100000000);
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
        if (poll(fds, 3, timeout_ms) < 0 && errno != EINTR) return TALK_LATE;
        if (fds[2].revents) asked = write_question(child, question, &written);
        if (fds[1].revents) read_note(child);
        if (fds[0].revents) read_answer(child, answer);
        if (!weft_text_ok(answer) || answer->length > most_bytes) return TALK_TOO_LONG;
        if (is_whole(answer)) return asked ? TALK_WHOLE : TALK_TOO_LONG;
    }
    return TALK_CLOSED;
}

/* Waits for the solver to end; false if `deadline_ns` comes first. */
static bool wait_for_end(pid_t pid, int64_t deadline_ns, int *wait_status)
{
    static const struct timespec look = {.tv_nsec = 5000000};
    for (;;) {
        pid_t ended = waitpid(pid, wait_status, WNOHANG);
        if (ended == pid || (ended < 0 && errno != EINTR)) return true;
        if (weft_clock_now_ns() >= deadline_ns) return false;
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
    bool by_itself = ended == TALK_CLOSED && wait_for_end(child->pid, deadline_ns, &wait_status);
    struct weft_solver_child was = *child;
    if (by_itself)
        *child = (struct weft_solver_child){0};
    else
        weft_solver_child_stop(child);
    if (!weft_text_ok(answer)) return weft_fail_memory(err, "the solver's answer");
    if (ended == TALK_TOO_LONG)
        return weft_fail(err, WEFT_E_INTERNAL, "its answer does not end (%s), killed", was.path);
    if (!by_itself)
        return weft_fail(err, WEFT_E_HANG, "no answer in %.1f s, killed",
                         (double)patience_ns / 1e9);
    return judge_exit(wait_status, &was, err);
}
