/* SPDX-License-Identifier: Apache-2.0 */
/* An estimate computes the memory that each policy needs. It examines every period that the config
 * leaves open and keeps the best of each row. Times need not be known. */
#ifndef WEFT_LIBRARY_ESTIMATE_H
#define WEFT_LIBRARY_ESTIMATE_H

#include "library/session.h"
#include "scheduler/estimate.h"

/* All state in one tier. least_bytes is the device memory then needed per rank, INT64_MAX if the
 * tier is too small. ring_bytes is the disk's ring within it. held_bytes is the need of the
 * tier. */
struct weft_estimate_location {
    bool given; /* state may be there or in another tier */
    int64_t least_bytes, ring_bytes, held_bytes, limit_bytes;
};

struct weft_estimate {
    struct weft_pool pool;
    struct weft_estimate_location locations[WEFT_LOCATION_COUNT];
    struct weft_need rows[WEFT_ESTIMATE_ROWS]; /* names are in the pool */
    int64_t ranks, ranks_per_node;
    int64_t parameters;  /* of the model */
    int64_t limit_bytes; /* of the config; 0: none */
    int64_t base_bytes;  /* part of every need */
    int64_t block_bytes; /* least size of a unit's blocks */
    const char *times;   /* source of the times, like "analytic"; "": some are not known */
    const char *missing; /* keys that would give the missing times; otherwise "" */
};

/* Estimates an open session's config for all policies of its target, regardless of plan.policies.
 * `asked` is that of weft_estimate_fill. The caller finishes *out, also after a failure. */
WEFT_MUST_USE enum weft_status weft_estimate_create(struct weft_session *session, uint32_t asked,
                                                    struct weft_estimate *out,
                                                    struct weft_error *err);

/* Finds the least device memory if layers recompute, which the config does if nothing fits: of all
 * policies, without pages. 0 if it does not, or if the profile has no times of that. */
WEFT_MUST_USE enum weft_status weft_estimate_recomputed(struct weft_session *session,
                                                        int64_t *bytes, struct weft_error *err);

/* Stages an open session with every policy, location and level of recomputation that the cluster
 * and the layers allow, regardless of the config's plan, for reports of strategies. A profile
 * without times of the levels leaves recomputation as the config has it. */
WEFT_MUST_USE enum weft_status weft_estimate_stage_ways(struct weft_session *session,
                                                        struct weft_error *err);
void weft_estimate_finish(struct weft_estimate *estimate); /* accepts {0} */

#endif
