/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/recipe/derive.h"

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
