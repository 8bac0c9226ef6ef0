/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/units.h"
#include "runtime/exec/parts.h"
#include "spec/config_batch.h"

static void *buffer_of(const struct weft_exec *exec, enum weft_buffer_kind kind, int32_t unit)
{
    int32_t buffer = weft_program_buffer(exec->options.program, kind, unit, 0);
    return buffer < 0 ? NULL : exec->base + exec->places.offsets[0][buffer];
}

/* `held` is the place of its first element in the shard of the parameters. */
static struct weft_nn_piece piece_of(const struct weft_exec *exec, const struct exec_unit *unit,
                                     const struct weft_piece *piece, int64_t held)
{
    const struct weft_tensor *tensor = &exec->options.config->model->tensors[piece->tensor];
    return (struct weft_nn_piece){
        .parameter_at = unit->resident ? piece->unit_begin : held,
        .state_at = unit->whole    ? piece->unit_begin
                    : unit->hybrid ? held
                                   : piece->shard_begin,
        .first = piece->tensor_begin,
        .count = piece->count,
        .tensor = piece->tensor,
        .name = weft_hash_string(tensor->name),
        .matrix = tensor->decays,
    };
}

/* The unit, cut into slices for a rank of a node each. */
struct node_view {
    struct weft_unit unit;
    struct weft_shards shards;
};

static struct node_view *view_of_node(struct weft_exec *exec, int32_t u)
{
    const struct weft_shards *shards = exec->options.shards;
    struct node_view *view = weft_pool_array(&exec->pool, 1, sizeof *view);
    if (view == NULL) return NULL;
    view->unit = shards->units[u];
    view->unit.slice_elements *= shards->ranks / shards->ranks_per_node;
    view->shards =
        (struct weft_shards){.ranks = shards->ranks_per_node, .n_units = 1, .units = &view->unit};
    return view;
}

/* The slice of all ranks' that this rank counts alone: a part of the slice that its place has on
 * every node. */
static int64_t counted_slice(const struct weft_exec *exec)
{
    const int64_t per_node = exec->options.shards->ranks_per_node;
    return exec->rank % per_node * (exec->ranks / per_node) + exec->rank / per_node;
}

/* Place of a piece of that slice in the node's slice. */
static int64_t place_in_node(const struct weft_exec *exec, int32_t u,
                             const struct weft_piece *piece)
{
    const int64_t slice = exec->options.shards->units[u].slice_elements;
    const int64_t per_node = exec->options.shards->ranks_per_node;
    const int64_t nodes = exec->ranks / per_node, node = exec->rank / per_node;
    return piece->shard_begin + (piece->shard_begin / slice * (nodes - 1) + node) * slice;
}

/* Lists all pieces of unit `at` of these shards for `rank` (-1: all ranks) in order of tensors, in
 * the pool. It is the executor's unit u. */
static enum weft_status list_pieces(struct weft_exec *exec, const struct weft_shards *shards,
                                    int32_t at, int32_t u, int64_t rank,
                                    const struct weft_nn_piece **pieces, int64_t *n_pieces,
                                    struct weft_error *err)
{
    const bool in_node = exec->units[u].in_node && shards == exec->options.shards;
    const struct weft_model *model = exec->options.config->model;
    struct weft_piece piece;
    int64_t n = 0;
    int32_t place = 0;
    struct weft_piece_cursor cursor = {0};
    while (weft_piece_next(shards, model, at, rank, &cursor, &piece))
        n++;
    struct weft_nn_piece *list = weft_pool_array(&exec->pool, (size_t)n, sizeof *list);
    if (list == NULL) return weft_fail_memory(err, "pieces of a unit");
    cursor = (struct weft_piece_cursor){0};
    for (int64_t i = 0; i < n; i++) {
        weft_piece_next(shards, model, at, rank, &cursor, &piece);
        while (shards->units[at].tensors[place] != piece.tensor)
            place++;
        const int64_t held = in_node ? place_in_node(exec, u, &piece) : piece.shard_begin;
        list[i] = piece_of(exec, &exec->units[u], &piece, held);
        list[i].place = place;
    }
    *pieces = list;
    *n_pieces = n;
    return WEFT_OK;
}

/* An hsdp unit: this rank renews all of its node's slice, of which it counts a part. */
static enum weft_status list_of_node(struct weft_exec *exec, int32_t u, struct weft_nn_unit *nn,
                                     struct weft_error *err)
{
    const struct node_view *view = view_of_node(exec, u);
    if (view == NULL) return weft_fail_memory(err, "pieces of a unit");
    return list_pieces(exec, &view->shards, 0, u, exec->rank % view->shards.ranks, &nn->renew,
                       &nn->n_renew, err);
}

/* Lists bytes of the full gradient that belong to no tensor. */
static enum weft_status list_gaps(struct weft_exec *exec, int32_t u, struct weft_error *err)
{
    const struct weft_unit *unit = &exec->options.shards->units[u];
    struct exec_unit *out = &exec->units[u];
    out->gaps = weft_pool_array(&exec->pool, (size_t)unit->n_tensors + 1, sizeof *out->gaps);
    if (out->gaps == NULL) return weft_fail_memory(err, "gaps of a unit");
    int64_t at = 0, size = weft_dtype_bytes(exec_reduce(exec));
    for (int32_t t = 0; t <= unit->n_tensors; t++) {
        int64_t next = t < unit->n_tensors ? unit->offsets[t] : unit->padded_elements;
        if (next > at) out->gaps[out->n_gaps++] = (struct weft_range){at * size, next * size};
        if (t < unit->n_tensors)
            at = next + exec->options.config->model->tensors[unit->tensors[t]].elements;
    }
    return WEFT_OK;
}

/* Finds the buffers for training a unit; false if the program lacks one. */
static bool find_training_buffers(const struct weft_exec *exec, int32_t u, struct exec_unit *out)
{
    struct weft_nn_unit *nn = &out->nn;
    const struct weft_config *config = exec->options.config;
    void *full = buffer_of(exec, WEFT_BUFFER_GRADIENT, u);
    nn->gradient = out->whole ? full : buffer_of(exec, WEFT_BUFFER_REDUCED, u);
    nn->gradient_dtype =
        out->whole ? exec_reduce(exec) : (enum weft_dtype)config->train.precision.accumulate;
    nn->master = buffer_of(exec, WEFT_BUFFER_MASTER, u);
    nn->moment1 = buffer_of(exec, WEFT_BUFFER_MOMENT1, u);
    nn->moment2 = buffer_of(exec, WEFT_BUFFER_MOMENT2, u);
    nn->anchor = buffer_of(exec, WEFT_BUFFER_ANCHOR, u);
    nn->outer = buffer_of(exec, WEFT_BUFFER_OUTER, u);
    nn->norms = buffer_of(exec, WEFT_BUFFER_TENSOR_NORMS, u);
    nn->norms_sum = buffer_of(exec, WEFT_BUFFER_TENSOR_NORMS_SUM, u);
    out->norms_bytes.end = exec->options.shards->units[u].n_tensors * WEFT_TENSOR_NORMS_BYTES;
    int32_t moments = weft_config_moments(config);
    out->states[WEFT_STATE_PARAMETER] = out->on_host || exec_compute(exec) != WEFT_F32;
    out->states[WEFT_STATE_MOMENT1] = moments >= 1;
    out->states[WEFT_STATE_MOMENT2] = moments >= 2;
    out->states[WEFT_STATE_PENDING] = exec->options.program->period.delayed;
    const bool outer = weft_config_outer(config);
    out->states[WEFT_STATE_ANCHOR] = out->states[WEFT_STATE_OUTER] = outer;
    out->pending_bytes.end = exec->options.shards->units[u].padded_elements / exec->ranks *
                             weft_dtype_bytes(nn->gradient_dtype);
    bool agreed = exec->options.program->period.agreed_updates;
    return full != NULL && nn->gradient != NULL &&
           (nn->master != NULL) == (!out->on_host && exec_compute(exec) != WEFT_F32) &&
           (nn->moment1 != NULL) == (!out->on_host && moments >= 1) &&
           (nn->moment2 != NULL) == (!out->on_host && moments >= 2) &&
           (nn->anchor != NULL) == outer && (nn->outer != NULL) == outer &&
           (nn->norms != NULL) == agreed && (nn->norms_sum != NULL) == agreed;
}

static enum weft_status fill_unit(struct weft_exec *exec, int32_t u, struct weft_error *err)
{
    const struct weft_unit *unit = &exec->options.shards->units[u];
    enum weft_policy policy = exec->options.program->ways[u].policy;
    struct exec_unit *out = &exec->units[u];
    struct weft_nn_unit *nn = &out->nn;
    const struct weft_shards *shards = exec->options.shards;
    const int64_t owned = unit->padded_elements / weft_shards_sharers(shards, policy);
    if (weft_policy_is_central(policy) && !weft_comm_has_owners(exec->options.comm))
        return weft_fail(err, WEFT_E_ENVIRONMENT,
                         "this communicator has no reductions to one owner, and unit %s has policy "
                         "%s: plan again without it. zero1 costs less",
                         unit->name, weft_policy_name(policy));
    out->index = u;
    out->trainable = unit->trainable;
    out->location = weft_program_location(exec->options.program, u);
    out->offloaded = out->location != WEFT_LOCATION_DEVICE;
    out->fetches = weft_program_fetches(exec->options.program, u);
    out->on_host = weft_program_updates_on_host(exec->options.program, u);
    out->whole = weft_policy_is_whole(policy);
    out->central = weft_policy_is_central(policy);
    out->in_node = weft_policy_groups[policy].parameters == WEFT_GROUP_NODE;
    out->hybrid = weft_policy_groups[policy].state == WEFT_GROUP_NODE;
    out->resident = !weft_policy_gathers(policy);
    nn->dtype = exec_compute(exec);
    nn->parameters = buffer_of(exec, out->resident ? WEFT_BUFFER_FULL : WEFT_BUFFER_SHARD, u);
    out->parameter_bytes.end =
        unit->padded_elements / weft_shards_holders(shards, policy) * weft_dtype_bytes(nn->dtype);
    out->state_bytes.end = owned * (int64_t)sizeof(float);
    const int64_t counted = out->in_node ? counted_slice(exec) : out->central ? -1 : exec->rank;
    if (!out->central || out->owner == exec->rank)
        WEFT_TRY(list_pieces(exec, shards, u, u, counted, &nn->own, &nn->n_own, err));
    nn->renew = nn->own;
    nn->n_renew = nn->n_own;
    if (out->whole && !out->central)
        WEFT_TRY(list_pieces(exec, shards, u, u, -1, &nn->renew, &nn->n_renew, err));
    if (out->hybrid) WEFT_TRY(list_of_node(exec, u, nn, err));
    bool complete =
        nn->parameters != NULL && (!unit->trainable || find_training_buffers(exec, u, out));
    if (complete) return unit->trainable ? list_gaps(exec, u, err) : WEFT_OK;
    return weft_fail(err, WEFT_E_INTERNAL, "the program lacks a buffer of unit %s under %s",
                     unit->name, weft_policy_name(policy));
}

enum weft_status weft_exec_units_fill(struct weft_exec *exec, struct weft_error *err)
{
    size_t n_units = (size_t)exec->options.shards->n_units;
    exec->units = weft_pool_array(&exec->pool, n_units, sizeof *exec->units);
    if (exec->units == NULL) return weft_fail_memory(err, "units of the executor");
    for (int32_t u = 0; u < exec->options.shards->n_units; u++)
        WEFT_TRY(fill_unit(exec, u, err));
    return WEFT_OK;
}

bool weft_exec_has_location(const struct weft_exec *exec, enum weft_location location)
{
    for (int32_t u = 0; u < exec->options.program->n_units; u++)
        if (weft_program_location(exec->options.program, u) == location) return true;
    return false;
}

bool weft_exec_fetches(const struct weft_exec *exec)
{
    for (int32_t u = 0; u < exec->options.program->n_units; u++)
        if (weft_program_fetches(exec->options.program, u)) return true;
    return false;
}

unsigned char *weft_exec_state_at(const struct weft_nn_unit *unit, enum weft_state state)
{
    switch (state) {
    case WEFT_STATE_PARAMETER:
        return unit->master;
    case WEFT_STATE_MOMENT1:
        return unit->moment1;
    case WEFT_STATE_MOMENT2:
        return unit->moment2;
    case WEFT_STATE_PENDING:
        return unit->gradient;
    case WEFT_STATE_ANCHOR:
        return unit->anchor;
    case WEFT_STATE_OUTER:
        return unit->outer;
    case WEFT_STATE_MEAN2: /* in no unit */
    case WEFT_STATE_COUNT:
        break;
    }
    return NULL;
}
