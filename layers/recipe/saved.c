/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/recipe/derive.h"
#include "layers/shared/place.h"

static void need_value(struct weft_walk *walk, const struct weft_walk_step *step, unsigned reads)
{
    for (int32_t i = 0; i < step->n_in; i++)
        if ((reads & (unsigned)WEFT_STEP_IN0 << i) != 0)
            walk->values[step->in[i].value].is_needed = true;
    if ((reads & WEFT_STEP_OUT0) != 0) walk->values[step->out[0]].is_needed = true;
    for (int32_t i = 0; i < step->n_statistics && (reads & WEFT_STEP_STATS) != 0; i++)
        walk->values[step->statistics[i]].is_needed = true;
}

/* Values that backward of the step reads. A frozen product has no gradient of its weight, for which
 * others read the input. */
static unsigned reads_of(const struct weft_walk *walk, const struct weft_walk_step *step)
{
    const unsigned reads = step->op->reads(walk, step);
    const bool frozen = walk->layer->frozen && step->op->has_weight;
    return frozen ? reads & ~(unsigned)WEFT_STEP_IN0 : reads;
}

static void find_needed(struct weft_walk *walk)
{
    for (int32_t i = 0; i < walk->n_steps; i++)
        need_value(walk, &walk->steps[i], reads_of(walk, &walk->steps[i]));
    walk->reads_input = walk->values[0].is_needed;
    walk->reads_output = walk->output != WEFT_WALK_NONE && walk->values[walk->output].is_needed;
}

/* An output takes the place of its input if the op can, no other step reads the input, and no
 * backward does. The layer's input and output are places of their own: restoring writes neither. */
static enum weft_status merge_places(struct weft_walk *walk, struct weft_error *err)
{
    for (int32_t i = 0; i < walk->n_steps; i++) {
        struct weft_walk_step *step = &walk->steps[i];
        if (!step->op->in_place) continue;
        const struct weft_value *in = &walk->values[step->in[0].value];
        const struct weft_value *out = &walk->values[step->out[0]];
        const bool is_own = step->in[0].value == 0 || step->out[0] == walk->output;
        step->in_place = !is_own && in->n_readers == 1 && !in->is_needed && in->rows == out->rows &&
                         in->columns == out->columns;
        if (step->in_place)
            walk->values[step->out[0]].place = in->place;
        else if (step->op->is_loss)
            return weft_step_refuse(walk, step, err, "another step reads \"%s\"", in->name);
    }
    return WEFT_OK;
}

bool weft_walk_is_read(const struct weft_walk *walk, int32_t place)
{
    for (int32_t i = 0; i < walk->n_values; i++)
        if (walk->values[i].place == place && walk->values[i].is_needed) return true;
    return false;
}

uint64_t weft_walk_group(const struct weft_walk *walk, const struct weft_value *value)
{
    const struct weft_walk_step *maker = &walk->steps[value->maker];
    const bool is_then = maker->n_out > 1 && value == &walk->values[maker->out[1]];
    return UINT64_C(1) << (value->maker + (is_then && !walk->batch.on_gpu ? WEFT_RECIPE_STEPS : 0));
}

/* True if a level that keeps such groups keeps the place. Values next to the layer's output are
 * kept, as no backward has the output to compute it again. */
static bool keeps_place(const struct weft_walk *walk, const struct weft_value *value,
                        uint64_t keeps)
{
    const bool makes_output =
        walk->output != WEFT_WALK_NONE && walk->values[walk->output].maker == value->maker;
    return walk->level == WEFT_RECOMPUTE_NONE || makes_output ||
           (keeps & weft_walk_group(walk, value)) != 0;
}

static void put_value(struct weft_walk *walk, struct weft_value *value, int64_t *bytes)
{
    value->offset = *bytes;
    *bytes = weft_plus(&walk->fits, *bytes, weft_walk_bytes(walk, value));
}

/* Bytes of the largest scores of a step's forward. */
static int64_t most_forward_scores(struct weft_walk *walk)
{
    int64_t most = 0;
    for (int32_t i = 0; i < walk->n_steps; i++) {
        struct weft_step_scratch scratch = {0};
        const struct weft_op *op = walk->steps[i].op;
        if (op->scratch != NULL) op->scratch(walk, &walk->steps[i], &scratch);
        if (scratch.forward_scores > most) most = scratch.forward_scores;
    }
    return most;
}

/* Places values that only forward reads, by the steps from their maker to their last reader. */
static void place_temporaries(struct weft_walk *walk)
{
    struct weft_part parts[WEFT_WALK_VALUES];
    int32_t of[WEFT_WALK_VALUES], n = 0;
    for (int32_t i = 1; i < walk->n_values; i++) {
        const struct weft_value *value = &walk->values[i];
        if (value->place != i || value->location != WEFT_VALUE_TEMPORARY) continue;
        struct weft_part part = {.bytes = weft_walk_bytes(walk, value), .first = value->maker};
        for (int32_t k = i; k < walk->n_values; k++)
            if (walk->values[k].place == i && walk->values[k].reader > part.last)
                part.last = walk->values[k].reader;
        if (part.last < part.first) part.last = part.first;
        of[n] = i;
        parts[n++] = part;
    }
    walk->forward_scores = weft_place_parts(parts, n);
    if (walk->forward_scores < 0) walk->fits.overflowed = true;
    for (int32_t i = 0; i < n; i++)
        walk->values[of[i]].offset = parts[i].offset;
    walk->forward_bytes = weft_plus(&walk->fits, walk->forward_scores, most_forward_scores(walk));
}

static void find_locations(struct weft_walk *walk, uint64_t keeps)
{
    const int32_t y =
        walk->output == WEFT_WALK_NONE ? WEFT_WALK_NONE : walk->values[walk->output].place;
    for (int32_t i = 1; i < walk->n_values; i++) {
        struct weft_value *value = &walk->values[i];
        const bool is_read = weft_walk_is_read(walk, i);
        if (value->place != i) continue;
        if (i == y)
            value->location = WEFT_VALUE_OUTPUT;
        else if (is_read && keeps_place(walk, value, keeps))
            value->location = WEFT_VALUE_KEPT;
        else if (is_read || walk->level != WEFT_RECOMPUTE_NONE)
            value->location = WEFT_VALUE_DROPPED;
        else
            value->location = WEFT_VALUE_TEMPORARY;
    }
}

/* Saved values lie in the order of steps, statistics before outputs. */
static void place_values(struct weft_walk *walk)
{
    walk->kept_bytes = walk->dropped_bytes = 0;
    for (int32_t i = 1; i < walk->n_values; i++) {
        struct weft_value *value = &walk->values[i];
        if (value->place != i) continue;
        if (value->location == WEFT_VALUE_KEPT) put_value(walk, value, &walk->kept_bytes);
        if (value->location == WEFT_VALUE_DROPPED) put_value(walk, value, &walk->dropped_bytes);
    }
    place_temporaries(walk);
}

/* Marks the places that the step reads and that are not kept: restoring makes them first. */
static void want_inputs(const struct weft_walk *walk, const struct weft_walk_step *step,
                        bool *wanted)
{
    for (int32_t i = -1; i < step->n_in; i++) {
        const int32_t value = i < 0 ? step->add.value : step->in[i].value;
        if (value == WEFT_WALK_NONE) continue;
        const int32_t place = walk->values[value].place;
        if (walk->values[place].location == WEFT_VALUE_DROPPED) wanted[place] = true;
    }
}

/* Finds the steps that restore dropped values, from the last one on. */
static void find_restored(struct weft_walk *walk)
{
    bool wanted[WEFT_WALK_VALUES] = {false};
    for (int32_t i = 1; i < walk->n_values; i++)
        wanted[i] = walk->values[i].location == WEFT_VALUE_DROPPED && weft_walk_is_read(walk, i);
    for (int32_t i = walk->n_steps - 1; i >= 0; i--) {
        struct weft_walk_step *step = &walk->steps[i];
        bool first = false, second = false;
        step->restore = WEFT_RESTORE_NONE;
        for (int32_t k = 0; k < step->n_statistics; k++)
            first = first || wanted[walk->values[step->statistics[k]].place];
        first = first || wanted[walk->values[step->out[0]].place];
        second = step->n_out > 1 && wanted[walk->values[step->out[1]].place];
        if (!first && !second) continue;
        const bool keeps = walk->values[step->out[0]].location == WEFT_VALUE_KEPT;
        step->restore = !first && keeps ? WEFT_RESTORE_THEN : WEFT_RESTORE_ALL;
        if (step->restore == WEFT_RESTORE_ALL) want_inputs(walk, step, wanted);
    }
}

void weft_walk_drop(struct weft_walk *walk, uint64_t keeps)
{
    find_locations(walk, keeps);
    find_restored(walk);
}

void weft_walk_keep(struct weft_walk *walk, enum weft_recompute level, uint64_t keeps)
{
    walk->level = level;
    walk->keeps = keeps;
    weft_walk_drop(walk, keeps);
    place_values(walk);
}

enum weft_status weft_walk_save(struct weft_walk *walk, struct weft_error *err)
{
    struct weft_walk_levels levels = {0};
    find_needed(walk);
    WEFT_TRY(merge_places(walk, err));
    if (walk->level != WEFT_RECOMPUTE_NONE) {
        levels = weft_walk_levels(walk);
        if ((levels.possible & 1u << walk->level) == 0)
            return weft_layer_refuse(err, walk->layer, "it has no level \"%s\" of recomputation",
                                     weft_recompute_names[walk->level]);
    }
    weft_walk_keep(walk, walk->level, levels.keeps[walk->level]);
    return WEFT_OK;
}
