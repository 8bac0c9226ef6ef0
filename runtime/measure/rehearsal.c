/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/rng.h"
#include "memory_model/moves.h"
#include "plan/plan.h"
#include "problem/stages.h"
#include "program/trace.h"
#include "runtime/exec/exec.h"
#include "runtime/measure/measure.h"
#include "runtime/measure/parts.h"
#include "spec/config_batch.h"
#include "spec/target.h"

enum { WARM_STEPS = 2, SETTLE_STEPS = 6, DEFAULT_ROUNDS = 9, LEAST_ROUNDS = 3, MOST_ROUNDS = 64 };

enum { REPEATED_ROUNDS = 4 * DEFAULT_ROUNDS }; /* limit if times vary */
#define BUDGET_NS (INT64_C(4) * 1000000000)

/* Memory that only a run needs: the plan's text, metrics, slack of the allocator, and more pages of
 * code. It counts as base memory, because a run must keep the limit. */
enum { RUN_BYTES = 2 << 20 };

/* Micro-steps of a rehearsal by layer, at most: its arena holds activations of all of them. */
enum { MOST_PASS = 8 };

/* Values of one step: for each part, two times for each row of the slowest rank and two for each
 * row of this rank; then these. A row is a layer key at a level of recomputation: number
 * level * n_keys + key. A rehearsal by layer has two parts, the first micro-step of each pass and
 * its later ones. Others have one. */
enum {
    VALUE_UPDATE,
    VALUE_NORM,
    VALUE_AGREE,
    VALUE_STEP,
    VALUE_TRANSFER, /* by kind */
    OTHER_VALUES = VALUE_TRANSFER + WEFT_COLLECTIVE_COUNT
};

struct rehearsal {
    const struct weft_measure_options *options;
    const struct weft_config *config; /* the options', or `own` */
    struct weft_config own;           /* by layer: that order, with fewer micro-steps */
    const struct weft_profile *profile;
    struct weft_stages stages;
    struct weft_plan *plan;
    struct weft_program *program;
    struct weft_arena *arena;
    void *input;
    bool owns_arena;
    int32_t *targets;
    struct weft_exec *exec;
    struct weft_trace *trace;
    int32_t n_rows;
    int32_t *layer_row;  /* [layer] */
    int32_t *row_layers; /* [row] number of layers */
    int64_t *slot_ns;
    bool alone; /* serialised */
    bool by_layer;
    int32_t steps, rounds; /* done; to be measured */
    int32_t most_rounds;   /* limit of rounds if times vary */
    int64_t base_bytes;
    int64_t most_bytes;          /* of the arena; 0: any */
    bool refused;                /* no rank has memory for the arena */
    struct measure_times times;  /* of the latest step */
    int64_t *ready_ns, *over_ns; /* by instruction */
    int32_t n_values;
    int64_t *values; /* [n_values][MOST_ROUNDS] */
};

static int32_t layer_values(const struct rehearsal *r)
{
    return 4 * r->n_rows * (1 + r->by_layer);
}

static enum weft_status lower_plan(struct rehearsal *r, const struct weft_config *config,
                                   struct weft_error *err)
{
    struct weft_lower_inputs inputs = weft_lower_inputs_of(config, r->profile, &r->stages);
    if (inputs.page_bytes == 0) inputs.page_bytes = WEFT_PAGE_LEAST_BYTES;
    return weft_program_lower(r->plan, &inputs, &r->program, err);
}

/* Finds the row of each layer. */
static enum weft_status find_keys(struct rehearsal *r, struct weft_error *err)
{
    const struct weft_model *model = r->config->model;
    struct weft_batch batch = weft_config_batch(r->config);
    struct weft_pool pool = {0};
    enum weft_status status = WEFT_OK;
    for (int32_t l = 0; l < model->n_layers && status == WEFT_OK; l++) {
        const char *key = weft_layer_key(&pool, &model->layers[l], &batch);
        const struct weft_layer_times *times =
            key == NULL ? NULL : weft_profile_layer(r->profile, key);
        if (times == NULL) {
            status = weft_fail_memory(err, "layer keys");
            break;
        }
        r->layer_row[l] = (int32_t)(times - r->profile->layers) +
                          (int32_t)weft_program_recompute(r->program, l) * r->profile->n_layers;
        r->row_layers[r->layer_row[l]]++;
    }
    weft_pool_finish(&pool);
    return status;
}

/* Fills the batch with noise: a step's time does not depend on its values. */
static void fill_batch(const struct rehearsal *r)
{
    const struct weft_model *model = r->config->model;
    const struct weft_layer *first = &model->layers[0], *last = &model->layers[model->n_layers - 1];
    struct weft_batch batch = weft_config_batch(r->config);
    int64_t samples = batch.samples * r->config->train.grad_accum;
    int64_t rows = samples * batch.seq_len;
    int64_t n_targets = weft_model_tells_classes(r->config->model) ? samples : rows;
    bool tokens = weft_model_reads_tokens(r->config->model);
    for (int64_t i = 0; tokens && i < rows; i++)
        ((int32_t *)r->input)[i] =
            (int32_t)weft_rng_below(1, 0, (uint64_t)i, (uint64_t)first->vocab);
    for (int64_t i = 0; !tokens && i < rows * first->hidden; i++)
        ((float *)r->input)[i] = (float)(2 * weft_rng_uniform(1, 0, (uint64_t)i) - 1);
    for (int64_t i = 0; i < n_targets; i++)
        r->targets[i] = (int32_t)weft_rng_below(1, 1, (uint64_t)i, (uint64_t)last->outputs);
}

/* Allocates the arrays from which contention is computed. */
static enum weft_status allocate_times(struct rehearsal *r, struct weft_error *err)
{
    size_t n = (size_t)r->program->n_instructions;
    int64_t **arrays[] = {&r->times.from_ns, &r->times.to_ns, &r->times.beside_ns, &r->ready_ns,
                          &r->over_ns};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
        *arrays[i] = calloc(n, sizeof(int64_t));
        if (*arrays[i] == NULL) return weft_fail_memory(err, "the rehearsal");
    }
    return WEFT_OK;
}

/* Two rehearsals of the same layout may share an arena, because values do not matter. */
static enum weft_status take_arena(struct rehearsal *r, const struct rehearsal *other,
                                   struct weft_error *err)
{
    r->owns_arena = other == NULL;
    if (r->owns_arena) {
        const enum weft_status status =
            weft_exec_map_arena(r->options->comm, r->program, false, &r->arena, err);
        r->refused = status == WEFT_E_SYSTEM;
        return status;
    }
    if (r->program->arena_bytes != other->program->arena_bytes)
        return weft_fail(err, WEFT_E_INTERNAL, "one plan has two layouts");
    r->arena = other->arena;
    return WEFT_OK;
}

static enum weft_status open_rehearsal(struct rehearsal *r, const struct rehearsal *other,
                                       struct weft_error *err)
{
    const struct weft_measure_options *o = r->options;
    const struct weft_model *model = r->config->model;
    struct weft_batch batch = weft_config_batch(r->config);
    struct weft_config own = *r->config;
    own.plan.target = WEFT_FOR_WEFT; /* the times are the same for any runtime */
    WEFT_TRY(weft_stages_create(&own, r->profile, &r->stages, err));
    WEFT_TRY(weft_measure_rehearsal_plan(r->config, r->stages.problem, &r->plan, err));
    WEFT_TRY(lower_plan(r, &own, err));
    r->refused = r->most_bytes > 0 && r->program->arena_bytes > r->most_bytes;
    if (r->refused)
        return weft_fail(err, WEFT_E_INFEASIBLE,
                         "next to base memory an arena of %lld bytes is beyond "
                         "cluster.memory_limit",
                         (long long)r->program->arena_bytes);
    if (r->alone) WEFT_TRY(weft_measure_serialise(r->program, err));
    WEFT_TRY(allocate_times(r, err));
    r->n_rows = weft_measure_rows(r->profile);
    r->n_values = layer_values(r) + OTHER_VALUES;
    r->layer_row = calloc((size_t)model->n_layers, sizeof *r->layer_row);
    r->row_layers = calloc((size_t)r->n_rows, sizeof *r->row_layers);
    r->slot_ns = calloc((size_t)r->program->n_slots, sizeof *r->slot_ns);
    r->values = calloc((size_t)r->n_values * MOST_ROUNDS, sizeof *r->values);
    size_t n_micro = (size_t)r->config->train.grad_accum;
    r->input = calloc(n_micro, (size_t)weft_model_host_input_bytes(model, &batch));
    r->targets = calloc(n_micro, (size_t)weft_model_target_bytes(model, &batch));
    if (r->layer_row == NULL || r->row_layers == NULL || r->slot_ns == NULL || r->values == NULL ||
        r->input == NULL || r->targets == NULL) {
        return weft_fail_memory(err, "the rehearsal");
    }
    WEFT_TRY(find_keys(r, err));
    fill_batch(r);
    WEFT_TRY(weft_trace_create(r->program, "wall clock", &r->trace, err));
    WEFT_TRY(take_arena(r, other, err));
    struct weft_exec_options options = {
        .config = r->config,
        .shards = r->stages.shards,
        .plan = r->plan,
        .program = r->program,
        .device = o->device,
        .comm = o->comm,
        .nn = o->nn,
        .arena = r->arena,
    };
    WEFT_TRY(weft_exec_create(&options, &r->exec, err));
    return r->owns_arena ? weft_exec_initialise(r->exec, 1, err) : WEFT_OK;
}

/* Frees arrays that a run does not have, before the process's memory is measured. */
static void drop_times(struct rehearsal *r)
{
    free(r->over_ns);
    free(r->ready_ns);
    free(r->times.beside_ns);
    free(r->times.to_ns);
    free(r->times.from_ns);
    r->times = (struct measure_times){0};
    r->ready_ns = r->over_ns = NULL;
}

static void close_rehearsal(struct rehearsal *r)
{
    weft_exec_destroy(r->exec);
    if (r->owns_arena && r->arena != NULL) weft_comm_unmap_arena(r->options->comm);
    drop_times(r);
    weft_trace_destroy(r->trace);
    free(r->targets);
    free(r->input);
    free(r->values);
    free(r->slot_ns);
    free(r->row_layers);
    free(r->layer_row);
    weft_program_destroy(r->program);
    weft_plan_destroy(r->plan);
    weft_stages_finish(&r->stages);
    *r = (struct rehearsal){0};
}

/* Computes the time of each slot, from its MARK to the end of its last work, so executor overhead
 * is included. If the slot waits for collectives, its time begins with the first work after them.
 * Returns the time that compute waits for the AGREE. */
static int64_t read_slots(struct rehearsal *r)
{
    int64_t begin_ns = 0, normed_ns = 0, agreed_ns = 0;
    bool waits = false;
    for (int32_t i = 0; i < r->program->n_instructions; i++) {
        const struct weft_instruction *at = &r->program->instructions[i];
        struct weft_record record = r->trace->records[i];
        if (weft_op_stream(at->op) == WEFT_STREAM_CHANNEL) {
            waits = r->alone;
            continue;
        }
        if (at->op == WEFT_OP_MARK || waits) begin_ns = record.start_ns;
        /* The time for agreeing within an update is not the update's. */
        if (at->op == WEFT_OP_UPDATE && r->program->period.agreed_updates)
            begin_ns = record.start_ns - r->slot_ns[at->slot];
        waits = false;
        if (at->op == WEFT_OP_NORM) normed_ns = record.end_ns;
        if (at->op == WEFT_OP_FINISH) {
            agreed_ns = record.end_ns;
        } else {
            r->slot_ns[at->slot] = record.end_ns - begin_ns;
        }
    }
    return agreed_ns - normed_ns;
}

/* Writes the mean time of a layer of each row in this step, from values[first] on, and by layer
 * that of later micro-steps 4 * n_rows further on. A row without layers takes 0. */
static void add_layers(struct rehearsal *r, int32_t round, int32_t first)
{
    const int32_t n_rows = r->n_rows, n_micro = r->stages.period->rule.n_micro;
    for (int32_t part = 0; part <= r->by_layer; part++) {
        const int32_t n = !r->by_layer ? n_micro : part == 0 ? 1 : n_micro - 1;
        int64_t *values = &r->values[(first + part * 4 * n_rows) * MOST_ROUNDS + round];
        for (int32_t v = 0; v < 2 * n_rows; v++)
            values[v * MOST_ROUNDS] = 0;
        for (int32_t s = 0; s < r->program->n_slots; s++) {
            const struct weft_slot slot = r->stages.period->slots[s];
            const bool backward = slot.kind == WEFT_SLOT_BACKWARD;
            if (slot.kind != WEFT_SLOT_FORWARD && !backward) continue;
            if (r->by_layer && part != (slot.micro > 0)) continue;
            const int32_t v = 2 * r->layer_row[slot.index] + backward;
            values[v * MOST_ROUNDS] += r->slot_ns[s];
        }
        for (int32_t v = 0; v < 2 * n_rows; v++)
            if (r->row_layers[v / 2] > 0) values[v * MOST_ROUNDS] /= n * r->row_layers[v / 2];
    }
}

/* Ranks wait for one another at every collective, so a slot takes the slowest rank's time. That
 * rank differs between steps, so the maximum is taken in each step and not of medians. The AGREE
 * takes the minimum, because the last rank does not wait. */
static enum weft_status read_step(struct rehearsal *r, int32_t round, struct weft_error *err)
{
    int64_t step[VALUE_TRANSFER] = {0};
    int32_t n_rows = r->n_rows;
    struct weft_trace_summary summary;
    int64_t agree_ns = -read_slots(r);
    weft_trace_summarise(r->program, r->trace, &summary);
    step[VALUE_STEP] = summary.step_ns;
    WEFT_TRY(weft_measure_most(r->options->comm, &agree_ns, 1, err));
    step[VALUE_AGREE] = -agree_ns;
    add_layers(r, round, 2 * n_rows);
    WEFT_TRY(weft_measure_most(r->options->comm, r->slot_ns, r->program->n_slots, err));
    add_layers(r, round, 0);
    for (int32_t s = 0; s < r->program->n_slots; s++) {
        enum weft_slot_kind kind = r->stages.period->slots[s].kind;
        if (kind == WEFT_SLOT_UPDATE) step[VALUE_UPDATE] += r->slot_ns[s];
        /* Without clipping no norm is computed, and the bench's time stays. */
        if (kind == WEFT_SLOT_NORM && weft_period_norms(&r->stages.period->rule))
            step[VALUE_NORM] = r->slot_ns[s];
    }
    for (int32_t v = 0; v < VALUE_TRANSFER; v++)
        r->values[(layer_values(r) + v) * MOST_ROUNDS + round] = step[v];
    return WEFT_OK;
}

/* Kind of a collective of all ranks that moves a block, otherwise -1. */
static int32_t kind_of(const struct rehearsal *r, int32_t instruction)
{
    const struct weft_instruction *at = &r->program->instructions[instruction];
    if (weft_op_stream(at->op) != WEFT_STREAM_CHANNEL || at->item < 0) return -1;
    const struct weft_item *item = &r->stages.problem->items[at->item].item;
    const enum weft_rank_group group =
        weft_moves_group(r->program->ways[item->decision], false, item->kind);
    return group == WEFT_GROUP_ALL || group == WEFT_GROUP_OWNER ? item->kind : -1;
}

/* Ranks compare times of one clock. On hosts with clocks of their own the spans are negative, and
 * curves are not scaled by them. */
static enum weft_status read_times(struct rehearsal *r, int32_t round, struct weft_error *err)
{
    int32_t n = r->program->n_instructions;
    int64_t transfer_ns[WEFT_COLLECTIVE_COUNT] = {0};
    weft_measure_read_channel(r->program, r->trace, r->ready_ns, r->over_ns);
    WEFT_TRY(weft_measure_most(r->options->comm, r->ready_ns, n, err));
    for (int32_t i = 0; i < n; i++)
        r->over_ns[i] = -r->over_ns[i];
    WEFT_TRY(weft_measure_most(r->options->comm, r->over_ns, n, err));
    for (int32_t i = 0; i < n; i++)
        r->over_ns[i] = -r->over_ns[i];
    weft_measure_read_times(r->program, r->trace, r->ready_ns, r->over_ns, &r->times);
    for (int32_t i = 0; i < n; i++) {
        int32_t kind = kind_of(r, i);
        if (kind >= 0) transfer_ns[kind] += r->times.to_ns[i] - r->times.from_ns[i];
    }
    for (int32_t k = 0; k < WEFT_COLLECTIVE_COUNT; k++) {
        int32_t v = layer_values(r) + VALUE_TRANSFER + k;
        r->values[v * MOST_ROUNDS + round] = transfer_ns[k];
    }
    return WEFT_OK;
}

/* Computes the time of the same updates, norm and collectives by the benches' curves. */
static void expect_times(const struct rehearsal *r, struct measure_rehearsal *out)
{
    int64_t owned = 0;
    for (int32_t u = 0; u < r->stages.shards->n_units; u++) {
        const struct weft_unit *unit = &r->stages.shards->units[u];
        if (!unit->trainable) continue;
        const struct weft_shards *shards = r->stages.shards;
        const enum weft_policy policy = weft_plan_chosen(r->plan, u)->policy;
        out->update_expected_ns += weft_curve_at(
            &r->profile->update, unit->padded_elements / weft_shards_sharers(shards, policy));
        owned += unit->padded_elements / (weft_policy_is_central(policy) ? 1 : shards->ranks);
    }
    out->norm_expected_ns = weft_curve_at(&r->profile->norm, owned);
    for (int32_t i = 0; i < r->program->n_instructions; i++) {
        int32_t kind = kind_of(r, i);
        if (kind >= 0) out->transfer_expected_ns[kind] += r->program->instructions[i].ns;
    }
}

static enum weft_status run_step(struct rehearsal *r, struct weft_error *err)
{
    struct weft_step_result result;
    struct weft_step_inputs inputs = {
        .input = r->input, .targets = r->targets, .step = ++r->steps, .lr = 1e-6};
    return weft_exec_step(r->exec, &inputs, &result, r->trace, err);
}

/* Runs steps that are not measured. The last one's time decides how many rounds fit the budget. */
static enum weft_status warm_up(struct rehearsal *r, struct weft_error *err)
{
    for (int i = 0; i < WARM_STEPS; i++)
        WEFT_TRY(run_step(r, err));
    struct weft_trace_summary summary;
    weft_trace_summarise(r->program, r->trace, &summary);
    WEFT_TRY(weft_measure_most(r->options->comm, &summary.step_ns, 1, err));
    int64_t fitting = BUDGET_NS / (summary.step_ns > 0 ? summary.step_ns : 1);
    int64_t most = r->options->rounds > 0 ? r->options->rounds : DEFAULT_ROUNDS;
    if (most > MOST_ROUNDS) most = MOST_ROUNDS;
    if (fitting < LEAST_ROUNDS) fitting = LEAST_ROUNDS;
    r->rounds = (int32_t)(fitting < most ? fitting : most);
    r->most_rounds = r->rounds;
    if (r->options->rounds == 0)
        r->most_rounds = (int32_t)(fitting < REPEATED_ROUNDS ? fitting : REPEATED_ROUNDS);
    return WEFT_OK;
}

static void weigh_process(struct rehearsal *r)
{
    bool exact;
    const int64_t bytes =
        weft_measure_outside_bytes(r->options->device, r->arena, r->exec, &exact) -
        weft_comm_all_staging_bytes(r->options->comm);
    r->base_bytes = RUN_BYTES + (bytes > 0 ? bytes : 0);
    if (!exact)
        weft_log(WEFT_LOG_WARNING,
                 "base memory has what other processes hold on this GPU in it, for the system "
                 "tells them not apart (containers hide them): measure it alone there");
}

static enum weft_status run_round(struct rehearsal *r, int32_t round, struct weft_error *err)
{
    WEFT_TRY(run_step(r, err));
    WEFT_TRY(read_step(r, round, err));
    return read_times(r, round, err);
}

static enum weft_status find_step(struct rehearsal *r, int64_t *step_ns, struct weft_error *err)
{
    int32_t v = layer_values(r) + VALUE_STEP;
    *step_ns = weft_measure_median(&r->values[v * MOST_ROUNDS], r->rounds);
    return weft_measure_most(r->options->comm, step_ns, 1, err);
}

/* Flops in the time of a pass: its own, or those in the time of its traffic. */
static double flops_in_time(double flops, double moved_bytes)
{
    return fmax(flops, WEFT_FLOPS_A_BYTE * moved_bytes);
}

/* A row whose key has fewer layers than levels is unseen. Its backward takes longer than without
 * recomputation by the share of the forward's flops that restoring repeats. */
static enum weft_status fill_unseen(const struct rehearsal *r, struct measure_layer *layers,
                                    struct weft_error *err)
{
    const struct weft_config *config = r->config;
    const struct weft_batch batch = weft_config_batch(config);
    const int32_t n_keys = r->profile->n_layers;
    for (int32_t l = 0; l < config->model->n_layers; l++) {
        struct weft_layer_work work;
        const int32_t key = r->layer_row[l] % n_keys;
        const struct measure_layer *plain = &layers[key];
        WEFT_TRY(weft_layer_work(&config->model->layers[l], &batch, &work, err));
        for (int32_t row = key + n_keys; row < r->n_rows; row += n_keys) {
            const struct weft_layer_split *split = &work.splits[row / n_keys];
            if (!split->possible || r->row_layers[row] > 0 || work.forward_flops <= 0) continue;
            const double share =
                flops_in_time(split->flops, work.restore_moved_bytes[row / n_keys]) /
                flops_in_time(work.forward_flops, work.forward_moved_bytes);
            layers[row] = *plain;
            layers[row].backward_ns += llround((double)plain->forward_ns * share);
            layers[row].mean_backward_ns += llround((double)plain->mean_forward_ns * share);
        }
    }
    return WEFT_OK;
}

/* A forward takes the same time at all levels of a key, so each gets the mean over their layers. */
static void pool_forwards(const struct rehearsal *r, struct measure_layer *layers)
{
    const int32_t n_keys = r->profile->n_layers;
    for (int32_t key = 0; key < n_keys; key++) {
        int64_t sum_ns = 0, mean_ns = 0, n = 0;
        for (int32_t row = key; row < r->n_rows; row += n_keys) {
            sum_ns += layers[row].forward_ns * r->row_layers[row];
            mean_ns += layers[row].mean_forward_ns * r->row_layers[row];
            n += r->row_layers[row];
        }
        for (int32_t row = key; row < r->n_rows && n > 0; row += n_keys) {
            layers[row].forward_ns = sum_ns / n;
            layers[row].mean_forward_ns = mean_ns / n;
        }
    }
}

/* Writes each rank's compute of a step, from the own times of this rank's rows. */
static enum weft_status share_compute(const struct rehearsal *r, const int64_t *own,
                                      int64_t *compute_ns, struct weft_error *err)
{
    int64_t mine_ns = 0;
    if (compute_ns == NULL) return WEFT_OK;
    for (int32_t row = 0; row < r->n_rows; row++)
        mine_ns += (own[2 * row] + own[2 * row + 1]) * r->row_layers[row];
    mine_ns *= r->stages.period->rule.n_micro;
    return weft_comm_exchange(r->options->comm, &mine_ns, sizeof mine_ns, compute_ns, err);
}

/* Writes a part's times of layers. The ranks' values of a part are n_rows times 4 in place: the
 * slowest rank's, then those of the mean rank. */
static enum weft_status take_layers(const struct rehearsal *r, const int64_t *values,
                                    struct measure_layer *layers, struct weft_error *err)
{
    const int64_t *mean = values + 2 * r->n_rows;
    for (int32_t k = 0; k < r->n_rows; k++)
        layers[k] = (struct measure_layer){.forward_ns = values[2 * k],
                                           .backward_ns = values[2 * k + 1],
                                           .mean_forward_ns = mean[2 * k],
                                           .mean_backward_ns = mean[2 * k + 1]};
    pool_forwards(r, layers);
    return fill_unseen(r, layers, err);
}

/* Returns the medians over rounds, and base memory as the last one: each rank's own. The caller
 * frees them. NULL without memory. */
static int64_t *find_medians(struct rehearsal *r)
{
    int64_t *medians = calloc((size_t)r->n_values + 1, sizeof *medians);
    for (int32_t v = 0; v < r->n_values && medians != NULL; v++)
        medians[v] = weft_measure_median(&r->values[v * MOST_ROUNDS], r->rounds);
    if (medians != NULL) medians[r->n_values] = r->base_bytes;
    return medians;
}

/* Makes a part's own values the mean over ranks, and then all values the most of any rank. */
static enum weft_status join_ranks(const struct rehearsal *r, int64_t *medians,
                                   struct weft_error *err)
{
    const int32_t n_rows = r->n_rows;
    for (int32_t part = 0; part <= r->by_layer; part++)
        WEFT_TRY(weft_measure_mean(r->options->comm, medians + (4 * part + 2) * n_rows, 2 * n_rows,
                                   err));
    return weft_measure_most(r->options->comm, medians, r->n_values + 1, err);
}

static enum weft_status finish_rehearsal(struct rehearsal *r, struct measure_rehearsal *out,
                                         struct weft_error *err)
{
    int64_t *medians = find_medians(r);
    if (medians == NULL) return weft_fail_memory(err, "the rehearsal");
    const int64_t *others = medians + layer_values(r);
    enum weft_status status = share_compute(r, medians + 2 * r->n_rows, out->compute_ns, err);
    if (status == WEFT_OK) status = join_ranks(r, medians, err);
    if (status == WEFT_OK) status = take_layers(r, medians, out->layers, err);
    out->update_ns = others[VALUE_UPDATE];
    out->norm_ns = others[VALUE_NORM];
    out->agree_ns = others[VALUE_AGREE];
    memcpy(out->transfer_ns, &others[VALUE_TRANSFER], sizeof out->transfer_ns);
    out->base_bytes = medians[r->n_values];
    expect_times(r, out);
    free(medians);
    return status;
}

/* A run makes its plan in another process and returns no memory while it steps. Memory that a
 * library takes at its first products, and keeps, is part of base memory. So memory is trimmed
 * before, and not after, the first steps. */
static enum weft_status open_and_warm_up(struct rehearsal *r, const struct rehearsal *other,
                                         struct weft_error *err)
{
    weft_measure_trim();
    WEFT_TRY(open_rehearsal(r, other, err));
    weft_measure_trim();
    return warm_up(r, err);
}

struct measure_rehearsals {
    struct rehearsal beside, alone;              /* alone: only with contention */
    struct measure_slowing slowing[MOST_ROUNDS]; /* of this rank, by turn */
    int32_t turns;
};

/* Writes the median over turns of one value of each turn; values [n][stride]. */
static int64_t median_of_turns(const int64_t *values, int32_t n, int32_t stride)
{
    int64_t turns[MOST_ROUNDS];
    for (int32_t t = 0; t < n; t++)
        turns[t] = values[t * stride];
    return weft_measure_median(turns, n);
}

/* Computes the rates: slowing is summed over ranks in each turn, and medians are taken over
 * turns. */
static enum weft_status find_rates(const struct measure_rehearsals *both, struct weft_rates *out,
                                   struct weft_error *err)
{
    enum { VALUES = 2 * WEFT_STREAM_COUNT };
    int64_t values[MOST_ROUNDS][VALUES];
    struct measure_slowing median;
    const int32_t n = both->turns;
    for (int32_t t = 0; t < n; t++) {
        for (int s = 0; s < WEFT_STREAM_COUNT; s++) {
            values[t][2 * s] = both->slowing[t].longer_ns[s];
            values[t][2 * s + 1] = both->slowing[t].beside_ns[s];
        }
    }
    WEFT_TRY(weft_measure_sum(both->alone.options->comm, values[0], n * VALUES, err));
    for (int s = 0; s < WEFT_STREAM_COUNT; s++) {
        median.longer_ns[s] = median_of_turns(&values[0][2 * s], n, VALUES);
        median.beside_ns[s] = median_of_turns(&values[0][2 * s + 1], n, VALUES);
    }
    *out = weft_measure_rates(&median);
    return WEFT_OK;
}

/* First runs some more steps, because memory of the process grows in the first few. */
static enum weft_status open_alone(struct measure_rehearsals *both, struct weft_error *err)
{
    for (int i = 0; i < SETTLE_STEPS; i++)
        WEFT_TRY(run_step(&both->beside, err));
    weigh_process(&both->beside);
    return open_and_warm_up(&both->alone, &both->beside, err);
}

enum weft_status weft_measure_rehearsals_create(const struct weft_measure_options *options,
                                                const struct weft_profile *profile,
                                                struct measure_rehearsals **out,
                                                struct weft_error *err)
{
    struct measure_rehearsals *both = calloc(1, sizeof *both);
    if (both == NULL) return weft_fail_memory(err, "the rehearsal");
    both->beside =
        (struct rehearsal){.options = options, .config = options->config, .profile = profile};
    both->alone = both->beside;
    both->alone.alone = true;
    enum weft_status status = open_and_warm_up(&both->beside, NULL, err);
    if (status == WEFT_OK && options->contention) status = open_alone(both, err);
    if (status != WEFT_OK) {
        weft_measure_rehearsals_destroy(both);
        return status;
    }
    *out = both;
    return WEFT_OK;
}

void weft_measure_rehearsals_destroy(struct measure_rehearsals *both)
{
    if (both == NULL) return;
    close_rehearsal(&both->alone);
    close_rehearsal(&both->beside);
    free(both);
}

enum weft_status weft_measure_rehearsals_rounds(const struct measure_rehearsals *both,
                                                int32_t *rounds, struct weft_error *err)
{
    const struct rehearsal *r = &both->beside;
    const int32_t v = layer_values(r) + VALUE_STEP;
    int64_t steps_ns[MOST_ROUNDS], spread;
    if (both->turns < r->rounds) {
        *rounds = r->rounds;
        return WEFT_OK;
    }
    memcpy(steps_ns, &r->values[v * MOST_ROUNDS], (size_t)both->turns * sizeof *steps_ns);
    spread = weft_measure_spread(steps_ns, both->turns);
    WEFT_TRY(weft_measure_most(r->options->comm, &spread, 1, err));
    *rounds = weft_measure_more_rounds(both->turns, r->most_rounds, spread);
    return WEFT_OK;
}

enum weft_status weft_measure_rehearsals_turn(struct measure_rehearsals *both,
                                              struct weft_error *err)
{
    if (both->turns == MOST_ROUNDS)
        return weft_fail(err, WEFT_E_USAGE, "a profile is made of at most %d turns", MOST_ROUNDS);
    int32_t turn = both->turns++;
    WEFT_TRY(run_round(&both->beside, turn, err));
    if (!both->beside.options->contention) return WEFT_OK;
    WEFT_TRY(run_round(&both->alone, turn, err));
    weft_measure_add_times(both->alone.program, &both->alone.times, &both->beside.times,
                           &both->slowing[turn]);
    return WEFT_OK;
}

/* Whether all micro-steps may run through a layer before the next one. */
static bool takes_turns(const struct weft_config *config)
{
    return weft_config_refuses_turns(config, config->train.grad_accum) == NULL &&
           config->model->n_layers > 1;
}

/* The options' config in the order by layer, with `n_micro` micro-steps. */
static void take_order(struct rehearsal *r, int64_t n_micro)
{
    struct weft_train *train = &r->own.train;
    r->own = *r->options->config;
    r->own.plan.micro_step_order = WEFT_ORDER_BY_LAYER;
    train->batch = train->group = train->idle = 0;
    train->asked.micro_batch = train->micro_batch;
    train->grad_accum = train->asked.grad_accum = n_micro;
    train->cadence = WEFT_CADENCE_STEP;
    r->config = &r->own;
}

/* Opens a rehearsal by layer with as many micro-steps as fit, at most MOST_PASS. The arena of the
 * other rehearsals is gone. None fits: *fits is false, and the reason is logged. */
static enum weft_status open_by_layer(const struct rehearsal *other, int64_t base_bytes,
                                      struct rehearsal *r, bool *fits, struct weft_error *err)
{
    const struct weft_config *config = other->options->config;
    const int64_t limit = config->cluster.memory_limit_bytes;
    int64_t n_micro = config->train.grad_accum < MOST_PASS ? config->train.grad_accum : MOST_PASS;
    struct weft_error why = {0};
    enum weft_status status = WEFT_E_SYSTEM;
    for (; n_micro >= 2 && status != WEFT_OK; n_micro /= 2) {
        *r = (struct rehearsal){.options = other->options,
                                .profile = other->profile,
                                .alone = other->options->contention,
                                .by_layer = true,
                                .most_bytes = limit == 0           ? INT64_MAX
                                              : limit > base_bytes ? limit - base_bytes
                                                                   : 1};
        take_order(r, n_micro);
        why = (struct weft_error){0};
        status = open_and_warm_up(r, NULL, &why);
        if (status == WEFT_OK) break;
        /* An arena without memory is no fault: the profile does without these times. All ranks know
         * that alike. After another failure of one rank the others would wait for it. */
        const bool refused = r->refused;
        close_rehearsal(r);
        if (!refused) {
            *err = why;
            return status;
        }
    }
    *fits = status == WEFT_OK;
    if (!*fits && weft_comm_rank(other->options->comm) == 0)
        weft_log(
            WEFT_LOG_WARNING,
            "layers are not timed with all micro-steps in turn, so plans in such an order take "
            "the times of micro-step after micro-step: %s",
            why.text);
    return WEFT_OK;
}

/* Rehearses the order by layer and writes its times. Later micro-steps of a pass have fewer
 * collectives next to them, and find parameters in the cache. */
static enum weft_status rehearse_by_layer(const struct rehearsal *other, int64_t base_bytes,
                                          struct measure_rehearsal *out, struct weft_error *err)
{
    struct rehearsal *r = calloc(1, sizeof *r);
    int64_t *medians = NULL;
    bool fits = false;
    if (r == NULL) return weft_fail_memory(err, "the rehearsal");
    enum weft_status status = open_by_layer(other, base_bytes, r, &fits, err);
    for (int32_t i = 0; fits && status == WEFT_OK && i < r->rounds; i++)
        status = run_round(r, i, err);
    if (fits && status == WEFT_OK) {
        medians = find_medians(r);
        status =
            medians == NULL ? weft_fail_memory(err, "the rehearsal") : join_ranks(r, medians, err);
    }
    if (medians != NULL && status == WEFT_OK)
        status = take_layers(r, medians, out->pass_first, err);
    if (medians != NULL && status == WEFT_OK)
        status = take_layers(r, medians + 4 * r->n_rows, out->pass_later, err);
    free(medians);
    if (fits) close_rehearsal(r);
    free(r);
    return status;
}

/* Writes the results of the order by step. */
static enum weft_status finish_by_step(struct measure_rehearsals *both,
                                       struct measure_rehearsal *out, struct weft_error *err)
{
    both->beside.rounds = both->alone.rounds = both->turns;
    if (!both->beside.options->contention) {
        drop_times(&both->beside);
        weigh_process(&both->beside);
        WEFT_TRY(finish_rehearsal(&both->beside, out, err));
        return find_step(&both->beside, &out->step_ns, err);
    }
    both->alone.base_bytes = both->beside.base_bytes;
    WEFT_TRY(finish_rehearsal(&both->alone, out, err));
    WEFT_TRY(find_step(&both->beside, &out->step_ns, err));
    return find_rates(both, &out->rates, err);
}

enum weft_status weft_measure_rehearsals_finish(struct measure_rehearsals *both,
                                                struct measure_rehearsal *out,
                                                struct weft_error *err)
{
    const struct rehearsal ended = both->beside;
    WEFT_TRY(finish_by_step(both, out, err));
    if (out->pass_first == NULL || !takes_turns(ended.options->config)) return WEFT_OK;
    close_rehearsal(&both->alone);
    close_rehearsal(&both->beside);
    return rehearse_by_layer(&ended, out->base_bytes, out, err);
}
