/* SPDX-License-Identifier: Apache-2.0 */
#include "spec/hub/values.h"

#include <stdlib.h>
#include <string.h>

#include "spec/hub/families.h"

/* One of the values of `usual`, which are separated by '|'. */
struct usual_value {
    const char *at;
    size_t length;
};

static bool next_usual(const char **rest, struct usual_value *out)
{
    if (**rest == '\0') return false;
    *out = (struct usual_value){*rest, strcspn(*rest, "|")};
    *rest += out->length + ((*rest)[out->length] == '|');
    return true;
}

static bool is_word(const struct usual_value *usual, const char *word)
{
    return strlen(word) == usual->length && memcmp(usual->at, word, usual->length) == 0;
}

static bool equals_usual(const struct weft_json_value *value, const struct usual_value *usual,
                         int64_t head_dim)
{
    const char *string;
    double number;
    bool flag;
    if (weft_json_kind(value) == WEFT_JSON_NULL) return is_word(usual, "null");
    if (weft_json_bool(value, &flag)) return is_word(usual, flag ? "true" : "false");
    if (weft_json_string(value, &string))
        return usual->at[0] == '"' && strlen(string) + 2 == usual->length &&
               memcmp(usual->at + 1, string, usual->length - 2) == 0;
    if (!weft_json_number(value, &number)) return false;
    if (is_word(usual, WEFT_HUB_HEAD_DIM)) return number == (double)head_dim;
    char *end;
    const double wanted = strtod(usual->at, &end);
    return end == usual->at + usual->length && number == wanted;
}

bool weft_hub_value_is(const struct weft_json_value *value, const char *usual, int64_t head_dim)
{
    struct usual_value one;
    if (weft_json_kind(value) == WEFT_JSON_ARRAY || weft_json_kind(value) == WEFT_JSON_OBJECT) {
        const struct weft_json_value *child = weft_json_first(value);
        while (child != NULL && weft_hub_value_is(child, usual, head_dim))
            child = weft_json_next(child);
        return child == NULL;
    }
    while (next_usual(&usual, &one))
        if (equals_usual(value, &one, head_dim)) return true;
    return false;
}

void weft_hub_value_show(const struct weft_json_value *value, struct weft_text *out)
{
    enum { MOST_BYTES = 60 };
    struct weft_text text;
    struct weft_json_writer writer;
    weft_text_init(&text);
    weft_json_writer_init(&writer, &text, 0);
    weft_json_add_value(&writer, value);
    const char *chars = weft_text_chars(&text);
    size_t length = text.length < MOST_BYTES ? text.length : MOST_BYTES;
    while (length > 0 && length < text.length && (chars[length] & 0xC0) == 0x80)
        length--; /* not within a character */
    weft_text_append(out, chars, length);
    if (length < text.length) weft_text_add(out, "...");
    if (!weft_text_ok(&text)) out->failed = true;
    weft_text_finish(&text);
}

void weft_hub_usual_show(const char *usual, int64_t head_dim, struct weft_text *out)
{
    struct usual_value one;
    for (const char *separator = ""; next_usual(&usual, &one); separator = " or ") {
        weft_text_add(out, separator);
        if (is_word(&one, WEFT_HUB_HEAD_DIM))
            weft_text_addf(out, "%lld", (long long)head_dim);
        else
            weft_text_append(out, one.at, one.length);
    }
}
