/* A profile is what the machine said: times of layers, of collectives by size, of the optimizer
 * and the norm, and the base memory. It is measured by runtime/measure, or analytic, computed from
 * the cluster's figures; a measured profile overrides each part that it has. */
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
#include "spec/profile/origin.h"
#include "spec/profile/tiers.h"

/* Bytes of the record that ranks sum at the step's end (norm bins, loss, flags); agree_ns is its
 * time. runtime/exec fits its record in it. */
enum { WEFT_AGREE_BYTES = 8192 };
/* Bytes that ranks sum for each tensor of a unit while lamb updates it: the squared lengths of its
 * parameters and of its step, exactly. agree_ns stands for the time of that too. */
enum { WEFT_TENSOR_NORMS_BYTES = 320 };

enum weft_collective {
    WEFT_ALL_GATHER,
    WEFT_REDUCE_SCATTER,
    WEFT_ALL_REDUCE,
    WEFT_COLLECTIVE_COUNT
};
const char *weft_collective_name(enum weft_collective kind); /* "all_gather" ... */

struct weft_layer_times {
    const char *key; /* weft_layer_key */
    int64_t forward_ns, backward_ns;
};

struct weft_profile {
    struct weft_pool pool;
    const char *source;  /* "analytic" or "measured", and ", emulated link" if it is one */
    const char *machine; /* for people: device, cores, link ("emulated link ...") */
    const char *device;  /* that was measured, or that figures are of; NULL: "cpu" */
    struct weft_profile_origin origin; /* of the times of layers */
    int64_t ranks;
    int32_t n_layers; /* distinct keys */
    struct weft_layer_times *layers;
    struct weft_curve collectives[WEFT_COLLECTIVE_COUNT]; /* by full (gathered) bytes */
    struct weft_curve update;                             /* by elements that one rank updates */
    const char *kernels;    /* way of products of those layers; NULL: not said, or analytic */
    const char *products;   /* its choices, where it has some (weft_nn_choices); or NULL */
    const char *updates;    /* that were timed: weft_config_updates; NULL: not said, or analytic */
    struct weft_curve norm; /* by elements that one rank owns */
    /* Rates of compute and of a lane of the network while both run. 0: it has not got them, and
     * measured times of layers hold what communication beside them costs. */
    struct weft_rates rates;
    struct weft_profile_tiers tiers; /* that may be used beside the device's memory */
    int64_t agree_ns;                /* sum of norm, loss and flags over ranks */
    int64_t base_bytes;              /* of a rank, outside the arena */
                                     /* -1 in either: a measured profile that has not got it */
    struct weft_hash hash;           /* of the written form but the program's version */
};

/* Times from the cluster's device and link figures (clusters.md: flops / (peak * efficiency), no
 * less than moved bytes / memory bandwidth). WEFT_E_DATA naming all missing figures.
 *
 * A collective of B bytes over N ranks is a ring through all of them, in which every rank passes on
 * B (N-1)/N and each level of links is crossed at the same time, so that the slower one governs:
 *
 *     max over levels l of [ alpha_l + B (N-1)/N / bandwidth_l ],   AllReduce twice that,
 *
 * with l the links within nodes (ranks_per_node > 1) and between them (ranks > ranks_per_node), and
 * bandwidth_l as nccl-tests report it (bus bandwidth: of all rails of a node together, so that it
 * does not depend on N). clusters.md measured it so over 2 to 4 nodes; alpha between nodes grows
 * with their number and is a figure of each cluster. */
WEFT_MUST_USE enum weft_status weft_profile_analytic(const struct weft_config *config,
                                                     struct weft_profile **out,
                                                     struct weft_error *err);

/* The profile that a config names (cluster.profile) over the analytic one: each part from the
 * first that has it. A profile of other ranks has no collectives for these. WEFT_E_DATA when a part
 * has no analytic time either (saying to run `weft profile`), or when it has times of layers and no
 * rates, and the config has cluster.contention: these times hold it. */
WEFT_MUST_USE enum weft_status weft_profile_resolve(const struct weft_config *config,
                                                    struct weft_profile **out,
                                                    struct weft_error *err);

/* Whether the named profile is of other ranks and the config does not give the links: times of
 * collectives must be measured. False of a profile that cannot be read, which resolve tells. */
bool weft_profile_lacks_network(const struct weft_config *config);
/* The named profile with collectives and base of `network`, measured with the config's ranks. */
WEFT_MUST_USE enum weft_status weft_profile_with_network(const struct weft_config *config,
                                                         const struct weft_profile *network,
                                                         struct weft_profile **out,
                                                         struct weft_error *err);

/* The same of a profile that is no file's, yet or any more. What is resolved stays as it is. */
WEFT_MUST_USE enum weft_status weft_profile_resolve_measured(const struct weft_config *config,
                                                             const struct weft_profile *measured,
                                                             struct weft_profile **out,
                                                             struct weft_error *err);

/* The same for who asks for memory alone: a time for which there is no figure is 0 and no error.
 * Appends to `missing` what the config would have to give; nothing when all times are there. A
 * profile of other ranks gives its base, and without links curves from which block sizes follow. */
WEFT_MUST_USE enum weft_status weft_profile_resolve_for_memory(const struct weft_config *config,
                                                               struct weft_profile **out,
                                                               struct weft_text *missing,
                                                               struct weft_error *err);

WEFT_MUST_USE enum weft_status weft_profile_parse(const char *bytes, size_t length,
                                                  const char *source, struct weft_profile **out,
                                                  struct weft_error *err);
/* A copy with this base. */
WEFT_MUST_USE enum weft_status weft_profile_with_base(const struct weft_profile *profile,
                                                      int64_t base_bytes, struct weft_profile **out,
                                                      struct weft_error *err);
void weft_profile_write(const struct weft_profile *profile, struct weft_text *out);
void weft_profile_destroy(struct weft_profile *profile);

/* Times of a layer by key; NULL when the profile has none. */
const struct weft_layer_times *weft_profile_layer(const struct weft_profile *profile,
                                                  const char *key);

/* The smallest full size (bytes) of an AllGather that reaches `efficiency` of the best bandwidth
 * in the curve: the block size rule of planning-problem.md. At least 1; 4 MiB where the curve says
 * nothing (one rank). */
int64_t weft_profile_block_bytes(const struct weft_profile *profile, double efficiency);

#endif
