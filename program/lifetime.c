/* SPDX-License-Identifier: Apache-2.0 */
#include "program/lifetime.h"

#include <stdlib.h>

bool weft_buffer_persists(const struct weft_program *program, const struct weft_buffer *buffer)
{
    switch (buffer->kind) {
    case WEFT_BUFFER_SHARD:
        return !weft_program_fetches(program, buffer->index);
    case WEFT_BUFFER_ANCHOR:
    case WEFT_BUFFER_OUTER:
    case WEFT_BUFFER_RECORD:
    case WEFT_BUFFER_RECORD_SUM:
        return true;
    case WEFT_BUFFER_MASTER:
    case WEFT_BUFFER_MOMENT1:
    case WEFT_BUFFER_MOMENT2:
        return !weft_program_is_offloaded(program, buffer->index);
    case WEFT_BUFFER_FULL:
        return !weft_policy_gathers(program->ways[buffer->index].policy);
    case WEFT_BUFFER_REDUCED:
        return program->period.delayed;
    case WEFT_BUFFER_GRADIENT:
    case WEFT_BUFFER_PARTIAL:
    case WEFT_BUFFER_TENSOR_NORMS:
    case WEFT_BUFFER_TENSOR_NORMS_SUM:
    case WEFT_BUFFER_INPUT:
    case WEFT_BUFFER_TARGETS:
    case WEFT_BUFFER_OUTPUT:
    case WEFT_BUFFER_OUTPUT_GRADIENT:
    case WEFT_BUFFER_SAVED:
    case WEFT_BUFFER_RESTORED:
    case WEFT_BUFFER_RESTORED_OUTPUT:
    case WEFT_BUFFER_FORWARD_TEMPORARY:
    case WEFT_BUFFER_BACKWARD_TEMPORARY:
    case WEFT_BUFFER_KIND_COUNT:
        break;
    }
    return false;
}

int32_t weft_program_pieces(const struct weft_program *program)
{
    int32_t pieces = 0;
    for (int32_t b = 0; b < program->n_buffers; b++)
        pieces += program->buffers[b].n_pieces;
    return pieces;
}

/* A piece's span while the instructions are walked in issue order. */
struct span {
    int32_t first;   /* slot in which its first maker may begin; -1 before it */
    int32_t last;    /* last slot of an access since then */
    int32_t wrapped; /* last slot of an access before the first maker; -1: none */
};

/* Slots in which an instruction may touch its operands. */
struct extent {
    int32_t first, last;
};

/* Limits the last slot of an extent to `last`. */
static void end_by(struct extent *extent, int32_t last)
{
    if (extent->last > last) extent->last = last;
}

/* Fills extents. No instruction begins before the MARK of its slot. A lane's instruction is
 * complete before the first compute instruction that waits for one of three. These are the
 * instruction itself, a later one of its lane, or one that follows it on another lane. A MARK is at
 * its slot's start, so it frees its own slot. The walk goes backwards, because instructions depend
 * on earlier ones. */
static void find_extents(const struct weft_program *program, struct extent *extents)
{
    int32_t behind[WEFT_MOST_LANES]; /* last slot of the next instruction on the lane */
    for (int32_t lane = 0; lane < program->n_lanes; lane++)
        behind[lane] = program->n_slots - 1;
    for (int32_t i = 0; i < program->n_instructions; i++)
        extents[i].last = program->n_slots - 1;
    for (int32_t i = program->n_instructions - 1; i >= 0; i--) {
        const struct weft_instruction *at = &program->instructions[i];
        bool computes = at->lane == WEFT_LANE_COMPUTE;
        extents[i].first = at->slot;
        if (computes) {
            extents[i].last = at->slot;
        } else {
            end_by(&extents[i], behind[at->lane]);
            behind[at->lane] = extents[i].last;
        }
        int32_t last = at->op == WEFT_OP_MARK ? at->slot - 1 : extents[i].last;
        for (int32_t d = 0; d < at->n_dependencies; d++) {
            int32_t before = program->dependencies[at->first_dependency + d];
            if (program->instructions[before].lane != WEFT_LANE_COMPUTE)
                end_by(&extents[before], last);
        }
    }
}

static void touch_span(struct span *span, struct extent extent, bool makes)
{
    if (span->first < 0 && makes) {
        span->first = extent.first;
        span->last = extent.last;
    } else if (span->first < 0) {
        if (extent.last > span->wrapped) span->wrapped = extent.last;
    } else if (extent.last > span->last) {
        span->last = extent.last;
    }
}

static void walk_operands(const struct weft_program *program, const int32_t *first_piece,
                          const struct extent *extents, struct span *spans)
{
    for (int32_t i = 0; i < program->n_instructions; i++) {
        const struct weft_instruction *at = &program->instructions[i];
        for (int32_t o = 0; o < at->n_operands; o++) {
            const struct weft_operand *operand = &program->operands[at->first_operand + o];
            const struct weft_buffer *buffer = &program->buffers[operand->buffer];
            bool makes = weft_operand_makes(program, at, o);
            int32_t from = operand->piece < 0 ? 0 : operand->piece;
            int32_t to = operand->piece < 0 ? buffer->n_pieces : operand->piece + 1;
            for (int32_t p = from; p < to; p++)
                touch_span(&spans[first_piece[operand->buffer] + p], extents[i], makes);
        }
    }
}

static enum weft_status finish_lives(const struct weft_program *program, const int32_t *first_piece,
                                     const struct span *spans, struct weft_life *lives,
                                     struct weft_error *err)
{
    for (int32_t b = 0; b < program->n_buffers; b++) {
        const struct weft_buffer *buffer = &program->buffers[b];
        bool persists = weft_buffer_persists(program, buffer);
        for (int32_t p = 0; p < buffer->n_pieces; p++) {
            const struct span *span = &spans[first_piece[b] + p];
            if (!persists && span->first < 0) {
                return weft_fail(err, WEFT_E_DATA, "program: nothing writes %s %d.%d piece %d",
                                 weft_buffer_kind_name(buffer->kind), buffer->index,
                                 buffer->instance, p);
            }
            struct weft_life *life = &lives[first_piece[b] + p];
            if (persists) {
                *life = (struct weft_life){0, program->n_slots - 1};
            } else {
                *life = (struct weft_life){span->first,
                                           span->wrapped >= 0 ? span->wrapped : span->last};
            }
        }
    }
    return WEFT_OK;
}

enum weft_status weft_program_lives(const struct weft_program *program, struct weft_life *lives,
                                    struct weft_error *err)
{
    size_t n_pieces = (size_t)weft_program_pieces(program);
    struct span *spans = calloc(n_pieces + 1, sizeof *spans);
    struct extent *extents = calloc((size_t)program->n_instructions + 1, sizeof *extents);
    int32_t *first_piece = calloc((size_t)program->n_buffers + 1, sizeof *first_piece);
    enum weft_status status = WEFT_OK;
    if (spans == NULL || extents == NULL || first_piece == NULL) {
        status = weft_fail_memory(err, "lifetimes");
    } else {
        for (int32_t b = 0; b < program->n_buffers; b++)
            first_piece[b + 1] = first_piece[b] + program->buffers[b].n_pieces;
        for (size_t p = 0; p < n_pieces; p++)
            spans[p] = (struct span){.first = -1, .wrapped = -1};
        find_extents(program, extents);
        walk_operands(program, first_piece, extents, spans);
        status = finish_lives(program, first_piece, spans, lives, err);
    }
    free(spans);
    free(extents);
    free(first_piece);
    return status;
}

/* Whether an operand's pieces were made in this period; -1: some were. */
static int are_made(const struct weft_buffer *buffer, const struct weft_operand *operand,
                    const bool *made)
{
    int32_t from = operand->piece < 0 ? 0 : operand->piece;
    int32_t to = operand->piece < 0 ? buffer->n_pieces : operand->piece + 1;
    for (int32_t p = from + 1; p < to; p++)
        if (made[p] != made[from]) return -1;
    return made[from];
}

static void set_made(const struct weft_buffer *buffer, const struct weft_operand *operand,
                     bool *made)
{
    int32_t from = operand->piece < 0 ? 0 : operand->piece;
    int32_t to = operand->piece < 0 ? buffer->n_pieces : operand->piece + 1;
    for (int32_t p = from; p < to; p++)
        made[p] = true;
}

static enum weft_status mark_begun(struct weft_program *program, const int32_t *first_piece,
                                   bool *made, struct weft_error *err)
{
    for (int32_t i = 0; i < program->n_instructions; i++) {
        const struct weft_instruction *at = &program->instructions[i];
        for (int32_t o = 0; o < at->n_operands; o++) {
            struct weft_operand *operand = &program->operands[at->first_operand + o];
            const struct weft_buffer *buffer = &program->buffers[operand->buffer];
            bool *of_buffer = &made[first_piece[operand->buffer]];
            if (weft_buffer_persists(program, buffer)) continue;
            if (weft_operand_makes(program, at, o)) set_made(buffer, operand, of_buffer);
            int are = are_made(buffer, operand, of_buffer);
            if (are < 0) {
                return weft_fail(err, WEFT_E_INTERNAL,
                                 "program: instruction %d uses pieces of %s %d.%d that began in "
                                 "different periods",
                                 i, weft_buffer_kind_name(buffer->kind), buffer->index,
                                 buffer->instance);
            }
            operand->began_before = are == 0;
        }
    }
    return WEFT_OK;
}

enum weft_status weft_program_mark_begun(struct weft_program *program, struct weft_error *err)
{
    bool *made = calloc((size_t)weft_program_pieces(program) + 1, sizeof *made);
    int32_t *first_piece = calloc((size_t)program->n_buffers + 1, sizeof *first_piece);
    enum weft_status status = WEFT_OK;
    if (made == NULL || first_piece == NULL) {
        status = weft_fail_memory(err, "lifetimes");
    } else {
        for (int32_t b = 0; b < program->n_buffers; b++)
            first_piece[b + 1] = first_piece[b] + program->buffers[b].n_pieces;
        status = mark_begun(program, first_piece, made, err);
    }
    free(made);
    free(first_piece);
    return status;
}

void weft_program_live(const struct weft_program *program, int64_t *rows)
{
    for (int32_t s = 0; s < program->n_slots; s++) {
        for (int32_t c = 0; c < WEFT_CATEGORY_COUNT; c++)
            rows[s * WEFT_CATEGORY_COUNT + c] = 0;
        rows[s * WEFT_CATEGORY_COUNT + WEFT_CATEGORY_BASE] = program->base_bytes;
        rows[s * WEFT_CATEGORY_COUNT + WEFT_CATEGORY_STAGING] = program->staging_bytes;
    }
    for (int32_t b = 0; b < program->n_buffers; b++) {
        const struct weft_buffer *buffer = &program->buffers[b];
        int64_t piece_bytes = buffer->bytes / buffer->n_pieces;
        for (int32_t p = 0; p < buffer->n_pieces; p++) {
            struct weft_life life = buffer->lives[p];
            int32_t slot = life.first;
            for (;;) {
                rows[slot * WEFT_CATEGORY_COUNT + buffer->category] += piece_bytes;
                if (slot == life.last) break;
                slot = slot + 1 == program->n_slots ? 0 : slot + 1;
            }
        }
    }
}
