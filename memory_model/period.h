/* A period is the compute stream of one training step as a sequence of slots:
 *
 *     U (one a trainable unit, in order of first use)  fill  F1..FL  BL..B1  drain  norm
 *
 * U applies the previous step's gradients. `fill` and `drain` compute nothing: the one lets gathers
 * for the first forward, the other the last reductions, happen before anything else can.
 * With clipping by global norm nothing crosses the period's ends but slices. Slot numbers are the
 * one clock of planning: a slot's start happens after all that its launch waits for. */
#ifndef WEFT_MEMORY_MODEL_PERIOD_H
#define WEFT_MEMORY_MODEL_PERIOD_H

#include <stdint.h>

#include "base/pool.h"
#include "base/status.h"
#include "shard/shard.h"
#include "spec/model.h"

enum weft_slot_kind {
    WEFT_SLOT_UPDATE, /* index: unit */
    WEFT_SLOT_FILL,
    WEFT_SLOT_FORWARD,  /* index: layer */
    WEFT_SLOT_BACKWARD, /* index: layer */
    WEFT_SLOT_DRAIN,
    WEFT_SLOT_NORM,
    WEFT_SLOT_KIND_COUNT
};
const char *weft_slot_kind_name(enum weft_slot_kind kind); /* "update", "fill", ... */

struct weft_slot {
    enum weft_slot_kind kind;
    int32_t index; /* unit or layer; -1 for others */
};

struct weft_period {
    struct weft_pool pool;
    int32_t n_slots;
    struct weft_slot *slots;
    int32_t n_units;
    const int32_t *update;         /* by unit: its U slot, -1 for a frozen unit */
    const int32_t *n_uses;         /* by unit */
    const int32_t *const *uses;    /* by unit: slots that read its parameters, increasing */
    const int32_t *first_gradient; /* by unit: first backward slot that adds to it; -1 if frozen */
    const int32_t *last_gradient;
    int32_t fill, drain, norm;
    const int32_t *forward;  /* by layer: slot */
    const int32_t *backward; /* by layer */
};

WEFT_MUST_USE enum weft_status weft_period_create(const struct weft_model *model,
                                                  const struct weft_shards *shards,
                                                  struct weft_period **out, struct weft_error *err);
void weft_period_destroy(struct weft_period *period);

#endif
