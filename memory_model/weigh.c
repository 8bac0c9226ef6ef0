/* SPDX-License-Identifier: Apache-2.0 */
#include "memory_model/weigh.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "memory_model/weigh_parts.h"
#include "spec/target.h"

const struct weft_target *weft_weigh_target(const struct weft_weigher *w)
{
    return w->options->target != NULL ? w->options->target : &weft_targets[WEFT_FOR_WEFT];
}

int weft_weigh_state_locations(const struct weft_weigh_options *options)
{
    int locations = 0;
    for (int keep = 0; keep < WEFT_KEEP_COUNT; keep++)
        if ((options->state_keeps >> keep & 1) != 0)
            locations |= 1 << weft_keep_location((enum weft_keep)keep);
    return locations;
}

int weft_weigh_moved_locations(const struct weft_weigh_options *options)
{
    return weft_weigh_state_locations(options) | options->saved_locations |
           options->input_locations | options->parameter_locations;
}

int weft_weigh_locations(const struct weft_weigh_options *options)
{
    return weft_weigh_moved_locations(options) |
           (options->kept_bytes > 0 ? 1 << WEFT_LOCATION_HOST : 0);
}

int32_t weft_weigh_tier(const struct weft_weigh_options *options, enum weft_location location)
{
    const int locations = weft_weigh_locations(options);
    int32_t tier = 0;
    for (int k = WEFT_LOCATION_DEVICE; k < (int)location; k++)
        tier += k == WEFT_LOCATION_DEVICE || (locations >> k & 1) != 0;
    return tier;
}

int32_t weft_weigh_staging_tier(const struct weft_weigh_options *options)
{
    const int locations = weft_weigh_moved_locations(options);
    const bool host = (locations & 1 << WEFT_LOCATION_HOST) != 0;
    return host ? weft_weigh_tier(options, WEFT_LOCATION_HOST) : 0;
}

/* Buffers of a unit's state: moments, and a master unless it computes in f32. */
int32_t weft_weigh_count_states(const struct weft_weigh_options *options)
{
    return options->n_moments + (options->batch.compute == WEFT_F32 ? 0 : 1);
}

int64_t weft_weigh_record_bytes(const struct weft_weigh_options *options,
                                const struct weft_model *model)
{
    return weft_record_bytes(model->n_tensors, options->means);
}

enum { USUAL_BLOCKS = 8 }; /* of a copy; more gain little */

int64_t weft_weigh_update_bytes(const struct weft_weigh_options *options)
{
    const enum weft_dtype compute = options->batch.compute;
    /* Master and moments are read and written, the gradient is read, rounded parameters are
     * written. */
    return 2 * (options->n_moments + 1) * weft_dtype_bytes(WEFT_F32) +
           weft_dtype_bytes(options->accumulate) +
           (compute == WEFT_F32 ? 0 : weft_dtype_bytes(compute));
}

/* The equal blocks of `bytes` that are large enough, and whole in the arena in each of n_buffers
 * buffers: the most up to USUAL_BLOCKS, otherwise the fewest above. */
static int32_t cut_copy(const struct weft_weigh_options *options, int64_t bytes, int32_t n_buffers)
{
    const int64_t parts = bytes / WEFT_ARENA_ALIGN_BYTES;
    if (options->copy_block_bytes <= 0 || n_buffers == 0) return 1;
    const int64_t most = bytes * n_buffers / options->copy_block_bytes;
    for (int64_t n = most < USUAL_BLOCKS ? most : USUAL_BLOCKS; n > 1; n--)
        if (parts % n == 0) return (int32_t)n;
    for (int64_t n = USUAL_BLOCKS + 1; n <= most && n <= WEFT_MOST_COPY_BLOCKS; n++)
        if (parts % n == 0) return (int32_t)n;
    return 1;
}

int32_t weft_weigh_state_blocks(const struct weft_weigh_options *options, int64_t elements)
{
    return cut_copy(options, elements * weft_dtype_bytes(WEFT_F32),
                    weft_weigh_count_states(options));
}

int32_t weft_weigh_saved_blocks(const struct weft_weigh_options *options, int64_t saved_bytes)
{
    return cut_copy(options, weft_arena_round(saved_bytes), 1);
}

struct weft_ring weft_weigh_ring(const struct weft_weigh_options *options,
                                 const struct weft_shards *shards)
{
    int64_t most = 0, bytes = 0;
    for (int32_t u = 0; u < shards->n_units; u++)
        if (shards->units[u].trainable && shards->units[u].padded_elements > most)
            most = shards->units[u].padded_elements;
    if (!weft_checked_mul(most / shards->ranks, (int64_t)sizeof(float), &bytes))
        bytes = 0; /* weighing such units refuses them */
    return weft_ring_fit(&options->ring, bytes, weft_weigh_count_states(options));
}

static bool round_up(int64_t bytes, int64_t *out)
{
    return weft_checked_round_up(bytes, WEFT_ARENA_ALIGN_BYTES, out);
}

int64_t weft_arena_round(int64_t bytes)
{
    int64_t rounded = INT64_MAX / WEFT_ARENA_ALIGN_BYTES * WEFT_ARENA_ALIGN_BYTES;
    (void)round_up(bytes, &rounded);
    return rounded;
}

void weft_weigh_count_bytes(struct weft_weigher *w, int64_t bytes)
{
    w->overflow |= !weft_checked_add(w->total_bytes, bytes, &w->total_bytes);
}

/* Adds a buffer that lives from slot `first` to slot `last`, unless it is empty. */
void weft_weigh_hold(struct weft_weigher *w, struct weft_hold *holds, int32_t *n,
                     enum weft_category category, int32_t first, int32_t last, int64_t bytes)
{
    int64_t rounded = 0;
    if (bytes == 0) return;
    w->overflow |= !round_up(bytes, &rounded);
    weft_weigh_count_bytes(w, rounded);
    holds[(*n)++] = (struct weft_hold){category, first, last, rounded, 0};
}

int64_t weft_weigh_elements_bytes(struct weft_weigher *w, int64_t elements, enum weft_dtype dtype)
{
    int64_t bytes = 0;
    w->overflow |= !weft_checked_mul(elements, weft_dtype_bytes(dtype), &bytes);
    return bytes;
}

/* Holds of activations and temporaries of one micro-step. */
static int32_t weigh_micro_step(struct weft_weigher *w, int32_t micro, struct weft_hold *holds)
{
    const struct weft_layer_work *works = w->works;
    const bool flat = weft_weigh_target(w)->flat_buffers;
    int32_t n_layers = w->model->n_layers, n = 0;
    const int32_t *forward = w->period->forward + micro * n_layers;
    const int32_t *backward = w->period->backward + micro * n_layers;
    weft_weigh_hold(w, holds, &n, WEFT_CATEGORY_ACTIVATIONS, forward[0], backward[0],
                    weft_model_input_bytes(w->model, &w->options->batch));
    weft_weigh_hold(w, holds, &n, WEFT_CATEGORY_ACTIVATIONS, forward[0], backward[n_layers - 1],
                    weft_model_target_bytes(w->model, &w->options->batch));
    for (int32_t l = 0; l < n_layers; l++) {
        int32_t last_read = forward[l];
        if (works[l].backward_reads_output) {
            last_read = backward[l];
        } else if (l + 1 < n_layers) {
            last_read = works[l + 1].backward_reads_input ? backward[l + 1] : forward[l + 1];
        }
        /* A decision of the next layer has its input. */
        if (l + 1 == n_layers || !weft_weigh_decides_input(w, l + 1))
            weft_weigh_hold(w, holds, &n, WEFT_CATEGORY_ACTIVATIONS, forward[l], last_read,
                            works[l].output_bytes);
        if (l + 1 < n_layers) {
            /* The last layer's output is the loss, or nothing reads it. */
            weft_weigh_hold(w, holds, &n, WEFT_CATEGORY_ACTIVATIONS, backward[l + 1], backward[l],
                            works[l].output_bytes);
        }
        if (!weft_weigh_decides_saved(w, l)) {
            const int64_t freed = flat ? works[l].freed_bytes : 0;
            weft_weigh_hold(w, holds, &n, WEFT_CATEGORY_ACTIVATIONS, forward[l], backward[l],
                            works[l].saved_bytes - freed);
            weft_weigh_hold(w, holds, &n, WEFT_CATEGORY_ACTIVATIONS, forward[l], backward[l] - 1,
                            freed);
        }
        weft_weigh_hold(w, holds, &n, WEFT_CATEGORY_TEMPORARY, forward[l], forward[l],
                        works[l].forward_temporary_bytes);
        weft_weigh_hold(w, holds, &n, WEFT_CATEGORY_TEMPORARY, backward[l], backward[l],
                        works[l].backward_temporary_bytes);
    }
    return n;
}

static enum weft_status weigh_common(struct weft_weigher *w, struct weft_error *err)
{
    enum { OF_ALL = 8, OF_MICRO_STEP = 2, OF_LAYER = 6 };
    int32_t n_layers = w->model->n_layers, end = w->period->n_slots - 1;
    size_t n_micro = (size_t)w->period->rule.n_micro;
    size_t most = OF_ALL + n_micro * (OF_MICRO_STEP + OF_LAYER * (size_t)n_layers);
    struct weft_pool *pool = &w->weights->pool;
    struct weft_layer_work *works = weft_pool_array(pool, (size_t)n_layers, sizeof *works);
    struct weft_hold *holds = weft_pool_array(pool, most, sizeof *holds);
    int *timed = weft_pool_array(pool, (size_t)n_layers, sizeof *timed);
    if (works == NULL || holds == NULL || timed == NULL) return weft_fail_memory(err, "weights");
    for (int32_t l = 0; l < n_layers; l++) {
        const struct weft_layer *layer = &w->model->layers[l];
        WEFT_TRY(weft_weigh_layer_work(w->options, layer, pool, &works[l], err));
        timed[l] = weft_weigh_timed_levels(w->options, layer, pool);
    }
    w->works = works;
    w->timed = timed;
    int32_t n = 0;
    weft_weigh_hold(w, holds, &n, WEFT_CATEGORY_BASE, 0, end, w->options->base_bytes);
    const struct weft_ring ring = weft_weigh_ring(w->options, w->shards);
    weft_weigh_hold(w, holds, &n, WEFT_CATEGORY_STAGING, 0, end, weft_ring_bytes(&ring));
    if (ring.lanes > 0) holds[n - 1].tier = weft_weigh_staging_tier(w->options);
    weft_weigh_hold(w, holds, &n, WEFT_CATEGORY_STAGING, 0, end, w->options->staging_bytes);
    weft_weigh_hold(w, holds, &n, WEFT_CATEGORY_CHECKPOINTS, 0, end, w->options->kept_bytes);
    if (w->options->kept_bytes > 0)
        holds[n - 1].tier = weft_weigh_tier(w->options, WEFT_LOCATION_HOST);
    /* One record to send, one to receive. */
    for (int i = 0; i < 2; i++)
        weft_weigh_hold(w, holds, &n, WEFT_CATEGORY_COMMUNICATION, 0, end,
                        weft_weigh_record_bytes(w->options, w->model));
    if (weft_weigh_target(w)->flat_buffers) n += weft_weigh_flat_common(w, holds + n);
    for (int32_t micro = 0; micro < w->period->rule.n_micro; micro++)
        n += weigh_micro_step(w, micro, holds + n);
    w->weights->common = holds;
    w->weights->n_common = n;
    return weft_weigh_layers(w, err);
}

/* True if no slot between two uses, also around the period's end, could release the parameters: no
 * layer computes there. */
static bool are_neighbours(const struct weft_period *period, int32_t use, int32_t next)
{
    for (;;) {
        use = use + 1 == period->n_slots ? 0 : use + 1;
        if (use == next) return true;
        enum weft_slot_kind kind = period->slots[use].kind;
        if (kind != WEFT_SLOT_UPDATE && kind != WEFT_SLOT_NORM) return false;
    }
}

/* Index of the first use after the residency that begins with use `i`. Neighbouring uses share a
 * residency, and uses in one pass of all micro-steps. */
int32_t weft_weigh_residency_end(const struct weft_period *period, int32_t u, int32_t i)
{
    const int32_t *uses = period->uses[u];
    do
        i++;
    while (i < period->n_uses[u] && (are_neighbours(period, uses[i - 1], uses[i]) ||
                                     weft_period_in_one_pass(period, uses[i - 1], uses[i])));
    return i;
}

/* Index of the first use after the micro-step of use `i`. */
static int32_t micro_step_end(const struct weft_period *period, int32_t u, int32_t i)
{
    const int32_t uses = period->n_uses[u] / period->rule.n_micro;
    return (i / uses + 1) * uses;
}

/* Whether fsdp holds the unit from its first forward to its last, and again in backward, as FSDP2
 * does. Otherwise it is released between layers, and kept from a forward to the next backward. */
static bool is_held_by_pass(const struct weft_weigher *w, int32_t u)
{
    const struct weft_unit *unit = &w->shards->units[u];
    return weft_weigh_target(w)->gathers_all ||
           (weft_weigh_target(w)->whole_layers && unit->n_layers > 1 && !unit->shares);
}

/* Index of the first use after the forward or backward of use `i`. */
static int32_t pass_end(const struct weft_weigher *w, int32_t u, int32_t i)
{
    const struct weft_period *period = w->period;
    const int32_t *uses = period->uses[u];
    const enum weft_slot_kind kind = period->slots[uses[i]].kind;
    do
        i++;
    while (i < period->n_uses[u] && period->slots[uses[i]].kind == kind);
    const bool goes_on = i < period->n_uses[u] && !weft_weigh_target(w)->gathers_all &&
                         are_neighbours(period, uses[i - 1], uses[i]);
    return goes_on ? pass_end(w, u, i) : i;
}

int32_t weft_weigh_policy_end(const struct weft_weigher *w, int32_t u, enum weft_policy policy,
                              int32_t i)
{
    const int32_t end =
        weft_weigh_target(w)->regathers ? micro_step_end(w->period, u, i) : w->period->n_uses[u];
    const int32_t released =
        is_held_by_pass(w, u) ? pass_end(w, u, i) : weft_weigh_residency_end(w->period, u, i);
    return weft_policy_groups[policy].releases && released < end ? released : end;
}

int32_t weft_weigh_release(const struct weft_weigher *w, int32_t u, int32_t last)
{
    const struct weft_unit *unit = &w->shards->units[u];
    const struct weft_period *period = w->period;
    const int32_t use = period->uses[u][last];
    /* FSDP2 releases layers that share a unit after the backward of the first. */
    if (!weft_weigh_target(w)->whole_layers || unit->n_layers == 1 ||
        period->slots[use].kind != WEFT_SLOT_BACKWARD)
        return use;
    return period->backward[period->slots[use].micro * period->n_layers + unit->layers[0]];
}

static uint32_t sensible_policies(const struct weft_weigher *w, int32_t u)
{
    const struct weft_unit *unit = &w->shards->units[u];
    bool accumulates = weft_period_reductions(&w->period->rule) > 1;
    uint32_t policies = 1u << WEFT_POLICY_SDP;
    /* dp and central reduce in place, where the next gradient comes while the delayed one is in
     * use. */
    if (!unit->trainable || (!accumulates && !w->period->rule.delayed))
        policies |= 1u << WEFT_POLICY_DP;
    if (unit->trainable && w->options->central && !accumulates && !w->period->rule.delayed)
        policies |= 1u << WEFT_POLICY_CENTRAL;
    if (unit->trainable) policies |= 1u << WEFT_POLICY_ZERO1;
    const bool alone =
        !weft_weigh_target(w)->whole_layers || !unit->shares || weft_weigh_target(w)->gathers_all;
    if (alone && weft_weigh_policy_end(w, u, WEFT_POLICY_FSDP, 0) <
                     weft_weigh_policy_end(w, u, WEFT_POLICY_SDP, 0))
        policies |= 1u << WEFT_POLICY_FSDP;
    if (w->options->hybrid) policies |= 1u << WEFT_POLICY_HSDP;
    if (w->options->hybrid && unit->trainable) policies |= 1u << WEFT_POLICY_NODES;
    return policies;
}

/* Bytes of host pages for so many elements. */
static int64_t host_bytes(struct weft_weigher *w, int64_t elements, enum weft_dtype dtype)
{
    int64_t bytes = weft_weigh_elements_bytes(w, elements, dtype);
    w->overflow |= !weft_checked_round_up(bytes, WEFT_HOST_PAGE_BYTES, &bytes);
    return bytes;
}

/* Holds of a shard: on the device always; or on the host always, and on the device in the update
 * and in the slots that a gather may block. */
static int32_t weigh_shard(struct weft_weigher *w, int32_t u,
                           const struct weft_weighed_strategy *strategy, struct weft_hold *holds)
{
    const int32_t *uses = w->period->uses[u], end = w->period->n_slots - 1;
    const int32_t update = w->period->update[u];
    const int64_t slice = weft_weigh_shard_elements(w, u, strategy->way.policy);
    const enum weft_dtype compute = w->options->batch.compute;
    const int64_t bytes = weft_weigh_elements_bytes(w, slice, compute);
    const enum weft_category category = WEFT_CATEGORY_SHARDED_PARAMETERS;
    int32_t n = 0;
    if (strategy->way.parameters == WEFT_LOCATION_DEVICE) {
        weft_weigh_hold(w, holds, &n, category, 0, end, bytes);
        return n;
    }
    weft_weigh_hold(w, holds, &n, category, 0, end, host_bytes(w, slice, compute));
    holds[n - 1].tier = weft_weigh_tier(w->options, WEFT_LOCATION_HOST);
    weft_weigh_hold(w, holds, &n, category, update, update, bytes);
    for (int32_t i = 0; i < w->period->n_uses[u];
         i = weft_weigh_policy_end(w, u, strategy->way.policy, i))
        weft_weigh_hold(w, holds, &n, category, uses[i], uses[i], bytes);
    return n;
}

/* Holds of parameters: the resident buffer, or the shard and the gathered copies. */
static int32_t weigh_parameters(struct weft_weigher *w, int32_t u,
                                const struct weft_weighed_strategy *strategy,
                                struct weft_hold *holds)
{
    const enum weft_policy policy = strategy->way.policy;
    const struct weft_unit *unit = &w->shards->units[u];
    const int32_t *uses = w->period->uses[u];
    int32_t n = 0, n_uses = w->period->n_uses[u], end = w->period->n_slots - 1;
    enum weft_dtype compute = w->options->batch.compute;
    int64_t full_bytes = weft_weigh_elements_bytes(w, unit->padded_elements, compute);
    if (!weft_policy_gathers(policy)) {
        weft_weigh_hold(w, holds, &n, WEFT_CATEGORY_GATHERED_PARAMETERS, 0, end, full_bytes);
        return n;
    }
    n = weigh_shard(w, u, strategy, holds);
    for (int32_t i = 0, next; i < n_uses; i = next) {
        next = weft_weigh_policy_end(w, u, policy, i);
        weft_weigh_hold(w, holds, &n, WEFT_CATEGORY_GATHERED_PARAMETERS, uses[i], uses[next - 1],
                        full_bytes);
    }
    return n;
}

/* Elements of a unit's parameters that a rank keeps: of the slices of all ranks or of a node's. */
int64_t weft_weigh_shard_elements(const struct weft_weigher *w, int32_t u, enum weft_policy policy)
{
    return w->shards->units[u].padded_elements / weft_shards_holders(w->shards, policy);
}

/* Elements of a unit's state: of a rank's slices, with hsdp of its node's, or with dp and on
 * the owner of all. */
int64_t weft_weigh_owned_elements(const struct weft_weigher *w, int32_t u, enum weft_policy policy)
{
    return w->shards->units[u].padded_elements / weft_shards_sharers(w->shards, policy);
}

/* Elements of a unit's state without its frozen parts. */
static int64_t trained_elements(const struct weft_weigher *w, int32_t u, enum weft_policy policy)
{
    return w->shards->units[u].trained_elements / weft_shards_sharers(w->shards, policy);
}

/* Bytes of a unit's state, each buffer of it rounded up. */
int64_t weft_weigh_state_bytes(struct weft_weigher *w, int32_t u, enum weft_policy policy,
                               int64_t align)
{
    int64_t bytes = weft_weigh_elements_bytes(w, trained_elements(w, u, policy), WEFT_F32);
    w->overflow |= !weft_checked_round_up(bytes, align, &bytes) ||
                   !weft_checked_mul(bytes, weft_weigh_count_states(w->options), &bytes);
    return bytes;
}

/* Holds on the host of a unit that is updated there: master and moments, the reduced gradient, and
 * rounded parameters unless the device computes in f32. */
static int32_t weigh_host_update(struct weft_weigher *w, int32_t u, struct weft_hold *holds)
{
    const enum weft_dtype compute = w->options->batch.compute;
    const int64_t slice = w->shards->units[u].padded_elements / w->shards->ranks;
    const int32_t end = w->period->n_slots - 1;
    int64_t state = host_bytes(w, slice, WEFT_F32);
    int32_t n = 0;
    w->overflow |= !weft_checked_mul(state, w->options->n_moments + 1, &state);
    weft_weigh_hold(w, holds, &n, WEFT_CATEGORY_OPTIMIZER_STATE, 0, end, state);
    weft_weigh_hold(w, holds, &n, WEFT_CATEGORY_SHARDED_GRADIENTS, 0, end,
                    host_bytes(w, slice, w->options->accumulate));
    if (compute != WEFT_F32)
        weft_weigh_hold(w, holds, &n, WEFT_CATEGORY_SHARDED_PARAMETERS, 0, end,
                        host_bytes(w, slice, compute));
    for (int32_t i = 0; i < n; i++)
        holds[i].tier = weft_weigh_tier(w->options, WEFT_LOCATION_HOST);
    return n;
}

/* Holds of state: on the device always, only in the unit's update, or never. */
static int32_t weigh_state(struct weft_weigher *w, int32_t u,
                           const struct weft_weighed_strategy *strategy, struct weft_hold *holds)
{
    int32_t n = 0, end = w->period->n_slots - 1, update = w->period->update[u];
    const enum weft_location location = weft_keep_location(strategy->way.keep);
    bool offloaded = location != WEFT_LOCATION_DEVICE;
    if (strategy->way.keep == WEFT_KEEP_HOST_UPDATE) return weigh_host_update(w, u, holds);
    int64_t bytes =
        weft_weigh_elements_bytes(w, trained_elements(w, u, strategy->way.policy), WEFT_F32);
    const int32_t outer = w->options->outer ? WEFT_OUTER_STATES : 0;
    for (int32_t i = 0; i < weft_weigh_count_states(w->options) + outer; i++)
        weft_weigh_hold(w, holds, &n, WEFT_CATEGORY_OPTIMIZER_STATE, offloaded ? update : 0,
                        offloaded ? update : end, bytes);
    if (!offloaded) return n;
    weft_weigh_hold(w, holds, &n, WEFT_CATEGORY_OPTIMIZER_STATE, 0, end,
                    weft_weigh_state_bytes(w, u, strategy->way.policy,
                                           location == WEFT_LOCATION_DISK ? WEFT_DISK_ALIGN_BYTES
                                                                          : WEFT_HOST_PAGE_BYTES));
    holds[n - 1].tier = weft_weigh_tier(w->options, location);
    return n;
}

/* Holds of a unit's full gradient and of the reduced one. */
static int32_t weigh_gradients(struct weft_weigher *w, int32_t u,
                               const struct weft_weighed_strategy *strategy,
                               struct weft_hold *holds)
{
    const struct weft_unit *unit = &w->shards->units[u];
    const struct weft_period *period = w->period;
    const bool all = weft_policy_is_whole(strategy->way.policy);
    const int64_t owned = weft_weigh_owned_elements(w, u, strategy->way.policy);
    int32_t n = 0;
    /* Gradients of a round are added up in one buffer. */
    int32_t reductions = weft_period_reductions(&period->rule),
            last_micro = period->rule.n_micro - 1;
    int64_t gradient_bytes =
        weft_weigh_elements_bytes(w, unit->padded_elements, w->options->reduce);
    for (int32_t r = 0; r < reductions; r++) {
        const int32_t first = r * period->rule.group * period->n_units + u;
        const int32_t last =
            period->last_gradient[weft_period_round_end(&period->rule, r) * period->n_units + u];
        weft_weigh_hold(w, holds, &n, WEFT_CATEGORY_FULL_GRADIENTS, period->first_gradient[first],
                        all || period->rule.delayed ? period->update[u] : last, gradient_bytes);
    }
    const int32_t first_reduced = weft_period_round_end(&period->rule, 0);
    const bool on_host = strategy->way.keep == WEFT_KEEP_HOST_UPDATE;
    /* The copy down holds it after the last reduction. */
    const int32_t end =
        on_host ? period->last_gradient[last_micro * period->n_units + u] : period->update[u];
    const bool delayed = period->rule.delayed; /* it lasts from step to step */
    if (!all && !(on_host && reductions == 1))
        weft_weigh_hold(w, holds, &n, WEFT_CATEGORY_SHARDED_GRADIENTS,
                        delayed ? 0
                                : period->last_gradient[first_reduced * period->n_units + u] + 1,
                        delayed ? period->n_slots - 1 : end,
                        weft_weigh_elements_bytes(w, owned, w->options->accumulate));
    return n;
}

/* Holds of training: optimizer state, the full gradient, the reduced gradient. */
static int32_t weigh_training(struct weft_weigher *w, int32_t u,
                              const struct weft_weighed_strategy *strategy, struct weft_hold *holds)
{
    const struct weft_unit *unit = &w->shards->units[u];
    const struct weft_period *period = w->period;
    int32_t n = weigh_state(w, u, strategy, holds);
    /* One record of its tensors' norms to send, and one to receive. */
    for (int32_t i = 0; period->rule.agreed_updates && i < 2; i++)
        weft_weigh_hold(w, holds, &n, WEFT_CATEGORY_COMMUNICATION, period->update[u],
                        period->update[u], (int64_t)unit->n_tensors * WEFT_TENSOR_NORMS_BYTES);
    return n + (weft_weigh_target(w)->flat_buffers ? weft_weigh_flat_gradients(w, u, holds + n)
                                                   : weigh_gradients(w, u, strategy, holds + n));
}

uint64_t weft_weighed_strategies(const struct weft_weighed_unit *unit, uint32_t policies)
{
    uint64_t strategies = 0;
    for (int32_t k = 0; k < unit->n_strategies; k++)
        strategies |= (uint64_t)(policies >> unit->strategies[k].way.policy & 1u) << k;
    return strategies;
}

/* The ways to keep a unit's state. Without state, or with agreed updates, only the device. */
static uint32_t sensible_keeps(const struct weft_weigher *w, int32_t u)
{
    const bool state = w->shards->units[u].trainable && weft_weigh_count_states(w->options) > 0;
    const bool moves = state && !w->period->rule.agreed_updates && w->options->state_keeps != 0;
    return moves ? (uint32_t)w->options->state_keeps : 1u << WEFT_KEEP_DEVICE;
}

/* Whether a unit's shard may be on the host. Copies down and up need a slot each between its update
 * and its first use. */
static bool may_fetch(const struct weft_weigher *w, int32_t u)
{
    enum { APART = 3 };
    const struct weft_period *period = w->period;
    return (w->options->parameter_locations & 1 << WEFT_LOCATION_HOST) != 0 &&
           w->shards->units[u].trainable && w->options->batch.compute != WEFT_F32 &&
           !period->rule.agreed_updates && !weft_weigh_target(w)->is_foreign &&
           period->uses[u][0] - period->update[u] >= APART;
}

static enum weft_status weigh_unit(struct weft_weigher *w, int32_t u, struct weft_error *err)
{
    /* Resident or shard, also in the update and on the host; master, two moments, their tier,
     * reduced gradient, norms. */
    enum { MOST_OTHERS = 12 + WEFT_OUTER_STATES };
    struct weft_weighed_unit *unit = &w->weights->units[u];
    const bool flat = weft_weigh_target(w)->flat_buffers;
    size_t most = 2 * (size_t)w->period->n_uses[u] +
                  (flat ? WEFT_FLAT_HOLDS : 1) * (size_t)w->period->rule.n_micro + MOST_OTHERS;
    uint32_t policies = sensible_policies(w, u), keeps = sensible_keeps(w, u);
    for (int i = 0; i < WEFT_WAYS; i++) {
        const struct weft_way way = weft_way_at(i);
        if (!(keeps >> way.keep & 1u) || !(policies >> way.policy & 1u) || !weft_way_allowed(way) ||
            (way.parameters == WEFT_LOCATION_HOST && !may_fetch(w, u)))
            continue;
        struct weft_weighed_strategy *to = &unit->strategies[unit->n_strategies++];
        to->way = way;
        to->holds = weft_pool_array(&w->weights->pool, most, sizeof *to->holds);
        if (to->holds == NULL) return weft_fail_memory(err, "weights");
        to->n_holds = flat ? weft_weigh_flat_parameters(w, u, to->way.policy, to->holds)
                           : weigh_parameters(w, u, to, to->holds);
        if (w->shards->units[u].trainable)
            to->n_holds += weigh_training(w, u, to, to->holds + to->n_holds);
    }
    return WEFT_OK;
}

static enum weft_status fill_weights(struct weft_weigher *w, struct weft_error *err)
{
    struct weft_weights *weights = w->weights;
    weights->n_slots = w->period->n_slots;
    weights->n_units = w->shards->n_units;
    weights->units =
        weft_pool_array(&weights->pool, (size_t)weights->n_units, sizeof *weights->units);
    if (weights->units == NULL) return weft_fail_memory(err, "weights");
    if (weft_weigh_target(w)->flat_buffers) WEFT_TRY(weft_weigh_flat_begin(w, err));
    WEFT_TRY(weigh_common(w, err));
    for (int32_t u = 0; u < weights->n_units; u++)
        WEFT_TRY(weigh_unit(w, u, err));
    WEFT_TRY(weft_weigh_items(w, err));
    if (w->overflow) {
        return weft_fail(err, WEFT_E_DATA,
                         "the model's buffers add up to more bytes than 64 bits can count: use "
                         "fewer parameters, a smaller micro_batch or fewer blocks");
    }
    return WEFT_OK;
}

enum weft_status weft_weights_create(const struct weft_model *model,
                                     const struct weft_shards *shards,
                                     const struct weft_period *period,
                                     const struct weft_weigh_options *options,
                                     struct weft_weights **out, struct weft_error *err)
{
    if (options->base_bytes < 0) {
        return weft_fail(err, WEFT_E_DATA,
                         "base memory is %" PRId64 " bytes: it cannot be negative",
                         options->base_bytes);
    }
    struct weft_weights *weights = calloc(1, sizeof *weights);
    if (weights == NULL) return weft_fail_memory(err, "weights");
    struct weft_weigher weigher = {
        .model = model, .shards = shards, .period = period, .options = options, .weights = weights};
    enum weft_status status = fill_weights(&weigher, err);
    if (status != WEFT_OK) {
        weft_weights_destroy(weights);
        return status;
    }
    *out = weights;
    return WEFT_OK;
}

void weft_weights_destroy(struct weft_weights *weights)
{
    if (weights == NULL) return;
    weft_pool_finish(&weights->pool);
    free(weights);
}
