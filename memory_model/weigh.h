/* To weigh is to say what every unit, under every strategy, holds in every slot: the planning side
 * of the memory model, in closed form. A unit's strategies are a policy and a way to keep its
 * optimizer state and master: a home, and whether it is updated there; those of a layer whose
 * activations may be away are homes of what it saves for its backward. A hold is bytes of one
 * category that live from the start of slot `first` to the end of slot `last` (wrapping round the
 * period's end when first > last). What depends on when a block moves is an item with a staircase.
 *
 * The other side is the lowering in program/, which finds the same bytes from a program's
 * happens-before order; a test holds the two to each other. */
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
#include "shard/shard.h"
#include "spec/layer.h"
#include "spec/profile/profile.h"
#include "spec/tiers.h"

struct weft_hold {
    enum weft_category category;
    int32_t first, last; /* slots, inclusive; first > last wraps */
    int64_t bytes;
    int32_t tier; /* of the problem; 0 is the device's */
};

/* Every buffer starts at a multiple of this in the arena; sizes are rounded up to it here, so that
 * the rows count what is used. */
enum { WEFT_ARENA_ALIGN_BYTES = 256 };
/* What the host's memory gives out: a unit's buffers of state there, and what a layer saved, are
 * rounded up to it, one by one. */
enum { WEFT_HOST_PAGE_BYTES = 4096 };

/* The policies that make sense for a unit, in their order. A unit that fsdp would never release
 * (its uses are neighbours) has no fsdp; frozen units have no gradient and no state under any. What
 * trains has no dp when gradients are reduced every micro-step: it would need a second full
 * gradient to add to, and zero1 moves less and holds less. Each of them with every way in which
 * its state may be kept, the device first. State with another home that is updated on the device is
 * there in its update, and before and behind that while it is moved. State that is updated on the
 * host is never on the device: the host has moments, an fp32 master whatever the compute dtype, the
 * reduced gradient and the rounded parameters all the time. Under dp it is not updated there, as
 * each rank would update all of it. */
struct weft_weighed_unit {
    int32_t n_strategies;
    struct weft_weighed_strategy {
        enum weft_policy policy;
        enum weft_keep keep; /* of its state */
        int32_t n_holds;
        struct weft_hold *holds;
    } strategies[WEFT_POLICY_COUNT * WEFT_KEEP_COUNT];
};

/* A layer that saves something for its backward, which other layers run before: what it saved may
 * be away, by home. On the host it has its bytes there all the time, and on the device in its
 * forward and backward alone, and while it is moved: down until the forward of its micro-step has
 * ended, up from then on. */
struct weft_weighed_layer {
    int32_t layer;
    int64_t saved_bytes;
    int32_t n_strategies;
    struct weft_weighed_saved {
        enum weft_home home;
        int32_t n_holds;
        struct weft_hold *holds;
    } strategies[WEFT_HOME_COUNT];
};

struct weft_weights {
    struct weft_pool pool;
    int32_t n_slots, n_units;
    int32_t n_common; /* base, the ring, the agree records, and of every micro-step input, targets,
                         and of every layer its output, the gradient of its output (the last layer
                         has none), what it saves if that is decided of no layer, and its
                         temporaries: held by every plan. All flow and saves are activations */
    struct weft_hold *common;
    struct weft_weighed_unit *units;
    int32_t n_layers; /* of which something is decided */
    struct weft_weighed_layer *layers;
    int32_t n_items;
    struct weft_item *items;
};

/* Dtypes as in planning-problem.md: parameters and gathers in compute, gradients in reduce (sharded
 * gradients in accumulate), the optimizer's moments in fp32, and an fp32 master beside the slice
 * when compute is not f32. base_bytes becomes a common hold. WEFT_E_DATA when a sum overflows. */
struct weft_weigh_options {
    struct weft_batch batch;
    enum weft_dtype reduce, accumulate;
    int32_t n_moments; /* of the optimizer: weft_config_moments */
    int64_t base_bytes;
    int state_keeps;       /* a bit for each enum weft_keep; 0: the device alone */
    int saved_homes;       /* of what layers save: a bit for each enum weft_home; 0 likewise */
    struct weft_ring ring; /* that saturates the disk, whatever the model; no lanes without one */
};

/* The ring of a disk's blocks, by the largest unit as it is where it is sharded; and in which tier
 * it lies. */
struct weft_ring weft_weigh_ring(const struct weft_weigh_options *options,
                                 const struct weft_shards *shards);
int32_t weft_weigh_staging_tier(const struct weft_weigh_options *options);

/* Homes that state may have: a bit for each enum weft_home. */
int weft_weigh_state_homes(const struct weft_weigh_options *options);

/* Tiers are the device, and behind it the other homes that there are: which one a home is. */
int32_t weft_weigh_tier(const struct weft_weigh_options *options, enum weft_home home);

WEFT_MUST_USE enum weft_status weft_weights_create(const struct weft_model *model,
                                                   const struct weft_shards *shards,
                                                   const struct weft_period *period,
                                                   const struct weft_weigh_options *options,
                                                   struct weft_weights **out,
                                                   struct weft_error *err);
void weft_weights_destroy(struct weft_weights *weights);

/* Which of a unit's strategies have one of the policies (bit p), keep state in one of the ways
 * (a bit for each enum weft_keep): bit k. */
uint64_t weft_weighed_strategies(const struct weft_weighed_unit *unit, uint32_t policies);
uint64_t weft_weighed_keeps(const struct weft_weighed_unit *unit, uint32_t keeps);

/* Bytes that an update of an element reads and writes on the host. */
int64_t weft_weigh_update_bytes(const struct weft_weigh_options *options);

/* Rounded up to WEFT_ARENA_ALIGN_BYTES. */
int64_t weft_arena_round(int64_t bytes);

#endif
