/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of the proof of a step, private to program/. verify_step.c checks compute and saved
 * activations, and verify_moves.c the moves of units. */
#ifndef WEFT_PROGRAM_VERIFY_STEP_H
#define WEFT_PROGRAM_VERIFY_STEP_H

#include "program/inputs.h"
#include "program/program.h"
#include "program/verify.h"

/* An update on the host so far: number of blocks copied down, updated and copied up, and the last
 * instruction of each; -1: none. Blocks of a node's parameters that came from other nodes are
 * `crossed`, also after an update on the device. */
struct hosted {
    int32_t downs, updates, ups, crossed;
    int32_t down, first_update, update, up, cross;
};

/* A step so far, in issue order. The carried work of a rotated period comes last, as it follows in
 * the next period. */
struct step {
    const struct weft_program *program;
    const struct weft_order *order;
    struct weft_error *err;
    int32_t *updates;      /* [n_units]: its UPDATE; -1: none */
    int32_t *reads;        /* by offloaded unit: its last READ or COPY_UP; -1: none */
    int32_t *writes;       /* by offloaded unit: its last WRITE or COPY_DOWN */
    struct hosted *hosted; /* by unit with updates on the host, or a shard there (downs, down) */
    int32_t *downs;        /* by copies_at: the last SAVED_DOWN or INPUT_DOWN; -1: none */
    int32_t *ups;          /* by copies_at: the last SAVED_UP or INPUT_UP; -1: none */
    int32_t *forwards;     /* by recomputed layer and micro-step: its FORWARD; -1: none */
    int32_t moments;       /* MOMENTS of the current update; -1: none */
    int32_t agreed;        /* AGREE of the current update; -1: none */
    int32_t *moved;        /* [n_buffers]: blocks gathered into it or reduced from it */
    int32_t *averaged;     /* by unit: blocks averaged over nodes */
    int32_t *average;      /* by unit: the last AVERAGE; -1: none */
    int32_t *summed;       /* by unit: rounds with all gradients in its slice */
    int32_t n_layers;      /* of the model */
    int32_t layers;        /* forwards and backwards so far */
    struct {
        int32_t layer, micro;
        bool backward;
    } next; /* the forward or backward that comes next */
    int32_t norm, agree, finish;
};

/* Whether `a` is complete before `b` starts, in one step. */
bool weft_step_is_before(const struct step *step, int32_t a, int32_t b);

/* WEFT_E_DATA with the instruction's name. */
WEFT_MUST_USE enum weft_status weft_step_fault(const struct step *step, int32_t index,
                                               const char *what);

/* An instruction's operand that reads or writes a buffer of this kind; NULL: none. */
const struct weft_operand *weft_step_operand(const struct weft_program *program,
                                             const struct weft_instruction *at,
                                             enum weft_buffer_kind kind, int32_t unit, bool writes);

/* The ranks that share a unit's parameters and state. Checks of moves use them. */
static inline struct weft_policy_groups weft_step_groups(const struct weft_program *program,
                                                         int32_t unit)
{
    return weft_policy_groups[program->ways[unit].policy];
}

static inline int32_t weft_step_blocks(const struct weft_program *program, int32_t unit)
{
    return program->buffers[weft_program_buffer(program, WEFT_BUFFER_GRADIENT, unit, 0)].n_pieces;
}

/* Blocks up to the last one of an item that has moved; -1: none has. */
static inline int32_t weft_step_blocks_until(const struct weft_program *program, int32_t last)
{
    return last < 0 ? 0 : program->instructions[last].block + 1;
}

/* Whether nodes average the unit's parameters. */
static inline bool weft_step_averages(const struct weft_program *program, int32_t unit)
{
    return program->period.every > 0 &&
           weft_program_buffer(program, WEFT_BUFFER_GRADIENT, unit, 0) >= 0;
}

/* Pieces in which a unit's state moves. */
int32_t weft_step_state_pieces(const struct weft_program *program, int32_t unit);

/* Checks a unit's collective, copy or work on the host. */
WEFT_MUST_USE enum weft_status weft_verify_move(struct step *step, int32_t index);

#endif
