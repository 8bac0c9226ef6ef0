/* SPDX-License-Identifier: Apache-2.0 */
/* A key table lists the keys of one kind of JSON object that Weft writes: name, type, range, member
 * of the struct and a line of text. It writes the object, reads it and makes its JSON Schema, so
 * the three agree. Objects that people write have field tables (spec/field.h). */
#ifndef WEFT_BASE_JSON_JSON_KEYS_H
#define WEFT_BASE_JSON_JSON_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/json/json.h"
#include "base/json/json_rows.h"
#include "base/pool.h"
#include "base/status.h"

enum weft_key_kind {
    WEFT_KEY_INT32,  /* int32_t from `least` to `most` */
    WEFT_KEY_INT64,  /* int64_t */
    WEFT_KEY_NUMBER, /* double */
    WEFT_KEY_BOOL,
    WEFT_KEY_TEXT,   /* const char *, copied to the pool */
    WEFT_KEY_SHOWN,  /* a text without control characters, because a terminal obeys them */
    WEFT_KEY_HASH,   /* struct weft_hash */
    WEFT_KEY_CONST,  /* the string `of` */
    WEFT_KEY_ONE_OF, /* a name of the NULL-terminated list `of` */
    WEFT_KEY_NAME,   /* an int or enum by its name in the struct weft_key_names `of` */
    WEFT_KEY_OBJECT, /* of the table `of`; NULL: of any keys */
    WEFT_KEY_VARIANT /* an object of one table of the NULL-terminated list `of` */
};

/* A LIST is an array of values of the kind; LISTS is an array of such arrays. */
enum {
    WEFT_KEY_NEEDED = 0,
    WEFT_KEY_OPTIONAL = 1,
    WEFT_KEY_OR_NULL = 2, /* written for a text of NULL, and for an integer out of its range */
    WEFT_KEY_LIST = 4,
    WEFT_KEY_LISTS = 12,
    WEFT_KEY_FLAT = 16,  /* objects are written on one line */
    WEFT_KEY_ZERO = 32,  /* an optional integer is written from `least` on, also if it is 0 */
    WEFT_KEY_UNREAD = 64 /* weft_keys_read leaves the member to its own code */
};

/* Offset of a value that needs its own code: its range depends on other values, or it has parts. */
#define WEFT_KEY_APART SIZE_MAX
/* Writes the key and its value, or nothing. `source` is the struct, `context` the caller's. */
typedef void weft_key_put_fn(const void *context, const void *source,
                             struct weft_json_writer *writer);
/* 2^53 - 1. Larger integers are not exact for every reader of JSON. */
#define WEFT_KEY_MOST (INT64_C(9007199254740991))

struct weft_key_names {
    const char *what; /* "kind of slot", for errors */
    int32_t count;
    const char *(*name)(int32_t number);
};

struct weft_file_key {
    const char *name;
    enum weft_key_kind kind;
    unsigned flags;
    size_t offset;       /* in the struct, or WEFT_KEY_APART */
    int64_t least, most; /* of integers */
    const void *of;      /* APART: also a text that is written as it is */
    const char *text;
    size_t size;  /* bytes of a list's element; APART: an integer that is written as it is */
    size_t count; /* offset of a list's int32_t count */
    size_t given, n_given; /* bytes; an optional member is written if one is not 0. n_given 0: the
                              member's own. A bool becomes true if the member is read. */
    weft_key_put_fn *put;  /* NULL: the table writes it */
};

struct weft_key_table {
    const char *text;
    const struct weft_file_key *keys;
    size_t n_keys;
    bool open; /* other keys are allowed: newer versions may add some */
};

/* Refuses keys that the table does not list, unless it is open, and reads each key that has an
 * offset into `target`. An optional key that is absent and a null that is allowed leave their
 * member as it is. Texts are copied to the pool. WEFT_E_DATA names `where` and the key. On failure
 * part of `target` may be written. */
WEFT_MUST_USE enum weft_status weft_keys_read(const struct weft_key_table *table,
                                              const struct weft_json_value *object,
                                              const char *where, struct weft_pool *pool,
                                              void *target, struct weft_error *err);

/* Writes the keys of the struct at `source` into an object that has begun. The table of each row
 * that holds a struct or a list writes its parts. A row without an offset, text, integer or `put`
 * is left out. */
void weft_keys_write(const struct weft_key_table *table, const void *context, const void *source,
                     struct weft_json_writer *writer);

/* A member of 32 hexadecimal digits. WEFT_E_DATA. */
WEFT_MUST_USE enum weft_status weft_keys_hash(const struct weft_json_value *object,
                                              const char *where, const char *name,
                                              struct weft_hash *out, struct weft_error *err);

/* Writes the object's JSON Schema (draft-07). Other keys are allowed in it, because a newer version
 * may add some. */
void weft_keys_schema(const struct weft_key_table *table, struct weft_json_writer *writer);
/* The schema of an object of one of the tables, a NULL-terminated list. */
void weft_keys_schema_of_any(const struct weft_key_table *const *tables,
                             struct weft_json_writer *writer);

#endif
