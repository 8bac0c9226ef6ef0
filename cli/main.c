#include "cli/command.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

const struct weft_command *const weft_commands[] = {
    &weft_command_demo,    &weft_command_check,    &weft_command_estimate,
    &weft_command_profile, &weft_command_plan,     &weft_command_explain,
    &weft_command_verify,  &weft_command_simulate, &weft_command_train,
    &weft_command_doctor,  &weft_command_schema,   &weft_command_version,
    &weft_command_help,    &weft_command_rank,     NULL,
};

static void log_to_stderr(void *context, enum weft_log_level level, const char *text)
{
    const struct weft_cli *cli = context;
    if (level == WEFT_LOG_DEBUG && !cli->verbose) return;
    if (level == WEFT_LOG_INFO && cli->quiet) return;
    fprintf(stderr, "weft: %s%s\n", level == WEFT_LOG_WARNING ? "warning: " : "", text);
}

static int finish(enum weft_status status, bool told_elsewhere, const struct weft_error *err)
{
    if (status == WEFT_OK && (fflush(stdout) != 0 || ferror(stdout))) {
        fputs("weft: cannot write to standard output\n", stderr);
        return weft_status_exit_code(WEFT_E_IO);
    }
    if (status != WEFT_OK && !told_elsewhere)
        fprintf(stderr, "weft: %s\n", err->text[0] ? err->text : weft_status_text(status));
    return weft_status_exit_code(status);
}

int main(int argc, char **argv)
{
    static struct weft_cli cli;
    static struct weft_error err;
    const struct weft_command *command = NULL;
    /* A closed pipe is a write error like any other, with a message and an exit code. */
    signal(SIGPIPE, SIG_IGN);
    enum weft_status status = weft_cli_parse(argc, argv, &cli, &command, &err);
    if (status == WEFT_OK) {
        weft_log_set_sink(log_to_stderr, &cli);
        status = command->run(&cli, &err);
    }
    bool told_elsewhere = command && command->told_elsewhere && getenv("WEFT_ERROR_FD");
    return finish(status, told_elsewhere, &err);
}
