/* SPDX-License-Identifier: Apache-2.0 */
/* A profile is the times of a machine: layers, collectives by size, optimizer and norm, and the
 * base memory. runtime/measure measures it, or it is analytic, computed from the cluster's figures.
 * A measured profile overrides each part that it has. */
#ifndef WEFT_SPEC_PROFILE_PROFILE_H
#define WEFT_SPEC_PROFILE_PROFILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/lanes.h"
#include "base/pool.h"
#include "base/status.h"
#include "base/text.h"
#include "spec/config.h"
#include "spec/profile/curve.h"
#include "spec/profile/network.h"
#include "spec/profile/origin.h"
#include "spec/profile/tiers.h"
#include "spec/ways.h"

/* Bytes of the record that ranks sum at the end of a step (norm bins, loss, flags) in agree_ns. The
 * record of runtime/exec fits into it. */
enum { WEFT_AGREE_BYTES = 8192 };
/* Bytes that ranks sum for each tensor of a unit in lamb's update: exact squared lengths of its
 * parameters and of its step. That takes agree_ns too. */
enum { WEFT_TENSOR_NORMS_BYTES = 320 };
/* Bytes that the record has besides for each tensor of the model, if the optimizer has one second
 * moment a tensor: the exact sum of squares of its gradient, which ranks sum, and its divisor. */
enum { WEFT_TENSOR_SQUARES_BYTES = 160, WEFT_TENSOR_DIVISOR_BYTES = 4 };
static inline int64_t weft_record_bytes(int32_t n_tensors, bool means)
{
    const int64_t of_tensor = WEFT_TENSOR_SQUARES_BYTES + WEFT_TENSOR_DIVISOR_BYTES;
    return WEFT_AGREE_BYTES + (means ? n_tensors * of_tensor : 0);
}

struct weft_layer_times {
    const char *key; /* weft_layer_key; or the name of one layer of the config */
    bool is_name;    /* the latter: times of that layer alone, at the config's micro-batch */
    int64_t forward_ns, backward_ns;
    /* By level of recomputation: backward then includes restoring. `recomputes` has a bit for each
     * level with times; the others are 0. */
    int recomputes;
    struct weft_level_times {
        int64_t forward_ns, backward_ns;
        /* In a pass of all micro-steps through a group of layers (plan.micro_step_order): the first
         * one, next to collectives of other passes, and the mean of later ones. Measured in groups
         * of one layer; those of several differ by the cache alone. 0: not measured. */
        struct weft_pass_times {
            int64_t forward_ns, backward_ns;
        } pass_first, pass_later;
    } levels[WEFT_RECOMPUTE_COUNT]; /* of NONE only the pass's times */
    /* Scratch of the back end's kernels, the start of the layer's temporaries. 0 on a CPU. */
    int64_t forward_scratch_bytes, backward_scratch_bytes;
};

/* Base memory of runs with one micro-batch. */
struct weft_profile_base {
    int64_t micro_batch, bytes;
};

struct weft_profile {
    struct weft_pool pool;
    const char *program;               /* version that is written; NULL: none */
    const char *source;                /* "analytic" or "measured", and ", emulated link" for one */
    const char *machine;               /* for people: device, cores, link */
    const char *device;                /* measured device, or that of the figures; NULL: "cpu" */
    struct weft_profile_origin origin; /* of layer times */
    int64_t ranks;
    int32_t n_layers; /* distinct keys */
    struct weft_layer_times *layers;
    struct weft_curve collectives[WEFT_COLLECTIVE_COUNT]; /* by full (gathered) bytes */
    struct weft_curve update;                             /* by elements that one rank updates */
    const char *kernels;  /* algorithm of products for these layers; NULL: not known, or analytic */
    const char *products; /* choices of that algorithm (weft_nn_choices); NULL: none */
    const char
        *updates; /* weft_config_updates of the timed updates; NULL: not known, or analytic */
    struct weft_curve norm; /* by elements that one rank owns */
    /* Rates of compute and of a network lane while both run. 0: not measured; measured layer times
     * then include the slow-down. */
    struct weft_rates rates;
    struct weft_profile_tiers tiers;     /* offload tiers */
    struct weft_profile_network network; /* pairs of hosts, and levels; of equal ranks */
    int64_t agree_ns;   /* time of summing norm, loss and flags over ranks; -1: not measured */
    int64_t base_bytes; /* of a rank, outside the arena; -1: not measured */
    int32_t n_bases;    /* micro-batches with a base of their own; others have base_bytes */
    struct weft_profile_base *bases;
    int64_t staging_bytes; /* of a rank's communicator, outside base_bytes; as much for each lane
                              and group of ranks; 0: none */
    struct weft_hash hash; /* of the written form without the program's version */
};

/* The link between nodes: alpha joins alpha_per_node for each node after the second. */
struct weft_link weft_cluster_inter(const struct weft_cluster *cluster);

/* Appends the link of a config's ranks: "an emulated link of 50.0 us and 1.00 GB/s", or "the
 * machine's own link". */
void weft_profile_link(const struct weft_config *config, struct weft_text *out);

/* Computes times from the cluster's device and link figures: flops / (peak * efficiency), and at
 * least moved bytes / memory bandwidth. WEFT_E_DATA lists all missing figures.
 *
 * A collective of B bytes over N ranks is a ring through all ranks. Every rank sends B (N-1)/N, and
 * all levels of links are used at the same time, so the slowest level governs:
 *
 *     max over levels l of [ alpha_l + B (N-1)/N / bandwidth_l ],   AllReduce twice that,
 *
 * with l the links within nodes (ranks_per_node > 1) and between them (ranks > ranks_per_node). If
 * there are both, partial sums cross nodes in fp32: a reduction of 16-bit gradients has 2 B there.
 * bandwidth_l is the bus bandwidth of nccl-tests, all rails of a node together, so it does not
 * depend on N. alpha between nodes is that of weft_cluster_inter. */
WEFT_MUST_USE enum weft_status weft_profile_analytic(const struct weft_config *config,
                                                     struct weft_profile **out,
                                                     struct weft_error *err);

/* Resolves the config's profile (cluster.profile) with the analytic one: each part comes from the
 * first that has it. A profile of other ranks has no collectives for the config. WEFT_E_DATA when a
 * part has no analytic time either (the cure is `weft profile`). WEFT_E_DATA also when it has layer
 * times without rates and the config has cluster.contention, because these times include it. */
WEFT_MUST_USE enum weft_status weft_profile_resolve(const struct weft_config *config,
                                                    struct weft_profile **out,
                                                    struct weft_error *err);

/* True if the named profile is of other ranks and the config lacks links, so collectives must be
 * measured. False for an unreadable profile, which weft_profile_resolve reports. */
bool weft_profile_lacks_network(const struct weft_config *config);
/* The named profile with collectives and base of `network`, measured with the config's ranks, and
 * the larger load of both. It is `network` alone if that has times of the config's layers and
 * optimizer, and the named profile lacks some. */
WEFT_MUST_USE enum weft_status weft_profile_with_network(const struct weft_config *config,
                                                         const struct weft_profile *network,
                                                         struct weft_profile **out,
                                                         struct weft_error *err);

/* The same for a profile without a file. A resolved profile stays as it is. */
WEFT_MUST_USE enum weft_status weft_profile_resolve_measured(const struct weft_config *config,
                                                             const struct weft_profile *measured,
                                                             struct weft_profile **out,
                                                             struct weft_error *err);

/* The same for memory alone: a time without figures is 0, not an error. Appends the missing figures
 * to `missing`. A profile of other ranks gives its base and, without links, its curves, from which
 * block sizes follow. */
WEFT_MUST_USE enum weft_status weft_profile_resolve_for_memory(const struct weft_config *config,
                                                               struct weft_profile **out,
                                                               struct weft_text *missing,
                                                               struct weft_error *err);

extern const struct weft_key_table weft_profile_keys;
WEFT_MUST_USE enum weft_status weft_profile_parse(const char *bytes, size_t length,
                                                  const char *source, struct weft_profile **out,
                                                  struct weft_error *err);
/* Base memory of a run with this micro-batch; -1: not measured. */
int64_t weft_profile_base_of(const struct weft_profile *profile, int64_t micro_batch);
/* Copies the profile with this base for all micro-batches. */
WEFT_MUST_USE enum weft_status weft_profile_with_base(const struct weft_profile *profile,
                                                      int64_t base_bytes, struct weft_profile **out,
                                                      struct weft_error *err);
void weft_profile_write(const struct weft_profile *profile, struct weft_text *out);

/* Copies the profile with its base as that of one micro-batch. */
WEFT_MUST_USE enum weft_status weft_profile_of_split(const struct weft_profile *profile,
                                                     int64_t micro_batch, struct weft_profile **out,
                                                     struct weft_error *err);

/* Joins *profile with a measurement of the same machine with another micro-batch: the times, the
 * choices and the bases of both, the larger base_bytes, and otherwise the parts of *profile, which
 * is NULL before the first measurement. It owns `measured`. After a failure *profile stays. */
WEFT_MUST_USE enum weft_status weft_profile_add(struct weft_profile **profile,
                                                struct weft_profile *measured,
                                                struct weft_error *err);
void weft_profile_destroy(struct weft_profile *profile);

/* Times by key; NULL: none. */
const struct weft_layer_times *weft_profile_layer(const struct weft_profile *profile,
                                                  const char *key);
/* Times of a layer, by its name or otherwise by its key; NULL: none. */
const struct weft_layer_times *weft_profile_times(const struct weft_profile *profile,
                                                  const char *name, const char *key);

/* True if a resolved profile has measured collectives. */
static inline bool weft_profile_timed_network(const struct weft_profile *profile)
{
    return profile->origin.machine != NULL && profile->origin.ranks == 0;
}

/* The times at a level; NULL if the profile has none. */
const struct weft_level_times *weft_layer_times_at(const struct weft_layer_times *times,
                                                   enum weft_recompute level);

/* The times of a micro-step in a pass through a group of layers; NULL: none. */
const struct weft_pass_times *weft_layer_times_in_pass(const struct weft_layer_times *times,
                                                       enum weft_recompute level, bool later);

/* The smallest full size (bytes) of an AllGather that reaches `efficiency` of the best bandwidth in
 * the curve, at least 1. 4 MiB for an empty curve (one rank). */
int64_t weft_profile_block_bytes(const struct weft_profile *profile, double efficiency);

#endif
