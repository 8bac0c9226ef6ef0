/* SPDX-License-Identifier: Apache-2.0 */
/* Strategies of layers: location and recomputation of saved activations, and location of the
 * input. */
#include "base/checked.h"
#include "memory_model/weigh.h"
#include "memory_model/weigh_parts.h"

/* Whether backward can restore a layer's saved activations: it reads the layer's input and the
 * parameters of all its units. */
static bool may_restore(const struct weft_weigher *w, int32_t layer,
                        const struct weft_layer_work *work)
{
    if (!work->backward_reads_input) return false;
    for (int32_t u = 0; u < w->shards->n_units; u++) {
        const struct weft_unit *unit = &w->shards->units[u];
        for (int32_t i = 0; i < unit->n_layers; i++)
            if (unit->layers[i] == layer && !unit->reads_in_backward[i]) return false;
    }
    return true;
}

/* The levels of a layer: those of the config that backward can restore, that free bytes, and that
 * have times. If none of the config's has times, the problem refuses them. Without a level the
 * layer keeps all. */
static int levels_of(const struct weft_weigher *w, int32_t layer,
                     const struct weft_layer_work *work)
{
    const uint8_t *asked = w->options->recomputes;
    const int none = 1 << WEFT_RECOMPUTE_NONE, all = asked == NULL ? 0 : asked[layer];
    const int timed = all & w->timed[layer];
    const int offered = (timed & ~none) != 0 ? timed : all;
    int levels = all & none;
    for (int level = WEFT_RECOMPUTE_FIRST; level < WEFT_RECOMPUTE_COUNT; level++) {
        const struct weft_layer_split *split = &work->splits[level];
        if ((offered & 1 << level) == 0 || !split->possible) continue;
        if (weft_arena_round(split->kept_bytes) < weft_arena_round(work->saved_bytes))
            levels |= 1 << level;
    }
    return (levels & ~none) != 0 && may_restore(w, layer, work) ? levels : none;
}

/* Locations of a layer's saved activations, and of its input if that is a decision. */
static int saved_locations_of(const struct weft_weigher *w)
{
    const int locations = w->options->saved_locations;
    return locations != 0 ? locations : 1 << WEFT_LOCATION_DEVICE;
}

static int input_locations_of(const struct weft_weigher *w, int32_t layer)
{
    return weft_weigh_decides_input(w, layer) ? w->options->input_locations
                                              : 1 << WEFT_LOCATION_DEVICE;
}

/* Whether the input is worth a move next to the rest of a choice. A byte of the input frees as much
 * as a byte of saved activations and moves as fast. So a layer that keeps saved activations on the
 * device moves some of those first, if it may. */
static bool is_input_last(const struct weft_layer_work *work, int saved_locations,
                          struct weft_layer_choice choice)
{
    const struct weft_layer_work at = weft_layer_work_at(work, choice.recompute);
    return at.saved_bytes == 0 || choice.saved_location != WEFT_LOCATION_DEVICE ||
           (saved_locations & ~(1 << WEFT_LOCATION_DEVICE)) == 0;
}

/* Whether a layer may have an alternative: the config gives locations and levels. Whole
 * recomputation leaves nothing saved to offload, so it goes with the device alone. */
static bool allows_choice(const struct weft_weigher *w, int32_t layer, int levels,
                          struct weft_layer_choice choice)
{
    const struct weft_layer_work *work = &w->works[layer];
    const int locations = saved_locations_of(w), inputs = input_locations_of(w, layer);
    const bool whole = choice.recompute == WEFT_RECOMPUTE_WHOLE || work->saved_bytes == 0;
    if ((levels & 1 << choice.recompute) == 0 || (inputs & 1 << choice.input_location) == 0)
        return false;
    if (choice.input_location != WEFT_LOCATION_DEVICE &&
        (inputs & 1 << WEFT_LOCATION_DEVICE) != 0 && !is_input_last(work, locations, choice))
        return false;
    return whole ? choice.saved_location == WEFT_LOCATION_DEVICE
                 : (locations & 1 << choice.saved_location) != 0;
}

/* The last layer needs its saved activations and its input at once. */
static bool is_last(const struct weft_weigher *w, int32_t layer)
{
    return layer + 1 >= w->model->n_layers;
}

bool weft_weigh_decides_input(const struct weft_weigher *w, int32_t layer)
{
    const bool host = (w->options->input_locations & 1 << WEFT_LOCATION_HOST) != 0;
    return host && layer > 0 && !is_last(w, layer) && w->works[layer - 1].output_bytes > 0 &&
           (w->works[layer].backward_reads_input || w->works[layer - 1].backward_reads_output);
}

bool weft_weigh_decides_saved(const struct weft_weigher *w, int32_t layer)
{
    const bool host = (w->options->saved_locations & 1 << WEFT_LOCATION_HOST) != 0;
    const struct weft_layer_work *work = &w->works[layer];
    return work->saved_bytes > 0 && !is_last(w, layer) &&
           (host || levels_of(w, layer, work) != 1 << WEFT_RECOMPUTE_NONE ||
            weft_weigh_decides_input(w, layer));
}

struct weft_window weft_weigh_input_reads(const struct weft_weigher *w, int32_t layer,
                                          int32_t micro)
{
    const int32_t *backward = w->period->backward + micro * w->model->n_layers;
    const bool before = w->works[layer - 1].backward_reads_output;
    const bool own = w->works[layer].backward_reads_input;
    return (struct weft_window){backward[own ? layer : layer - 1],
                                backward[before ? layer - 1 : layer]};
}

/* Adds the bytes by which dropped ones enlarge a temporary buffer of one slot. Both sizes are
 * rounded as the lowering rounds the buffer. */
static void hold_dropped(struct weft_weigher *w, struct weft_hold *holds, int32_t *n, int32_t slot,
                         int64_t plain_bytes, int64_t bytes)
{
    weft_weigh_hold(w, holds, n, WEFT_CATEGORY_TEMPORARY, slot, slot,
                    weft_arena_round(bytes) - weft_arena_round(plain_bytes));
}

/* Adds the bytes of an offloaded buffer on the host, which are held all the time: of one micro-step
 * after the other, or of all of them. */
static void hold_in_tier(struct weft_weigher *w, struct weft_hold *holds, int32_t *n,
                         enum weft_location location, int64_t bytes)
{
    if (bytes == 0) return;
    w->overflow |= !weft_checked_round_up(bytes, WEFT_HOST_PAGE_BYTES, &bytes) ||
                   !weft_checked_mul(bytes, weft_period_places(&w->period->rule), &bytes);
    weft_weigh_hold(w, holds, n, WEFT_CATEGORY_ACTIVATIONS, 0, w->period->n_slots - 1, bytes);
    holds[*n - 1].tier = weft_weigh_tier(w->options, location);
}

/* Holds of a layer's saved activations under a choice: kept between its forward and its backward on
 * the device or elsewhere, and dropped in both. */
static int32_t weigh_saved(struct weft_weigher *w, int32_t layer, struct weft_layer_choice choice,
                           struct weft_hold *holds)
{
    const struct weft_layer_work *work = &w->works[layer];
    const struct weft_layer_work at_level = weft_layer_work_at(work, choice.recompute);
    const bool offloaded = choice.saved_location != WEFT_LOCATION_DEVICE;
    const int64_t bytes = at_level.saved_bytes;
    int32_t n = 0;
    for (int32_t micro = 0; micro < w->period->rule.n_micro; micro++) {
        const int32_t at = micro * w->model->n_layers + layer;
        const int32_t forward = w->period->forward[at], backward = w->period->backward[at];
        weft_weigh_hold(w, holds, &n, WEFT_CATEGORY_ACTIVATIONS, forward,
                        offloaded ? forward : backward, bytes);
        if (offloaded)
            weft_weigh_hold(w, holds, &n, WEFT_CATEGORY_ACTIVATIONS, backward, backward, bytes);
        hold_dropped(w, holds, &n, forward, work->forward_temporary_bytes,
                     at_level.forward_temporary_bytes);
        hold_dropped(w, holds, &n, backward, work->backward_temporary_bytes,
                     at_level.backward_temporary_bytes);
    }
    if (offloaded) hold_in_tier(w, holds, &n, choice.saved_location, bytes);
    return n;
}

/* Holds of a layer's input from the forward before it to its last reader, without the slots in
 * which it is on the host. */
static int32_t weigh_input(struct weft_weigher *w, int32_t layer, enum weft_location location,
                           struct weft_hold *holds)
{
    const int64_t bytes = w->works[layer - 1].output_bytes;
    const bool offloaded = location != WEFT_LOCATION_DEVICE;
    int32_t n = 0;
    for (int32_t micro = 0; micro < w->period->rule.n_micro; micro++) {
        const int32_t *forward = w->period->forward + micro * w->model->n_layers;
        const struct weft_window reads = weft_weigh_input_reads(w, layer, micro);
        weft_weigh_hold(w, holds, &n, WEFT_CATEGORY_ACTIVATIONS, forward[layer - 1],
                        offloaded ? forward[layer] : reads.last, bytes);
        if (offloaded)
            weft_weigh_hold(w, holds, &n, WEFT_CATEGORY_ACTIVATIONS, reads.first, reads.last,
                            bytes);
    }
    if (offloaded) hold_in_tier(w, holds, &n, location, bytes);
    return n;
}

static enum weft_status weigh_layer(struct weft_weigher *w, int32_t l, struct weft_error *err)
{
    /* Kept in forward and backward, dropped in both, and the input twice; on the host, both. */
    enum { OF_MICRO_STEP = 6, THERE = 2 };
    struct weft_weighed_layer *layer = &w->weights->layers[w->weights->n_layers++];
    const struct weft_layer_work *work = &w->works[l];
    const size_t most = OF_MICRO_STEP * (size_t)w->period->rule.n_micro + THERE;
    const int levels = levels_of(w, l, work);
    layer->layer = l;
    for (int number = 0; number < WEFT_LAYER_CHOICES; number++) {
        struct weft_layer_choice choice;
        if (!weft_layer_choice_at(number, &choice) || !allows_choice(w, l, levels, choice))
            continue;
        struct weft_weighed_saved *to = &layer->strategies[layer->n_strategies++];
        to->choice = choice;
        to->saved_bytes = weft_layer_work_at(work, choice.recompute).saved_bytes;
        to->input_bytes = weft_weigh_decides_input(w, l) ? w->works[l - 1].output_bytes : 0;
        to->holds = weft_pool_array(&w->weights->pool, most, sizeof *to->holds);
        if (to->holds == NULL) return weft_fail_memory(err, "weights");
        to->n_holds = weigh_saved(w, l, choice, to->holds);
        if (to->input_bytes > 0)
            to->n_holds += weigh_input(w, l, choice.input_location, to->holds + to->n_holds);
    }
    return WEFT_OK;
}

enum weft_status weft_weigh_layers(struct weft_weigher *w, struct weft_error *err)
{
    const int32_t n_layers = w->model->n_layers;
    w->weights->layers =
        weft_pool_array(&w->weights->pool, (size_t)n_layers, sizeof *w->weights->layers);
    if (w->weights->layers == NULL) return weft_fail_memory(err, "weights");
    for (int32_t l = 0; l < n_layers; l++)
        if (weft_weigh_decides_saved(w, l) || weft_weigh_decides_input(w, l))
            WEFT_TRY(weigh_layer(w, l, err));
    return WEFT_OK;
}
