/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json/json_compare.h"

#include <criterion/criterion.h>
#include <string.h>

static struct weft_json *parse(const char *text)
{
    struct weft_json *document = NULL;
    struct weft_error err = {0};
    cr_assert_eq(weft_json_parse(text, strlen(text), "x", &document, &err), WEFT_OK, "%s",
                 err.text);
    return document;
}

static void differ(const char *now, const char *before, const struct weft_json_comparison *how,
                   int32_t n, const char *says)
{
    struct weft_json *a = parse(now), *b = parse(before);
    struct weft_text out;
    weft_text_init(&out);
    cr_assert_eq(weft_json_compare(weft_json_root(a), weft_json_root(b), how, &out), n);
    cr_assert_str_eq(weft_text_chars(&out), says);
    cr_assert_eq(weft_json_compare(weft_json_root(a), weft_json_root(b), how, NULL), n);
    weft_text_finish(&out);
    weft_json_destroy(b);
    weft_json_destroy(a);
}

static bool is_not_inner(const char *path)
{
    return strncmp(path, "o.i.", 4) != 0;
}

Test(json_compare, tells_each_value_with_its_path)
{
    static const struct weft_json_comparison all = {0}, forgetful = {.forgets = true},
                                             outer = {.counts = is_not_inner};
    static const char before[] =
        "{\"a\":1,\"o\":{\"i\":{\"x\":\"1GiB\"},\"l\":[1,2]},\"gone\":true}";
    static const char now[] = "{\"new\":null,\"a\":1,\"o\":{\"i\":{\"x\":\"2GiB\"},\"l\":[1,3]}}";
    differ(before, before, &all, 0, "");
    differ(now, before, &all, 4,
           "new: null, was not given\no.i.x: 2GiB, was 1GiB\no.l: [1, 3], was [1, 2]\n"
           "gone: not given, was true");
    differ(now, before, &forgetful, 3,
           "new: null, was not given\no.i.x: 2GiB, was 1GiB\no.l: [1, 3], was [1, 2]");
    differ(now, before, &outer, 3,
           "new: null, was not given\no.l: [1, 3], was [1, 2]\ngone: not given, was true");
    static const struct weft_json_comparison inside = {.above = "o", .counts = is_not_inner};
    differ("{\"i\":{\"x\":1},\"j\":1}", "{\"i\":{\"x\":2},\"j\":2}", &inside, 1, "o.j: 1, was 2");
    differ("{\"a\":{\"b\":1}}", "{\"a\":\"not given\"}", &all, 1, "a: {\"b\": 1}, was not given");
    differ("{}", "{\"a\":\"not given\"}", &all, 1, "a: not given, was not given");
}
