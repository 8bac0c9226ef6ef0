/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* for realpath */
#include "cli/report.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "cli/flags.h"
#include "report/page/report.h"

const char *weft_report_program(void)
{
    return "weft " WEFT_VERSION;
}

enum weft_status weft_report_write(const struct weft_page *page, const char *path,
                                   struct weft_error *err)
{
    struct weft_text html;
    weft_text_init(&html);
    weft_page_html(page, &html);
    const enum weft_status status =
        weft_text_ok(&html) ? weft_file_write(path, weft_text_chars(&html), html.length, err)
                            : weft_fail_memory(err, "the report");
    weft_text_finish(&html);
    return status;
}

enum weft_status weft_report_write_run(const char *run, const char *trace, const char *path,
                                       int32_t reload_s, struct weft_error *err)
{
    struct weft_source record;
    struct weft_page page = {.title = NULL};
    enum weft_status status = weft_source_read(run, trace, &record, err);
    if (status == WEFT_OK) {
        weft_report_fill(&page, &record, 1, weft_report_program());
        page.reload_s = reload_s;
        status = weft_report_write(&page, path, err);
    }
    weft_page_finish(&page);
    weft_source_finish(&record);
    return status;
}

/* Whether two folders are one; each ends with a slash or is "", the current one. */
static bool is_same_folder(const char *a, size_t a_length, const char *b, size_t b_length)
{
    char left[PATH_MAX], right[PATH_MAX];
    struct stat one, other;
    snprintf(left, sizeof left, "%.*s.", (int)a_length, a);
    snprintf(right, sizeof right, "%.*s.", (int)b_length, b);
    return stat(left, &one) == 0 && stat(right, &other) == 0 && one.st_dev == other.st_dev &&
           one.st_ino == other.st_ino;
}

/* Whether two paths are one file, which may be missing. Pipes and devices are never replaced. */
static bool is_same_file(const char *a, const char *b)
{
    struct stat one, other;
    const bool has_one = stat(a, &one) == 0, has_other = stat(b, &other) == 0;
    if (has_one != has_other || (has_one && !S_ISREG(one.st_mode))) return false;
    if (has_one) return one.st_dev == other.st_dev && one.st_ino == other.st_ino;
    const char *slash_a = strrchr(a, '/'), *slash_b = strrchr(b, '/');
    const char *name_a = slash_a != NULL ? slash_a + 1 : a;
    const char *name_b = slash_b != NULL ? slash_b + 1 : b;
    return strcmp(name_a, name_b) == 0 &&
           is_same_folder(a, (size_t)(name_a - a), b, (size_t)(name_b - b));
}

static enum weft_status check_output(const char *flag, const char *output, const char *input,
                                     struct weft_error *err)
{
    if (output == NULL || input == NULL || strcmp(input, "-") == 0) return WEFT_OK;
    if (!is_same_file(output, input)) return WEFT_OK;
    return weft_fail(err, WEFT_E_USAGE, "%s %s: this is the input %s; give another file", flag,
                     output, input);
}

/* Files of a run's folder that no page may replace. */
static const char *const run_files[] = {
    "metrics.jsonl", "plan.json", "trace.json", "config.json", "result.json",
    "profile.json",  "weft-run",  "lock",       "checkpoints", "hub"};

static enum weft_status check_inputs(const struct weft_cli *cli, const char *flag,
                                     const char *output, struct weft_error *err)
{
    char path[PATH_MAX];
    WEFT_TRY(check_output(flag, output, cli->trace, err));
    for (int32_t i = 0; i < cli->n_operands; i++) {
        WEFT_TRY(check_output(flag, output, cli->operands[i], err));
        for (size_t k = 0; k < sizeof run_files / sizeof *run_files; k++) {
            const int length = snprintf(path, sizeof path, "%s/%s", cli->operands[i], run_files[k]);
            if (length < (int)sizeof path) /* no longer file can be opened */
                WEFT_TRY(check_output(flag, output, path, err));
        }
    }
    return WEFT_OK;
}

/* Writes an absolute path, without links as far as its folders exist. False if it is too long. */
static bool resolve_path(const char *path, char out[PATH_MAX])
{
    char there[PATH_MAX]; /* the part that exists: at last "/" or "./" */
    const char *begin = path[0] == '/' ? "" : "./";
    const int all = snprintf(there, sizeof there, "%s%s", begin, path);
    if (all >= (int)sizeof there) return false;
    size_t cut = (size_t)all;
    while (realpath(there, out) == NULL) {
        if ((errno != ENOENT && errno != ENOTDIR) || cut == 0) return false;
        while (cut > 0 && there[cut - 1] == '/')
            cut--;
        while (cut > 0 && there[cut - 1] != '/')
            cut--;
        there[cut] = '\0';
    }
    size_t length = strcmp(out, "/") == 0 ? 0 : strlen(out);
    for (const char *at = path + cut - strlen(begin); *at != '\0';) {
        const size_t part = strcspn(at, "/");
        const bool counts = part > 0 && !(part == 1 && at[0] == '.');
        if (counts && length + part + 1 >= PATH_MAX) return false;
        if (counts)
            length += (size_t)snprintf(out + length, PATH_MAX - length, "/%.*s", (int)part, at);
        at += part + (at[part] == '/');
    }
    return true;
}

/* Whether the folder of a file, with `length` bytes of its path, is `run`, which may be missing. */
static bool is_run_folder(const char *path, size_t length, const char *run)
{
    char folder[PATH_MAX], left[PATH_MAX], right[PATH_MAX];
    if (snprintf(folder, sizeof folder, "%.*s.", (int)length, path) >= (int)sizeof folder)
        return false;
    return resolve_path(folder, left) && resolve_path(run, right) && strcmp(left, right) == 0;
}

/* Whether a path is a folder, or will be: the run's own, or one that the run makes above it. */
static bool will_be_folder(const char *path, const char *name, const char *run)
{
    struct stat about;
    char left[PATH_MAX], right[PATH_MAX];
    if (name[0] == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0) return true;
    if (stat(path, &about) == 0) return S_ISDIR(about.st_mode);
    if (!resolve_path(path, left) || !resolve_path(run, right)) return false;
    const size_t length = strlen(left);
    return strncmp(left, right, length) == 0 && (right[length] == '\0' || right[length] == '/');
}

static enum weft_status check_run_file(const char *path, const char *name, const char *run,
                                       struct weft_error *err)
{
    for (size_t k = 0; k < sizeof run_files / sizeof *run_files; k++)
        if (strcmp(name, run_files[k]) == 0)
            return weft_fail(err, WEFT_E_USAGE,
                             "--report %s: the run writes its %s there; give another file, such as "
                             "%s/report.html",
                             path, name, run);
    return WEFT_OK;
}

enum weft_status weft_report_check_train(const struct weft_cli *cli, struct weft_error *err)
{
    const char *path = cli->report, *slash = strrchr(path, '/');
    const size_t length = slash != NULL ? (size_t)(slash - path) + 1 : 0;
    const char *name = path + length, *run = cli->run_directory;
    const bool is_in_run = run != NULL && is_run_folder(path, length, run);
    struct weft_error why = {0};
    if (cli->n_operands > 0) WEFT_TRY(check_output("--report", path, cli->operands[0], err));
    WEFT_TRY(check_output("--report", path, cli->trace, err));
    if (is_in_run) WEFT_TRY(check_run_file(path, name, run, err));
    if (will_be_folder(path, name, run != NULL ? run : "runs/new"))
        return weft_fail(err, WEFT_E_USAGE,
                         "--report \"%s\": this is %s; give a file, such as report.html in the "
                         "run's folder",
                         path, path[0] == '\0' ? "no name" : "a folder");
    /* The run makes its own folder. */
    if (is_in_run && access(run, F_OK) != 0 && errno == ENOENT) return WEFT_OK;
    if (weft_flag_check_folder("--report", path, &why) == WEFT_OK) return WEFT_OK;
    return weft_fail_again(err, &why,
                           "%s; give a file in a folder that is there, or in the run's own (--run)",
                           why.text);
}

enum weft_status weft_report_check_outputs(const struct weft_cli *cli, struct weft_error *err)
{
    if (cli->output != NULL && cli->csv != NULL && is_same_file(cli->output, cli->csv))
        return weft_fail(err, WEFT_E_USAGE, "-o %s: --csv %s is this file too; give another file",
                         cli->output, cli->csv);
    WEFT_TRY(check_inputs(cli, "-o", cli->output, err));
    return check_inputs(cli, "--csv", cli->csv, err);
}

void weft_report_look(void *live)
{
    static const int64_t first_ns = INT64_C(1000000000), every_ns = 60 * INT64_C(1000000000);
    enum { RELOAD_S = 60, REST = 20 /* times as long as a page takes */ };
    struct weft_report_live *report = live;
    struct weft_error err = {0};
    const int64_t begun_ns = weft_clock_now_ns();
    if (report->due_ns == 0) report->due_ns = begun_ns + first_ns;
    if (begun_ns < report->due_ns) return;
    const enum weft_status status =
        weft_report_write_run(report->run, NULL, report->path, RELOAD_S, &err);
    if (status != WEFT_OK && !report->failed)
        weft_log(WEFT_LOG_WARNING, "--report live: %s. Training goes on", err.text);
    report->failed = status != WEFT_OK;
    const int64_t ended_ns = weft_clock_now_ns(), rest_ns = REST * (ended_ns - begun_ns);
    report->due_ns = ended_ns + (rest_ns > every_ns ? rest_ns : every_ns);
}
