/* SPDX-License-Identifier: Apache-2.0 */
/* A topic is a page of `weft help` that is not a verb: a list from one of the program's own
 * tables. */
#ifndef WEFT_CLI_HELP_TOPICS_H
#define WEFT_CLI_HELP_TOPICS_H

#include <stdbool.h>

#include "base/text.h"

struct weft_topic {
    const char *name;    /* "exit-codes" */
    const char *summary; /* one line */
    bool long_names;     /* its rows have long names, so texts go on the next line */
    /* Calls `add` with each row: a name and one line about it. */
    void (*list)(void (*add)(struct weft_text *out, const char *what, const char *text),
                 struct weft_text *out);
};

/* All topics in the order of `weft help`; a NULL name at the end. */
extern const struct weft_topic weft_topics[];

/* Returns the topic of this name, or NULL. */
const struct weft_topic *weft_topic_find(const char *name);

#endif
