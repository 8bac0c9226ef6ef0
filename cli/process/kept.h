/* SPDX-License-Identifier: Apache-2.0 */
/* Kept results let a long, interrupted work continue. Each result is a file in one folder, named by
 * its key: the hash of all of its inputs. A file is written whole or not at all. The folder is
 * removed when the work is done. */
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
    struct weft_hash base;             /* of the inputs that all results share */
    int32_t n_found, n_added;
};

/* Keeps results in the folder `file` + ".sweep", which is made for the first result. NULL:
 * nothing is kept. `base` are the inputs that all results share; the program's version and commit
 * are added. */
void weft_kept_open(struct weft_kept *kept, const char *file, const struct weft_text *base);

/* Returns the key of a result: the hash of `base` and this text. */
struct weft_hash weft_kept_key(const struct weft_kept *kept, const char *format, ...)
    WEFT_PRINTF(2, 3);

/* Appends the result and sets *code. False if there is none or it is damaged. */
bool weft_kept_find(struct weft_kept *kept, struct weft_hash key, int *code, struct weft_text *out);

/* Keeps a result. If it cannot be written, logs a warning and keeps nothing more. */
void weft_kept_add(struct weft_kept *kept, struct weft_hash key, int code,
                   const struct weft_text *text);

/* The same for a result of numbers. Returns their number, at most `most`; 0 if there is none. */
int32_t weft_kept_find_numbers(struct weft_kept *kept, struct weft_hash key, int32_t most,
                               int64_t *numbers);
void weft_kept_add_numbers(struct weft_kept *kept, struct weft_hash key, int32_t n,
                           const int64_t *numbers);

/* Removes the results, of other keys too, and the folder if it is then empty. */
void weft_kept_remove(struct weft_kept *kept);

#endif
