/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/json_stream.h"

#include <string.h>

enum state {
    MARK, /* a byte-order mark, or as BETWEEN */
    MARK_SECOND,
    MARK_THIRD,
    BETWEEN,    /* records: before the first, after one, or after a comma */
    VALUE,      /* must come */
    FIRST_ITEM, /* of an array, or its end */
    NAME,       /* of a member, or the end of an object */
    COLON,
    AFTER_ITEM, /* a comma or an end must come */
    STRING,
    ESCAPED,
    WORD,
    REST_OF_LINE /* after a fault */
};

enum { MARK_1 = 0xEF, MARK_2 = 0xBB, MARK_3 = 0xBF, RECORD_SEPARATOR = 0x1E };

void weft_json_stream_init(struct weft_json_stream *stream)
{
    *stream = (struct weft_json_stream){.state = MARK, .is_first_line = true};
}

static bool is_space(unsigned char byte)
{
    return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r' || byte == RECORD_SEPARATOR;
}

/* Digits with the signs, points and exponents of a number, in any order. */
static bool is_number(const char *word, int length)
{
    int digits = 0;
    for (int i = 0; i < length; i++) {
        if (word[i] >= '0' && word[i] <= '9')
            digits++;
        else if (strchr("+-.eE", word[i]) == NULL)
            return false;
    }
    return digits > 0;
}

static bool is_one_of(const struct weft_json_stream *s, const char *const *names)
{
    for (; *names != NULL; names++) {
        if ((size_t)s->length == strlen(*names) && memcmp(s->word, *names, (size_t)s->length) == 0)
            return true;
    }
    return false;
}

static bool is_python_word(const struct weft_json_stream *s)
{
    static const char *const names[] = {"True", "False", "None", NULL};
    return is_one_of(s, names);
}

static bool is_json_word(const struct weft_json_stream *s)
{
    static const char *const names[] = {"true",     "false",     "null", "NaN",
                                        "Infinity", "-Infinity", NULL};
    return is_one_of(s, names) || is_number(s->word, s->length);
}

static bool is_part_of_word(unsigned char byte)
{
    return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') ||
           (byte >= 'A' && byte <= 'Z') || byte == '+' || byte == '-' || byte == '.';
}

static bool is_in_object(const struct weft_json_stream *s)
{
    return s->ends[s->depth - 1] == '}';
}

static enum weft_json_form value_form(const struct weft_json_stream *s)
{
    if (s->is_python) return WEFT_JSON_FORM_PYTHON;
    if (s->opening == '"') return WEFT_JSON_FORM_STRINGS;
    if (s->opening == '{') return s->is_broken ? WEFT_JSON_FORM_DOCUMENT : WEFT_JSON_FORM_LINES;
    return s->is_of_objects ? WEFT_JSON_FORM_OBJECTS : WEFT_JSON_FORM_ARRAY;
}

static void note_record(struct weft_json_stream *s)
{
    if (s->form == WEFT_JSON_FORM_NONE) s->form = value_form(s);
    s->n_records++;
}

/* A value without names is a record only if nothing but more values follows on its line. */
static void end_record(struct weft_json_stream *s)
{
    s->value_bytes++; /* the end itself */
    if (s->is_named) {
        s->record_bytes += s->value_bytes;
        note_record(s);
    } else if (s->is_filled) {
        s->line_bytes += s->value_bytes;
        s->n_on_line++;
    }
    s->value_bytes = 0;
    s->state = BETWEEN;
}

static void end_value(struct weft_json_stream *s)
{
    s->is_filled = true;
    s->state = AFTER_ITEM;
    if (s->depth == 0) end_record(s);
}

static void begin_record(struct weft_json_stream *s, unsigned char byte)
{
    s->opening = (char)byte;
    s->is_named = s->is_filled = s->is_broken = s->is_of_objects = s->is_python = false;
}

static bool open_bracket(struct weft_json_stream *s, unsigned char byte)
{
    if (s->depth == WEFT_JSON_STREAM_DEPTH) {
        s->is_decided = s->is_json = true;
        note_record(s);
        return true;
    }
    if (s->depth == 1 && !s->is_filled) s->is_of_objects = byte == '{';
    s->ends[s->depth++] = byte == '{' ? '}' : byte == '[' ? ']' : ')';
    s->state = byte == '{' ? NAME : FIRST_ITEM;
    return true;
}

static bool close_bracket(struct weft_json_stream *s, unsigned char byte)
{
    if (byte != (unsigned char)s->ends[s->depth - 1]) return false;
    s->depth--;
    if (s->depth > 0)
        end_value(s);
    else
        end_record(s);
    return true;
}

static bool begin_string(struct weft_json_stream *s, unsigned char byte, bool is_name)
{
    if (byte != '"' && byte != '\'') return false;
    if (byte == '\'') s->is_python = true;
    s->quote = (char)byte;
    s->is_name = is_name;
    s->state = STRING;
    return true;
}

static bool begin_value(struct weft_json_stream *s, unsigned char byte)
{
    if (begin_string(s, byte, false)) return true;
    if (byte == '{' || byte == '[' || byte == '(') return open_bracket(s, byte);
    if (!is_part_of_word(byte)) return false;
    s->word[0] = (char)byte;
    s->length = 1;
    s->state = WORD;
    return true;
}

/* A string is a record only if it begins its line: code indents strings, tables put several on a
 * line. */
static bool take_between(struct weft_json_stream *s, unsigned char byte)
{
    if (byte == ',') return true;
    begin_record(s, byte);
    if (byte == '{' || byte == '[') return open_bracket(s, byte);
    if (s->n_on_line > 0 || s->is_indented || !begin_string(s, byte, false)) return false;
    s->opening = '"';
    return true;
}

/* Takes one character outside of strings and words; false is a fault. */
static bool take_part(struct weft_json_stream *s, unsigned char byte)
{
    if (byte == '\n' && s->depth > 0) s->is_broken = true;
    if (is_space(byte)) {
        s->is_indented = true;
        return true;
    }
    switch ((enum state)s->state) {
    case BETWEEN:
        return take_between(s, byte);
    case FIRST_ITEM:
    case VALUE:
        /* An array may end with a comma. */
        return (!is_in_object(s) && close_bracket(s, byte)) || begin_value(s, byte);
    case NAME:
        return close_bracket(s, byte) || begin_string(s, byte, true);
    case COLON:
        if (byte != ':') return false;
        s->is_named = s->is_filled = true;
        s->state = VALUE;
        return true;
    case AFTER_ITEM:
        if (byte != ',') return close_bracket(s, byte);
        s->state = is_in_object(s) ? NAME : VALUE;
        return true;
    case MARK:
    case MARK_SECOND:
    case MARK_THIRD:
    case STRING:
    case ESCAPED:
    case WORD:
    case REST_OF_LINE:
        break;
    }
    return false;
}

static bool take_from_string(struct weft_json_stream *s, unsigned char byte)
{
    if (byte < ' ' && byte != '\t') return false;
    if (s->state == ESCAPED) {
        s->state = STRING;
    } else if (byte == '\\') {
        s->state = ESCAPED;
    } else if (byte == (unsigned char)s->quote && s->is_name) {
        s->state = COLON;
    } else if (byte == (unsigned char)s->quote) {
        end_value(s);
    }
    return true;
}

static bool take_from_word(struct weft_json_stream *s, unsigned char byte)
{
    if (is_part_of_word(byte)) {
        if (s->length == WEFT_JSON_STREAM_WORD) return false;
        s->word[s->length++] = (char)byte;
        return true;
    }
    if (is_python_word(s))
        s->is_python = true;
    else if (!is_json_word(s))
        return false;
    end_value(s);
    return take_part(s, byte);
}

static bool take_from_mark(struct weft_json_stream *s, unsigned char byte)
{
    static const unsigned char mark[] = {MARK_1, MARK_2, MARK_3};
    if (s->state == MARK && byte != MARK_1) {
        s->state = BETWEEN;
        return take_part(s, byte);
    }
    return byte == mark[s->state++ - MARK];
}

/* A line of prose, of a comment, or the end of a record in a file that was cut within its first
 * line. Only prose counts. */
static bool is_prose_line(const struct weft_json_stream *s)
{
    bool is_cut = s->is_first_line && (s->last == '}' || s->last == ']');
    return s->state == REST_OF_LINE && !s->is_ignored && !is_cut;
}

static void end_line(struct weft_json_stream *s)
{
    if (is_prose_line(s)) s->prose_bytes += s->line_bytes;
    s->is_first_line = false;
    if (s->depth > 0) return;
    if (s->state != REST_OF_LINE && s->n_on_line > 0) {
        s->record_bytes += s->line_bytes;
        note_record(s);
    }
    s->line_bytes = s->n_on_line = 0;
    s->is_ignored = s->is_indented = false;
    s->last = '\0';
    s->state = BETWEEN;
}

/* A faulty value with a name is a damaged record: it counts, and the rest of its line does not. */
static void meet_fault(struct weft_json_stream *s, unsigned char byte)
{
    s->is_ignored = (s->is_named && s->value_bytes > 0) ||
                    (byte == '#' && s->value_bytes == 0 && s->line_bytes == 0);
    if (s->is_named && s->value_bytes > 0) {
        s->record_bytes += s->value_bytes;
        note_record(s);
    } else {
        s->line_bytes += s->value_bytes;
    }
    s->value_bytes = 0;
    s->depth = 0;
    s->state = REST_OF_LINE;
}

static void take_rest(struct weft_json_stream *s, unsigned char byte)
{
    if (byte == '/' && s->last == '/' && s->line_bytes == 1) s->is_ignored = true;
    s->line_bytes++;
    if (!is_space(byte)) s->last = (char)byte;
}

static void take_byte(struct weft_json_stream *s, unsigned char byte)
{
    bool is_sound = true;
    switch ((enum state)s->state) {
    case STRING:
    case ESCAPED:
        is_sound = take_from_string(s, byte);
        break;
    case WORD:
        is_sound = take_from_word(s, byte);
        break;
    case MARK:
    case MARK_SECOND:
    case MARK_THIRD:
        is_sound = take_from_mark(s, byte);
        break;
    case REST_OF_LINE:
        break;
    case BETWEEN:
    case VALUE:
    case FIRST_ITEM:
    case NAME:
    case COLON:
    case AFTER_ITEM:
        is_sound = take_part(s, byte);
        break;
    }
    if (!is_sound) meet_fault(s, byte);
    if (byte == '\n')
        end_line(s);
    else if (s->state == REST_OF_LINE)
        take_rest(s, byte);
    if (s->depth > 0 || s->state == STRING || s->state == ESCAPED) s->value_bytes++;
}

static bool has_most(int64_t record_bytes, int64_t prose_bytes)
{
    return record_bytes > 2 * prose_bytes;
}

/* Decides where enough is known. An open value without a name may still turn out to be prose. */
static void decide_form(struct weft_json_stream *s)
{
    bool is_rest = s->state == REST_OF_LINE;
    bool is_open = s->value_bytes > 0 && !s->is_named;
    int64_t records = s->record_bytes + (s->is_named ? s->value_bytes : 0);
    int64_t prose = s->prose_bytes + (is_rest && !s->is_first_line ? s->line_bytes : 0);
    if (s->bytes == WEFT_JSON_STREAM_BYTES) {
        bool is_sound = !is_rest && s->value_bytes + s->line_bytes > 0;
        if (is_sound) note_record(s);
        s->is_json = is_sound || has_most(records, prose);
        s->is_decided = true;
    } else if (is_rest && s->is_first_line && s->line_bytes >= WEFT_JSON_STREAM_LINE) {
        s->is_decided = true;
    } else if (!is_open && records + prose >= WEFT_JSON_STREAM_ENOUGH) {
        if (s->value_bytes > 0) note_record(s);
        s->is_json = has_most(records, prose);
        s->is_decided = true;
    }
}

bool weft_json_stream_add(struct weft_json_stream *s, const unsigned char *bytes, size_t n)
{
    for (size_t i = 0; i < n && !s->is_decided; i++) {
        take_byte(s, bytes[i]);
        s->bytes++;
        if (!s->is_decided) decide_form(s);
    }
    return !s->is_decided;
}

/* The end of the file ends its last line. A record may be cut there. */
static void end_file(struct weft_json_stream *s)
{
    if (s->value_bytes > 0) meet_fault(s, '\n');
    end_line(s);
    s->is_json = has_most(s->record_bytes, s->prose_bytes);
}

enum weft_json_form weft_json_stream_form(const struct weft_json_stream *stream)
{
    struct weft_json_stream s = *stream;
    if (!s.is_decided) end_file(&s);
    /* One quoted line is a text too. */
    if (!s.is_json || (s.form == WEFT_JSON_FORM_STRINGS && s.n_records < 2))
        return WEFT_JSON_FORM_NONE;
    return s.form;
}
