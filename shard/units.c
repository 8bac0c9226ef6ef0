/* SPDX-License-Identifier: Apache-2.0 */
#include "shard/units.h"

#include "base/checked.h"

/* Tensors of neighbouring layers that are being put into one unit. */
struct run {
    int32_t open;     /* the unit that still grows, or -1 */
    int32_t closed;   /* the full unit before it, which a small rest may join, or -1 */
    int64_t elements; /* elements of the open unit */
    bool trainable;   /* of both units */
};

struct grouper {
    const struct weft_model *model;
    int64_t fuse_below_bytes; /* 0: never fuse */
    int64_t element_bytes;
    int32_t *readers; /* by tensor: layers that read it */
    int32_t *unit;    /* by tensor */
    int32_t n_units;  /* includes units that joined another and are empty */
    struct run run;
};

bool weft_units_append(int64_t elements, int64_t more, int64_t *begin, int64_t *end)
{
    int64_t start;
    if (!weft_checked_round_up(elements, WEFT_TENSOR_ALIGN_ELEMENTS, &start)) return false;
    if (!weft_checked_add(start, more, end)) return false;
    *begin = start;
    return true;
}

static bool is_small(const struct grouper *g, int64_t elements)
{
    int64_t bytes;
    return weft_checked_mul(elements, g->element_bytes, &bytes) && bytes < g->fuse_below_bytes;
}

/* Ends the run. A rest that is still small joins its neighbour, because its messages would be too
 * short. */
static void end_run(struct grouper *g)
{
    struct run *run = &g->run;
    if (run->open >= 0 && run->closed >= 0 && is_small(g, run->elements)) {
        for (int32_t t = 0; t < g->model->n_tensors; t++) {
            if (g->unit[t] == run->open) g->unit[t] = run->closed;
        }
    }
    run->open = run->closed = -1;
    run->elements = 0;
}

/* Puts the tensors that only this layer reads into the open unit, or into a new one. */
static enum weft_status add_own(struct grouper *g, const struct weft_layer *layer,
                                struct weft_error *err)
{
    struct run *run = &g->run;
    for (int32_t i = 0; i < layer->n_tensors; i++) {
        int32_t t = layer->tensors[i];
        const struct weft_tensor *tensor = &g->model->tensors[t];
        if (g->readers[t] > 1) continue;
        bool neighbours = run->open >= 0 || run->closed >= 0;
        if (neighbours && tensor->trainable != run->trainable) end_run(g);
        if (run->open < 0) {
            run->open = g->n_units++;
            run->elements = 0;
            run->trainable = tensor->trainable;
        }
        g->unit[t] = run->open;
        int64_t begin;
        if (!weft_units_append(run->elements, tensor->elements, &begin, &run->elements)) {
            return weft_fail(err, WEFT_E_DATA,
                             "layer %s: the parameters of its unit are too many to count in 64 "
                             "bits: make the layer smaller",
                             layer->name);
        }
    }
    if (run->open >= 0 && !is_small(g, run->elements)) {
        run->closed = run->open;
        run->open = -1;
    }
    return WEFT_OK;
}

static void add_shared(struct grouper *g, const struct weft_layer *layer)
{
    for (int32_t i = 0; i < layer->n_tensors; i++) {
        int32_t t = layer->tensors[i];
        if (g->readers[t] > 1 && g->unit[t] < 0) g->unit[t] = g->n_units++;
    }
}

/* Numbers the units that have tensors 0, 1, ... in the order in which they were opened, the order
 * of first use. */
static enum weft_status renumber_units(struct weft_pool *pool, struct grouper *g,
                                       struct weft_error *err)
{
    int32_t *number = weft_pool_array(pool, (size_t)g->n_units, sizeof *number);
    if (number == NULL) return weft_fail_memory(err, "units");
    for (int32_t t = 0; t < g->model->n_tensors; t++)
        number[g->unit[t]] = 1;
    int32_t n = 0;
    for (int32_t u = 0; u < g->n_units; u++) {
        bool used = number[u] != 0;
        number[u] = n;
        n += used;
    }
    for (int32_t t = 0; t < g->model->n_tensors; t++)
        g->unit[t] = number[g->unit[t]];
    g->n_units = n;
    return WEFT_OK;
}

/* Moves all tensors of a unit into another. */
static void join_units(struct grouper *g, int32_t from, int32_t to)
{
    for (int32_t t = 0; t < g->model->n_tensors; t++)
        if (g->unit[t] == from) g->unit[t] = to;
}

/* Gives all tensors of a layer one unit. Layers that share a tensor share the unit of the first, as
 * do layers that the caller joins. */
static void group_layers(struct grouper *g, const int32_t *joins)
{
    for (int32_t l = 0; l < g->model->n_layers; l++) {
        const struct weft_layer *layer = &g->model->layers[l];
        int32_t unit = g->n_units++;
        if (joins != NULL) unit = joins[l]; /* layer l opens unit l */
        for (int32_t i = 0; i < layer->n_tensors; i++) {
            const int32_t at = g->unit[layer->tensors[i]];
            if (at >= 0 && at < unit) unit = at;
        }
        for (int32_t i = 0; i < layer->n_tensors; i++) {
            const int32_t at = g->unit[layer->tensors[i]];
            if (at >= 0 && at != unit) join_units(g, at, unit);
            g->unit[layer->tensors[i]] = unit;
        }
    }
}

/* Refuses a unit with layers of which some are frozen. A layer may have frozen tensors. */
static enum weft_status check_layers(struct weft_pool *pool, const struct grouper *g,
                                     struct weft_error *err)
{
    const struct weft_tensor **firsts = weft_pool_array(pool, (size_t)g->n_units, sizeof *firsts);
    if (firsts == NULL) return weft_fail_memory(err, "units");
    for (int32_t t = 0; t < g->model->n_tensors; t++) {
        const struct weft_tensor *tensor = &g->model->tensors[t];
        const struct weft_tensor **first = &firsts[g->unit[t]];
        if (*first == NULL) *first = tensor;
        if (g->model->layers[(*first)->layer].frozen != g->model->layers[tensor->layer].frozen)
            return weft_fail(err, WEFT_E_DATA,
                             "%s and %s are in one unit, because their layers share a tensor, and "
                             "one of them is frozen: freeze both layers, or none",
                             (*first)->name, tensor->name);
    }
    return WEFT_OK;
}

enum weft_status weft_units_group(struct weft_pool *pool, const struct weft_model *model,
                                  const struct weft_block_rule *rule, struct weft_grouping *out,
                                  struct weft_error *err)
{
    struct grouper g = {
        .model = model,
        .fuse_below_bytes = rule->fuse && rule->blocks <= 0 ? rule->block_bytes : 0,
        .element_bytes = rule->element_bytes,
        .run = {.open = -1, .closed = -1},
    };
    g.readers = weft_pool_array(pool, (size_t)model->n_tensors, sizeof *g.readers);
    g.unit = weft_pool_array(pool, (size_t)model->n_tensors, sizeof *g.unit);
    if (g.readers == NULL || g.unit == NULL) return weft_fail_memory(err, "units");
    for (int32_t t = 0; t < model->n_tensors; t++)
        g.unit[t] = -1;
    for (int32_t l = 0; l < model->n_layers; l++) {
        const struct weft_layer *layer = &model->layers[l];
        for (int32_t i = 0; i < layer->n_tensors; i++)
            g.readers[layer->tensors[i]]++;
    }
    for (int32_t l = 0; l < model->n_layers && !rule->whole_layers; l++) {
        add_shared(&g, &model->layers[l]);
        WEFT_TRY(add_own(&g, &model->layers[l], err));
    }
    end_run(&g);
    if (rule->whole_layers) group_layers(&g, rule->joins);
    WEFT_TRY(renumber_units(pool, &g, err));
    if (rule->whole_layers) WEFT_TRY(check_layers(pool, &g, err));
    *out = (struct weft_grouping){.n_units = g.n_units, .tensor_unit = g.unit};
    return WEFT_OK;
}
