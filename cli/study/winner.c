/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* for realpath */
#include "cli/study/winner.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "cli/process/children.h"
#include "spec/target.h"

enum { PATH_BYTES = 4096, FILE_BYTES = PATH_BYTES + 32 };

static void join_path(const char *folder, const char *name, char out[FILE_BYTES])
{
    snprintf(out, FILE_BYTES, "%.*s/%s", PATH_BYTES - 1, folder, name);
}

enum weft_status weft_winner_check(const char *folder, struct weft_error *err)
{
    char config[FILE_BYTES];
    struct stat about;
    join_path(folder, "config.json", config);
    if (access(config, F_OK) == 0)
        return weft_fail(err, WEFT_E_CREATE,
                         "%s: is there already, and is not written over: give another -o DIR",
                         config);
    const bool is_new = mkdir(folder, 0777) == 0;
    if (!is_new && errno != EEXIST)
        return weft_fail(err, WEFT_E_CREATE, "cannot make the folder %s: %s", folder,
                         strerror(errno));
    const bool is_writable =
        stat(folder, &about) == 0 && S_ISDIR(about.st_mode) && access(folder, W_OK | X_OK) == 0;
    if (is_new) rmdir(folder);
    if (is_writable) return WEFT_OK;
    return weft_fail(err, WEFT_E_CREATE, "%s: is no folder that can be written to", folder);
}

static enum weft_status write_file(const char *folder, const char *name,
                                   const struct weft_text *text, struct weft_error *err)
{
    char path[FILE_BYTES];
    join_path(folder, name, path);
    if (!weft_text_ok(text)) return weft_fail_memory(err, name);
    return weft_file_write(path, weft_text_chars(text), text->length, err);
}

/* Replaces the setting of the profile by that of the written file. */
static enum weft_status write_profile(struct weft_winner *winner, const char *folder,
                                      struct weft_error *err)
{
    static const char key[] = "cluster.profile=";
    WEFT_TRY(write_file(folder, "profile.json", winner->measured, err));
    for (int32_t i = 0; i < winner->place.n; i++)
        if (strncmp(winner->place.settings[i], key, sizeof key - 1) == 0)
            snprintf(winner->place.settings[i], WEFT_PLACE_BYTES, "%s%.*s/profile.json", key,
                     WEFT_PLACE_BYTES - 64, folder);
    return WEFT_OK;
}

static enum weft_status write_config(const struct weft_winner *winner, const char *folder,
                                     bool *is_foreign, struct weft_error *err)
{
    struct weft_session session = {0};
    struct weft_text text;
    weft_text_init(&text);
    enum weft_status status = weft_place_open(winner->cli, &winner->place, &session, err);
    if (status == WEFT_OK) {
        weft_config_write(session.config, &text);
        *is_foreign = weft_config_target(session.config)->is_foreign;
        status = write_file(folder, "config.json", &text, err);
    }
    weft_text_finish(&text);
    weft_session_close(&session);
    return status;
}

/* Runs `weft export` on the written plan. */
static enum weft_status write_export(const char *folder, const char *name, bool snippet,
                                     struct weft_error *err)
{
    char plan[FILE_BYTES], config[FILE_BYTES], file[FILE_BYTES];
    struct weft_child child = {0};
    int32_t ended;
    join_path(folder, "plan.json", plan);
    join_path(folder, "config.json", config);
    join_path(folder, name, file);
    const char *argv[] = {"weft",
                          "export",
                          plan,
                          "--to",
                          "fsdp2",
                          "-o",
                          file,
                          "--config",
                          config,
                          "--quiet",
                          snippet ? "--snippet" : NULL,
                          NULL};
    weft_children_begin();
    enum weft_status status = weft_child_start(&child, argv, err);
    if (status == WEFT_OK) status = weft_children_wait(&child, 1, &ended, NULL, err);
    if (status == WEFT_OK && child.exit_code != 0)
        status = weft_fail(err, weft_status_of_exit_code(child.exit_code), "%s: %s", file,
                           weft_child_error(&child));
    weft_child_finish(&child);
    return weft_children_end(status, err);
}

enum weft_status weft_winner_write(struct weft_winner *winner, struct weft_error *err)
{
    bool is_foreign = false;
    if (mkdir(winner->cli->output, 0777) != 0 && errno != EEXIST)
        return weft_fail(err, WEFT_E_CREATE, "cannot make the folder %s: %s", winner->cli->output,
                         strerror(errno));
    char *folder = realpath(winner->cli->output, NULL);
    if (folder == NULL)
        return weft_fail(err, WEFT_E_CREATE, "cannot write to %s: %s", winner->cli->output,
                         strerror(errno));
    enum weft_status status = WEFT_OK;
    if (winner->measured != NULL) status = write_profile(winner, folder, err);
    if (status == WEFT_OK) status = write_file(folder, "plan.json", winner->plan, err);
    if (status == WEFT_OK) status = write_config(winner, folder, &is_foreign, err);
    if (status == WEFT_OK && is_foreign) status = write_export(folder, "fsdp2.json", false, err);
    if (status == WEFT_OK && is_foreign) status = write_export(folder, "fsdp2.py", true, err);
    free(folder);
    return status;
}

/* Whether a word of the row's command is left out for a person. */
static bool is_left_out(const char *word)
{
    return strcmp(word, "--output=-") == 0 || strcmp(word, "--quiet") == 0 ||
           strcmp(word, "--json") == 0;
}

/* After the files are written: their next use. Only a machine that was measured trains. */
static void tell_folder(const struct weft_winner *winner, const char *folder, struct weft_text *out)
{
    struct weft_session session = {0};
    struct weft_error ignored = {0};
    bool is_foreign = false, trains = false;
    if (weft_place_open(winner->cli, &winner->place, &session, &ignored) == WEFT_OK) {
        is_foreign = weft_config_target(session.config)->is_foreign;
        trains =
            !is_foreign && (winner->measured != NULL || session.config->cluster.profile != NULL ||
                            weft_config_emulates(session.config));
    }
    weft_session_close(&session);
    weft_text_addf(out, "next: weft explain %s/plan.json\n", folder);
    if (is_foreign)
        weft_text_addf(out, "      %s/fsdp2.py has the calls for PyTorch (docs/pytorch.md)\n",
                       folder);
    if (trains)
        weft_text_addf(out, "      weft train %s/config.json --plan %s/plan.json\n", folder,
                       folder);
    else
        weft_text_addf(out, "      weft verify %s/plan.json --config %s/config.json\n", folder,
                       folder);
}

void weft_winner_tell_next(const struct weft_winner *winner, struct weft_text *out)
{
    const char *folder = winner->cli->output, *argv[WEFT_PLACE_ARGUMENTS] = {NULL};
    struct weft_place place = winner->place;
    if (folder != NULL) {
        tell_folder(winner, folder, out);
        return;
    }
    const int n = weft_place_plan(winner->cli, &place, winner->measured != NULL, argv);
    weft_text_add(out, "next:");
    for (int i = 0; i < n; i++)
        if (!is_left_out(argv[i])) {
            weft_text_add(out, " ");
            weft_text_add_word(out, argv[i]);
        }
    weft_text_add(out, " -o plan.json\n");
    weft_text_add(out, "or the same command with -o DIR, which writes config and plan\n");
}
