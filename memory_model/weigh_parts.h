/* Parts of weighing (memory_model/weigh.h): holds are in weigh.c, items in weigh_items.c. */
#ifndef WEFT_MEMORY_MODEL_WEIGH_PARTS_H
#define WEFT_MEMORY_MODEL_WEIGH_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "memory_model/period.h"
#include "shard/shard.h"
#include "spec/model.h"

struct weft_weights; /* weigh.h; so is the next */
struct weft_weigh_options;

/* State of the weighing. `overflow` remembers the first size that does not fit into 64 bits, alone
 * or in the sum, and causes one error at the end. */
struct weft_weigher {
    const struct weft_model *model;
    const struct weft_shards *shards;
    const struct weft_period *period;
    const struct weft_weigh_options *options;
    struct weft_weights *weights;
    int64_t total_bytes;
    bool overflow;
};

/* Buffers of a unit's state: moments, and a master unless it computes in f32. */
int32_t weft_weigh_count_states(const struct weft_weigh_options *options);

/* Adds bytes to the total. */
void weft_weigh_count_bytes(struct weft_weigher *w, int64_t bytes);

int64_t weft_weigh_elements_bytes(struct weft_weigher *w, int64_t elements, enum weft_dtype dtype);

/* Index of the first use after the residency that begins with use `i`. Neighbouring uses share a
 * residency. */
int32_t weft_weigh_residency_end(const struct weft_period *period, int32_t u, int32_t i);

/* Elements of a unit's state: of a rank's slices, or with dp of the whole unit. */
int64_t weft_weigh_owned_elements(const struct weft_weigher *w, int32_t u, enum weft_policy policy);

/* Bytes of a unit's state, each buffer of it rounded up. */
int64_t weft_weigh_state_bytes(struct weft_weigher *w, int32_t u, enum weft_policy policy,
                               int64_t align);

/* Fills the items of the weights. WEFT_E_SYSTEM. */
WEFT_MUST_USE enum weft_status weft_weigh_items(struct weft_weigher *w, struct weft_error *err);

#endif
