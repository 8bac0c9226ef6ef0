/* A flag is a row of one table. What the parser accepts, what help and the manual pages say of it,
 * and what a shell completes all come from this row; which verbs take it is said by them. */
#ifndef WEFT_CLI_FLAGS_H
#define WEFT_CLI_FLAGS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"
#include "cli/command.h"

enum weft_flag_kind {
    WEFT_FLAG_BOOL,
    WEFT_FLAG_TEXT,
    WEFT_FLAG_OPTIONAL, /* with a value behind "=" or without any */
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
    bool common;         /* every verb takes it */
    size_t offset;       /* in struct weft_cli */
    const char *setting; /* config key that the value stands for, or NULL */
    const char *value;   /* "FILE", "auto|always|never"; NULL: it takes none */
    const char *text;    /* what it does, one line */
};

/* All of them; a NULL name at the end. */
extern const struct weft_flag weft_flags[];

/* The flag that `length` bytes of `name` are the name or the short form of; NULL when none is. */
const struct weft_flag *weft_flag_find(const char *name, size_t length);

bool weft_flag_is_of(const struct weft_flag *flag, const struct weft_command *command);

/* The next flag of the verb: its own in the order in which it names them, then the common ones.
 * `after` is the one before, NULL at the beginning; returns NULL at the end. */
const struct weft_flag *weft_flag_next(const struct weft_command *command,
                                       const struct weft_flag *after);

/* Appends "-o, --output FILE", as a person reads it. */
void weft_flag_add_form(const struct weft_flag *flag, struct weft_text *out);

/* Appends a flag with its text, as lines of a list. */
void weft_flag_add_line(const struct weft_flag *flag, struct weft_text *out);

#endif
