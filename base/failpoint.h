/* A failpoint makes one rank fail at one place of one step, for tests:
 * "forward:rank=1:step=3:do=kill". It is in every build, and nothing happens without one. */
#ifndef WEFT_BASE_FAILPOINT_H
#define WEFT_BASE_FAILPOINT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

/* X(enumerator, name): kill and stop send SIGKILL and SIGSTOP to the rank itself, error makes the
 * work fail, nan writes one into its result, flip changes a bit, overrun writes one byte behind
 * it, stale reads what is dead. */
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
    char place[WEFT_FAILPOINT_PLACE_BYTES]; /* name of an instruction or of another part of a run */
    int64_t rank, step;                     /* -1: any */
    int64_t at;                             /* layer, unit or count at the place; -1: the first */
    enum weft_failure failure;
};

/* NULL gives one that never strikes; WEFT_E_USAGE for a text that is none. */
WEFT_MUST_USE enum weft_status weft_failpoint_parse(const char *text, struct weft_failpoint *out,
                                                    struct weft_error *err);

/* The failure that is to happen at this place, rank and step; WEFT_FAILURE_NONE with a NULL
 * failpoint. */
enum weft_failure weft_failpoint_at(const struct weft_failpoint *failpoint, const char *place,
                                    int64_t rank, int64_t step);

#endif
