/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of a layer whose kind has a recipe: values by name, defaults that follow from other keys,
 * and demands. */
#include <stdio.h>
#include <string.h>

#include "layers/recipe/derive.h"
#include "layers/recipe/expression.h"

static const void *value_of(const struct weft_layer *layer, const struct weft_field *key)
{
    return (const char *)layer + key->offset;
}

bool weft_recipe_find_key(const struct weft_layer *layer, const char *name, size_t length,
                          int64_t *out)
{
    const struct weft_kind *kind = layer->kind;
    for (size_t i = 0; i < kind->n_keys; i++) {
        const struct weft_field *key = &kind->keys[i];
        if (strlen(key->name) != length || memcmp(key->name, name, length) != 0) continue;
        if (key->kind == WEFT_FIELD_INTEGER)
            *out = *(const int64_t *)value_of(layer, key);
        else if (key->kind == WEFT_FIELD_BOOL)
            *out = *(const bool *)value_of(layer, key);
        else
            return false;
        return true;
    }
    return false;
}

static bool find_name(const void *context, const char *name, size_t length, int64_t *out)
{
    return weft_recipe_find_key(context, name, length, out);
}

static bool evaluate_text(const struct weft_layer *layer, const char *text, int64_t *out,
                          struct weft_expression_fault *fault)
{
    const struct weft_names names = {find_name, layer};
    return weft_expression(text, strlen(text), &names, out, fault);
}

/* The value of a key with a default, an integer. 0: it was left out. */
static int64_t *place_of(struct weft_layer *layer, const char *key)
{
    return (int64_t *)(void *)((char *)layer + weft_kind_key(layer->kind, key)->offset);
}

void weft_recipe_complete(struct weft_layer *layer)
{
    const struct weft_recipe_default *defaults = layer->kind->recipe->defaults;
    struct weft_expression_fault unsaid;
    if (layer->kind->loss == WEFT_LOSS_OF_ROWS)
        layer->outputs = layer->vocab;
    else if (!layer->kind->outputs_given)
        layer->outputs = layer->hidden;
    for (int32_t i = 0; i < WEFT_RECIPE_KEYS && defaults[i].key != NULL; i++) {
        int64_t *value = place_of(layer, defaults[i].key);
        if (*value == 0) evaluate_text(layer, defaults[i].expression, value, &unsaid);
    }
}

/* Appends "heads is 4, kv_heads is 3": the keys that the expression names. */
static void tell_values(const struct weft_layer *layer, const char *text, char *out, size_t bytes)
{
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < layer->kind->n_keys; i++) {
        const char *name = layer->kind->keys[i].name, *at = text;
        const size_t length = strlen(name);
        int64_t value;
        while ((at = strstr(at, name)) != NULL) {
            const char before = at == text ? ' ' : at[-1], after = at[length];
            if (strchr(" +-*/%()=!<>", before) != NULL &&
                (after == '\0' || strchr(" +-*/%()=!<>", after) != NULL))
                break;
            at += length;
        }
        if (at == NULL || !weft_recipe_find_key(layer, name, length, &value)) continue;
        if (used < bytes)
            used += (size_t)snprintf(out + used, bytes - used, "%s%s is %lld",
                                     used == 0 ? ": " : ", ", name, (long long)value);
    }
}

int32_t weft_recipe_check(const struct weft_layer *layer, struct weft_fault faults[WEFT_FAULTS])
{
    const struct weft_recipe *recipe = layer->kind->recipe;
    struct weft_expression_fault fault;
    int64_t value;
    for (int32_t i = 0; i < WEFT_RECIPE_KEYS && recipe->defaults[i].key != NULL; i++) {
        const struct weft_recipe_default *it = &recipe->defaults[i];
        if (*place_of((struct weft_layer *)(uintptr_t)layer, it->key) != 0) continue;
        faults[0].key = NULL;
        if (evaluate_text(layer, it->expression, &value, &fault))
            snprintf(fault.text, sizeof fault.text, "\"%s\" is 0", it->expression);
        snprintf(faults[0].text, sizeof faults[0].text, "no %s is given, and its default %.100s",
                 it->key, fault.text);
        return 1;
    }
    for (int32_t i = 0; i < WEFT_RECIPE_DEMANDS && recipe->demands[i] != NULL; i++) {
        const char *text = recipe->demands[i];
        char values[100];
        faults[0].key = NULL;
        if (!evaluate_text(layer, text, &value, &fault)) {
            snprintf(faults[0].text, sizeof faults[0].text, "a demand: %.150s", fault.text);
            return 1;
        }
        if (value != 0) continue;
        tell_values(layer, text, values, sizeof values);
        snprintf(faults[0].text, sizeof faults[0].text, "\"%.80s\" must hold%s", text, values);
        return 1;
    }
    return 0;
}
