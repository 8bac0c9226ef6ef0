/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "runtime/comm/comm.h"
#include "runtime/launch/launch.h"

/* Finds the program as a shell does: by its path, or in PATH. */
static enum weft_status find_program(const char *name, char *out, size_t capacity,
                                     struct weft_error *err)
{
    const char *path = strchr(name, '/') ? NULL : getenv("PATH");
    int length = path ? 0 : snprintf(out, capacity, "%s", name);
    while (path && *path) {
        size_t part = strcspn(path, ":");
        length = snprintf(out, capacity, "%.*s/%s", (int)part, path, name);
        if (length > 0 && (size_t)length < capacity && access(out, X_OK) == 0) return WEFT_OK;
        length = 0;
        path += part + (path[part] == ':');
    }
    if (length > 0 && (size_t)length < capacity) return WEFT_OK;
    return weft_fail(err, WEFT_E_NO_INPUT,
                     "launch: there is no program %s in PATH; one in this directory is ./%s", name,
                     name);
}

static enum weft_status run_launch(const struct weft_cli *cli, struct weft_error *err)
{
    char path[4096];
    if (cli->ranks == 0)
        return weft_fail(err, WEFT_E_USAGE, "launch: say how many ranks with -n N");
    if (cli->ranks > WEFT_LAUNCH_MOST_RANKS)
        return weft_fail(err, WEFT_E_USAGE, "launch: -n %lld: 1 to %d ranks can be started",
                         (long long)cli->ranks, WEFT_LAUNCH_MOST_RANKS);
    WEFT_TRY(find_program(cli->operands[0], path, sizeof path, err));
    char **argv = calloc((size_t)cli->n_operands + 1, sizeof *argv);
    if (!argv) return weft_fail_memory(err, "a command line");
    memcpy(argv, cli->operands, (size_t)cli->n_operands * sizeof *argv);
    const struct weft_launch_options options = {
        .ranks = (int32_t)cli->ranks,
        .path = path,
        .argv = argv,
        .control_bytes = weft_comm_control_bytes((int32_t)cli->ranks),
    };
    struct weft_launch_outcome outcome = {.rank = -1};
    enum weft_status status = weft_launch(&options, &outcome, err);
    /* The program's exit code is passed on unchanged. */
    if (status != WEFT_OK && status != WEFT_E_STOPPED && outcome.exit_code != 0)
        err->exit_code = outcome.exit_code;
    free(argv);
    return status;
}

const struct weft_command weft_command_launch = {
    .name = "launch",
    .usage = "PROGRAM [ARGUMENT...]",
    .summary = "starts local ranks of a program that uses libweft",
    .details =
        "Starts PROGRAM N times (-n N), each as a rank that finds the others (weft_open in "
        "weft.h), and waits for all. Everything after PROGRAM is its own. Ranks read nothing from "
        "standard input. The exit code is that of the rank that failed first, which is named; the "
        "others are ended then. SIGTERM, SIGUSR1, SIGUSR2, SIGXCPU, SIGINT and SIGHUP go to all "
        "ranks, each once. Ctrl-C twice, or the first signal again after 10 s, kills.",
    .flags = "--ranks",
    .starts_ranks = true,
    .least_operands = 1,
    .most_operands = WEFT_CLI_OPERANDS,
    .starts_program = true,
    .run = run_launch,
};
