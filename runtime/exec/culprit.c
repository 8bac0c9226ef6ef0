/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the rank and layer that first made a number not finite. The agreement after a step only
 * says that some rank did, since sums have spread it by then. A step that is not finite has changed
 * nothing, so it is run again. This time a look checks every layer's results before any sum.
 *
 * A rotated period updates one unit before it sums the gradient of another. So every step has
 * looks, and no rank updates after any look has found something. The unit with the last gradient is
 * updated first. After its reduction every rank knows the findings of all ranks
 * (weft_comm_carry).
 *
 * With updates in backward, units of later layers are updated before the gradients of earlier ones
 * are known. Then the run ends with a part of the units updated. */
#include <math.h>
#include <stdlib.h>

#include "runtime/exec/exec.h"
#include "runtime/exec/looks.h"
#include "runtime/exec/parts.h"
#include "runtime/exec/units.h"

#define NOBODY INT64_MAX

/* Terms of the sum that a gradient becomes part of after its look. A rotated period applies one
 * unit before it sums another, so each rank vouches for its own term. Otherwise the sum itself is
 * checked. */
static int64_t gradient_terms(const struct weft_exec *exec)
{
    const struct weft_period_rule *period = &exec->options.program->period;
    return period->rotated ? exec->ranks * weft_period_reductions(period) - period->idle : 1;
}

const struct weft_nn_look *weft_exec_bind_look(struct weft_exec *exec,
                                               const struct weft_nn_call *call, bool backward)
{
    const struct weft_layer *layer = call->layer;
    bool rotated = exec->options.program->period.rotated;
    struct weft_nn_look *look = weft_pool_array(&exec->pool, 1, sizeof *look);
    struct weft_nn_numbers *numbers =
        weft_pool_array(&exec->pool, (size_t)layer->n_tensors + 1, sizeof *numbers);
    if (look == NULL || numbers == NULL) return NULL;
    *look = (struct weft_nn_look){
        .numbers = numbers,
        .terms = backward ? gradient_terms(exec) : 1,
        .loss = backward ? NULL : call->loss,
        .first = EXEC_OWN(exec, first_bad),
        .stop = backward && rotated ? EXEC_OWN(exec, step.stop) : NULL,
    };
    for (int32_t i = 0; i < layer->n_tensors && backward; i++) {
        if (call->gradients[i] == NULL) continue;
        int64_t n = exec->options.config->model->tensors[layer->tensors[i]].elements;
        numbers[look->n_numbers++] =
            (struct weft_nn_numbers){call->gradients[i], n, call->gradient_dtype};
    }
    int64_t n = call->batch.samples * call->batch.seq_len * layer->outputs;
    if (!backward && call->output != NULL)
        numbers[look->n_numbers++] = (struct weft_nn_numbers){call->output, n, call->batch.compute};
    return look;
}

void weft_exec_push_look(struct weft_exec *exec, int32_t i)
{
    const struct exec_bound *bound = &exec->bound[i];
    if (!exec->looks || (bound->op != WEFT_OP_FORWARD && bound->op != WEFT_OP_BACKWARD)) return;
    struct weft_nn_look look = *bound->with.layer.look;
    look.place = exec->periods * exec->options.program->n_instructions + i;
    weft_nn_look(exec->options.nn, bound->stream, &look);
}

enum weft_status weft_exec_compare_looks(struct weft_exec *exec, struct weft_culprit *out,
                                         struct weft_error *err)
{
    int64_t mine = exec->mailbox.first_bad, first = NOBODY;
    const int32_t ranks = weft_comm_ranks(exec->options.comm);
    int64_t *all = calloc((size_t)ranks, sizeof *all);
    *out = (struct weft_culprit){.known = false};
    if (all == NULL) return weft_fail_memory(err, "the ranks' findings");
    enum weft_status status = weft_comm_exchange(exec->options.comm, &mine, sizeof mine, all, err);
    for (int32_t r = 0; r < ranks && status == WEFT_OK; r++) {
        if (all[r] < first) *out = (struct weft_culprit){.known = true, .rank = r};
        if (all[r] < first) first = all[r];
        out->n_ranks += first != NOBODY && all[r] == first;
    }
    if (out->known) {
        const struct weft_program *program = exec->options.program;
        const struct weft_instruction *at = &program->instructions[first % program->n_instructions];
        out->layer = at->layer;
        out->backward = at->op == WEFT_OP_BACKWARD;
    }
    free(all);
    return status;
}

enum weft_status weft_exec_find_culprit(struct weft_exec *exec,
                                        const struct weft_step_inputs *inputs,
                                        struct weft_culprit *out, struct weft_error *err)
{
    struct weft_step_inputs again = *inputs;
    struct weft_step_result result;
    if (exec->options.program->period.rotated) return weft_exec_compare_looks(exec, out, err);
    again.meets = true; /* nodes may be at different steps */
    exec->pending.valid = false;
    exec->looks = true;
    weft_exec_push_forget(exec);
    exec->failed_step = 0;
    enum weft_status status = weft_exec_step(exec, &again, &result, NULL, err);
    exec->looks = false;
    if (status != WEFT_OK) return status;
    status = weft_exec_compare_looks(exec, out, err);
    out->recovered = result.finite;
    return status;
}

void weft_exec_describe_culprit(const struct weft_exec *exec, const struct weft_culprit *culprit,
                                struct weft_text *out)
{
    const int32_t ranks = weft_comm_ranks(exec->options.comm);
    if (!culprit->known) return;
    if (culprit->n_ranks == ranks) weft_text_add(out, "all ranks");
    if (culprit->n_ranks < ranks) weft_text_addf(out, "rank %d", culprit->rank);
    if (culprit->n_ranks > 1 && culprit->n_ranks < ranks)
        weft_text_addf(out, " and %d more", culprit->n_ranks - 1);
    weft_text_addf(out, ", in the %s pass of layer %s", culprit->backward ? "backward" : "forward",
                   exec->options.config->model->layers[culprit->layer].name);
}

const char *weft_exec_bad_outcome(const struct weft_exec *exec)
{
    return exec->options.program->period.update_after > 0
               ? "Other units may be updated with the step already (plan.update_in), so the run "
                 "ends, and --resume goes on from the checkpoint before"
               : "Nothing was updated with them";
}

/* Groups */

/* A piece of one whole tensor, at an address of the arena. */
static struct weft_nn_piece piece_of(const struct weft_exec *exec, const struct weft_nn_call *call,
                                     int32_t i)
{
    const int32_t t = call->layer->tensors[i];
    const struct weft_tensor *tensor = &exec->options.config->model->tensors[t];
    const int64_t at =
        ((unsigned char *)call->gradients[i] - exec->base) / weft_dtype_bytes(call->gradient_dtype);
    return (struct weft_nn_piece){
        .parameter_at = at,
        .state_at = at,
        .count = tensor->elements,
        .tensor = t,
        .name = weft_hash_string(tensor->name),
    };
}

/* Binds the tensors that instruction i is the last one of its micro-step to write. `seen` has the
 * micro-steps, counted from 1, of later instructions that write them. */
static enum weft_status bind_written(struct weft_exec *exec, int parity, int32_t i, int32_t *seen,
                                     bool *ends, struct weft_error *err)
{
    const struct weft_period_rule *period = &exec->options.program->period;
    const struct weft_instruction *at = &exec->options.program->instructions[i];
    struct exec_bound *bound = &exec->tables[parity][i];
    const struct weft_nn_call *call = bound->with.layer.call;
    struct exec_written *written = weft_pool_array(&exec->pool, 1, sizeof *written);
    struct weft_nn_piece *own =
        weft_pool_array(&exec->pool, (size_t)call->layer->n_tensors, sizeof *own);
    if (written == NULL || own == NULL) return weft_fail_memory(err, "the gradients of groups");
    *written = (struct exec_written){
        .unit = {.parameters = exec->base,
                 .dtype = call->gradient_dtype,
                 .gradient = exec->base,
                 .gradient_dtype = call->gradient_dtype,
                 .own = own},
        .round = at->micro / period->group,
        .ends = *ends,
    };
    for (int32_t t = 0; t < call->layer->n_tensors; t++) {
        if (call->gradients[t] == NULL || seen[call->layer->tensors[t]] == at->micro + 1) continue;
        seen[call->layer->tensors[t]] = at->micro + 1;
        own[written->unit.n_own++] = piece_of(exec, call, t);
    }
    *ends = false;
    bound->with.layer.written = written;
    return WEFT_OK;
}

static enum weft_status create_sums(struct weft_exec *exec, struct weft_error *err)
{
    struct exec_groups *groups = &exec->groups;
    const size_t rounds = (size_t)weft_period_reductions(&exec->options.program->period);
    if (!exec->options.sums_groups || groups->sums != NULL) return WEFT_OK;
    if (exec->ranks != 1)
        return weft_fail(err, WEFT_E_USAGE, "sums of each group are of one rank, and %d step",
                         exec->ranks);
    groups->sums = weft_pool_array(&exec->pool, rounds, sizeof *groups->sums);
    groups->of = weft_pool_array(&exec->pool, rounds, sizeof *groups->of);
    return groups->sums == NULL || groups->of == NULL ? weft_fail_memory(err, "sums of groups")
                                                      : WEFT_OK;
}

enum weft_status weft_exec_bind_groups(struct weft_exec *exec, int parity, struct weft_error *err)
{
    const struct weft_program *program = exec->options.program;
    const struct weft_period_rule *period = &program->period;
    WEFT_TRY(create_sums(exec, err));
    const size_t n_tensors = (size_t)exec->options.config->model->n_tensors;
    int32_t *seen = calloc(n_tensors, sizeof *seen), micro = -1;
    bool ends = true;
    enum weft_status status =
        seen == NULL ? weft_fail_memory(err, "the gradients of groups") : WEFT_OK;
    exec->groups.n = (int64_t)exec->ranks * weft_period_reductions(period) - period->idle;
    for (int32_t i = program->n_instructions - 1; i >= 0 && status == WEFT_OK; i--) {
        const struct weft_instruction *at = &program->instructions[i];
        if (at->op != WEFT_OP_BACKWARD || at->micro % period->group != period->group - 1) continue;
        ends = ends || at->micro != micro;
        micro = at->micro;
        status = bind_written(exec, parity, i, seen, &ends, err);
    }
    free(seen);
    return status;
}

/* The summed record is written at the period's end alone, so the groups use its words until then:
 * bins, and a word for numbers that are not finite. */
static unsigned char *sum_word(const struct weft_exec *exec, int32_t word)
{
    return exec->record_sum + (int64_t)word * (int64_t)sizeof(uint64_t);
}

static void clear_sums(struct weft_exec *exec)
{
    static const struct weft_range words[] = {
        {EXEC_WORD_NORM * sizeof(uint64_t), (EXEC_WORD_NORM + WEFT_NORM_WORDS) * sizeof(uint64_t)},
        {EXEC_WORD_BAD_UNITS * sizeof(uint64_t), (EXEC_WORD_BAD_UNITS + 1) * sizeof(uint64_t)}};
    weft_arena_fill(exec->arena, exec->streams[WEFT_LANE_COMPUTE], exec->record_sum, words, 2, 0);
}

void weft_exec_begin_groups(struct weft_exec *exec, int64_t step)
{
    struct exec_groups *groups = &exec->groups;
    groups->step = step;
    if (groups->sums == NULL) return;
    groups->scale = exec->scale.scale;
    clear_sums(exec);
}

/* Adds the squares of complete gradients. The last ones of a group send its sums to the host. */
static void push_sums(struct weft_exec *exec, const struct exec_bound *bound,
                      const struct exec_written *written)
{
    struct exec_group_sums *to = &exec->groups.sums[written->round];
    struct weft_stream *stream = bound->stream;
    weft_nn_add_norm(exec->options.nn, stream, &written->unit, sum_word(exec, EXEC_WORD_NORM),
                     sum_word(exec, EXEC_WORD_BAD_UNITS));
    if (!written->ends) return;
    weft_arena_read(exec->arena, stream, sum_word(exec, EXEC_WORD_NORM), sizeof to->bins, to->bins);
    weft_arena_read(exec->arena, stream, sum_word(exec, EXEC_WORD_BAD_UNITS), sizeof to->bad,
                    &to->bad);
    weft_arena_read(exec->arena, stream, EXEC_OWN(exec, loss), sizeof to->loss, &to->loss);
    clear_sums(exec);
    to->rows = bound->carried ? exec->carried_rows : exec->rows;
    exec->groups.of[written->round] = exec->groups.step - (bound->carried ? 1 : 0);
}

bool weft_exec_next_group(struct weft_exec *exec, int32_t *round, struct weft_group_line *out)
{
    const struct exec_groups *groups = &exec->groups;
    const int32_t rounds = weft_period_reductions(&exec->options.program->period);
    int finite = 1;
    while (groups->sums != NULL && *round < rounds && groups->of[*round] == 0)
        ++*round;
    if (groups->sums == NULL || *round >= rounds) return false;
    const struct exec_group_sums *sums = &groups->sums[*round];
    const double norm = weft_norm_result(sums->bins, &finite);
    *out = (struct weft_group_line){
        .step = groups->of[*round],
        .group = *round, /* of one rank */
        .loss = sums->loss / ((double)sums->rows / (double)groups->n),
        .norm = sums->bad != 0 ? INFINITY : norm / groups->scale * (double)groups->n,
    };
    groups->of[*round] = 0;
    ++*round;
    return true;
}

void weft_exec_push_groups(struct weft_exec *exec, int32_t i)
{
    const struct exec_bound *bound = &exec->bound[i];
    const struct exec_groups *groups = &exec->groups;
    if (bound->op != WEFT_OP_BACKWARD || bound->with.layer.written == NULL) return;
    const struct exec_written *written = bound->with.layer.written;
    const int64_t group = (int64_t)written->round * exec->ranks + exec->rank;
    const int32_t word = (bound->carried ? EXEC_WORD_CARRIED : EXEC_WORD_GROUPS) +
                         2 * (int32_t)(group % WEFT_GROUP_HASHES);
    if (bound->carried ? groups->hashes_carried : groups->hashes)
        weft_nn_add_hash(exec->options.nn, bound->stream, &written->unit,
                         exec->record + (int64_t)word * (int64_t)sizeof(uint64_t));
    if (groups->sums != NULL) push_sums(exec, bound, written);
}

void weft_exec_tell_layer(struct weft_exec *exec, int32_t i)
{
    const struct weft_exec_options *o = &exec->options;
    const struct exec_bound *bound = &exec->bound[i];
    const struct weft_instruction *at = &o->program->instructions[i];
    if (o->on_layer == NULL || (at->op != WEFT_OP_FORWARD && at->op != WEFT_OP_BACKWARD)) return;
    const struct exec_written *written = bound->with.layer.written;
    o->on_layer(o->context, &(struct weft_exec_event){
                                .stream = bound->stream,
                                .arena = exec->arena,
                                .call = bound->with.layer.call,
                                .step = exec->groups.step - (bound->carried ? 1 : 0),
                                .layer = at->layer,
                                .micro = at->micro,
                                .round = at->micro / o->program->period.group,
                                .backward = at->op == WEFT_OP_BACKWARD,
                                .complete = written == NULL ? NULL : written->unit.own,
                                .n_complete = written == NULL ? 0 : written->unit.n_own,
                                .base = exec->base,
                                .loss_scale = exec->scale.scale,
                            });
}

static void add_words(const struct weft_exec *exec, int32_t from, struct weft_group_hashes *to)
{
    const uint64_t *words = exec->mailbox.sum + from;
    for (int32_t g = 0; g < WEFT_GROUP_HASHES; g++)
        to->hashes[g] += words[2 * g] + words[2 * g + 1];
}

void weft_exec_take_groups(struct weft_exec *exec, struct weft_step_result *result)
{
    struct exec_groups *groups = &exec->groups;
    const bool rotated = exec->options.program->period.rotated;
    struct weft_group_hashes now = {.step = exec->last_step, .n = groups->n, .ranks = exec->ranks};
    result->gradients = (struct weft_group_hashes){0};
    if (rotated && groups->hashes_carried && groups->early.step == exec->last_step - 1) {
        result->gradients = groups->early;
        add_words(exec, EXEC_WORD_CARRIED, &result->gradients);
    }
    groups->early.step = 0;
    if (!groups->hashes || result->skipped) return;
    add_words(exec, EXEC_WORD_GROUPS, &now);
    *(rotated ? &groups->early : &result->gradients) = now;
}
