/* A JSON stream is a sequence of JSON values. The scanner reads it piece by piece and decides by
 * syntax whether a file is JSON, and so no text. It keeps a few hundred bytes, and reads at most
 * WEFT_JSON_STREAM_BYTES.
 *
 * A file is JSON if its first character after a byte-order mark and white space is { or [, and
 * - it ends, or WEFT_JSON_STREAM_ENOUGH bytes pass, without a syntax fault, or
 * - two objects come before the first fault.
 * A file cut within a line is JSON if at least two objects follow that line without a fault. An
 * empty object or array is no JSON, since a text may begin with one. NaN, Infinity, any escape and
 * a comma before a closing bracket are no faults. */
#ifndef WEFT_RUNTIME_TRAIN_JSON_STREAM_H
#define WEFT_RUNTIME_TRAIN_JSON_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    WEFT_JSON_STREAM_BYTES = 16 << 20, /* most bytes read of a file */
    WEFT_JSON_STREAM_LINE = 1 << 20,   /* longest first line to skip */
    WEFT_JSON_STREAM_ENOUGH = 65536,   /* no text is JSON for so long */
    WEFT_JSON_STREAM_DEPTH = 512,      /* tracked open brackets; no text opens more */
    WEFT_JSON_STREAM_WORD = 64         /* most characters of a number */
};

enum weft_json_form {
    WEFT_JSON_FORM_NONE,     /* something other than JSON, or empty */
    WEFT_JSON_FORM_LINES,    /* objects, one per line */
    WEFT_JSON_FORM_DOCUMENT, /* one object over several lines, or several objects */
    WEFT_JSON_FORM_OBJECTS,  /* [{ */
    WEFT_JSON_FORM_ARRAY,    /* of other values */
    WEFT_JSON_FORM_COUNT
};

struct weft_json_stream {
    int state;     /* enum in json_stream.c */
    int depth;     /* open brackets */
    int64_t bytes; /* added so far */
    int64_t begin; /* first bracket; -1: not found yet */
    int64_t whole; /* complete values with items, outside of brackets */
    int64_t items; /* names and elements in the last outermost brackets */
    bool decided, is_json;
    bool resumed;    /* scanning from the second line on */
    bool broken;     /* the first value has several lines */
    bool of_names;   /* the current string is a member's name */
    bool of_objects; /* the first array begins with an object */
    char opening;    /* the first bracket */
    int length;      /* characters in the word */
    char word[WEFT_JSON_STREAM_WORD];
    bool is_object[WEFT_JSON_STREAM_DEPTH]; /* by open bracket, outermost first */
};

void weft_json_stream_init(struct weft_json_stream *stream);
/* Scans the next bytes. Returns false once the form is known. */
bool weft_json_stream_add(struct weft_json_stream *stream, const unsigned char *bytes, size_t n);
/* The form of the added bytes: the whole file, if all were asked for. */
enum weft_json_form weft_json_stream_form(const struct weft_json_stream *stream);

#endif
