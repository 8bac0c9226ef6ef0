/* To seed is to pack first-fit in many orders, from the floor and from the ceiling, those that suit
 * a training step first. Private to memory_model/. */
#ifndef WEFT_MEMORY_MODEL_LAYOUT_SEED_H
#define WEFT_MEMORY_MODEL_LAYOUT_SEED_H

#include <stdint.h>

#include "base/pool.h"
#include "base/status.h"
#include "memory_model/layout/packing.h"

/* Records what the orders give, until one is dense or packing->work reaches work_limit. At
 * least one pass is whole. Scratch is the pool's. WEFT_E_SYSTEM. */
WEFT_MUST_USE enum weft_status weft_packing_seed(struct weft_packing *packing,
                                                 struct weft_pool *pool, int64_t work_limit,
                                                 struct weft_error *err);

#endif
