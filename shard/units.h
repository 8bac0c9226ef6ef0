/* A grouping puts every tensor of a model into a unit, before anything is cut. */
#ifndef WEFT_SHARD_UNITS_H
#define WEFT_SHARD_UNITS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/pool.h"
#include "base/status.h"
#include "spec/model.h"

/* Tensors start at multiples of this in their unit. The gap is zeroed and belongs to no tensor. */
enum { WEFT_TENSOR_ALIGN_ELEMENTS = 16 };

/* How units are cut: exactly `blocks` when > 0; else block_bytes (> 0; of the communication dtype
 * `element_bytes`): units below it are fused with neighbours when `fuse`, larger ones become
 * floor(bytes / block_bytes) equal blocks. */
struct weft_block_rule {
    int64_t blocks;
    int64_t block_bytes;
    int64_t element_bytes;
    bool fuse;
};

struct weft_grouping {
    int32_t n_units;
    int32_t *tensor_unit; /* by tensor; units are numbered in order of first use */
};

/* The grouping of a model by the rule's fuse, block_bytes and element_bytes. Arrays are the pool's.
 * WEFT_E_DATA when a unit's size overflows, WEFT_E_SYSTEM. */
WEFT_MUST_USE enum weft_status weft_units_group(struct weft_pool *pool,
                                                const struct weft_model *model,
                                                const struct weft_block_rule *rule,
                                                struct weft_grouping *out, struct weft_error *err);

/* `elements` rounded up to where the next tensor of a unit may start, plus `more`; false when that
 * overflows. */
bool weft_units_append(int64_t elements, int64_t more, int64_t *begin, int64_t *end);

#endif
