/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json/json.h"
#include "spec/config_reference.h"
#include "tests/spec/config_text.h"

Test(config_schema, there_are_three)
{
    static const char *const kinds[] = {"config", "model", "cluster"};
    for (size_t i = 0; i < 3; i++) {
        struct weft_text text;
        struct weft_error error = {0};
        struct weft_json *document = NULL;
        const char *string;
        bool closed = true;
        weft_text_init(&text);
        cr_assert(weft_config_schema(kinds[i], &text, &error) == WEFT_OK, "%s", error.text);
        cr_assert(weft_json_parse(weft_text_chars(&text), text.length, "s", &document, &error) ==
                      WEFT_OK,
                  "%s", error.text);
        const struct weft_json_value *root = weft_json_root(document);
        cr_assert(weft_json_string(weft_json_member(root, "$schema"), &string));
        cr_assert_str_eq(string, "http://json-schema.org/draft-07/schema#");
        cr_assert(weft_json_string(weft_json_member(root, "type"), &string));
        cr_assert_str_eq(string, "object");
        cr_assert(weft_json_bool(weft_json_member(root, "additionalProperties"), &closed));
        cr_assert(!closed);
        weft_json_destroy(document);
        weft_text_finish(&text);
    }
}

Test(config_schema, names_those_that_there_are)
{
    struct weft_text text;
    struct weft_error error = {0};
    weft_text_init(&text);
    cr_assert_eq(weft_config_schema("plan", &text, &error), WEFT_E_USAGE);
    cr_assert_str_eq(error.text,
                     "there is no schema of \"plan\"; there are: config, model, cluster");
    cr_assert_eq(text.length, 0);
}
