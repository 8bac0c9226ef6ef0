/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/json/json.h"
#include "base/rng.h"

/* A text and its writer; finished by expect_written. */
static struct weft_text text;
static struct weft_json_writer writer;

static void start(int indent)
{
    weft_text_init(&text);
    weft_json_writer_init(&writer, &text, indent);
}

static void expect_written(const char *wanted)
{
    struct weft_json *document;
    struct weft_error err = {0};
    cr_assert(weft_text_ok(&text));
    cr_assert_str_eq(weft_text_chars(&text), wanted);
    cr_assert_eq(weft_json_parse(text.data, text.length, "written", &document, &err), WEFT_OK, "%s",
                 err.text);
    weft_json_destroy(document);
    weft_text_finish(&text);
}

static void write_sample(void)
{
    weft_json_begin_object(&writer);
    weft_json_put_string(&writer, "name", "w");
    weft_json_key(&writer, "sizes");
    weft_json_begin_array(&writer);
    weft_json_add_integer(&writer, 1);
    weft_json_add_integer(&writer, -2);
    weft_json_end_array(&writer);
    weft_json_key(&writer, "units");
    weft_json_begin_array(&writer);
    for (int i = 0; i < 2; i++) {
        weft_json_begin_object(&writer);
        if (i == 1) weft_json_flat(&writer);
        weft_json_put_bool(&writer, "on", i == 0);
        weft_json_put_number(&writer, "x", 0.5);
        weft_json_key(&writer, "e");
        weft_json_begin_array(&writer);
        weft_json_begin_object(&writer);
        weft_json_end_object(&writer);
        weft_json_end_array(&writer);
        weft_json_end_object(&writer);
    }
    weft_json_end_array(&writer);
    weft_json_key(&writer, "none");
    weft_json_begin_array(&writer);
    weft_json_end_array(&writer);
    weft_json_put_integer(&writer, "big", INT64_MIN);
    weft_json_end_object(&writer);
}

Test(json_write, indents_containers_and_keeps_scalars_on_a_line)
{
    start(2);
    write_sample();
    expect_written("{\n"
                   "  \"name\": \"w\",\n"
                   "  \"sizes\": [1, -2],\n"
                   "  \"units\": [\n"
                   "    {\n"
                   "      \"on\": true,\n"
                   "      \"x\": 0.5,\n"
                   "      \"e\": [\n"
                   "        {}\n"
                   "      ]\n"
                   "    },\n"
                   "    {\"on\": false, \"x\": 0.5, \"e\": [{}]}\n"
                   "  ],\n"
                   "  \"none\": [],\n"
                   "  \"big\": -9223372036854775808\n"
                   "}");
}

Test(json_write, indent_0_is_one_line)
{
    start(0);
    write_sample();
    expect_written(
        "{\"name\": \"w\", \"sizes\": [1, -2], \"units\": [{\"on\": true, \"x\": 0.5, \"e\": "
        "[{}]}, {\"on\": false, \"x\": 0.5, \"e\": [{}]}], \"none\": [], \"big\": "
        "-9223372036854775808}");
}

Test(json_write, strings_are_escaped)
{
    start(0);
    weft_json_begin_array(&writer);
    weft_json_add_string(&writer, "\"\\/\b\f\n\r\t\x01\x1f\x7f");
    weft_json_add_string(&writer, "\xC3\xA9\xF0\x9F\x98\x80");
    weft_json_add_string(&writer, "a\xFF\xC3(\xED\xA0\x80");
    weft_json_add_string(&writer, NULL);
    weft_json_end_array(&writer);
    expect_written(
        "[\"\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u001f\\u007f\", \"\xC3\xA9\xF0\x9F\x98\x80\", "
        "\"a\xEF\xBF\xBD\xEF\xBF\xBD(\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\", null]");
}

Test(json_write, keys_are_escaped)
{
    start(0);
    weft_json_begin_object(&writer);
    weft_json_put_integer(&writer, "a\"\n", 1);
    weft_json_end_object(&writer);
    expect_written("{\"a\\\"\\n\": 1}");
}

Test(json_write, numbers_are_the_shortest_that_read_back)
{
    static const struct {
        double number;
        const char *text;
    } cases[] = {
        {0, "0"},
        {-0.0, "-0"},
        {3, "3"},
        {0.1, "0.1"},
        {1.0 / 3, "0.3333333333333333"},
        {0.1 + 0.2, "0.30000000000000004"},
        {1e22, "1e+22"},
        {-2.5e-7, "-2.5e-07"},
        {DBL_MAX, "1.7976931348623157e+308"},
        {5e-324, "4.94065645841247e-324"},
        {INFINITY, "null"},
        {-INFINITY, "null"},
        {NAN, "null"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        start(0);
        weft_json_add_number(&writer, cases[i].number);
        expect_written(cases[i].text);
    }
}

Test(json_write, any_finite_double_goes_there_and_back)
{
    for (uint64_t i = 0; i < 20000; i++) {
        uint64_t bits = weft_rng_u64(1, 2, i);
        double number, back = 0;
        memcpy(&number, &bits, sizeof number);
        if (!isfinite(number)) continue;
        struct weft_json *document;
        start(0);
        weft_json_add_number(&writer, number);
        cr_assert_eq(weft_json_parse(text.data, text.length, "t", &document, NULL), WEFT_OK);
        cr_assert(weft_json_number(weft_json_root(document), &back));
        cr_assert_eq(memcmp(&back, &number, sizeof back), 0, "%s", text.data);
        weft_json_destroy(document);
        weft_text_finish(&text);
    }
}

Test(json_write, a_parsed_value_is_copied)
{
    static const char source[] = "{\"a\": [1, -0, 2.5, 1e+300, \"\\u00e9\\n\", true, null], "
                                 "\"b\": {\"c\": {}, \"d\": 9007199254740991}}";
    struct weft_json *document;
    cr_assert_eq(weft_json_parse(source, strlen(source), "t", &document, NULL), WEFT_OK);
    start(0);
    weft_json_add_value(&writer, weft_json_root(document));
    weft_json_destroy(document);
    expect_written(
        "{\"a\": [1, -0, 2.5, 1e+300, \"\xC3\xA9\\n\", true, null], \"b\": {\"c\": {}, \"d\": "
        "9007199254740991}}");
    start(0);
    weft_json_add_value(&writer, NULL);
    expect_written("null");
}

Test(json_write, deepest_readable_document_can_be_written)
{
    char source[201] = {0};
    struct weft_json *document;
    memset(source, '[', 100);
    memset(source + 100, ']', 100);
    cr_assert_eq(weft_json_parse(source, 200, "t", &document, NULL), WEFT_OK);
    start(0);
    weft_json_add_value(&writer, weft_json_root(document));
    weft_json_destroy(document);
    expect_written(source);
}

Test(json_write, misuse_fails_the_text)
{
    start(0);
    for (int i = 0; i < WEFT_JSON_WRITER_LEVELS; i++)
        weft_json_begin_array(&writer);
    cr_assert_not(weft_text_ok(&text));
    weft_text_finish(&text);
    start(0);
    weft_json_end_array(&writer);
    cr_assert_not(weft_text_ok(&text));
    weft_text_finish(&text);
}
