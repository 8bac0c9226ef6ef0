/* SPDX-License-Identifier: Apache-2.0 */
#include "base/status.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/machine/mappings.h"
#include "base/shown.h"

static const struct {
    int exit_code;
    const char *text;
} statuses[WEFT_STATUS_COUNT] = {
#define STATUS_ROW(name, code, text) [WEFT_##name] = {code, text},
    WEFT_STATUS_MAP(STATUS_ROW)
#undef STATUS_ROW
};

static enum weft_status known_status(enum weft_status status)
{
    return (unsigned)status < WEFT_STATUS_COUNT ? status : WEFT_E_INTERNAL;
}

int weft_status_exit_code(enum weft_status status)
{
    return statuses[known_status(status)].exit_code;
}

const char *weft_status_text(enum weft_status status)
{
    return statuses[known_status(status)].text;
}

enum weft_status weft_status_of_exit_code(int code)
{
    for (int i = 0; i < WEFT_STATUS_COUNT; i++) {
        if (statuses[i].exit_code == code) return (enum weft_status)i;
    }
    return WEFT_E_INTERNAL;
}

/* Escapes a message, since it may quote untrusted text. */
static void escape_message(char text[WEFT_ERROR_TEXT_BYTES])
{
    size_t length = strlen(text);
    if (weft_shown_is_plain(text, length, WEFT_SHOWN_LINES)) return;
    char written[WEFT_ERROR_TEXT_BYTES];
    memcpy(written, text, length);
    weft_shown_into(written, length, WEFT_SHOWN_LINES, text, WEFT_ERROR_TEXT_BYTES);
}

/* Returns whether the error is filled, and not one that *err already had. */
static bool fill_error(struct weft_error *err, enum weft_status status, const char *format,
                       va_list arguments)
{
    static const char ellipsis[] = "...";
    if (err == NULL || err->status != WEFT_OK) return false;
    err->status = status;
    err->exit_code = weft_status_exit_code(status);
    err->of_rank = 0;
    err->lacks = WEFT_LACK_NONE;
    err->needs_bytes = 0;
    int length = vsnprintf(err->text, sizeof err->text, format, arguments);
    if (length < 0) {
        snprintf(err->text, sizeof err->text, "%s", weft_status_text(status));
    } else if ((size_t)length >= sizeof err->text) {
        memcpy(err->text + sizeof err->text - sizeof ellipsis, ellipsis, sizeof ellipsis);
    }
    escape_message(err->text);
    return true;
}

enum weft_status weft_fail(struct weft_error *err, enum weft_status status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)fill_error(err, status, format, arguments);
    va_end(arguments);
    return status;
}

enum weft_status weft_fail_lacking(struct weft_error *err, enum weft_status status,
                                   enum weft_lack lacks, int64_t needs_bytes, const char *format,
                                   ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (fill_error(err, status, format, arguments)) {
        err->lacks = lacks;
        err->needs_bytes = needs_bytes;
    }
    va_end(arguments);
    return status;
}

const char *weft_lack_name(enum weft_lack lacks)
{
    static const char *const names[WEFT_LACK_COUNT] = {
        [WEFT_LACK_TIMES] = "times", [WEFT_LACK_MEMORY] = "memory"};
    return (unsigned)lacks < WEFT_LACK_COUNT ? names[lacks] : NULL;
}

enum weft_status weft_fail_again(struct weft_error *err, const struct weft_error *why,
                                 const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (fill_error(err, why->status, format, arguments)) {
        err->of_rank = why->of_rank;
        err->lacks = why->lacks;
        err->needs_bytes = why->needs_bytes;
    }
    va_end(arguments);
    return why->status;
}

enum weft_status weft_fail_in(struct weft_error *err, const struct weft_error *why,
                              const char *source)
{
    const size_t length = strlen(source);
    const bool named = strncmp(why->text, source, length) == 0 && why->text[length] == ':';
    if (named || why->status == WEFT_E_SYSTEM) return weft_fail_again(err, why, "%s", why->text);
    return weft_fail_again(err, why, "%s: %s", source, why->text);
}

enum weft_status weft_fail_of_rank(struct weft_error *err, enum weft_status status, int rank,
                                   const char *text)
{
    if (err == NULL || err->status != WEFT_OK) return status;
    weft_fail(err, status, "rank %d: %s", rank, text);
    err->of_rank = rank + 1;
    return status;
}

enum weft_status weft_fail_memory(struct weft_error *err, const char *what)
{
    static const int64_t some_bytes = INT64_C(64) << 20, any_bytes = INT64_MAX;
    char limit[WEFT_REFUSAL_BYTES];
    /* Names the limit that is nearly reached, or any limit: the size of the request is not known
     * here. */
    if (weft_map_refuses(some_bytes, 0, limit, sizeof limit) ||
        weft_map_refuses(any_bytes, 0, limit, sizeof limit))
        return weft_fail(err, WEFT_E_SYSTEM, "out of memory for %s: %s", what, limit);
    return weft_fail(err, WEFT_E_SYSTEM,
                     "out of memory for %s: free some memory or make the problem smaller", what);
}
