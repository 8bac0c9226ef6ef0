#include <string.h>

#include "runtime/exec/parts.h"

static void *buffer_of(const struct weft_exec *exec, enum weft_buffer_kind kind, int32_t unit)
{
    int32_t buffer = weft_program_buffer(exec->options.program, kind, unit, 0);
    return buffer < 0 ? NULL : exec->arena + exec->options.program->buffers[buffer].offset;
}

/* All pieces of a unit for `rank` (-1: of everybody), in the pool. */
static enum weft_status list_pieces(struct weft_exec *exec, int32_t u, int64_t rank,
                                    struct weft_piece **pieces, int64_t *n_pieces,
                                    struct weft_error *err)
{
    const struct weft_shards *shards = exec->options.shards;
    const struct weft_model *model = exec->options.config->model;
    struct weft_piece piece;
    int64_t n = 0;
    struct weft_piece_cursor cursor = {0};
    while (weft_piece_next(shards, model, u, rank, &cursor, &piece))
        n++;
    struct weft_piece *list = weft_pool_array(&exec->pool, (size_t)n, sizeof *list);
    if (list == NULL) return weft_fail_memory(err, "pieces of a unit");
    cursor = (struct weft_piece_cursor){0};
    for (int64_t i = 0; i < n; i++)
        weft_piece_next(shards, model, u, rank, &cursor, &list[i]);
    *pieces = list;
    *n_pieces = n;
    return WEFT_OK;
}

/* What of the full gradient belongs to no tensor. */
static enum weft_status list_gaps(struct weft_exec *exec, int32_t u, struct weft_error *err)
{
    const struct weft_unit *unit = &exec->options.shards->units[u];
    struct exec_unit *out = &exec->units[u];
    out->gaps = weft_pool_array(&exec->pool, (size_t)unit->n_tensors + 1, sizeof *out->gaps);
    if (out->gaps == NULL) return weft_fail_memory(err, "gaps of a unit");
    int64_t at = 0;
    for (int32_t t = 0; t <= unit->n_tensors; t++) {
        int64_t next = t < unit->n_tensors ? unit->offsets[t] : unit->padded_elements;
        if (next > at) out->gaps[out->n_gaps++] = (struct exec_gap){at, next - at};
        if (t < unit->n_tensors)
            at = next + exec->options.config->model->tensors[unit->tensors[t]].elements;
    }
    return WEFT_OK;
}

static enum weft_status fill_unit(struct weft_exec *exec, int32_t u, struct weft_error *err)
{
    const struct weft_unit *unit = &exec->options.shards->units[u];
    enum weft_policy policy = exec->options.program->policies[u];
    struct exec_unit *out = &exec->units[u];
    int64_t slices = unit->padded_elements / exec->ranks;
    out->trainable = unit->trainable;
    out->whole = policy == WEFT_POLICY_DP;
    out->resident = policy == WEFT_POLICY_DP || policy == WEFT_POLICY_ZERO1;
    out->parameters = buffer_of(exec, out->resident ? WEFT_BUFFER_FULL : WEFT_BUFFER_SHARD, u);
    out->parameter_elements = out->resident ? unit->padded_elements : slices;
    out->state_elements = out->whole ? unit->padded_elements : slices;
    bool complete = out->parameters != NULL;
    WEFT_TRY(list_pieces(exec, u, exec->rank, &out->own, &out->n_own, err));
    out->updated = out->own;
    out->n_updated = out->n_own;
    if (out->whole) WEFT_TRY(list_pieces(exec, u, -1, &out->updated, &out->n_updated, err));
    if (unit->trainable) {
        unsigned char *full = buffer_of(exec, WEFT_BUFFER_GRADIENT, u);
        out->gradient = out->whole ? full : buffer_of(exec, WEFT_BUFFER_REDUCED, u);
        out->gradient_dtype =
            out->whole ? exec_reduce(exec)
                       : (enum weft_dtype)exec->options.config->train.precision.accumulate;
        out->master = buffer_of(exec, WEFT_BUFFER_MASTER, u);
        out->moment1 = buffer_of(exec, WEFT_BUFFER_MOMENT1, u);
        out->moment2 = buffer_of(exec, WEFT_BUFFER_MOMENT2, u);
        out->norms = buffer_of(exec, WEFT_BUFFER_TENSOR_NORMS, u);
        out->norms_sum = buffer_of(exec, WEFT_BUFFER_TENSOR_NORMS_SUM, u);
        out->norms_words =
            (int64_t)unit->n_tensors * WEFT_TENSOR_NORMS_BYTES / (int64_t)sizeof *out->norms;
        int32_t moments = weft_config_moments(exec->options.config);
        bool agreed = exec->options.program->period.agreed_updates;
        complete = complete && full != NULL && out->gradient != NULL &&
                   (out->master != NULL) == (exec_compute(exec) != WEFT_F32) &&
                   (out->moment1 != NULL) == (moments >= 1) &&
                   (out->moment2 != NULL) == (moments >= 2) && (out->norms != NULL) == agreed &&
                   (out->norms_sum != NULL) == agreed;
        if (complete) WEFT_TRY(list_gaps(exec, u, err));
    }
    if (complete) return WEFT_OK;
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
