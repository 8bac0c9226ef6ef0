#include "cli/report.h"

#include "base/file.h"
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
                                       struct weft_error *err)
{
    struct weft_source record;
    struct weft_page page = {.title = NULL};
    enum weft_status status = weft_source_read(run, trace, &record, err);
    if (status == WEFT_OK) {
        weft_report_fill(&page, &record, 1, weft_report_program());
        status = weft_report_write(&page, path, err);
    }
    weft_page_finish(&page);
    weft_source_finish(&record);
    return status;
}
