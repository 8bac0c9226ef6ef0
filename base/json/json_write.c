/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/shown.h"
#include "base/utf8.h"

void weft_json_writer_init(struct weft_json_writer *writer, struct weft_text *text, int indent)
{
    *writer = (struct weft_json_writer){.text = text, .indent = indent};
    writer->levels[0].flat = indent == 0;
}

static void new_line(struct weft_json_writer *writer, int depth)
{
    weft_text_add(writer->text, "\n");
    for (int i = 0; i < depth * writer->indent; i++)
        weft_text_add(writer->text, " ");
}

/* Writes the separator before a member's key, an element or the root. */
static void write_separator(struct weft_json_writer *writer, bool on_new_line)
{
    struct weft_json_level *level = &writer->levels[writer->depth];
    bool breaks = on_new_line && !level->flat && writer->depth > 0;
    if (level->started) weft_text_add(writer->text, breaks ? "," : ", ");
    if (breaks) {
        new_line(writer, writer->depth);
        level->broken = true;
    }
    level->started = true;
}

static void before_value(struct weft_json_writer *writer, bool container)
{
    /* A value follows its key. Array elements share a line unless they are containers. */
    if (!writer->after_key) write_separator(writer, container);
    writer->after_key = false;
}

static void begin_level(struct weft_json_writer *writer, bool array)
{
    before_value(writer, true);
    weft_text_add(writer->text, array ? "[" : "{");
    if (writer->depth + 1 >= WEFT_JSON_WRITER_LEVELS) {
        writer->text->failed = true;
        return;
    }
    bool flat = writer->levels[writer->depth].flat;
    writer->depth++;
    writer->levels[writer->depth] = (struct weft_json_level){.flat = flat};
}

static void end_level(struct weft_json_writer *writer, bool array)
{
    if (writer->depth == 0) {
        writer->text->failed = true;
        return;
    }
    bool broken = writer->levels[writer->depth].broken;
    writer->depth--;
    if (broken) new_line(writer, writer->depth);
    weft_text_add(writer->text, array ? "]" : "}");
}

void weft_json_begin_object(struct weft_json_writer *writer)
{
    begin_level(writer, false);
}

void weft_json_end_object(struct weft_json_writer *writer)
{
    end_level(writer, false);
}

void weft_json_begin_array(struct weft_json_writer *writer)
{
    begin_level(writer, true);
}

void weft_json_end_array(struct weft_json_writer *writer)
{
    end_level(writer, true);
}

void weft_json_flat(struct weft_json_writer *writer)
{
    writer->levels[writer->depth].flat = true;
}

/* The short escape of an ASCII character; NULL: it has none. */
static const char *escape_of(unsigned char byte)
{
    switch (byte) {
    case '"':
        return "\\\"";
    case '\\':
        return "\\\\";
    case '\b':
        return "\\b";
    case '\f':
        return "\\f";
    case '\n':
        return "\\n";
    case '\r':
        return "\\r";
    case '\t':
        return "\\t";
    default:
        break;
    }
    return NULL;
}

/* Escapes control characters, which a terminal would obey. */
static void add_escaped(struct weft_text *text, uint32_t code)
{
    if (code < 0x10000) {
        weft_text_addf(text, "\\u%04x", (unsigned)code);
        return;
    }
    code -= 0x10000;
    weft_text_addf(text, "\\u%04x\\u%04x", 0xD800 + (unsigned)(code >> 10),
                   0xDC00 + (unsigned)(code & 0x3FF));
}

static void add_quoted(struct weft_text *text, const char *string)
{
    static const char replacement[] = "\xEF\xBF\xBD";
    const unsigned char *at = (const unsigned char *)string;
    size_t left = strlen(string);
    weft_text_add(text, "\"");
    while (left > 0) {
        size_t length = weft_utf8_sequence(at, left);
        const char *escape = length == 1 ? escape_of(*at) : NULL;
        uint32_t code = length == 0 ? 0 : weft_utf8_code(at, length);
        if (length == 0) escape = replacement;
        if (escape != NULL) {
            weft_text_add(text, escape);
        } else if (weft_shown_hides(code)) {
            add_escaped(text, code);
        } else {
            weft_text_append(text, (const char *)at, length);
        }
        if (length == 0) length = 1;
        at += length;
        left -= length;
    }
    weft_text_add(text, "\"");
}

void weft_json_key(struct weft_json_writer *writer, const char *name)
{
    write_separator(writer, true);
    add_quoted(writer->text, name);
    weft_text_add(writer->text, ": ");
    writer->after_key = true;
}

void weft_json_add_string(struct weft_json_writer *writer, const char *string)
{
    if (string == NULL) {
        weft_json_add_null(writer);
        return;
    }
    before_value(writer, false);
    add_quoted(writer->text, string);
}

void weft_json_add_integer(struct weft_json_writer *writer, int64_t integer)
{
    before_value(writer, false);
    weft_text_addf(writer->text, "%" PRId64, integer);
}

/* Replaces the locale's decimal point with '.'. */
static void normalise_point(char *digits)
{
    size_t foreign = strspn(digits, "-0123456789");
    size_t bytes = strcspn(digits + foreign, "0123456789e");
    if (bytes == 0) return;
    digits[foreign] = '.';
    memmove(digits + foreign + 1, digits + foreign + bytes, strlen(digits + foreign + bytes) + 1);
}

void weft_json_add_number(struct weft_json_writer *writer, double number)
{
    if (!isfinite(number)) {
        weft_json_add_null(writer);
        return;
    }
    char digits[40];
    for (int precision = 15; precision <= 17; precision++) {
        snprintf(digits, sizeof digits, "%.*g", precision, number);
        double back = strtod(digits, NULL);
        if (back >= number && back <= number) break;
    }
    normalise_point(digits);
    before_value(writer, false);
    weft_text_add(writer->text, digits);
}

void weft_json_add_bool(struct weft_json_writer *writer, bool boolean)
{
    before_value(writer, false);
    weft_text_add(writer->text, boolean ? "true" : "false");
}

void weft_json_add_null(struct weft_json_writer *writer)
{
    before_value(writer, false);
    weft_text_add(writer->text, "null");
}

void weft_json_put_string(struct weft_json_writer *writer, const char *name, const char *string)
{
    weft_json_key(writer, name);
    weft_json_add_string(writer, string);
}

void weft_json_put_integer(struct weft_json_writer *writer, const char *name, int64_t integer)
{
    weft_json_key(writer, name);
    weft_json_add_integer(writer, integer);
}

void weft_json_put_number(struct weft_json_writer *writer, const char *name, double number)
{
    weft_json_key(writer, name);
    weft_json_add_number(writer, number);
}

void weft_json_put_bool(struct weft_json_writer *writer, const char *name, bool boolean)
{
    weft_json_key(writer, name);
    weft_json_add_bool(writer, boolean);
}

static void add_scalar(struct weft_json_writer *writer, const struct weft_json_value *value)
{
    const char *string;
    int64_t integer;
    double number;
    bool boolean;
    if (weft_json_string(value, &string)) {
        weft_json_add_string(writer, string);
    } else if (weft_json_bool(value, &boolean)) {
        weft_json_add_bool(writer, boolean);
    } else if (!weft_json_number(value, &number)) {
        weft_json_add_null(writer);
    } else if (weft_json_integer(value, &integer) && (integer != 0 || !signbit(number))) {
        weft_json_add_integer(writer, integer);
    } else if (fabs(number) >= 0x1p53) {
        /* Keeps digits that no double holds. */
        size_t length = weft_json_number_text(value, &string);
        before_value(writer, false);
        weft_text_append(writer->text, string, length);
    } else {
        weft_json_add_number(writer, number);
    }
}

/* The parser's limit on nesting bounds the recursion. */
void weft_json_add_value(struct weft_json_writer *writer, const struct weft_json_value *value)
{
    bool array = value != NULL && weft_json_kind(value) == WEFT_JSON_ARRAY;
    bool object = value != NULL && weft_json_kind(value) == WEFT_JSON_OBJECT;
    if (!array && !object) {
        add_scalar(writer, value);
        return;
    }
    begin_level(writer, array);
    for (const struct weft_json_value *child = weft_json_first(value); child != NULL;
         child = weft_json_next(child)) {
        if (object) weft_json_key(writer, weft_json_name(child));
        weft_json_add_value(writer, child);
    }
    end_level(writer, array);
}
