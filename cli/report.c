#include "cli/report.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
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
