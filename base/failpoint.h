/* SPDX-License-Identifier: Apache-2.0 */
/* A failpoint makes one rank fail at one place of one step, for tests:
 * "forward:rank=1:step=3:do=kill". Every build has them; without one nothing happens. */
#ifndef WEFT_BASE_FAILPOINT_H
#define WEFT_BASE_FAILPOINT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

/* X(enumerator, name). kill and stop send SIGKILL and SIGSTOP to the rank itself. error makes the
 * work fail, nan writes a NaN into its result, and flip changes a bit. overrun writes one byte past
 * its end, stale reads dead memory. */
#define WEFT_FAILURE_MAP(X)                                                                        \
    X(NONE, "none")                                                                                \
    X(KILL, "kill")                                                                                \
    X(STOP, "stop")                                                                                \
    X(ERROR, "error")                                                                              \
    X(NAN, "nan")                                                                                  \
    X(FLIP, "flip")                                                                                \
    X(OVERRUN, "overrun")                                                                          \
    X(STALE, "stale")

enum weft_failure {
#define WEFT_FAILURE_ENUMERATOR(name, text) WEFT_FAILURE_##name,
    WEFT_FAILURE_MAP(WEFT_FAILURE_ENUMERATOR)
#undef WEFT_FAILURE_ENUMERATOR
        WEFT_FAILURE_COUNT
};

enum { WEFT_FAILPOINT_PLACE_BYTES = 32 };

struct weft_failpoint {
    char place[WEFT_FAILPOINT_PLACE_BYTES]; /* an instruction, or another part of a run */
    int64_t rank, step;                     /* -1: any */
    int64_t at;                             /* layer, unit or count at the place; -1: the first */
    enum weft_failure failure;
};

/* NULL gives a failpoint that never fires. WEFT_E_USAGE for an invalid text. */
WEFT_MUST_USE enum weft_status weft_failpoint_parse(const char *text, struct weft_failpoint *out,
                                                    struct weft_error *err);

/* The failure at this place, rank and step; WEFT_FAILURE_NONE if there is none, or `failpoint` is
 * NULL. */
enum weft_failure weft_failpoint_at(const struct weft_failpoint *failpoint, const char *place,
                                    int64_t rank, int64_t step);

#endif
