/* SPDX-License-Identifier: Apache-2.0 */
/* A rank's part in the hosts of a run (library/metrics/hosts.h): it sums the times of its steps,
 * and reads the load of its machine. At the end the ranks exchange their parts. */
#ifndef WEFT_LIBRARY_METRICS_RANK_LOAD_H
#define WEFT_LIBRARY_METRICS_RANK_LOAD_H

#include "base/hash.h"
#include "base/pool.h"
#include "base/status.h"
#include "library/metrics/hosts.h"
#include "library/metrics/load.h"
#include "runtime/comm/comm.h"
#include "runtime/launch/rendezvous.h"
#include "runtime/train/options.h"

struct weft_rank_load {
    struct weft_load before;
    int64_t seen;                                        /* steps */
    int64_t steps, compute_ns, exposed_ns, data_wait_ns; /* sums */
};

/* A rank's part of the hosts. */
struct weft_rank_part {
    char host[256];
    struct weft_hash machine; /* hosts of one machine share its cores, and have one count of load */
    struct weft_load spent;
    struct weft_run_rank times;
};

void weft_rank_load_begin(struct weft_rank_load *load);
void weft_rank_load_note(struct weft_rank_load *load, const struct weft_step_line *line);

/* Joins the parts of all ranks. The pool owns *out, which refers to the parts. Ranks of another
 * host on one machine, as containers are, count as no other programs. */
WEFT_MUST_USE enum weft_status weft_rank_load_join(const struct weft_rank_part *parts,
                                                   int32_t ranks, struct weft_pool *pool,
                                                   struct weft_run_hosts *out,
                                                   struct weft_error *err);

/* Joins all ranks' loads; collective over the ranks of `comm`. */
WEFT_MUST_USE enum weft_status weft_rank_load_exchange(const struct weft_rank_load *load,
                                                       const struct weft_rendezvous *meeting,
                                                       struct weft_comm *comm,
                                                       struct weft_pool *pool,
                                                       struct weft_run_hosts *out,
                                                       struct weft_error *err);

#endif
