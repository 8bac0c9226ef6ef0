/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "program/lifetime.h"
#include "runtime/exec/parts.h"

/* A piece of a buffer. `left` counts accesses of its current life that may not be complete. */
struct piece {
    bool persists, live;
    int32_t accesses, left; /* accesses: in a period */
    int64_t bytes;
    enum weft_category category;
};

struct exec_live {
    const struct weft_program *program;
    int32_t *first_piece; /* [n_buffers] */
    struct piece *pieces;
    int64_t bytes[WEFT_CATEGORY_COUNT]; /* live now */
    int32_t slot;                       /* of the last MARK; -1 before the first */
    int32_t
        awaited[WEFT_MOST_LANES]; /* by lane: the last instruction that compute has waited for */
    /* Instructions of lanes by launch slot. A plan counts their bytes from that slot's start. In
     * the queue they may come after instructions with later launches. */
    int32_t *launched;       /* in order of slot */
    int32_t *first_launched; /* [n_slots + 1]: start of each slot's list in `launched` */
    /* Issued instructions that may not be complete, oldest first. */
    int32_t *running[WEFT_MOST_LANES];
    int32_t n_running[WEFT_MOST_LANES];
};

typedef void access_fn(struct exec_live *live, struct piece *piece, bool makes);

static void for_accesses(struct exec_live *live, int32_t instruction, access_fn *access)
{
    const struct weft_program *program = live->program;
    const struct weft_instruction *at = &program->instructions[instruction];
    for (int32_t i = 0; i < at->n_operands; i++) {
        const struct weft_operand *operand = &program->operands[at->first_operand + i];
        int32_t n_pieces = program->buffers[operand->buffer].n_pieces;
        struct piece *pieces = &live->pieces[live->first_piece[operand->buffer]];
        int32_t from = operand->piece < 0 ? 0 : operand->piece;
        int32_t to = operand->piece < 0 ? n_pieces : operand->piece + 1;
        bool makes = weft_operand_makes(program, at, i);
        for (int32_t p = from; p < to; p++)
            access(live, &pieces[p], makes);
    }
}

static void count_access(struct exec_live *live, struct piece *piece, bool makes)
{
    (void)live;
    (void)makes;
    piece->accesses++;
}

/* A read of a piece that is not live reads bytes from before the first period. */
static void begin_access(struct exec_live *live, struct piece *piece, bool makes)
{
    if (piece->live || !makes) return;
    piece->live = true;
    piece->left = piece->accesses;
    live->bytes[piece->category] += piece->bytes;
}

static void end_access(struct exec_live *live, struct piece *piece, bool makes)
{
    (void)makes;
    if (!piece->live || piece->persists || --piece->left > 0) return;
    piece->live = false;
    live->bytes[piece->category] -= piece->bytes;
}

/* Completes the first `n` running instructions of a lane. */
static void retire_running(struct exec_live *live, int32_t lane, int32_t n)
{
    int32_t *running = live->running[lane];
    for (int32_t i = 0; i < n; i++)
        for_accesses(live, running[i], end_access);
    live->n_running[lane] -= n;
    for (int32_t i = 0; i < live->n_running[lane]; i++)
        running[i] = running[i + n];
}

static void await_dependencies(struct exec_live *live, const struct weft_instruction *at)
{
    for (int32_t d = 0; d < at->n_dependencies; d++) {
        int32_t before = live->program->dependencies[at->first_dependency + d];
        const int32_t lane = live->program->instructions[before].lane;
        if (before > live->awaited[lane]) live->awaited[lane] = before;
    }
}

/* Completes instructions up to the awaited one: a lane runs in order. */
static void retire_awaited(struct exec_live *live, int32_t lane)
{
    int32_t n = 0;
    while (n < live->n_running[lane] && live->running[lane][n] <= live->awaited[lane])
        n++;
    retire_running(live, lane, n);
}

static void begin_period(struct exec_live *live)
{
    live->slot = -1;
    for (int32_t lane = 0; lane < WEFT_MOST_LANES; lane++)
        live->awaited[lane] = -1;
}

static void write_row(const struct exec_live *live, int64_t *rows)
{
    if (rows == NULL || live->slot < 0) return;
    for (int32_t c = 0; c < WEFT_CATEGORY_COUNT; c++)
        rows[live->slot * WEFT_CATEGORY_COUNT + c] = live->bytes[c];
}

void weft_exec_live_issue(struct exec_live *live, int32_t instruction, int64_t *rows)
{
    const struct weft_instruction *at = &live->program->instructions[instruction];
    if (at->lane == WEFT_LANE_COMPUTE) await_dependencies(live, at);
    if (at->op == WEFT_OP_MARK) {
        write_row(live, rows);
        retire_running(live, WEFT_LANE_COMPUTE, live->n_running[WEFT_LANE_COMPUTE]);
        for (int32_t lane = WEFT_LANE_FIRST; lane < live->program->n_lanes; lane++)
            retire_awaited(live, lane);
        live->slot = at->slot;
        for (int32_t l = live->first_launched[at->slot]; l < live->first_launched[at->slot + 1];
             l++)
            for_accesses(live, live->launched[l], begin_access);
    }
    if (at->n_operands == 0) return;
    if (at->lane == WEFT_LANE_COMPUTE) for_accesses(live, instruction, begin_access);
    live->running[at->lane][live->n_running[at->lane]++] = instruction;
}

/* The step was synchronised, so nothing runs any more. */
void weft_exec_live_end(struct exec_live *live, int64_t *rows)
{
    write_row(live, rows);
    for (int32_t lane = 0; lane < live->program->n_lanes; lane++)
        retire_running(live, lane, live->n_running[lane]);
    begin_period(live);
}

static enum weft_status allocate_live(struct exec_live *live, struct weft_error *err)
{
    const struct weft_program *program = live->program;
    size_t n_buffers = (size_t)program->n_buffers, n_pieces = 0;
    for (size_t b = 0; b < n_buffers; b++)
        n_pieces += (size_t)program->buffers[b].n_pieces;
    live->first_piece = calloc(n_buffers + 1, sizeof *live->first_piece);
    live->pieces = calloc(n_pieces + 1, sizeof *live->pieces);
    live->launched = calloc((size_t)program->n_instructions + 1, sizeof *live->launched);
    live->first_launched = calloc((size_t)program->n_slots + 2, sizeof *live->first_launched);
    bool running = true;
    for (int32_t lane = 0; lane < program->n_lanes; lane++) {
        live->running[lane] =
            calloc((size_t)program->n_instructions + 1, sizeof *live->running[lane]);
        running = running && live->running[lane] != NULL;
    }
    if (live->first_piece == NULL || live->pieces == NULL || live->launched == NULL ||
        live->first_launched == NULL || !running) {
        return weft_fail_memory(err, "the count of live bytes");
    }
    return WEFT_OK;
}

/* Counts, then places. Placing moves first_launched[s + 1] from the start of slot s's list to its
 * end, which is the start of the next list. */
static void list_launches(struct exec_live *live)
{
    const struct weft_program *program = live->program;
    int32_t *first = live->first_launched;
    for (int32_t i = 0; i < program->n_instructions; i++) {
        const struct weft_instruction *at = &program->instructions[i];
        if (at->lane != WEFT_LANE_COMPUTE) first[at->slot + 2]++;
    }
    for (int32_t s = 0; s < program->n_slots; s++)
        first[s + 2] += first[s + 1];
    for (int32_t i = 0; i < program->n_instructions; i++) {
        const struct weft_instruction *at = &program->instructions[i];
        if (at->lane != WEFT_LANE_COMPUTE) live->launched[first[at->slot + 1]++] = i;
    }
}

/* Walks one period, so that pieces that live across its end are live as in later periods. */
static void settle_period(struct exec_live *live)
{
    live->bytes[WEFT_CATEGORY_BASE] = live->program->base_bytes;
    live->bytes[WEFT_CATEGORY_STAGING] = live->program->staging_bytes;
    for (int32_t b = 0, next = 0; b < live->program->n_buffers; b++) {
        const struct weft_buffer *buffer = &live->program->buffers[b];
        live->first_piece[b] = next;
        for (int32_t p = 0; p < buffer->n_pieces; p++) {
            struct piece *piece = &live->pieces[next++];
            piece->bytes = buffer->bytes / buffer->n_pieces;
            piece->category = buffer->category;
            piece->persists = piece->live = weft_buffer_persists(live->program, buffer);
            if (piece->live) live->bytes[piece->category] += piece->bytes;
        }
    }
    for (int32_t i = 0; i < live->program->n_instructions; i++)
        for_accesses(live, i, count_access);
    begin_period(live);
    for (int32_t i = 0; i < live->program->n_instructions; i++)
        weft_exec_live_issue(live, i, NULL);
    weft_exec_live_end(live, NULL);
}

enum weft_status weft_exec_live_create(const struct weft_program *program, struct exec_live **out,
                                       struct weft_error *err)
{
    struct exec_live *live = calloc(1, sizeof *live);
    if (live == NULL) return weft_fail_memory(err, "the count of live bytes");
    live->program = program;
    enum weft_status status = allocate_live(live, err);
    if (status != WEFT_OK) {
        weft_exec_live_destroy(live);
        return status;
    }
    list_launches(live);
    settle_period(live);
    *out = live;
    return WEFT_OK;
}

void weft_exec_live_destroy(struct exec_live *live)
{
    if (live == NULL) return;
    free(live->first_piece);
    free(live->pieces);
    free(live->launched);
    free(live->first_launched);
    for (int32_t lane = 0; lane < WEFT_MOST_LANES; lane++)
        free(live->running[lane]);
    free(live);
}
