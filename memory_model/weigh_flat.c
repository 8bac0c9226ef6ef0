/* SPDX-License-Identifier: Apache-2.0 */
/* Memory as PyTorch's FSDP2 holds it. A unit has one flat buffer for each of its collectives.
 *
 * Gathers: the flat buffer lives from the launch. Before the unit's forward or backward it is
 * copied out into parameters of their own. In forward it stays until the next unit is copied out,
 * or to the end of forward. In backward it is freed at once: the slot that copies out then holds
 * the unit's gradient, which is as large, so only frozen parts count it. The layer has not freed
 * any saved activations yet, and this may be more than the rest of its backward holds. The item's
 * stair is the flat buffer before the copy.
 *
 * Reductions: after the unit's last backward its parameters, that layer's saved activations and
 * temporaries are released, the input of the reduction before it is freed, and its gradient is
 * copied into an input of its own. The gradient is freed before the output is allocated. If this is
 * more than the backward held, the difference is a temporary of that slot. A library that copies
 * the input (gloo) holds the copy while it reduces; it is counted in the slot that launches it.
 * The input stays until the next reduction is copied in, or a later one if several inputs may be
 * held at once, even if the reduction is complete.
 *
 * PyTorch's allocator keeps freed memory of a GPU by stream. With pools the rows are of memory that
 * it reserves at least: flat buffers lie in a pool as large as the most that are there at any time,
 * reduced gradients in another one, and the rest in the pool of compute.
 *
 * A unit with an input that carries no gradient is reduced at the end of backward, and keeps its
 * gradient to then. So does a unit that the plan reduces late; its gradient is in the dtype of the
 * reduction. The end reduces them in reverse order of the units, so the unit without an input is
 * the last. It then also keeps its parameters until the end, if backward gathered them. */
#include "base/checked.h"
#include "memory_model/weigh.h"
#include "memory_model/weigh_parts.h"

static int64_t unit_bytes(struct weft_weigher *w, int32_t u, enum weft_dtype dtype)
{
    return weft_weigh_elements_bytes(w, w->shards->units[u].padded_elements, dtype);
}

/* Bytes of its gradient. */
static int64_t gradient_bytes(struct weft_weigher *w, int32_t u, enum weft_dtype dtype)
{
    return weft_weigh_elements_bytes(w, w->shards->units[u].trained_elements, dtype);
}

/* Whether no gradient goes back through the unit: nothing before it trains. */
static bool ends_backward(const struct weft_weigher *w, int32_t u)
{
    for (int32_t v = 0; v < u; v++)
        if (w->shards->units[v].trainable) return false;
    return true;
}

/* Whether the plan reduces a unit at the end that FSDP2 would reduce after its backward. */
static bool is_late(const struct weft_weigher *w, int32_t u)
{
    const bool *late = w->options->late;
    if (!w->shards->units[u].trainable || ends_backward(w, u)) return false;
    return w->period->rule.late || (late != NULL && late[w->shards->units[u].layers[0]]);
}

/* Whether any unit is late. FSDP2 then finalizes backward by hand. */
static bool has_late(const struct weft_weigher *w)
{
    for (int32_t u = 0; u < w->shards->n_units; u++)
        if (is_late(w, u)) return true;
    return false;
}

/* The slot after a micro-step's backward. */
static int32_t after_backward(const struct weft_period *period, int32_t micro)
{
    return period->backward[micro * period->n_layers] + 1;
}

static int32_t launch_reduction(const struct weft_weigher *w, int32_t u, int32_t micro)
{
    if (ends_backward(w, u) || is_late(w, u)) return after_backward(w->period, micro);
    return w->period->last_gradient[micro * w->period->n_units + u] + 1;
}

enum weft_status weft_weigh_flat_begin(struct weft_weigher *w, struct weft_error *err)
{
    const int32_t n_units = w->shards->n_units;
    struct weft_pool *pool = &w->weights->pool;
    w->reductions = weft_pool_array(pool, (size_t)n_units, sizeof *w->reductions);
    w->reduction_of = weft_pool_array(pool, (size_t)n_units, sizeof *w->reduction_of);
    if (w->reductions == NULL || w->reduction_of == NULL) return weft_fail_memory(err, "weights");
    for (int32_t at_end = 0; at_end < 2; at_end++)
        for (int32_t u = n_units - 1; u >= 0; u--) {
            if (!w->shards->units[u].trainable) continue;
            if ((ends_backward(w, u) || is_late(w, u)) != (at_end == 1)) continue;
            w->reduction_of[u] = w->n_reductions;
            w->reductions[w->n_reductions++] = u;
            w->n_own_reductions += 1 - at_end;
        }
    return WEFT_OK;
}

struct weft_window weft_weigh_reduction(const struct weft_weigher *w, int32_t u, int32_t micro)
{
    const int32_t first = launch_reduction(w, u, micro), end = after_backward(w->period, micro);
    /* Compute waits for it before this one is copied in, or at the end of a backward. */
    const int32_t next = w->reduction_of[u] + w->period->rule.more_inputs + 1;
    if (next > w->n_own_reductions || first == end) return (struct weft_window){first, end};
    if (next == w->n_own_reductions) return (struct weft_window){first, end - 1};
    return (struct weft_window){first, launch_reduction(w, w->reductions[next], micro) - 1};
}

/* Bytes of the input of a reduction, by its place in their order; 0: there is none. */
static int64_t input_bytes(struct weft_weigher *w, int32_t place)
{
    return place < 0 ? 0 : gradient_bytes(w, w->reductions[place], w->options->reduce);
}

/* Bytes of the input of the reduction that is freed when unit u's is copied in; 0: none is. */
static int64_t freed_input(struct weft_weigher *w, int32_t u)
{
    return input_bytes(w, w->reduction_of[u] - w->period->rule.more_inputs - 1);
}

/* Whether a unit is gathered for backward, and released after it. */
static bool is_released(const struct weft_weigher *w, int32_t u)
{
    const struct weft_unit *unit = &w->shards->units[u];
    for (int32_t i = 0; i < unit->n_layers; i++)
        if (unit->reads_in_backward[i]) return true;
    return false;
}

static int64_t none_or_more(int64_t bytes)
{
    return bytes > 0 ? bytes : 0;
}

/* Bytes of a unit's reduced gradient. */
static int64_t reduced_bytes(struct weft_weigher *w, int32_t u)
{
    return gradient_bytes(w, u, w->options->accumulate) / w->shards->ranks;
}

/* Adds temporaries of the update, which PyTorch runs for all units in one call. */
static void hold_update(struct weft_weigher *w, struct weft_hold *holds, int32_t *n)
{
    const struct weft_period *period = w->period;
    int64_t sum = 0, most = 0;
    int32_t first = period->n_slots, last = -1;
    for (int32_t u = 0; u < w->shards->n_units; u++) {
        const int64_t own = w->shards->units[u].trained_elements / w->shards->ranks;
        const int32_t update = period->update[u];
        if (update < 0) continue;
        w->overflow |= !weft_checked_add(sum, own, &sum);
        if (own > most) most = own;
        if (update < first) first = update;
        if (update > last) last = update;
    }
    w->overflow |= !weft_checked_mul(sum, w->options->foreach_bytes, &sum) ||
                   !weft_checked_mul(most, w->options->loop_bytes, &most);
    if (last >= 0)
        weft_weigh_hold(w, holds, n, WEFT_CATEGORY_TEMPORARY, first, last, sum > most ? sum : most);
}

/* Bytes of the pool of gathers: flat buffers of consecutive units. In forward the buffer of a unit
 * that is copied out stays next to the ones ahead of it. */
static int64_t gather_pool(struct weft_weigher *w)
{
    const int32_t n_units = w->shards->n_units;
    const int64_t ahead = w->options->ahead;
    int64_t most = 0;
    for (int32_t u = 0; u < n_units; u++) {
        int64_t sum = 0;
        for (int32_t v = u; v < n_units && (ahead == 0 || v <= u + ahead); v++)
            w->overflow |=
                !weft_checked_add(sum, unit_bytes(w, v, w->options->batch.compute), &sum);
        if (sum > most) most = sum;
    }
    return most;
}

/* Adds the pools of streams other than compute's, which nothing else can use at any time. Reduced
 * gradients lie in the pool of reductions. */
static void hold_pools(struct weft_weigher *w, struct weft_hold *holds, int32_t *n)
{
    const int32_t last = w->period->n_slots - 1;
    int64_t sum = 0;
    for (int32_t u = 0; u < w->shards->n_units; u++)
        if (w->shards->units[u].trainable)
            w->overflow |= !weft_checked_add(sum, reduced_bytes(w, u), &sum);
    weft_weigh_hold(w, holds, n, WEFT_CATEGORY_COMMUNICATION, 0, last, gather_pool(w));
    weft_weigh_hold(w, holds, n, WEFT_CATEGORY_SHARDED_GRADIENTS, 0, last, sum);
}

int32_t weft_weigh_flat_common(struct weft_weigher *w, struct weft_hold *holds)
{
    int64_t most = 0;
    int32_t n = 0;
    hold_update(w, holds, &n);
    if (w->options->pools) hold_pools(w, holds, &n);
    if (w->options->batch.compute == WEFT_F32) return n; /* it gathers the part itself */
    for (int32_t u = 0; u < w->shards->n_units; u++) {
        const int64_t bytes = unit_bytes(w, u, w->options->batch.compute) / w->shards->ranks;
        if (bytes > most) most = bytes;
    }
    weft_weigh_hold(w, holds, &n, WEFT_CATEGORY_COMMUNICATION, 0, w->period->n_slots - 1, most);
    return n;
}

/* Adds the flat buffer of a unit that is gathered in forward, after its copy. */
static void hold_flat(struct weft_weigher *w, int32_t u, int32_t micro, enum weft_policy policy,
                      struct weft_hold *holds, int32_t *n)
{
    const enum weft_dtype compute = w->options->batch.compute;
    const int32_t *forward = w->period->forward + micro * w->period->n_layers;
    const int64_t bytes = unit_bytes(w, u, compute);
    const bool is_last = u + 1 == w->shards->n_units;
    const int32_t next =
        is_last ? forward[w->period->n_layers - 1] + 1 : forward[w->shards->units[u + 1].layers[0]];
    weft_weigh_hold(w, holds, n, WEFT_CATEGORY_COMMUNICATION,
                    forward[w->shards->units[u].layers[0]], next - 1, bytes);
    /* The next unit's flat buffer is there before this one is freed, and its layer has made nothing
     * yet. That may be more than its slot holds if this unit keeps its parameters, or was used
     * before the slot ahead of it. */
    const bool keeps = policy == WEFT_POLICY_SDP && is_released(w, u);
    if (is_last) return;
    const int32_t layer = w->shards->units[u + 1].layers[0];
    const struct weft_layer_work *work = &w->works[layer];
    const int64_t made = work->output_bytes + work->saved_bytes + work->forward_temporary_bytes;
    if (keeps || w->shards->units[u].layers[0] + 1 < layer)
        weft_weigh_hold(w, holds, n, WEFT_CATEGORY_TEMPORARY, next, next,
                        none_or_more(bytes - unit_bytes(w, u + 1, compute) - made));
}

/* Bytes that the slot of a unit's last backward holds at most for its layer, and that are free when
 * the unit is reduced. */
static int64_t layer_bytes(const struct weft_weigher *w, int32_t u)
{
    const struct weft_layer_work *work = &w->works[w->shards->units[u].layers[0]];
    return work->saved_bytes - work->freed_bytes + work->backward_temporary_bytes;
}

/* The unit that ends its backward in the slot before unit u begins its own, and is reduced there;
 * -1: none whose bytes are known for every plan. */
static int32_t reduced_before(const struct weft_weigher *w, int32_t u)
{
    const struct weft_unit *unit = &w->shards->units[u];
    const int32_t layer = unit->layers[unit->n_layers - 1] + 1;
    if (!w->options->prefetches || w->period->rule.n_micro > 1) return -1;
    for (int32_t v = u + 1; v < w->shards->n_units; v++) {
        const struct weft_unit *before = &w->shards->units[v];
        if (before->layers[0] != layer) continue;
        if (!before->trainable || before->shares || ends_backward(w, v) || is_late(w, v)) return -1;
        return w->options->recomputes != NULL && w->options->recomputes[layer] != 0 ? -1 : v;
    }
    return -1;
}

/* Bytes that the begin of unit u's backward holds beyond the slot before, in which unit v ends its
 * own: v is reduced, and u is copied out of a flat buffer that is there. */
static int64_t begun_more(struct weft_weigher *w, int32_t u, int32_t v)
{
    const enum weft_dtype compute = w->options->batch.compute;
    const int64_t input = gradient_bytes(w, v, w->options->reduce);
    const int64_t freed = gradient_bytes(w, v, compute) + freed_input(w, v) + layer_bytes(w, v) +
                          (is_released(w, v) ? unit_bytes(w, v, compute) : 0);
    return none_or_more(input + input / w->shards->ranks + unit_bytes(w, u, compute) - freed);
}

/* Bytes that a unit's first layer of backward holds at its begin and not when it holds most: saved
 * activations that it frees, without its temporaries and the gradient of its input. */
static int64_t freed_later(const struct weft_weigher *w, int32_t u)
{
    const struct weft_unit *unit = &w->shards->units[u];
    const int32_t layer = unit->layers[unit->n_layers - 1];
    const struct weft_layer_work *work = &w->works[layer];
    return work->freed_bytes - work->backward_temporary_bytes -
           (layer > 0 ? w->works[layer - 1].output_bytes : 0);
}

/* Adds the begin of a unit's backward in a slot. If the unit before launched the gather, it is the
 * fullest moment of the slot before, and no gather of this slot's list is there yet. */
static void hold_begin(struct weft_weigher *w, int32_t u, int32_t slot, struct weft_hold *holds,
                       int32_t *n)
{
    const enum weft_dtype compute = w->options->batch.compute;
    const int64_t flat = w->options->pools ? 0 : unit_bytes(w, u, compute);
    const int32_t v = w->options->pools ? -1 : reduced_before(w, u);
    if (v >= 0)
        weft_weigh_hold(w, holds, n, WEFT_CATEGORY_TEMPORARY, slot - 1, slot - 1,
                        begun_more(w, u, v));
    else
        weft_weigh_hold(w, holds, n, WEFT_CATEGORY_TEMPORARY, slot, slot,
                        none_or_more(freed_later(w, u) + flat - gradient_bytes(w, u, compute)));
}

int32_t weft_weigh_flat_parameters(struct weft_weigher *w, int32_t u, enum weft_policy policy,
                                   struct weft_hold *holds)
{
    const struct weft_period *period = w->period;
    const int32_t *uses = period->uses[u];
    const enum weft_dtype compute = w->options->batch.compute;
    const int64_t bytes = unit_bytes(w, u, compute);
    int32_t n = 0;
    /* Trained parameters that compute in another dtype have their part in the master alone. */
    const int64_t masters = compute == WEFT_F32 ? 0 : gradient_bytes(w, u, WEFT_F32);
    weft_weigh_hold(w, holds, &n, WEFT_CATEGORY_SHARDED_PARAMETERS, 0, period->n_slots - 1,
                    (unit_bytes(w, u, WEFT_F32) - masters) / w->shards->ranks);
    for (int32_t i = 0, next; i < period->n_uses[u]; i = next) {
        const struct weft_slot slot = period->slots[uses[i]];
        next = weft_weigh_policy_end(w, u, policy, i);
        weft_weigh_hold(w, holds, &n, WEFT_CATEGORY_GATHERED_PARAMETERS, uses[i],
                        weft_weigh_release(w, u, next - 1), bytes);
        if (slot.kind != WEFT_SLOT_FORWARD)
            hold_begin(w, u, uses[i], holds, &n);
        else if (!w->options->pools)
            hold_flat(w, u, slot.micro, policy, holds, &n);
    }
    return n;
}

/* Adds a unit's gradient of one micro-step, until it is added up or copied in for a reduction.
 * `apart`: it is not the sum of the step. */
static void hold_gradient(struct weft_weigher *w, int32_t u, int32_t micro, bool apart,
                          struct weft_hold *holds, int32_t *n)
{
    const int32_t at = micro * w->period->n_units + u, last = w->period->last_gradient[at];
    const int64_t bytes = gradient_bytes(w, u, w->options->batch.compute);
    weft_weigh_hold(w, holds, n, WEFT_CATEGORY_FULL_GRADIENTS, w->period->first_gradient[at], last,
                    apart ? bytes : 0);
    /* Layers that share a tensor each make its gradient. */
    weft_weigh_hold(w, holds, n, WEFT_CATEGORY_TEMPORARY, last, last,
                    w->shards->units[u].shares ? bytes : 0);
}

/* Whether a unit's reduced gradient is counted by end_bytes in the drain, and by its own holds only
 * after it. */
static bool ends_apart(const struct weft_weigher *w, int32_t u)
{
    return is_late(w, u) && weft_period_reductions(&w->period->rule) == 1;
}

/* Bytes that the end of backward holds at most, beyond all late gradients, input and reduced
 * gradient of the last reduction, and inputs that are under way since before. Each reduction frees
 * its gradient once it is copied in, and leaves its reduced one. */
static int64_t end_bytes(struct weft_weigher *w)
{
    const int32_t more = w->period->rule.more_inputs;
    int64_t freed = 0, most = 0, held = input_bytes(w, w->n_reductions - 1);
    for (int32_t i = w->n_own_reductions - more; i < w->n_own_reductions; i++)
        held += input_bytes(w, i);
    for (int32_t k = w->n_own_reductions; k < w->n_reductions; k++) {
        int64_t inputs = 0;
        for (int32_t i = k - more; i <= k; i++)
            inputs += input_bytes(w, i);
        if (!w->options->pools && ends_apart(w, w->reductions[k]))
            freed -= reduced_bytes(w, w->reductions[k]);
        if (inputs - freed - held > most) most = inputs - freed - held;
        freed += input_bytes(w, k);
    }
    return most;
}

/* Adds the gradient of a unit that is reduced at the end, from its last backward on. The unit
 * without an input is the last, so its holds have the rest of that slot. */
static void hold_to_end(struct weft_weigher *w, int32_t u, int32_t last, int32_t end,
                        enum weft_dtype dtype, struct weft_hold *holds, int32_t *n)
{
    const enum weft_dtype compute = w->options->batch.compute;
    const int64_t parameters = is_released(w, u) ? unit_bytes(w, u, compute) : 0;
    if (is_late(w, u)) dtype = w->options->reduce;
    const int64_t bytes = gradient_bytes(w, u, dtype);
    weft_weigh_hold(w, holds, n, WEFT_CATEGORY_FULL_GRADIENTS, last + 1, end,
                    last < end ? bytes : 0);
    if (is_late(w, u)) {
        weft_weigh_hold(w, holds, n, WEFT_CATEGORY_TEMPORARY, last, last,
                        dtype != compute ? none_or_more(bytes - parameters) : 0);
        return;
    }
    if (w->options->reduce_copies)
        weft_weigh_hold(w, holds, n, WEFT_CATEGORY_TEMPORARY, end, end,
                        none_or_more(gradient_bytes(w, u, w->options->reduce) - bytes));
    if (!has_late(w)) return;
    weft_weigh_hold(w, holds, n, WEFT_CATEGORY_TEMPORARY, end, end, end_bytes(w));
    weft_weigh_hold(w, holds, n, WEFT_CATEGORY_GATHERED_PARAMETERS, last + 1, end,
                    last < end ? parameters : 0);
}

/* Adds the input of a micro-step's reduction of a gradient in some dtype. */
static void hold_reduction(struct weft_weigher *w, int32_t u, int32_t micro, enum weft_dtype dtype,
                           struct weft_hold *holds, int32_t *n)
{
    const int32_t last = w->period->last_gradient[micro * w->period->n_units + u];
    const struct weft_window window = weft_weigh_reduction(w, u, micro);
    const int64_t input = gradient_bytes(w, u, w->options->reduce),
                  output = input / w->shards->ranks;
    int64_t freed = freed_input(w, u) + layer_bytes(w, u);
    if (!is_late(w, u))
        weft_weigh_hold(w, holds, n, WEFT_CATEGORY_FULL_GRADIENTS, window.first, window.last,
                        input);
    if (weft_period_reductions(&w->period->rule) > 1)
        weft_weigh_hold(w, holds, n, WEFT_CATEGORY_TEMPORARY, window.first, window.last, output);
    if (ends_backward(w, u) || is_late(w, u)) {
        hold_to_end(w, u, last, window.first, dtype, holds, n);
        return;
    }
    if (is_released(w, u)) freed += unit_bytes(w, u, w->options->batch.compute);
    const int64_t copy = w->options->reduce_copies ? input : 0;
    const int64_t made = w->options->pools ? 0 : output;
    const int64_t more = none_or_more(made + copy - gradient_bytes(w, u, dtype));
    weft_weigh_hold(w, holds, n, WEFT_CATEGORY_TEMPORARY, last, last,
                    none_or_more(input + more - freed));
}

int32_t weft_weigh_flat_gradients(struct weft_weigher *w, int32_t u, struct weft_hold *holds)
{
    const struct weft_period *period = w->period;
    const enum weft_dtype compute = w->options->batch.compute, reduce = w->options->reduce;
    const int32_t n_micro = period->rule.n_micro, n_units = period->n_units;
    const bool adds = n_micro > 1 && weft_period_reductions(&period->rule) == 1;
    const int32_t first = adds ? n_micro - 1 : 0;
    int32_t n = 0;
    /* Gradients of a step are added up, each micro-step's next to the sum. */
    if (adds)
        weft_weigh_hold(w, holds, &n, WEFT_CATEGORY_FULL_GRADIENTS, period->first_gradient[u],
                        period->last_gradient[first * n_units + u], gradient_bytes(w, u, reduce));
    for (int32_t micro = 0; micro < n_micro; micro++) {
        hold_gradient(w, u, micro, !adds || micro > 0 || compute != reduce, holds, &n);
        if (micro >= first) hold_reduction(w, u, micro, adds ? reduce : compute, holds, &n);
    }
    if (!w->options->pools)
        weft_weigh_hold(w, holds, &n, WEFT_CATEGORY_SHARDED_GRADIENTS,
                        weft_weigh_reduction(w, u, first).first + ends_apart(w, u),
                        period->update[u], reduced_bytes(w, u));
    return n;
}
