/* SPDX-License-Identifier: Apache-2.0 */
/* Shards define the owner of each element of a model. Parameters are grouped into units, one flat
 * buffer each, as in FSDP. A unit is cut into equal blocks, each moved by one collective. A block
 * is cut into one equal slice a rank. Rank r owns slice r of every block: its shard of a unit is
 * n_blocks slices, back to back.
 *
 *     unit:   | block 0                     | block 1                     | ...
 *     block:  | slice 0 | slice 1 | slice N-1 |
 *
 * Element e of a unit lies in block e / (N * slice_elements), under every policy. Under hsdp a
 * block has one slice for each rank of a node, of slices of all N ranks back to back. Each node has
 * all. Under nodes parameters have the slices of hsdp. State has one part of a slice: the ranks of
 * a place have the parts in the order of their nodes. */
#ifndef WEFT_SHARD_SHARD_H
#define WEFT_SHARD_SHARD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/pool.h"
#include "base/rank_group.h"
#include "base/status.h"
#include "shard/units.h"
#include "spec/model.h"

/* Every slice is a multiple of this many elements: at least 256 bytes in every dtype, so no
 * transfer and no piece of a buffer is misaligned. */
enum { WEFT_SLICE_ALIGN_ELEMENTS = 128 };
/* X(enumerator, name, aliases separated by '=', sharded state of a unit; the ranks that share its
 * parameters, and its state with the reduced gradient; whether it releases gathered parameters). */
#define WEFT_POLICY_MAP(X)                                                                         \
    X(DP, "dp", "NO_SHARD=ddp", "nothing: gradients are summed by AllReduce", NONE, NONE, false)   \
    X(ZERO1, "zero1", "", "the optimizer's state (ZeRO-1)", NONE, ALL, false)                      \
    X(SDP, "sdp", "SHARD_GRAD_OP=zero2", "the optimizer's state and gradients (ZeRO-2)", ALL, ALL, \
      false)                                                                                       \
    X(FSDP, "fsdp", "FULL_SHARD=zero3", "state, gradients and parameters (ZeRO-3)", ALL, ALL,      \
      true)                                                                                        \
    X(HSDP, "hsdp", "HYBRID_SHARD", "as fsdp, within a node; each node has a copy", NODE, NODE,    \
      true)                                                                                        \
    X(CENTRAL, "central", "", "nothing: rank 0 alone has the state, and sends out parameters",     \
      NONE, OWNER, false)                                                                          \
    X(NODES, "nodes", "", "state and gradients; parameters within a node", NODE, ALL, true)

enum weft_policy {
#define WEFT_POLICY_ENUMERATOR(id, name, aliases, text, parameters, state, releases)               \
    WEFT_POLICY_##id,
    WEFT_POLICY_MAP(WEFT_POLICY_ENUMERATOR)
#undef WEFT_POLICY_ENUMERATOR
        WEFT_POLICY_COUNT
};

const char *weft_policy_name(enum weft_policy policy);
const char *weft_policy_aliases(enum weft_policy policy);       /* separated by '=', "" for none */
const char *weft_policy_text(enum weft_policy policy);          /* the sharded state, for help */
bool weft_policy_read(const char *name, enum weft_policy *out); /* a name or an alias */

struct weft_policy_groups {
    enum weft_rank_group parameters, state;
    bool releases; /* between uses, which then gather again */
};
extern const struct weft_policy_groups weft_policy_groups[WEFT_POLICY_COUNT];

/* Policies that share parameters over the ranks of a group: bit p. */
uint32_t weft_policies_sharing(enum weft_rank_group parameters);

struct weft_unit {
    const char *name; /* after its layers: "h.3", "ln_f+head", "h.0+..+h.5"; or a tied tensor's
                         name; with whole layers that share tensors "wte&head" */
    int32_t n_tensors;
    const int32_t *tensors;   /* indices in the model, in order of offset */
    const int64_t *offsets;   /* offset of each tensor in the unit, in elements */
    int64_t elements;         /* of its tensors, without gaps */
    int64_t padded_elements;  /* n_blocks * ranks * slice_elements */
    int64_t trained_elements; /* of padded_elements, with a gradient and state: 0 of a frozen unit.
                                 Only units of whole layers have frozen parts */
    int32_t n_blocks;
    int64_t slice_elements;
    bool trainable;
    bool shares; /* its layers share a tensor, so each makes a part of one gradient */
    /* Layers that read it, in forward order. Each reads it in its forward, and in its backward if
     * reads_in_backward is true; an embedding's backward reads nothing. Every layer of a trainable
     * unit adds to its gradient in its backward slot. */
    int32_t n_layers;
    const int32_t *layers;
    const bool *reads_in_backward;
};

struct weft_shards {
    struct weft_pool pool;
    int64_t ranks;
    int64_t ranks_per_node; /* divides ranks; all ranks unless the caller sets it */
    int32_t n_units;
    struct weft_unit *units;      /* in order of first use */
    const int32_t *tensor_unit;   /* by tensor */
    const int64_t *tensor_offset; /* by tensor: its first element in its unit */
};

/* Makes the units of a model for `ranks` >= 1: one a layer, except that small neighbours may share
 * one. A tensor used by several layers is a unit of its own. Layers without parameters have no
 * unit, and trainable and frozen tensors never share one. WEFT_E_DATA when sizes overflow. The
 * caller destroys `out`. */
WEFT_MUST_USE enum weft_status weft_shards_create(const struct weft_model *model, int64_t ranks,
                                                  const struct weft_block_rule *rule,
                                                  struct weft_shards **out, struct weft_error *err);
void weft_shards_destroy(struct weft_shards *shards);

/* Lets each node have all units, shared by its ranks alone: ranks becomes ranks_per_node, and a
 * slice has the elements of as many slices as there are nodes. */
void weft_shards_split(struct weft_shards *shards);

/* Whether one rank owns a unit's state, sums its gradient and sends out its parameters. */
static inline bool weft_policy_is_central(enum weft_policy policy)
{
    return weft_policy_groups[policy].state == WEFT_GROUP_OWNER;
}

/* Whether a rank with a unit's state has all of it, and updates from the full gradient. */
static inline bool weft_policy_is_whole(enum weft_policy policy)
{
    return weft_policy_groups[policy].state == WEFT_GROUP_NONE || weft_policy_is_central(policy);
}

/* Whether each rank always has a unit's full parameters, and gathers new ones in place. */
static inline bool weft_policy_refreshes(enum weft_policy policy)
{
    return weft_policy_groups[policy].parameters == WEFT_GROUP_NONE &&
           weft_policy_groups[policy].state != WEFT_GROUP_NONE;
}

/* Ranks of a group that share a unit's elements. */
static inline int64_t weft_shards_members(const struct weft_shards *shards,
                                          enum weft_rank_group group)
{
    if (group == WEFT_GROUP_ALL) return shards->ranks;
    if (group == WEFT_GROUP_NODE) return shards->ranks_per_node;
    return group == WEFT_GROUP_ACROSS ? shards->ranks / shards->ranks_per_node : 1;
}

/* Whether a node has all parameters and a part of their state. It gathers the other nodes' updates
 * once a step. */
static inline bool weft_policy_crosses(enum weft_policy policy)
{
    return weft_policy_groups[policy].parameters == WEFT_GROUP_NODE &&
           weft_policy_groups[policy].state == WEFT_GROUP_ALL;
}

/* Ranks that share a unit's parameters under a policy: 1 if each has all. */
static inline int64_t weft_shards_holders(const struct weft_shards *shards, enum weft_policy policy)
{
    return weft_shards_members(shards, weft_policy_groups[policy].parameters);
}

/* Ranks that share a unit's state under a policy. */
static inline int64_t weft_shards_sharers(const struct weft_shards *shards, enum weft_policy policy)
{
    return weft_shards_members(shards, weft_policy_groups[policy].state);
}

/* Whether a rank keeps a shard of a unit's parameters, and gathers them for use. */
static inline bool weft_policy_gathers(enum weft_policy policy)
{
    return weft_policy_groups[policy].parameters != WEFT_GROUP_NONE;
}

/* A run of elements of one tensor within one block and, if `rank` >= 0, within that rank's slice.
 */
struct weft_piece {
    int32_t tensor;
    int64_t tensor_begin; /* its first element, in the tensor */
    int64_t unit_begin;   /* the same element, in the unit's full buffer */
    int64_t shard_begin;  /* the same element, in the rank's shard; == unit_begin when rank < 0 */
    int64_t count;
};

/* Steps through the pieces of a unit that `rank` owns, in order; through all pieces if rank is -1
 * (dp). Start with a zeroed cursor. Returns false at the end. */
struct weft_piece_cursor {
    int64_t block;   /* next block */
    int32_t tensor;  /* next tensor in the unit */
    int64_t element; /* next element of the unit */
};
bool weft_piece_next(const struct weft_shards *shards, const struct weft_model *model, int32_t unit,
                     int64_t rank, struct weft_piece_cursor *cursor, struct weft_piece *out);

#endif
