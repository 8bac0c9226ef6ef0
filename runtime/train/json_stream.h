/* A JSON stream is a sequence of JSON values, read a piece at a time. The scanner decides by syntax
 * whether a file is JSON: records to take a text from, and no text. It keeps a few hundred bytes,
 * and reads at most WEFT_JSON_STREAM_BYTES.
 *
 * A file is JSON when its first character after a byte-order mark and white space is { or [, and
 * - it ends, or WEFT_JSON_STREAM_ENOUGH bytes pass, without a fault of syntax, or
 * - two objects come before the first fault.
 * A file that was cut within a line is JSON when at least two objects follow that line, and no
 * fault. An empty object or array is no JSON, so that a text may begin with one.
 * NaN, Infinity, any escape and a comma before a bracket that closes are no faults. */
#ifndef WEFT_RUNTIME_TRAIN_JSON_STREAM_H
#define WEFT_RUNTIME_TRAIN_JSON_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    WEFT_JSON_STREAM_BYTES = 16 << 20, /* most that are read of a file */
    WEFT_JSON_STREAM_LINE = 1 << 20,   /* longest first line that is passed over */
    WEFT_JSON_STREAM_ENOUGH = 65536,   /* no text is JSON for so long */
    WEFT_JSON_STREAM_DEPTH = 512,      /* brackets that are told apart; no text opens more */
    WEFT_JSON_STREAM_WORD = 64         /* characters of a number */
};

enum weft_json_form {
    WEFT_JSON_FORM_NONE,     /* something else, or nothing in it */
    WEFT_JSON_FORM_LINES,    /* objects, each on a line */
    WEFT_JSON_FORM_DOCUMENT, /* an object over several lines, or several */
    WEFT_JSON_FORM_OBJECTS,  /* [{ */
    WEFT_JSON_FORM_ARRAY,    /* of anything */
    WEFT_JSON_FORM_COUNT
};

struct weft_json_stream {
    int state;     /* of json_stream.c */
    int depth;     /* open brackets */
    int64_t bytes; /* added so far */
    int64_t begin; /* first bracket; -1: not found yet */
    int64_t whole; /* values with items that ended, outside of brackets */
    int64_t items; /* names and elements in the outermost brackets that opened last */
    bool decided, is_json;
    bool resumed;    /* scans from the second line on */
    bool broken;     /* the first value has several lines */
    bool of_names;   /* the string is the name of a member */
    bool of_objects; /* the first array begins with an object */
    char opening;    /* first bracket */
    int length;      /* characters of the word */
    char word[WEFT_JSON_STREAM_WORD];
    bool is_object[WEFT_JSON_STREAM_DEPTH]; /* open brackets, outermost first */
};

void weft_json_stream_init(struct weft_json_stream *stream);
/* Reads on. False when the form is known, so that no more need be added. */
bool weft_json_stream_add(struct weft_json_stream *stream, const unsigned char *bytes, size_t n);
/* The form of the bytes that were added, which are the whole file if it was asked for more. */
enum weft_json_form weft_json_stream_form(const struct weft_json_stream *stream);

#endif
