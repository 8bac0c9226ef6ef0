/* Lines for people: how many columns of a terminal a text takes, and prose broken between words so
 * that no line takes more. Escape sequences of colour (ESC [ ... m) take none; each other character
 * of UTF-8 is taken to be as wide as a letter. */
#ifndef WEFT_BASE_WRAP_H
#define WEFT_BASE_WRAP_H

#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

/* Columns of `length` bytes without line ends. */
size_t weft_shown_columns(const char *bytes, size_t length);

/* Bytes of the longest beginning of a line that takes at most `columns` columns and ends before a
 * space, but not one behind a number, or at the end; where its first word is longer than that, the
 * bytes of this word, which nothing breaks. */
size_t weft_wrap_at(const char *bytes, size_t length, size_t columns);

/* Appends `text` with its lines broken. What goes on stands below what a line began with: behind
 * the label where it has one ("memory    494 MiB ..."), else two columns further in; where a word
 * has no room there, further left. `columns` of 0 breaks nothing. */
void weft_wrap(const char *text, size_t columns, struct weft_text *out);

/* Appends prose in paragraphs: lines that begin with a letter go on from the one before, and are
 * broken anew at the left edge; others stay lines, broken as above. */
void weft_wrap_prose(const char *text, size_t columns, struct weft_text *out);

#endif
