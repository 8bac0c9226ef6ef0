/* SPDX-License-Identifier: Apache-2.0 */
#include "memory_model/moves.h"
#include "program/lower.h"

/* The same code makes buffers twice: once to count them, once to fill them in. */
struct maker {
    struct weft_lowering *lowering;
    struct weft_buffer *buffers; /* NULL while counting */
    int32_t n_buffers;
};

static void make_buffer(struct maker *maker, enum weft_buffer_kind kind,
                        enum weft_category category, int32_t index, int32_t instance, int64_t bytes,
                        int32_t n_pieces)
{
    if (bytes == 0) return;
    if (maker->buffers != NULL) {
        maker->buffers[maker->n_buffers] = (struct weft_buffer){
            .kind = kind,
            .category = category,
            .index = index,
            .instance = instance,
            .used_bytes = bytes,
            .bytes = weft_arena_round(bytes),
            .n_pieces = n_pieces,
        };
        if (instance == 0) {
            maker->lowering->buffers[kind][index < 0 ? 0 : index] = maker->n_buffers;
        }
    }
    maker->n_buffers++;
}

/* Makes one buffer for each micro-step, in pieces. */
static void make_in_pieces(struct maker *maker, enum weft_buffer_kind kind,
                           enum weft_category category, int32_t index, int64_t bytes,
                           int32_t n_pieces)
{
    for (int32_t micro = 0; micro < maker->lowering->inputs->period->rule.n_micro; micro++)
        make_buffer(maker, kind, category, index, micro, bytes, n_pieces);
}

static void make_of_micro(struct maker *maker, enum weft_buffer_kind kind,
                          enum weft_category category, int32_t index, int64_t bytes)
{
    make_in_pieces(maker, kind, category, index, bytes, 1);
}

/* Makes buffers of a layer's activations, which copies to the host cut into pieces. */
static void make_movable(struct maker *maker, enum weft_buffer_kind kind, int32_t l, int64_t bytes,
                         bool moves)
{
    make_in_pieces(maker, kind, WEFT_CATEGORY_ACTIVATIONS, l, bytes,
                   moves ? weft_weigh_saved_blocks(&maker->lowering->inputs->weigh, bytes) : 1);
}

/* Whether the unit's gradient is summed over a part of the ranks first. */
static bool sums_partly(const struct maker *maker, int32_t u)
{
    const struct weft_moves moves = weft_moves_of(maker->lowering->program->ways[u], false);
    for (int i = 0; i < moves.n; i++)
        if (moves.moves[i].to == WEFT_BUFFER_PARTIAL) return true;
    return false;
}

/* weft_weights_create has weighed these shards, so the products of sizes fit. */
static void make_of_unit(struct maker *maker, enum weft_buffer_kind kind, int32_t u)
{
    const struct weft_lower_inputs *inputs = maker->lowering->inputs;
    const struct weft_plan *plan = maker->lowering->plan;
    const struct weft_unit *unit = &inputs->shards->units[u];
    enum weft_policy policy = weft_plan_chosen(plan, u)->policy;
    const bool gathered = weft_policy_gathers(policy);
    const bool on_host = weft_program_updates_on_host(maker->lowering->program, u);
    /* The host updates block by block, and averages go block by block. */
    const bool averages = inputs->period->rule.every > 0;
    const int32_t pieces = on_host ? unit->n_blocks : 1;
    const int32_t changed = on_host || averages ? unit->n_blocks : 1;
    int64_t full = unit->padded_elements;
    const int64_t owned = full / weft_shards_sharers(inputs->shards, policy);
    const int64_t held = full / weft_shards_holders(inputs->shards, policy);
    int64_t compute_bytes = weft_dtype_bytes(inputs->weigh.batch.compute);
    int64_t state_bytes = owned * weft_dtype_bytes(WEFT_F32);
    if (kind == WEFT_BUFFER_SHARD && gathered) {
        const bool fetches = weft_program_fetches(maker->lowering->program, u);
        const bool in_blocks = fetches || weft_policy_crosses(policy);
        const int32_t instances = fetches ? 1 + weft_lower_residencies(plan, u) : 1;
        for (int32_t i = 0; i < instances; i++)
            make_buffer(maker, kind, WEFT_CATEGORY_SHARDED_PARAMETERS, u, i, held * compute_bytes,
                        in_blocks ? unit->n_blocks : changed);
    } else if (kind == WEFT_BUFFER_FULL) {
        int32_t instances = gathered ? weft_lower_residencies(plan, u) : 1;
        for (int32_t i = 0; i < instances; i++) {
            make_buffer(maker, kind, WEFT_CATEGORY_GATHERED_PARAMETERS, u, i, full * compute_bytes,
                        gathered ? unit->n_blocks : changed);
        }
    }
    if (!unit->trainable) return;
    int32_t n_moments = inputs->weigh.n_moments;
    if ((kind == WEFT_BUFFER_MOMENT1 && n_moments >= 1) ||
        (kind == WEFT_BUFFER_MOMENT2 && n_moments >= 2) ||
        (kind == WEFT_BUFFER_MASTER && inputs->weigh.batch.compute != WEFT_F32)) {
        const bool copied =
            weft_program_location(maker->lowering->program, u) == WEFT_LOCATION_HOST && !on_host;
        const int32_t whole = kind == WEFT_BUFFER_MASTER ? changed : 1;
        const int32_t blocks = copied ? weft_weigh_state_blocks(&inputs->weigh, owned) : whole;
        if (!on_host)
            make_buffer(maker, kind, WEFT_CATEGORY_OPTIMIZER_STATE, u, 0, state_bytes, blocks);
    } else if (kind == WEFT_BUFFER_ANCHOR || kind == WEFT_BUFFER_OUTER) {
        if (inputs->weigh.outer)
            make_buffer(maker, kind, WEFT_CATEGORY_OPTIMIZER_STATE, u, 0, state_bytes, 1);
    } else if (kind == WEFT_BUFFER_GRADIENT) {
        int32_t reductions = weft_period_reductions(&inputs->period->rule);
        for (int32_t i = 0; i < reductions; i++) {
            make_buffer(maker, kind, WEFT_CATEGORY_FULL_GRADIENTS, u, i,
                        full * weft_dtype_bytes(inputs->weigh.reduce), unit->n_blocks);
        }
    } else if (kind == WEFT_BUFFER_TENSOR_NORMS || kind == WEFT_BUFFER_TENSOR_NORMS_SUM) {
        if (inputs->period->rule.agreed_updates) {
            make_buffer(maker, kind, WEFT_CATEGORY_COMMUNICATION, u, 0,
                        (int64_t)unit->n_tensors * WEFT_TENSOR_NORMS_BYTES, 1);
        }
    } else if (kind == WEFT_BUFFER_REDUCED && !weft_policy_is_whole(policy)) {
        make_buffer(maker, kind, WEFT_CATEGORY_SHARDED_GRADIENTS, u, 0,
                    owned * weft_dtype_bytes(inputs->weigh.accumulate), pieces);
    } else if (kind == WEFT_BUFFER_PARTIAL && sums_partly(maker, u)) {
        for (int32_t i = 0; i < weft_period_reductions(&inputs->period->rule); i++)
            make_buffer(maker, kind, WEFT_CATEGORY_SHARDED_GRADIENTS, u, i,
                        held * weft_dtype_bytes(WEFT_F32), unit->n_blocks);
    }
}

static void make_of_layer(struct maker *maker, enum weft_buffer_kind kind, int32_t l)
{
    const struct weft_layer_work *work = &maker->lowering->works[l];
    const bool offloaded = weft_program_saves_offloaded(maker->lowering->program, l);
    const bool moves = weft_program_moves_output(maker->lowering->program, l);
    bool last = l + 1 == maker->lowering->inputs->model->n_layers;
    if (kind == WEFT_BUFFER_OUTPUT) {
        make_movable(maker, kind, l, work->output_bytes, moves);
    } else if (kind == WEFT_BUFFER_OUTPUT_GRADIENT && !last) {
        make_of_micro(maker, kind, WEFT_CATEGORY_ACTIVATIONS, l, work->output_bytes);
    } else if (kind == WEFT_BUFFER_SAVED) {
        make_movable(maker, kind, l, work->saved_bytes, offloaded);
    } else if (kind == WEFT_BUFFER_RESTORED) {
        if (offloaded) make_movable(maker, kind, l, work->saved_bytes, true);
    } else if (kind == WEFT_BUFFER_RESTORED_OUTPUT) {
        if (moves) make_movable(maker, kind, l, work->output_bytes, true);
    } else if (kind == WEFT_BUFFER_FORWARD_TEMPORARY) {
        make_of_micro(maker, kind, WEFT_CATEGORY_TEMPORARY, l, work->forward_temporary_bytes);
    } else if (kind == WEFT_BUFFER_BACKWARD_TEMPORARY) {
        make_of_micro(maker, kind, WEFT_CATEGORY_TEMPORARY, l, work->backward_temporary_bytes);
    }
}

static void make_single(struct maker *maker, enum weft_buffer_kind kind)
{
    const struct weft_model *model = maker->lowering->inputs->model;
    const struct weft_batch *batch = &maker->lowering->inputs->weigh.batch;
    if (kind == WEFT_BUFFER_INPUT) {
        make_of_micro(maker, kind, WEFT_CATEGORY_ACTIVATIONS, -1,
                      weft_model_input_bytes(model, batch));
    } else if (kind == WEFT_BUFFER_TARGETS) {
        make_of_micro(maker, kind, WEFT_CATEGORY_ACTIVATIONS, -1,
                      weft_model_target_bytes(model, batch));
    } else {
        make_buffer(maker, kind, WEFT_CATEGORY_COMMUNICATION, -1, 0,
                    weft_weigh_record_bytes(&maker->lowering->inputs->weigh, model), 1);
    }
}

static void make_kind(struct maker *maker, enum weft_buffer_kind kind)
{
    const struct weft_lower_inputs *inputs = maker->lowering->inputs;
    switch (weft_buffer_owner(kind)) {
    case WEFT_OWNER_UNIT:
        for (int32_t u = 0; u < inputs->shards->n_units; u++)
            make_of_unit(maker, kind, u);
        break;
    case WEFT_OWNER_LAYER:
        for (int32_t l = 0; l < inputs->model->n_layers; l++)
            make_of_layer(maker, kind, l);
        break;
    case WEFT_OWNER_MICRO:
    case WEFT_OWNER_STEP:
        make_single(maker, kind);
        break;
    }
}

enum weft_status weft_lower_buffers(struct weft_lowering *lowering, struct weft_error *err)
{
    const struct weft_lower_inputs *inputs = lowering->inputs;
    int32_t n_units = inputs->shards->n_units, n_layers = inputs->model->n_layers;
    int32_t n = n_units > n_layers ? n_units : n_layers;
    struct maker counter = {.lowering = lowering};
    for (int32_t kind = 0; kind < WEFT_BUFFER_KIND_COUNT; kind++) {
        make_kind(&counter, (enum weft_buffer_kind)kind);
        lowering->buffers[kind] = weft_pool_array(&lowering->pool, (size_t)n, sizeof(int32_t));
        if (lowering->buffers[kind] == NULL) return weft_fail_memory(err, "program");
        for (int32_t i = 0; i < n; i++)
            lowering->buffers[kind][i] = -1;
    }
    struct maker maker = {.lowering = lowering};
    maker.buffers =
        weft_pool_array(&lowering->program->pool, (size_t)counter.n_buffers, sizeof *maker.buffers);
    if (maker.buffers == NULL) return weft_fail_memory(err, "program");
    for (int32_t kind = 0; kind < WEFT_BUFFER_KIND_COUNT; kind++)
        make_kind(&maker, (enum weft_buffer_kind)kind);
    lowering->program->buffers = maker.buffers;
    lowering->program->n_buffers = maker.n_buffers;
    return WEFT_OK;
}
