/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/recipe/derive.h"
#include "layers/shared/place.h"

enum { MOST_SPANS = 4 };

/* Gradients of the columns of a place, as far as backward has them. */
struct reach {
    int32_t n;
    struct reach_span {
        int64_t from, to;
        int32_t gradient;
    } spans[MOST_SPANS];
};

struct state {
    struct weft_walk *walk;
    struct weft_error *err;
    int32_t now; /* step of backward */
    struct reach reach[WEFT_WALK_VALUES];
    int32_t own[WEFT_WALK_VALUES]; /* temporary gradient of a place, or 0 */
};

static int32_t add_gradient(struct state *state, int32_t value)
{
    struct weft_walk *walk = state->walk;
    walk->gradients[walk->n_gradients] = (struct weft_gradient){
        .value = value, .into = WEFT_WALK_NONE, .first = state->now, .last = state->now};
    return walk->n_gradients++;
}

/* Backward uses the gradient in this step. */
static void use_gradient(struct state *state, int32_t gradient)
{
    struct weft_gradient *of = &state->walk->gradients[gradient];
    of->last = state->now;
    if (of->into != WEFT_WALK_NONE) use_gradient(state, of->into);
}

static enum weft_status push_span(struct state *state, const struct weft_walk_step *step,
                                  const struct weft_span *span, int32_t gradient)
{
    struct reach *reach = &state->reach[state->walk->values[span->value].place];
    if (reach->n == MOST_SPANS)
        return weft_step_refuse(state->walk, step, state->err,
                                "steps read \"%s\" in more than %d "
                                "parts",
                                state->walk->values[span->value].name, MOST_SPANS);
    reach->spans[reach->n++] = (struct reach_span){span->from, span->to, gradient};
    return WEFT_OK;
}

/* The gradient of all columns of a place; NONE if no gradient reaches it. */
static enum weft_status whole_gradient(struct state *state, const struct weft_walk_step *step,
                                       int32_t place, int32_t *out)
{
    const struct reach *reach = &state->reach[place];
    const struct weft_value *value = &state->walk->values[place];
    int64_t columns = 0;
    *out = reach->n == 0 ? WEFT_WALK_NONE : reach->spans[0].gradient;
    for (int32_t i = 0; i < reach->n; i++) {
        columns += reach->spans[i].to - reach->spans[i].from;
        if (reach->spans[i].gradient != *out)
            return weft_step_refuse(state->walk, step, state->err,
                                    "parts of the gradient of \"%s\" are in two buffers",
                                    value->name);
    }
    if (reach->n > 0 && columns != value->columns && !state->walk->fits.overflowed)
        return weft_step_refuse(state->walk, step, state->err,
                                "steps read %lld of the %lld columns of \"%s\"", (long long)columns,
                                (long long)value->columns, value->name);
    return WEFT_OK;
}

/* The input has the output's gradient as its own. */
static enum weft_status pass_gradient(struct state *state, const struct weft_walk_step *step,
                                      const struct weft_span *span, int32_t gradient)
{
    const struct weft_value *value = &state->walk->values[span->value];
    if (state->reach[value->place].n > 0 || weft_span_width(span) != value->columns)
        return weft_step_refuse(state->walk, step, state->err,
                                "a later step reads \"%s\", so its gradient is a sum that no "
                                "kernel computes",
                                value->name);
    return push_span(state, step, span, gradient);
}

/* Takes the gradient that the columns have already, to be added. */
static enum weft_status take_old(struct state *state, const struct weft_walk_step *step,
                                 int32_t input, int32_t *out)
{
    const struct weft_span *span = &step->in[input];
    const struct weft_value *value = &state->walk->values[span->value];
    struct reach *reach = &state->reach[value->place];
    *out = WEFT_WALK_NONE;
    for (int32_t i = 0; i < reach->n; i++) {
        const struct reach_span *old = &reach->spans[i];
        if (old->from >= span->to || span->from >= old->to) continue;
        if (old->from != span->from || old->to != span->to ||
            (step->op->adds & (unsigned)WEFT_STEP_IN0 << input) == 0)
            return weft_step_refuse(state->walk, step, state->err,
                                    "a later step reads columns of \"%s\" too, and it cannot add "
                                    "to their gradient",
                                    value->name);
        *out = old->gradient;
        use_gradient(state, *out);
        reach->spans[i] = reach->spans[--reach->n];
        return WEFT_OK;
    }
    return WEFT_OK;
}

/* The output's gradient lies among columns of the input's gradient, if the op can and no kernel
 * needs it dense. */
static void hold_gradient(struct state *state, const struct weft_walk_step *step, int32_t made)
{
    struct weft_walk *walk = state->walk;
    struct weft_gradient *held = &walk->gradients[step->turned];
    if (step->turned < WEFT_GRADIENT_GIVEN || held->is_dense || held->into != WEFT_WALK_NONE ||
        held->value != walk->values[step->out[0]].place)
        return;
    held->into = made;
    held->column = step->in[step->op->holds].from;
    walk->gradients[made].first = held->first;
}

/* The gradient of the input is computed: in the buffer of the input's gradient. */
static enum weft_status make_gradient(struct state *state, struct weft_walk_step *step,
                                      int32_t input)
{
    struct weft_walk *walk = state->walk;
    const struct weft_span *span = &step->in[input];
    const int32_t place = walk->values[span->value].place;
    WEFT_TRY(take_old(state, step, input, &step->old[input]));
    int32_t made = place == 0 ? WEFT_GRADIENT_INPUT : state->own[place];
    if (place != 0 && made == 0) {
        made = state->own[place] = add_gradient(state, place);
        if (step->op->holds == input) hold_gradient(state, step, made);
    }
    /* A product's result has a stride, which an old gradient shares. */
    const int32_t old = step->old[input];
    if (!step->op->has_weight || (old != WEFT_WALK_NONE && old != made))
        walk->gradients[made].is_dense = true;
    use_gradient(state, made);
    step->d_in[input] = made;
    return push_span(state, step, span, made);
}

/* If this product is the only reader of an activation, it multiplies by the slope. */
static void find_slope(struct weft_walk *walk, struct weft_walk_step *step)
{
    const struct weft_value *in = &walk->values[step->in[0].value];
    if (!step->op->has_weight || in->maker == WEFT_WALK_NONE || in->n_readers != 1) return;
    struct weft_walk_step *maker = &walk->steps[in->maker];
    if (maker->from->then == WEFT_WORD_NONE || step->in[0].value != maker->out[1] ||
        weft_span_width(&step->in[0]) != in->columns)
        return;
    step->slope = in->maker;
    maker->has_slope = true;
}

/* The output's gradient is turned into the buffer of the input's gradient. */
static enum weft_status turn_apart(struct state *state, struct weft_walk_step *step)
{
    const struct weft_value *in = &state->walk->values[step->in[0].value];
    const struct weft_span whole = {step->in[0].value, 0, in->columns};
    const int32_t place = in->place;
    if (place != 0 && state->own[place] == 0) state->own[place] = add_gradient(state, place);
    step->turned = place == 0 ? WEFT_GRADIENT_INPUT : state->own[place];
    step->d_in[0] = step->turned;
    use_gradient(state, step->turned);
    return pass_gradient(state, step, &whole, step->turned);
}

/* True if an earlier value of another place has the step's gradient as its own too: the other input
 * of a sum. */
static bool is_shared(const struct state *state, const struct weft_walk_step *step, int32_t place)
{
    const struct weft_walk *walk = state->walk;
    for (int32_t i = 0; i < walk->n_values; i++)
        for (int32_t k = 0; k < state->reach[i].n && i != place; k++)
            if (state->reach[i].spans[k].gradient == step->d_out &&
                walk->values[i].maker < (int32_t)(step - walk->steps))
                return true;
    return false;
}

/* The output's gradient becomes that of the first output or of the input. It stays in its buffer,
 * unless that is given or the step's values are apart. */
static enum weft_status turn_gradient(struct state *state, struct weft_walk_step *step,
                                      int32_t place)
{
    step->turned = step->d_out;
    if (step->op->in_place && !step->in_place) return turn_apart(state, step);
    if (!step->in_place && (step->from->then == WEFT_WORD_NONE || step->has_slope)) return WEFT_OK;
    if (step->d_out < WEFT_GRADIENT_GIVEN || is_shared(state, step, place))
        step->turned = add_gradient(state, place);
    use_gradient(state, step->turned);
    if (!step->in_place) return WEFT_OK;
    step->d_in[0] = step->turned;
    for (int32_t i = 0; i < state->reach[place].n; i++)
        state->reach[place].spans[i].gradient = step->turned;
    return WEFT_OK;
}

static enum weft_status step_gradients(struct state *state, struct weft_walk_step *step)
{
    struct weft_walk *walk = state->walk;
    const int32_t place = walk->values[step->out[step->n_out - 1]].place;
    if (step->op->is_loss) {
        step->d_in[0] = WEFT_GRADIENT_SAVED;
        return push_span(state, step, &step->in[0], WEFT_GRADIENT_SAVED);
    }
    if (step->n_out > 1 && state->reach[walk->values[step->out[0]].place].n > 0)
        return weft_step_refuse(walk, step, state->err, "steps read both of its outputs");
    WEFT_TRY(whole_gradient(state, step, place, &step->d_out));
    if (step->d_out == WEFT_WALK_NONE) return WEFT_OK;
    use_gradient(state, step->d_out);
    WEFT_TRY(turn_gradient(state, step, place));
    for (int32_t i = 0; i < step->n_in && step->op->sums; i++)
        WEFT_TRY(pass_gradient(state, step, &step->in[i], step->turned));
    if (step->op->sums) return WEFT_OK;
    find_slope(walk, step);
    if (step->add.value != WEFT_WALK_NONE)
        WEFT_TRY(pass_gradient(state, step, &step->add, step->turned));
    for (int32_t i = step->n_in - 1; i >= 0; i--) {
        const bool given = walk->values[step->in[i].value].dtype == WEFT_VALUE_INT32;
        const bool turned = i == 0 && step->op->in_place;
        if (!given && !turned) WEFT_TRY(make_gradient(state, step, i));
    }
    return WEFT_OK;
}

/* Gradients by their lives, then scratch of ops: one part of each sort, as large as the largest. */
static void place_gradients(struct weft_walk *walk)
{
    struct weft_part parts[WEFT_WALK_GRADIENTS];
    int32_t of[WEFT_WALK_GRADIENTS], n = 0;
    for (int32_t i = WEFT_GRADIENT_GIVEN; i < walk->n_gradients; i++) {
        const struct weft_gradient *gradient = &walk->gradients[i];
        if (gradient->into != WEFT_WALK_NONE) continue;
        of[n] = i;
        parts[n++] =
            (struct weft_part){.bytes = weft_walk_bytes(walk, &walk->values[gradient->value]),
                               .first = gradient->first,
                               .last = gradient->last};
    }
    int64_t bytes = weft_place_parts(parts, n);
    walk->fits.overflowed |= bytes < 0;
    for (int32_t i = 0; i < n; i++)
        walk->gradients[of[i]].offset = parts[i].offset;
    struct weft_step_scratch most = {0};
    for (int32_t i = 0; i < walk->n_steps; i++) {
        struct weft_step_scratch scratch = {0};
        const struct weft_op *op = walk->steps[i].op;
        if (op->scratch != NULL) op->scratch(walk, &walk->steps[i], &scratch);
        if (scratch.scores > most.scores) most.scores = scratch.scores;
        if (scratch.sums > most.sums) most.sums = scratch.sums;
    }
    walk->scores = bytes;
    if (!weft_checked_round_up(most.scores, WEFT_LAYOUT_ALIGN_BYTES, &most.scores) ||
        !weft_checked_round_up(most.sums, WEFT_LAYOUT_ALIGN_BYTES, &most.sums))
        walk->fits.overflowed = true;
    walk->sums = weft_plus(&walk->fits, bytes, most.scores);
    walk->backward_bytes = weft_plus(&walk->fits, walk->sums, most.sums);
}

enum weft_status weft_walk_add_gradients(struct weft_walk *walk, struct weft_error *err)
{
    struct state state = {.walk = walk, .err = err};
    walk->n_gradients = WEFT_GRADIENT_GIVEN;
    for (int32_t i = 0; i < WEFT_GRADIENT_GIVEN; i++)
        walk->gradients[i] = (struct weft_gradient){.into = WEFT_WALK_NONE};
    walk->gradients[WEFT_GRADIENT_OUTPUT].value = walk->output;
    if (walk->output != WEFT_WALK_NONE) {
        const struct weft_span all = {walk->output, 0, walk->values[walk->output].columns};
        WEFT_TRY(push_span(&state, &walk->steps[walk->n_steps - 1], &all, WEFT_GRADIENT_OUTPUT));
    }
    walk->gradients[WEFT_GRADIENT_SAVED].value = walk->loss;
    for (int32_t i = walk->n_steps - 1; i >= 0; i--, state.now++) {
        struct weft_walk_step *step = &walk->steps[i];
        step->d_out = step->turned = step->slope = WEFT_WALK_NONE;
        for (int32_t k = 0; k < WEFT_STEP_INPUTS; k++)
            step->d_in[k] = step->old[k] = WEFT_WALK_NONE;
        WEFT_TRY(step_gradients(&state, step));
    }
    int32_t given = WEFT_WALK_NONE;
    WEFT_TRY(whole_gradient(&state, &walk->steps[0], 0, &given));
    if (given != WEFT_WALK_NONE && given != WEFT_GRADIENT_INPUT)
        return weft_layer_refuse(err, walk->layer, "no step computes the gradient of \"x\"");
    place_gradients(walk);
    return WEFT_OK;
}
