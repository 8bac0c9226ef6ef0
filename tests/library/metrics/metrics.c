/* SPDX-License-Identifier: Apache-2.0 */
#include "library/metrics/metrics.h"

#include <criterion/criterion.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"

static char told[1024];

static void keep_log(void *context, enum weft_log_level level, const char *text)
{
    (void)context;
    (void)level;
    strncat(told, text, sizeof told - strlen(told) - 1);
    strncat(told, "\n", sizeof told - strlen(told) - 1);
}

static void limit_files(rlim_t bytes)
{
    struct rlimit limit;
    cr_assert_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes;
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void add_line(struct weft_metrics *metrics, const char *line)
{
    struct weft_text text;
    struct weft_error err = {0};
    weft_text_init(&text);
    weft_text_add(&text, line);
    cr_assert_eq(weft_metrics_add(metrics, &text, &err), WEFT_OK, "%s", err.text);
    weft_text_finish(&text);
}

/* A limit on sizes stands for a full disk: the write that meets it is short, the next ones fail. */
Test(metrics, has_whole_lines_behind_a_full_disk)
{
    char directory[] = "/tmp/weft-metrics-XXXXXX", path[64];
    struct weft_metrics *metrics = NULL;
    struct weft_error err = {0};
    cr_assert_not_null(mkdtemp(directory));
    snprintf(path, sizeof path, "%s/metrics.jsonl", directory);
    signal(SIGXFSZ, SIG_IGN);
    weft_log_set_sink(keep_log, NULL);
    cr_assert_eq(weft_metrics_open(path, &metrics, &err), WEFT_OK, "%s", err.text);
    add_line(metrics, "first line\n");
    limit_files(16);
    add_line(metrics, "second line, cut\n");
    add_line(metrics, "third line\n");
    cr_assert_null(strstr(told, "written again"), "%s", told);
    limit_files(RLIM_INFINITY);
    add_line(metrics, "fourth line\n");
    add_line(metrics, "fifth line\n");
    weft_metrics_close(metrics);
    weft_log_set_sink(NULL, NULL);

    char *bytes = NULL;
    size_t length = 0;
    cr_assert_eq(weft_file_read(path, 4096, &bytes, &length, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(length, strlen("first line\nfourth line\nfifth line\n"));
    cr_assert_eq(memcmp(bytes, "first line\nfourth line\nfifth line\n", length), 0);
    cr_assert_not_null(strstr(told, "cannot be written: File too large"), "%s", told);
    cr_assert_not_null(strstr(told, "lacks 2 lines"), "%s", told);
    int32_t lines = 0;
    for (const char *at = told; *at != '\0'; at++)
        lines += *at == '\n';
    cr_assert_eq(lines, 2, "%s", told);
    free(bytes);
    unlink(path);
    rmdir(directory);
}

/* A line without its time, which differs. */
static void expect_line(const struct weft_text *line, const char *kind, const char *rest)
{
    char known[1600], *time_end;
    const char *text = weft_text_chars(line);
    const int n = snprintf(known, sizeof known, "{\"kind\":\"%s\",%s\"unix_ms\":", kind,
                           strcmp(kind, "result") == 0 ? "\"weft\":\"" WEFT_VERSION "\"," : "");
    char packed[1600], *to = packed;
    for (const char *at = text; *at != '\0' && to < packed + sizeof packed - 1; at++)
        if (*at != ' ') *to++ = *at;
    *to = '\0';
    cr_assert_eq(strncmp(packed, known, (size_t)n), 0, "%s", packed);
    cr_assert_gt(strtoll(packed + n, &time_end, 10), 1600000000000);
    cr_assert_str_eq(time_end, rest);
}

/* Each value is another, so that no two are mistaken for one another. */
Test(metrics, lines_have_their_values)
{
    struct weft_text out;
    const struct weft_run_facts early = {NAN, WEFT_UNMEASURED, 7, true};
    const struct weft_run_facts facts = {1.5, 2048, 31, false};
    struct weft_step_line step = {.step = 3,
                                  .steps = 9,
                                  .loss = 2.5,
                                  .norm = 0.25,
                                  .clip = 0.5,
                                  .lr = 0.125,
                                  .loss_scale = 4,
                                  .step_ns = 11,
                                  .exposed_ns = 12,
                                  .overlapped_ns = 13,
                                  .data_wait_ns = 14,
                                  .tokens = 15,
                                  .model_flops_per_s = 16,
                                  .mfu = 0.75,
                                  .run = facts};
    weft_text_init(&out);
    weft_metrics_step(&step, &out);
    expect_line(&out, "step",
                ",\"step\":3,\"tokens_per_s\":1.5,\"held_bytes\":2048,\"predicted_step_ns\":31,"
                "\"emulated\":false,\"loss\":2.5,\"norm\":0.25,\"clip\":0.5,\"lr\":0.125,"
                "\"loss_scale\":4,\"step_ns\":11,\"exposed_ns\":12,\"overlapped_ns\":13,"
                "\"data_wait_ns\":14,\"tokens\":15,\"model_flops_per_s\":16,\"mfu\":0.75}\n");
    weft_text_finish(&out);
    weft_text_init(&out);
    step.norm = WEFT_UNMEASURED; /* not computed */
    step.loss = NAN;
    step.run = early;
    weft_metrics_step(&step, &out);
    cr_assert_null(strstr(weft_text_chars(&out), "norm"), "%s", weft_text_chars(&out));
    cr_assert_not_null(strstr(weft_text_chars(&out), "null"), "%s", weft_text_chars(&out));
    weft_text_finish(&out);
    weft_text_init(&out);
    const struct weft_save_line save = {.step = 4, .bytes = 5, .ns = 6, .run = early};
    weft_metrics_save(&save, &out);
    expect_line(&out, "checkpoint",
                ",\"step\":4,\"tokens_per_s\":null,\"held_bytes\":null,\"predicted_step_ns\":7,"
                "\"emulated\":true,\"saved_bytes\":5,\"save_ns\":6}\n");
    weft_text_finish(&out);
}

Test(metrics, a_loss_is_shown_in_bits_of_its_unit)
{
    static const char *const names[] = {"byte", "token", "sample"};
    for (int of = WEFT_LOSS_OF_BYTE; of <= WEFT_LOSS_OF_SAMPLE; of++) {
        struct weft_text out;
        char known[200];
        const struct weft_evaluation_line line = {.step = 8,
                                                  .samples = 32,
                                                  .loss = 2 * 0.69314718055994530942,
                                                  .of = (enum weft_loss_of)of,
                                                  .ns = 99,
                                                  .run = {1, 2, 3, true}};
        cr_assert_str_eq(weft_metrics_loss_of(line.of), names[of]);
        weft_text_init(&out);
        weft_metrics_evaluation(&line, &out);
        snprintf(known, sizeof known,
                 ",\"step\":8,\"tokens_per_s\":1,\"held_bytes\":2,\"predicted_step_ns\":3,"
                 "\"emulated\":true,\"validation_loss\":1.3862943611198906,\"bits_per_%s\":2,"
                 "\"samples\":32,\"validation_ns\":99}\n",
                 names[of]);
        expect_line(&out, "validation", known);
        weft_text_finish(&out);
    }
}
