/* SPDX-License-Identifier: Apache-2.0 */
/* A rank's part in the hosts of a run (library/metrics/hosts.h): it sums the times of its steps,
 * and reads the load of its machine. At the end the ranks exchange their parts. */
#ifndef WEFT_CLI_JOB_RANK_LOAD_H
#define WEFT_CLI_JOB_RANK_LOAD_H

#include "base/pool.h"
#include "base/status.h"
#include "cli/process/load.h"
#include "library/metrics/hosts.h"
#include "runtime/comm/comm.h"
#include "runtime/launch/rendezvous.h"
#include "runtime/train/options.h"

struct weft_rank_load {
    struct weft_load before;
    int64_t seen;                                        /* steps */
    int64_t steps, compute_ns, exposed_ns, data_wait_ns; /* sums */
};

void weft_rank_load_begin(struct weft_rank_load *load);
void weft_rank_load_note(struct weft_rank_load *load, const struct weft_step_line *line);

/* Collective over the ranks of `comm`. The pool owns *out. Hosts of one machine, as containers are,
 * count each other's ranks as other programs. */
WEFT_MUST_USE enum weft_status weft_rank_load_exchange(const struct weft_rank_load *load,
                                                       const struct weft_rendezvous *meeting,
                                                       struct weft_comm *comm,
                                                       struct weft_pool *pool,
                                                       struct weft_run_hosts *out,
                                                       struct weft_error *err);

#endif
