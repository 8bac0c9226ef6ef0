/* SPDX-License-Identifier: Apache-2.0 */
/* The network of a cluster by pairs of hosts, and the compute of each host. All ranks of two hosts
 * exchange bytes both ways at once, while other pairs do the same. A host that is slow, or a pair
 * with a slow link, shows here; collectives only show their slowest part. */
#ifndef WEFT_SPEC_PROFILE_NETWORK_H
#define WEFT_SPEC_PROFILE_NETWORK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json/json.h"
#include "base/json/json_keys.h"
#include "base/pool.h"
#include "base/rank_group.h"
#include "base/status.h"
#include "base/text.h"
#include "spec/profile/curve.h"

enum weft_collective {
    WEFT_ALL_GATHER,
    WEFT_REDUCE_SCATTER,
    WEFT_ALL_REDUCE,
    WEFT_COLLECTIVE_COUNT
};
const char *weft_collective_name(enum weft_collective kind); /* "all_gather" ... */

/* Measured collectives of one level: gathers and reductions to fp32 in a node, and sums across
 * nodes in fp32, by which each rank gets all or its part. Older profiles lack later ones. */
enum { WEFT_LINK_LEVELS = 5 };
struct weft_link_level {
    enum weft_rank_group group;
    enum weft_collective kind;
    const char *name; /* for people */
    bool later;       /* a profile may lack it */
};
extern const struct weft_link_level weft_link_levels[WEFT_LINK_LEVELS];

struct weft_network_host {
    const char *name;
    int64_t compute_ns; /* forward and backward of a step on its slowest rank; 0: not measured */
};

struct weft_network_pair {
    int32_t a, b; /* hosts, a < b */
    int64_t ns;   /* of pair_bytes each way, on the slowest rank of both */
};

struct weft_profile_network {
    int32_t n_hosts; /* 0: not measured */
    int32_t n_pairs;
    const struct weft_network_host *hosts;
    const struct weft_network_pair *pairs; /* in order of a, then b */
    int64_t pair_bytes;                    /* that a host sends to the other one */
    /* Collectives of one level, on the slowest rank, by the bytes of the full block. Empty unless
     * there are several nodes of several ranks. */
    int32_t ranks_per_node;
    struct weft_curve levels[WEFT_GROUP_COUNT][WEFT_COLLECTIVE_COUNT];
};

extern const struct weft_key_table weft_profile_network_keys, weft_profile_levels_keys;

/* Reads the optional members "network" and "levels" of a profile's file. */
WEFT_MUST_USE enum weft_status weft_profile_network_read(const struct weft_json_value *root,
                                                         const char *source, struct weft_pool *pool,
                                                         struct weft_profile_network *out,
                                                         struct weft_error *err);

/* Times of one of weft_link_levels. */
static inline const struct weft_curve *weft_link_curve(const struct weft_profile_network *network,
                                                       int level)
{
    return &network->levels[weft_link_levels[level].group][weft_link_levels[level].kind];
}

/* True if there are times of each level. */
static inline bool weft_profile_has_levels(const struct weft_profile_network *network)
{
    return network->ranks_per_node > 0;
}

/* A pair or a host is slow if it takes more than WEFT_SLOW_TIMES the usual time. */
enum { WEFT_SLOW_TIMES = 2 };

/* The judgement of a network. A host's own time is the median of its pairs. The usual time of a
 * pair is the median of all hosts' own times, so that one slow host of three does not make itself
 * the usual one. Of an even number of times the median is the lower one of the middle. A host has a
 * slow link if more than half of its pairs are slow; with two hosts no link is judged. Pairs of
 * such a host are its fault. Usual compute is the median over hosts. */
struct weft_network_verdict {
    int64_t pair_ns, compute_ns;         /* usual; 0: not known */
    const bool *slow_links, *slow_hosts; /* [n_hosts]: by pairs, by compute */
    const bool *slow_pairs;              /* [n_pairs], between hosts without a slow link */
    int32_t slowest;                     /* the host with the longest compute; -1: not known */
    int32_t n_slow;                      /* of all three */
};

/* Judges a measured network; nothing is slow in one that was not measured. `out` is of the pool.
 * WEFT_E_MEMORY. */
WEFT_MUST_USE enum weft_status weft_network_judge(const struct weft_profile_network *network,
                                                  struct weft_pool *pool,
                                                  struct weft_network_verdict *out,
                                                  struct weft_error *err);

/* Appends a line for each slow host and pair: its name, its figure, the usual one, and where to
 * look. */
void weft_network_show_slow(const struct weft_profile_network *network,
                            const struct weft_network_verdict *verdict, struct weft_text *out);

/* Bytes per second of a pair, each way, that takes `ns`. */
double weft_network_rate(const struct weft_profile_network *network, int64_t ns);

#endif
