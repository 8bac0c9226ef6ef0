/* SPDX-License-Identifier: Apache-2.0 */
/* Lines for people: the columns of a text, and prose broken between words. Escape sequences of
 * colour (ESC [ ... m) take no column; every other UTF-8 character takes one. */
#ifndef WEFT_BASE_WRAP_H
#define WEFT_BASE_WRAP_H

#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

/* Columns of `length` bytes without line ends. */
size_t weft_shown_columns(const char *bytes, size_t length);

/* Bytes of the longest beginning of a line with at most `columns` columns that ends before a space
 * or at the end, but not after a number. If the first word is longer, its bytes: words are never
 * broken. */
size_t weft_wrap_at(const char *bytes, size_t length, size_t columns);

/* Appends `text` with long lines broken. Continuation lines start below the text after the label
 * ("memory 494 MiB ..."), or two columns further in; further left if a word has no room. `columns`
 * of 0 breaks nothing. */
void weft_wrap(const char *text, size_t columns, struct weft_text *out);

/* Appends prose in paragraphs. Lines that begin with a letter continue the line before and are
 * broken at the left edge. Other lines stay separate, broken as above. */
void weft_wrap_prose(const char *text, size_t columns, struct weft_text *out);

#endif
