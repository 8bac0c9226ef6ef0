/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/job/resume.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "library/run_mark.h"
#include "runtime/checkpoint/directory.h"
#include "runtime/checkpoint/manifest.h"
#include "spec/config_compare.h"
#include "spec/kind.h"

enum { MOST_PROFILE_BYTES = 1 << 28 };

/* Takes a run's directory; false if it has no config. */
static bool take_run(const char *directory, struct weft_resumption *out)
{
    snprintf(out->directory, sizeof out->directory, "%s", directory);
    int n = snprintf(out->own_config, sizeof out->own_config, "%s/config.json", directory);
    bool there = n > 0 && (size_t)n < sizeof out->own_config && access(out->own_config, F_OK) == 0;
    if (!there) out->directory[0] = '\0';
    return there;
}

/* Takes RUN of --resume=RUN/checkpoints/step-N. */
static bool take_named(const char *resume, struct weft_resumption *out)
{
    char path[WEFT_RUN_PATH_BYTES], run[WEFT_RUN_PATH_BYTES + 8];
    size_t length = weft_checkpoint_path_length(resume);
    int64_t step;
    if (length >= sizeof path) return false;
    snprintf(path, sizeof path, "%.*s", (int)length, resume);
    if (!weft_checkpoint_step_of(path, &step)) return false;
    snprintf(run, sizeof run, "%s/../..", path);
    return take_run(run, out);
}

enum weft_status weft_resume_find(const struct weft_cli *cli, struct weft_resumption *out,
                                  struct weft_error *err)
{
    *out = (struct weft_resumption){.own = cli->n_operands == 0};
    out->config = out->own ? out->own_config : cli->operands[0];
    if (out->own && (cli->resume == NULL || cli->run_directory == NULL))
        return weft_fail(err, WEFT_E_USAGE,
                         "train: give a CONFIG, or go on with a run's own: weft train --resume "
                         "--run DIR");
    if (cli->resume == NULL || cli->run_directory == NULL) return WEFT_OK;
    bool marked = false; /* the config of a folder that is no run is not read */
    if (out->own) WEFT_TRY(weft_run_mark_look(cli->run_directory, &marked, err));
    if (take_run(cli->run_directory, out)) return WEFT_OK;
    if (!out->own || take_named(cli->resume, out)) return WEFT_OK;
    return weft_fail(err, WEFT_E_NO_INPUT,
                     "%s: no run has begun there: see that --run is right, or give a CONFIG to "
                     "begin with",
                     cli->run_directory);
}

/* Reports */

static bool is_of_times(const char *path)
{
    return strncmp(path, "cluster.", 8) == 0 && strcmp(path, "cluster.memory_limit") != 0 &&
           strcmp(path, "cluster.timeout") != 0;
}

static bool is_of_plan(const char *path)
{
    return strncmp(path, "plan.", 5) == 0 || strcmp(path, "cluster.memory_limit") == 0;
}

static bool is_told(const char *path)
{
    return strncmp(path, "train.", 6) != 0 || !weft_manifest_compares(path + 6);
}

static enum weft_status compare_configs(struct weft_resumption *from,
                                        const struct weft_config *config,
                                        const struct weft_config *before, struct weft_error *err)
{
    struct weft_text text;
    weft_text_init(&text);
    int32_t n = weft_config_compare(config, before, is_told, &text);
    enum weft_status status =
        weft_text_ok(&text) ? WEFT_OK : weft_fail_memory(err, "a comparison of configs");
    if (status == WEFT_OK && n > 0)
        weft_log(WEFT_LOG_INFO, "%s: goes on with other settings:\n%s", from->directory,
                 weft_text_chars(&text));
    weft_text_finish(&text);
    from->same_times = weft_config_compare(config, before, is_of_times, NULL) == 0;
    from->same_plan =
        from->same_times && weft_config_compare(config, before, is_of_plan, NULL) == 0;
    return status;
}

enum weft_status weft_resume_tell(struct weft_resumption *from, const struct weft_config *config,
                                  struct weft_error *err)
{
    struct weft_config *before = NULL;
    struct weft_error unread = {0};
    if (from->directory[0] == '\0') return WEFT_OK;
    const struct weft_config_input input = {.source = from->own_config, .kinds = config->kinds};
    enum weft_status status = weft_config_load(&input, &before, &unread);
    /* With a named config the run's own config is optional. */
    if (status != WEFT_OK) return from->own ? weft_fail(err, status, "%s", unread.text) : WEFT_OK;
    status = compare_configs(from, config, before, err);
    weft_config_destroy(before);
    return status;
}

/* Profile and plan */

static void name_file(const struct weft_resumption *from, const char *name, struct weft_text *out)
{
    weft_text_init(out);
    weft_text_addf(out, "%s/%s", from->directory, name);
}

enum { NAME_BYTES = 64 };

/* Writes the name of a file of `weft plan --ranks`: "plans/6.json". */
static const char *planned_name(int64_t ranks, const char *kind, char out[NAME_BYTES])
{
    snprintf(out, NAME_BYTES, "plans/%lld%s.json", (long long)ranks, kind);
    return out;
}

/* Whether the run's directory has a plan, and measured times, of so many ranks. */
static bool has_file(const struct weft_resumption *from, int64_t ranks, const char *kind)
{
    char name[NAME_BYTES];
    struct weft_text path;
    name_file(from, planned_name(ranks, kind, name), &path);
    const bool is_there = weft_text_ok(&path) && access(weft_text_chars(&path), R_OK) == 0;
    weft_text_finish(&path);
    return is_there;
}

enum weft_status weft_resume_profile(const struct weft_resumption *from, int64_t ranks,
                                     struct weft_profile **out, struct weft_error *err)
{
    char name[NAME_BYTES];
    struct weft_text path;
    char *bytes = NULL;
    size_t length = 0;
    struct weft_error why = {0};
    if (!from->own || (!from->same_times && !has_file(from, ranks, ".profile"))) return WEFT_OK;
    name_file(from, from->same_times ? "profile.json" : planned_name(ranks, ".profile", name),
              &path);
    enum weft_status status =
        weft_text_ok(&path)
            ? weft_file_read(weft_text_chars(&path), MOST_PROFILE_BYTES, &bytes, &length, &why)
            : weft_fail_memory(&why, "a path");
    if (status == WEFT_OK)
        status = weft_profile_parse(bytes, length, weft_text_chars(&path), out, &why);
    if (status != WEFT_OK) weft_log(WEFT_LOG_WARNING, "%s. Times are taken anew", why.text);
    free(bytes);
    weft_text_finish(&path);
    return status == WEFT_E_SYSTEM ? weft_fail(err, status, "%s", why.text) : WEFT_OK;
}

/* Loads the run's plan. Logs a plan that is missing or does not fit, and returns WEFT_E_DATA. Other
 * errors end the run. */
static enum weft_status load_plan(const struct weft_resumption *from, const char *name,
                                  struct weft_session *session, struct weft_error *err)
{
    struct weft_text path;
    struct weft_error why = {0};
    name_file(from, name, &path);
    enum weft_status status = weft_text_ok(&path)
                                  ? weft_session_load(session, weft_text_chars(&path), &why)
                                  : weft_fail_memory(&why, "a path");
    if (status == WEFT_E_SYSTEM || status == WEFT_E_INTERNAL) {
        weft_fail(err, status, "%s", why.text);
    } else if (status != WEFT_OK) {
        /* The reason begins with the path, too. */
        const bool begins = strncmp(why.text, weft_text_chars(&path), path.length) == 0;
        const char *reason = begins ? strstr(why.text + path.length, ": ") : NULL;
        weft_log(WEFT_LOG_WARNING, "%s: is planned again: %s", weft_text_chars(&path),
                 reason != NULL ? reason + 2 : why.text);
        status = WEFT_E_DATA;
    }
    weft_text_finish(&path);
    return status;
}

enum weft_status weft_resume_plan(const struct weft_resumption *from, struct weft_session *session,
                                  struct weft_error *err)
{
    enum weft_status status = WEFT_E_DATA;
    const int64_t ranks = session->config->cluster.ranks;
    char name[NAME_BYTES];
    if (from->own && from->same_plan)
        status = load_plan(from, "plan.json", session, err);
    else if (from->own && has_file(from, ranks, ""))
        status = load_plan(from, planned_name(ranks, "", name), session, err);
    else if (from->own)
        weft_log(WEFT_LOG_INFO, "%s/plan.json: is planned again, for other settings",
                 from->directory);
    return status == WEFT_E_DATA ? weft_session_plan(session, NULL, err) : status;
}

void weft_resume_command(const char *directory, const struct weft_kinds *kinds,
                         struct weft_text *out)
{
    weft_text_add(out, "weft train --resume --run ");
    weft_text_add_word(out, directory);
    for (int32_t i = 0; kinds != NULL && i < kinds->n_files; i++) {
        weft_text_add(out, " --layers ");
        weft_text_add_word(out, kinds->files[i]);
    }
}
