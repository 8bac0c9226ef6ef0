/* SPDX-License-Identifier: Apache-2.0 */
/* Levels of recomputation: which groups of saved values each keeps. From all saved values on, the
 * chain drops next the group that is cheapest to restore for each byte. LIGHT, MEDIUM and DEEP are
 * the corners of its lower hull that leave the smallest area between them and the hull: with these
 * levels, layers of one kind lose least at any limit. */
#include "layers/recipe/derive.h"

enum { DERIVED = 3, GROUPS = 2 * WEFT_RECIPE_STEPS, CORNERS = GROUPS + 1 };
/* Names of 1, 2 or 3 corners between the ends. */
static const enum weft_recompute derived[DERIVED + 1][DERIVED] = {
    [1] = {WEFT_RECOMPUTE_MEDIUM},
    [2] = {WEFT_RECOMPUTE_LIGHT, WEFT_RECOMPUTE_DEEP},
    [3] = {WEFT_RECOMPUTE_LIGHT, WEFT_RECOMPUTE_MEDIUM, WEFT_RECOMPUTE_DEEP},
};

/* Groups that are kept, their bytes, and the cost of restoring the others in flops. */
struct corner {
    uint64_t keeps;
    double bytes, cost;
};

/* Bytes of columns of a value. */
static double span_bytes(const struct weft_walk *walk, const struct weft_span *span)
{
    if (span->value == WEFT_WALK_NONE) return 0;
    const struct weft_value *value = &walk->values[span->value];
    return (double)value->rows * (double)weft_span_width(span) *
           (double)weft_value_element(walk, value);
}

static double value_bytes(const struct weft_walk *walk, int32_t value)
{
    const struct weft_span whole = {value, 0, walk->values[value].columns};
    return span_bytes(walk, &whole);
}

/* Cost of restoring a step: its flops, or its traffic if that takes longer. */
static double step_cost(const struct weft_walk *walk, const struct weft_walk_step *step)
{
    if (step->restore == WEFT_RESTORE_NONE) return 0;
    if (step->restore == WEFT_RESTORE_THEN)
        return WEFT_FLOPS_A_BYTE * 2 * value_bytes(walk, step->out[1]);
    double bytes = span_bytes(walk, &step->add);
    for (int32_t i = 0; i < step->n_in; i++)
        bytes += span_bytes(walk, &step->in[i]);
    for (int32_t i = 0; i < step->n_out; i++)
        bytes += value_bytes(walk, step->out[i]);
    for (int32_t i = 0; i < step->n_statistics; i++)
        bytes += value_bytes(walk, step->statistics[i]);
    bytes += weft_step_weights(walk, step) * (double)weft_dtype_bytes(walk->batch.compute);
    const double flops = step->op->counts ? step->op->flops(walk, step) : 0;
    return flops > WEFT_FLOPS_A_BYTE * bytes ? flops : WEFT_FLOPS_A_BYTE * bytes;
}

static struct corner corner_of(struct weft_walk *walk, uint64_t keeps)
{
    struct corner out = {.keeps = keeps};
    weft_walk_drop(walk, keeps);
    for (int32_t i = 1; i < walk->n_values; i++)
        if (walk->values[i].place == i && walk->values[i].location == WEFT_VALUE_KEPT)
            out.bytes += (double)weft_walk_bytes(walk, &walk->values[i]);
    for (int32_t i = 0; i < walk->n_steps; i++)
        out.cost += step_cost(walk, &walk->steps[i]);
    return out;
}

/* Groups that a level may keep or drop. */
static uint64_t all_groups(struct weft_walk *walk)
{
    uint64_t groups = 0;
    weft_walk_drop(walk, 0);
    for (int32_t i = 1; i < walk->n_values; i++)
        if (walk->values[i].place == i && walk->values[i].location == WEFT_VALUE_DROPPED &&
            weft_walk_is_read(walk, i))
            groups |= weft_walk_group(walk, &walk->values[i]);
    return groups;
}

/* True if going from `from` to a costs less for each byte than going to b. */
static bool is_cheaper(const struct corner *from, const struct corner *a, const struct corner *b)
{
    return (a->cost - from->cost) * (from->bytes - b->bytes) <
           (b->cost - from->cost) * (from->bytes - a->bytes);
}

/* Drops group after group; returns the corners of the chain's lower hull, which begins with all. */
static int32_t list_corners(struct weft_walk *walk, uint64_t groups, struct corner out[CORNERS])
{
    struct corner last = corner_of(walk, groups);
    int32_t n = 0;
    out[n++] = last;
    while (last.keeps != 0) {
        struct corner best = {0};
        bool found = false;
        for (uint64_t group = 1; group != 0; group <<= 1) {
            if ((last.keeps & group) == 0) continue;
            const struct corner at = corner_of(walk, last.keeps & ~group);
            if (found && !is_cheaper(&last, &at, &best)) continue;
            best = at;
            found = true;
        }
        last = best;
        while (n > 1 && is_cheaper(&out[n - 2], &last, &out[n - 1]))
            n--;
        out[n++] = last;
    }
    return n;
}

/* Twice the area under the line between two corners. */
static double area_between(const struct corner *a, const struct corner *b)
{
    return (a->bytes - b->bytes) * (a->cost + b->cost);
}

/* Chooses up to DERIVED corners between the ends, with the least area under the line through all
 * chosen ones; returns their number. */
static int32_t choose_corners(const struct corner *corners, int32_t n, int32_t out[DERIVED])
{
    double least[DERIVED + 1][CORNERS]; /* by chosen ones before: area up to the corner */
    int32_t from[DERIVED + 1][CORNERS];
    const int32_t chosen = n - 2 < DERIVED ? n - 2 : DERIVED;
    if (chosen < 1) return 0;
    for (int32_t i = 1; i < n; i++)
        least[0][i] = area_between(&corners[0], &corners[i]);
    for (int32_t k = 1; k <= chosen; k++) {
        for (int32_t i = k + 1; i < n; i++) {
            from[k][i] = -1;
            for (int32_t j = k; j < i; j++) {
                const double area = least[k - 1][j] + area_between(&corners[j], &corners[i]);
                if (from[k][i] >= 0 && area >= least[k][i]) continue;
                least[k][i] = area;
                from[k][i] = j;
            }
        }
    }
    int32_t at = n - 1;
    for (int32_t k = chosen; k > 0; k--)
        out[k - 1] = at = from[k][at];
    return chosen;
}

struct weft_walk_levels weft_walk_levels(const struct weft_walk *walk)
{
    struct weft_walk_levels out = {.possible = 1u << WEFT_RECOMPUTE_NONE};
    struct weft_walk own = *walk;
    struct corner corners[CORNERS];
    int32_t chosen[DERIVED];
    own.level = WEFT_RECOMPUTE_WHOLE;
    const uint64_t groups = all_groups(&own);
    out.keeps[WEFT_RECOMPUTE_NONE] = groups;
    for (int32_t i = 0; i < walk->n_steps; i++)
        if (walk->steps[i].op->has_weight)
            out.keeps[WEFT_RECOMPUTE_SELECTIVE] |= groups & UINT64_C(1) << i;
    const uint64_t selective = out.keeps[WEFT_RECOMPUTE_SELECTIVE];
    if (groups != 0) out.possible |= 1u << WEFT_RECOMPUTE_WHOLE;
    if (selective != 0 && selective != groups) out.possible |= 1u << WEFT_RECOMPUTE_SELECTIVE;
    const int32_t n = choose_corners(corners, list_corners(&own, groups, corners), chosen);
    for (int32_t i = 0; i < n; i++) {
        const uint64_t keeps = corners[chosen[i]].keeps;
        if (keeps == selective) continue;
        out.keeps[derived[n][i]] = keeps;
        out.possible |= 1u << derived[n][i];
    }
    return out;
}

/* Appends the step's kept values: "ln1 (mean, rstd, output)", or the name of its output. */
static void name_step(const struct weft_walk *walk, const struct weft_walk_step *step, bool *named,
                      struct weft_text *out)
{
    int32_t n = 0;
    for (int32_t i = 0; i < step->n_statistics; i++) {
        const struct weft_value *value = &walk->values[step->statistics[i]];
        if (walk->values[value->place].location != WEFT_VALUE_KEPT) continue;
        if (n == 0) weft_text_addf(out, "%s%s", *named ? ", " : "", value->name);
        weft_text_addf(out, "%s%s", n++ == 0 ? " (" : ", ", value->suffix);
    }
    for (int32_t i = 0; i < step->n_out; i++) {
        const struct weft_value *value = &walk->values[step->out[i]];
        if (value->place != step->out[i] || value->location != WEFT_VALUE_KEPT) continue;
        if (n > 0)
            weft_text_add(out, ", output");
        else
            weft_text_addf(out, "%s%s", *named ? ", " : "", value->name);
        *named = true;
    }
    if (n > 0) weft_text_add(out, ")");
    *named = *named || n > 0;
}

void weft_recipe_name_kept(const struct weft_layer *layer, const struct weft_batch *batch,
                           enum weft_recompute level, struct weft_text *out)
{
    struct weft_walk walk;
    struct weft_error unsaid = {0};
    bool named = false;
    if (weft_walk_derive(layer, batch, level, &walk, &unsaid) != WEFT_OK) return;
    for (int32_t i = 0; i < walk.n_steps; i++)
        name_step(&walk, &walk.steps[i], &named, out);
    if (!named) weft_text_add(out, "the layer's input alone");
}
