/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "program/lifetime.h"
#include "program/program_text.h"
#include "program/verify.h"

enum access_kind { READS = 1, WRITES = 2 };
enum access_began { NOW = 1, BEFORE = 2 };

struct access {
    int32_t instruction;
    int kind;  /* READS | WRITES */
    int began; /* NOW or BEFORE by the operands; both if they differ */
};

struct piece {
    int32_t buffer, index;
    int32_t first_access, n_accesses; /* in issue order of one period */
    struct weft_turn turn;
};

struct checker {
    const struct weft_program *program;
    const struct weft_order *order;
    struct weft_error *err;
    int32_t n_pieces;
    struct piece *pieces;
    int32_t *first_piece; /* [n_buffers] */
    struct access *accesses;
};

/* Counts the accesses of every piece, or stores them with `fill`. */
static void collect_accesses(struct checker *checker, bool fill)
{
    const struct weft_program *program = checker->program;
    for (int32_t i = 0; i < program->n_instructions; i++) {
        const struct weft_instruction *at = &program->instructions[i];
        for (int32_t o = 0; o < at->n_operands; o++) {
            const struct weft_operand *operand = &program->operands[at->first_operand + o];
            int32_t n = program->buffers[operand->buffer].n_pieces;
            int32_t from = operand->piece < 0 ? 0 : operand->piece;
            int32_t to = operand->piece < 0 ? n : operand->piece + 1;
            for (int32_t p = from; p < to; p++) {
                struct piece *piece = &checker->pieces[checker->first_piece[operand->buffer] + p];
                if (fill) {
                    checker->accesses[piece->first_access + piece->n_accesses] = (struct access){
                        i, operand->writes ? WRITES : READS, operand->began_before ? BEFORE : NOW};
                }
                piece->n_accesses++;
            }
        }
    }
}

/* Makes one access of an instruction's read and write of a piece. */
static void merge_accesses(struct checker *checker, struct piece *piece)
{
    struct access *accesses = &checker->accesses[piece->first_access];
    int32_t n = 0;
    for (int32_t i = 0; i < piece->n_accesses; i++) {
        if (n > 0 && accesses[n - 1].instruction == accesses[i].instruction) {
            accesses[n - 1].kind |= accesses[i].kind;
            accesses[n - 1].began |= accesses[i].began;
        } else {
            accesses[n++] = accesses[i];
        }
    }
    piece->n_accesses = n;
}

static enum weft_status prepare_pieces(struct checker *checker)
{
    const struct weft_program *program = checker->program;
    checker->n_pieces = weft_program_pieces(program);
    checker->pieces = calloc((size_t)checker->n_pieces + 1, sizeof *checker->pieces);
    checker->first_piece = calloc((size_t)program->n_buffers + 1, sizeof *checker->first_piece);
    if (checker->pieces == NULL || checker->first_piece == NULL) {
        return weft_fail_memory(checker->err, "verification");
    }
    int32_t n = 0;
    for (int32_t b = 0; b < program->n_buffers; b++) {
        const struct weft_buffer *buffer = &program->buffers[b];
        checker->first_piece[b] = n;
        for (int32_t p = 0; p < buffer->n_pieces; p++, n++) {
            checker->pieces[n] = (struct piece){
                .buffer = b,
                .index = p,
            };
        }
    }
    collect_accesses(checker, false);
    int32_t n_accesses = 0;
    for (int32_t p = 0; p < n; p++) {
        checker->pieces[p].first_access = n_accesses;
        n_accesses += checker->pieces[p].n_accesses;
        checker->pieces[p].n_accesses = 0;
    }
    checker->accesses = calloc((size_t)n_accesses + 1, sizeof *checker->accesses);
    if (checker->accesses == NULL) return weft_fail_memory(checker->err, "verification");
    collect_accesses(checker, true);
    for (int32_t p = 0; p < n; p++)
        merge_accesses(checker, &checker->pieces[p]);
    return WEFT_OK;
}

static enum weft_status refuse_access(const struct checker *checker, const struct piece *piece,
                                      int32_t instruction, const char *what)
{
    char of[WEFT_PROGRAM_NAME_BYTES], name[WEFT_PROGRAM_NAME_BYTES];
    return weft_fail(checker->err, WEFT_E_DATA, "program: %s %s %s",
                     weft_program_instruction_name(checker->program, instruction, of), what,
                     weft_program_piece_name(checker->program, piece->buffer, piece->index, name));
}

/* The last accesses so far, by lane; -1: none. */
struct recent {
    int32_t reads[WEFT_MOST_LANES], writes[WEFT_MOST_LANES];
};

/* A write must be ordered after all earlier accesses of the piece, and a read after all earlier
 * writes. */
static enum weft_status follow_access(const struct checker *checker, const struct piece *piece,
                                      struct recent *recent, struct access access, int32_t period)
{
    int32_t n = checker->program->n_instructions;
    int32_t now = access.instruction + period * n;
    for (int32_t s = 0; s < checker->order->n_lanes; s++) {
        int32_t before = recent->writes[s];
        bool ordered = before < 0 || weft_order_before(checker->order, before, now);
        if (ordered && (access.kind & WRITES) != 0) {
            before = recent->reads[s];
            ordered = before < 0 || weft_order_before(checker->order, before, now);
        }
        if (ordered) continue;
        char one[WEFT_PROGRAM_NAME_BYTES], other[WEFT_PROGRAM_NAME_BYTES];
        char name[WEFT_PROGRAM_NAME_BYTES];
        return weft_fail(
            checker->err, WEFT_E_DATA, "program: %s does not wait for %s, and both use %s",
            weft_program_instruction_name(checker->program, access.instruction, one),
            weft_program_instruction_name(checker->program, before % n, other),
            weft_program_piece_name(checker->program, piece->buffer, piece->index, name));
    }
    int32_t lane = checker->order->lanes[access.instruction];
    if ((access.kind & READS) != 0) recent->reads[lane] = now;
    if ((access.kind & WRITES) != 0) recent->writes[lane] = now;
    return WEFT_OK;
}

static bool makes_piece(struct access access)
{
    return access.kind == WRITES;
}

/* Only gradients cross the end of a period, and only to the update. In a rotated period, operands
 * of the last step's rest do too. */
static bool may_wrap(const struct checker *checker, const struct piece *piece, struct access access)
{
    enum weft_buffer_kind kind = checker->program->buffers[piece->buffer].kind;
    const struct weft_instruction *at = &checker->program->instructions[access.instruction];
    bool updates = (at->op == WEFT_OP_UPDATE || at->op == WEFT_OP_MOMENTS) &&
                   (kind == WEFT_BUFFER_GRADIENT || kind == WEFT_BUFFER_REDUCED);
    return updates || at->carried;
}

/* A piece began in the period of the last write that made it. */
static enum weft_status check_begun(const struct checker *checker, const struct piece *piece,
                                    int32_t first)
{
    const struct access *accesses = &checker->accesses[piece->first_access];
    for (int32_t i = 0; i < piece->n_accesses; i++) {
        if (accesses[i].began == (i < first ? BEFORE : NOW)) continue;
        return refuse_access(checker, piece, accesses[i].instruction,
                             "is said to use what began in another period of");
    }
    return WEFT_OK;
}

static enum weft_status never_made(const struct checker *checker, const struct piece *piece)
{
    char name[WEFT_PROGRAM_NAME_BYTES];
    return weft_fail(checker->err, WEFT_E_DATA, "program: nothing writes %s",
                     weft_program_piece_name(checker->program, piece->buffer, piece->index, name));
}

static enum weft_status check_turn(struct checker *checker, struct piece *piece)
{
    const struct access *accesses = &checker->accesses[piece->first_access];
    int32_t n = piece->n_accesses, first = 0;
    struct weft_turn *turn = &piece->turn;
    *turn = (struct weft_turn){.buffer = piece->buffer, .piece = piece->index};
    turn->persists =
        weft_buffer_persists(checker->program, &checker->program->buffers[piece->buffer]);
    if (!turn->persists) {
        while (first < n && !makes_piece(accesses[first]) &&
               may_wrap(checker, piece, accesses[first]))
            first++;
        if (first == n) return never_made(checker, piece);
        if (!makes_piece(accesses[first])) {
            return refuse_access(checker, piece, accesses[first].instruction,
                                 "uses, before anything writes it,");
        }
        turn->first = accesses[first].instruction;
    }
    WEFT_TRY(check_begun(checker, piece, first));
    struct recent recent;
    for (int32_t s = 0; s < checker->order->n_lanes; s++)
        recent.reads[s] = recent.writes[s] = -1;
    /* Follows one turn and the first access of the next. A turn without end is followed twice. */
    int32_t end = turn->persists ? 2 * n : first + n + 1;
    for (int32_t i = first; i < end; i++) {
        int32_t period = i / n;
        struct access access = accesses[i % n];
        WEFT_TRY(follow_access(checker, piece, &recent, access, period));
        if (i >= first + n) continue;
        int32_t at = access.instruction + period * checker->program->n_instructions;
        int32_t lane = checker->order->lanes[access.instruction];
        turn->over[lane] = weft_order_position(checker->order, at) + 1;
    }
    return WEFT_OK;
}

static enum weft_status check_pages(const struct checker *checker)
{
    struct weft_turn *turns = calloc((size_t)checker->n_pieces + 1, sizeof *turns);
    if (turns == NULL) return weft_fail_memory(checker->err, "verification");
    for (int32_t p = 0; p < checker->n_pieces; p++)
        turns[p] = checker->pieces[p].turn;
    enum weft_status status =
        weft_verify_pages(checker->program, checker->order, turns, checker->n_pieces, checker->err);
    free(turns);
    return status;
}

static enum weft_status check_all(struct checker *checker)
{
    WEFT_TRY(prepare_pieces(checker));
    for (int32_t p = 0; p < checker->n_pieces; p++)
        WEFT_TRY(check_turn(checker, &checker->pieces[p]));
    return check_pages(checker);
}

enum weft_status weft_verify_memory(const struct weft_program *program,
                                    const struct weft_order *order, struct weft_error *err)
{
    struct checker checker = {.program = program, .order = order, .err = err};
    enum weft_status status = check_all(&checker);
    free(checker.pieces);
    free(checker.first_piece);
    free(checker.accesses);
    return status;
}
