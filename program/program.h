/* A program is one plan as instructions, dependencies and addresses; no decision is left in it.
 * All ranks run the same one (offsets are equal on all; only which slice is "mine" differs).
 * Instructions stand in issue order; each runs on one lane (base/lanes.h),
 * in order on its lane, after its dependencies. Every slot begins with a MARK on the compute stream
 * that waits for the communication due by then; what is launched in the slot depends on the MARK,
 * and what computes in it waits for the blocking gathers launched in it. */
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

/* An instruction that reads a piece and writes it too has one operand for each. A piece that comes
 * and goes begins with the instruction that makes it (weft_operand_makes); what stands before that
 * one in the period uses what began in the period before, and finds it in that period's table. */
struct weft_operand {
    int32_t buffer;
    int32_t piece;     /* -1: all */
    bool writes;       /* else reads only */
    bool began_before; /* in the period before the instruction's; never of buffers that persist */
};

struct weft_instruction {
    enum weft_op op;
    int32_t lane; /* compute, or that of its item; of AGREE: weft_problem_agree_lane */
    int32_t slot; /* of compute: in which it runs; of a collective: at whose MARK its bytes begin to
                     be held, which for a reduction may be before its launch */
    int32_t layer; /* FORWARD, BACKWARD, SAVED_DOWN, SAVED_UP */
    int32_t micro; /* LOAD, FORWARD, ZERO, BACKWARD, reductions, SAVED_DOWN, SAVED_UP: micro-step
                      of its step;
                      else 0 */
    bool carried;  /* rotated: part of the step that the last period began. The first period passes
                      over it, and a run ends with it and the updates */
    int32_t unit;  /* MOMENTS, UPDATE, ZERO, collectives, state's moves; of the step's AGREE: -1 */
    int32_t block; /* collectives */
    int32_t item;  /* collectives, in the problem; -1 for AGREE */
    int32_t after; /* of its item's chain: the instruction that it comes after; 0: none */
    int64_t ns;    /* predicted */
    int32_t first_dependency, n_dependencies; /* in program->dependencies: earlier instructions */
    int32_t first_operand, n_operands;        /* in program->operands */
};

struct weft_program {
    struct weft_pool pool;
    int32_t n_slots;
    int32_t n_lanes;
    struct weft_lane *lanes; /* [n_lanes], the problem's */
    int32_t n_instructions;
    struct weft_instruction *instructions;
    int32_t *dependencies;
    struct weft_operand *operands;
    int32_t n_buffers;
    struct weft_buffer *buffers;
    int64_t arena_bytes; /* pages that are taken */
    int64_t live_bytes;  /* largest live sum over slots */
    int64_t base_bytes;
    struct weft_ring ring;      /* of the disk's blocks, beside the arena */
    int64_t staging_bytes;      /* of the ring, where it is in the device's memory */
    struct weft_paging *paging; /* of the buffers; owned */
    enum weft_policy *policies; /* by unit */
    enum weft_keep *keeps; /* by unit: of its master and moments, which if their home is not the
                              device are in the arena only from their READ or COPY_UP to their
                              WRITE or COPY_DOWN, and if they are updated there never; NULL: all
                              are on the device */
    int32_t n_units;
    int64_t *saved_at;  /* by layer: where in the host's memory what it saved is while it is away,
                           one micro-step's at a time; -1: it stays; NULL: all does */
    int64_t host_bytes; /* of that memory; 0 where saved_at is NULL */
    int32_t n_layers;
    struct weft_period_rule period;
};

/* Lowers a plan. Needs the stages that made its problem (for layers, tensors and sizes), so it can
 * be run only where the config is. Pages are the plan's, if it has any, else given out by
 * colouring. WEFT_E_DATA when plan and stages do not belong together. */
struct weft_lower_inputs {
    const struct weft_model *model;
    const struct weft_shards *shards;
    const struct weft_period *period;
    struct weft_weigh_options weigh;
    struct weft_work *work; /* that colouring spends; NULL: it is not counted */
    int64_t page_bytes;     /* 0: as the least limit asks (weft_schedule) */
    /* A program whose fullest slot has more, base included, gets no pages: its arena_bytes are that
     * slot's, and it can neither be verified nor run. 0: every program gets them. */
    int64_t most_bytes;
};
/* The inputs of the stages that a config and a profile made. They refer to stages and model. */
struct weft_lower_inputs weft_lower_inputs_of(const struct weft_config *config,
                                              const struct weft_profile *profile,
                                              const struct weft_stages *stages);
WEFT_MUST_USE enum weft_status weft_program_lower(const struct weft_plan *plan,
                                                  const struct weft_lower_inputs *inputs,
                                                  struct weft_program **out,
                                                  struct weft_error *err);
void weft_program_destroy(struct weft_program *program);

/* WEFT_OK when the arena_bytes and total_bytes of a plan that brings pages are those of its
 * program; else WEFT_E_DATA. */
WEFT_MUST_USE enum weft_status weft_program_check_prediction(const struct weft_program *program,
                                                             const struct weft_plan *plan,
                                                             struct weft_error *err);

/* True for a compute instruction at which time that passes since the one before it is a wait for
 * a lane: every MARK, FINISH, and whatever depends on a collective. */
bool weft_program_waits(const struct weft_program *program, int32_t instruction);
/* The stream that an instruction runs on: its op's, but for what is written on a lane of reads. */
enum weft_stream_kind weft_program_stream(const struct weft_program *program, int32_t instruction);
/* True when an operand writes a piece that its instruction does not read, and so makes it. An
 * instruction that reads and writes names the piece twice, first to read it. */
static inline bool weft_operand_makes(const struct weft_program *program,
                                      const struct weft_instruction *at, int32_t operand)
{
    const struct weft_operand *it = &program->operands[at->first_operand + operand];
    if (!it->writes || operand == 0) return it->writes;
    return it[-1].writes || it[-1].buffer != it->buffer || it[-1].piece != it->piece;
}

/* What the limit binds beside the arena. */
static inline int64_t weft_program_outside_bytes(const struct weft_program *program)
{
    return program->base_bytes + program->staging_bytes;
}

/* Where a unit's master and moments are; and whether that is elsewhere than on the device. */
enum weft_home weft_program_home(const struct weft_program *program, int32_t unit);
bool weft_program_is_away(const struct weft_program *program, int32_t unit);
/* Whether a unit is updated on the host, and not on the device. */
bool weft_program_updates_there(const struct weft_program *program, int32_t unit);

/* Whether what a layer saved is on the host between its forward and its backward. */
static inline bool weft_program_saves_away(const struct weft_program *program, int32_t layer)
{
    return program->saved_at != NULL && program->saved_at[layer] >= 0;
}

/* Kinds of buffers that go away: see struct weft_program. */
static inline bool weft_buffer_is_state(enum weft_buffer_kind kind)
{
    return kind == WEFT_BUFFER_MASTER || kind == WEFT_BUFFER_MOMENT1 || kind == WEFT_BUFFER_MOMENT2;
}

/* Where a buffer begins in a table, from the arena's first address. A piece of an operand is in
 * table (period - began_before) % 2. */
static inline int64_t weft_program_offset(const struct weft_program *program, int32_t buffer,
                                          int32_t table)
{
    return program->paging->places[buffer].offsets[table];
}

/* Index of the buffer, or -1. */
int32_t weft_program_buffer(const struct weft_program *program, enum weft_buffer_kind kind,
                            int32_t index, int32_t instance);

/* Proves the program's invariants from instructions alone, under happens-before (stream order,
 * dependencies, channel order; the period repeats): every read after the write that made it, no
 * piece overwritten or handed to another buffer before its last reader, no cycle, same collectives
 * whatever the rank, live bytes within `limit_bytes`, no two pieces that are live together overlap,
 * everything inside the arena; and of the paging that every range is mapped once, and no page is
 * handed to a second piece before the last reader of the first, in either table. WEFT_E_DATA names
 * the first violation. */
WEFT_MUST_USE enum weft_status weft_program_verify(const struct weft_program *program,
                                                   int64_t limit_bytes, struct weft_error *err);

#endif
