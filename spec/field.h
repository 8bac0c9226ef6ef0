/* A field table says, for one kind of JSON object that a person writes, every key: its name, type,
 * default, range and one line of text. The same table drives the decoder, `weft schema`, the key
 * reference and the resolved config, so that they cannot disagree. */
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
    WEFT_FIELD_NUMBER,     /* double */
    WEFT_FIELD_BOOL,       /* bool */
    WEFT_FIELD_STRING,     /* const char *, owned by the decoder's pool */
    WEFT_FIELD_BYTES,      /* int64_t, "24GiB" */
    WEFT_FIELD_RATE,       /* double, bytes a second, "25Gbit/s" */
    WEFT_FIELD_TIME,       /* int64_t ns, "8us" */
    WEFT_FIELD_COUNT_UNIT, /* double, "312T" */
    WEFT_FIELD_CHOICE,     /* int, one of `choices` (aliases after '=': "fsdp=FULL_SHARD=zero3") */
    WEFT_FIELD_CHOICES,    /* int, a bit for each of `choices` that an array names: at least one; 0
                              where it is not given */
    WEFT_FIELD_NUMBERS,    /* double[2], a pair like betas */
    WEFT_FIELD_OBJECT,     /* a nested struct at `offset`, described by `table`; if its default is
                              "null", it begins with a bool: whether it was given */
    WEFT_FIELD_SHORT,      /* the same, or the value of the table's first key, a string, alone */
    WEFT_FIELD_SECTION,    /* an object described by `table`, or the path of a file that holds one;
                              the caller decodes it */
    WEFT_FIELD_LIST,       /* an array of objects described by `table`; the caller decodes it */
    WEFT_FIELD_REFUSED,    /* a key that this version does not have; `text` says what works */
    WEFT_FIELD_KIND_COUNT
};

struct weft_field_table;

struct weft_field {
    const char *name;
    enum weft_field_kind kind;
    size_t offset;                        /* in the struct that is decoded */
    const char *fallback;                 /* default as JSON text; NULL: the key must be present;
                                             "null": not given, the target stays zero */
    double least, most;                   /* inclusive range of numbers, in the target's unit */
    const char *const *choices;           /* NULL-terminated, for CHOICE */
    const struct weft_field_table *table; /* for OBJECT, SECTION and LIST */
    const char *text;                     /* one line for the reference */
};

struct weft_field_table {
    const char *name; /* "train", "layer" */
    const char *text;
    const struct weft_field *fields;
    size_t n_fields;
};

/* All problems of a file at once. Each line: source:line:column: $.path: what is wrong; what would
 * be right. Where an override gave the value, that is told instead of the place. */
struct weft_findings {
    struct weft_text text;
    int32_t count;
    struct weft_findings_file {
        const char *source;
        const struct weft_json *written; /* before overrides */
    } files[3];                          /* sources that are not here have no lines; borrowed */
    int32_t n_files;
    const char *const *overrides; /* [n_overrides] "key=value", borrowed; NULL for none */
    int32_t n_overrides;
};

void weft_findings_init(struct weft_findings *findings);
void weft_findings_finish(struct weft_findings *findings);
void weft_findings_add(struct weft_findings *findings, const char *source, const char *path,
                       const char *format, ...) WEFT_PRINTF(4, 5);
/* WEFT_OK when there are none; else WEFT_E_DATA with all of them. */
enum weft_status weft_findings_status(const struct weft_findings *findings, struct weft_error *err);

/* Decodes `object` into `target` by the table: defaults first, then every key. Unknown keys are
 * findings that name the nearest known key; "$comment" and "$schema" are passed over. Strings are
 * copied into the pool. `object` may be NULL: all defaults. Never stops at the first problem. */
void weft_field_decode(const struct weft_field_table *table, const struct weft_json_value *object,
                       const char *source, const char *path, struct weft_pool *pool, void *target,
                       struct weft_findings *findings);

/* Writes `target` as a JSON object with every key resolved, in the form that decode reads. Keys
 * that are not given, and those that the caller decodes, are left out. */
void weft_field_encode(const struct weft_field_table *table, const void *target,
                       struct weft_json_writer *writer);
/* Writes the one key and its value into the object that is being written. */
void weft_field_encode_key(const struct weft_field *field, const void *target,
                           struct weft_json_writer *writer);

/* The field of that name, or NULL. */
const struct weft_field *weft_field_find(const struct weft_field_table *table, const char *name);

/* What a value of the kind looks like, for messages: "bytes with a unit, such as \"24GiB\"". */
const char *weft_field_kind_text(enum weft_field_kind kind);

/* Appends a number of the field in the form that decode reads (with its unit, without quotes). */
void weft_field_show(const struct weft_field *field, double number, struct weft_text *out);

/* Copies the name of `choices[index]`, without its aliases, into a text. */
void weft_field_choice(const struct weft_field *field, int index, struct weft_text *out);

/* The name in `names` (n of them) nearest to `name` by edit distance, or NULL when none is near. */
const char *weft_field_nearest(const char *name, const char *const *names, size_t n);

#endif
