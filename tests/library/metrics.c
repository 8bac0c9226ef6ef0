#include "library/metrics.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"

static char told[1024];

static void keep(void *context, enum weft_log_level level, const char *text)
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

static void add(struct weft_metrics *metrics, const char *line)
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
    weft_log_set_sink(keep, NULL);
    cr_assert_eq(weft_metrics_open(path, &metrics, &err), WEFT_OK, "%s", err.text);
    add(metrics, "first line\n");
    limit_files(16);
    add(metrics, "second line, cut\n");
    add(metrics, "third line\n");
    cr_assert_null(strstr(told, "written again"), "%s", told);
    limit_files(RLIM_INFINITY);
    add(metrics, "fourth line\n");
    add(metrics, "fifth line\n");
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
