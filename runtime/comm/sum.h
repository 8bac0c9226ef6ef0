/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over ranks in canonical order, in fp32, for every dtype: the sum of earlier rounds, then the
 * ranks in their order. With several nodes of several ranks, each node's ranks are summed first,
 * and the nodes' sums are added in their order. So the bits do not depend on the number of ranks
 * that share a step's gradients on one node. For back ends that run on the CPU. */
#ifndef WEFT_RUNTIME_COMM_SUM_H
#define WEFT_RUNTIME_COMM_SUM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/numbers.h"

struct weft_comm_sum {
    int32_t ranks;
    int32_t per_node;         /* ranks of a node, which divide ranks; 0: all */
    int32_t idle;             /* ranks, the last ones, that are left out; all: nothing is written */
    enum weft_dtype dtype;    /* of the operands */
    enum weft_dtype rounded;  /* the sum is rounded to it once; fp32: not at all */
    enum weft_dtype to_dtype; /* of the result: `rounded`, or fp32 */
    /* fp32 sums that come before the ranks; NULL: none. May be `to`, if that is fp32. */
    const unsigned char *before;
    int64_t elements;
    const unsigned char *const *from; /* [ranks] operands, in rank order */
    unsigned char *to;                /* may be an operand */
};

/* A part of the result is written after its operands have been read. */
void weft_comm_sum_ranks(const struct weft_comm_sum *sum);

/* Adds `words` words of all ranks, wrapping, and writes them to `to`, which is no operand. */
void weft_comm_sum_words(int32_t ranks, const unsigned char *const *from, int64_t words,
                         unsigned char *to);

#endif
