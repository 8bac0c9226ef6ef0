/* SPDX-License-Identifier: Apache-2.0 */
/* A flag is a row of one table. The parser, help, manual pages and shell completion all use this
 * row. Verbs list the flags that they take. */
#ifndef WEFT_CLI_FLAGS_H
#define WEFT_CLI_FLAGS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"
#include "base/text.h"
#include "cli/command.h"

enum weft_flag_kind {
    WEFT_FLAG_BOOL,
    WEFT_FLAG_TEXT,
    WEFT_FLAG_OPTIONAL, /* with a value after "=" or without one */
    WEFT_FLAG_RANKS,
    WEFT_FLAG_SET,
    WEFT_FLAG_LAYERS,
    WEFT_FLAG_SWEEP,
    WEFT_FLAG_SEED,
    WEFT_FLAG_COLOR,
    WEFT_FLAG_PROGRESS
};

struct weft_flag {
    const char *name;
    const char *alias; /* short form or NULL */
    enum weft_flag_kind kind;
    bool common;         /* true: every verb takes it */
    size_t offset;       /* in struct weft_cli */
    const char *setting; /* config key that the value sets, or NULL */
    const char *value;   /* "FILE", "auto|always|never"; NULL: takes no value */
    const char *text;    /* its effect, one line */
};

/* All flags; a NULL name at the end. */
extern const struct weft_flag weft_flags[];

/* Returns the flag with this name or short form of `length` bytes; NULL if there is none. */
const struct weft_flag *weft_flag_find(const char *name, size_t length);

bool weft_flag_is_of(const struct weft_flag *flag, const struct weft_command *command);

/* Returns the verb's flag after `after` (NULL: the first), or NULL at the end. The verb's own flags
 * come first, in its order, then the common ones. */
const struct weft_flag *weft_flag_next(const struct weft_command *command,
                                       const struct weft_flag *after);

/* Checks, before work begins, that the folder of a flag's output file is there and writable.
 * WEFT_E_CREATE. */
WEFT_MUST_USE enum weft_status weft_flag_check_folder(const char *flag, const char *path,
                                                      struct weft_error *err);

/* Appends the flag as users see it: "-o, --output FILE". */
void weft_flag_add_form(const struct weft_flag *flag, struct weft_text *out);

/* Appends a flag and its text as lines of a list. */
void weft_flag_add_line(const struct weft_flag *flag, struct weft_text *out);

#endif
