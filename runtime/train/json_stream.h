/* SPDX-License-Identifier: Apache-2.0 */
/* The scanner of a JSON stream decides by syntax whether a file holds records, and no text. It
 * reads a file once, keeps a few hundred bytes, and reads at most WEFT_JSON_STREAM_BYTES.
 *
 * A file is JSON if records are more than two thirds of its bytes. A record begins a line, or
 * follows another record. It is
 * - an object with a member, an array with an element, or a string at the begin of its line, or
 * - a damaged value: one that has a name and a colon before its first fault of syntax.
 * All other lines are prose. Lines with # or // at their begin count as neither, and so does a
 * first line that ends as a record does: a file may be cut there. Without names, a value followed
 * by prose on its line is prose.
 *
 * No faults: NaN, Infinity, any escape, a comma before a closing bracket, and Python's strings,
 * tuples and words. */
#ifndef WEFT_RUNTIME_TRAIN_JSON_STREAM_H
#define WEFT_RUNTIME_TRAIN_JSON_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    WEFT_JSON_STREAM_BYTES = 16 << 20, /* most bytes read of a file */
    WEFT_JSON_STREAM_LINE = 1 << 20,   /* longest first line that may be the end of a record */
    WEFT_JSON_STREAM_ENOUGH = 65536,   /* bytes of records and prose that decide */
    WEFT_JSON_STREAM_DEPTH = 512,      /* most open brackets of a text */
    WEFT_JSON_STREAM_WORD = 64         /* characters of a number */
};

enum weft_json_form {
    WEFT_JSON_FORM_NONE,     /* no JSON, or an empty file */
    WEFT_JSON_FORM_LINES,    /* objects, each on a line */
    WEFT_JSON_FORM_DOCUMENT, /* an object over several lines, or several */
    WEFT_JSON_FORM_OBJECTS,  /* [{ */
    WEFT_JSON_FORM_ARRAY,    /* of other values */
    WEFT_JSON_FORM_STRINGS,  /* each on a line */
    WEFT_JSON_FORM_PYTHON,   /* values as Python prints them */
    WEFT_JSON_FORM_COUNT
};

struct weft_json_stream {
    int state;            /* of json_stream.c */
    int64_t bytes;        /* added so far */
    int64_t record_bytes; /* of records that ended */
    int64_t prose_bytes;  /* of lines that ended */
    int64_t value_bytes;  /* of the value under way */
    int64_t line_bytes;   /* of this line: values without names, or prose */
    int64_t n_records, n_on_line;
    enum weft_json_form form; /* of the first record */
    bool is_decided, is_json;
    bool is_first_line, is_ignored, is_indented; /* of the line under way */
    char last; /* character of a line of prose that is no white space */
    /* The value under way. */
    bool is_named, is_filled; /* has a member; has a member or an element */
    bool is_broken;           /* into several lines */
    bool is_of_objects;       /* its first element is one */
    bool is_python, is_name;  /* is_name: the string is a member's name */
    char opening, quote;
    int depth;  /* open brackets */
    int length; /* characters of the word */
    char word[WEFT_JSON_STREAM_WORD];
    char ends[WEFT_JSON_STREAM_DEPTH]; /* closing brackets, outermost first */
};

void weft_json_stream_init(struct weft_json_stream *stream);
/* Adds bytes. False once the form is known: later bytes change nothing. */
bool weft_json_stream_add(struct weft_json_stream *stream, const unsigned char *bytes, size_t n);
/* The form of the added bytes. They must be the whole file if the last call returned true. */
enum weft_json_form weft_json_stream_form(const struct weft_json_stream *stream);

#endif
