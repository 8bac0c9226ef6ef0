/* SPDX-License-Identifier: Apache-2.0 */
/* Values of config.json next to the usual ones. */
#include "spec/hub/values.h"

#include <criterion/criterion.h>
#include <string.h>

#include "spec/hub/families.h"

static bool is_usual(const char *value, const char *usual)
{
    struct weft_json *document = NULL;
    struct weft_error err = {0};
    cr_assert_eq(weft_json_parse(value, strlen(value), "value", &document, &err), WEFT_OK, "%s",
                 err.text);
    bool is = weft_hub_value_is(weft_json_root(document), usual, 64);
    weft_json_destroy(document);
    return is;
}

Test(hub_values, are_compared_as_json)
{
    static const struct {
        const char *value, *usual;
        bool is;
    } cases[] = {
        {"null", "null", true},
        {"null", "false", false},
        {"false", "false|null", true},
        {"true", "false|null", false},
        {"0.00001", "1e-5", true},
        {"1", "1|null", true},
        {"1.0", "1", true},
        {"10", "1", false},
        {"\"1\"", "1", false},
        {"\"silu\"", "\"silu\"|\"swish\"", true},
        {"\"swis\"", "\"swish\"", false},
        {"\"\"", "\"silu\"", false},
        {"64", WEFT_HUB_HEAD_DIM, true},
        {"65", WEFT_HUB_HEAD_DIM "|null", false},
        {"[]", "null", true},
        {"{}", "null", true},
        {"[1, 1]", "1", true},
        {"[1, 0]", "1", false},
        {"{\"a\": [null]}", "null", true},
        {"{\"a\": [0]}", "null", false},
        {"\"null\"", "null", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        cr_expect_eq(is_usual(cases[i].value, cases[i].usual), cases[i].is, "%s as %s",
                     cases[i].value, cases[i].usual);
}

Test(hub_values, are_shown_on_one_line)
{
    struct weft_json *document = NULL;
    struct weft_error err = {0};
    struct weft_text text;
    /* A cut falls between characters. */
    const char *value =
        "[\"\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9"
        "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9"
        "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9"
        "\xc3\xa9\", 1]";
    cr_assert_eq(weft_json_parse(value, strlen(value), "value", &document, &err), WEFT_OK);
    weft_text_init(&text);
    weft_hub_value_show(weft_json_root(document), &text);
    cr_expect_str_eq(weft_text_chars(&text) + 60, "...");
    cr_expect_eq((unsigned char)weft_text_chars(&text)[58], 0xc3);
    weft_json_destroy(document);
    weft_text_finish(&text);
    weft_text_init(&text);
    weft_hub_usual_show("\"silu\"|" WEFT_HUB_HEAD_DIM "|null", 64, &text);
    cr_expect_str_eq(weft_text_chars(&text), "\"silu\" or 64 or null");
    weft_text_finish(&text);
}
