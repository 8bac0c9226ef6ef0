/* SPDX-License-Identifier: Apache-2.0 */
/* A period is the compute stream of one training step as a sequence of slots. With clipping by the
 * global norm, m micro-steps make
 *
 *     U (one a trainable unit, in order of first use)  fill  (F1..FL  BL..B1) x m  drain  norm
 *
 * U applies the previous step's gradients. `fill` and `drain` compute nothing: `fill` gives time to
 * gathers for the first forward, `drain` to the last reductions. Only slices cross the period's
 * ends.
 *
 * Without clipping a unit is updated as soon as its own gradient is reduced, so reductions may run
 * into the next forward. That period is rotated: it begins after the last micro-step's forward,
 *
 *     BL..B1 of the last  drain  U and fill among F1..FL of the first  (BL..B1 F1..FL) x (m - 1)
 *     norm
 *
 * so activations cross its ends and no block's window does. A unit's U comes `update_ahead` layers
 * before its first use, `fill` directly before F1. Norm computes nothing: ranks agree on loss and
 * flags there. Slot numbers are the one clock of planning: the start of a slot happens after
 * everything that its launch waits for.
 *
 * If an update ends in an agreement of all ranks (lamb: lengths of whole tensors), the agreement
 * waits for all earlier work of the lane, and compute waits for the agreement. So that period is
 * not rotated, and nothing is gathered before `fill`. The lane is then empty, and each agreement
 * costs only its own time.
 *
 * If state may be offloaded, a period that is not rotated begins with `open`, which computes
 * nothing: the state of the first update arrives there. With clipping, too, U may then come
 * `update_ahead` layers before its unit's first use, among F1..FL of the first micro-step. So
 * copies of state overlap with compute.
 *
 * Micro-steps may also take turns by groups of layers (`layers`). All of them run forward through a
 * group before the next group, and through the last group forward and backward at a time. Then all
 * run backward through each earlier group. A group's pass uses one gathered copy of a unit:
 *
 *     (F1..Fk) x m  ...  (Fj..FL  BL..Bj) x m  ...  (Bk..B1) x m
 *
 * Micro-steps rise in each pass, so sums have the order of micro-step after micro-step. Only a
 * tensor of several layers gets its terms layer by layer.
 *
 * A target may wait for all reductions at the end of each backward (spec/target.h, drains). Each
 * micro-step but the last then ends in a drain of its own.
 *
 * In a delayed period an update applies the gradient of the step before the last one. It is
 * rotated, with clipping too. A unit's U comes directly after the unit's last backward, and frees
 * the reduced gradient for the reduction that follows. That reduction may run through the next
 * forward, up to the norm, so no slot waits for it. The reduced gradient lasts from step to step.
 *
 * A rotated period may also update in its backward (`update_after`). U applies the gradient of its
 * own step, and comes after the last backward of the layer so many layers before the unit's first.
 * The reduction ends until then, and the reduced gradient ends with U. Units without such a layer
 * are updated after the drain, as above. A later gradient that is not finite cannot stop an
 * earlier U.
 */
#ifndef WEFT_MEMORY_MODEL_PERIOD_H
#define WEFT_MEMORY_MODEL_PERIOD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/pool.h"
#include "base/status.h"
#include "shard/shard.h"
#include "spec/config.h"
#include "spec/model.h"

enum weft_slot_kind {
    WEFT_SLOT_UPDATE, /* index: unit */
    WEFT_SLOT_FILL,
    WEFT_SLOT_FORWARD,  /* index: layer */
    WEFT_SLOT_BACKWARD, /* index: layer */
    WEFT_SLOT_DRAIN,
    WEFT_SLOT_NORM,
    WEFT_SLOT_OPEN,
    WEFT_SLOT_KIND_COUNT
};
const char *weft_slot_kind_name(enum weft_slot_kind kind); /* "update", "fill", ... */

struct weft_slot {
    enum weft_slot_kind kind;
    int32_t index; /* a unit or a layer; otherwise -1 */
    int32_t micro; /* FORWARD, BACKWARD, and a DRAIN that is not the last: micro-step of its step,
                      from 0; otherwise 0 */
    bool syncs;    /* of a problem for a host that runs ahead: the host waits for a FORWARD, and for
                      a BACKWARD if the layer recomputes */
};

/* The form of a step's period. Plans with different rules round differently or hold different
 * bytes, so a plan names its rule. */
struct weft_period_rule {
    int32_t n_micro;      /* micro-steps a step, at least 1 */
    int32_t group;        /* micro-steps of a round, which divide n_micro: their gradients are added
                             up, and reduced once */
    int32_t layers;       /* of a group that all micro-steps run through before the next group; 0:
                             micro-step after micro-step */
    int32_t idle;         /* ranks, the last ones, without a group in the last of several rounds */
    bool rotated;         /* without clipping */
    int32_t update_ahead; /* layers; rotated: at least 1; 0: every U before fill */
    int32_t update_after; /* layers of backward from a unit's last one to its U; rotated; 0: every U
                             follows the drain */
    bool agreed_updates;  /* each update ends in an agreement; excludes rotated */
    bool offloaded;       /* state may be offloaded; excludes agreed updates */
    bool whole_copies;    /* state and saved activations are copied in one block each */
    bool drains;          /* each micro-step ends in a drain; excludes rotated */
    bool delayed;         /* updates apply the gradient before the last; rotated, one round */
    int64_t every;        /* steps between averages over nodes, which step on their own; 0: none */
    bool gossip;          /* each average is of a node and one neighbour */
    bool means;           /* one second moment a tensor, of squares that ranks sum */
    /* Both belong to targets with flat buffers (memory_model/weigh_flat.c). */
    bool late;           /* all reductions are launched in the last drain */
    int32_t more_inputs; /* inputs of reductions that are held at once, beyond the first */
};

/* True if it begins with an open slot. */
static inline bool weft_period_opens(const struct weft_period_rule *rule)
{
    return rule->offloaded && !rule->rotated;
}

bool weft_period_rule_same(const struct weft_period_rule *a, const struct weft_period_rule *b);

/* True if its norm slot computes the norm of all reduced gradients. */
static inline bool weft_period_norms(const struct weft_period_rule *rule)
{
    return !rule->rotated || rule->delayed;
}

/* True if such a rule is possible. */
bool weft_period_is_rule(const struct weft_period_rule *rule);

struct weft_period {
    struct weft_pool pool;
    struct weft_period_rule rule;
    int32_t n_slots;
    struct weft_slot *slots;
    int32_t n_units, n_layers;
    const int32_t *update; /* by unit: its U slot, -1 for a frozen unit */
    const int32_t *n_uses; /* by unit */
    const int32_t *const
        *uses; /* by unit: slots that read its parameters, in order of time within a step; in a
                  rotated period the last ones are in its first slots */
    const int32_t *first_gradient; /* [micro * n_units + unit]: first backward slot that adds to its
                                      gradient; -1 if frozen */
    const int32_t *last_gradient;
    int32_t fill, drain, norm;
    const int32_t *forward;  /* [micro * n_layers + layer]: slot */
    const int32_t *backward; /* likewise */
};

/* WEFT_E_INTERNAL for an impossible rule, WEFT_E_DATA for more slots than can be numbered. */
WEFT_MUST_USE enum weft_status weft_period_create(const struct weft_model *model,
                                                  const struct weft_shards *shards,
                                                  const struct weft_period_rule *rule,
                                                  struct weft_period **out, struct weft_error *err);
void weft_period_destroy(struct weft_period *period);

/* The kind and index of slot `at` of the frame, the slots that are not U, for so many layers; `at`
 * is below weft_period_frame. weft_period_takes_update gives the places of U. */
struct weft_slot weft_period_form(const struct weft_period_rule *rule, int32_t n_layers,
                                  int32_t at);
/* The layers of a group, n_layers if one micro-step follows another; and the first layer of the
 * last group. */
int32_t weft_period_layers(const struct weft_period_rule *rule, int32_t n_layers);
int32_t weft_period_turn(const struct weft_period_rule *rule, int32_t n_layers);
/* Whether two slots of layers, of one step, are in one pass of all micro-steps. False if one
 * micro-step follows another. */
bool weft_period_in_one_pass(const struct weft_period *period, int32_t slot, int32_t other);
/* The number of slots that are not U. */
int64_t weft_period_frame(const struct weft_period_rule *rule, int32_t n_layers);
/* True if a U may come directly before slot `at` of the frame. */
bool weft_period_takes_update(const struct weft_period_rule *rule, int32_t n_layers, int32_t at);

/* Micro-steps with offloaded activations of one layer on the host at once: one, or all if they take
 * turns by layers. */
static inline int32_t weft_period_places(const struct weft_period_rule *rule)
{
    return rule->layers > 0 ? rule->n_micro : 1;
}

/* Rounds of a step: reductions of a unit. */
static inline int32_t weft_period_reductions(const struct weft_period_rule *rule)
{
    return rule->n_micro / rule->group;
}

/* The last micro-step of a round; its gradient completes the sum that the round reduces. */
static inline int32_t weft_period_round_end(const struct weft_period_rule *rule, int32_t round)
{
    return (round + 1) * rule->group - 1;
}

/* The cadence by name: STEP for one round, otherwise MICRO_STEP, also if a round has several. */
static inline enum weft_cadence weft_period_cadence(const struct weft_period_rule *rule)
{
    return rule->group == rule->n_micro ? WEFT_CADENCE_STEP : WEFT_CADENCE_MICRO_STEP;
}

#endif
