/* SPDX-License-Identifier: Apache-2.0 */
/* A program is a plan as instructions, dependencies and addresses, without open decisions. All
 * ranks run the same one with the same offsets; only the rank's own slice differs. Instructions are
 * in issue order. Each runs on one lane (base/lanes.h), in order on that lane, after its
 * dependencies.
 *
 * Every slot begins with a MARK on the compute stream, which waits for the communication due by
 * then. Work launched in the slot depends on the MARK. Compute in the slot waits for blocking
 * gathers launched in it. */
#ifndef WEFT_PROGRAM_PROGRAM_H
#define WEFT_PROGRAM_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/pool.h"
#include "base/status.h"
#include "base/work.h"
#include "memory_model/pages/pages.h"
#include "plan/plan.h"
#include "problem/stages.h"
#include "program/buffer.h"
#include "program/op.h"

/* An instruction that reads and writes a piece has one operand for each. A piece that does not
 * persist begins with the instruction that makes it (weft_operand_makes). Earlier instructions of
 * the period use the piece of the period before, in that period's table. */
struct weft_operand {
    int32_t buffer;
    int32_t piece;     /* -1: all */
    bool writes;       /* false: reads */
    bool began_before; /* in the period before the instruction's; never if it persists */
};

struct weft_instruction {
    enum weft_op op;
    int32_t lane; /* compute, or its item's; AGREE: weft_problem_agree_lane */
    /* Compute: the slot that it runs in. Collectives: the slot with the MARK from which its bytes
     * are held. For a reduction that may be before its launch. */
    int32_t slot;
    int32_t layer; /* FORWARD, BACKWARD, copies of layers */
    int32_t micro; /* of LOAD, FORWARD, ZERO, BACKWARD, reductions, copies of layers; otherwise 0 */
    /* In a rotated period: part of the step that the last period began. The first period skips it,
     * and a run ends with it and the updates. */
    bool carried;
    int32_t unit; /* MOMENTS, UPDATE, ZERO, collectives, moves of state; the step's AGREE: -1 */
    int32_t block, item;  /* collectives: item is the index in the problem; AGREE: -1 */
    int32_t after;        /* instruction before it in its item's chain; 0: none */
    int64_t ns;           /* predicted */
    int64_t every, phase; /* works if step % every is phase (works.h); every 0: in each period */
    int32_t first_dependency, n_dependencies; /* earlier instructions, in program->dependencies */
    int32_t first_operand, n_operands;        /* in program->operands */
};

struct weft_program {
    struct weft_pool pool;
    int32_t n_slots, n_lanes;
    struct weft_lane *lanes; /* [n_lanes], copied from the problem */
    int32_t n_instructions;
    struct weft_instruction *instructions;
    int32_t *dependencies;
    struct weft_operand *operands;
    int32_t n_buffers;
    struct weft_buffer *buffers;
    int64_t arena_bytes; /* of pages in use */
    int64_t live_bytes;  /* largest sum of live bytes in a slot */
    int64_t base_bytes;
    struct weft_ring ring;      /* of the disk's blocks, outside the arena */
    int64_t comm_bytes;         /* staging of communicators */
    int64_t staging_bytes;      /* the same, and of the ring if it is in device memory */
    struct weft_paging *paging; /* of the buffers; owned */
    /* [n_units]. Offloaded state is in the arena only from its READ or COPY_UP to its WRITE or
     * COPY_DOWN. State that is updated on the host is never there. With a shard on the host, SHARD
     * 0 is in the arena from its UPDATE to its PARAMETERS_DOWN, and crosses nodes in between. SHARD
     * g + 1 is there from gather g's PARAMETERS_FETCH to the first use of gathered parameters. */
    struct weft_way *ways;
    int32_t n_units;
    /* [n_layers]: offset of the layer's offloaded activations in the host's memory, the first of
     * weft_period_places. -1: they stay on the device. NULL: all stay. */
    int64_t *saved_at;
    int64_t *inputs_at; /* [n_layers]: offset of the layer's offloaded input */
    int64_t host_bytes; /* of both; otherwise 0 */
    /* [n_layers]: level of recomputation. The dropped bytes are a part of the layer's temporaries.
     * NULL: no layer recomputes. */
    enum weft_recompute *recomputes;
    struct weft_layer_reads *reads; /* [n_layers] */
    int32_t n_layers;
    struct weft_period_rule period;
};

/* Lowers a plan. The stages of its problem give layers, tensors and sizes, so the config must be at
 * hand. Pages are the plan's if it has any, otherwise by colouring. WEFT_E_DATA if plan and stages
 * do not belong together. */
struct weft_lower_inputs {
    const struct weft_model *model;
    const struct weft_shards *shards;
    const struct weft_period *period;
    struct weft_weigh_options weigh;
    struct weft_work *work; /* spent by colouring; NULL: not counted */
    int64_t page_bytes;     /* 0: as the least limit needs (weft_schedule) */
    /* A program with a larger fullest slot, base included, gets no pages. Its arena_bytes are then
     * that slot's, and it cannot be verified or run. 0: every program gets pages. */
    int64_t most_bytes;
};
/* The inputs for the stages of a config and a profile. They refer to stages and model. */
struct weft_lower_inputs weft_lower_inputs_of(const struct weft_config *config,
                                              const struct weft_profile *profile,
                                              const struct weft_stages *stages);
WEFT_MUST_USE enum weft_status weft_program_lower(const struct weft_plan *plan,
                                                  const struct weft_lower_inputs *inputs,
                                                  struct weft_program **out,
                                                  struct weft_error *err);
void weft_program_destroy(struct weft_program *program);

/* WEFT_OK if a plan with pages has its program's arena_bytes and total_bytes. Otherwise
 * WEFT_E_DATA. */
WEFT_MUST_USE enum weft_status weft_program_check_prediction(const struct weft_program *program,
                                                             const struct weft_plan *plan,
                                                             struct weft_error *err);

/* Whether time before a compute instruction is a wait for a lane: at MARKs, at FINISH, and at
 * instructions that depend on a collective. */
bool weft_program_waits(const struct weft_program *program, int32_t instruction);
/* Whether an operand makes a piece: it writes the piece, and the instruction does not read it. An
 * instruction that does both names the piece twice, first to read it. */
static inline bool weft_operand_makes(const struct weft_program *program,
                                      const struct weft_instruction *at, int32_t operand)
{
    const struct weft_operand *it = &program->operands[at->first_operand + operand];
    if (!it->writes || operand == 0) return it->writes;
    return it[-1].writes || it[-1].buffer != it->buffer || it[-1].piece != it->piece;
}

/* Bytes within the limit but outside the arena. */
static inline int64_t weft_program_outside_bytes(const struct weft_program *program)
{
    return program->base_bytes + program->staging_bytes;
}

/* Location of a unit's master and moments, and whether that is not the device. */
static inline enum weft_location weft_program_location(const struct weft_program *program,
                                                       int32_t unit)
{
    return weft_keep_location(program->ways[unit].keep);
}

static inline bool weft_program_is_offloaded(const struct weft_program *program, int32_t unit)
{
    return weft_program_location(program, unit) != WEFT_LOCATION_DEVICE;
}

/* Whether a unit is updated on the host. */
static inline bool weft_program_updates_on_host(const struct weft_program *program, int32_t unit)
{
    return program->ways[unit].keep == WEFT_KEEP_HOST_UPDATE;
}

/* Whether a unit's shard is on the host, and copied up before each gather. */
static inline bool weft_program_fetches(const struct weft_program *program, int32_t unit)
{
    return program->ways[unit].parameters == WEFT_LOCATION_HOST;
}

/* Whether a layer's saved activations are on the host between its forward and its backward. */
static inline bool weft_program_saves_offloaded(const struct weft_program *program, int32_t layer)
{
    return program->saved_at != NULL && program->saved_at[layer] >= 0;
}

/* The layer's level of recomputation. */
static inline enum weft_recompute weft_program_recompute(const struct weft_program *program,
                                                         int32_t layer)
{
    return program->recomputes == NULL ? WEFT_RECOMPUTE_NONE : program->recomputes[layer];
}

/* Offset of a buffer in a table, from the arena's first address. A piece of an operand is in table
 * (period - began_before) % 2. */
static inline int64_t weft_program_offset(const struct weft_program *program, int32_t buffer,
                                          int32_t table)
{
    return program->paging->places[buffer].offsets[table];
}

/* Index of the buffer, or -1. */
int32_t weft_program_buffer(const struct weft_program *program, enum weft_buffer_kind kind,
                            int32_t index, int32_t instance);

/* Proves the program's invariants from its instructions, under happens-before: stream order,
 * dependencies, channel order, repeated periods. Every read follows its write. No piece is
 * overwritten, or given to another buffer, before its last reader. There is no cycle, and every
 * rank has the same collectives. Live bytes are within `limit_bytes`, and pieces that are live
 * together do not overlap. All pieces are inside the arena.
 *
 * Every range of the paging is mapped once. No page goes to a second piece before the last reader
 * of the first, in either table. WEFT_E_DATA names the first violation. */
WEFT_MUST_USE enum weft_status weft_program_verify(const struct weft_program *program,
                                                   int64_t limit_bytes, struct weft_error *err);

#endif
