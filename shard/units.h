/* SPDX-License-Identifier: Apache-2.0 */
/* A grouping assigns every tensor of a model to a unit, before units are cut into blocks. */
#ifndef WEFT_SHARD_UNITS_H
#define WEFT_SHARD_UNITS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/pool.h"
#include "base/status.h"
#include "spec/model.h"

/* Tensors start at multiples of this in their unit. The gap is zeroed and belongs to no tensor. */
enum { WEFT_TENSOR_ALIGN_ELEMENTS = 16 };

/* The rule for cutting units. If `blocks` > 0, every unit has exactly that many blocks. Otherwise
 * block_bytes (> 0) counts bytes of elements of element_bytes. Units below it are fused with
 * neighbours if `fuse`; larger ones have floor(bytes / block_bytes) equal blocks. `whole_layers`
 * overrides all of these. */
struct weft_block_rule {
    int64_t blocks;
    int64_t block_bytes;
    int64_t element_bytes;
    bool fuse;
    /* A unit is all tensors of a layer, or of layers that share one, in a single block. Each tensor
     * counts with rows (its first dimension) rounded up to a multiple of the ranks. */
    bool whole_layers;
    bool reads_all; /* a table's backward counts as a reader of its parameters too */
    /* With whole_layers: [n_layers], the first layer of the unit of each layer; NULL: layers
     * without a tensor in common have units of their own. Borrowed. */
    const int32_t *joins;
};

struct weft_grouping {
    int32_t n_units;
    int32_t *tensor_unit; /* by tensor; units are numbered in order of first use */
};

/* Groups a model by the rule's fuse, block_bytes and element_bytes. The pool owns the arrays.
 * WEFT_E_DATA when a unit's size overflows, WEFT_E_SYSTEM without memory. */
WEFT_MUST_USE enum weft_status weft_units_group(struct weft_pool *pool,
                                                const struct weft_model *model,
                                                const struct weft_block_rule *rule,
                                                struct weft_grouping *out, struct weft_error *err);

/* Rounds `elements` up to the start of the next tensor, *begin, and adds `more` for *end. False on
 * overflow. */
bool weft_units_append(int64_t elements, int64_t more, int64_t *begin, int64_t *end);

#endif
