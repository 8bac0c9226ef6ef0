/* SPDX-License-Identifier: Apache-2.0 */
/* Problems in round numbers, on which a rule can be worked out by hand: a chain of layers, a unit
 * each, and plans as one line of text to compare with. */
#ifndef WEFT_TESTS_SCHEDULER_CHAIN_H
#define WEFT_TESTS_SCHEDULER_CHAIN_H

#include "scheduler/schedule.h"

enum { CHAIN_MOST_LAYERS = 8, MIB = 1 << 20 };

/* Slots: with another location open, U0.., fill, F0.., B(n-1)..B0, drain, norm. Each layer reads
 * its unit in forward and backward. Two ranks, so a slice is half a unit. An element is 4 bytes. */
struct chain {
    int32_t n_layers;
    int32_t n_blocks[CHAIN_MOST_LAYERS];
    int64_t block_bytes[CHAIN_MOST_LAYERS];
    int64_t forward_ns[CHAIN_MOST_LAYERS]; /* 100 where 0; backward takes twice as long */
    int64_t gather_ns[CHAIN_MOST_LAYERS];  /* and ReduceScatter, of a block; AllReduce twice */
    int64_t activation_bytes;              /* saved by each layer from forward to backward */
    /* A layer's own saved bytes, from its forward to before its backward: if kept, and if
     * recomputed selectively; whole leaves none. Its backward has those if kept, and takes longer
     * by selective_ns or whole_ns. Where kept_bytes is above 0 each layer has a decision after all
     * units. */
    int64_t kept_bytes, selective_bytes, selective_ns, whole_ns;
    uint32_t policies; /* 0 = all */
    int64_t agree_ns;
    /* To read a unit's state from a disk, and to write it; to copy it up from the host's memory,
     * and down. Where one is above 0 all have strategies "+disk", or "+host", and no unit may be
     * dp. Reads and writes share a lane, copies up and down do not. */
    int64_t disk_ns[CHAIN_MOST_LAYERS], host_ns[CHAIN_MOST_LAYERS];
    /* For a block on the host. Where one is above 0 all have strategies "+host-update" too, and
     * blocks of gradients go down, of parameters up, in as much time as state does. */
    int64_t update_ns[CHAIN_MOST_LAYERS];
};
struct weft_problem *chain_problem(const struct chain *chain);

/* What a planner decides, "name" or "name:setting"; the problem's limit. */
struct chain_plan {
    enum weft_status status;
    struct weft_error err;
    char policies[128]; /* "sdp fsdp dp", then layers: "whole device" */
    char moves[2048];   /* in channel order: g1@F0 launched there, g1@F1! blocking, r2@B1>drain
                           launched in B1 and complete by the end of drain; g1x3 three blocks;
                           in1@U0 and out1@U2>U2: state, from its location and back;
                           d1@B0>drain, h1@open, p1@open: gradient down, update on the host,
                           parameters up */
    int64_t step_ns, peak_bytes;
};
struct chain_plan chain_plan(const struct weft_problem *problem, const char *planner,
                             int64_t limit_bytes);

#endif
