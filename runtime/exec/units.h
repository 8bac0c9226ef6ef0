/* A unit as this rank holds it while a program runs: its pieces, and where its parameters, state
 * and gradient lie. Shared by the files of this folder alone. */
#ifndef WEFT_RUNTIME_EXEC_UNITS_H
#define WEFT_RUNTIME_EXEC_UNITS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/numbers.h"
#include "shard/shard.h"

struct exec_gap {
    int64_t begin; /* element of the full gradient */
    int64_t count;
};

/* Element pieces[i] of the parameters is at parameters[at], where at
 * is the piece's unit_begin in full buffers and shard_begin in a rank's. */
struct exec_unit {
    bool trainable;
    bool whole;    /* dp: gradient and state of all elements are here */
    bool resident; /* dp, zero1: parameters stay in the full buffer */
    /* In the compute dtype: full buffer when resident, else this rank's shard. */
    unsigned char *parameters;
    int64_t parameter_elements;
    float *master; /* fp32, of what has state; NULL when the parameters are fp32 themselves */
    unsigned char *gradient; /* full when whole, else reduced; NULL when frozen */
    enum weft_dtype gradient_dtype;
    float *moment1, *moment2; /* NULL where the optimizer has none */
    int64_t state_elements;
    struct weft_piece *own; /* in this rank's slices */
    int64_t n_own;
    struct weft_piece *updated; /* what its UPDATE computes: all when whole, else own */
    int64_t n_updated;
    /* Where updates are agreed on: of each tensor, the norms of its parameters and of its step, as
     * this rank counts them and summed over ranks. */
    uint64_t *norms, *norms_sum;
    int64_t norms_words;
    struct exec_gap *gaps; /* of the full gradient: between tensors, and padding */
    int32_t n_gaps;
};

/* Where a piece lies in the unit's parameters, and in its gradient and moments. */
static inline int64_t exec_parameter_at(const struct exec_unit *unit,
                                        const struct weft_piece *piece)
{
    return unit->resident ? piece->unit_begin : piece->shard_begin;
}

static inline int64_t exec_state_at(const struct exec_unit *unit, const struct weft_piece *piece)
{
    return unit->whole ? piece->unit_begin : piece->shard_begin;
}

/* The fp32 parameters of a piece: of the master where there is one. */
static inline float *exec_values_at(const struct exec_unit *unit, const struct weft_piece *piece)
{
    if (unit->master != NULL) return unit->master + exec_state_at(unit, piece);
    return (float *)(void *)unit->parameters + exec_parameter_at(unit, piece);
}

#endif
