/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/process/children.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/process.h"
#include "cli/process/pipes.h"
#include "runtime/launch/launch.h"
#include "runtime/launch/stop.h"

/* A signal that arrives just before poll() is noticed at most this much later. */
enum { LOOK_MS = 100, MOST_BYTES = 1 << 30 };

static volatile sig_atomic_t stop_signal;
static struct sigaction before[WEFT_STOP_SIGNALS];

static void note_signal(int number)
{
    stop_signal = number;
}

void weft_children_begin(void)
{
    struct sigaction action = {.sa_handler = note_signal};
    stop_signal = 0;
    for (int i = 0; i < WEFT_STOP_SIGNALS; i++) {
        sigaction(weft_stop_signals[i], NULL, &before[i]);
        if (before[i].sa_handler != SIG_IGN) sigaction(weft_stop_signals[i], &action, NULL);
    }
}

static enum weft_status fail_stopped(struct weft_error *err)
{
    return weft_fail(err, WEFT_E_STOPPED, "stopped by signal %d", (int)stop_signal);
}

enum weft_status weft_children_end(enum weft_status status, struct weft_error *err)
{
    for (int i = 0; i < WEFT_STOP_SIGNALS; i++)
        sigaction(weft_stop_signals[i], &before[i], NULL);
    return status == WEFT_OK && stop_signal ? fail_stopped(err) : status;
}

enum weft_status weft_child_start(struct weft_child *child, const char *const *argv,
                                  struct weft_error *err)
{
    int pipes[2][2];
    WEFT_TRY(weft_rendezvous_need_proc(err));
    if (!weft_pipes_open(pipes, 2))
        return weft_fail(err, WEFT_E_SYSTEM, "weft %s cannot be started: %s", argv[1],
                         strerror(errno));
    struct weft_process process = {
        .argv = (char *const *)argv, .in = -1, .out = pipes[0][1], .note = pipes[1][1]};
    struct weft_error failure = {0};
    pid_t pid = 0;
    enum weft_status status = weft_process_start(&process, &pid, &failure);
    if (status != WEFT_OK) {
        weft_pipes_close(pipes, 2);
        return weft_fail(err, status, "weft %s cannot be started: %s", argv[1], failure.text);
    }
    weft_pipe_close_end(&pipes[0][1]);
    weft_pipe_close_end(&pipes[1][1]);
    *child = (struct weft_child){.pid = pid, .out = pipes[0][0], .note = pipes[1][0]};
    weft_text_init(&child->said);
    weft_text_init(&child->noted);
    return WEFT_OK;
}

static void take_in(int *fd, struct weft_text *text)
{
    char bytes[65536];
    ssize_t n = read(*fd, bytes, sizeof bytes);
    if (n > 0 && text->length < MOST_BYTES)
        weft_text_append(text, bytes, (size_t)n);
    else if (n >= 0 || errno != EINTR)
        weft_pipe_close_end(fd);
}

static void reap_child(struct weft_child *child)
{
    int wait_status = 0;
    while (waitpid((pid_t)child->pid, &wait_status, 0) < 0 && errno == EINTR) {
    }
    child->exit_code =
        WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
    child->pid = 0;
    struct weft_text *noted = &child->noted;
    while (noted->length > 0 && noted->data[noted->length - 1] == '\n')
        noted->data[--noted->length] = '\0';
}

/* Reads available output. True if a child has closed both of its streams: it is reaped, and its
 * index is in *ended. */
static bool read_outputs(struct weft_child *children, int32_t n, int32_t *ended)
{
    struct pollfd fds[2 * WEFT_CHILDREN_MOST];
    nfds_t n_fds = 0;
    for (int32_t i = 0; i < n; i++) {
        bool runs = children[i].pid > 0;
        fds[n_fds++] = (struct pollfd){runs ? children[i].out : -1, POLLIN, 0};
        fds[n_fds++] = (struct pollfd){runs ? children[i].note : -1, POLLIN, 0};
    }
    if (poll(fds, n_fds, LOOK_MS) <= 0) return false;
    for (int32_t i = 0; i < n; i++) {
        struct weft_child *child = &children[i];
        if (fds[2 * i].revents) take_in(&child->out, &child->said);
        if (fds[2 * i + 1].revents) take_in(&child->note, &child->noted);
        if (child->pid <= 0 || child->out >= 0 || child->note >= 0) continue;
        reap_child(child);
        *ended = i;
        return true;
    }
    return false;
}

enum weft_status weft_children_wait(struct weft_child *children, int32_t n, int32_t *ended,
                                    struct weft_watch *watch, struct weft_error *err)
{
    for (; !stop_signal; weft_watch_look(watch))
        if (read_outputs(children, n, ended)) return WEFT_OK;
    return fail_stopped(err);
}

const char *weft_child_error(const struct weft_child *child)
{
    const char *text = weft_text_chars(&child->noted), *last = text;
    for (const char *at = text; (at = strstr(at, "weft: ")); at += strlen("weft: "))
        if (at == text || at[-1] == '\n') last = at + strlen("weft: ");
    return last;
}

void weft_child_finish(struct weft_child *child)
{
    if (child->pid > 0) {
        kill((pid_t)child->pid, SIGKILL);
        weft_pipe_close_end(&child->out);
        weft_pipe_close_end(&child->note);
        reap_child(child);
    }
    weft_text_finish(&child->said);
    weft_text_finish(&child->noted);
    *child = (struct weft_child){0};
}
