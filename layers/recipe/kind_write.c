/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layers/recipe/kind_json.h"

/* Writes an attribute as an integer or number if it is one, otherwise as a text. */
static void put_text(struct weft_json_writer *writer, const char *name, const char *text)
{
    struct weft_json *document = NULL;
    weft_json_key(writer, name);
    if (weft_json_parse(text, strlen(text), "value", &document, NULL) == WEFT_OK &&
        weft_json_kind(weft_json_root(document)) == WEFT_JSON_NUMBER)
        weft_json_add_value(writer, weft_json_root(document));
    else
        weft_json_add_string(writer, text);
    weft_json_destroy(document);
}

static void put_if(struct weft_json_writer *writer, const char *name, const char *text)
{
    if (text != NULL) put_text(writer, name, text);
}

static void put_word(struct weft_json_writer *writer, const char *name, enum weft_word word)
{
    if (word != WEFT_WORD_NONE) weft_json_put_string(writer, name, weft_word_name(word));
}

/* One text alone, or an array of several. */
static void put_texts(struct weft_json_writer *writer, const char *name, const char *const *texts,
                      int32_t most)
{
    int32_t n = 0;
    while (n < most && texts[n] != NULL)
        n++;
    weft_json_key(writer, name);
    if (n != 1) weft_json_begin_array(writer);
    for (int32_t i = 0; i < n; i++)
        weft_json_add_string(writer, texts[i]);
    if (n != 1) weft_json_end_array(writer);
}

static void add_part(struct weft_json_writer *writer, const char *text, size_t length)
{
    struct weft_text part;
    weft_text_init(&part);
    weft_text_append(&part, text, length);
    weft_json_add_string(writer, weft_text_chars(&part));
    weft_text_finish(&part);
}

/* "attn.q:q attn.k:k" as an object. */
static void put_from(struct weft_json_writer *writer, const char *text)
{
    char name[64];
    weft_json_key(writer, "from");
    weft_json_begin_object(writer);
    while (*text != '\0') {
        const size_t split = strcspn(text, ":"), end = split + strcspn(text + split, " ");
        snprintf(name, sizeof name, "%.*s", (int)split, text);
        weft_json_key(writer, name);
        add_part(writer, text + split + 1, end - split - 1);
        text += end + (text[end] == ' ');
    }
    weft_json_end_object(writer);
}

/* The tensors' name without the op's last part. */
static void put_name(struct weft_json_writer *writer, const struct weft_recipe_step *step)
{
    const char *last = step->op->tensors[0], *name = step->tensors[0];
    if (last == NULL || name == NULL || strlen(name) <= strlen(last)) return;
    weft_json_key(writer, "name");
    add_part(writer, name, strlen(name) - strlen(last) - 1);
}

static void write_step(const struct weft_recipe_step *step, struct weft_json_writer *writer)
{
    weft_json_begin_object(writer);
    weft_json_flat(writer);
    weft_json_put_string(writer, "op", step->op->name);
    put_word(writer, "kind", step->kind);
    put_texts(writer, "in", step->in, WEFT_STEP_INPUTS);
    put_texts(writer, "out", step->out, WEFT_STEP_OUTPUTS);
    put_if(writer, "if", step->when);
#define ATTRIBUTE(name, text) put_if(writer, #name, step->name);
    WEFT_STEP_SIZES(ATTRIBUTE)
    WEFT_STEP_NUMBERS(ATTRIBUTE)
#undef ATTRIBUTE
    put_if(writer, "add", step->add);
    put_word(writer, "then", step->then);
    put_word(writer, "init", step->init);
    put_word(writer, "save", step->save);
    put_name(writer, step);
    if (step->from != NULL) put_from(writer, step->from);
    weft_json_end_object(writer);
}

void weft_recipe_encode(const struct weft_kind *kind, struct weft_json_writer *writer)
{
    const struct weft_recipe *recipe = kind->recipe;
    if (kind->input == WEFT_READS_TOKENS) weft_json_put_string(writer, "input", "tokens");
    if (recipe->definitions[0].name != NULL) {
        weft_json_key(writer, "define");
        weft_json_begin_object(writer);
        for (int32_t i = 0; i < WEFT_RECIPE_DEFINITIONS && recipe->definitions[i].name != NULL; i++)
            put_text(writer, recipe->definitions[i].name, recipe->definitions[i].expression);
        weft_json_end_object(writer);
    }
    weft_json_key(writer, "steps");
    weft_json_begin_array(writer);
    for (int32_t i = 0; i < recipe->n_steps; i++)
        write_step(&recipe->steps[i], writer);
    weft_json_end_array(writer);
}

/* The expression of a key that is left out, or NULL. */
static const char *expression_of(const struct weft_recipe *recipe, const char *key)
{
    for (int32_t i = 0; i < WEFT_RECIPE_KEYS && recipe->defaults[i].key != NULL; i++)
        if (strcmp(recipe->defaults[i].key, key) == 0) return recipe->defaults[i].expression;
    return NULL;
}

static void put_default(const struct weft_kind *kind, const struct weft_field *key,
                        struct weft_json_writer *writer)
{
    const char *expression = expression_of(kind->recipe, key->name);
    const bool is_left_out = key->fallback != NULL && strcmp(key->fallback, "null") == 0;
    if (expression != NULL) {
        weft_json_put_string(writer, "default", expression);
    } else if (is_left_out && key->kind == WEFT_FIELD_NUMBER) {
        weft_json_put_number(writer, "default", 0);
    } else if (is_left_out && key->kind == WEFT_FIELD_INTEGER && key->least == 0) {
        weft_json_put_integer(writer, "default", 0);
    } else if (is_left_out && key->kind == WEFT_FIELD_BOOL) {
        weft_json_put_bool(writer, "default", false);
    } else {
        weft_field_put_default(key, writer);
    }
}

static void put_limit(struct weft_json_writer *writer, const struct weft_field *key,
                      const char *name, double limit)
{
    if (key->kind == WEFT_FIELD_INTEGER)
        weft_json_put_integer(writer, name, (int64_t)limit);
    else
        weft_json_put_number(writer, name, limit);
}

static void write_key(const struct weft_kind *kind, const struct weft_field *key,
                      struct weft_json_writer *writer)
{
    static const struct {
        enum weft_field_kind kind;
        const char *name;
    } types[] = {{WEFT_FIELD_NUMBER, "number"}, {WEFT_FIELD_BOOL, "flag"}};
    weft_json_begin_object(writer);
    weft_json_flat(writer);
    weft_json_put_string(writer, "name", key->name);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].kind == key->kind) weft_json_put_string(writer, "type", types[i].name);
    put_default(kind, key, writer);
    if (key->kind != WEFT_FIELD_BOOL) {
        /* Only a default can be a least value below 0. The reader takes it from there. */
        if (key->least >= 0) put_limit(writer, key, "least", key->least);
        put_limit(writer, key, "most", key->most);
    }
    if (key->text != NULL) weft_json_put_string(writer, "text", key->text);
    weft_json_end_object(writer);
}

void weft_kind_encode(const struct weft_kind *kind, struct weft_json_writer *writer)
{
    const struct weft_recipe *recipe = kind->recipe;
    weft_json_begin_object(writer);
    weft_json_put_string(writer, "kind", kind->type);
    weft_json_put_string(writer, "text", kind->text);
    weft_json_key(writer, "keys");
    weft_json_begin_array(writer);
    for (size_t i = 0; i < kind->n_keys; i++)
        if (kind->keys[i].kind != WEFT_FIELD_STRING) write_key(kind, &kind->keys[i], writer);
    weft_json_end_array(writer);
    if (recipe->demands[0] != NULL)
        put_texts(writer, "demands", recipe->demands, WEFT_RECIPE_DEMANDS);
    weft_recipe_encode(kind, writer);
    weft_json_end_object(writer);
}
