/* SPDX-License-Identifier: Apache-2.0 */
/* A fact is a line of a bug report about this program, or about the machine as the program sees it.
 * Facts are not judged. */
#ifndef WEFT_CLI_FACTS_H
#define WEFT_CLI_FACTS_H

#include "base/text.h"

struct weft_fact {
    const char *name; /* "cores" */
    void (*tell)(struct weft_text *out);
};

/* All facts; a NULL name at the end. */
extern const struct weft_fact weft_facts[];

#endif
