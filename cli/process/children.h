/* Children are processes of this very program that run verbs of it, several at a time. However this
 * process ends, also by a signal, they end with it. */
#ifndef WEFT_CLI_PROCESS_CHILDREN_H
#define WEFT_CLI_PROCESS_CHILDREN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "base/text.h"
#include "base/watch.h"

enum { WEFT_CHILDREN_MOST = 64 };

struct weft_child {
    int64_t pid; /* 0 = none, or ended */
    int out, note;
    struct weft_text said;  /* all of its stdout */
    struct weft_text noted; /* its stderr */
    int exit_code;          /* once it ended; 128 + the signal when one ended it */
};

/* From begin to end a signal of runtime/launch/stop.h makes weft_children_wait fail. */
void weft_children_begin(void);
void weft_children_end(void);

/* Starts this program with the arguments {"weft", VERB, ..., NULL}. The child is the caller's, not
 * yet started or finished. WEFT_E_SYSTEM. */
WEFT_MUST_USE enum weft_status weft_child_start(struct weft_child *child, const char *const *argv,
                                                struct weft_error *err);

/* Takes in what children say until one of at most WEFT_CHILDREN_MOST ends: its index in *ended. At
 * least one runs.
 * WEFT_E_STOPPED after a signal. `watch` is looked at meanwhile. */
WEFT_MUST_USE enum weft_status weft_children_wait(struct weft_child *children, int32_t n,
                                                  int32_t *ended, struct weft_watch *watch,
                                                  struct weft_error *err);

/* The last line of the child's stderr that is its error, without "weft: ". */
const char *weft_child_error(const struct weft_child *child);

/* Kills the child when it runs, and frees what it said. Accepts {0}. */
void weft_child_finish(struct weft_child *child);

#endif
