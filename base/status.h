/* A status is the one way a Weft function says that it failed; an error is a status with the one
 * message a person reads: what, where, and what would work. The error is filled once, where the
 * fact is known, and printed once, in cli/. */
#ifndef WEFT_BASE_STATUS_H
#define WEFT_BASE_STATUS_H

#include "base/compiler.h"

/* X(enumerator, exit code, short text). Exit codes are those of sysexits.h where it has one. */
#define WEFT_STATUS_MAP(X)                                                                         \
    X(OK, 0, "ok")                                                                                 \
    X(E_ENVIRONMENT, 1, "failed check of the environment")                                         \
    X(E_USAGE, 64, "wrong usage")                                                                  \
    X(E_DATA, 65, "bad data")                                                                      \
    X(E_NO_INPUT, 66, "input missing")                                                             \
    X(E_LOST, 69, "rank or peer lost")                                                             \
    X(E_INTERNAL, 70, "internal error")                                                            \
    X(E_SYSTEM, 71, "system limit")                                                                \
    X(E_CREATE, 73, "cannot create")                                                               \
    X(E_IO, 74, "input/output error")                                                              \
    X(E_STOPPED, 75, "stopped")                                                                    \
    X(E_DISAGREE, 76, "ranks disagree")                                                            \
    X(E_PERMISSION, 77, "no permission")                                                           \
    X(E_INFEASIBLE, 78, "no plan fits")                                                            \
    X(E_NUMERIC, 79, "numeric failure")                                                            \
    X(E_HANG, 80, "hang")

enum weft_status {
#define WEFT_STATUS_ENUMERATOR(name, code, text) WEFT_##name,
    WEFT_STATUS_MAP(WEFT_STATUS_ENUMERATOR)
#undef WEFT_STATUS_ENUMERATOR
        WEFT_STATUS_COUNT
};

enum { WEFT_ERROR_TEXT_BYTES = 4096 };

struct weft_error {
    enum weft_status status;
    char text[WEFT_ERROR_TEXT_BYTES]; /* empty while status is WEFT_OK */
};

/* The process exit code of a status. */
int weft_status_exit_code(enum weft_status status);

/* The short text of a status; never NULL. */
const char *weft_status_text(enum weft_status status);

/* The status whose exit code is `code`, WEFT_E_INTERNAL when there is none. */
enum weft_status weft_status_of_exit_code(int code);

/* Fills *err (unless it is NULL or already holds an error: the first fact wins) and returns
 * `status`, so that `return weft_fail(err, ...)` is the whole failure path. */
enum weft_status weft_fail(struct weft_error *err, enum weft_status status, const char *format, ...)
    WEFT_PRINTF(3, 4);

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
