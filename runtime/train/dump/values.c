/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/dump/values.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layers/recipe/walk.h"
#include "spec/kind.h"

_Static_assert((int)WEFT_WALK_VALUES <= (int)WEFT_DUMP_VALUES, "all values of a walk have room");

static const unsigned char *place_of(const struct weft_walk *walk, const struct weft_nn_call *call,
                                     int32_t value)
{
    const struct weft_value *place = &walk->values[walk->values[value].place];
    switch (place->location) {
    case WEFT_VALUE_INPUT:
        return call->input;
    case WEFT_VALUE_OUTPUT:
        return call->output;
    case WEFT_VALUE_KEPT:
        return call->saved == NULL ? NULL : (const unsigned char *)call->saved + place->offset;
    case WEFT_VALUE_DROPPED:
    case WEFT_VALUE_TEMPORARY:
        break;
    }
    return NULL;
}

/* Values that a later one replaced in their place are gone when the forward ends. */
static bool stays_in_place(const struct weft_walk *walk, int32_t value)
{
    for (int32_t later = value + 1; later < walk->n_values; later++)
        if (walk->values[later].place == walk->values[value].place) return false;
    return true;
}

/* Sums over attention's rows have the form of the chosen kernel, and not each kernel writes them.
 */
static bool is_of_kernel(const struct weft_value *value)
{
    return value->suffix != NULL &&
           (strcmp(value->suffix, "probabilities") == 0 || strcmp(value->suffix, "log_sums") == 0);
}

static enum weft_dump_number number_of(enum weft_value_dtype dtype)
{
    switch (dtype) {
    case WEFT_VALUE_COMPUTE:
        return WEFT_DUMP_COMPUTE;
    case WEFT_VALUE_F32:
        return WEFT_DUMP_F32;
    case WEFT_VALUE_INT32:
        break;
    }
    return WEFT_DUMP_INT32;
}

enum weft_status weft_dump_values(const struct weft_nn_call *call,
                                  struct weft_dump_value out[WEFT_DUMP_VALUES], int32_t *n,
                                  struct weft_error *err)
{
    struct weft_walk *walk = malloc(sizeof *walk);
    *n = 0;
    if (walk == NULL) return weft_fail_memory(err, "the values of a layer");
    enum weft_status status =
        weft_walk_derive(call->layer, &call->batch, call->recompute, walk, err);
    for (int32_t v = 0; status == WEFT_OK && v < walk->n_values; v++) {
        const struct weft_value *value = &walk->values[v];
        const unsigned char *at = stays_in_place(walk, v) ? place_of(walk, call, v) : NULL;
        if (at == NULL || value->rows < 1 || value->columns < 1 || is_of_kernel(value)) continue;
        struct weft_dump_value *to = &out[(*n)++];
        *to = (struct weft_dump_value){.at = at,
                                       .number = number_of(value->dtype),
                                       .rows = value->rows,
                                       .columns = value->columns,
                                       .stride = value->columns + value->gap};
        snprintf(to->name, sizeof to->name, "%s%s%s", value->name, value->suffix != NULL ? "." : "",
                 value->suffix != NULL ? value->suffix : "");
    }
    free(walk);
    return status;
}
