/* The process that weft-solve runs in: started once, asked in documents of scheduler/solver/mip.h,
 * each of which it answers with one before the next is asked, and killed when it hangs or is not
 * needed. */
#ifndef WEFT_CLI_PROCESS_SOLVER_CHILD_H
#define WEFT_CLI_PROCESS_SOLVER_CHILD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/status.h"
#include "base/text.h"
#include "base/watch.h"

enum { WEFT_SOLVER_NOTE_BYTES = 512 };

struct weft_solver_child {
    pid_t pid;                         /* 0: there is none */
    const char *path;                  /* borrowed */
    int in, out, note;                 /* our ends of its stdin, stdout, stderr; -1 when closed */
    char said[WEFT_SOLVER_NOTE_BYTES]; /* on stderr, as one line */
    size_t said_length;
};

/* Runs `path`, with `flag` unless that is NULL. However this process ends, the child ends with it.
 * WEFT_E_SYSTEM; what cannot be executed shows when it is asked. */
WEFT_MUST_USE enum weft_status weft_solver_child_start(const char *path, const char *flag,
                                                       struct weft_solver_child *child,
                                                       struct weft_error *err);

/* Kills and forgets it. Accepts {0}. */
void weft_solver_child_stop(struct weft_solver_child *child);

/* True while it runs, as far as is known, and says nothing unasked. */
bool weft_solver_child_is_ready(const struct weft_solver_child *child);

/* Appends to `answer` what it says to the question, up to the line "end", or all of it when it ends
 * with exit code 0, which leaves no child. It has patience_ns (0 = for ever) and most_bytes, and
 * `watch` is looked at meanwhile. On an error there is no child either: WEFT_E_HANG,
 * WEFT_E_INTERNAL for a crash or an answer that does not end, WEFT_E_ENVIRONMENT when it cannot be
 * executed. */
WEFT_MUST_USE enum weft_status weft_solver_child_ask(
    struct weft_solver_child *child, const struct weft_text *question, int64_t patience_ns,
    size_t most_bytes, struct weft_watch *watch, struct weft_text *answer, struct weft_error *err);

#endif
