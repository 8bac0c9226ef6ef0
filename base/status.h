/* A status is the one way a Weft function says that it failed; an error is a status with the one
 * message a person reads: what, where, and what would work. The error is filled once, where the
 * fact is known, and printed once, in cli/: weft_fail leaves *err as it is when it already holds an
 * error, because the first fact wins. Both are defined where users of the library see them. */
#ifndef WEFT_BASE_STATUS_H
#define WEFT_BASE_STATUS_H

#include "base/compiler.h"
#include "include/weft.h"

/* The status whose exit code is `code`, WEFT_E_INTERNAL when there is none. */
enum weft_status weft_status_of_exit_code(int code);

/* weft_fail with "rank N: " before the text, for what one rank met and all ranks return: whichever
 * ends first, the same error is told. */
enum weft_status weft_fail_of_rank(struct weft_error *err, enum weft_status status, int rank,
                                   const char *text);

/* weft_fail with the status and the rank of *why, whose text the new one quotes. */
enum weft_status weft_fail_again(struct weft_error *err, const struct weft_error *why,
                                 const char *format, ...) WEFT_PRINTF(3, 4);

/* weft_fail(WEFT_E_SYSTEM) for an allocation of `what` that failed. */
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
