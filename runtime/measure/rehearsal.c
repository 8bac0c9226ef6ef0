#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "plan/plan.h"
#include "plan/trace.h"
#include "runtime/exec/exec.h"
#include "runtime/measure/parts.h"

enum { WARM_STEPS = 2, SETTLE_STEPS = 6, DEFAULT_ROUNDS = 9, LEAST_ROUNDS = 3, MOST_ROUNDS = 64 };
#define BUDGET_NS (INT64_C(4) * 1000000000)

/* A run holds a little that a rehearsal does not: the plan's text, metrics, slack of the allocator.
 * The limit is a promise, so it is counted as base. */
enum { RUN_BYTES = 1 << 20 };

/* What one step gives: two times a layer key, then these. */
enum { VALUE_UPDATE, VALUE_NORM, VALUE_AGREE, OTHER_VALUES };

struct rehearsal {
    const struct weft_measure_options *options;
    const struct weft_profile *profile;
    struct weft_stages stages;
    struct weft_plan *plan;
    struct weft_program *program;
    void *arena, *input;
    bool owns_arena;
    int32_t *targets;
    struct weft_exec *exec;
    struct weft_trace *trace;
    int32_t *layer_key;  /* by layer: index in profile->layers */
    int32_t *key_layers; /* by key: layers that have it */
    int64_t *slot_ns;
    bool alone;            /* serialised */
    int32_t steps, rounds; /* done; wanted of those that are measured */
    int64_t base_bytes;
    struct measure_times times, rounds_of; /* by instruction; of it [MOST_ROUNDS]. NULL: not read */
    int32_t n_values;
    int64_t *values; /* [n_values][MOST_ROUNDS] */
};

/* A placement and where it stands in the channel: at the start of slot `at`. */
struct place {
    int32_t at, order;
    struct weft_move move;
};

static int compare_places(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    return x->at != y->at ? (x->at > y->at) - (x->at < y->at)
                          : (x->order > y->order) - (x->order < y->order);
}

/* The leanest policy of a unit: whatever plan comes later, this one fits beside it. */
static enum weft_policy leanest(const struct weft_problem_unit *unit)
{
    static const enum weft_policy order[] = {WEFT_POLICY_FSDP, WEFT_POLICY_SDP, WEFT_POLICY_ZERO1};
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        if ((unit->policies >> order[i] & 1u) != 0) return order[i];
    }
    return WEFT_POLICY_DP;
}

/* Every gather is launched one slot before it must be, every reduction has one slot more than it
 * needs: communication runs beside compute, as in any good plan. */
static enum weft_status make_plan(struct rehearsal *r, struct weft_error *err)
{
    const struct weft_problem *problem = r->stages.problem;
    enum weft_status status = WEFT_OK;
    int32_t n = 0, most = 0;
    for (int32_t i = 0; i < problem->n_items; i++)
        most += problem->items[i].item.n_blocks;
    enum weft_policy *policies = calloc((size_t)problem->n_units, sizeof *policies);
    struct place *places = calloc((size_t)most + 1, sizeof *places);
    struct weft_move *moves = calloc((size_t)most + 1, sizeof *moves);
    if (policies == NULL || places == NULL || moves == NULL) {
        status = weft_fail_memory(err, "the rehearsal's plan");
        goto done;
    }
    for (int32_t u = 0; u < problem->n_units; u++)
        policies[u] = leanest(&problem->units[u]);
    for (int32_t i = 0; i < problem->n_items; i++) {
        const struct weft_item *item = &problem->items[i].item;
        if (!weft_problem_needs(problem, policies, i)) continue;
        bool gathers = item->kind == WEFT_ALL_GATHER;
        int32_t slot = gathers ? item->last - 1 : item->first + 1;
        if (slot < item->first || slot > item->last) slot = gathers ? item->first : item->last;
        for (int32_t b = 0; b < item->n_blocks; b++, n++)
            places[n] = (struct place){gathers ? item->last : item->first, n, {i, slot, 0}};
    }
    qsort(places, (size_t)n, sizeof *places, compare_places);
    for (int32_t i = 0; i < n; i++)
        moves[i] = places[i].move;
    status = weft_plan_create(problem, "rehearsal", policies, moves, n, &r->plan, err);
done:
    free(moves);
    free(places);
    free(policies);
    return status;
}

static enum weft_status lower_plan(struct rehearsal *r, struct weft_error *err)
{
    const struct weft_config *config = r->options->config;
    struct weft_lower_inputs inputs = {
        .model = config->model,
        .shards = r->stages.shards,
        .period = r->stages.period,
        .weigh = {.batch = weft_config_batch(config),
                  .reduce = (enum weft_dtype)config->train.precision.reduce,
                  .accumulate = (enum weft_dtype)config->train.precision.accumulate,
                  .n_moments = weft_config_moments(config)},
    };
    return weft_program_lower(r->plan, &inputs, 0, &r->program, err);
}

/* Which profile line a layer has. */
static enum weft_status find_keys(struct rehearsal *r, struct weft_error *err)
{
    const struct weft_model *model = r->options->config->model;
    struct weft_batch batch = weft_config_batch(r->options->config);
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
        r->layer_key[l] = (int32_t)(times - r->profile->layers);
        r->key_layers[r->layer_key[l]]++;
    }
    weft_pool_finish(&pool);
    return status;
}

/* A batch of noise: the time of a step does not depend on what is in it. */
static void fill_batch(const struct rehearsal *r)
{
    const struct weft_model *model = r->options->config->model;
    const struct weft_layer *first = &model->layers[0], *last = &model->layers[model->n_layers - 1];
    struct weft_batch batch = weft_config_batch(r->options->config);
    int64_t samples = batch.samples * r->options->config->train.grad_accum;
    int64_t rows = samples * batch.seq_len;
    int64_t n_targets = last->type == WEFT_LAYER_CLASSIFIER ? samples : rows;
    bool tokens = first->type == WEFT_LAYER_EMBEDDING;
    for (int64_t i = 0; tokens && i < rows; i++)
        ((int32_t *)r->input)[i] =
            (int32_t)weft_rng_below(1, 0, (uint64_t)i, (uint64_t)first->vocab);
    for (int64_t i = 0; !tokens && i < rows * first->hidden; i++)
        ((float *)r->input)[i] = (float)(2 * weft_rng_uniform(1, 0, (uint64_t)i) - 1);
    for (int64_t i = 0; i < n_targets; i++)
        r->targets[i] = (int32_t)weft_rng_below(1, 1, (uint64_t)i, (uint64_t)last->outputs);
}

/* What contention is read from. */
static enum weft_status allocate_times(struct rehearsal *r, struct weft_error *err)
{
    size_t n = (size_t)r->program->n_instructions;
    if (!r->options->contention) return WEFT_OK;
    r->times.ns = calloc(n, sizeof(int64_t));
    r->times.beside_ns = calloc(n, sizeof(int64_t));
    r->rounds_of.ns = calloc(n * MOST_ROUNDS, sizeof(int64_t));
    r->rounds_of.beside_ns = calloc(n * MOST_ROUNDS, sizeof(int64_t));
    if (r->times.ns == NULL || r->times.beside_ns == NULL || r->rounds_of.ns == NULL ||
        r->rounds_of.beside_ns == NULL) {
        return weft_fail_memory(err, "the rehearsal");
    }
    return WEFT_OK;
}

/* Two rehearsals of one layout may share an arena: what one leaves there is as good as any other
 * numbers to the other. */
static enum weft_status take_arena(struct rehearsal *r, const struct rehearsal *other,
                                   struct weft_error *err)
{
    r->owns_arena = other == NULL;
    if (r->owns_arena)
        return weft_comm_map_arena(r->options->comm, r->program->arena_bytes, &r->arena, err);
    if (r->program->arena_bytes != other->program->arena_bytes)
        return weft_fail(err, WEFT_E_INTERNAL, "one plan has two layouts");
    r->arena = other->arena;
    return WEFT_OK;
}

static enum weft_status open_rehearsal(struct rehearsal *r, const struct rehearsal *other,
                                       struct weft_error *err)
{
    const struct weft_measure_options *o = r->options;
    const struct weft_model *model = o->config->model;
    struct weft_batch batch = weft_config_batch(o->config);
    WEFT_TRY(weft_stages_create(o->config, r->profile, &r->stages, err));
    WEFT_TRY(make_plan(r, err));
    WEFT_TRY(lower_plan(r, err));
    if (r->alone) WEFT_TRY(weft_measure_serialise(r->program, err));
    WEFT_TRY(allocate_times(r, err));
    r->n_values = 2 * r->profile->n_layers + OTHER_VALUES;
    r->layer_key = calloc((size_t)model->n_layers, sizeof *r->layer_key);
    r->key_layers = calloc((size_t)r->profile->n_layers, sizeof *r->key_layers);
    r->slot_ns = calloc((size_t)r->program->n_slots, sizeof *r->slot_ns);
    r->values = calloc((size_t)r->n_values * MOST_ROUNDS, sizeof *r->values);
    size_t n_micro = (size_t)o->config->train.grad_accum;
    r->input = calloc(n_micro, (size_t)weft_model_host_input_bytes(model, &batch));
    r->targets = calloc(n_micro, (size_t)weft_model_target_bytes(model, &batch));
    if (r->layer_key == NULL || r->key_layers == NULL || r->slot_ns == NULL || r->values == NULL ||
        r->input == NULL || r->targets == NULL) {
        return weft_fail_memory(err, "the rehearsal");
    }
    WEFT_TRY(find_keys(r, err));
    fill_batch(r);
    WEFT_TRY(weft_trace_create(r->program, "wall clock", &r->trace, err));
    WEFT_TRY(take_arena(r, other, err));
    struct weft_exec_options options = {
        .config = o->config,
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

static void drop_rounds(struct rehearsal *r)
{
    free(r->rounds_of.beside_ns);
    free(r->rounds_of.ns);
    r->rounds_of = (struct measure_times){0};
}

static void close_rehearsal(struct rehearsal *r)
{
    weft_exec_destroy(r->exec);
    if (r->owns_arena && r->arena != NULL) weft_comm_unmap_arena(r->options->comm);
    drop_rounds(r);
    free(r->times.beside_ns);
    free(r->times.ns);
    weft_trace_destroy(r->trace);
    free(r->targets);
    free(r->input);
    free(r->values);
    free(r->slot_ns);
    free(r->key_layers);
    free(r->layer_key);
    weft_program_destroy(r->program);
    weft_plan_destroy(r->plan);
    weft_stages_finish(&r->stages);
}

/* Compute time of every slot, from its MARK to the end of its last work, so that what the executor
 * itself needs between instructions is in it; where it waits for collectives in between, from its
 * first work behind them. Returns the time of the AGREE, as compute waits. */
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
        /* What ranks agree on within an update is no part of its time. */
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

/* Ranks wait for each other at every collective, so a slot takes what the slowest rank needs for
 * it in that step, which may be another rank each time: the most of each, and not of medians. Of
 * the AGREE it is the least, for the last rank to come waits for nobody. */
static enum weft_status read_step(struct rehearsal *r, int32_t round, struct weft_error *err)
{
    int64_t step[OTHER_VALUES] = {0};
    int32_t n_keys = r->profile->n_layers, n_micro = r->stages.period->rule.n_micro;
    int64_t agree_ns = -read_slots(r);
    WEFT_TRY(weft_measure_most(r->options->comm, &agree_ns, 1, err));
    step[VALUE_AGREE] = -agree_ns;
    WEFT_TRY(weft_measure_most(r->options->comm, r->slot_ns, r->program->n_slots, err));
    for (int32_t v = 0; v < 2 * n_keys; v++)
        r->values[v * MOST_ROUNDS + round] = 0;
    for (int32_t s = 0; s < r->program->n_slots; s++) {
        struct weft_slot slot = r->stages.period->slots[s];
        switch (slot.kind) {
        case WEFT_SLOT_UPDATE:
            step[VALUE_UPDATE] += r->slot_ns[s];
            break;
        case WEFT_SLOT_FORWARD:
            r->values[2 * r->layer_key[slot.index] * MOST_ROUNDS + round] += r->slot_ns[s];
            break;
        case WEFT_SLOT_BACKWARD:
            r->values[(2 * r->layer_key[slot.index] + 1) * MOST_ROUNDS + round] += r->slot_ns[s];
            break;
        case WEFT_SLOT_NORM:
            /* Without clipping it computes no norm; the bench's stands. */
            if (!r->stages.period->rule.rotated) step[VALUE_NORM] = r->slot_ns[s];
            break;
        case WEFT_SLOT_FILL:
        case WEFT_SLOT_DRAIN:
        case WEFT_SLOT_KIND_COUNT:
            break;
        }
    }
    for (int32_t v = 0; v < 2 * n_keys; v++)
        r->values[v * MOST_ROUNDS + round] /= n_micro * r->key_layers[v / 2];
    for (int32_t v = 0; v < OTHER_VALUES; v++)
        r->values[(2 * n_keys + v) * MOST_ROUNDS + round] = step[v];
    return WEFT_OK;
}

/* All ranks leave a collective together, so what the last of them to come needs is what it takes.
 */
static enum weft_status read_times(struct rehearsal *r, int32_t round, struct weft_error *err)
{
    int32_t n = r->program->n_instructions;
    if (r->rounds_of.ns == NULL) return WEFT_OK;
    int64_t *transfer_ns = calloc((size_t)n, sizeof *transfer_ns);
    if (transfer_ns == NULL) return weft_fail_memory(err, "the rehearsal");
    for (int32_t i = 0; i < n; i++)
        transfer_ns[i] = r->trace->records[i].start_ns - r->trace->records[i].end_ns;
    enum weft_status status = weft_measure_most(r->options->comm, transfer_ns, n, err);
    for (int32_t i = 0; i < n; i++)
        transfer_ns[i] = -transfer_ns[i];
    weft_measure_read_times(r->program, r->trace, transfer_ns, r->times.ns, r->times.beside_ns);
    for (int32_t i = 0; i < n; i++) {
        r->rounds_of.ns[i * MOST_ROUNDS + round] = r->times.ns[i];
        r->rounds_of.beside_ns[i * MOST_ROUNDS + round] = r->times.beside_ns[i];
    }
    free(transfer_ns);
    return status;
}

/* What the benches' curves say of the same updates and norm. */
static void expect(const struct rehearsal *r, struct measure_rehearsal *out)
{
    int64_t owned = 0;
    for (int32_t u = 0; u < r->stages.shards->n_units; u++) {
        const struct weft_unit *unit = &r->stages.shards->units[u];
        if (!unit->trainable) continue;
        int64_t slices = unit->padded_elements / r->stages.shards->ranks;
        bool whole = r->plan->policies[u] == WEFT_POLICY_DP;
        out->update_expected_ns +=
            weft_curve_at(&r->profile->update, whole ? unit->padded_elements : slices);
        owned += slices;
    }
    out->norm_expected_ns = weft_curve_at(&r->profile->norm, owned);
}

static enum weft_status run_step(struct rehearsal *r, struct weft_error *err)
{
    struct weft_step_result result;
    struct weft_step_inputs inputs = {
        .input = r->input, .targets = r->targets, .step = ++r->steps, .lr = 1e-6};
    return weft_exec_step(r->exec, &inputs, &result, r->trace, err);
}

/* Steps that are not measured. The last of them says how many more there is time for. */
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
    return WEFT_OK;
}

static void weigh_process(struct rehearsal *r)
{
    r->base_bytes = weft_measure_anonymous_bytes() + RUN_BYTES;
}

static enum weft_status run_round(struct rehearsal *r, int32_t round, struct weft_error *err)
{
    WEFT_TRY(run_step(r, err));
    WEFT_TRY(read_step(r, round, err));
    return read_times(r, round, err);
}

static void finish_times(struct rehearsal *r)
{
    if (r->rounds_of.ns == NULL) return;
    for (int32_t i = 0; i < r->program->n_instructions; i++) {
        size_t at = (size_t)i * MOST_ROUNDS;
        r->times.ns[i] = weft_measure_median(&r->rounds_of.ns[at], r->rounds);
        r->times.beside_ns[i] = weft_measure_median(&r->rounds_of.beside_ns[at], r->rounds);
    }
    drop_rounds(r);
    weft_measure_trim();
}

static enum weft_status finish(struct rehearsal *r, struct measure_rehearsal *out,
                               struct weft_error *err)
{
    finish_times(r);
    int32_t n_keys = r->profile->n_layers;
    int64_t *medians = calloc((size_t)r->n_values + 1, sizeof *medians);
    if (medians == NULL) return weft_fail_memory(err, "the rehearsal");
    for (int32_t v = 0; v < r->n_values; v++)
        medians[v] = weft_measure_median(&r->values[v * MOST_ROUNDS], r->rounds);
    medians[r->n_values] = r->base_bytes;
    enum weft_status status = weft_measure_most(r->options->comm, medians, r->n_values + 1, err);
    for (int32_t k = 0; k < n_keys; k++) {
        out->forward_ns[k] = medians[2 * k];
        out->backward_ns[k] = medians[2 * k + 1];
    }
    out->update_ns = medians[2 * n_keys + VALUE_UPDATE];
    out->norm_ns = medians[2 * n_keys + VALUE_NORM];
    out->agree_ns = medians[2 * n_keys + VALUE_AGREE];
    out->base_bytes = medians[r->n_values];
    expect(r, out);
    free(medians);
    return status;
}

static enum weft_status open_and_warm_up(struct rehearsal *r, const struct rehearsal *other,
                                         struct weft_error *err)
{
    weft_measure_trim();
    WEFT_TRY(open_rehearsal(r, other, err));
    return warm_up(r, err);
}

/* What all ranks saw together. */
static enum weft_status find_rates(const struct rehearsal *alone, const struct rehearsal *beside,
                                   struct weft_rates *out, struct weft_error *err)
{
    struct weft_comm *comm = alone->options->comm;
    struct measure_slowing mine = {0}, total = {0};
    struct measure_slowing *all = calloc((size_t)weft_comm_ranks(comm), sizeof *all);
    if (all == NULL) return weft_fail_memory(err, "the ranks' measurements");
    weft_measure_add_times(alone->program, &alone->times, &beside->times, &mine);
    enum weft_status status = weft_comm_exchange(comm, &mine, sizeof mine, all, err);
    for (int32_t r = 0; r < weft_comm_ranks(comm); r++) {
        for (int s = 0; s < WEFT_STREAM_COUNT; s++) {
            total.longer_ns[s] += all[r].longer_ns[s];
            total.beside_ns[s] += all[r].beside_ns[s];
        }
    }
    free(all);
    *out = weft_measure_rates(&total);
    return status;
}

struct measure_rehearsals {
    struct rehearsal beside, alone; /* alone: with contention only */
    int32_t turns;
};

/* After some steps more: the memory of a process grows for the first few. */
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
    both->beside = (struct rehearsal){.options = options, .profile = profile};
    both->alone = (struct rehearsal){.options = options, .profile = profile, .alone = true};
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

int32_t weft_measure_rehearsals_rounds(const struct measure_rehearsals *both)
{
    return both->beside.rounds;
}

enum weft_status weft_measure_rehearsals_turn(struct measure_rehearsals *both,
                                              struct weft_error *err)
{
    if (both->turns == MOST_ROUNDS)
        return weft_fail(err, WEFT_E_USAGE, "a profile is made of at most %d turns", MOST_ROUNDS);
    int32_t turn = both->turns++;
    WEFT_TRY(run_round(&both->beside, turn, err));
    return both->beside.options->contention ? run_round(&both->alone, turn, err) : WEFT_OK;
}

enum weft_status weft_measure_rehearsals_finish(struct measure_rehearsals *both,
                                                struct measure_rehearsal *out,
                                                struct weft_error *err)
{
    both->beside.rounds = both->alone.rounds = both->turns;
    if (!both->beside.options->contention) {
        weigh_process(&both->beside);
        return finish(&both->beside, out, err);
    }
    finish_times(&both->beside);
    both->alone.base_bytes = both->beside.base_bytes;
    WEFT_TRY(finish(&both->alone, out, err));
    return find_rates(&both->alone, &both->beside, &out->rates, err);
}
