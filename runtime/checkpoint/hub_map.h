/* SPDX-License-Identifier: Apache-2.0 */
/* A map joins a family's rows (spec/hub/tensors.h) with a model: each tensor of Hugging Face's
 * files is a part of a tensor of the model. */
#ifndef WEFT_RUNTIME_CHECKPOINT_HUB_MAP_H
#define WEFT_RUNTIME_CHECKPOINT_HUB_MAP_H

#include "base/pool.h"
#include "base/status.h"
#include "spec/hub/families.h"
#include "spec/model.h"

/* A tensor of the files. */
struct weft_hub_entry {
    const char *name;
    int32_t tensor;          /* of the model */
    int64_t first, elements; /* its elements there */
    int32_t n_dims;
    int64_t dims[4]; /* in the files */
    bool transposed;
};

struct weft_hub_map {
    struct weft_pool pool;
    const struct weft_hub_family *family;
    const char *prefix;
    int32_t n;
    struct weft_hub_entry *entries; /* in order of tensors and elements; the first is the table of
                                       tokens, or the product of patches */
    int32_t *begins;                /* [n_tensors + 1]: a tensor's first entry */
};

/* The family whose files can hold the model. WEFT_E_DATA names a layer that no family has. */
WEFT_MUST_USE enum weft_status weft_hub_family_of(const struct weft_model *model,
                                                  const struct weft_hub_family **out,
                                                  struct weft_error *err);

/* Makes the map with the family's prefix or without one. WEFT_E_DATA names a layer or a tensor that
 * the family's files do not have. */
WEFT_MUST_USE enum weft_status weft_hub_map_create(const struct weft_model *model,
                                                   const struct weft_hub_family *family,
                                                   bool prefixed, struct weft_hub_map **out,
                                                   struct weft_error *err);
void weft_hub_map_destroy(struct weft_hub_map *map); /* accepts NULL */

/* Whether a name of the files is of a buffer, or of a head that the family's class does not have.
 */
bool weft_hub_is_unread(const struct weft_hub_map *map, const char *name);
bool weft_hub_is_left_out(const struct weft_hub_map *map, const char *name);
/* The name of the tensor in BERT's first files: gamma or beta of a norm; NULL: none.
 * It lasts as long as the pool. */
const char *weft_hub_old_name(struct weft_pool *pool, const char *name);
/* The name of a family's table of tokens, or product of patches, without the prefix, and that of a
 * head. */
const char *weft_hub_table_name(const struct weft_hub_family *family);
const char *weft_hub_head_name(const struct weft_hub_family *family);

#endif
