/* A topic is what `weft help` tells about that is no verb: a list out of a table that the program
 * goes by itself. */
#ifndef WEFT_CLI_HELP_TOPICS_H
#define WEFT_CLI_HELP_TOPICS_H

#include <stdbool.h>

#include "base/text.h"

struct weft_topic {
    const char *name;    /* "exit-codes" */
    const char *summary; /* one line */
    bool long_names;     /* of its rows: their texts stand below */
    /* Calls `add` with each row: what it is about, and a line that says what that is. */
    void (*list)(void (*add)(struct weft_text *out, const char *what, const char *text),
                 struct weft_text *out);
};

/* All of them, in the order of `weft help`; a NULL name at the end. */
extern const struct weft_topic weft_topics[];

/* NULL when there is none of that name. */
const struct weft_topic *weft_topic_find(const char *name);

#endif
