/* SPDX-License-Identifier: Apache-2.0 */
/* Links between hosts, judged while a run trains. Collectives go at the speed of their slowest
 * link, so their times do not show which one that is. Each rank knows how fast bytes came from each
 * peer. The ranks exchange a summary of a window of steps, and all draw the same conclusion. */
#ifndef WEFT_RUNTIME_TRAIN_LINKS_H
#define WEFT_RUNTIME_TRAIN_LINKS_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/comm/comm.h"

/* A link is slow if its bytes take more than WEFT_LINK_TIMES the usual time, and that costs a
 * WEFT_LINK_SHARE-th of the window. Collectives are slow by the same figures against the plan. */
enum { WEFT_LINK_TIMES = 4, WEFT_LINK_SHARE = 8, WEFT_LINK_LEAST_BYTES = 64 << 10 };

/* A rank's summary of a window. Peers of its own node do not count, nor peers with few bytes. */
struct weft_link_sums {
    int64_t moving_ns; /* in collectives, after all ranks had come */
    int64_t usual_ps;  /* time of a byte in picoseconds, median over peers; 0: no peer counts. Of an
                          even number it is the lower one of the middle */
    int64_t ns, bytes; /* from the slowest peer */
    int32_t peer;      /* the slowest; -1: none */
};

/* Writes the summary of this rank. `scratch` has room for `ranks` values. */
void weft_links_sum(const struct weft_comm_traffic *traffic, int64_t moving_ns, int32_t rank,
                    int32_t ranks, int32_t per_node, int64_t *scratch, struct weft_link_sums *out);

enum weft_link_fault {
    WEFT_LINK_FINE,
    WEFT_LINK_OF_HOST, /* all links of node `to` */
    WEFT_LINK_OF_PAIR, /* between nodes `from` and `to`; from < to */
    WEFT_LINK_OF_ALL,  /* no link is slower than others, and all are slower than planned */
};

struct weft_link_finding {
    enum weft_link_fault fault;
    int32_t from, to; /* nodes; -1: not of this fault */
    double share;     /* of the window, lost by it on the rank that loses most */
    double times;     /* WEFT_LINK_OF_ALL: the plan's time of collectives */
};

/* Judges the summaries of all ranks. The usual time of a byte is the median over ranks. A host's
 * link is slow if more than half of the other nodes have their slow peer there, or if all its own
 * peers are slow; otherwise the pair that costs most is named. Otherwise collectives are
 * compared with `planned_ns`, the plan's time of the window's collectives; 0: not known. `scratch`
 * has room for `ranks` values. */
struct weft_link_finding weft_links_judge(const struct weft_link_sums *all, int32_t ranks,
                                          int32_t per_node, int64_t window_ns, int64_t planned_ns,
                                          int64_t *scratch);

/* True if both name the same fault and nodes. */
bool weft_links_agree(const struct weft_link_finding *a, const struct weft_link_finding *b);

#endif
