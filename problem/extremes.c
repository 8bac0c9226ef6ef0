/* SPDX-License-Identifier: Apache-2.0 */
#include "problem/extremes.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/units.h"
#include "spec/kind.h"

enum { TEXT_BYTES = 400 };

/* A sum, and its largest part. */
struct extreme {
    double sum, most;
    char text[TEXT_BYTES]; /* of the largest part: key and cure */
};

/* Adds a part. True if it is the largest so far, and so the one to describe. */
static bool takes_lead(struct extreme *extreme, double value)
{
    extreme->sum += value;
    if (value <= extreme->most) return false;
    extreme->most = value;
    return true;
}

static bool is_out_of_range(const struct extreme *extreme)
{
    return extreme->sum > (double)WEFT_PROBLEM_MOST;
}

/* The layer's own key with the largest value, as "vocab 2147483647"; "" without one. */
static void name_largest_key(const struct weft_layer *layer, char out[TEXT_BYTES])
{
    double most = 0;
    out[0] = '\0';
    for (size_t i = 0; i < layer->kind->n_keys; i++) {
        const struct weft_field *key = &layer->kind->keys[i];
        const void *at = (const char *)layer + key->offset;
        double value = 0;
        if (key->kind == WEFT_FIELD_INTEGER || key->kind == WEFT_FIELD_BYTES)
            value = (double)*(const int64_t *)at;
        else if (key->kind == WEFT_FIELD_COUNT_UNIT)
            value = *(const double *)at;
        if (value <= most) continue;
        most = value;
        snprintf(out, TEXT_BYTES, "%s %.16g", key->name, value);
    }
}

/* Names the keys that determine a layer's size. */
static void name_sizes(const struct weft_config *config, const struct weft_layer *layer,
                       char out[TEXT_BYTES])
{
    char largest[TEXT_BYTES];
    name_largest_key(layer, largest);
    snprintf(out, TEXT_BYTES,
             "layer %.64s (%s): lower its %.80s, train.micro_batch %" PRId64
             " or train.seq_len %" PRId64,
             layer->name, weft_layer_type_of(layer), largest, config->train.micro_batch,
             config->train.seq_len);
}

static double peak_of(const struct weft_config *config)
{
    const struct weft_device_spec *device = &config->cluster.device;
    switch ((enum weft_dtype)config->train.precision.compute) {
    case WEFT_BF16:
        return device->flops.bf16;
    case WEFT_F16:
        return device->flops.f16;
    default:
        return device->flops.f32;
    }
}

/* Describes a time of the analytic profile: it comes from flops or from moved bytes. */
static void describe_layer(const struct weft_config *config, const struct weft_layer *layer,
                           bool forward, char out[TEXT_BYTES])
{
    const struct weft_batch batch = weft_config_batch(config);
    const struct weft_device_spec *device = &config->cluster.device;
    struct weft_layer_work work = {0};
    char sizes[TEXT_BYTES], figure[160] = "";
    const double peak = peak_of(config) * device->efficiency;
    name_sizes(config, layer, sizes);
    if (weft_layer_work(layer, &batch, &work, NULL) == WEFT_OK && peak > 0 &&
        device->memory_bytes_per_s > 0) {
        const double flops = forward ? work.forward_flops : work.backward_flops;
        const double moved = forward ? work.forward_moved_bytes : work.backward_moved_bytes;
        if (flops / peak >= moved / device->memory_bytes_per_s)
            snprintf(figure, sizeof figure, "; or raise cluster.device.flops.%s, %.3g",
                     weft_dtype_name((enum weft_dtype)config->train.precision.compute),
                     peak_of(config));
        else
            snprintf(figure, sizeof figure, "; or raise cluster.device.memory_bandwidth, %.3g B/s",
                     device->memory_bytes_per_s);
    }
    snprintf(out, TEXT_BYTES, "the %s of %.250s%s", forward ? "forward" : "backward", sizes,
             figure);
}

/* A block on a link takes alpha + bytes / bandwidth. */
static void describe_link(const char *key, const struct weft_link *link, double bytes,
                          const char *unit, char out[TEXT_BYTES])
{
    const bool alpha =
        link->bytes_per_s > 0 && (double)link->alpha_ns * 1e-9 > bytes / link->bytes_per_s;
    if (alpha)
        snprintf(out, TEXT_BYTES,
                 "what unit %.64s moves: lower %s.alpha, %.3g s for each block, or make blocks "
                 "larger (plan.block_size)",
                 unit, key, (double)link->alpha_ns * 1e-9);
    else
        snprintf(out, TEXT_BYTES, "what unit %.64s moves: raise %s.bandwidth, %.3g B/s", unit, key,
                 link->bytes_per_s);
}

static void describe_update(const struct weft_config *config, char out[TEXT_BYTES])
{
    snprintf(out, TEXT_BYTES, "the updates: raise cluster.device.memory_bandwidth, %.3g B/s",
             config->cluster.device.memory_bytes_per_s);
}

/* The time of a gradient's copy down includes its part of the norm. */
static bool is_mostly_norm(const struct weft_link *down, const struct weft_problem_item *it)
{
    const double copy_ns =
        (double)down->alpha_ns + 1e9 * (double)it->item.block_bytes / (down->bytes_per_s + 1e-9);
    return it->item.kind == WEFT_GRADIENT_DOWN && copy_ns < 0.5 * (double)it->block_ns;
}

/* The config's link of a lane between tiers. */
static const struct {
    const char *key;
    size_t offset;
} links[WEFT_LANE_KIND_COUNT] = {
    [WEFT_LANE_KIND_DOWN] = {"cluster.host.down", offsetof(struct weft_cluster, host.down)},
    [WEFT_LANE_KIND_UP] = {"cluster.host.up", offsetof(struct weft_cluster, host.up)},
    [WEFT_LANE_KIND_READ] = {"cluster.disk.read", offsetof(struct weft_cluster, disk.read)},
    [WEFT_LANE_KIND_WRITE] = {"cluster.disk.write", offsetof(struct weft_cluster, disk.write)},
};

static void describe_move(const struct weft_config *config, const struct weft_problem *problem,
                          const struct weft_problem_item *it, char out[TEXT_BYTES])
{
    const struct weft_cluster *cluster = &config->cluster;
    const enum weft_lane_kind kind = problem->lanes[it->lane].kind;
    const char *unit = problem->decisions[it->item.decision].name;
    const void *link = (const char *)cluster + links[kind].offset;
    const double bytes = (double)it->item.block_bytes;
    const bool across = cluster->ranks > cluster->ranks_per_node &&
                        (cluster->ranks_per_node == 1 ||
                         cluster->link.inter.bytes_per_s < cluster->link.intra.bytes_per_s);
    if (kind == WEFT_LANE_KIND_HOST)
        snprintf(out, TEXT_BYTES, "the update of unit %.64s: raise cluster.host.update, %.3g B/s",
                 unit, cluster->host.update_bytes_per_s);
    else if (kind == WEFT_LANE_KIND_DOWN && is_mostly_norm(&cluster->host.down, it))
        describe_update(config, out);
    else if (links[kind].key != NULL)
        describe_link(links[kind].key, link, bytes, unit, out);
    else if (across)
        describe_link("cluster.link.inter", &cluster->link.inter, bytes, unit, out);
    else
        describe_link("cluster.link.intra", &cluster->link.intra, bytes, unit, out);
}

static void sum_slots(const struct weft_config *config, const struct weft_problem *problem,
                      struct extreme *ns)
{
    for (int32_t s = 0; s < problem->n_slots; s++) {
        const struct weft_slot slot = problem->slots[s];
        const bool forward = slot.kind == WEFT_SLOT_FORWARD;
        if (!takes_lead(ns, (double)problem->slot_ns[s])) continue;
        if (forward || slot.kind == WEFT_SLOT_BACKWARD)
            describe_layer(config, &config->model->layers[slot.index], forward, ns->text);
        else
            describe_update(config, ns->text);
    }
    for (int32_t d = 0; d < problem->n_decisions; d++)
        for (int32_t k = 0; k < problem->decisions[d].n_strategies; k++)
            for (int32_t i = 0; i < problem->decisions[d].strategies[k].n_times; i++)
                if (takes_lead(ns, (double)problem->decisions[d].strategies[k].times[i].ns))
                    describe_update(config, ns->text);
}

static void sum_items(const struct weft_config *config, const struct weft_problem *problem,
                      struct extreme *ns, struct extreme *blocks)
{
    for (int32_t i = 0; i < problem->n_items; i++) {
        const struct weft_problem_item *it = &problem->items[i];
        const double n = it->item.n_blocks;
        if (takes_lead(ns, n * (double)it->block_ns)) describe_move(config, problem, it, ns->text);
        if (takes_lead(blocks, n))
            snprintf(blocks->text, TEXT_BYTES, "unit %.64s",
                     problem->decisions[it->item.decision].name);
    }
}

/* Bytes of all items of each unit. The caller frees the array; NULL without memory. */
static double *bytes_of_items(const struct weft_problem *problem, int32_t n_units)
{
    double *held = calloc((size_t)n_units + 1, sizeof *held);
    for (int32_t i = 0; held != NULL && i < problem->n_items; i++) {
        const struct weft_item *item = &problem->items[i].item;
        const int64_t each =
            item->stair_bytes > item->block_bytes ? item->stair_bytes : item->block_bytes;
        if (item->decision < n_units) held[item->decision] += (double)item->n_blocks * (double)each;
    }
    return held;
}

/* Sums bytes of layers and units, once for each strategy that holds them; `of_items` is by unit. */
static void sum_bytes(const struct weft_config *config, const struct weft_problem *problem,
                      const struct weft_shards *shards, const double *of_items,
                      struct extreme *bytes)
{
    const struct weft_batch batch = weft_config_batch(config);
    for (int32_t i = 0; i < problem->n_common; i++) {
        const struct weft_hold *hold = &problem->common[i];
        if (hold->category == WEFT_CATEGORY_BASE && takes_lead(bytes, (double)hold->bytes))
            snprintf(bytes->text, TEXT_BYTES, "the base: lower cluster.base");
    }
    for (int32_t l = 0; l < config->model->n_layers; l++) {
        const struct weft_layer *layer = &config->model->layers[l];
        struct weft_layer_work work = {0};
        if (weft_layer_work(layer, &batch, &work, NULL) != WEFT_OK) continue;
        const double held = 2 * (double)work.output_bytes + (double)work.saved_bytes +
                            (double)work.forward_temporary_bytes +
                            (double)work.backward_temporary_bytes;
        if (takes_lead(bytes, held * problem->period.n_micro))
            name_sizes(config, layer, bytes->text);
    }
    for (int32_t u = 0; u < shards->n_units; u++) {
        const struct weft_problem_decision *of = &problem->decisions[u];
        double held = of_items[u];
        for (int32_t k = 0; k < of->n_strategies; k++)
            for (int32_t i = 0; i < of->strategies[k].n_holds; i++)
                held += (double)of->strategies[k].holds[i].bytes;
        if (!takes_lead(bytes, held)) continue;
        const struct weft_unit *unit = &shards->units[u];
        char largest[TEXT_BYTES] = "parameters";
        if (unit->n_layers > 0) name_largest_key(&config->model->layers[unit->layers[0]], largest);
        snprintf(bytes->text, TEXT_BYTES,
                 "unit %.64s of %" PRId64 " parameters, %" PRId64
                 " with those that fill up %d blocks of %" PRId64
                 " ranks: lower its layer's %.80s, plan.blocks or cluster.ranks",
                 unit->name, unit->elements, unit->padded_elements, unit->n_blocks, shards->ranks,
                 largest);
    }
}

enum weft_status weft_extremes_check(const struct weft_config *config,
                                     const struct weft_problem *problem,
                                     const struct weft_shards *shards, struct weft_error *err)
{
    const char *where = config->source == NULL ? "config" : config->source;
    struct extreme ns = {0}, bytes = {0}, blocks = {0};
    char most[WEFT_UNITS_TEXT_BYTES];
    sum_slots(config, problem, &ns);
    sum_items(config, problem, &ns, &blocks);
    double *of_items = bytes_of_items(problem, shards->n_units);
    if (of_items == NULL) return weft_fail_memory(err, "a check of sizes");
    sum_bytes(config, problem, shards, of_items, &bytes);
    free(of_items);
    if (takes_lead(&ns, (double)problem->agree_ns * (problem->n_decisions + 1.0)))
        describe_link("cluster.link.intra", &config->cluster.link.intra, 0, "agreement of ranks",
                      ns.text);
    /* Check bytes first, since times follow from bytes. */
    if (is_out_of_range(&bytes))
        return weft_fail(err, WEFT_E_DATA,
                         "%s: what a rank holds adds up to more than %s over all policies. The "
                         "most is %s",
                         where, weft_units_show_bytes(WEFT_PROBLEM_MOST, most), bytes.text);
    if (blocks.sum > WEFT_PROBLEM_MOST_BLOCKS)
        return weft_fail(err, WEFT_E_DATA,
                         "%s: a step has %.0f blocks; the most is %d: make blocks larger "
                         "(plan.block_size) or fewer (plan.blocks %" PRId64 "). The most are of %s",
                         where, blocks.sum, WEFT_PROBLEM_MOST_BLOCKS, config->plan.blocks,
                         blocks.text);
    if (is_out_of_range(&ns))
        return weft_fail(err, WEFT_E_DATA,
                         "%s: the times of a step add up to more than 2^53 ns (104 days). The "
                         "longest is %s%s%s",
                         where, ns.text, config->cluster.profile ? ", or the figure in " : "",
                         config->cluster.profile ? config->cluster.profile : "");
    return WEFT_OK;
}
