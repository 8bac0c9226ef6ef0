#include "cli/metrics.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"

enum weft_status weft_metrics_begin(const char *path, struct weft_error *err)
{
    if (unlink(path) == 0 || errno == ENOENT) return WEFT_OK;
    return weft_fail(err, WEFT_E_CREATE, "%s: cannot be replaced: %s", path, strerror(errno));
}

/* Whether a whole line is of a step up to `step`. */
static bool is_kept(const char *line, size_t length, int64_t step)
{
    static const char *const names[] = {"step", "saved_step"};
    struct weft_json *document = NULL;
    if (weft_json_parse(line, length, "metrics", &document, NULL) != WEFT_OK) return false;
    int64_t of = 0;
    bool known = false;
    for (size_t i = 0; i < sizeof names / sizeof *names && !known; i++)
        known = weft_json_integer(weft_json_member(weft_json_root(document), names[i]), &of);
    weft_json_destroy(document);
    return known && of <= step;
}

enum weft_status weft_metrics_cut(const char *path, int64_t step, struct weft_error *err)
{
    const int64_t most_bytes = INT64_C(1) << 40;
    char *bytes = NULL;
    size_t length = 0;
    struct weft_error why = {0};
    enum weft_status status = weft_file_read(path, most_bytes, &bytes, &length, &why);
    if (status == WEFT_E_NO_INPUT) return WEFT_OK;
    if (status != WEFT_OK) return weft_fail(err, status, "%s", why.text);
    struct weft_text kept;
    weft_text_init(&kept);
    const char *at = bytes, *last = bytes + length, *end;
    while ((end = memchr(at, '\n', (size_t)(last - at))) != NULL) {
        size_t line = (size_t)(end - at);
        if (is_kept(at, line, step)) weft_text_append(&kept, at, line + 1);
        at = end + 1;
    }
    status = weft_text_ok(&kept) ? weft_file_write(path, weft_text_chars(&kept), kept.length, err)
                                 : weft_fail_memory(err, "the metrics");
    weft_text_finish(&kept);
    free(bytes);
    return status;
}
