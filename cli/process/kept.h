/* Results of long work are kept one by one, so that a work that was stopped goes on where it was.
 * They are files of a folder, one a result, each named by the hash of all that decides it: a key.
 * Each is written whole or not at all. The folder goes when the work is done. */
#ifndef WEFT_CLI_PROCESS_KEPT_H
#define WEFT_CLI_PROCESS_KEPT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/hash.h"
#include "base/text.h"

enum { WEFT_KEPT_PATH_BYTES = 4096 };

struct weft_kept {
    char folder[WEFT_KEPT_PATH_BYTES]; /* "": nothing is kept */
    struct weft_hash base;             /* of all that decides every result */
    int32_t n_found, n_added;
};

/* Keeps results in the folder `beside` + ".sweep", which is made for the first one. NULL: nothing
 * is kept. `base` is all that decides every result; this program's version and commit are added. */
void weft_kept_open(struct weft_kept *kept, const char *beside, const struct weft_text *base);

/* The key of a result: of `base` and this text. */
struct weft_hash weft_kept_key(const struct weft_kept *kept, const char *format, ...)
    WEFT_PRINTF(2, 3);

/* Appends the result and sets *code. False where there is none, or it is damaged. */
bool weft_kept_find(struct weft_kept *kept, struct weft_hash key, int *code, struct weft_text *out);

/* Keeps a result. Where it cannot be written, warns, and keeps nothing more. */
void weft_kept_add(struct weft_kept *kept, struct weft_hash key, int code,
                   const struct weft_text *text);

/* The work is done: removes the results, of other keys too, and the folder if nothing is left. */
void weft_kept_remove(struct weft_kept *kept);

#endif
