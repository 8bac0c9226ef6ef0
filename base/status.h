/* SPDX-License-Identifier: Apache-2.0 */
/* A status is the only way for a Weft function to fail. An error is a status with one message for
 * people: the fact, its place, and a cure. It is filled once, at the place of the fact, and printed
 * once, in cli/. weft_fail keeps an error that *err already has, because the first fact wins.
 * include/weft.h defines both. */
#ifndef WEFT_BASE_STATUS_H
#define WEFT_BASE_STATUS_H

#include "base/compiler.h"
#include "include/weft.h"

/* The status with this exit code; WEFT_E_INTERNAL if there is none. */
enum weft_status weft_status_of_exit_code(int code);

/* weft_fail with "rank N: " before the text. All ranks return the error of one rank, so the message
 * is the same whichever rank ends first. */
enum weft_status weft_fail_of_rank(struct weft_error *err, enum weft_status status, int rank,
                                   const char *text);

/* weft_fail of a plan that lacks times or memory. Without memory needs_bytes is the least limit; 0:
 * not known. */
enum weft_status weft_fail_lacking(struct weft_error *err, enum weft_status status,
                                   enum weft_lack lacks, int64_t needs_bytes, const char *format,
                                   ...) WEFT_PRINTF(5, 6);
/* "times", "memory"; NULL for none. */
const char *weft_lack_name(enum weft_lack lacks);

/* weft_fail with the status, the rank and the lack of *why; the new text quotes its text. */
enum weft_status weft_fail_again(struct weft_error *err, const struct weft_error *why,
                                 const char *format, ...) WEFT_PRINTF(3, 4);

/* The same with "source: " before the text, unless the text begins so or there is no memory. */
enum weft_status weft_fail_in(struct weft_error *err, const struct weft_error *why,
                              const char *source);

/* weft_fail(WEFT_E_SYSTEM) for a failed allocation of `what`. */
enum weft_status weft_fail_memory(struct weft_error *err, const char *what);

/* Returns from the calling function when the expression fails. */
#define WEFT_TRY(expression)                                                                       \
    do {                                                                                           \
        enum weft_status weft_try_ = (expression);                                                 \
        if (weft_try_ != WEFT_OK) return weft_try_;                                                \
    } while (0)

/* Sets the local `status` and jumps to `label` when the expression fails. */
#define WEFT_TRY_GOTO(label, expression)                                                           \
    do {                                                                                           \
        status = (expression);                                                                     \
        if (status != WEFT_OK) goto label;                                                         \
    } while (0)

#endif
