/* Sums over ranks in canonical order, in fp32, for every dtype (docs/numerics.md): over the ranks
 * of each node in rank order, then over the nodes in their order. For back ends that run on the
 * CPU. */
#ifndef WEFT_RUNTIME_COMM_SUM_H
#define WEFT_RUNTIME_COMM_SUM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/numbers.h"

struct weft_comm_sum {
    int32_t ranks;
    int32_t per_node;         /* ranks of a node, which divide ranks; 0: all */
    enum weft_dtype dtype;    /* of the operands */
    enum weft_dtype rounded;  /* the sum is rounded to it once; fp32: not at all */
    enum weft_dtype to_dtype; /* of the result: `rounded`, or fp32 */
    bool adds;                /* adds the sum to the result; all three are fp32 */
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
