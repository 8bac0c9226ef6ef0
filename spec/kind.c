/* SPDX-License-Identifier: Apache-2.0 */
#include "spec/kind.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define KIND(name) &weft_kind_##name,
static const struct weft_kind *const own_kinds[WEFT_KIND_COUNT] = {WEFT_KINDS(KIND)};
#undef KIND

const struct weft_kind *weft_kind_at(int32_t index)
{
    return own_kinds[index];
}

const struct weft_kind *weft_kind_find(const struct weft_kinds *others, const char *type)
{
    for (int32_t i = 0; i < WEFT_KIND_COUNT; i++)
        if (strcmp(own_kinds[i]->type, type) == 0) return own_kinds[i];
    for (int32_t i = 0; others != NULL && i < others->n; i++)
        if (strcmp(others->kinds[i]->type, type) == 0) return others->kinds[i];
    return NULL;
}

const struct weft_field *weft_kind_key(const struct weft_kind *kind, const char *name)
{
    for (size_t i = 0; i < kind->n_keys; i++)
        if (strcmp(kind->keys[i].name, name) == 0) return &kind->keys[i];
    return NULL;
}

bool weft_kind_any_key(size_t index, struct weft_field *out)
{
    for (int32_t i = 0; i < WEFT_KIND_COUNT; i++) {
        for (size_t k = 0; k < own_kinds[i]->n_keys; k++) {
            const struct weft_field *field = &own_kinds[i]->keys[k];
            bool seen = false;
            for (int32_t j = 0; j < i && !seen; j++)
                seen = weft_kind_key(own_kinds[j], field->name) != NULL;
            if (seen || index-- > 0) continue;
            *out = *field;
            for (int32_t j = i; j < WEFT_KIND_COUNT && out->fallback == NULL; j++) {
                const struct weft_field *other = weft_kind_key(own_kinds[j], field->name);
                if (other != NULL) out->fallback = other->fallback;
            }
            if (out->fallback == NULL) out->fallback = "null";
            return true;
        }
    }
    return false;
}

enum weft_status weft_layer_refuse(struct weft_error *err, const struct weft_layer *layer,
                                   const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    return weft_fail(err, WEFT_E_DATA, "layer \"%s\" (%s): %s", layer->name,
                     weft_layer_type_of(layer), text);
}

void weft_layer_complete(struct weft_layer *layer)
{
    if (layer->kind->complete != NULL)
        layer->kind->complete(layer);
    else if (!layer->kind->outputs_given)
        layer->outputs = layer->hidden;
    if (layer->kind->ties == NULL) layer->tie = -1;
    if (weft_kind_key(layer->kind, "bias") == NULL) layer->bias = false;
    layer->n_tensors = 0;
}

/* Reads a layer's value of a numeric key; false for other kinds of keys. */
static bool number_of(const struct weft_layer *layer, const struct weft_field *field, double *out)
{
    const char *at = (const char *)layer + field->offset;
    if (field->kind == WEFT_FIELD_INTEGER || field->kind == WEFT_FIELD_BYTES)
        *out = (double)*(const int64_t *)(const void *)at;
    else if (field->kind == WEFT_FIELD_NUMBER || field->kind == WEFT_FIELD_COUNT_UNIT)
        *out = *(const double *)(const void *)at;
    else
        return false;
    return true;
}

enum weft_status weft_layer_check(const struct weft_layer *layer, struct weft_error *err)
{
    const struct weft_kind *kind = layer->kind;
    for (size_t i = 0; i < kind->n_keys; i++) {
        const struct weft_field *field = &kind->keys[i];
        double value;
        if (!number_of(layer, field, &value)) continue;
        /* 2^53 is the limit of exact integers in a file, not a limit of the kind. */
        if (value >= field->least && (value <= field->most || field->most == 0x1p53)) continue;
        return weft_layer_refuse(err, layer, "%s is %.17g; it must be from %.17g to %.17g",
                                 field->name, value, field->least, field->most);
    }
    struct weft_fault faults[WEFT_FAULTS];
    if (kind->check != NULL && kind->check(layer, faults) > 0)
        return weft_layer_refuse(err, layer, "%s", faults[0].text);
    return WEFT_OK;
}
