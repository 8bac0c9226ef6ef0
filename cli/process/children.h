/* SPDX-License-Identifier: Apache-2.0 */
/* Children are processes of this program that run its verbs, several at a time. They end with this
 * process, even if a signal ends it. */
#ifndef WEFT_CLI_PROCESS_CHILDREN_H
#define WEFT_CLI_PROCESS_CHILDREN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "base/text.h"
#include "base/watch.h"

enum { WEFT_CHILDREN_MOST = 64 };

struct weft_child {
    int64_t pid; /* 0: none, or ended */
    int out, note;
    struct weft_text said;  /* all of its stdout */
    struct weft_text noted; /* its stderr */
    int exit_code;          /* of an ended child; 128 + N if signal N ended it */
};

/* Between begin and end a signal of runtime/launch/stop.h makes weft_children_wait fail. If it came
 * too late for that, end fails with WEFT_E_STOPPED, unless `status` is a failure already, which it
 * returns. */
void weft_children_begin(void);
WEFT_MUST_USE enum weft_status weft_children_end(enum weft_status status, struct weft_error *err);

/* Starts this program with the arguments {"weft", VERB, ..., NULL}. The caller finishes the child.
 * WEFT_E_SYSTEM. */
WEFT_MUST_USE enum weft_status weft_child_start(struct weft_child *child, const char *const *argv,
                                                struct weft_error *err);

/* Reads the children's output until one ends, with its index in *ended. At least one must run, at
 * most WEFT_CHILDREN_MOST. Calls weft_watch_look meanwhile. WEFT_E_STOPPED after a signal. */
WEFT_MUST_USE enum weft_status weft_children_wait(struct weft_child *children, int32_t n,
                                                  int32_t *ended, struct weft_watch *watch,
                                                  struct weft_error *err);

/* Returns the last error line of the child's stderr, without "weft: ". The text belongs to the
 * child. */
const char *weft_child_error(const struct weft_child *child);

/* Kills the child if it runs, and frees its output. Accepts {0}. */
void weft_child_finish(struct weft_child *child);

#endif
