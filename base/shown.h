/* SPDX-License-Identifier: Apache-2.0 */
/* Escapes untrusted text before printing: names and values from files, paths, generated text.
 * Control characters (U+0000 to U+001F, U+007F to U+009F), marks of direction and characters
 * without width become \u001b; bytes that are not UTF-8 become \xff. All text for people passes
 * here: errors and log lines when they are made, results when the program prints them, and table
 * cells before they are measured. */
#ifndef WEFT_BASE_SHOWN_H
#define WEFT_BASE_SHOWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Control characters that stay unescaped. */
enum weft_shown_kept {
    WEFT_SHOWN_LINE,  /* none: a name in a message */
    WEFT_SHOWN_LINES, /* newline: a message, a report */
    WEFT_SHOWN_TEXT,  /* newline and tab: a text */
    WEFT_SHOWN_KEPT_COUNT
};

/* True for a code point that is written as \uXXXX. */
bool weft_shown_hides(uint32_t code);

/* True for a string that needs no escapes. */
bool weft_shown_is_plain(const char *bytes, size_t length, enum weft_shown_kept kept);

/* Escapes the next character of `left` bytes into `out`, without a NUL, and returns its length.
 * *taken gets its bytes in the source. */
enum { WEFT_SHOWN_PIECE_BYTES = 16 };
size_t weft_shown_next(const char *bytes, size_t left, enum weft_shown_kept kept, size_t *taken,
                       char out[WEFT_SHOWN_PIECE_BYTES]);

/* Escapes into `capacity` bytes with a NUL; a text without room ends in "...". Returns `out`. */
const char *weft_shown_into(const char *bytes, size_t length, enum weft_shown_kept kept, char *out,
                            size_t capacity);

/* Escapes a name for a message, on one line. */
enum { WEFT_SHOWN_BYTES = 256 };
const char *weft_shown(const char *name, char out[WEFT_SHOWN_BYTES]);

#endif
