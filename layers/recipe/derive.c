/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/recipe/derive.h"

#include <string.h>

enum weft_status weft_walk_derive_initial(const struct weft_layer *layer,
                                          const struct weft_batch *batch, enum weft_recompute level,
                                          double residual_std, struct weft_walk *out,
                                          struct weft_error *err)
{
    *out = (struct weft_walk){.layer = layer,
                              .batch = *batch,
                              .level = level,
                              .residual_std = residual_std,
                              .output = WEFT_WALK_NONE,
                              .loss = WEFT_WALK_NONE,
                              .by_rows = true};
    out->rows = weft_times(&out->fits, batch->samples, batch->seq_len);
    WEFT_TRY(weft_walk_add_steps(out, err));
    WEFT_TRY(weft_walk_save(out, err));
    return weft_walk_add_gradients(out, err);
}

enum weft_status weft_walk_derive(const struct weft_layer *layer, const struct weft_batch *batch,
                                  enum weft_recompute level, struct weft_walk *out,
                                  struct weft_error *err)
{
    return weft_walk_derive_initial(layer, batch, level, 0, out, err);
}

const struct weft_value *weft_walk_find(const struct weft_walk *walk, const char *name,
                                        const char *suffix)
{
    for (int32_t i = 0; i < walk->n_values; i++) {
        const struct weft_value *value = &walk->values[i];
        const bool is_output = suffix == NULL && value->suffix == NULL;
        if (strcmp(value->name, name) == 0 &&
            (is_output ||
             (suffix != NULL && value->suffix != NULL && strcmp(value->suffix, suffix) == 0)))
            return &walk->values[value->place];
    }
    return NULL;
}
