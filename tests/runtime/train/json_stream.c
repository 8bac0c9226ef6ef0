/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/json_stream.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

/* The form of a file in pieces of `step` bytes. */
static enum weft_json_form form_in_steps(const char *bytes, size_t n, size_t step)
{
    struct weft_json_stream stream;
    bool more = true;
    weft_json_stream_init(&stream);
    for (size_t at = 0; at < n && more; at += step)
        more = weft_json_stream_add(&stream, (const unsigned char *)bytes + at,
                                    n - at < step ? n - at : step);
    return weft_json_stream_form(&stream);
}

static void has_form(const char *text, enum weft_json_form form)
{
    for (size_t step = 1; step <= 64; step *= 4) {
        enum weft_json_form found = form_in_steps(text, strlen(text), step);
        cr_assert_eq(found, form, "%d, not %d in steps of %zu: %s", found, form, step, text);
    }
}

Test(json_stream, json_is_found)
{
    static const struct {
        const char *text;
        enum weft_json_form form;
    } cases[] = {
        {"{\"text\": \"a\"}\n{\"text\": \"b\"}\n", WEFT_JSON_FORM_LINES},
        {"{\"text\": \"a\"}\r\n{\"text\": \"b\"}\r\n", WEFT_JSON_FORM_LINES},
        {"{\"text\": \"a\"}", WEFT_JSON_FORM_LINES},
        {"{\"text\": \"a\"}\n{\"te", WEFT_JSON_FORM_LINES},
        {"{\"text\": \"a \\\"b\\\" \\u00e9 {}[]\"}\n", WEFT_JSON_FORM_LINES},
        {"{\"text\": \"a", WEFT_JSON_FORM_LINES},
        {"{\"text\": \"a\"}{\"text\": \"b\"}", WEFT_JSON_FORM_LINES},
        {"{\"text\": \"a\"},\n{\"text\": \"b\"}", WEFT_JSON_FORM_LINES},
        {"\x1E{\"text\": \"a\"}\n\x1E{\"text\": \"b\"}\n", WEFT_JSON_FORM_LINES},
        {"{\"score\": NaN, \"of\": -Infinity, \"n\": -1.5e+3, \"x\": null}\n",
         WEFT_JSON_FORM_LINES},
        {"{\"text\": \"it\\'s\"}\n", WEFT_JSON_FORM_LINES},
        {"\xEF\xBB\xBF{\"text\": \"a\"}\n", WEFT_JSON_FORM_LINES},
        {"\n{\"text\": \"a\"}\n", WEFT_JSON_FORM_LINES},
        {" \t\r\n\n  {\"text\": \"a\"}\n", WEFT_JSON_FORM_LINES},
        {"\xEF\xBB\xBF\n{\"text\": \"a\"}\n", WEFT_JSON_FORM_LINES},
        {"{\"text\": {\"a\": [1, {}]}}\n\n\n{\"text\": []}\n", WEFT_JSON_FORM_LINES},
        /* Two objects, then a line that is damaged. */
        {"{\"text\": \"a\"}\n{\"text\": \"b\"}\n{\"text\": \"c\n", WEFT_JSON_FORM_LINES},
        {"{\"text\": \"a\"}\n{\"text\": b\n", WEFT_JSON_FORM_LINES},
        /* A file that was cut within a line. */
        {"xt\": \"a\"}\n{\"text\": \"b\"}\n{\"text\": \"c\"}\n", WEFT_JSON_FORM_LINES},
        {"{\n  \"text\": \"a\",\n  \"n\": 1\n}\n", WEFT_JSON_FORM_DOCUMENT},
        {"{\n  \"text\": \"a\"\n}\n{\n  \"text\": \"b\"\n}\n", WEFT_JSON_FORM_DOCUMENT},
        {"{\n  \"text\": \"a\",\n}\n", WEFT_JSON_FORM_DOCUMENT},
        {"[{\"text\": \"a\"}, {\"text\": \"b\"}]", WEFT_JSON_FORM_OBJECTS},
        {"[\n  {\n    \"text\": \"a\"\n  }\n]\n", WEFT_JSON_FORM_OBJECTS},
        {"[{\"text\": \"a\"}, {\"te", WEFT_JSON_FORM_OBJECTS},
        {"[\"a\", \"b\",]", WEFT_JSON_FORM_ARRAY},
        {"[\"a\"]\n[\"b\"]\n", WEFT_JSON_FORM_ARRAY},
        {"[[1, 2], [3]]", WEFT_JSON_FORM_ARRAY},
        {"\"one\"\n\"two \\n lines\"\n\"three\"\n", WEFT_JSON_FORM_STRINGS},
        {"\"one\",\n\"two\",\n\"three\"\n", WEFT_JSON_FORM_STRINGS},
        /* Comments, and lines that are damaged. */
        {"# exported from a table\n# on a Monday\n{\"a\": 1}\n", WEFT_JSON_FORM_LINES},
        {"// exported from a table\n[{\"a\": 1},\n{\"a\": 2}]\n", WEFT_JSON_FORM_OBJECTS},
        {"{\"text\": \"a\"}\nno object\n{\"text\": \"b\"}\n", WEFT_JSON_FORM_LINES},
        {"{\"text\": \"a\"}\n{\"text\": \"b\n{\"text\": \"c\"}\n", WEFT_JSON_FORM_LINES},
        {"{\"text\": \"a\"}\n{text: \"b\"}\n{\"text\": \"c\"}\n", WEFT_JSON_FORM_LINES},
        {"[\n{\"text\": \"a\"},\noops\n{\"text\": \"b\"},\n{\"text\": \"c\"}\n]\n",
         WEFT_JSON_FORM_OBJECTS},
        {"{'text': 'a', 'n': None, 'it': \"isn't\", 'at': (1, 2)}\n{'text': 'b'}\n",
         WEFT_JSON_FORM_PYTHON},
        {"[{'text': 'a'}, {'text': True}]", WEFT_JSON_FORM_PYTHON},
        {"{'text': 'a', 'on': datetime.date(2024, 1, 2)}\n{'text': 'b'}\n", WEFT_JSON_FORM_PYTHON},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        has_form(cases[i].text, cases[i].form);
}

Test(json_stream, texts_that_begin_with_brackets_are_texts)
{
    static const char *const texts[] = {
        "",
        " \n\n",
        "{}",
        "[]\n",
        "{\"a\": 1}\nand a text\n",
        "{not json}\n{}\n",
        "{ \"quoted\" words }\n",
        "{{ template }}\n",
        "{\n    int x = 1;\n}\n",
        "{%- raw -%}\n",
        "[Enter Hamlet]\nHAMLET. To be\n",
        "[1] A footnote\n[2] Another\n",
        "[1][2] cited\n",
        "[1]\nThe first\n[2]\nThe second\n",
        "[1]: http://example.org\n",
        "[link](https://example.org)\n",
        "[[wiki]] page\n",
        "[ ] to do\n[x] done\n",
        "[2024-01-01 10:00:00] started\n",
        "[1, 2, 3].map(f)\n",
        "[\"a\", \"b\"].forEach(f);\n",
        "[\"Call me Ishmael.\n",
        "[section]\nkey = 1\n",
        "[true, false] are the values\n",
        "\xEF\xBC\x81{\"a\": 1}\n",
        "\"A quoted line\"\n",
        "\"Come in,\" she said.\n\"No,\" he said.\n\"Do!\"\n",
        "\"a\",\"b\"\n\"c\",\"d\"\n",
        "\"\"\"A docstring.\"\"\"\n",
        "    \"a\",\n    \"b\",\n    \"c\",\n",
        "'Tis a tale\n'twas told\n",
        "{\"a\": 1}\n{\"a\": 2}\nare two objects, and this is a text\n",
        "{\"a\": 1} and a text\n",
        "(1, 2)\n(3, 4)\n",
        "# A heading\nAnd a text {\"a\": 1}\n",
        "1\n2\n3\n",
        "Title\n{\"a\": 1}\n",
        "Title\n{\"a\": 1}\n{\"a\": 2}\nThe end\n",
        "Title\n[1]\n[2]\n[3]\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        has_form(texts[i], WEFT_JSON_FORM_NONE);
    }
}

static char *repeat_text(const char *before, char filling, size_t n, const char *behind)
{
    size_t first = strlen(before), last = strlen(behind);
    char *text = malloc(first + n + last + 1);
    cr_assert_not_null(text);
    memcpy(text, before, first);
    memset(text + first, filling, n);
    memcpy(text + first + n, behind, last + 1);
    return text;
}

Test(json_stream, what_is_long_is_decided_too)
{
    enum { LONG = 3 << 20, MORE = WEFT_JSON_STREAM_BYTES + 70000 };
    const struct {
        const char *before;
        char filling;
        size_t n;
        const char *behind;
        enum weft_json_form form;
    } cases[] = {
        {"{\"text\": \"", 'x', LONG, "\"}\n{\"text\": \"b\"}\n", WEFT_JSON_FORM_LINES},
        {"{\"text\": \"", 'x', LONG, "\nno more\n", WEFT_JSON_FORM_LINES},
        {"[\"", 'x', LONG, "\"]\n", WEFT_JSON_FORM_ARRAY},
        {"[\"", 'x', MORE, "\"]\n", WEFT_JSON_FORM_ARRAY},
        {"[{\"text\": \"", 'x', LONG, "\"}]\n", WEFT_JSON_FORM_OBJECTS},
        {"", '\n', LONG, "{\"text\": \"b\"}\n", WEFT_JSON_FORM_LINES},
        {"", ' ', LONG, "[{\"text\": \"b\"}]\n", WEFT_JSON_FORM_OBJECTS},
        {"", '[', 70000, "", WEFT_JSON_FORM_ARRAY},
        {"xt\": \"", 'x', 100000, "\"}\n{\"text\": 1}\n{\"text\": 2}\n", WEFT_JSON_FORM_LINES},
        {"", '\n', MORE, "and a text\n", WEFT_JSON_FORM_NONE},
        {"[\"", 'x', LONG, "\nwhich goes on\n", WEFT_JSON_FORM_NONE},
        {"[\"", 'x', 70000, "", WEFT_JSON_FORM_NONE},
        {"[\"a\", \"", 'x', 70000, "\nand so on\n", WEFT_JSON_FORM_NONE},
        {"{\"a\": 1}\n{\"a\": 2}\nA text", 'x', 70000, "", WEFT_JSON_FORM_NONE},
        {"", 'x', MORE, "\n{\"text\": 1}\n{\"text\": 2}\n", WEFT_JSON_FORM_NONE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text = repeat_text(cases[i].before, cases[i].filling, cases[i].n, cases[i].behind);
        enum weft_json_form form = form_in_steps(text, strlen(text), 65536);
        cr_assert_eq(form, cases[i].form, "case %zu: %d, not %d", i, form, cases[i].form);
        free(text);
    }
}

Test(json_stream, a_text_is_not_read_far)
{
    struct weft_json_stream stream;
    char *text = repeat_text("A line\nAnother", 'x', 100000, "\n");
    weft_json_stream_init(&stream);
    cr_assert_not(weft_json_stream_add(&stream, (const unsigned char *)text, strlen(text)));
    cr_assert_leq(stream.bytes, WEFT_JSON_STREAM_ENOUGH + 10);
    free(text);
}
