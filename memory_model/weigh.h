/* SPDX-License-Identifier: Apache-2.0 */
/* Weighing computes a unit's bytes in each slot under each strategy, in closed form: the planning
 * side of the memory model. A unit's strategy is a policy and a way to keep optimizer state and
 * master: a location, and the place of the update. A layer's strategy is the location of its saved
 * activations, if they may be offloaded, and their recomputation, if backward can restore them. A
 * hold is bytes of one category from the start of slot `first` to the end of slot `last`, around
 * the period's end if first > last. Bytes that depend on the launch of a block belong to an item.
 *
 * The lowering in program/ finds the same bytes from a program's happens-before order; a test
 * compares the two. */
#ifndef WEFT_MEMORY_MODEL_WEIGH_H
#define WEFT_MEMORY_MODEL_WEIGH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/pool.h"
#include "base/status.h"
#include "memory_model/category.h"
#include "memory_model/item.h"
#include "memory_model/period.h"
#include "memory_model/ring.h"
#include "shard/way.h"
#include "spec/layer.h"
#include "spec/profile/profile.h"
#include "spec/target.h"
#include "spec/tiers.h"

struct weft_hold {
    enum weft_category category;
    int32_t first, last; /* slots, inclusive; first > last wraps */
    int64_t bytes;
    int32_t tier; /* index in the problem's tiers; 0: the device */
};

/* Alignment of buffers in the arena. Sizes are rounded up to it here, so that rows count the bytes
 * in use. */
enum { WEFT_ARENA_ALIGN_BYTES = 256 };
/* Allocation unit of the host's tier: each buffer of a unit's state and of saved activations is
 * rounded up to it. */
enum { WEFT_HOST_PAGE_BYTES = 4096 };

/* The useful policies of a unit, in their order, each with every way to keep its state, the device
 * first.
 *
 * A unit that fsdp would never release (its uses are neighbours) has no fsdp. A frozen unit has no
 * gradient and no state. A trainable one has no dp if gradients are reduced every micro-step: dp
 * would need a second full gradient, and zero1 moves and holds less.
 *
 * Offloaded state that is updated on the device is on it in its update, and before and after that
 * while it is copied. State that is updated on the host is never on the device. The host always has
 * moments, an fp32 master, the reduced gradient and the rounded parameters. dp has no such
 * strategy, because each rank would update the whole unit.
 *
 * A trainable sdp or fsdp unit that computes in 16 bits may keep its shard on the host, if its
 * state is updated on the device. The device then has the shard from the update to the end of the
 * copy down, and a slice from the copy up to the slot that uses the gather. No unit has it that is
 * used less than three slots after its update: the copies down and up have no window there. */
struct weft_weighed_unit {
    int32_t n_strategies;
    struct weft_weighed_strategy {
        struct weft_way way;
        int32_t n_holds;
        struct weft_hold *holds;
    } strategies[WEFT_WAYS];
};

/* A layer with saved activations, by their location and recomputation. The last layer is none,
 * because its backward follows its forward. On the host they hold their bytes all the time. On the
 * device they hold them in the layer's forward and backward and during copies: down until the
 * forward of the micro-step ends, up from then on. Dropped bytes are a part of the temporaries of
 * forward and backward. A strategy that frees nothing is not listed. */
struct weft_weighed_layer {
    int32_t layer;
    int32_t n_strategies;
    struct weft_weighed_saved {
        struct weft_layer_choice choice;
        int64_t saved_bytes; /* that the layer keeps */
        int64_t input_bytes; /* of its input, if the location is a decision; otherwise 0 */
        int32_t n_holds;
        struct weft_hold *holds;
    } strategies[WEFT_LAYER_CHOICES];
};

struct weft_weights {
    struct weft_pool pool;
    int32_t n_slots, n_units;
    int32_t n_common; /* held by every plan: base, the ring, the agreement records; for every
                         micro-step input and targets; for every layer its output, unless a decision
                         has it, the gradient of its output except for the last layer, undecided
                         saved activations, and temporaries */
    struct weft_hold *common;
    struct weft_weighed_unit *units;
    int32_t n_layers; /* layers with a decision */
    struct weft_weighed_layer *layers;
    int32_t n_items;
    struct weft_item *items;
};

enum { WEFT_OUTER_STATES = 2 };

/* Options of weighing. Parameters and gathers have dtype compute, gradients reduce, sharded
 * gradients accumulate. Moments are fp32, as is the master that exists if compute is not f32.
 * base_bytes is a common hold. weft_weights_create returns WEFT_E_DATA when a sum overflows. */
struct weft_weigh_options {
    struct weft_batch batch;
    enum weft_dtype reduce, accumulate;
    int32_t n_moments; /* of the optimizer: weft_config_moments */
    bool means;        /* one second moment a tensor: weft_config_means */
    bool outer;        /* with an anchor and a momentum of averages: weft_config_outer */
    int64_t base_bytes;
    int64_t staging_bytes;              /* of communicators; a common hold, as is base_bytes */
    int64_t kept_bytes;                 /* of checkpoints in host memory; the same; 0: none */
    const struct weft_profile *profile; /* has the layers' scratch; NULL: none */
    int state_keeps;                    /* a bit for each enum weft_keep; 0: only the device */
    int saved_locations; /* of saved activations: a bit for each enum weft_location; 0: only the
                            device */
    int input_locations; /* of layers' inputs: a bit for each enum weft_location; 0: only the device
                          */
    int parameter_locations; /* of shards: a bit for each enum weft_location; 0: only the device */
    const uint8_t *recomputes; /* [n_layers]: a bit for each enum weft_recompute; NULL: none */
    /* Least bytes of a block of state or saved activations on its way to the host or back; 0: such
     * copies go in one block. */
    int64_t copy_block_bytes;
    struct weft_ring ring; /* saturates the disk, for any model; no lanes without a disk */
    const struct weft_target *target; /* the runtime that holds the memory; NULL: Weft */
    bool hybrid;  /* units may have hsdp and nodes: shards has several nodes of several ranks */
    bool central; /* units may have central */
    int64_t foreach_bytes, loop_bytes; /* temporaries of PyTorch's update: of an own element, and of
                                          one of the largest layer */
    bool reduce_copies;                /* a reduction copies its input */
    bool pools;       /* PyTorch's allocator keeps memory by stream: weigh_flat.c */
    int32_t ahead;    /* units before its use that a unit is gathered at most; 0: any */
    bool prefetches;  /* in backward at least one before */
    const bool *late; /* [n_layers]: units by first layer that reduce at the end; NULL: none more */
};

/* A layer's buffers. Its temporaries begin with the profile's scratch, rounded up to
 * WEFT_ARENA_ALIGN_BYTES. The pool gets its key. */
WEFT_MUST_USE enum weft_status weft_weigh_layer_work(const struct weft_weigh_options *options,
                                                     const struct weft_layer *layer,
                                                     struct weft_pool *pool,
                                                     struct weft_layer_work *out,
                                                     struct weft_error *err);

/* Blocks in which a unit's state goes to the host and back, for a rank that holds `elements` of it;
 * and a layer's saved activations. They are equal, a multiple of the arena's alignment in each
 * buffer, at least copy_block_bytes, and at most WEFT_MOST_COPY_BLOCKS. */
enum { WEFT_MOST_COPY_BLOCKS = 16 };
int32_t weft_weigh_state_blocks(const struct weft_weigh_options *options, int64_t elements);
int32_t weft_weigh_saved_blocks(const struct weft_weigh_options *options, int64_t saved_bytes);

/* The ring of a disk's blocks, for the largest sharded unit; and the tier that holds it. */
struct weft_ring weft_weigh_ring(const struct weft_weigh_options *options,
                                 const struct weft_shards *shards);
int32_t weft_weigh_staging_tier(const struct weft_weigh_options *options);

/* Locations that state may have: a bit for each enum weft_location. */
int weft_weigh_state_locations(const struct weft_weigh_options *options);

/* Locations that a plan moves bytes to: state, saved activations, inputs or parameters. */
int weft_weigh_moved_locations(const struct weft_weigh_options *options);
/* Locations in use: the same, and the host's memory if checkpoints are kept there. */
int weft_weigh_locations(const struct weft_weigh_options *options);

/* The tier of a location. Tier 0 is the device; the other locations in use follow. */
int32_t weft_weigh_tier(const struct weft_weigh_options *options, enum weft_location location);

WEFT_MUST_USE enum weft_status weft_weights_create(const struct weft_model *model,
                                                   const struct weft_shards *shards,
                                                   const struct weft_period *period,
                                                   const struct weft_weigh_options *options,
                                                   struct weft_weights **out,
                                                   struct weft_error *err);
void weft_weights_destroy(struct weft_weights *weights);

/* The unit's strategies, as bits k, with one of the policies (bit p). */
uint64_t weft_weighed_strategies(const struct weft_weighed_unit *unit, uint32_t policies);

/* Bytes of the record that ranks sum at the end of a step, and of their sum. */
int64_t weft_weigh_record_bytes(const struct weft_weigh_options *options,
                                const struct weft_model *model);

/* Bytes that an update on the host reads and writes for an element. */
int64_t weft_weigh_update_bytes(const struct weft_weigh_options *options);

/* Rounds up to WEFT_ARENA_ALIGN_BYTES. */
int64_t weft_arena_round(int64_t bytes);

#endif
