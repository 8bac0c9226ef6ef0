/* SPDX-License-Identifier: Apache-2.0 */
#include "shard/shard.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/checked.h"
#include "shard/units.h"
#include "spec/kind.h"

static enum weft_status fail_size(struct weft_error *err, const struct weft_unit *unit)
{
    return weft_fail(err, WEFT_E_DATA,
                     "unit %s: its padded size does not fit into 64 bits: give it fewer parameters "
                     "or use fewer blocks or ranks",
                     unit->name);
}

/* "a&b&c": layers that share a unit and need not be neighbours. */
static const char *join_names(struct weft_pool *pool, const struct weft_model *model,
                              const struct weft_unit *unit)
{
    const char *name = model->layers[unit->layers[0]].name;
    for (int32_t i = 1; i < unit->n_layers && name != NULL; i++)
        name = weft_pool_format(pool, "%s&%s", name, model->layers[unit->layers[i]].name);
    return name;
}

/* A unit is named after its layers. A tied tensor's unit is named after the tensor, because its
 * layers read other units too. */
static enum weft_status name_unit(struct weft_pool *pool, const struct weft_model *model,
                                  struct weft_unit *unit, bool whole, struct weft_error *err)
{
    const bool tied = unit->n_tensors == 1 && unit->n_layers > 1;
    const char *first = model->layers[unit->layers[0]].name;
    const char *last = model->layers[unit->layers[unit->n_layers - 1]].name;
    if (whole && unit->shares) {
        unit->name = join_names(pool, model, unit);
    } else if (tied) {
        unit->name = weft_pool_string(pool, model->tensors[unit->tensors[0]].name);
    } else if (unit->n_layers == 1) {
        unit->name = weft_pool_string(pool, first);
    } else {
        unit->name =
            weft_pool_format(pool, "%s+%s%s", first, unit->n_layers > 2 ? "..+" : "", last);
    }
    return unit->name == NULL ? weft_fail_memory(err, "units") : WEFT_OK;
}

/* Fills tensors and offsets of all units, in order of the model, and counts elements with and
 * without gaps. */
static enum weft_status place_tensors(struct weft_shards *shards, const struct weft_model *model,
                                      int64_t *aligned_elements, struct weft_error *err)
{
    struct weft_pool *pool = &shards->pool;
    int32_t **tensors = calloc((size_t)shards->n_units + 1, sizeof *tensors);
    int64_t **offsets = calloc((size_t)shards->n_units + 1, sizeof *offsets);
    int64_t *tensor_offset = weft_pool_array(pool, (size_t)model->n_tensors, sizeof *tensor_offset);
    enum weft_status status = WEFT_OK;
    if (tensors == NULL || offsets == NULL || tensor_offset == NULL) goto no_memory;
    for (int32_t t = 0; t < model->n_tensors; t++)
        shards->units[shards->tensor_unit[t]].n_tensors++;
    for (int32_t u = 0; u < shards->n_units; u++) {
        struct weft_unit *unit = &shards->units[u];
        unit->tensors = tensors[u] =
            weft_pool_array(pool, (size_t)unit->n_tensors, sizeof *tensors[u]);
        unit->offsets = offsets[u] =
            weft_pool_array(pool, (size_t)unit->n_tensors, sizeof *offsets[u]);
        if (tensors[u] == NULL || offsets[u] == NULL) goto no_memory;
        unit->n_tensors = 0;
    }
    for (int32_t t = 0; t < model->n_tensors; t++) {
        int32_t u = shards->tensor_unit[t];
        struct weft_unit *unit = &shards->units[u];
        const struct weft_tensor *tensor = &model->tensors[t];
        if (!weft_units_append(aligned_elements[u], tensor->elements, &tensor_offset[t],
                               &aligned_elements[u])) {
            status = weft_fail(err, WEFT_E_DATA,
                               "tensor %s: the parameters of its unit are too many to count in 64 "
                               "bits: make the layer smaller",
                               tensor->name);
            goto done;
        }
        tensors[u][unit->n_tensors] = t;
        offsets[u][unit->n_tensors++] = tensor_offset[t];
        unit->elements += tensor->elements;
        unit->trainable |= tensor->trainable;
    }
    shards->tensor_offset = tensor_offset;
    goto done;
no_memory:
    status = weft_fail_memory(err, "units");
done:
    free(tensors);
    free(offsets);
    return status;
}

/* Layers of all units, unit after unit. The first pass counts, the second fills. */
struct layer_lists {
    int32_t *layers;
    bool *reads;
    int32_t *seen;       /* by unit: 1 + the last layer found to read it */
    int32_t *first;      /* by unit: its first index in layers and reads */
    bool reads_all;      /* tables too */
    bool needs_gradient; /* a layer's backward reads nothing if no gradient comes back to it: it and
                            all layers before it are frozen */
};

/* A layer reads a unit once, with any number of its tensors. */
static void list_layers(struct weft_shards *shards, const struct weft_model *model,
                        struct layer_lists *lists, bool fill)
{
    for (int32_t u = 0; u < shards->n_units; u++) {
        shards->units[u].n_layers = 0;
        lists->seen[u] = 0;
    }
    bool trains = !lists->needs_gradient;
    for (int32_t l = 0; l < model->n_layers; l++) {
        const struct weft_layer *layer = &model->layers[l];
        for (int32_t i = 0; i < layer->n_tensors; i++)
            trains |= model->tensors[layer->tensors[i]].trainable;
        for (int32_t i = 0; i < layer->n_tensors; i++) {
            int32_t u = shards->tensor_unit[layer->tensors[i]];
            if (lists->seen[u] == l + 1) continue;
            lists->seen[u] = l + 1;
            int32_t at = shards->units[u].n_layers++;
            if (!fill) continue;
            lists->layers[lists->first[u] + at] = l;
            /* A table scatters the gradient of its output and passes no gradient further back. */
            const bool tables =
                layer->kind->input == WEFT_READS_TOKENS && !layer->kind->reads_tensors;
            lists->reads[lists->first[u] + at] =
                trains && (lists->reads_all || (!tables && !layer->is_table));
        }
    }
}

/* Marks the units with a tensor that several layers read. */
static enum weft_status find_shared(struct weft_shards *shards, const struct weft_model *model,
                                    struct weft_error *err)
{
    int32_t *readers =
        weft_pool_array(&shards->pool, (size_t)model->n_tensors + 1, sizeof *readers);
    if (readers == NULL) return weft_fail_memory(err, "units");
    for (int32_t l = 0; l < model->n_layers; l++)
        for (int32_t i = 0; i < model->layers[l].n_tensors; i++)
            readers[model->layers[l].tensors[i]]++;
    for (int32_t t = 0; t < model->n_tensors; t++)
        if (readers[t] > 1) shards->units[shards->tensor_unit[t]].shares = true;
    return WEFT_OK;
}

static enum weft_status find_layers(struct weft_shards *shards, const struct weft_model *model,
                                    const struct weft_block_rule *rule, struct weft_error *err)
{
    struct weft_pool *pool = &shards->pool;
    size_t n_units = (size_t)shards->n_units, n = 0;
    struct layer_lists lists = {
        .seen = weft_pool_array(pool, n_units, sizeof *lists.seen),
        .first = weft_pool_array(pool, n_units, sizeof *lists.first),
        .reads_all = rule->reads_all,
        .needs_gradient = rule->whole_layers,
    };
    if (lists.seen == NULL || lists.first == NULL) return weft_fail_memory(err, "units");
    list_layers(shards, model, &lists, false);
    for (size_t u = 0; u < n_units; u++) {
        lists.first[u] = (int32_t)n;
        n += (size_t)shards->units[u].n_layers;
    }
    lists.layers = weft_pool_array(pool, n, sizeof *lists.layers);
    lists.reads = weft_pool_array(pool, n, sizeof *lists.reads);
    if (lists.layers == NULL || lists.reads == NULL) return weft_fail_memory(err, "units");
    list_layers(shards, model, &lists, true);
    WEFT_TRY(find_shared(shards, model, err));
    for (size_t u = 0; u < n_units; u++) {
        struct weft_unit *unit = &shards->units[u];
        unit->layers = lists.layers + lists.first[u];
        unit->reads_in_backward = lists.reads + lists.first[u];
        WEFT_TRY(name_unit(pool, model, unit, rule->whole_layers, err));
    }
    return WEFT_OK;
}

/* Elements of a unit with the rows of each tensor rounded up to a multiple of the ranks, or those
 * given if they are more. *trained: elements of its trained tensors, rounded up like its slices. */
static enum weft_status pad_rows(const struct weft_shards *shards, const struct weft_model *model,
                                 const struct weft_unit *unit, int64_t *elements, int64_t *trained,
                                 struct weft_error *err)
{
    int64_t sum = 0, frozen = 0, align;
    for (int32_t i = 0; i < unit->n_tensors; i++) {
        const struct weft_tensor *tensor = &model->tensors[unit->tensors[i]];
        int64_t rows, padded;
        if (!weft_checked_round_up(tensor->dims[0], shards->ranks, &rows) ||
            !weft_checked_mul(rows, tensor->elements / tensor->dims[0], &padded) ||
            !weft_checked_add(sum, padded, &sum))
            return fail_size(err, unit);
        if (!tensor->trainable) frozen += padded;
    }
    if (!weft_checked_mul(shards->ranks, WEFT_SLICE_ALIGN_ELEMENTS, &align) ||
        !weft_checked_round_up(sum - frozen, align, trained))
        return fail_size(err, unit);
    if (frozen == 0) *trained = INT64_MAX;
    if (sum > *elements) *elements = sum;
    return WEFT_OK;
}

static enum weft_status cut_unit(const struct weft_shards *shards,
                                 const struct weft_block_rule *rule, int64_t aligned_elements,
                                 struct weft_unit *unit, struct weft_error *err)
{
    int64_t n_blocks = rule->whole_layers ? 1 : rule->blocks;
    if (n_blocks <= 0) {
        int64_t bytes, least_block;
        if (!weft_checked_mul(aligned_elements, rule->element_bytes, &bytes) ||
            !weft_checked_mul(shards->ranks, WEFT_SLICE_ALIGN_ELEMENTS, &least_block)) {
            return fail_size(err, unit);
        }
        n_blocks = bytes / rule->block_bytes;
        /* Limit blocks to the number of smallest slices: more would only be padding. */
        if (n_blocks > aligned_elements / least_block) n_blocks = aligned_elements / least_block;
        if (n_blocks < 1) n_blocks = 1;
    }
    int64_t parts, padded, slice;
    if (n_blocks > INT32_MAX || !weft_checked_mul(n_blocks, shards->ranks, &parts) ||
        !weft_checked_round_up(aligned_elements / parts + (aligned_elements % parts != 0),
                               WEFT_SLICE_ALIGN_ELEMENTS, &slice) ||
        !weft_checked_mul(parts, slice, &padded)) {
        return fail_size(err, unit);
    }
    unit->n_blocks = (int32_t)n_blocks;
    unit->slice_elements = slice;
    unit->padded_elements = padded;
    return WEFT_OK;
}

static enum weft_status fill_shards(struct weft_shards *shards, const struct weft_model *model,
                                    const struct weft_block_rule *rule, struct weft_error *err)
{
    struct weft_grouping grouping;
    WEFT_TRY(weft_units_group(&shards->pool, model, rule, &grouping, err));
    shards->n_units = grouping.n_units;
    shards->tensor_unit = grouping.tensor_unit;
    size_t n_units = (size_t)grouping.n_units;
    shards->units = weft_pool_array(&shards->pool, n_units, sizeof *shards->units);
    int64_t *aligned_elements = weft_pool_array(&shards->pool, n_units, sizeof *aligned_elements);
    if (shards->units == NULL || aligned_elements == NULL) return weft_fail_memory(err, "units");
    WEFT_TRY(place_tensors(shards, model, aligned_elements, err));
    WEFT_TRY(find_layers(shards, model, rule, err));
    for (int32_t u = 0; u < shards->n_units; u++) {
        struct weft_unit *unit = &shards->units[u];
        int64_t trained = unit->trainable ? INT64_MAX : 0;
        if (rule->whole_layers)
            WEFT_TRY(pad_rows(shards, model, unit, &aligned_elements[u], &trained, err));
        WEFT_TRY(cut_unit(shards, rule, aligned_elements[u], unit, err));
        unit->trained_elements = trained < unit->padded_elements ? trained : unit->padded_elements;
    }
    return WEFT_OK;
}

enum weft_status weft_shards_create(const struct weft_model *model, int64_t ranks,
                                    const struct weft_block_rule *rule, struct weft_shards **out,
                                    struct weft_error *err)
{
    if (ranks < 1) {
        return weft_fail(err, WEFT_E_DATA, "ranks is %" PRId64 ": there must be at least 1", ranks);
    }
    if (rule->blocks <= 0 && (rule->block_bytes <= 0 || rule->element_bytes <= 0)) {
        return weft_fail(err, WEFT_E_DATA,
                         "block_bytes is %" PRId64 ": give a size above 0, or a number of blocks",
                         rule->block_bytes);
    }
    struct weft_shards *shards = calloc(1, sizeof *shards);
    if (shards == NULL) return weft_fail_memory(err, "units");
    shards->ranks = ranks;
    shards->ranks_per_node = ranks;
    enum weft_status status = fill_shards(shards, model, rule, err);
    if (status != WEFT_OK) {
        weft_shards_destroy(shards);
        return status;
    }
    *out = shards;
    return WEFT_OK;
}

void weft_shards_split(struct weft_shards *shards)
{
    const int64_t nodes = shards->ranks / shards->ranks_per_node;
    for (int32_t u = 0; u < shards->n_units; u++)
        shards->units[u].slice_elements *= nodes;
    shards->ranks = shards->ranks_per_node;
}

void weft_shards_destroy(struct weft_shards *shards)
{
    if (shards == NULL) return;
    weft_pool_finish(&shards->pool);
    free(shards);
}
