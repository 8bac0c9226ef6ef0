/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "base/stack.h"
#include "base/wrap.h"
#include "cli/layers.h"
#include "cli/process/affinity.h"
#include "cli/process/solver.h"
#include "cli/progress.h"
#include "cli/terminal.h"
#include "report/answer.h"
#include "runtime/launch/launch.h"

const struct weft_command *const weft_commands[] = {
    &weft_command_demo,     &weft_command_init,       &weft_command_check,
    &weft_command_estimate, &weft_command_profile,    &weft_command_plan,
    &weft_command_explain,  &weft_command_verify,     &weft_command_simulate,
    &weft_command_train,    &weft_command_replay,     &weft_command_audit,
    &weft_command_report,   &weft_command_compare,    &weft_command_generate,
    &weft_command_data,     &weft_command_launch,     &weft_command_sweep,
    &weft_command_study,    &weft_command_best,       &weft_command_doctor,
    &weft_command_schema,   &weft_command_export,     &weft_command_import,
    &weft_command_version,  &weft_command_completion, &weft_command_help,
    &weft_command_rank,     &weft_command_man,        NULL,
};

enum paint { PLAIN, YELLOW = 33, RED = 31 };

/* Prints a message to stderr. It is wrapped on a terminal; otherwise it stays one line, so that a
 * search finds it. */
static void say_message(const struct weft_cli *cli, enum paint paint, const char *what,
                        const char *text)
{
    bool paints = paint != PLAIN && weft_terminal_paints(cli, STDERR_FILENO);
    struct weft_text line, lines;
    weft_text_init(&line);
    weft_text_init(&lines);
    weft_text_add(&lines, weft_cli_progress_eraser(cli, STDERR_FILENO));
    if (paints) weft_text_addf(&line, "\033[1;%dm", (int)paint);
    size_t length = strlen(text); /* a list ends with a new line of its own */
    while (length > 0 && text[length - 1] == '\n')
        length--;
    weft_text_addf(&line, "weft:%s %s", paints ? "\033[0m" : "", what);
    weft_text_append(&line, text, length);
    weft_text_add(&line, "\n");
    weft_wrap(weft_text_chars(&line), (size_t)weft_terminal_columns(STDERR_FILENO), &lines);
    weft_cli_progress_clear(cli);
    if (weft_text_ok(&line) && weft_text_ok(&lines))
        fputs(weft_text_chars(&lines), stderr);
    else
        fprintf(stderr, "weft: %s%s\n", what, text);
    weft_text_finish(&line);
    weft_text_finish(&lines);
}

static void log_to_stderr(void *context, enum weft_log_level level, const char *text)
{
    const struct weft_cli *cli = context;
    if (level == WEFT_LOG_DEBUG && !cli->verbose) return;
    if (level == WEFT_LOG_INFO && (cli->quiet || cli->progress_choice == WEFT_PROGRESS_NONE))
        return;
    if (level == WEFT_LOG_WARNING)
        say_message(cli, YELLOW, "warning: ", text);
    else
        say_message(cli, PLAIN, "", text);
}

/* With --json stdout gets one document even if there is no result. */
static void say_as_json(const struct weft_error *err)
{
    struct weft_answer answer = {0};
    struct weft_json_writer writer;
    struct weft_text text;
    weft_answer_error(&answer, err);
    weft_text_init(&text);
    weft_json_writer_init(&writer, &text, 0);
    weft_answer_json(&answer, &writer);
    if (weft_text_ok(&text)) puts(weft_text_chars(&text));
    weft_text_finish(&text);
    weft_answer_finish(&answer);
}

static int finish_run(const struct weft_cli *cli, enum weft_status status, bool told_elsewhere,
                      struct weft_error *err)
{
    if (status != WEFT_OK) (void)weft_fail(err, status, "%s", weft_status_text(status));
    const char *message = err->text;
    if (status != WEFT_OK && cli->json && !*cli->emitted && !told_elsewhere) say_as_json(err);
    bool written = fflush(stdout) == 0 && !ferror(stdout);
    if (status == WEFT_OK && !written) {
        status = WEFT_E_IO;
        message = "cannot write to standard output";
    }
    if (status != WEFT_OK && !told_elsewhere) say_message(cli, RED, "", message);
    return status != WEFT_OK && err->status == status ? err->exit_code
                                                      : weft_status_exit_code(status);
}

/* A file opened later must not take the number of a standard stream that was closed at the start.
 * Such a stream gets /dev/null, opened so that its use still fails. */
static void keep_standard_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) >= 0) continue;
        if (open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0) return;
    }
}

static enum weft_status open_layers(struct weft_layer_files *layers, struct weft_cli *cli,
                                    struct weft_error *err)
{
    for (int32_t i = 0; i < cli->n_layers; i++)
        WEFT_TRY(weft_layer_files_open(layers, cli->layers[i], err));
    if (cli->n_layers > 0) cli->kinds = &layers->known;
    return WEFT_OK;
}

/* All tasks of an MPI launcher have one command line, so the first one alone runs a verb of no
 * ranks and tells errors. The launcher's exit code is that task's. */
static bool is_silent_task(void)
{
    struct weft_stranger launcher;
    return weft_rendezvous_find_stranger(&launcher) && launcher.library != NULL &&
           launcher.rank != 0;
}

static enum weft_status start_command(const struct weft_cli *cli,
                                      const struct weft_command *command, struct weft_error *err)
{
    const bool starts_ranks = command->starts_ranks || cli->measure;
    const bool serves_hosts = command->serves_hosts || (command->measures_hosts && cli->measure);
    if (!serves_hosts && command->summary != NULL && is_silent_task()) return WEFT_OK;
    if (starts_ranks) WEFT_TRY(weft_rendezvous_need_proc(err));
    if (starts_ranks && !serves_hosts) WEFT_TRY(weft_rendezvous_refuse_strangers(err));
    return command->run(cli, err);
}

int main(int argc, char **argv)
{
    static bool emitted, noted;
    static struct weft_solver_process solver;
    static struct weft_cli_progress progress;
    static struct weft_layer_files layers;
    static struct weft_cli_ending ending;
    static struct weft_cli cli = {
        .ending = &ending, .emitted = &emitted, .noted = &noted, .solver = &solver};
    static struct weft_error err;
    const struct weft_command *command = NULL;
    weft_affinity_restore();
    keep_standard_streams();
    /* A closed pipe is then a write error, with a message and an exit code. */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a file above the size limit likewise */
    enum weft_status status = weft_stack_check(&err);
    if (status == WEFT_OK) status = weft_cli_parse(argc, argv, &cli, &command, &err);
    ending.told_elsewhere = status != WEFT_OK && is_silent_task();
    if (status == WEFT_OK) {
        weft_cli_progress_open(&progress, &cli);
        solver.watch = cli.watch;
        weft_log_set_sink(log_to_stderr, &cli);
        status = open_layers(&layers, &cli, &err);
        if (status == WEFT_OK) status = start_command(&cli, command, &err);
    }
    weft_layer_files_close(&layers);
    weft_cli_progress_clear(&cli);
    if (command && command->told_elsewhere && getenv("WEFT_ERROR_FD")) ending.told_elsewhere = true;
    const int code = finish_run(&cli, status, ending.told_elsewhere, &err);
    if (ending.finish != NULL && !ending.finish()) _exit(code);
    return code;
}
