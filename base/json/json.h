/* SPDX-License-Identifier: Apache-2.0 */
/* Strict JSON: exactly RFC 8259. In addition there are no duplicate keys, no numbers beyond a
 * double, at most 100 levels of nesting, and at most 2^24 values. A document owns its values, which
 * are read by reference. It takes its text and 12 bytes a value and a name: at most 8 bytes of
 * memory a byte of text, also during reading. */
#ifndef WEFT_BASE_JSON_JSON_H
#define WEFT_BASE_JSON_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "base/text.h"

enum weft_json_kind {
    WEFT_JSON_NULL,
    WEFT_JSON_BOOL,
    WEFT_JSON_NUMBER,
    WEFT_JSON_STRING,
    WEFT_JSON_ARRAY,
    WEFT_JSON_OBJECT,
    WEFT_JSON_KIND_COUNT
};

struct weft_json;       /* a parsed document */
struct weft_json_value; /* a node, owned by its document */

/* Parses `length` bytes. `source` names them in errors ("run.json"). On failure *out is untouched,
 * and WEFT_E_DATA gives source:line:column and the reason. */
WEFT_MUST_USE enum weft_status weft_json_parse(const char *bytes, size_t length, const char *source,
                                               struct weft_json **out, struct weft_error *err);
/* Reads and parses a file of at most 1 GiB. WEFT_E_NO_INPUT if it is missing. */
WEFT_MUST_USE enum weft_status weft_json_read(const char *path, struct weft_json **out,
                                              struct weft_error *err);
void weft_json_destroy(struct weft_json *document);

/* Line and column, from 1, of the value at `path` ("$.model.layers[3].name"), or of the nearest
 * existing value around it. For a member it is the place of its name. */
void weft_json_place(const struct weft_json *document, const char *path, size_t *line,
                     size_t *column);

const struct weft_json_value *weft_json_root(const struct weft_json *document);
enum weft_json_kind weft_json_kind(const struct weft_json_value *value);
const char *weft_json_kind_name(enum weft_json_kind kind);

/* Member of an object by exact name; NULL if it is absent, or `object` is not an object. */
const struct weft_json_value *weft_json_member(const struct weft_json_value *object,
                                               const char *name);
/* First child of an array or object, then the next one; NULL at the end. Constant time. */
const struct weft_json_value *weft_json_first(const struct weft_json_value *parent);
const struct weft_json_value *weft_json_next(const struct weft_json_value *value);
size_t weft_json_count(const struct weft_json_value *parent); /* linear time */
/* Name of a member of an object; NULL for others. */
const char *weft_json_name(const struct weft_json_value *value);

/* The largest integer that is read. Up to it a double distinguishes all neighbours, so other
 * programs read the same. */
#define WEFT_JSON_MOST_INTEGER (INT64_C(1) << 53)

/* Typed reads. They return false and leave *out untouched for NULL or another kind. Integers must
 * be within +-WEFT_JSON_MOST_INTEGER; that bound itself must be written in digits alone. */
bool weft_json_bool(const struct weft_json_value *value, bool *out);
bool weft_json_integer(const struct weft_json_value *value, int64_t *out);
bool weft_json_number(const struct weft_json_value *value, double *out);
bool weft_json_string(const struct weft_json_value *value, const char **out);

/* Length of a number's text as written, in *out without a NUL; 0 for other kinds. */
size_t weft_json_number_text(const struct weft_json_value *value, const char **out);

/* Decoding of the program's own files: reads a required member. WEFT_E_DATA names the member and
 * `where` (for example "plan.json: units[3]"). Integers must lie in [least, most]. */
WEFT_MUST_USE enum weft_status weft_json_need_integer(const struct weft_json_value *object,
                                                      const char *where, const char *name,
                                                      int64_t least, int64_t most, int64_t *out,
                                                      struct weft_error *err);
WEFT_MUST_USE enum weft_status weft_json_need_string(const struct weft_json_value *object,
                                                     const char *where, const char *name,
                                                     const char **out, struct weft_error *err);
WEFT_MUST_USE enum weft_status weft_json_need(const struct weft_json_value *object,
                                              const char *where, const char *name,
                                              enum weft_json_kind kind,
                                              const struct weft_json_value **out,
                                              struct weft_error *err);

/* Writing: a stream of tokens into a text, with commas, newlines and indentation. With `indent` 0
 * everything is on one line. Arrays of scalars stay on one line. Each byte that is not UTF-8
 * becomes U+FFFD; NULL strings are null. */
enum { WEFT_JSON_WRITER_LEVELS = 128 };

struct weft_json_writer {
    struct weft_text *text;
    int indent;
    int depth;
    struct weft_json_level {
        bool started;                  /* has content */
        bool broken;                   /* its end gets its own line */
        bool flat;                     /* all of it on one line */
    } levels[WEFT_JSON_WRITER_LEVELS]; /* [0] is the document; more levels fail the text */
    bool after_key;
};

void weft_json_writer_init(struct weft_json_writer *writer, struct weft_text *text, int indent);
void weft_json_begin_object(struct weft_json_writer *writer);
void weft_json_end_object(struct weft_json_writer *writer);
void weft_json_begin_array(struct weft_json_writer *writer);
void weft_json_end_array(struct weft_json_writer *writer);
/* Writes the rest of this container (already begun) on one line. */
void weft_json_flat(struct weft_json_writer *writer);
void weft_json_key(struct weft_json_writer *writer, const char *name);
void weft_json_add_string(struct weft_json_writer *writer, const char *string);
void weft_json_add_integer(struct weft_json_writer *writer, int64_t integer);
void weft_json_add_number(struct weft_json_writer *writer,
                          double number); /* shortest text that reads back; null if not finite */
void weft_json_add_bool(struct weft_json_writer *writer, bool boolean);
void weft_json_add_null(struct weft_json_writer *writer);
/* Key and value. */
void weft_json_put_string(struct weft_json_writer *writer, const char *name, const char *string);
void weft_json_put_integer(struct weft_json_writer *writer, const char *name, int64_t integer);
void weft_json_put_number(struct weft_json_writer *writer, const char *name, double number);
void weft_json_put_bool(struct weft_json_writer *writer, const char *name, bool boolean);
/* Copies a parsed value. */
void weft_json_add_value(struct weft_json_writer *writer, const struct weft_json_value *value);

#endif
