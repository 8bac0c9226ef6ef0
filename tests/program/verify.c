/* SPDX-License-Identifier: Apache-2.0 */
#include "problem/stages.h"
#include "program/program.h"

#include <criterion/criterion.h>
#include <string.h>

#include "tests/program/random_model.h"

enum { VERIFY_CASES = 80 };

/* A random program that may be spoilt. */
struct subject {
    struct random_case random;
    struct weft_plan *plan;
    struct weft_program *program;
};

static void subject_init(struct subject *subject, uint64_t seed)
{
    random_case_init(&subject->random, seed);
    subject->plan = random_plan(&subject->random, 0);
    subject->program = random_program(&subject->random, subject->plan);
}

static void subject_finish(struct subject *subject)
{
    weft_program_destroy(subject->program);
    weft_plan_destroy(subject->plan);
    random_case_finish(&subject->random);
}

static int64_t total_bytes(const struct weft_program *program)
{
    return program->base_bytes + program->arena_bytes;
}

static void accept(const struct subject *subject)
{
    struct weft_error err = {0};
    enum weft_status status =
        weft_program_verify(subject->program, total_bytes(subject->program), &err);
    cr_assert_eq(status, WEFT_OK, "seed %d: %s", (int)subject->random.seed, err.text);
}

/* Expects a refusal with this word. */
static void refuse(const struct subject *subject, const char *word)
{
    struct weft_error err = {0};
    enum weft_status status = weft_program_verify(subject->program, INT64_MAX, &err);
    cr_assert_eq(status, WEFT_E_DATA, "seed %d: not refused; expected: %s",
                 (int)subject->random.seed, word);
    cr_assert(strstr(err.text, word) != NULL, "seed %d: \"%s\" lacks \"%s\"",
              (int)subject->random.seed, err.text, word);
}

/* Runs a spoiler over many programs. A spoiler restores the program and returns the number of
 * refusals. */
static void spoil_at_least(int least, int (*spoiler)(struct subject *subject))
{
    int spoilt = 0;
    for (uint64_t seed = 0; seed < VERIFY_CASES; seed++) {
        struct subject subject;
        subject_init(&subject, seed);
        spoilt += spoiler(&subject);
        accept(&subject);
        subject_finish(&subject);
    }
    cr_assert_gt(spoilt, least, "the test found next to nothing to spoil");
}

static void spoil_verify(int (*spoiler)(struct subject *subject))
{
    spoil_at_least(VERIFY_CASES / 4, spoiler);
}

static bool moves_block(const struct weft_instruction *at)
{
    return at->op == WEFT_OP_ALL_GATHER || at->op == WEFT_OP_REDUCE_SCATTER ||
           at->op == WEFT_OP_ALL_REDUCE;
}

static int32_t mark_of(const struct weft_program *program, int32_t slot)
{
    for (int32_t i = 0; i < program->n_instructions; i++) {
        const struct weft_instruction *at = &program->instructions[i];
        if (at->op == WEFT_OP_MARK && at->slot == slot) return i;
    }
    return -1;
}

Test(verify, accepts_lowered_plans)
{
    for (uint64_t seed = 0; seed < VERIFY_CASES; seed++) {
        struct subject subject;
        subject_init(&subject, seed);
        accept(&subject);
        subject_finish(&subject);
    }
}

static int one_byte_less(struct subject *subject)
{
    struct weft_error err = {0};
    int64_t limit_bytes = total_bytes(subject->program) - 1;
    cr_assert_eq(weft_program_verify(subject->program, limit_bytes, &err), WEFT_E_DATA);
    cr_assert(strstr(err.text, "exceed the limit") != NULL, "%s", err.text);
    return 1;
}

Test(verify, limit_binds_base_and_arena)
{
    spoil_verify(one_byte_less);
}

static int shrink_arena(struct subject *subject)
{
    subject->program->arena_bytes -= WEFT_ARENA_ALIGN_BYTES;
    refuse(subject, "are no arena of");
    subject->program->arena_bytes += WEFT_ARENA_ALIGN_BYTES;
    return 1;
}

Test(verify, arena_is_the_pages)
{
    spoil_verify(shrink_arena);
}

/* Said to end one slot early or late, or to begin so. */
static int change_lives(struct subject *subject)
{
    struct weft_program *program = subject->program;
    int32_t n = program->n_slots;
    int spoilt = 0;
    for (int32_t b = 0; b < program->n_buffers; b++) {
        for (int32_t p = 0; p < program->buffers[b].n_pieces; p++) {
            struct weft_life *life = (struct weft_life *)&program->buffers[b].lives[p];
            struct weft_life true_life = *life;
            life->last = (true_life.last + n - 1) % n;
            refuse(subject, "is said to live");
            life->last = (true_life.last + 1) % n;
            refuse(subject, "is said to live");
            *life = true_life;
            life->first = (true_life.first + 1) % n;
            refuse(subject, "is said to live");
            *life = true_life;
            spoilt = 1;
        }
    }
    return spoilt;
}

Test(verify, lives_are_those_of_the_instructions)
{
    spoil_verify(change_lives);
}

static int lie_about_live_bytes(struct subject *subject)
{
    subject->program->live_bytes++;
    refuse(subject, "bytes are live");
    subject->program->live_bytes--;
    return 1;
}

Test(verify, live_bytes_are_summed)
{
    spoil_verify(lie_about_live_bytes);
}

/* True when the layer of the slot waits for the channel itself, and so for all that its MARK does.
 */
static bool slot_blocks(const struct weft_program *program, int32_t slot)
{
    for (int32_t i = 0; i < program->n_instructions; i++) {
        const struct weft_instruction *at = &program->instructions[i];
        bool layer = at->op == WEFT_OP_FORWARD || at->op == WEFT_OP_BACKWARD;
        if (layer && at->slot == slot) return at->n_dependencies > 0;
    }
    return false;
}

/* A gather that nobody waits for: its dependency becomes one that was there before. */
static int drop_mark_dependency(struct subject *subject)
{
    struct weft_program *program = subject->program;
    int spoilt = 0;
    for (int32_t i = 0; i < program->n_instructions; i++) {
        struct weft_instruction *at = &program->instructions[i];
        bool layer = at->op == WEFT_OP_FORWARD || at->op == WEFT_OP_BACKWARD;
        if ((at->op != WEFT_OP_MARK && !layer) || at->n_dependencies == 0) continue;
        if (at->op == WEFT_OP_MARK && slot_blocks(program, at->slot)) continue;
        int32_t *dependency = &program->dependencies[at->first_dependency];
        int32_t awaited = *dependency;
        bool norm = !program->period.rotated && program->n_slots - 1 == at->slot;
        if (program->instructions[awaited].op != WEFT_OP_ALL_GATHER && !norm) continue;
        *dependency = 0;
        refuse(subject, "does not wait for");
        *dependency = awaited;
        spoilt = 1;
    }
    return spoilt;
}

Test(verify, use_that_does_not_wait)
{
    spoil_verify(drop_mark_dependency);
}

static int drop_launch_dependency(struct subject *subject)
{
    struct weft_program *program = subject->program;
    int spoilt = 0;
    for (int32_t i = 0; i < program->n_instructions; i++) {
        struct weft_instruction *at = &program->instructions[i];
        if (!moves_block(at) || at->slot == 0) continue;
        int32_t *dependency = &program->dependencies[at->first_dependency];
        int32_t mark = *dependency;
        *dependency = 0;
        refuse(subject, "does not wait for the mark");
        *dependency = mark;
        spoilt = 1;
    }
    return spoilt;
}

Test(verify, launch_that_does_not_wait)
{
    spoil_verify(drop_launch_dependency);
}

/* Launches in an earlier slot, honestly. */
static int launch_early(struct subject *subject)
{
    struct weft_program *program = subject->program;
    int spoilt = 0;
    int32_t ahead = 0; /* slot of the mark that the channel waits for anyway */
    for (int32_t i = 0; i < program->n_instructions; i++) {
        struct weft_instruction *at = &program->instructions[i];
        if (!moves_block(at)) continue;
        const struct weft_problem *problem = subject->plan->problem;
        bool gathers = at->op == WEFT_OP_ALL_GATHER;
        int32_t update = problem->decisions[at->unit].update_slot;
        int32_t early = gathers ? update : problem->items[at->item].item.first - 1;
        int32_t last = program->dependencies[at->first_dependency + at->n_dependencies - 1];
        /* In a rotated period a second gather comes before the update in any case. */
        if (gathers && at->carried) early = -1;
        /* Norms of tensors may lie where it would gather to, and that would be found first. */
        if (gathers && program->period.agreed_updates) early = -1;
        if (early > ahead && at->n_dependencies == 1) {
            int32_t slot = at->slot, *dependency = &program->dependencies[at->first_dependency];
            int32_t mark = *dependency;
            at->slot = early;
            *dependency = mark_of(program, early);
            if (gathers) {
                refuse(subject, "before the unit's update is over");
            } else {
                refuse(subject, "does not wait for");
            }
            at->slot = slot;
            *dependency = mark;
            spoilt = 1;
        }
        if (program->instructions[last].slot > ahead) ahead = program->instructions[last].slot;
    }
    return spoilt;
}

Test(verify, launched_too_early)
{
    spoil_verify(launch_early);
}

static void swap_content(struct weft_program *program, int32_t a, int32_t b)
{
    struct weft_instruction *x = &program->instructions[a], *y = &program->instructions[b];
    struct weft_instruction old = *x;
    x->unit = y->unit;
    x->block = y->block;
    x->item = y->item;
    y->unit = old.unit;
    y->block = old.block;
    y->item = old.item;
    for (int32_t i = 0; i < x->n_operands; i++) {
        struct weft_operand *p = &program->operands[x->first_operand + i];
        struct weft_operand *q = &program->operands[y->first_operand + i];
        struct weft_operand operand = *p;
        *p = *q;
        *q = operand;
    }
}

static int swap_blocks(struct subject *subject)
{
    struct weft_program *program = subject->program;
    int spoilt = 0;
    int32_t last = -1;
    for (int32_t i = 0; i < program->n_instructions; i++) {
        const struct weft_instruction *at = &program->instructions[i];
        if (!moves_block(at)) continue;
        if (last >= 0 && program->instructions[last].item == at->item) {
            swap_content(program, last, i);
            refuse(subject, "blocks do not move in order");
            swap_content(program, last, i);
            spoilt = 1;
        }
        last = i;
    }
    return spoilt;
}

Test(verify, blocks_out_of_order)
{
    spoil_verify(swap_blocks);
}

/* Swaps the awaited gather with a later one that is due later. */
static int swap_gathers(struct subject *subject)
{
    struct weft_program *program = subject->program;
    int spoilt = 0;
    for (int32_t i = 0; i < program->n_instructions; i++) {
        const struct weft_instruction *mark = &program->instructions[i];
        if (mark->op != WEFT_OP_MARK || mark->n_dependencies == 0) continue;
        int32_t awaited = program->dependencies[mark->first_dependency];
        const struct weft_instruction *at = &program->instructions[awaited];
        if (at->op != WEFT_OP_ALL_GATHER || slot_blocks(program, mark->slot)) continue;
        for (int32_t j = awaited + 1; j < i; j++) {
            const struct weft_instruction *behind = &program->instructions[j];
            if (behind->op != WEFT_OP_ALL_GATHER || behind->n_operands != at->n_operands) continue;
            if (behind->item == at->item || behind->slot != at->slot) continue;
            swap_content(program, awaited, j);
            refuse(subject, "program: ");
            swap_content(program, awaited, j);
            spoilt = 1;
        }
    }
    return spoilt;
}

Test(verify, gathers_out_of_order)
{
    int spoilt = 0;
    for (uint64_t seed = 0; seed < 4 * VERIFY_CASES; seed++) {
        struct subject subject;
        subject_init(&subject, seed);
        spoilt += swap_gathers(&subject);
        accept(&subject);
        subject_finish(&subject);
    }
    cr_assert_gt(spoilt, 5);
}

static int repeat_block(struct subject *subject)
{
    struct weft_program *program = subject->program;
    for (int32_t i = 0; i < program->n_instructions; i++) {
        struct weft_instruction *at = &program->instructions[i];
        if (!moves_block(at)) continue;
        at->block++;
        refuse(subject, "block");
        at->block--;
        return 1;
    }
    return 0;
}

Test(verify, wrong_block)
{
    spoil_verify(repeat_block);
}

/* Turns a buffer that forward writes into one that it only reads. */
static int forget_write(struct subject *subject)
{
    struct weft_program *program = subject->program;
    int spoilt = 0;
    for (int32_t i = 0; i < program->n_instructions; i++) {
        const struct weft_instruction *at = &program->instructions[i];
        if (at->op != WEFT_OP_LOAD && at->op != WEFT_OP_FORWARD) continue;
        for (int32_t o = 0; o < at->n_operands; o++) {
            struct weft_operand *operand = &program->operands[at->first_operand + o];
            if (!operand->writes) continue;
            operand->writes = false;
            refuse(subject, "writes");
            operand->writes = true;
            spoilt = 1;
        }
    }
    return spoilt;
}

Test(verify, read_before_written)
{
    spoil_verify(forget_write);
}

static int break_indices(struct subject *subject)
{
    struct weft_program *program = subject->program;
    struct weft_operand *operand = &program->operands[0];
    struct weft_operand old = *operand;
    operand->buffer = program->n_buffers;
    refuse(subject, "buffer is out of range");
    *operand = old;
    operand->piece = program->buffers[old.buffer].n_pieces;
    refuse(subject, "piece is out of range");
    *operand = old;
    int32_t last = program->n_instructions - 1;
    struct weft_instruction *finish = &program->instructions[last];
    int32_t *dependency = &program->dependencies[finish->first_dependency], agree = *dependency;
    *dependency = last;
    refuse(subject, "on a later instruction");
    *dependency = 0;
    refuse(subject, "do not follow each other");
    *dependency = agree;
    finish->slot--;
    refuse(subject, "slot is over");
    finish->slot++;
    program->n_instructions--;
    refuse(subject, "without finish");
    program->n_instructions++;
    finish->op = WEFT_OP_COUNT;
    refuse(subject, "op is out of range");
    finish->op = WEFT_OP_FINISH;
    return 1;
}

Test(verify, indices_in_range)
{
    spoil_verify(break_indices);
}

static int break_owners(struct subject *subject)
{
    struct weft_program *program = subject->program;
    int spoilt = 0;
    for (int32_t b = 0; b < program->n_buffers; b++) {
        struct weft_buffer *buffer = &program->buffers[b];
        const int32_t old = buffer->index;
        const bool of_layer = weft_buffer_owner(buffer->kind) == WEFT_OWNER_LAYER;
        if (old < 0) continue;
        buffer->index = of_layer ? program->n_layers : program->n_units;
        refuse(subject, of_layer ? "its layer is out of range" : "its unit is out of range");
        buffer->index = old;
        spoilt++;
    }
    return spoilt;
}

Test(verify, owners_in_range)
{
    spoil_verify(break_owners);
}

static int repeat_buffer(struct subject *subject)
{
    struct weft_buffer *buffer = &subject->program->buffers[1], old = *buffer;
    *buffer = subject->program->buffers[0];
    refuse(subject, "not in order, each once");
    *buffer = old;
    return 1;
}

Test(verify, buffers_in_order)
{
    spoil_verify(repeat_buffer);
}

static int change_policy(struct subject *subject)
{
    struct weft_program *program = subject->program;
    int spoilt = 0;
    for (int32_t u = 0; u < program->n_units; u++) {
        enum weft_policy policy = program->ways[u].policy;
        program->ways[u].policy = policy == WEFT_POLICY_DP ? WEFT_POLICY_SDP : WEFT_POLICY_DP;
        refuse(subject, "program: ");
        program->ways[u].policy = (enum weft_policy)WEFT_POLICY_COUNT;
        refuse(subject, "has policy");
        program->ways[u].policy = policy;
        spoilt = 1;
    }
    return spoilt;
}

Test(verify, policies_are_what_runs)
{
    spoil_verify(change_policy);
}

/* The operand by which an instruction reads, or writes, a buffer of a kind; NULL when none does. */
static struct weft_operand *operand_of(struct weft_program *program,
                                       const struct weft_instruction *at,
                                       enum weft_buffer_kind kind, bool writes)
{
    for (int32_t i = 0; i < at->n_operands; i++) {
        struct weft_operand *operand = &program->operands[at->first_operand + i];
        if (operand->writes == writes && program->buffers[operand->buffer].kind == kind)
            return operand;
    }
    return NULL;
}

/* The update reads another buffer instead of its gradient, which may be gone by then. */
static int forget_gradient(struct subject *subject)
{
    struct weft_program *program = subject->program;
    int32_t record = weft_program_buffer(program, WEFT_BUFFER_RECORD, -1, 0);
    int spoilt = 0;
    for (int32_t i = 0; i < program->n_instructions; i++) {
        const struct weft_instruction *at = &program->instructions[i];
        if (at->op != WEFT_OP_UPDATE) continue;
        bool whole = program->ways[at->unit].policy == WEFT_POLICY_DP;
        struct weft_operand *operand =
            operand_of(program, at, whole ? WEFT_BUFFER_GRADIENT : WEFT_BUFFER_REDUCED, false);
        struct weft_operand old = *operand;
        operand->buffer = record;
        refuse(subject, "does not read its unit's gradient");
        *operand = old;
        spoilt = 1;
    }
    return spoilt;
}

Test(verify, update_without_gradient)
{
    spoil_verify(forget_gradient);
}

/* The program of a plan in which every unit that may have the policy has it, and the others any. */
static void subject_init_policy(struct subject *subject, uint64_t seed, enum weft_policy wanted,
                                void (*spoiler)(struct subject *subject))
{
    enum { MOST_UNITS = 64 };
    int32_t strategies[MOST_UNITS];
    *subject = (struct subject){0};
    random_case_init_plain(&subject->random, seed);
    const struct weft_problem *problem = subject->random.stages.problem;
    cr_assert_leq(problem->n_decisions, MOST_UNITS);
    for (int32_t u = 0; u < problem->n_decisions; u++) {
        int p = (int)wanted;
        while ((strategies[u] =
                    weft_decision_of_policy(&problem->decisions[u], (enum weft_policy)p)) < 0)
            p = (p + 1) % WEFT_POLICY_COUNT;
    }
    spoiler(subject);
    subject->plan = random_placements(&subject->random, strategies, 0);
    subject->program = random_program(&subject->random, subject->plan);
}

/* Lowers a plan with wrong windows or slots. Order and layout follow them, so only the meaning of
 * a step reveals the fault. */
static void refuse_lowered(enum weft_policy policy, void (*spoiler)(struct subject *subject),
                           const char *word)
{
    int spoilt = 0;
    for (uint64_t seed = 0; seed < VERIFY_CASES / 4; seed++) {
        struct subject subject;
        subject_init_policy(&subject, seed, policy, spoiler);
        bool updates = false, any = false;
        for (int32_t u = 0; u < subject.program->n_units; u++) {
            any |= subject.program->ways[u].policy == policy;
            updates |= subject.random.stages.problem->decisions[u].update_slot > 0;
        }
        if (any && updates) {
            refuse(&subject, word);
            spoilt++;
        }
        subject_finish(&subject);
    }
    cr_assert_gt(spoilt, VERIFY_CASES / 16, "the test found next to nothing to spoil");
}

/* All gathers are moved to the slot. */
static void move_gathers(struct subject *subject, enum weft_policy policy, int32_t slot)
{
    struct weft_problem *problem = subject->random.stages.problem;
    for (int32_t i = 0; i < problem->n_items; i++) {
        struct weft_item *item = &problem->items[i].item;
        bool gathers = item->acquires && item->gather == 0;
        const struct weft_problem_decision *unit = &problem->decisions[item->decision];
        uint64_t of = weft_decision_policies(unit, 1u << policy);
        if (gathers && (item->strategies & of) != 0 && unit->update_slot > 0) {
            item->first = item->last = slot;
        }
    }
}

static void gather_behind_uses(struct subject *subject)
{
    move_gathers(subject, WEFT_POLICY_ZERO1, subject->random.stages.period->drain);
}

Test(verify, parameters_are_gathered_before_they_are_read)
{
    refuse_lowered(WEFT_POLICY_ZERO1, gather_behind_uses, "reads parameters that are not gathered");
}

static void gather_before_update(struct subject *subject)
{
    move_gathers(subject, WEFT_POLICY_SDP, 0);
}

Test(verify, parameters_are_updated_before_they_are_gathered)
{
    refuse_lowered(WEFT_POLICY_SDP, gather_before_update, "before the unit's update");
}

static void forward_before_update(struct subject *subject)
{
    const struct weft_stages *stages = &subject->random.stages;
    int32_t forward = stages->period->forward[0];
    struct weft_slot update = stages->problem->slots[0];
    stages->problem->slots[0] = stages->period->slots[0] = stages->problem->slots[forward];
    stages->problem->slots[forward] = stages->period->slots[forward] = update;
}

Test(verify, parameters_are_updated_before_they_are_read)
{
    refuse_lowered(WEFT_POLICY_DP, forward_before_update, "not updated yet");
}

/* Replaces the reduction of a gradient's only block by a touch on the compute stream. It takes the
 * last placement: no later one waits for others. */
static int forget_block(struct subject *subject)
{
    struct weft_program *program = subject->program;
    int spoilt = 0;
    if (weft_period_reductions(&program->period) > 1) return 0;
    for (int32_t i = 0, slot = -1; i < program->n_instructions; i++) {
        struct weft_instruction *at = &program->instructions[i], old = *at;
        if (at->op == WEFT_OP_MARK) slot = at->slot;
        bool reduces = at->op == WEFT_OP_REDUCE_SCATTER || at->op == WEFT_OP_ALL_REDUCE;
        if (!reduces || at->slot != slot) continue;
        bool alone = subject->random.stages.shards->units[at->unit].n_blocks == 1;
        if (!alone || at->item != subject->plan->placements[subject->plan->n_placements - 1].item)
            continue;
        at->op = WEFT_OP_LOAD;
        at->lane = WEFT_LANE_COMPUTE;
        at->unit = at->block = -1;
        refuse(subject, "blocks of gradient");
        *at = old;
        spoilt = 1;
    }
    return spoilt;
}

Test(verify, every_block_is_reduced)
{
    spoil_at_least(VERIFY_CASES / 16, forget_block);
}

/* Takes the tokens from layers that need them to leave out padding. */
static int forget_tokens(struct subject *subject)
{
    struct weft_program *program = subject->program;
    int spoilt = 0;
    for (int32_t i = 0; i < program->n_instructions; i++) {
        const struct weft_instruction *at = &program->instructions[i];
        if (at->op != WEFT_OP_FORWARD && at->op != WEFT_OP_BACKWARD) continue;
        if (!program->reads[at->layer].padding) continue;
        for (int32_t o = 0; o < at->n_operands; o++) {
            struct weft_operand *operand = &program->operands[at->first_operand + o],
                                old = *operand;
            if (program->buffers[old.buffer].kind != WEFT_BUFFER_INPUT) continue;
            operand->buffer = weft_program_buffer(program, WEFT_BUFFER_TARGETS, -1, at->micro);
            refuse(subject, at->op == WEFT_OP_FORWARD ? "to leave out padding" : "");
            *operand = old;
            spoilt = 1;
        }
    }
    return spoilt;
}

Test(verify, padding_is_read)
{
    spoil_at_least(VERIFY_CASES / 16, forget_tokens);
}

/* The record and its sum outlast the step, so that one that nobody wrote is not missed elsewhere.
 */
static int forget_record(struct subject *subject)
{
    struct weft_program *program = subject->program;
    int32_t input = weft_program_buffer(program, WEFT_BUFFER_INPUT, -1, 0);
    int spoilt = 0;
    for (int32_t i = 0; i < program->n_instructions; i++) {
        const struct weft_instruction *at = &program->instructions[i];
        if (at->op != WEFT_OP_NORM && at->op != WEFT_OP_AGREE && at->op != WEFT_OP_FINISH) continue;
        for (int32_t o = 0; o < at->n_operands; o++) {
            struct weft_operand *operand = &program->operands[at->first_operand + o],
                                old = *operand;
            enum weft_buffer_kind kind = program->buffers[old.buffer].kind;
            if (kind != WEFT_BUFFER_RECORD && kind != WEFT_BUFFER_RECORD_SUM) continue;
            operand->buffer = input;
            refuse(subject, "the record");
            *operand = old;
            spoilt++;
        }
    }
    cr_assert_eq(spoilt, 4);
    return 1;
}

Test(verify, record_is_summed)
{
    spoil_verify(forget_record);
}

/* Takes the one dependency of every instruction of an update that ranks agree on which has one. */
static int forget_agreement(struct subject *subject)
{
    struct weft_program *program = subject->program;
    int spoilt = 0;
    for (int32_t i = 0; i < program->n_instructions; i++) {
        const struct weft_instruction *at = &program->instructions[i];
        bool agrees = at->op == WEFT_OP_AGREE && at->unit >= 0;
        if (!agrees && (at->op != WEFT_OP_UPDATE || at->n_dependencies == 0)) continue;
        cr_assert_eq(at->n_dependencies, 1);
        int32_t *dependency = &program->dependencies[at->first_dependency], old = *dependency;
        cr_assert_eq(program->instructions[old].op, agrees ? WEFT_OP_MOMENTS : WEFT_OP_AGREE);
        *dependency = 0; /* the first slot's mark */
        refuse(subject, agrees ? "follow its unit's moments" : "what ranks have agreed on");
        *dependency = old;
        spoilt++;
    }
    cr_assert(spoilt == 0 || program->period.agreed_updates);
    return spoilt;
}

/* Norms of another unit's tensors. */
static int confuse_norms(struct subject *subject)
{
    struct weft_program *program = subject->program;
    int spoilt = 0;
    for (int32_t i = 0; i < program->n_instructions; i++) {
        const struct weft_instruction *at = &program->instructions[i];
        for (int32_t o = 0; o < at->n_operands; o++) {
            struct weft_operand *operand = &program->operands[at->first_operand + o],
                                old = *operand;
            enum weft_buffer_kind kind = program->buffers[old.buffer].kind;
            if (kind != WEFT_BUFFER_TENSOR_NORMS && kind != WEFT_BUFFER_TENSOR_NORMS_SUM) continue;
            operand->buffer = weft_program_buffer(program, WEFT_BUFFER_RECORD, -1, 0);
            refuse(subject, at->op == WEFT_OP_UPDATE ? "what ranks have agreed on" : "norms");
            *operand = old;
            spoilt++;
        }
    }
    return spoilt;
}

Test(verify, updates_use_what_ranks_agree_on)
{
    spoil_verify(forget_agreement);
    spoil_verify(confuse_norms);
}

/* If ranks agree on updates, the channel is busy with this until the last update ends. A gather
 * right after its own unit's update is refused. */
Test(verify, nothing_is_gathered_before_the_last_agreed_update)
{
    int spoilt = 0;
    for (uint64_t seed = 0; seed < VERIFY_CASES; seed++) {
        struct random_case random;
        random_case_init(&random, seed);
        struct weft_problem *problem = random.stages.problem;
        for (int32_t i = 0; problem->period.agreed_updates && i < problem->n_items; i++) {
            struct weft_item *item = &problem->items[i].item;
            int32_t update = problem->decisions[item->decision].update_slot;
            struct weft_error err = {0};
            if (!item->acquires || item->gather > 0) continue;
            cr_assert_eq(item->first, random.stages.period->fill);
            if (update + 1 == item->first) continue;
            item->first = update + 1;
            cr_assert_eq(weft_problem_check(problem, "test", &err), WEFT_E_DATA);
            cr_assert(strstr(err.text, "before the last update") != NULL, "%s", err.text);
            item->first = random.stages.period->fill;
            cr_assert_eq(weft_problem_check(problem, "test", &err), WEFT_OK);
            spoilt++;
        }
        random_case_finish(&random);
    }
    cr_assert_gt(spoilt, VERIFY_CASES / 8);
}
