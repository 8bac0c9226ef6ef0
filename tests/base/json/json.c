/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json/json.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"

static struct weft_json *parse_json(const char *text)
{
    struct weft_error err = {0};
    struct weft_json *document = NULL;
    cr_assert_eq(weft_json_parse(text, strlen(text), "t", &document, &err), WEFT_OK, "%s",
                 err.text);
    return document;
}

/* `message` is the whole error, place first. */
static void refuse_bytes(const char *text, size_t length, const char *message)
{
    struct weft_error err = {0};
    struct weft_json *document = NULL;
    /* A copy of the exact size, so that AddressSanitizer sees a read past the end. */
    char *exact = malloc(length == 0 ? 1 : length);
    memcpy(exact, text, length);
    cr_assert_eq(weft_json_parse(exact, length, "t", &document, &err), WEFT_E_DATA, "accepted: %s",
                 text);
    free(exact);
    cr_assert_null(document, "outputs stay untouched on failure");
    cr_assert_str_eq(err.text, message);
}

static void refuse_json(const char *text, const char *message)
{
    refuse_bytes(text, strlen(text), message);
}

Test(json, every_kind_is_read)
{
    struct weft_json *document =
        parse_json(" {\"n\": null, \"t\": true, \"f\": false, \"i\": -12,\n"
                   "\"d\": 2.5e-1, \"s\": \"x\", \"a\": [1, 2], \"o\": {}} ");
    const struct weft_json_value *root = weft_json_root(document);
    static const char *const names[] = {"n", "t", "f", "i", "d", "s", "a", "o"};
    static const enum weft_json_kind kinds[] = {
        WEFT_JSON_NULL,   WEFT_JSON_BOOL,   WEFT_JSON_BOOL,  WEFT_JSON_NUMBER,
        WEFT_JSON_NUMBER, WEFT_JSON_STRING, WEFT_JSON_ARRAY, WEFT_JSON_OBJECT};
    cr_assert_eq(weft_json_kind(root), WEFT_JSON_OBJECT);
    cr_assert_eq(weft_json_count(root), 8);
    const struct weft_json_value *value = weft_json_first(root);
    for (int i = 0; i < 8; i++, value = weft_json_next(value)) {
        cr_assert_str_eq(weft_json_name(value), names[i]);
        cr_assert_eq(weft_json_kind(value), kinds[i]);
        cr_assert_eq(weft_json_member(root, names[i]), value);
    }
    cr_assert_null(value);
    bool boolean = false;
    int64_t integer = 0;
    double number = 0;
    const char *string = NULL;
    cr_assert(weft_json_bool(weft_json_member(root, "t"), &boolean) && boolean);
    cr_assert(weft_json_bool(weft_json_member(root, "f"), &boolean) && !boolean);
    cr_assert(weft_json_integer(weft_json_member(root, "i"), &integer));
    cr_assert_eq(integer, -12);
    cr_assert(weft_json_number(weft_json_member(root, "d"), &number));
    cr_assert_eq(number, 0.25);
    cr_assert(weft_json_string(weft_json_member(root, "s"), &string));
    cr_assert_str_eq(string, "x");
    cr_assert_eq(weft_json_count(weft_json_member(root, "a")), 2);
    cr_assert_eq(weft_json_count(weft_json_member(root, "o")), 0);
    weft_json_destroy(document);
}

Test(json, a_scalar_is_a_document)
{
    static const char *const texts[] = {"0", "-0", "true", "null", "\"\"", "\r\n\t 1e5 ", "[]"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        weft_json_destroy(parse_json(texts[i]));
    }
    weft_json_destroy(NULL);
}

Test(json, reads_of_another_kind_or_of_nothing_are_false)
{
    struct weft_json *document = parse_json("{\"A\": \"1\"}");
    const struct weft_json_value *root = weft_json_root(document);
    int64_t integer = 5;
    double number = 5;
    bool boolean = true;
    const char *string = "kept";
    cr_assert_null(weft_json_member(root, "a"), "names are told apart by case");
    cr_assert_null(weft_json_member(weft_json_member(root, "A"), "A"));
    cr_assert_null(weft_json_member(NULL, "A"));
    cr_assert_not(weft_json_integer(weft_json_member(root, "A"), &integer));
    cr_assert_not(weft_json_number(root, &number));
    cr_assert_not(weft_json_bool(NULL, &boolean));
    cr_assert_not(weft_json_string(root, &string));
    cr_assert(integer == 5 && number == 5 && boolean);
    cr_assert_str_eq(string, "kept");
    cr_assert_null(weft_json_first(NULL));
    cr_assert_null(weft_json_next(NULL));
    cr_assert_null(weft_json_name(root));
    cr_assert_null(weft_json_root(NULL));
    weft_json_destroy(document);
}

Test(json, integers_end_where_doubles_stop_telling_them_apart)
{
    static const struct {
        const char *text;
        bool integer;
        int64_t value;
    } cases[] = {
        {"9007199254740991", true, 9007199254740991},
        {"-9007199254740991", true, -9007199254740991},
        {"9007199254740992", true, 9007199254740992},
        {"-9007199254740992", true, -9007199254740992},
        {"9007199254740993", false, 0},
        {"-9007199254740993", false, 0},
        {"9007199254740993.0", false, 0},
        {"9.007199254740993e15", false, 0},
        {"9007199254740994", false, 0},
        {"1e300", false, 0},
        {"1.5", false, 0},
        {"1e3", true, 1000},
        {"12.0", true, 12},
        {"-0", true, 0},
        {"5e-324", false, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct weft_json *document = parse_json(cases[i].text);
        int64_t value = 0;
        cr_assert_eq(weft_json_integer(weft_json_root(document), &value), cases[i].integer, "%s",
                     cases[i].text);
        cr_assert_eq(value, cases[i].value);
        weft_json_destroy(document);
    }
}

Test(json, numbers_are_what_the_grammar_says)
{
    refuse_json("01", "t:1:1: a number has a leading zero");
    refuse_json("[-01]", "t:1:2: a number has a leading zero");
    refuse_json("-", "t:1:2: the text ends where a digit is wanted");
    refuse_json("+1", "t:1:1: found '+' where a value is wanted");
    refuse_json(".5", "t:1:1: found '.' where a value is wanted");
    refuse_json("1.", "t:1:3: the text ends where a digit after the decimal point is wanted");
    refuse_json("1.e5", "t:1:3: found 'e' where a digit after the decimal point is wanted");
    refuse_json("1e+", "t:1:4: the text ends where a digit of the exponent is wanted");
    refuse_json("0x10", "t:1:2: found 'x' where the end of the document is wanted");
    refuse_json("NaN", "t:1:1: found 'N' where a value is wanted. JSON has no NaN and no infinity: "
                       "every number is finite");
    refuse_json("-Infinity", "t:1:2: found 'I' where a digit is wanted. JSON has no NaN and no "
                             "infinity: every number is finite");
}

Test(json, numbers_fit_a_double)
{
    static const char *const good[] = {"1e308",  "1.7976931348623157e308", "4.9e-324",
                                       "0e999",  "0.000e-999999999999999", "-1.5E+10",
                                       "100e-2", "0.00000000001e318"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        weft_json_destroy(parse_json(good[i]));
    static const char *const bad[] = {"1e400",  "-1e309",  "1.8e308", "1e99999999999999999999",
                                      "1e-400", "1000e306"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        refuse_json(bad[i],
                    "t:1:1: a number is out of range: its size must be within 4.9e-324 to 1.8e308");
    }
}

Test(json, long_numbers_are_refused_not_cut)
{
    char text[80];
    memset(text, '1', sizeof text);
    text[63] = '\0';
    struct weft_json *document = parse_json(text);
    double number = 0;
    cr_assert(weft_json_number(weft_json_root(document), &number));
    cr_assert_eq(number, strtod(text, NULL));
    weft_json_destroy(document);
    text[63] = '1';
    text[64] = '\0';
    refuse_json(text, "t:1:1: a number is longer than 63 characters, the most that is read");
}

Test(json, strings_decode_their_escapes)
{
    struct weft_json *document = parse_json(
        "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\u00e9\\u20AC\\uD83D\\ude00 \xC3\xA9\x7F\"");
    const char *string = NULL;
    cr_assert(weft_json_string(weft_json_root(document), &string));
    cr_assert_str_eq(string, "\"\\/\b\f\n\r\tA\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80 \xC3\xA9\x7F");
    weft_json_destroy(document);
}

Test(json, bad_strings_are_refused)
{
    static const char control[] = "t:1:4: a control character stands in a string; write it as an "
                                  "escape (\\n, \\t or \\u00XX)";
    refuse_json("\"ab\n\"", control);
    refuse_json("\"ab\t\"", control);
    refuse_bytes("\"ab\0\"", 5, control);
    refuse_json("\"abc", "t:1:1: a string is not closed");
    refuse_json("\"abc\\",
                "t:1:6: the text ends where one of \" \\ / b f n r t u after a backslash is "
                "wanted");
    refuse_json("\"\\x41\"",
                "t:1:3: found 'x' where one of \" \\ / b f n r t u after a backslash is wanted");
    refuse_json("\"\\u12\"", "t:1:2: \\u is not followed by four hexadecimal digits");
    refuse_json("\"\\u", "t:1:2: \\u is not followed by four hexadecimal digits");
    refuse_json("\"\\u00g0\"", "t:1:2: \\u is not followed by four hexadecimal digits");
    refuse_json("\"\\u0000\"", "t:1:2: \\u0000 is not allowed in a string");
    refuse_json("\"\\uDC00\"", "t:1:2: a low surrogate stands without a high one before it");
    refuse_json("\"\\uD800\"", "t:1:2: a high surrogate stands without a low one after it");
    refuse_json("\"\\uD800\\u0041\"", "t:1:2: a high surrogate stands without a low one after it");
    refuse_json("\"\\uD800\\uD800\"", "t:1:2: a high surrogate stands without a low one after it");
}

Test(json, strings_are_valid_utf8)
{
    static const char *const bad[] = {
        "\"\x80\"",             /* a continuation alone */
        "\"\xC0\xAF\"",         /* overlong, two bytes */
        "\"\xC1\xBF\"",         /* overlong, two bytes */
        "\"\xE0\x9F\xBF\"",     /* overlong, three bytes */
        "\"\xED\xA0\x80\"",     /* a surrogate */
        "\"\xF0\x8F\xBF\xBF\"", /* overlong, four bytes */
        "\"\xF4\x90\x80\x80\"", /* above U+10FFFF */
        "\"\xF5\x80\x80\x80\"",
        "\"\xFF\"",
        "\"\xC3\"",
        "\"\xE2\x82\"",
        "\"\xE2\x82",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        refuse_json(bad[i], "t:1:2: a string is not valid UTF-8");
    }
    static const char *const good[] = {"\"\xC2\x80\"",         "\"\xE0\xA0\x80\"",
                                       "\"\xED\x9F\xBF\"",     "\"\xEE\x80\x80\"",
                                       "\"\xF0\x90\x80\x80\"", "\"\xF4\x8F\xBF\xBF\""};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        weft_json_destroy(parse_json(good[i]));
}

Test(json, structure_is_strict)
{
    refuse_json("", "t:1:1: the text ends where a value is wanted");
    refuse_json(" \n ", "t:2:2: the text ends where a value is wanted");
    refuse_json("[1,]",
                "t:1:4: found ']' where another value (no comma after the last one) is wanted");
    refuse_json("{\"a\": 1,}",
                "t:1:9: found '}' where another key (no comma after the last one) is wanted");
    refuse_json("[1 2]", "t:1:4: found '2' where ',' or ']' is wanted");
    refuse_json("[,1]", "t:1:2: found ',' where a value is wanted");
    refuse_json("[1", "t:1:3: the text ends where ',' or ']' is wanted");
    refuse_json("[1}", "t:1:3: found '}' where ',' or ']' is wanted");
    refuse_json("{a: 1}", "t:1:2: found 'a' where the \" of a key is wanted");
    refuse_json("{\"a\" 1}", "t:1:6: found '1' where a ':' after a key is wanted");
    refuse_json("{\"a\":}", "t:1:6: found '}' where a value is wanted");
    refuse_json("{\"a\": 1 \"b\": 2}", "t:1:9: found '\"' where ',' or '}' is wanted");
    refuse_json("{", "t:1:2: the text ends where the \" of a key is wanted");
    refuse_json("1 2", "t:1:3: found '2' where the end of the document is wanted");
    refuse_json("{} / c", "t:1:4: found '/' where the end of the document is wanted");
    refuse_json("tru",
                "t:1:1: found 't' where a value (true, false and null are the only words) is "
                "wanted");
    refuse_json("truer", "t:1:5: found 'r' where the end of the document is wanted");
    refuse_json("[\v1]", "t:1:2: found the byte 0x0B where a value is wanted");
    refuse_bytes("1\0", 2, "t:1:2: found the byte 0x00 where the end of the document is wanted");
    refuse_bytes("[\0]", 3, "t:1:2: found the byte 0x00 where a value is wanted");
    refuse_json("\xEF\xBB\xBF{}", "t:1:1: the text starts with a byte-order mark; save it without");
}

static void hints(const char *text, const char *hint)
{
    struct weft_error err = {0};
    struct weft_json *document = NULL;
    cr_assert_eq(weft_json_parse(text, strlen(text), "t", &document, &err), WEFT_E_DATA);
    const char *end = strstr(err.text, " is wanted");
    cr_assert_not_null(end, "%s", err.text);
    cr_assert_str_eq(end + strlen(" is wanted"), hint, "%s", text);
}

Test(json, who_writes_something_else_is_told_what)
{
    static const char comments[] =
        ". JSON has no comments: a key \"$comment\" takes a string instead";
    static const char yaml[] = ". This looks like YAML: write it as JSON";
    static const char quotes[] = ". JSON writes strings and keys in double quotes";
    static const char words[] = ". JSON writes true, false and null";
    hints("// a run\n{}", comments);
    hints("{ /* ranks */ \"a\": 1}", comments);
    hints("{\"a\": 1} # end", comments);
    hints("# a run\n{}", comments);
    hints("---\nversion: 1\n", yaml);
    hints("# a run\n\nversion: 1\nmodel:\n  layers:\n", yaml);
    hints("  train_steps: 1", yaml);
    hints("- name: wte\n", yaml);
    hints("{'a': 1}", quotes);
    hints("{\"a\": 'x'}", quotes);
    hints("{\"a\": True}", words);
    hints("[None]", words);
    hints("[1, 2", "");
    hints("NaN", ". JSON has no NaN and no infinity: every number is finite");
    hints("Nil", "");
    hints("-", "");
}

static void stands(const struct weft_json *document, const char *path, size_t line, size_t column)
{
    size_t is_line = 0, is_column = 0;
    weft_json_place(document, path, &is_line, &is_column);
    cr_assert(is_line == line && is_column == column, "%s is at %zu:%zu, not %zu:%zu", path,
              is_line, is_column, line, column);
}

Test(json, what_a_path_names_has_a_place)
{
    struct weft_json *document = parse_json(
        "{\n  \"model\": {\"layers\": [\n    {\"name\": \"a\\n\\\"b\", \"x\": 1},\n    7,"
        " {\"\\u00e9\\ud83d\\ude00\xC3\xA9\": \"\", \"y\": []}\n  ]},\n  \"a.b\": {\"c\": 0},"
        " \"a\": {\"b\": [[]]}\n}\n");
    stands(document, "$", 1, 1);
    stands(document, "$.model", 2, 3);
    stands(document, "$.model.layers", 2, 13);
    stands(document, "$.model.layers[0]", 3, 5);
    stands(document, "$.model.layers[0].name", 3, 6);
    stands(document, "$.model.layers[0].x", 3, 24);
    stands(document, "$.model.layers[1]", 4, 5);
    stands(document, "$.model.layers[2].y", 4, 36);
    stands(document, "$.a.b", 6, 3);
    stands(document, "$.a.b.c", 6, 11);
    stands(document, "$.a.b[0][0]", 6, 3);
    /* What is not there has the place of what it would be in. */
    stands(document, "$.model.layers[9].vocab", 2, 13);
    stands(document, "$.train", 1, 1);
    stands(document, "$.model.layers[0].vocab.x", 3, 5);
    weft_json_destroy(document);
    document = parse_json(" [\"a\", 1]");
    stands(document, "$[0]", 1, 3);
    stands(document, "$[1]", 1, 8);
    weft_json_destroy(document);
}

Test(json, places_count_lines_and_characters)
{
    refuse_json("{\n  \"a\": 1,\n  \"\xC3\xA9\xE2\x82\xAC\": x\n}",
                "t:3:9: found 'x' where a value is wanted");
    refuse_json("[\r\n1,\r\n x]", "t:3:2: found 'x' where a value is wanted");
}

Test(json, duplicate_keys_are_refused_however_they_are_spelt)
{
    refuse_json("{\"a\": 1, \"b\": 2,\n \"a\": 3}",
                "t:2:2: duplicate key \"a\"; it stands at line 1, column 2 already");
    refuse_json("{\"a/\": 1, \"\\u0061\\/\": 2}",
                "t:1:11: duplicate key \"a/\"; it stands at line 1, column 2 already");
    refuse_json("[{\"x\": {\"\": 0, \"\": 0}}]",
                "t:1:16: duplicate key \"\"; it stands at line 1, column 9 already");
    /* The first duplicate in the file, against the nearest that stood there before. */
    refuse_json("{\"z\":1,\"b\":2,\"b\":3,\"z\":4,\"b\":5}",
                "t:1:14: duplicate key \"b\"; it stands at line 1, column 8 already");
    weft_json_destroy(
        parse_json("{\"a\": {\"a\": [{\"a\": 1}, {\"a\": 2}]}, \"A\": 1, \"b\": {\"a\": 0}}"));
}

Test(json, nesting_ends_at_100)
{
    char text[203] = {0};
    memset(text, '[', 100);
    memset(text + 100, ']', 100);
    weft_json_destroy(parse_json(text));
    memset(text, '[', 101);
    memset(text + 101, ']', 101);
    refuse_json(text, "t:1:101: arrays and objects are nested more than 100 deep");
    char *deep = malloc(1000000);
    memset(deep, '[', 1000000);
    refuse_bytes(deep, 1000000, "t:1:101: arrays and objects are nested more than 100 deep");
    free(deep);
}

static size_t fill_repeated(char *text, size_t length, const char *piece)
{
    size_t n = strlen(piece), at = 1;
    text[0] = '[';
    for (; at + 2 * n + 1 < length; at += n)
        memcpy(text + at, piece, n);
    memcpy(text + at, piece, n - 1); /* without the comma */
    text[at + n - 1] = ']';
    return at + n;
}

static size_t fill_members(char *text, size_t length)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
    size_t at = 1;
    text[0] = '{';
    for (unsigned i = 0; at + 20 < length; i++, at += 9) {
        memcpy(text + at, "\"....\":0,", 9);
        for (unsigned k = 0; k < 4; k++)
            text[at + 1 + k] = letters[i >> 6 * k & 63];
    }
    text[at - 1] = '}';
    return at;
}

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

static int64_t most_resident_bytes(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return INT64_C(1024) * usage.ru_maxrss;
}

/* Each in a process of its own, because the most stays the most. */
static void takes_at_most_8_bytes_a_byte(size_t (*fill)(char *text, size_t length))
{
    enum { BYTES = 24000000, SLACK = 1 << 20 };
    char *text = malloc(BYTES);
    memset(text, ' ', BYTES);
    size_t length = fill(text, BYTES);
    int64_t before = most_resident_bytes();
    struct weft_json *document = NULL;
    cr_assert_eq(weft_json_parse(text, length, "t", &document, NULL), WEFT_OK);
    int64_t taken = most_resident_bytes() - before;
    cr_assert_gt(weft_json_count(weft_json_root(document)), BYTES / 10);
    cr_assert(SANITIZED || taken <= 8 * BYTES + SLACK, "%g bytes a byte", (double)taken / BYTES);
    weft_json_destroy(document);
    free(text);
}

static size_t fill_numbers(char *text, size_t length)
{
    return fill_repeated(text, length, "0,");
}

static size_t fill_containers(char *text, size_t length)
{
    return fill_repeated(text, length, "{},");
}

static size_t fill_objects(char *text, size_t length)
{
    return fill_repeated(text, length, "{\"\":0},");
}

Test(json, numbers_take_at_most_8_bytes_a_byte)
{
    takes_at_most_8_bytes_a_byte(fill_numbers);
}

Test(json, containers_take_at_most_8_bytes_a_byte)
{
    takes_at_most_8_bytes_a_byte(fill_containers);
}

Test(json, objects_take_at_most_8_bytes_a_byte)
{
    takes_at_most_8_bytes_a_byte(fill_objects);
}

Test(json, members_take_at_most_8_bytes_a_byte)
{
    takes_at_most_8_bytes_a_byte(fill_members);
}

Test(json, values_end_at_2_to_the_24)
{
    enum { MOST = 1 << 24 };
    char *text = malloc(2 * MOST + 20);
    struct weft_json *document = NULL;
    struct weft_error err = {0};
    size_t length = fill_repeated(text, 2 * (size_t)MOST + 20, "0,");
    cr_assert_eq(weft_json_parse(text, length, "t", &document, &err), WEFT_E_DATA);
    cr_assert_not_null(strstr(err.text, "has more than 16777216 values"), "%s", err.text);
    length = fill_repeated(text, 2 * (size_t)MOST, "0,");
    cr_assert_eq(weft_json_parse(text, length, "t", &document, NULL), WEFT_OK);
    size_t count = weft_json_count(weft_json_root(document));
    cr_assert(count < MOST && count > MOST - 8, "%zu", count);
    weft_json_destroy(document);
    free(text);
}

/* Quadratic work on 2 * 10^5 keys would take minutes. */
Test(json, many_members_are_quick)
{
    enum { COUNT = 200000 };
    struct weft_text text;
    weft_text_init(&text);
    weft_text_add(&text, "{\"last\": 0");
    for (int i = 0; i < COUNT; i++)
        weft_text_addf(&text, ", \"key%d\": %d", i, i);
    size_t open_length = text.length;
    weft_text_add(&text, "}");
    int64_t start = weft_clock_now_ns();
    struct weft_json *document = parse_json(weft_text_chars(&text));
    cr_assert_eq(weft_json_count(weft_json_root(document)), COUNT + 1);
    weft_json_destroy(document);
    text.length = open_length;
    weft_text_add(&text, ", \"last\": 1}");
    struct weft_error err = {0};
    document = NULL;
    cr_assert_eq(weft_json_parse(text.data, text.length, "t", &document, &err), WEFT_E_DATA);
    cr_assert_not_null(strstr(err.text, "duplicate key \"last\"; it stands at line 1, column 2"));
    cr_assert_lt(weft_clock_now_ns() - start, INT64_C(10000000000));
    weft_text_finish(&text);
}

Test(json, files_are_read_and_named)
{
    char path[] = "/tmp/weft-json-XXXXXX";
    struct weft_json *document = NULL;
    struct weft_error err = {0};
    char wanted[100];
    int descriptor = mkstemp(path);
    cr_assert(descriptor >= 0);
    cr_assert_eq(write(descriptor, "{\n!", 3), 3);
    cr_assert_eq(weft_json_read(path, &document, &err), WEFT_E_DATA);
    snprintf(wanted, sizeof wanted, "%s:2:1: found '!' where the \" of a key is wanted", path);
    cr_assert_str_eq(err.text, wanted);
    cr_assert_eq(pwrite(descriptor, "[7]", 3, 0), 3);
    cr_assert_eq(weft_json_read(path, &document, NULL), WEFT_OK);
    cr_assert_eq(weft_json_count(weft_json_root(document)), 1);
    weft_json_destroy(document);
    close(descriptor);
    unlink(path);
    cr_assert_eq(weft_json_read(path, &document, NULL), WEFT_E_NO_INPUT);
}

Test(json, needs_say_where_what_and_what_is_wanted)
{
    struct weft_json *document = parse_json("{\"n\": 7, \"s\": \"x\", \"h\": 1.5, \"a\": []}");
    const struct weft_json_value *root = weft_json_root(document);
    const struct weft_json_value *value = NULL;
    const char *where = "plan.json: units[3]", *string = NULL;
    int64_t integer = -1;
    struct weft_error err = {0};
    cr_assert_eq(weft_json_need_integer(root, where, "n", 0, 7, &integer, &err), WEFT_OK);
    cr_assert_eq(integer, 7);
    cr_assert_eq(weft_json_need_string(root, where, "s", &string, &err), WEFT_OK);
    cr_assert_str_eq(string, "x");
    cr_assert_eq(weft_json_need(root, where, "a", WEFT_JSON_ARRAY, &value, &err), WEFT_OK);
    cr_assert_eq(weft_json_kind(value), WEFT_JSON_ARRAY);
    cr_assert_eq(err.status, WEFT_OK);
    struct {
        const struct weft_json_value *object;
        const char *name, *message;
    } cases[] = {
        {root, "m",
         "plan.json: units[3]: the member \"m\" is missing; an integer from 0 to 6 is "
         "wanted"},
        {root, "s",
         "plan.json: units[3]: the member \"s\" is a string; an integer from 0 to 6 is "
         "wanted"},
        {root, "n", "plan.json: units[3]: the member \"n\" is 7; an integer from 0 to 6 is wanted"},
        {root, "h",
         "plan.json: units[3]: the member \"h\" is 1.5; an integer from 0 to 6 is wanted"},
        {value, "n", "plan.json: units[3] is an array; an object with the member \"n\" is wanted"},
        {NULL, "n", "plan.json: units[3] is missing; an object with the member \"n\" is wanted"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        err = (struct weft_error){0};
        cr_assert_eq(
            weft_json_need_integer(cases[i].object, where, cases[i].name, 0, 6, &integer, &err),
            WEFT_E_DATA);
        cr_assert_str_eq(err.text, cases[i].message);
        cr_assert_eq(integer, 7, "outputs stay untouched on failure");
    }
    err = (struct weft_error){0};
    cr_assert_eq(weft_json_need_string(root, where, "n", &string, &err), WEFT_E_DATA);
    cr_assert_str_eq(err.text,
                     "plan.json: units[3]: the member \"n\" is a number; a string is wanted");
    err = (struct weft_error){0};
    cr_assert_eq(weft_json_need(root, where, "x", WEFT_JSON_OBJECT, &value, &err), WEFT_E_DATA);
    cr_assert_str_eq(err.text,
                     "plan.json: units[3]: the member \"x\" is missing; an object is wanted");
    weft_json_destroy(document);
}

Test(json, kinds_have_names)
{
    cr_assert_str_eq(weft_json_kind_name(WEFT_JSON_OBJECT), "object");
    cr_assert_str_eq(weft_json_kind_name(WEFT_JSON_NULL), "null");
}
