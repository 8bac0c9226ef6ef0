/* What others wrote - names and values in a file, a path, what a model generates - is shown and
 * never obeyed. Control characters (U+0000 to U+001F, U+007F to U+009F), what turns the direction
 * of a line, and what has no width of its own are written as \u001b, bytes that are no UTF-8 as
 * \xff. All that goes to a person passes here: errors and log lines where they are made, results
 * where the program emits them, cells of tables before they are measured. */
#ifndef WEFT_BASE_SHOWN_H
#define WEFT_BASE_SHOWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Which characters stay what they are although they move the cursor. */
enum weft_shown_kept {
    WEFT_SHOWN_LINE,  /* none: a name in a message */
    WEFT_SHOWN_LINES, /* the newline: a message, a report */
    WEFT_SHOWN_TEXT,  /* newline and tab: a text */
    WEFT_SHOWN_KEPT_COUNT
};

/* True of a code point that is written as \uXXXX. */
bool weft_shown_hides(uint32_t code);

/* True of a string that is shown as it is. */
bool weft_shown_is_plain(const char *bytes, size_t length, enum weft_shown_kept kept);

/* What the next character of `left` bytes is shown as. *taken gets its bytes in the source. Returns
 * the length in `out`, which gets no NUL. */
enum { WEFT_SHOWN_PIECE_BYTES = 16 };
size_t weft_shown_next(const char *bytes, size_t left, enum weft_shown_kept kept, size_t *taken,
                       char out[WEFT_SHOWN_PIECE_BYTES]);

/* Into `capacity` bytes with the NUL; what has no room ends in "...". Returns `out`. */
const char *weft_shown_into(const char *bytes, size_t length, enum weft_shown_kept kept, char *out,
                            size_t capacity);

/* A name on its way into a message, on one line. */
enum { WEFT_SHOWN_BYTES = 256 };
const char *weft_shown(const char *name, char out[WEFT_SHOWN_BYTES]);

#endif
