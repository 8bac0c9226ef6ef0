#include "cli/solver.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

/* The solver checks its own clock coarsely (1.0 s asked, 3.5 s taken), so the kill timer leaves it
 * this factor and this much more before the process is taken for hung. */
enum { KILL_FACTOR = 2, KILL_GRACE_S = 5 };
/* An answer has at most three numbers a column or row, of which the question has more. */
enum { ANSWER_FACTOR = 8, ANSWER_LEAST_BYTES = 1 << 20, NOTE_BYTES = 512 };

static bool executable(const char *path)
{
    return access(path, X_OK) == 0;
}

static bool find_in_path(char *out, size_t capacity)
{
    const char *path = getenv("PATH");
    while (path && *path) {
        size_t length = strcspn(path, ":");
        if (length > 0 && length < capacity &&
            snprintf(out, capacity, "%.*s/weft-solve", (int)length, path) < (int)capacity &&
            executable(out))
            return true;
        path += length + (path[length] == ':');
    }
    return false;
}

const char *weft_solver_find(char *out, size_t capacity)
{
    const char *named = getenv("WEFT_SOLVE");
    if (named) {
        /* Said explicitly: that one or none, so that a wrong path is not papered over. */
        int length = snprintf(out, capacity, "%s", named);
        return length > 0 && (size_t)length < capacity && executable(out) ? out : NULL;
    }
    char self[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n > 0) {
        self[n] = '\0';
        char *slash = strrchr(self, '/');
        if (slash) *slash = '\0';
        /* Beside this program, where it is installed, and in the build tree. */
        static const char *const places[] = {"/weft-solve", "/../libexec/weft/weft-solve",
                                             "/../scheduler/weft-solve"};
        for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
            int length = snprintf(out, capacity, "%s%s", self, places[i]);
            if (length > 0 && (size_t)length < capacity && executable(out)) return out;
        }
    }
    return find_in_path(out, capacity) ? out : NULL;
}

struct child {
    pid_t pid;
    int in, out, note; /* our ends of its stdin, stdout, stderr; -1 when closed */
};

static void close_end(int *fd)
{
    if (*fd >= 0) close(*fd);
    *fd = -1;
}

static void run_child(const char *path, int pipes[3][2], pid_t parent)
{
    /* However weft ends, also by a signal, the solver ends with it. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127);
    dup2(pipes[0][0], STDIN_FILENO);
    dup2(pipes[1][1], STDOUT_FILENO);
    dup2(pipes[2][1], STDERR_FILENO);
    for (int i = 0; i < 3; i++) {
        close(pipes[i][0]);
        close(pipes[i][1]);
    }
    signal(SIGPIPE, SIG_DFL);
    char *argv[] = {(char *)path, NULL};
    execv(path, argv);
    _exit(127);
}

static enum weft_status start(const char *path, struct child *child, struct weft_error *err)
{
    int pipes[3][2] = {{-1, -1}, {-1, -1}, {-1, -1}};
    bool ok = true;
    for (int i = 0; i < 3 && ok; i++) {
        ok = pipe(pipes[i]) == 0;
        for (int end = 0; ok && end < 2; end++)
            ok = fcntl(pipes[i][end], F_SETFD, FD_CLOEXEC) == 0;
    }
    pid_t parent = getpid();
    pid_t pid = ok ? fork() : -1;
    if (pid == 0) run_child(path, pipes, parent);
    if (pid < 0) {
        int reason = errno;
        for (int i = 0; i < 3; i++) {
            close_end(&pipes[i][0]);
            close_end(&pipes[i][1]);
        }
        return weft_fail(err, WEFT_E_SYSTEM, "weft-solve cannot be started: %s", strerror(reason));
    }
    close(pipes[0][0]);
    close(pipes[1][1]);
    close(pipes[2][1]);
    *child = (struct child){pid, pipes[0][1], pipes[1][0], pipes[2][0]};
    fcntl(child->in, F_SETFL, O_NONBLOCK);
    return WEFT_OK;
}

/* What it says on stderr is kept for the message, at most NOTE_BYTES and as one line. */
static void read_note(struct child *child, char *note, size_t *length)
{
    char bytes[NOTE_BYTES];
    ssize_t n = read(child->note, bytes, sizeof bytes);
    if (n <= 0) {
        if (n == 0 || errno != EINTR) close_end(&child->note);
        return;
    }
    for (ssize_t i = 0; i < n && *length + 1 < NOTE_BYTES; i++)
        note[(*length)++] = bytes[i] == '\n'                   ? ' '
                            : isprint((unsigned char)bytes[i]) ? bytes[i]
                                                               : '?';
    note[*length] = '\0';
}

/* False when it is longer than any answer to the question. */
static bool read_answer(struct child *child, size_t most_bytes, struct weft_text *answer)
{
    char bytes[65536];
    ssize_t n = read(child->out, bytes, sizeof bytes);
    if (n > 0)
        weft_text_append(answer, bytes, (size_t)n);
    else if (n == 0 || errno != EINTR)
        close_end(&child->out);
    return answer->length <= most_bytes;
}

static void write_question(struct child *child, const struct weft_text *question, size_t *written)
{
    ssize_t n = write(child->in, weft_text_chars(question) + *written, question->length - *written);
    if (n > 0) *written += (size_t)n;
    bool broken = n < 0 && errno != EINTR && errno != EAGAIN;
    if (broken || *written == question->length) close_end(&child->in);
}

enum talk { TALK_OVER, TALK_LATE, TALK_TOO_LONG };

/* Moves bytes both ways until the solver closes its output, `deadline_ns` comes, or it says more
 * than it can have to say. */
static enum talk talk(struct child *child, const struct weft_text *question, int64_t deadline_ns,
                      struct weft_text *answer, char *note)
{
    size_t written = 0, note_length = 0;
    size_t most_bytes = ANSWER_LEAST_BYTES + ANSWER_FACTOR * question->length;
    while (child->out >= 0) {
        int64_t left_ns = deadline_ns - weft_clock_now_ns();
        if (left_ns <= 0) return TALK_LATE;
        struct pollfd fds[3] = {
            {child->out, POLLIN, 0}, {child->note, POLLIN, 0}, {child->in, POLLOUT, 0}};
        int timeout_ms = left_ns > 1000000000 ? 1000 : (int)(left_ns / 1000000) + 1;
        if (poll(fds, 3, timeout_ms) < 0 && errno != EINTR) return TALK_LATE;
        if (fds[2].revents) write_question(child, question, &written);
        if (fds[1].revents) read_note(child, note, &note_length);
        if (fds[0].revents && !read_answer(child, most_bytes, answer)) return TALK_TOO_LONG;
    }
    return TALK_OVER;
}

/* Waits for the end of a solver that has nothing more to say; false when `deadline_ns` came first,
 * and it was killed. */
static bool wait_for_end(pid_t pid, int64_t deadline_ns, int *wait_status)
{
    static const struct timespec look = {.tv_nsec = 5000000};
    for (;;) {
        pid_t ended = waitpid(pid, wait_status, WNOHANG);
        if (ended == pid || (ended < 0 && errno != EINTR)) return true;
        if (weft_clock_now_ns() >= deadline_ns) break;
        nanosleep(&look, NULL);
    }
    kill(pid, SIGKILL);
    while (waitpid(pid, wait_status, 0) < 0 && errno == EINTR) {
    }
    return false;
}

/* The scheduler tells what failed: "solver failed: " and these words. */
static enum weft_status judge_exit(int wait_status, const char *path, const char *note,
                                   struct weft_error *err)
{
    if (WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0) return WEFT_OK;
    const char *colon = note[0] ? ": " : "";
    if (WIFSIGNALED(wait_status))
        return weft_fail(err, WEFT_E_INTERNAL, "crashed (%s, signal %d)%s%s", path,
                         WTERMSIG(wait_status), colon, note);
    if (WEXITSTATUS(wait_status) == 127)
        return weft_fail(err, WEFT_E_ENVIRONMENT, "missing (%s cannot be executed)", path);
    return weft_fail(err, WEFT_E_INTERNAL, "exit %d (%s)%s%s", WEXITSTATUS(wait_status), path,
                     colon, note);
}

static enum weft_status converse(const char *path, const struct weft_text *question,
                                 int64_t time_ns, struct weft_text *answer, struct weft_error *err)
{
    struct child child = {.in = -1, .out = -1, .note = -1};
    WEFT_TRY(start(path, &child, err));
    int64_t patience_ns = KILL_FACTOR * time_ns + KILL_GRACE_S * INT64_C(1000000000);
    int64_t deadline_ns = time_ns > 0 ? weft_clock_now_ns() + patience_ns : INT64_MAX;
    char note[NOTE_BYTES] = "";
    enum talk ended = talk(&child, question, deadline_ns, answer, note);
    if (ended != TALK_OVER) deadline_ns = 0; /* it is killed if it runs */
    close_end(&child.in);
    close_end(&child.out);
    close_end(&child.note);
    int wait_status = 0;
    bool by_itself = wait_for_end(child.pid, deadline_ns, &wait_status);
    if (ended == TALK_TOO_LONG)
        return weft_fail(err, WEFT_E_INTERNAL, "its answer does not end (%s), killed", path);
    if (!by_itself)
        return weft_fail(err, WEFT_E_HANG, "hung: no answer in %.1f s, killed",
                         (double)patience_ns / 1e9);
    WEFT_TRY(judge_exit(wait_status, path, note, err));
    if (!weft_text_ok(answer)) return weft_fail_memory(err, "the solver's answer");
    return WEFT_OK;
}

static enum weft_status solve(void *context, const struct weft_mip *mip,
                              const struct weft_mip_limits *limits, struct weft_pool *pool,
                              struct weft_mip_result *result, struct weft_error *err)
{
    char found[4096];
    const char *path = context ? context : weft_solver_find(found, sizeof found);
    if (!path) {
        const char *named = getenv("WEFT_SOLVE");
        return named ? weft_fail(err, WEFT_E_ENVIRONMENT,
                                 "missing (WEFT_SOLVE=%s is not an executable file)", named)
                     : weft_fail(err, WEFT_E_ENVIRONMENT,
                                 "missing (no weft-solve beside weft or in PATH; build with "
                                 "GLPK: libglpk-dev)");
    }
    struct weft_text question, answer;
    weft_text_init(&question);
    weft_text_init(&answer);
    weft_mip_write(mip, limits, &question);
    enum weft_status status = weft_text_ok(&question) ? WEFT_OK : weft_fail_memory(err, "the MIP");
    if (status == WEFT_OK) status = converse(path, &question, limits->time_ns, &answer, err);
    if (status == WEFT_OK)
        status =
            weft_mip_result_parse(weft_text_chars(&answer), answer.length, mip, pool, result, err);
    weft_text_finish(&question);
    weft_text_finish(&answer);
    return status;
}

struct weft_solver weft_solver_process(const char *path)
{
    return (struct weft_solver){solve, (void *)path};
}
