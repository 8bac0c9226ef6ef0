/* A text is a growable, NUL-terminated string under construction. Failure to grow is remembered,
 * not reported at each append: ask once, at the end, with weft_text_ok. */
#ifndef WEFT_BASE_TEXT_H
#define WEFT_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/shown.h"

struct weft_text {
    char *data;    /* NUL-terminated; NULL while empty. Read with weft_text_chars */
    size_t length; /* without the NUL */
    size_t capacity;
    bool failed;
    /* Above 0 of a report, whose lines are to be no wider: tables fit themselves to it, and what is
     * appended is kept as it may be shown (base/shown.h). */
    int32_t columns;
    bool color; /* and tables are painted */
};

void weft_text_init(struct weft_text *text);
void weft_text_finish(struct weft_text *text);

void weft_text_append(struct weft_text *text, const char *bytes, size_t length);
void weft_text_add(struct weft_text *text, const char *string);
void weft_text_addf(struct weft_text *text, const char *format, ...) WEFT_PRINTF(2, 3);

void weft_text_add_shown(struct weft_text *text, const char *bytes, size_t length,
                         enum weft_shown_kept kept);

/* A terminal's sequence of the program's own, as it is in a report too. */
void weft_text_add_escape(struct weft_text *text, const char *sequence);

/* The characters so far, "" when there are none. Owned by the text. */
const char *weft_text_chars(const struct weft_text *text);

/* False when any append since init ran out of memory. */
bool weft_text_ok(const struct weft_text *text);

#endif
