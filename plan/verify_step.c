#include <stdlib.h>

#include "plan/verify.h"

/* The step as far as it has been read, in issue order. */
struct step {
    const struct weft_program *program;
    const struct weft_order *order;
    struct weft_error *err;
    int32_t *updates;  /* by unit: its UPDATE, or -1 */
    int32_t *moved;    /* by buffer: blocks gathered into it or reduced from it */
    int32_t n_layers;  /* forwards seen */
    int32_t backwards; /* backwards still to come; -1 before the first */
    int32_t norm, agree, finish;
};

static enum weft_status fault(const struct step *step, int32_t index, const char *what)
{
    char name[WEFT_VERIFY_NAME_BYTES];
    return weft_fail(step->err, WEFT_E_DATA, "program: %s: %s",
                     weft_verify_instruction_name(step->program, index, name), what);
}

/* The operand of an instruction that reads, or writes, a buffer of a kind; NULL when none does. */
static const struct weft_operand *find_operand(const struct weft_program *program,
                                               const struct weft_instruction *at,
                                               enum weft_buffer_kind kind, int32_t unit,
                                               bool writes)
{
    for (int32_t i = 0; i < at->n_operands; i++) {
        const struct weft_operand *operand = &program->operands[at->first_operand + i];
        const struct weft_buffer *buffer = &program->buffers[operand->buffer];
        if (operand->writes == writes && buffer->kind == kind && buffer->index == unit)
            return operand;
    }
    return NULL;
}

/* Blocks of a buffer move in index order, each once. */
static enum weft_status move_block(struct step *step, int32_t index,
                                   const struct weft_operand *operand)
{
    const struct weft_instruction *at = &step->program->instructions[index];
    const struct weft_buffer *buffer = &step->program->buffers[operand->buffer];
    if (buffer->n_pieces > 1 && operand->piece != at->block) {
        return fault(step, index, "its operand is not its block");
    }
    if (at->block != step->moved[operand->buffer]++) {
        return fault(step, index, "blocks do not move in order, each once");
    }
    return WEFT_OK;
}

static enum weft_status check_gather(struct step *step, int32_t index)
{
    const struct weft_program *program = step->program;
    const struct weft_instruction *at = &program->instructions[index];
    enum weft_policy policy = program->policies[at->unit];
    if (policy == WEFT_POLICY_DP) return fault(step, index, "a unit under dp is never gathered");
    const struct weft_operand *to = find_operand(program, at, WEFT_BUFFER_FULL, at->unit, true);
    bool resident = policy == WEFT_POLICY_ZERO1;
    const struct weft_operand *from =
        find_operand(program, at, resident ? WEFT_BUFFER_FULL : WEFT_BUFFER_SHARD, at->unit, false);
    if (to == NULL || from == NULL) {
        return fault(step, index, "it does not gather its unit's parameters");
    }
    int32_t update = step->updates[at->unit];
    bool trains = weft_program_buffer(program, WEFT_BUFFER_GRADIENT, at->unit, 0) >= 0;
    if (trains && (update < 0 || !weft_order_before(step->order, update, index))) {
        return fault(step, index, "it may start before the unit's update is over");
    }
    return move_block(step, index, to);
}

static enum weft_status check_reduction(struct step *step, int32_t index)
{
    const struct weft_program *program = step->program;
    const struct weft_instruction *at = &program->instructions[index];
    bool whole = at->op == WEFT_OP_ALL_REDUCE;
    if (whole != (program->policies[at->unit] == WEFT_POLICY_DP)) {
        return fault(step, index, "its unit's policy reduces in another way");
    }
    const struct weft_operand *from =
        find_operand(program, at, WEFT_BUFFER_GRADIENT, at->unit, false);
    const struct weft_operand *to = find_operand(
        program, at, whole ? WEFT_BUFFER_GRADIENT : WEFT_BUFFER_REDUCED, at->unit, true);
    if (from == NULL || to == NULL) {
        return fault(step, index, "it does not reduce its unit's gradient");
    }
    if (whole && to->piece != from->piece) {
        return fault(step, index, "it writes another block than it reads");
    }
    return move_block(step, index, from);
}

static enum weft_status check_update(struct step *step, int32_t index)
{
    const struct weft_program *program = step->program;
    const struct weft_instruction *at = &program->instructions[index];
    enum weft_policy policy = program->policies[at->unit];
    if (step->updates[at->unit] >= 0) return fault(step, index, "the unit is updated twice");
    if (step->n_layers > 0) return fault(step, index, "it stands behind a forward");
    step->updates[at->unit] = index;
    bool resident = policy == WEFT_POLICY_DP || policy == WEFT_POLICY_ZERO1;
    if (find_operand(program, at, resident ? WEFT_BUFFER_FULL : WEFT_BUFFER_SHARD, at->unit,
                     true) == NULL) {
        return fault(step, index, "it does not write its unit's parameters");
    }
    if (find_operand(program, at,
                     policy == WEFT_POLICY_DP ? WEFT_BUFFER_GRADIENT : WEFT_BUFFER_REDUCED,
                     at->unit, false) == NULL) {
        return fault(step, index, "it does not read its unit's gradient");
    }
    return WEFT_OK;
}

/* Blocks that are gathered into a buffer in every step. */
static int32_t gathered_blocks(const struct weft_program *program, int32_t full)
{
    const struct weft_buffer *buffer = &program->buffers[full];
    enum weft_policy policy = program->policies[buffer->index];
    if (policy == WEFT_POLICY_DP) return 0;
    if (policy != WEFT_POLICY_ZERO1) return buffer->n_pieces;
    int32_t gradient = weft_program_buffer(program, WEFT_BUFFER_GRADIENT, buffer->index, 0);
    return gradient < 0 ? 0 : program->buffers[gradient].n_pieces;
}

/* No gradient is added to after a block of it was reduced. Parameters are read when all their
 * blocks are there: in a resident buffer nothing else tells the last step's from this one's. */
static enum weft_status check_layer_operands(struct step *step, int32_t index)
{
    const struct weft_program *program = step->program;
    const struct weft_instruction *at = &program->instructions[index];
    for (int32_t i = 0; i < at->n_operands; i++) {
        const struct weft_operand *operand = &program->operands[at->first_operand + i];
        enum weft_buffer_kind kind = program->buffers[operand->buffer].kind;
        int32_t moved = step->moved[operand->buffer];
        if (kind == WEFT_BUFFER_GRADIENT && operand->writes && moved > 0) {
            return fault(step, index, "it writes a gradient of which a block is reduced already");
        }
        if (kind == WEFT_BUFFER_FULL && moved != gathered_blocks(program, operand->buffer)) {
            return fault(step, index, "it reads parameters that are not gathered yet");
        }
    }
    return WEFT_OK;
}

/* A forward a layer in order, then a backward each in reverse. */
static enum weft_status check_layer(struct step *step, int32_t index)
{
    const struct weft_instruction *at = &step->program->instructions[index];
    if (at->op == WEFT_OP_FORWARD) {
        if (step->backwards >= 0 || at->layer != step->n_layers++) {
            return fault(step, index, "forwards do not run in order of layers");
        }
    }
    if (at->op == WEFT_OP_BACKWARD) {
        if (step->backwards < 0) step->backwards = step->n_layers;
        if (at->layer != --step->backwards) {
            return fault(step, index, "backwards do not run in reverse order of layers");
        }
    }
    return check_layer_operands(step, index);
}

/* Every buffer that comes block by block is complete: gathered, or reduced before the norm. */
static enum weft_status check_complete(struct step *step, bool gradients, int32_t index)
{
    const struct weft_program *program = step->program;
    for (int32_t b = 0; b < program->n_buffers; b++) {
        const struct weft_buffer *buffer = &program->buffers[b];
        if (buffer->kind != (gradients ? WEFT_BUFFER_GRADIENT : WEFT_BUFFER_FULL)) continue;
        int32_t expected = gradients ? buffer->n_pieces : gathered_blocks(program, b);
        if (step->moved[b] == expected) continue;
        char name[WEFT_VERIFY_NAME_BYTES], at[WEFT_VERIFY_NAME_BYTES];
        return weft_fail(step->err, WEFT_E_DATA,
                         "program: %s: %d of %d blocks of %s have moved by then",
                         weft_verify_instruction_name(program, index, at), step->moved[b], expected,
                         weft_verify_piece_name(program, b, 0, name));
    }
    return WEFT_OK;
}

static enum weft_status check_norm(struct step *step, int32_t index)
{
    const struct weft_program *program = step->program;
    if (step->norm >= 0) return fault(step, index, "there is a second norm");
    step->norm = index;
    if (find_operand(program, &program->instructions[index], WEFT_BUFFER_RECORD, -1, true) == NULL)
        return fault(step, index, "it does not write the record");
    WEFT_TRY(check_complete(step, true, index));
    for (int32_t u = 0; u < program->n_units; u++) {
        bool whole = program->policies[u] == WEFT_POLICY_DP;
        bool normed =
            find_operand(program, &program->instructions[index],
                         whole ? WEFT_BUFFER_GRADIENT : WEFT_BUFFER_REDUCED, u, false) != NULL;
        bool trained = weft_program_buffer(program, WEFT_BUFFER_GRADIENT, u, 0) >= 0;
        if (normed != trained || trained != (step->updates[u] >= 0)) {
            return fault(step, index, "the units that train, update and are in the norm differ");
        }
    }
    return WEFT_OK;
}

static enum weft_status check_end(struct step *step, int32_t index)
{
    bool agrees = step->program->instructions[index].op == WEFT_OP_AGREE;
    int32_t *seen = agrees ? &step->agree : &step->finish;
    int32_t before = agrees ? step->norm : step->agree;
    if (*seen >= 0 || before < 0 || !weft_order_before(step->order, before, index)) {
        return fault(step, index, "norm, agree and finish do not follow each other");
    }
    *seen = index;
    const struct weft_program *program = step->program;
    const struct weft_instruction *at = &program->instructions[index];
    bool whole = find_operand(program, at, WEFT_BUFFER_RECORD_SUM, -1, agrees) != NULL &&
                 (!agrees || find_operand(program, at, WEFT_BUFFER_RECORD, -1, false) != NULL);
    return whole ? WEFT_OK : fault(step, index, "it does not use the record and its sum");
}

static enum weft_status check_instruction(struct step *step, int32_t index)
{
    if (step->agree >= 0 && step->program->instructions[index].op != WEFT_OP_FINISH) {
        return fault(step, index, "it stands behind the sum over ranks");
    }
    switch (step->program->instructions[index].op) {
    case WEFT_OP_UPDATE:
        return check_update(step, index);
    case WEFT_OP_FORWARD:
    case WEFT_OP_ZERO:
    case WEFT_OP_BACKWARD:
        return check_layer(step, index);
    case WEFT_OP_NORM:
        return check_norm(step, index);
    case WEFT_OP_ALL_GATHER:
        return check_gather(step, index);
    case WEFT_OP_REDUCE_SCATTER:
    case WEFT_OP_ALL_REDUCE:
        return check_reduction(step, index);
    case WEFT_OP_AGREE:
    case WEFT_OP_FINISH:
        return check_end(step, index);
    case WEFT_OP_MARK:
    case WEFT_OP_LOAD:
    case WEFT_OP_COUNT:
        break;
    }
    return WEFT_OK;
}

static enum weft_status check_all(struct step *step)
{
    const struct weft_program *program = step->program;
    int32_t last = program->n_instructions - 1;
    for (int32_t u = 0; u < program->n_units; u++)
        step->updates[u] = -1;
    for (int32_t i = 0; i <= last; i++)
        WEFT_TRY(check_instruction(step, i));
    if (step->finish != last) return fault(step, last, "a step does not end without finish");
    if (step->n_layers == 0 || step->backwards != 0) {
        return fault(step, last, "not every forward has its backward");
    }
    return check_complete(step, false, last);
}

enum weft_status weft_verify_step(const struct weft_program *program,
                                  const struct weft_order *order, struct weft_error *err)
{
    struct step step = {
        .program = program,
        .order = order,
        .err = err,
        .updates = calloc((size_t)program->n_units + 1, sizeof *step.updates),
        .moved = calloc((size_t)program->n_buffers + 1, sizeof *step.moved),
        .backwards = -1,
        .norm = -1,
        .agree = -1,
        .finish = -1,
    };
    enum weft_status status = step.updates == NULL || step.moved == NULL
                                  ? weft_fail_memory(err, "verification")
                                  : check_all(&step);
    free(step.updates);
    free(step.moved);
    return status;
}
