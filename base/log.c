/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/shown.h"

enum { LINE_BYTES = 4096 };

static weft_log_fn *log_sink;
static void *log_context;

void weft_log_set_sink(weft_log_fn *sink, void *context)
{
    log_sink = sink;
    log_context = context;
}

void weft_log(enum weft_log_level level, const char *format, ...)
{
    static const char ellipsis[] = "...";
    if (log_sink == NULL) return;
    char line[LINE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (length < 0) return;
    if ((size_t)length >= sizeof line) {
        memcpy(line + sizeof line - sizeof ellipsis, ellipsis, sizeof ellipsis);
    }
    size_t shown = strlen(line);
    if (weft_shown_is_plain(line, shown, WEFT_SHOWN_LINES)) {
        log_sink(log_context, level, line);
        return;
    }
    char plain[LINE_BYTES];
    log_sink(log_context, level,
             weft_shown_into(line, shown, WEFT_SHOWN_LINES, plain, sizeof plain));
}
