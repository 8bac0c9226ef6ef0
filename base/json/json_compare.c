/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json/json_compare.h"

#include <stdio.h>
#include <string.h>

enum { PATH_BYTES = 256, SHOWN_BYTES = 200 };

struct comparison {
    const struct weft_json_comparison *how;
    struct weft_text *out; /* or NULL */
    int32_t n;
};

/* Strings lose their quotes: "24GiB" is a number for people. */
static void show_value(const struct weft_json_value *value, struct weft_text *out)
{
    const char *string;
    struct weft_json_writer writer;
    if (value == NULL) {
        weft_text_add(out, "not given");
    } else if (weft_json_string(value, &string)) {
        weft_text_add(out, string);
    } else {
        weft_json_writer_init(&writer, out, 0);
        weft_json_add_value(&writer, value);
    }
}

static bool is_kind(const struct weft_json_value *value, enum weft_json_kind kind)
{
    return value != NULL && weft_json_kind(value) == kind;
}

static void compare_value(struct comparison *c, const char *path, const struct weft_json_value *now,
                          const struct weft_json_value *before)
{
    struct weft_text a, b;
    weft_text_init(&a);
    weft_text_init(&b);
    show_value(now, &a);
    show_value(before, &b);
    bool same = weft_text_ok(&a) && weft_text_ok(&b) && (now == NULL) == (before == NULL) &&
                strcmp(weft_text_chars(&a), weft_text_chars(&b)) == 0;
    c->n += !same;
    if (!same && c->out != NULL)
        weft_text_addf(c->out, "%s%s: %.*s, was %.*s", c->out->length > 0 ? "\n" : "", path,
                       SHOWN_BYTES, weft_text_chars(&a), SHOWN_BYTES, weft_text_chars(&b));
    weft_text_finish(&b);
    weft_text_finish(&a);
}

static void compare_objects(struct comparison *c, const char *path,
                            const struct weft_json_value *now,
                            const struct weft_json_value *before);

static void compare_members(struct comparison *c, const char *above, const char *name,
                            const struct weft_json_value *now, const struct weft_json_value *before)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s%s%s", above, above[0] == '\0' ? "" : ".", name);
    if (is_kind(now, WEFT_JSON_OBJECT) && is_kind(before, WEFT_JSON_OBJECT))
        compare_objects(c, path, now, before);
    else if (c->how->counts == NULL || c->how->counts(path))
        compare_value(c, path, now, before);
}

static void compare_objects(struct comparison *c, const char *path,
                            const struct weft_json_value *now, const struct weft_json_value *before)
{
    const struct weft_json_value *at = weft_json_first(now);
    for (; at != NULL; at = weft_json_next(at))
        compare_members(c, path, weft_json_name(at), at,
                        weft_json_member(before, weft_json_name(at)));
    for (at = weft_json_first(before); at != NULL && !c->how->forgets; at = weft_json_next(at)) {
        if (weft_json_member(now, weft_json_name(at)) == NULL)
            compare_members(c, path, weft_json_name(at), NULL, at);
    }
}

int32_t weft_json_compare(const struct weft_json_value *now, const struct weft_json_value *before,
                          const struct weft_json_comparison *how, struct weft_text *out)
{
    struct comparison c = {.how = how, .out = out};
    compare_objects(&c, how->above == NULL ? "" : how->above, now, before);
    return c.n;
}
