/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of a step (ARCHITECTURE.md: consecutive micro-batches that one rank sums and reduces once)
 * are the run's, and ranks share them. A group's gradient, before any sum over ranks, has the same
 * bits on any ranks. So its hash names the rank that computed it wrongly, and its norm finds a
 * sample. Private to this folder. */
#ifndef WEFT_RUNTIME_EXEC_GROUPS_H
#define WEFT_RUNTIME_EXEC_GROUPS_H

#include "runtime/exec/options.h"
#include "runtime/nn/units.h"

/* Gradients that are complete after an instruction, the last one of its group that adds to them. */
struct exec_written {
    struct weft_nn_unit unit; /* whole tensors, in this rank's local gradients */
    int32_t round;
    bool ends; /* the group's backward ends here */
};

/* Sums over a group of this rank, as a look copies them to the host. */
struct exec_group_sums {
    uint64_t bins[WEFT_NORM_WORDS];
    uint64_t bad;
    double loss;  /* over the group's rows */
    int64_t rows; /* of its step with a loss, over all groups */
};

struct exec_groups {
    int64_t n;                   /* of a step, over all ranks */
    bool hashes, hashes_carried; /* of the period's step, and of the step before */
    /* Hashes of the rounds that a rotated period completed before its last backward. */
    struct weft_group_hashes early;
    struct exec_group_sums *sums; /* [rounds]; NULL: not asked for */
    int64_t *of;                  /* [rounds], step of the sums; 0: none, or given already */
    int64_t step;                 /* of the period's own backward */
    double scale;                 /* of the losses before that backward */
};

#endif
