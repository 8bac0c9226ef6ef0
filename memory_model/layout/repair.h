/* To repair a packing is to lower its ceiling a little, and to place what then sticks out where the
 * least is in its way; what was there is placed anew the same way. What is hard to place grows
 * dearer to move (guided ejection search: Nagata and Braysy, 2009). Private to memory_model/. */
#ifndef WEFT_MEMORY_MODEL_LAYOUT_REPAIR_H
#define WEFT_MEMORY_MODEL_LAYOUT_REPAIR_H

#include <stdint.h>

#include "base/pool.h"
#include "base/status.h"
#include "memory_model/layout/packing.h"

/* Records better packings than the best so far, which there is, until one is dense or work_limit
 * more is done (tenants looked at) or the packing's budget is used up. A greater
 * limit goes on where a smaller one ends. Where bodies have thousands of segments it does nothing.
 * Scratch is the pool's. WEFT_E_SYSTEM. */
WEFT_MUST_USE enum weft_status weft_packing_repair(struct weft_packing *packing,
                                                   struct weft_pool *pool, int64_t work_limit,
                                                   struct weft_error *err);

#endif
