/* SPDX-License-Identifier: Apache-2.0 */
#include "base/process.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void handle(int number)
{
    (void)number;
    _exit(7);
}

static void raise_it(const void *number)
{
    raise(*(const int *)number);
}

/* A process that runs `script`. */
static struct weft_process shell(char *argv[4], const char *script)
{
    argv[0] = (char *)"sh";
    argv[1] = (char *)"-c";
    argv[2] = (char *)script;
    argv[3] = NULL;
    return (struct weft_process){.path = "/bin/sh", .argv = argv, .in = -1, .out = -1, .note = -1};
}

static int wait_for(pid_t pid)
{
    int status = 0;
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    return status;
}

/* The exit of a program that receives the signal between fork and exec. */
static int outcome_of(int number, void (*action)(int))
{
    char *argv[4];
    struct weft_process process = shell(argv, "exit 3");
    struct weft_error err = {0};
    pid_t pid = 0;
    signal(number, action);
    process.prepare = raise_it;
    process.context = &number;
    cr_assert_eq(weft_process_start(&process, &pid, &err), WEFT_OK, "%s", err.text);
    int status = wait_for(pid);
    return WIFSIGNALED(status) ? WTERMSIG(status) : -WEXITSTATUS(status);
}

Test(process, a_child_does_not_run_its_parents_handlers)
{
    static const int numbers[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        cr_assert_eq(outcome_of(numbers[i], handle), numbers[i]);
        cr_assert_eq(outcome_of(numbers[i], SIG_IGN), -3, "what is ignored stays so");
    }
}

/* Starts the process with stdout and stderr in a pipe. Returns its output and checks that it
 * succeeded. */
static void hear(struct weft_process *process, char *said, size_t bytes)
{
    struct weft_error err = {0};
    pid_t pid = 0;
    int out[2];
    cr_assert_eq(pipe2(out, O_CLOEXEC), 0);
    process->out = process->note = out[1];
    cr_assert_eq(weft_process_start(process, &pid, &err), WEFT_OK, "%s", err.text);
    close(out[1]);
    cr_assert_eq(wait_for(pid), 0);
    ssize_t n = read(out[0], said, bytes - 1);
    cr_assert_geq(n, 0);
    said[n] = '\0';
    close(out[0]);
}

Test(process, streams_and_environment_are_what_was_asked)
{
    int in[2];
    char *argv[4], said[256], *environment[] = {(char *)"WORD=said", NULL};
    struct weft_process process = shell(argv, "read line; echo \"$line $WORD\"; echo note >&2");
    cr_assert_eq(pipe2(in, O_CLOEXEC), 0);
    cr_assert_eq(write(in[1], "as\n", 3), 3);
    process.environment = environment;
    process.in = in[0];
    hear(&process, said, sizeof said);
    cr_assert_str_eq(said, "as said\nnote\n");
}

/* Not by a shell, which may unblock all when it begins. */
Test(process, the_mask_is_what_was_asked)
{
    char *argv[] = {(char *)"grep", (char *)"SigBlk:", (char *)"/proc/self/status", NULL};
    struct weft_process process = {.path = "/bin/grep", .argv = argv, .in = -1};
    char said[256];
    sigset_t asked, own;
    sigemptyset(&asked);
    sigaddset(&asked, SIGTERM); /* 15: bit 14 */
    process.signals = &asked;
    hear(&process, said, sizeof said);
    cr_assert_str_eq(said, "SigBlk:\t0000000000004000\n");
    sigemptyset(&own);
    sigaddset(&own, SIGHUP);
    sigprocmask(SIG_SETMASK, &own, NULL);
    process.signals = NULL;
    hear(&process, said, sizeof said);
    cr_assert_str_eq(said, "SigBlk:\t0000000000000001\n",
                     "as the caller's, which has its own again");
}

Test(process, without_a_stream_there_is_nothing_to_read)
{
    char *argv[4];
    struct weft_process process = shell(argv, "read line || exit 5");
    struct weft_error err = {0};
    pid_t pid = 0;
    int own[2];
    cr_assert_eq(pipe(own), 0);
    cr_assert_eq(write(own[1], "mine\n", 5), 5);
    cr_assert_eq(dup2(own[0], STDIN_FILENO), STDIN_FILENO);
    cr_assert_eq(weft_process_start(&process, &pid, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(WEXITSTATUS(wait_for(pid)), 5);
}

Test(process, a_program_that_is_not_there_is_an_error_and_leaves_no_child)
{
    static const struct {
        const char *path;
        enum weft_status status;
    } cases[] = {{"/nowhere/program", WEFT_E_NO_INPUT}, {"/etc/passwd", WEFT_E_PERMISSION}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *argv[4];
        struct weft_process process = shell(argv, "");
        struct weft_error err = {0};
        pid_t pid = -5;
        process.path = cases[i].path;
        cr_assert_eq(weft_process_start(&process, &pid, &err), cases[i].status);
        cr_assert(strstr(err.text, cases[i].path), "%s", err.text);
        cr_assert_eq(pid, -5, "untouched on failure");
        cr_assert_eq(waitpid(-1, NULL, WNOHANG), -1, "no child is left");
    }
}
