/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of weighing (memory_model/weigh.h): holds of units and of every plan are in weigh.c,
 * strategies of layers in weigh_layers.c, items in weigh_items.c. */
#ifndef WEFT_MEMORY_MODEL_WEIGH_PARTS_H
#define WEFT_MEMORY_MODEL_WEIGH_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "memory_model/category.h"
#include "memory_model/period.h"
#include "shard/shard.h"
#include "spec/model.h"
#include "spec/target.h"

struct weft_hold; /* weigh.h; so are the next */
struct weft_weights;
struct weft_weigh_options;
struct weft_weighed_strategy;

/* State of the weighing. `overflow` remembers the first size that does not fit into 64 bits, alone
 * or in the sum, and causes one error at the end. */
struct weft_weigher {
    const struct weft_model *model;
    const struct weft_shards *shards;
    const struct weft_period *period;
    const struct weft_weigh_options *options;
    struct weft_weights *weights;
    const struct weft_layer_work *works; /* by layer */
    const int *timed;                    /* by layer: levels with times (weft_weigh_timed_levels) */
    int64_t total_bytes;
    bool overflow;
    /* With flat buffers: trainable units in the order of their reductions, the first
     * n_own_reductions before the end of backward; and by unit its place there. */
    int32_t *reductions, *reduction_of;
    int32_t n_reductions, n_own_reductions;
};

/* Buffers of a unit's state: moments, and a master unless it computes in f32. */
int32_t weft_weigh_count_states(const struct weft_weigh_options *options);

/* Bits of the levels of recomputation that the profile has times of. All without a profile, or if
 * the profile has none. The pool gets the layer's key. layer_work.c has it. */
int weft_weigh_timed_levels(const struct weft_weigh_options *options,
                            const struct weft_layer *layer, struct weft_pool *pool);

/* The rules of the runtime that holds the memory. */
const struct weft_target *weft_weigh_target(const struct weft_weigher *w);

/* Adds a buffer that lives from slot `first` to slot `last`, unless it is empty. */
void weft_weigh_hold(struct weft_weigher *w, struct weft_hold *holds, int32_t *n,
                     enum weft_category category, int32_t first, int32_t last, int64_t bytes);

/* Adds bytes to the total. */
void weft_weigh_count_bytes(struct weft_weigher *w, int64_t bytes);

int64_t weft_weigh_elements_bytes(struct weft_weigher *w, int64_t elements, enum weft_dtype dtype);

/* Index of the first use after the residency that begins with use `i`. Neighbouring uses share a
 * residency. */
int32_t weft_weigh_residency_end(const struct weft_period *period, int32_t u, int32_t i);

/* The same for a policy: sdp keeps parameters to the end of the step, or of the micro-step. */
int32_t weft_weigh_policy_end(const struct weft_weigher *w, int32_t u, enum weft_policy policy,
                              int32_t i);
/* The last slot of the residency of an sdp or fsdp unit that ends after use `last`. */
int32_t weft_weigh_release(const struct weft_weigher *w, int32_t u, int32_t last);

/* Elements of a unit's parameters that a rank keeps: of the slices of all ranks or of a node's. */
int64_t weft_weigh_shard_elements(const struct weft_weigher *w, int32_t u, enum weft_policy policy);

/* Elements of a unit's state: of a rank's slices, or with dp of the whole unit. */
int64_t weft_weigh_owned_elements(const struct weft_weigher *w, int32_t u, enum weft_policy policy);

/* Bytes of a unit's state, each buffer of it rounded up. */
int64_t weft_weigh_state_bytes(struct weft_weigher *w, int32_t u, enum weft_policy policy,
                               int64_t align);

/* Two slots of a period. */
struct weft_window {
    int32_t first, last;
};
/* With flat buffers: the slot that launches the reduction of a unit's gradient of a micro-step, and
 * the last slot that may complete it. */
struct weft_window weft_weigh_reduction(const struct weft_weigher *w, int32_t u, int32_t micro);

/* weigh_layers.c: whether the location or the recomputation of a layer's saved activations is a
 * decision, and whether the location of its input is. */
bool weft_weigh_decides_saved(const struct weft_weigher *w, int32_t layer);
bool weft_weigh_decides_input(const struct weft_weigher *w, int32_t layer);
/* The first and last slot of a micro-step's backward that read the input of a layer after the
 * first. Some backward must read it. */
struct weft_window weft_weigh_input_reads(const struct weft_weigher *w, int32_t layer,
                                          int32_t micro);
/* Fills the layers of the weights. WEFT_E_SYSTEM. */
WEFT_MUST_USE enum weft_status weft_weigh_layers(struct weft_weigher *w, struct weft_error *err);

/* Finds the order of reductions of a runtime with flat buffers. WEFT_E_SYSTEM without memory. */
WEFT_MUST_USE enum weft_status weft_weigh_flat_begin(struct weft_weigher *w,
                                                     struct weft_error *err);

/* Holds of a runtime with flat buffers: of parameters, and of gradients. Each returns their number,
 * at most WEFT_FLAT_HOLDS a micro-step for both. `common` returns the copy of a rank's part that is
 * cast for a gather. */
enum { WEFT_FLAT_HOLDS = 16 };
int32_t weft_weigh_flat_parameters(struct weft_weigher *w, int32_t u, enum weft_policy policy,
                                   struct weft_hold *holds);
int32_t weft_weigh_flat_gradients(struct weft_weigher *w, int32_t u, struct weft_hold *holds);
int32_t weft_weigh_flat_common(struct weft_weigher *w, struct weft_hold *holds);

/* Fills the items of the weights. WEFT_E_SYSTEM. */
WEFT_MUST_USE enum weft_status weft_weigh_items(struct weft_weigher *w, struct weft_error *err);

#endif
