/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json/json_scan.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/shown.h"
#include "base/text.h"
#include "base/utf8.h"

/* A member's name in an open object. Names are compared by hash. */
struct name {
    struct weft_hash hash;
    size_t at; /* offset of its opening quote */
};

struct scan {
    const unsigned char *bytes;
    size_t length;
    size_t at;
    int depth;
    const char *source;
    struct name *names; /* of all open objects, outermost first */
    size_t name_count;
    size_t name_capacity;
    size_t values, all_names; /* so far */
    struct weft_text decoded; /* of the name being read */
    struct weft_error *err;
};

struct place {
    size_t line;
    size_t column;
};

static struct place place_of(const struct scan *scan, size_t at)
{
    struct place place = {1, 1};
    for (size_t i = 0; i < at; i++) {
        if (scan->bytes[i] == '\n') {
            place.line++;
            place.column = 1;
        } else if (!weft_utf8_continues(scan->bytes[i])) {
            place.column++;
        }
    }
    return place;
}

static enum weft_status fail_at(const struct scan *scan, size_t at, const char *what)
{
    struct place place = place_of(scan, at);
    return weft_fail(scan->err, WEFT_E_DATA, "%s:%zu:%zu: %s", scan->source, place.line,
                     place.column, what);
}

static bool at_end(const struct scan *scan)
{
    return scan->at >= scan->length;
}

/* The current byte; 0 at the end. A NUL is never valid in the text. */
static unsigned char current_byte(const struct scan *scan)
{
    return at_end(scan) ? 0 : scan->bytes[scan->at];
}

/* Fails with "found X where Y is wanted" at the current byte. */
static enum weft_status fail_found(const struct scan *scan, const char *wanted)
{
    struct weft_text text;
    weft_text_init(&text);
    unsigned char byte = current_byte(scan);
    if (at_end(scan)) {
        weft_text_add(&text, "the text ends");
    } else if (byte > ' ' && byte < 0x7F) {
        weft_text_addf(&text, "found '%c'", byte);
    } else {
        weft_text_addf(&text, "found the byte 0x%02X", byte);
    }
    weft_text_addf(&text, " where %s is wanted%s", wanted,
                   weft_json_hint(scan->bytes, scan->length, scan->at));
    enum weft_status status = fail_at(scan, scan->at, weft_text_chars(&text));
    weft_text_finish(&text);
    return status;
}

static void skip_space(struct scan *scan)
{
    while (!at_end(scan)) {
        unsigned char byte = scan->bytes[scan->at];
        if (byte != ' ' && byte != '\n' && byte != '\r' && byte != '\t') return;
        scan->at++;
    }
}

static bool is_digit(unsigned char byte)
{
    return byte >= '0' && byte <= '9';
}

static void skip_digits(struct scan *scan)
{
    while (is_digit(current_byte(scan)))
        scan->at++;
}

/* True if all digits of the number are 0. */
static bool is_zero(const unsigned char *number)
{
    for (; *number == '-' || *number == '.' || is_digit(*number); number++)
        if (*number >= '1' && *number <= '9') return false;
    return true;
}

double weft_json_number_value(const char *text)
{
    char digits[WEFT_JSON_MOST_NUMBER_BYTES + 24];
    size_t count = 0;
    long exponent = 0, whole = 0;
    bool fraction = false;
    for (; *text == '-' || *text == '.' || is_digit((unsigned char)*text); text++) {
        if (fraction && *text != '.') exponent--;
        if (*text == '.') {
            fraction = true;
            continue;
        }
        digits[count++] = *text;
        if (*text != '-' && count < 16) whole = 10 * whole + (*text - '0');
    }
    bool written = *text == 'e' || *text == 'E';
    if (!written && exponent == 0 && count < 16 && digits[0] != '-') return (double)whole;
    if (written) {
        const long limit = 100000;
        long read = strtol(text + 1, NULL, 10);
        exponent += read > limit ? limit : read < -limit ? -limit : read;
    }
    snprintf(digits + count, sizeof digits - count, "e%ld", exponent);
    return strtod(digits, NULL);
}

static enum weft_status scan_number(struct scan *scan)
{
    size_t start = scan->at;
    bool has_exponent = false;
    if (current_byte(scan) == '-') scan->at++;
    if (!is_digit(current_byte(scan))) return fail_found(scan, "a digit");
    if (current_byte(scan) == '0') {
        scan->at++;
        if (is_digit(current_byte(scan)))
            return fail_at(scan, start, "a number has a leading zero");
    }
    skip_digits(scan);
    if (current_byte(scan) == '.') {
        scan->at++;
        if (!is_digit(current_byte(scan)))
            return fail_found(scan, "a digit after the decimal point");
        skip_digits(scan);
    }
    if (current_byte(scan) == 'e' || current_byte(scan) == 'E') {
        has_exponent = true;
        scan->at++;
        if (current_byte(scan) == '+' || current_byte(scan) == '-') scan->at++;
        if (!is_digit(current_byte(scan))) return fail_found(scan, "a digit of the exponent");
        skip_digits(scan);
    }
    size_t length = scan->at - start;
    if (length > WEFT_JSON_MOST_NUMBER_BYTES) {
        return fail_at(scan, start, "a number is longer than 63 characters, the most that is read");
    }
    /* Without an exponent, 63 characters neither overflow nor underflow. */
    if (!has_exponent) return WEFT_OK;
    double value = weft_json_number_value((const char *)scan->bytes + start);
    if (fabs(value) <= 1.7976931348623157e308 && (value != 0 || is_zero(scan->bytes + start)))
        return WEFT_OK;
    return fail_at(scan, start,
                   "a number is out of range: its size must be within 4.9e-324 to 1.8e308");
}

/* Reads the four digits of \uXXXX from `at`. Negative if they are missing. */
static int hex_quad(const struct scan *scan, size_t at)
{
    int value = 0;
    if (scan->length < 4 || at > scan->length - 4) return -1;
    for (size_t i = 0; i < 4; i++) {
        unsigned char byte = scan->bytes[at + i];
        int digit = is_digit(byte)                 ? byte - '0'
                    : (byte >= 'a' && byte <= 'f') ? byte - 'a' + 10
                    : (byte >= 'A' && byte <= 'F') ? byte - 'A' + 10
                                                   : -1;
        if (digit < 0) return -1;
        value = value * 16 + digit;
    }
    return value;
}

static void append_code_point(struct weft_text *text, int code)
{
    char bytes[4];
    size_t count = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const int leads[] = {0, 0, 0xC0, 0xE0, 0xF0};
    for (size_t i = count - 1; i > 0; i--, code >>= 6)
        bytes[i] = (char)(0x80 | (code & 0x3F));
    bytes[0] = (char)(leads[count] | code);
    weft_text_append(text, bytes, count);
}

/* Starts at the 'u' of \uXXXX, or of the first half of a surrogate pair. */
static enum weft_status scan_unicode_escape(struct scan *scan, struct weft_text *decoded)
{
    size_t start = scan->at - 1;
    int code = hex_quad(scan, scan->at + 1);
    if (code < 0) return fail_at(scan, start, "\\u is not followed by four hexadecimal digits");
    if (code == 0) return fail_at(scan, start, "\\u0000 is not allowed in a string");
    scan->at += 5;
    if (code >= 0xDC00 && code <= 0xDFFF) {
        return fail_at(scan, start, "a low surrogate stands without a high one before it");
    }
    if (code >= 0xD800 && code <= 0xDBFF) {
        bool escape = scan->length - scan->at >= 6 && scan->bytes[scan->at] == '\\' &&
                      scan->bytes[scan->at + 1] == 'u';
        int low = escape ? hex_quad(scan, scan->at + 2) : -1;
        if (low < 0xDC00 || low > 0xDFFF) {
            return fail_at(scan, start, "a high surrogate stands without a low one after it");
        }
        scan->at += 6;
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    }
    if (decoded != NULL) append_code_point(decoded, code);
    return WEFT_OK;
}

/* Starts at the backslash. */
static enum weft_status scan_escape(struct scan *scan, struct weft_text *decoded)
{
    static const char letters[] = "\"\\/bfnrt";
    static const char meanings[] = "\"\\/\b\f\n\r\t";
    scan->at++;
    if (current_byte(scan) == 'u') return scan_unicode_escape(scan, decoded);
    const char *letter = current_byte(scan) == 0 ? NULL : strchr(letters, current_byte(scan));
    if (letter == NULL) return fail_found(scan, "one of \" \\ / b f n r t u after a backslash");
    if (decoded != NULL) weft_text_append(decoded, &meanings[letter - letters], 1);
    scan->at++;
    return WEFT_OK;
}

/* Starts at the opening quote. `decoded` receives the characters, unless NULL. */
static enum weft_status scan_string(struct scan *scan, struct weft_text *decoded)
{
    size_t start = scan->at++;
    while (!at_end(scan)) {
        unsigned char byte = scan->bytes[scan->at];
        if (byte == '"') {
            scan->at++;
            return WEFT_OK;
        }
        if (byte == '\\') {
            WEFT_TRY(scan_escape(scan, decoded));
            continue;
        }
        if (byte < 0x20) {
            return fail_at(scan, scan->at,
                           "a control character stands in a string; write it as an escape "
                           "(\\n, \\t or \\u00XX)");
        }
        size_t length = weft_utf8_sequence(scan->bytes + scan->at, scan->length - scan->at);
        if (length == 0) return fail_at(scan, scan->at, "a string is not valid UTF-8");
        if (decoded != NULL) {
            weft_text_append(decoded, (const char *)scan->bytes + scan->at, length);
        }
        scan->at += length;
    }
    return fail_at(scan, start, "a string is not closed");
}

static enum weft_status remember_name(struct scan *scan, size_t at)
{
    if (scan->name_count == scan->name_capacity) {
        size_t capacity = scan->name_capacity == 0 ? 64 : 2 * scan->name_capacity;
        struct name *names = realloc(scan->names, capacity * sizeof *names);
        if (names == NULL) return weft_fail_memory(scan->err, scan->source);
        scan->names = names;
        scan->name_capacity = capacity;
    }
    if (!weft_text_ok(&scan->decoded)) return weft_fail_memory(scan->err, scan->source);
    scan->all_names++;
    scan->names[scan->name_count++] = (struct name){
        .hash = weft_hash_bytes(weft_text_chars(&scan->decoded), scan->decoded.length),
        .at = at,
    };
    return WEFT_OK;
}

static int compare_names(const void *left, const void *right)
{
    const struct name *a = left, *b = right;
    if (a->hash.high != b->hash.high) return a->hash.high < b->hash.high ? -1 : 1;
    if (a->hash.low != b->hash.low) return a->hash.low < b->hash.low ? -1 : 1;
    return (a->at > b->at) - (a->at < b->at);
}

/* Checks that the names of the object that ends here, from index `first`, all differ. */
static enum weft_status check_names(struct scan *scan, size_t first)
{
    size_t count = scan->name_count - first;
    const struct name *twin = NULL;
    if (count < 2) return WEFT_OK;
    struct name *names = scan->names + first;
    qsort(names, count, sizeof *names, compare_names);
    for (size_t i = 1; i < count; i++) {
        if (weft_hash_equal(names[i - 1].hash, names[i].hash) &&
            (twin == NULL || names[i].at < twin->at)) {
            twin = &names[i];
        }
    }
    if (twin == NULL) return WEFT_OK;
    while (twin > names && weft_hash_equal(twin[-1].hash, twin->hash))
        twin--;
    /* Equal names are sorted by place. */
    struct place before = place_of(scan, twin[0].at);
    struct place again = place_of(scan, twin[1].at);
    scan->at = twin[1].at;
    weft_text_finish(&scan->decoded);
    WEFT_TRY(scan_string(scan, &scan->decoded));
    char name[WEFT_SHOWN_BYTES];
    return weft_fail(scan->err, WEFT_E_DATA,
                     "%s:%zu:%zu: duplicate key \"%s\"; it stands at line %zu, column %zu already",
                     scan->source, again.line, again.column,
                     weft_shown(weft_text_chars(&scan->decoded), name), before.line, before.column);
}

static enum weft_status scan_value(struct scan *scan);

static enum weft_status scan_member(struct scan *scan)
{
    size_t at = scan->at;
    if (current_byte(scan) != '"') return fail_found(scan, "the \" of a key");
    scan->decoded.length = 0;
    WEFT_TRY(scan_string(scan, &scan->decoded));
    WEFT_TRY(remember_name(scan, at));
    skip_space(scan);
    if (current_byte(scan) != ':') return fail_found(scan, "a ':' after a key");
    scan->at++;
    skip_space(scan);
    return scan_value(scan);
}

/* Starts at the opening bracket; `close` is the closing one. */
static enum weft_status scan_container(struct scan *scan, unsigned char close)
{
    const bool object = close == '}';
    size_t first_name = scan->name_count;
    if (scan->depth == WEFT_JSON_MOST_DEPTH) {
        return fail_at(scan, scan->at, "arrays and objects are nested more than 100 deep");
    }
    scan->depth++;
    scan->at++;
    skip_space(scan);
    if (current_byte(scan) != close || at_end(scan)) {
        for (;;) {
            WEFT_TRY(object ? scan_member(scan) : scan_value(scan));
            skip_space(scan);
            if (current_byte(scan) != ',') break;
            scan->at++;
            skip_space(scan);
            if (current_byte(scan) == close) {
                return fail_found(scan, object ? "another key (no comma after the last one)"
                                               : "another value (no comma after the last one)");
            }
        }
    }
    if (current_byte(scan) != close) return fail_found(scan, object ? "',' or '}'" : "',' or ']'");
    scan->at++;
    scan->depth--;
    WEFT_TRY(check_names(scan, first_name));
    scan->name_count = first_name;
    return WEFT_OK;
}

static enum weft_status scan_word(struct scan *scan, const char *word)
{
    size_t length = strlen(word);
    if (scan->length - scan->at < length || memcmp(scan->bytes + scan->at, word, length) != 0) {
        return fail_found(scan, "a value (true, false and null are the only words)");
    }
    scan->at += length;
    return WEFT_OK;
}

static enum weft_status scan_value(struct scan *scan)
{
    unsigned char byte = current_byte(scan);
    if (++scan->values > WEFT_JSON_MOST_VALUES) {
        return fail_at(scan, scan->at, "has more than 16777216 values, the most that are read");
    }
    if (byte == '{') return scan_container(scan, '}');
    if (byte == '[') return scan_container(scan, ']');
    if (byte == '"') return scan_string(scan, NULL);
    if (byte == '-' || is_digit(byte)) return scan_number(scan);
    if (byte == 't') return scan_word(scan, "true");
    if (byte == 'f') return scan_word(scan, "false");
    if (byte == 'n') return scan_word(scan, "null");
    return fail_found(scan, "a value");
}

static enum weft_status scan_document(struct scan *scan)
{
    if (scan->length >= 3 && memcmp(scan->bytes, "\xEF\xBB\xBF", 3) == 0) {
        return fail_at(scan, 0, "the text starts with a byte-order mark; save it without");
    }
    skip_space(scan);
    WEFT_TRY(scan_value(scan));
    skip_space(scan);
    if (at_end(scan)) return WEFT_OK;
    return fail_found(scan, "the end of the document");
}

enum weft_status weft_json_scan(const char *bytes, size_t length, const char *source, size_t *nodes,
                                struct weft_error *err)
{
    struct scan scan = {
        .bytes = (const unsigned char *)bytes, .length = length, .source = source, .err = err};
    weft_text_init(&scan.decoded);
    enum weft_status status = scan_document(&scan);
    weft_text_finish(&scan.decoded);
    free(scan.names);
    *nodes = scan.values + scan.all_names;
    return status;
}
