/* SPDX-License-Identifier: Apache-2.0 */
/* A field table lists every key of one kind of JSON object in a config: name, type, default, range
 * and one line of text. The decoder, `weft schema`, the key reference and the resolved config all
 * use it, so they agree. */
#ifndef WEFT_SPEC_FIELD_H
#define WEFT_SPEC_FIELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json/json.h"
#include "base/pool.h"
#include "base/status.h"
#include "base/text.h"

enum weft_field_kind {
    WEFT_FIELD_INTEGER,    /* int64_t */
    WEFT_FIELD_AUTO,       /* int64_t; 0: the word "auto", which is outside the range */
    WEFT_FIELD_NAMED,      /* int64_t; the `choices`, outside the range, are 0, -1, ... */
    WEFT_FIELD_NUMBER,     /* double */
    WEFT_FIELD_BOOL,       /* bool */
    WEFT_FIELD_STRING,     /* const char *, owned by the decoder's pool */
    WEFT_FIELD_BYTES,      /* int64_t, "24GiB" */
    WEFT_FIELD_RATE,       /* double, bytes a second, "25Gbit/s" */
    WEFT_FIELD_TIME,       /* int64_t ns, "8us" */
    WEFT_FIELD_COUNT_UNIT, /* double, "312T" */
    WEFT_FIELD_CHOICE,     /* int, one of `choices` (aliases after '=': "fsdp=FULL_SHARD=zero3") */
    WEFT_FIELD_CHOICES,    /* int, a bit for each of `choices` in an array of at least one; 0: not
                              given */
    WEFT_FIELD_NUMBERS,    /* double[2], a pair like betas */
    WEFT_FIELD_OBJECT,  /* a nested struct at `offset`, described by `table`; with default "null" it
                           begins with a bool: given or not */
    WEFT_FIELD_SHORT,   /* the same, or only the value of the table's first key, a string */
    WEFT_FIELD_SECTION, /* an object described by `table`, or the path of a file with one; the
                           caller decodes it */
    WEFT_FIELD_LIST,    /* an array of objects described by `table`; the caller decodes it */
    WEFT_FIELD_ANY,     /* a value that the caller decodes */
    WEFT_FIELD_REFUSED, /* a key that this version lacks; `text` gives an alternative */
    WEFT_FIELD_KIND_COUNT
};

struct weft_field_table;

struct weft_field {
    const char *name;
    enum weft_field_kind kind;
    size_t offset;        /* in the decoded struct */
    const char *fallback; /* default as JSON text; NULL: required; "null": optional, and the target
                             stays zero */
    double least, most;   /* inclusive range of numbers, in the target's unit */
    const char *const *choices;           /* NULL-terminated, for CHOICE, CHOICES and NAMED */
    const struct weft_field_table *table; /* for OBJECT, SECTION and LIST */
    const char *text;                     /* one line for the reference */
};

struct weft_field_table {
    const char *name; /* "train", "layer" */
    const char *text;
    const struct weft_field *fields;
    size_t n_fields;
};

/* A path in a converted document, and the path in the user's file in its place. */
struct weft_findings_rename {
    const char *path, *written;
};

/* All faults of a file. Each line is source:line:column: $.path: the fault; valid values. For a
 * value from an override, the override replaces the place. */
struct weft_findings {
    struct weft_text text;
    int32_t count;
    struct weft_findings_file {
        const char *source;
        const struct weft_json *written;            /* before overrides */
        const struct weft_findings_rename *renames; /* of a converted document; or NULL */
        int32_t n_renames;
    } files[3]; /* other sources have no lines; borrowed */
    int32_t n_files;
    const char *const *overrides; /* [n_overrides] "key=value", borrowed; NULL for none */
    int32_t n_overrides;
};

void weft_findings_init(struct weft_findings *findings);
void weft_findings_finish(struct weft_findings *findings);
void weft_findings_add(struct weft_findings *findings, const char *source, const char *path,
                       const char *format, ...) WEFT_PRINTF(4, 5);
/* WEFT_OK without findings; otherwise WEFT_E_DATA with all of them. */
enum weft_status weft_findings_status(const struct weft_findings *findings, struct weft_error *err);

/* Decodes `object` into `target` by the table: defaults first, then every key. An unknown key is a
 * finding that names the nearest known one; "$comment" and "$schema" are ignored. The pool owns
 * copies of strings. `object` may be NULL: all defaults. Decoding continues after a fault. */
void weft_field_decode(const struct weft_field_table *table, const struct weft_json_value *object,
                       const char *source, const char *path, struct weft_pool *pool, void *target,
                       struct weft_findings *findings);

/* Writes `target` as a JSON object with every resolved key, in a form that weft_field_decode reads.
 * Leaves out keys that are not given, and those that the caller decodes. */
void weft_field_encode(const struct weft_field_table *table, const void *target,
                       struct weft_json_writer *writer);
/* Writes one key and its value into the open object. */
void weft_field_encode_key(const struct weft_field *field, const void *target,
                           struct weft_json_writer *writer);

/* Writes the field's default as the member "default"; nothing if the field may be left out. */
void weft_field_put_default(const struct weft_field *field, struct weft_json_writer *writer);

/* The field of that name, or NULL. */
const struct weft_field *weft_field_find(const struct weft_field_table *table, const char *name);

/* Describes the values of a kind for messages: "bytes with a unit, for example \"24GiB\"". */
const char *weft_field_kind_text(enum weft_field_kind kind);

/* Appends a number of the field in the form that decoding reads (with its unit, without quotes). */
void weft_field_show(const struct weft_field *field, double number, struct weft_text *out);

/* Appends the name of `choices[index]`, without aliases, to a text. */
void weft_field_choice(const struct weft_field *field, int index, struct weft_text *out);

/* The name in `names` (n of them) with the least edit distance to `name`; NULL if none is near. */
const char *weft_field_nearest(const char *name, const char *const *names, size_t n);

#endif
