/* SPDX-License-Identifier: Apache-2.0 */
/* A text is a growable, NUL-terminated string. It remembers a failure to grow; check once at the
 * end with weft_text_ok. */
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
    /* Above 0 for a report: the width that tables fit, and appended text is escaped (base/shown.h).
     */
    int32_t columns;
    bool color; /* tables use colours */
};

void weft_text_init(struct weft_text *text);
void weft_text_finish(struct weft_text *text);

void weft_text_append(struct weft_text *text, const char *bytes, size_t length);
void weft_text_add(struct weft_text *text, const char *string);
void weft_text_addf(struct weft_text *text, const char *format, ...) WEFT_PRINTF(2, 3);

void weft_text_add_shown(struct weft_text *text, const char *bytes, size_t length,
                         enum weft_shown_kept kept);

/* Appends a word as a shell reads it, in quotes if it needs them. */
void weft_text_add_word(struct weft_text *text, const char *word);

/* Appends a terminal sequence of the program itself, unescaped. */
void weft_text_add_escape(struct weft_text *text, const char *sequence);

/* The characters so far, "" for an empty text. Owned by the text. */
const char *weft_text_chars(const struct weft_text *text);

/* False if any append since init ran out of memory. */
bool weft_text_ok(const struct weft_text *text);

#endif
