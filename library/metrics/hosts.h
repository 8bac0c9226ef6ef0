/* SPDX-License-Identifier: Apache-2.0 */
/* The hosts of a run that has ended: names, cores and load, and the times of each rank. They are
 * part of RUN/result.json. */
#ifndef WEFT_LIBRARY_METRICS_HOSTS_H
#define WEFT_LIBRARY_METRICS_HOSTS_H

#include <stdint.h>

#include "base/json/json.h"
#include "base/json/json_keys.h"

struct weft_run_host {
    const char *name;
    int64_t ranks, cores;
    /* Average cores during the run, used by other programs and taken by the host of a virtual
     * machine; NAN: not known. */
    double others_cores, stolen_cores;
};

/* Means of a rank's steps after the first two, or of all if there are no more. */
struct weft_run_rank {
    int32_t host; /* by its place in the list of hosts */
    int64_t compute_ns, exposed_ns, data_wait_ns;
};

struct weft_run_hosts {
    int32_t n_hosts, n_ranks;
    const struct weft_run_host *hosts; /* by first appearance */
    const struct weft_run_rank *ranks; /* by rank */
};

extern const struct weft_key_table weft_run_host_keys, weft_run_rank_keys;

/* Writes the members "hosts" and "ranks" of an open object. */
void weft_run_hosts_write(const struct weft_run_hosts *hosts, struct weft_json_writer *writer);

#endif
