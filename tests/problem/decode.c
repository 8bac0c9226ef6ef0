#include "problem/decode.h"

#include <criterion/criterion.h>
#include <string.h>

static enum weft_status known(const char *text, struct weft_error *err)
{
    static const char *const names[] = {"one", "two", NULL};
    struct weft_json *document = NULL;
    *err = (struct weft_error){0};
    cr_assert_eq(weft_json_parse(text, strlen(text), "text", &document, err), WEFT_OK);
    enum weft_status status = weft_decode_known(weft_json_root(document), "here", names, err);
    weft_json_destroy(document);
    return status;
}

Test(decode, known_members)
{
    struct weft_error err;
    cr_assert_eq(known("{}", &err), WEFT_OK);
    cr_assert_eq(known("{\"two\": 1, \"$comment\": \"x\", \"$schema\": \"y\"}", &err), WEFT_OK);
    cr_assert_eq(known("[1, 2]", &err), WEFT_OK, "what is no object has no members");
}

Test(decode, unknown_members_are_named)
{
    struct weft_error err;
    cr_assert_eq(known("{\"one\": 1, \"three\": 2, \"four\": 2}", &err), WEFT_E_DATA);
    cr_assert_str_eq(err.text, "here: there is no member \"three\" in this format");
    cr_assert_eq(known("{\"\": 1}", &err), WEFT_E_DATA);
}

Test(decode, text_that_a_terminal_would_obey_is_refused)
{
    const char *const texts[] = {"{\"by\": \"a\\u001b[2J\"}", "{\"by\": \"a\\nb\"}",
                                 "{\"by\": \"\\u007f\"}"};
    const char *out = NULL;
    struct weft_pool pool = {0};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct weft_json *json;
        struct weft_error err = {0};
        cr_assert_eq(weft_json_parse(texts[i], strlen(texts[i]), "test", &json, &err), WEFT_OK);
        cr_assert_eq(weft_decode_text(weft_json_root(json), "test", "by", &pool, &out, &err),
                     WEFT_E_DATA);
        cr_assert_not_null(strstr(err.text, "control character"));
        weft_json_destroy(json);
    }
    struct weft_json *json;
    const char *plain = "{\"by\": \"relaxation, ü\"}";
    cr_assert_eq(weft_json_parse(plain, strlen(plain), "test", &json, NULL), WEFT_OK);
    cr_assert_eq(weft_decode_text(weft_json_root(json), "test", "by", &pool, &out, NULL), WEFT_OK);
    cr_assert_str_eq(out, "relaxation, ü");
    weft_json_destroy(json);
    weft_pool_finish(&pool);
}
