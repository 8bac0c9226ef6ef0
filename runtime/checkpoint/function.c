/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/checkpoint/function.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spec/config.h"
#include "spec/kind.h"

/* Whether a key of a layer determines its computation. `frozen` never does, and `name` only if
 * tensors are found by it (`named`). */
static bool is_of_function(const char *key, bool named)
{
    return strcmp(key, "frozen") != 0 && (named || strcmp(key, "name") != 0);
}

static void write_layer(const struct weft_json_value *layer, const char *identity, bool named,
                        struct weft_json_writer *writer)
{
    const char *tie;
    weft_json_begin_object(writer);
    const struct weft_json_value *key = weft_json_first(layer);
    for (; key != NULL; key = weft_json_next(key)) {
        if (!is_of_function(weft_json_name(key), named)) continue;
        weft_json_key(writer, weft_json_name(key));
        if (!named && strcmp(weft_json_name(key), "tie") == 0 && weft_json_string(key, &tie))
            weft_json_add_bool(writer, true); /* only one layer can be tied to */
        else
            weft_json_add_value(writer, key);
    }
    if (identity != NULL) weft_json_put_string(writer, "recipe", identity);
    weft_json_end_object(writer);
}

static void write_layers(const struct weft_model *model, bool names, struct weft_text *out)
{
    struct weft_text text;
    struct weft_json_writer writer;
    struct weft_json *document = NULL;
    weft_text_init(&text);
    weft_json_writer_init(&writer, &text, 0);
    weft_layers_encode(model, &writer);
    if (!weft_text_ok(&text) ||
        weft_json_parse(weft_text_chars(&text), text.length, "layers", &document, NULL) != WEFT_OK)
        out->failed = true;
    weft_text_finish(&text);
    if (document == NULL) return;
    weft_json_writer_init(&writer, out, 0);
    weft_json_begin_array(&writer);
    const struct weft_json_value *layer = weft_json_first(weft_json_root(document));
    for (int32_t i = 0; layer != NULL; layer = weft_json_next(layer), i++)
        write_layer(layer, model->layers[i].kind->identity, names && model->layers[i].n_tensors > 0,
                    &writer);
    weft_json_end_array(&writer);
    weft_json_destroy(document);
}

void weft_function_write(const struct weft_model *model, struct weft_text *out)
{
    write_layers(model, true, out);
}

void weft_function_write_nameless(const struct weft_model *model, struct weft_text *out)
{
    write_layers(model, false, out);
}

enum weft_status weft_function_check(const struct weft_json_value *list, const char *path,
                                     struct weft_error *err)
{
    const struct weft_json_value *layer = weft_json_first(list);
    for (int32_t i = 0; layer != NULL; layer = weft_json_next(layer), i++) {
        const char *type = NULL;
        const struct weft_json_value *key = weft_json_first(layer);
        for (; key != NULL; key = weft_json_next(key)) {
            enum weft_json_kind kind = weft_json_kind(key);
            if (kind == WEFT_JSON_ARRAY || kind == WEFT_JSON_OBJECT)
                return weft_fail(err, WEFT_E_DATA, "%s: layers[%d].%s is no key of a layer", path,
                                 i, weft_json_name(key) == NULL ? "" : weft_json_name(key));
        }
        if (!weft_json_string(weft_json_member(layer, "type"), &type))
            return weft_fail(err, WEFT_E_DATA, "%s: layers[%d] has no type", path, i);
    }
    return WEFT_OK;
}

/* Comparing */

struct comparison {
    struct weft_text *out;
    int32_t n, most;
};

/* Counts one more difference. Returns true, after a separator, if it is to be told. */
static bool is_said(struct comparison *c)
{
    if (c->n > c->most) return false;
    if (++c->n > c->most) return false;
    weft_text_add(c->out, c->n == 1 ? "" : "; ");
    return true;
}

static const char *text_of(const struct weft_json_value *layer, const char *key)
{
    const char *text = NULL;
    return weft_json_string(weft_json_member(layer, key), &text) ? text : NULL;
}

/* "h.0 (transformer_block)", or only the type. */
static void name_layer(const struct weft_json_value *layer, struct weft_text *out)
{
    const char *name = text_of(layer, "name"), *type = text_of(layer, "type");
    if (name == NULL)
        weft_text_addf(out, "a %s", type);
    else
        weft_text_addf(out, "%s (%s)", name, type);
}

static void show_value(const struct weft_json_value *value, struct weft_text *out)
{
    struct weft_json_writer writer;
    weft_json_writer_init(&writer, out, 0);
    if (value == NULL)
        weft_text_add(out, "not there");
    else
        weft_json_add_value(&writer, value);
}

static bool is_same(const struct weft_json_value *a, const struct weft_json_value *b)
{
    struct weft_text x, y;
    weft_text_init(&x);
    weft_text_init(&y);
    show_value(a, &x);
    show_value(b, &y);
    bool same = weft_text_ok(&x) && weft_text_ok(&y) &&
                strcmp(weft_text_chars(&x), weft_text_chars(&y)) == 0;
    weft_text_finish(&y);
    weft_text_finish(&x);
    return same;
}

static void compare_key(struct comparison *c, int32_t at, const struct weft_json_value *now,
                        const struct weft_json_value *before, const char *key)
{
    const struct weft_json_value *a = weft_json_member(now, key);
    const struct weft_json_value *b = weft_json_member(before, key);
    const char *name = text_of(now, "name");
    if (is_same(a, b) || !is_said(c)) return;
    if (name == NULL)
        weft_text_addf(c->out, "layer %d, a %s: %s is ", at, text_of(now, "type"), key);
    else
        weft_text_addf(c->out, "%s: %s is ", name, key);
    show_value(a, c->out);
    weft_text_add(c->out, ", and was ");
    show_value(b, c->out);
}

/* Compares the keys of two layers at one place. */
static void compare_keys(struct comparison *c, int32_t at, const struct weft_json_value *now,
                         const struct weft_json_value *before)
{
    const struct weft_json_value *key = weft_json_first(now);
    for (; key != NULL; key = weft_json_next(key))
        compare_key(c, at, now, before, weft_json_name(key));
    for (key = weft_json_first(before); key != NULL; key = weft_json_next(key)) {
        if (weft_json_member(now, weft_json_name(key)) == NULL)
            compare_key(c, at, now, before, weft_json_name(key));
    }
}

static bool is_same_text(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static bool is_same_layer(const struct weft_json_value *a, const struct weft_json_value *b)
{
    return is_same_text(text_of(a, "name"), text_of(b, "name")) &&
           is_same_text(text_of(a, "type"), text_of(b, "type"));
}

static void compare_layer(struct comparison *c, int32_t at, const struct weft_json_value *now,
                          const struct weft_json_value *before)
{
    if (now != NULL && before != NULL && is_same_layer(now, before)) {
        compare_keys(c, at, now, before);
        return;
    }
    if (!is_said(c)) return;
    weft_text_addf(c->out, "layer %d", at);
    weft_text_add(c->out, now != NULL && before != NULL ? " is " : ", ");
    name_layer(now != NULL ? now : before, c->out);
    weft_text_add(c->out, now == NULL      ? ", is missing"
                          : before == NULL ? ", was not there"
                                           : ", and was ");
    if (now != NULL && before != NULL) name_layer(before, c->out);
}

/* The layers of a list, for access from both ends. */
struct layers {
    struct weft_json *document;
    const struct weft_json_value **at;
    int32_t n;
};

static bool open_layers(const char *text, struct layers *out)
{
    *out = (struct layers){0};
    if (weft_json_parse(text, strlen(text), "layers", &out->document, NULL) != WEFT_OK)
        return false;
    const struct weft_json_value *root = weft_json_root(out->document);
    out->at = calloc(weft_json_count(root) + 1, sizeof *out->at);
    if (out->at == NULL) return false;
    for (const struct weft_json_value *v = weft_json_first(root); v != NULL; v = weft_json_next(v))
        out->at[out->n++] = v;
    return true;
}

static void close_layers(struct layers *layers)
{
    free(layers->at);
    weft_json_destroy(layers->document);
}

/* Equal layers at both ends are skipped. So an inserted layer is one difference, however many
 * layers follow it. */
static void compare_layers(struct comparison *c, const struct layers *now,
                           const struct layers *before)
{
    int32_t first = 0, end = now->n, end_before = before->n;
    while (first < end && first < end_before && is_same(now->at[first], before->at[first]))
        first++;
    while (end > first && end_before > first &&
           is_same(now->at[end - 1], before->at[end_before - 1]))
        end--, end_before--;
    for (int32_t i = first; i < end || i < end_before; i++)
        compare_layer(c, i, i < end ? now->at[i] : NULL, i < end_before ? before->at[i] : NULL);
}

int32_t weft_function_compare(const char *now, const char *before, int32_t most,
                              struct weft_text *out)
{
    struct comparison c = {.out = out, .most = most};
    struct layers a, b = {0};
    if (open_layers(now, &a) && open_layers(before, &b))
        compare_layers(&c, &a, &b);
    else
        out->failed = true;
    close_layers(&b);
    close_layers(&a);
    return c.n;
}
