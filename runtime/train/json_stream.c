#include "runtime/train/json_stream.h"

#include <string.h>

enum state {
    MARK, /* a byte-order mark, or like BEFORE */
    MARK_SECOND,
    MARK_THIRD,
    BEFORE,     /* before the first value */
    BETWEEN,    /* between values, after a value or a comma */
    VALUE,      /* a value must come */
    FIRST_ITEM, /* an array's first item, or its end */
    NAME,       /* a member's name, or the object's end */
    COLON,
    AFTER_ITEM, /* a comma or an end must come */
    STRING,
    ESCAPED,
    WORD,
    REST_OF_LINE /* skips the first line */
};

enum { MARK_1 = 0xEF, MARK_2 = 0xBB, MARK_3 = 0xBF, RECORD_SEPARATOR = 0x1E };

void weft_json_stream_init(struct weft_json_stream *stream)
{
    *stream = (struct weft_json_stream){.state = MARK, .begin = -1};
}

static bool is_space(unsigned char byte)
{
    return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r' || byte == RECORD_SEPARATOR;
}

/* Digits with signs, points and exponents; a stricter check would decide nothing. */
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

static bool is_word(const struct weft_json_stream *s)
{
    static const char *const names[] = {"true", "false", "null", "NaN", "Infinity", "-Infinity"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if ((size_t)s->length == strlen(names[i]) &&
            memcmp(s->word, names[i], (size_t)s->length) == 0)
            return true;
    }
    return is_number(s->word, s->length);
}

static bool is_of_word(unsigned char byte)
{
    return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') ||
           (byte >= 'A' && byte <= 'Z') || byte == '+' || byte == '-' || byte == '.';
}

static bool is_in_object(const struct weft_json_stream *s)
{
    return s->is_object[s->depth - 1];
}

static void end_value(struct weft_json_stream *s)
{
    if (s->depth > 0) s->items++;
    s->state = s->depth > 0 ? AFTER_ITEM : BETWEEN;
}

static void open_bracket(struct weft_json_stream *s, unsigned char byte)
{
    bool is_object = byte == '{';
    if (s->begin < 0) {
        s->begin = s->bytes;
        s->opening = (char)byte;
    }
    if (s->whole == 0 && s->depth == 1 && s->items == 0) s->of_objects = is_object;
    if (s->depth == 0) s->items = 0;
    if (s->depth == WEFT_JSON_STREAM_DEPTH) {
        s->decided = s->is_json = true;
        return;
    }
    s->is_object[s->depth++] = is_object;
    s->state = is_object ? NAME : FIRST_ITEM;
}

static bool close_bracket(struct weft_json_stream *s, unsigned char byte)
{
    if ((byte == '}') != is_in_object(s)) return false;
    s->depth--;
    if (s->depth == 0 && s->items > 0) s->whole++;
    end_value(s);
    return true;
}

static bool begin_bracket(struct weft_json_stream *s, unsigned char byte)
{
    if (byte != '{' && byte != '[') return false;
    open_bracket(s, byte);
    return true;
}

static bool begin_value(struct weft_json_stream *s, unsigned char byte)
{
    if (byte == '"') {
        s->of_names = false;
        s->state = STRING;
        return true;
    }
    if (!is_of_word(byte)) return begin_bracket(s, byte);
    s->word[0] = (char)byte;
    s->length = 1;
    s->state = WORD;
    return true;
}

/* Takes one character outside of strings and words; false is a fault. */
static bool take_part(struct weft_json_stream *s, unsigned char byte)
{
    if (byte == '\n' && s->depth > 0 && s->whole == 0) s->broken = true;
    if (is_space(byte)) return true;
    switch ((enum state)s->state) {
    case FIRST_ITEM:
        return byte == ']' ? close_bracket(s, byte) : begin_value(s, byte);
    case VALUE:
        /* An array may end with a comma. */
        return byte == ']' && !is_in_object(s) ? close_bracket(s, byte) : begin_value(s, byte);
    case NAME:
        if (byte == '}') return close_bracket(s, byte);
        s->of_names = true;
        s->state = STRING;
        return byte == '"';
    case COLON:
        if (byte != ':') return false;
        s->items++;
        s->state = VALUE;
        return true;
    case AFTER_ITEM:
        if (byte != ',') return (byte == ']' || byte == '}') && close_bracket(s, byte);
        s->state = is_in_object(s) ? NAME : VALUE;
        return true;
    case BETWEEN:
        return byte == ',' || begin_bracket(s, byte);
    case BEFORE:
        return begin_bracket(s, byte);
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

static bool take_of_string(struct weft_json_stream *s, unsigned char byte)
{
    if (byte < ' ' && byte != '\t') return false;
    if (s->state == ESCAPED) {
        s->state = STRING;
    } else if (byte == '\\') {
        s->state = ESCAPED;
    } else if (byte == '"' && s->of_names) {
        s->state = COLON;
    } else if (byte == '"') {
        end_value(s);
    }
    return true;
}

static bool take_of_word(struct weft_json_stream *s, unsigned char byte)
{
    if (is_of_word(byte)) {
        if (s->length == WEFT_JSON_STREAM_WORD) return false;
        s->word[s->length++] = (char)byte;
        return true;
    }
    if (!is_word(s)) return false;
    end_value(s);
    return take_part(s, byte);
}

static bool take_of_mark(struct weft_json_stream *s, unsigned char byte)
{
    static const unsigned char mark[] = {MARK_1, MARK_2, MARK_3};
    if (s->state == MARK && byte != MARK_1) {
        s->state = BEFORE;
        return take_part(s, byte);
    }
    return byte == mark[s->state++ - MARK];
}

static bool take_byte(struct weft_json_stream *s, unsigned char byte)
{
    switch ((enum state)s->state) {
    case STRING:
    case ESCAPED:
        return take_of_string(s, byte);
    case WORD:
        return take_of_word(s, byte);
    case MARK:
    case MARK_SECOND:
    case MARK_THIRD:
        return take_of_mark(s, byte);
    case REST_OF_LINE:
        if (byte == '\n') s->state = BEFORE;
        return true;
    case BEFORE:
    case BETWEEN:
    case VALUE:
    case FIRST_ITEM:
    case NAME:
    case COLON:
    case AFTER_ITEM:
        break;
    }
    return take_part(s, byte);
}

/* Counts an open second object, since a fault may have cut its end. */
static bool has_two_objects(const struct weft_json_stream *s)
{
    bool second = s->depth > 0 && s->is_object[0] && s->items > 0;
    return s->opening == '{' && (s->whole > 1 || (s->whole == 1 && second));
}

static bool has_items(const struct weft_json_stream *s)
{
    return s->whole > 0 || s->items > 0;
}

/* Whether the stretch without a fault is too long for a text. */
static bool is_long_enough(const struct weft_json_stream *s)
{
    if (s->begin < 0) return false;
    if (s->bytes >= WEFT_JSON_STREAM_BYTES) return true;
    return s->bytes - s->begin >= WEFT_JSON_STREAM_ENOUGH &&
           (s->resumed ? has_two_objects(s) : has_items(s));
}

/* The first fault decides, unless the file may have been cut within its first line. */
static void meet_fault(struct weft_json_stream *s, unsigned char byte)
{
    int64_t bytes = s->bytes;
    if (s->resumed || s->begin >= 0) {
        s->is_json = !s->resumed && has_two_objects(s);
        s->decided = true;
        return;
    }
    weft_json_stream_init(s);
    s->bytes = bytes;
    s->resumed = true;
    s->state = byte == '\n' ? BEFORE : REST_OF_LINE;
}

bool weft_json_stream_add(struct weft_json_stream *s, const unsigned char *bytes, size_t n)
{
    for (size_t i = 0; i < n && !s->decided; i++) {
        if (!take_byte(s, bytes[i])) meet_fault(s, bytes[i]);
        s->bytes++;
        if (!s->decided && is_long_enough(s)) s->decided = s->is_json = true;
        if (s->bytes == WEFT_JSON_STREAM_BYTES) s->decided = true;
        if (s->state == REST_OF_LINE && s->bytes >= WEFT_JSON_STREAM_LINE) s->decided = true;
    }
    return !s->decided;
}

enum weft_json_form weft_json_stream_form(const struct weft_json_stream *s)
{
    bool ended = !s->decided && (s->resumed ? has_two_objects(s) : has_items(s));
    if (!ended && !s->is_json) return WEFT_JSON_FORM_NONE;
    if (s->opening == '{') return s->broken ? WEFT_JSON_FORM_DOCUMENT : WEFT_JSON_FORM_LINES;
    return s->of_objects ? WEFT_JSON_FORM_OBJECTS : WEFT_JSON_FORM_ARRAY;
}
