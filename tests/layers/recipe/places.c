/* SPDX-License-Identifier: Apache-2.0 */
/* Walks in a memory of symbols: each element holds the name of its content, and begins as poison.
 * A step may read only what its operands must hold, so a place that is reused too early, a value
 * that is not restored, or a gradient that misses a part is found. At every level, of the kinds
 * that train and of random recipes. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layers/recipe/op.h"
#include "layers/shared/block.h"
#include "tests/effort.h"
#include "tests/layers/recipe/random.h"

enum buffer { INPUT, OUTPUT, SAVED, TEMPORARY, D_OUTPUT, D_INPUT, BUFFERS };
enum { ELEMENT = 4, POISON = 0 };

struct memory {
    const struct weft_walk *walk;
    const char *name;
    bool backward, has_d_input;
    int64_t elements[BUFFERS];
    uint64_t *words[BUFFERS];
    uint64_t *now;  /* names that a step is about to write, by operand */
    uint64_t stamp; /* of scratch */
};

/* A matrix in a buffer. */
struct place {
    enum buffer buffer;
    int64_t first, rows, columns, stride; /* elements */
};

static uint64_t mix_words(uint64_t x, uint64_t y)
{
    x = (x ^ y) * UINT64_C(0x9E3779B97F4A7C15);
    return (x ^ x >> 29) * UINT64_C(0xBF58476D1CE4E5B9) + 1;
}

static uint64_t value_symbol(int32_t value, int64_t row, int64_t column)
{
    return mix_words(mix_words(mix_words(1, (uint64_t)value), (uint64_t)row), (uint64_t)column);
}

/* The part of a gradient that a step computes. */
/* A sum that rope turned, or that was multiplied by the slope of an activation. */
static uint64_t turned_sum(uint64_t sum, bool by_slope)
{
    return mix_words(mix_words(4, by_slope), sum);
}

static uint64_t part_symbol(int32_t step, int32_t part, int64_t row, int64_t column)
{
    return mix_words(
        mix_words(mix_words(mix_words(2, (uint64_t)step), (uint64_t)part), (uint64_t)row),
        (uint64_t)column);
}

static int64_t stride_of(const struct weft_value *value)
{
    return value->columns + value->gap;
}

static struct place value_place(const struct memory *m, const struct weft_span *span)
{
    const struct weft_value *value = &m->walk->values[span->value];
    const struct weft_value *at = &m->walk->values[value->place];
    const int64_t other = m->backward ? m->walk->backward_bytes : m->walk->forward_bytes;
    struct place place = {INPUT, 0, value->rows, span->to - span->from, stride_of(value)};
    switch (at->location) {
    case WEFT_VALUE_INPUT:
        break;
    case WEFT_VALUE_OUTPUT:
        place.buffer = OUTPUT;
        break;
    case WEFT_VALUE_KEPT:
        place.buffer = SAVED;
        place.first = at->offset / ELEMENT;
        break;
    case WEFT_VALUE_DROPPED:
        place.buffer = TEMPORARY;
        place.first = (weft_dropped_offset(other) + at->offset) / ELEMENT;
        break;
    case WEFT_VALUE_TEMPORARY:
        place.buffer = TEMPORARY;
        place.first = at->offset / ELEMENT;
        break;
    }
    place.first += span->from;
    return place;
}

static struct weft_span whole_span(const struct memory *m, int32_t value)
{
    return (struct weft_span){value, 0, m->walk->values[value].columns};
}

static struct place gradient_place(const struct memory *m, int32_t index,
                                   const struct weft_span *span)
{
    const struct weft_walk *walk = m->walk;
    const struct weft_value *value = &walk->values[span->value];
    const struct weft_gradient *gradient = &walk->gradients[index];
    struct place place = {D_OUTPUT, span->from, value->rows, span->to - span->from,
                          stride_of(value)};
    if (index == WEFT_GRADIENT_OUTPUT) return place;
    if (index == WEFT_GRADIENT_INPUT) {
        place.buffer = D_INPUT;
        return place;
    }
    if (index == WEFT_GRADIENT_SAVED) {
        const struct weft_span saved = {gradient->value, span->from, span->to};
        return value_place(m, &saved);
    }
    if (gradient->into != WEFT_WALK_NONE) {
        const struct weft_gradient *into = &walk->gradients[gradient->into];
        const struct weft_span part = {into->value, gradient->column + span->from,
                                       gradient->column + span->to};
        return gradient_place(m, gradient->into, &part);
    }
    place.buffer = TEMPORARY;
    place.first += gradient->offset / ELEMENT;
    return place;
}

static uint64_t *word_at(const struct memory *m, const struct place *place, int64_t row,
                         int64_t column)
{
    const int64_t at = place->first + row * place->stride + column;
    cr_assert(at >= 0 && at < m->elements[place->buffer],
              "%s: element %lld of buffer %d, which has %lld", m->name, (long long)at,
              (int)place->buffer, (long long)m->elements[place->buffer]);
    return &m->words[place->buffer][at];
}

static bool places_overlap(const struct place *a, const struct place *b)
{
    if (a->buffer != b->buffer) return false;
    for (int64_t i = 0; i < a->rows * a->columns; i++) {
        const int64_t at = a->first + i / a->columns * a->stride + i % a->columns;
        const int64_t off = at - b->first, row = off < 0 ? -1 : off / b->stride;
        if (row >= 0 && row < b->rows && off % b->stride < b->columns) return true;
    }
    return false;
}

static bool equal_places(const struct place *a, const struct place *b)
{
    return a->buffer == b->buffer && a->first == b->first && a->stride == b->stride &&
           a->columns == b->columns;
}

/* Checks that columns of a value hold the value. */
static void read_value(const struct memory *m, const struct weft_span *span, const char *what)
{
    const struct weft_walk *walk = m->walk;
    const struct place place = value_place(m, span);
    const struct weft_value *at = &walk->values[walk->values[span->value].place];
    if (m->backward && walk->level == WEFT_RECOMPUTE_NONE) {
        cr_assert(at->location != WEFT_VALUE_INPUT || walk->reads_input, "%s: reads x", m->name);
        cr_assert(at->location != WEFT_VALUE_OUTPUT || walk->reads_output, "%s: reads y", m->name);
    }
    for (int64_t i = 0; i < place.rows * place.columns; i++) {
        const int64_t row = i / place.columns, column = i % place.columns;
        cr_assert_eq(
            *word_at(m, &place, row, column), value_symbol(span->value, row, span->from + column),
            "%s, level %d: %s, \"%s\" [%lld, %lld] is not there", m->name, (int)walk->level, what,
            walk->values[span->value].name, (long long)row, (long long)(span->from + column));
    }
}

static void write_value(const struct memory *m, int32_t value)
{
    const struct weft_span span = whole_span(m, value);
    const struct place place = value_place(m, &span);
    cr_assert(value == 0 || place.buffer != INPUT, "%s: writes its input", m->name);
    cr_assert(!m->backward || place.buffer != OUTPUT, "%s: backward writes y", m->name);
    for (int64_t i = 0; i < place.rows * place.columns; i++)
        *word_at(m, &place, i / place.columns, i % place.columns) =
            value_symbol(value, i / place.columns, i % place.columns);
}

/* Fills scratch. Its end is within the buffer. */
static void write_scratch(struct memory *m, int64_t offset, int64_t bytes)
{
    const struct place place = {TEMPORARY, offset / ELEMENT, 1, bytes / ELEMENT, bytes / ELEMENT};
    for (int64_t i = 0; i < place.columns; i++)
        *word_at(m, &place, 0, i) = mix_words(3, m->stamp++);
}

static struct weft_step_scratch scratch_of(const struct memory *m,
                                           const struct weft_walk_step *step)
{
    struct weft_step_scratch scratch = {0};
    struct weft_walk copy = *m->walk;
    if (step->op->scratch != NULL) step->op->scratch(&copy, step, &scratch);
    return scratch;
}

/* Runs a step of forward, or its activation alone. */
static void forward_step(struct memory *m, const struct weft_walk_step *step, bool then_only)
{
    const struct weft_walk *walk = m->walk;
    if (then_only) {
        const struct weft_span first = whole_span(m, step->out[0]);
        read_value(m, &first, step->op->name);
        write_value(m, step->out[1]);
        return;
    }
    for (int32_t i = 0; i < step->n_in; i++) {
        const struct weft_span whole = whole_span(m, step->in[i].value);
        read_value(m, step->op == &weft_op_rope ? &whole : &step->in[i], step->op->name);
    }
    if (step->add.value != WEFT_WALK_NONE) read_value(m, &step->add, step->op->name);
    for (int32_t i = 0; i < step->n_out + step->n_statistics; i++) {
        const bool output = i < step->n_out;
        const int32_t value = output ? step->out[i] : step->statistics[i - step->n_out];
        const struct weft_span made = whole_span(m, value);
        const struct place to = value_place(m, &made);
        for (int32_t k = 0; k < step->n_in; k++) {
            const struct place from = value_place(m, &step->in[k]);
            cr_assert(step->op->in_place ? true : !places_overlap(&from, &to), "%s: %s in place",
                      m->name, step->op->name);
        }
        write_value(m, value);
    }
    write_scratch(m, m->backward ? walk->scores : walk->forward_scores,
                  scratch_of(m, step).forward_scores);
}

static uint64_t turned_symbol(const struct memory *m, const struct weft_walk_step *step,
                              int64_t row, int64_t column);

/* The whole gradient of an element: a sum over the steps that read it. */
static uint64_t gradient_symbol(const struct memory *m, int32_t value, int64_t row, int64_t column)
{
    const struct weft_walk *walk = m->walk;
    uint64_t sum = value == walk->output ? part_symbol(-1, 0, row, column) : 0;
    for (int32_t s = 0; s < walk->n_steps; s++) {
        const struct weft_walk_step *step = &walk->steps[s];
        if (step->add.value == value) sum += turned_symbol(m, step, row, column);
        for (int32_t i = 0; i < step->n_in; i++) {
            const struct weft_span *in = &step->in[i];
            const bool whole = step->op == &weft_op_rope || step->op->sums;
            if (in->value != value) continue;
            if (step->op == &weft_op_loss)
                sum += value_symbol(step->out[0], row, column);
            else if (whole)
                sum += turned_symbol(m, step, row, column);
            else if (column >= in->from && column < in->to)
                sum += part_symbol(s, i, row, column - in->from);
        }
    }
    return sum;
}

/* The output's gradient as it is after a step turned it. */
static uint64_t turned_symbol(const struct memory *m, const struct weft_walk_step *step,
                              int64_t row, int64_t column)
{
    const uint64_t whole = gradient_symbol(m, step->out[step->n_out - 1], row, column);
    if (step->op == &weft_op_rope)
        return column >= step->in[0].from && column < step->in[0].to ? turned_sum(whole, false)
                                                                     : whole;
    return step->from->then != WEFT_WORD_NONE ? turned_sum(whole, true) : whole;
}

static bool is_wanted(const struct memory *m, int32_t value)
{
    return m->walk->values[value].trains || m->has_d_input;
}

static int32_t index_of(const struct memory *m, const struct weft_walk_step *step)
{
    return (int32_t)(step - m->walk->steps);
}

static void read_operands(const struct memory *m, const struct weft_walk_step *step)
{
    const unsigned reads = step->op->reads(m->walk, step);
    const bool frozen = m->walk->layer->frozen && step->op->has_weight;
    for (int32_t i = 0; i < step->n_in; i++)
        if ((reads & (unsigned)WEFT_STEP_IN0 << i) != 0 && !frozen)
            read_value(m, &step->in[i], "backward");
    const struct weft_span out = whole_span(m, step->out[0]);
    if ((reads & WEFT_STEP_OUT0) != 0 && !step->has_slope) read_value(m, &out, "backward");
    for (int32_t i = 0; i < step->n_statistics && (reads & WEFT_STEP_STATS) != 0; i++) {
        const struct weft_span statistic = whole_span(m, step->statistics[i]);
        read_value(m, &statistic, "backward");
    }
    if (step->slope == WEFT_WALK_NONE) return;
    const struct weft_span first = whole_span(m, m->walk->steps[step->slope].out[0]);
    read_value(m, &first, "slope");
}

/* Checks the output's gradient, and turns it. */
static void turn_output(const struct memory *m, const struct weft_walk_step *step)
{
    const struct weft_span out = whole_span(m, step->out[step->n_out - 1]);
    const struct place from = gradient_place(m, step->d_out, &out);
    const struct place to = gradient_place(m, step->turned, &out);
    for (int64_t i = 0; i < from.rows * from.columns; i++) {
        const int64_t row = i / from.columns, column = i % from.columns;
        const uint64_t whole = gradient_symbol(m, out.value, row, column);
        cr_assert_eq(*word_at(m, &from, row, column),
                     step->has_slope ? turned_sum(whole, true) : whole,
                     "%s, level %d: the gradient of \"%s\" [%lld, %lld] is not there", m->name,
                     (int)m->walk->level, m->walk->values[out.value].name, (long long)row,
                     (long long)column);
    }
    const bool turns =
        step->op == &weft_op_rope || (step->from->then != WEFT_WORD_NONE && !step->has_slope);
    cr_assert(!turns || to.buffer != D_OUTPUT, "%s: writes its output's gradient", m->name);
    for (int64_t i = 0; turns && i < to.rows * to.columns; i++)
        *word_at(m, &to, i / to.columns, i % to.columns) =
            turned_symbol(m, step, i / to.columns, i % to.columns);
}

/* Kernels of products have a stride of their own, which an old gradient shares. Others write
 * gradients with the input's stride. */
static void check_strides(const struct memory *m, const struct weft_walk_step *step, int32_t input,
                          const struct place *to, const struct place *old)
{
    const struct place in = value_place(m, &step->in[input]);
    const bool strides = step->op->has_weight || to->stride == in.stride || to->rows == 1;
    cr_assert(strides && (old->stride == to->stride || to->rows == 1),
              "%s: step %d writes input %d's gradient with another stride", m->name,
              (int)index_of(m, step), (int)input);
}

/* Writes the gradient of an input, with the old one added. */
static void write_gradient(struct memory *m, const struct weft_walk_step *step, int32_t input)
{
    const struct weft_span *span = &step->in[input];
    const struct weft_span out = whole_span(m, step->out[step->n_out - 1]);
    const struct place to = gradient_place(m, step->d_in[input], span);
    const struct place d_out = gradient_place(m, step->turned, &out);
    const bool holds = step->op->holds == input && equal_places(&to, &d_out);
    cr_assert(holds || !places_overlap(&to, &d_out),
              "%s: step %d writes the gradient that it reads", m->name, (int)index_of(m, step));
    const bool has_old = step->old[input] != WEFT_WALK_NONE;
    const struct place old = has_old ? gradient_place(m, step->old[input], span) : to;
    cr_assert(!has_old || equal_places(&old, &to) || !places_overlap(&old, &to), "%s: old gradient",
              m->name);
    check_strides(m, step, input, &to, &old);
    for (int64_t i = 0; i < to.rows * to.columns; i++) {
        const int64_t row = i / to.columns, column = i % to.columns;
        const uint64_t before = has_old ? *word_at(m, &old, row, column) : 0;
        const uint64_t sum = before + part_symbol(index_of(m, step), input, row, column);
        m->now[i] = step->slope != WEFT_WALK_NONE ? turned_sum(sum, true) : sum;
    }
    for (int64_t i = 0; i < to.rows * to.columns; i++)
        *word_at(m, &to, i / to.columns, i % to.columns) = m->now[i];
}

static void backward_step(struct memory *m, const struct weft_walk_step *step)
{
    bool works = step->n_tensors > 0;
    bool writes[WEFT_STEP_INPUTS] = {false};
    for (int32_t i = 0; i < step->n_in; i++) {
        writes[i] = step->d_in[i] != WEFT_WALK_NONE && is_wanted(m, step->in[i].value) &&
                    (step->d_in[i] != WEFT_GRADIENT_INPUT || m->has_d_input);
        works = works || writes[i];
    }
    if (!works || step->op == &weft_op_loss || step->d_out == WEFT_WALK_NONE) return;
    const struct weft_step_scratch scratch = scratch_of(m, step);
    turn_output(m, step);
    read_operands(m, step);
    write_scratch(m, m->walk->scores, scratch.scores);
    write_scratch(m, m->walk->sums, scratch.sums);
    for (int32_t i = step->n_in - 1; i >= 0 && step->op != &weft_op_rope; i--)
        if (writes[i]) write_gradient(m, step, i);
}

static void check_input_gradient(const struct memory *m)
{
    const struct weft_value *x = &m->walk->values[0];
    const struct weft_span span = whole_span(m, 0);
    const struct place place = gradient_place(m, WEFT_GRADIENT_INPUT, &span);
    const bool wanted = m->has_d_input && x->dtype == WEFT_VALUE_COMPUTE;
    for (int64_t i = 0; wanted && i < x->rows * x->columns; i++) {
        const int64_t row = i / x->columns, column = i % x->columns;
        const uint64_t name = gradient_symbol(m, 0, row, column);
        cr_assert(name == 0 || *word_at(m, &place, row, column) == name,
                  "%s: the gradient of x [%lld, %lld] is not there", m->name, (long long)row,
                  (long long)column);
    }
}

static void poison_buffer(struct memory *m, enum buffer buffer, int64_t elements)
{
    free(m->words[buffer]);
    m->elements[buffer] = elements;
    m->words[buffer] = calloc((size_t)elements + 1, sizeof(uint64_t));
}

static void begin_memory(struct memory *m)
{
    const struct weft_walk *walk = m->walk;
    const struct weft_value *x = &walk->values[0];
    const int64_t y = walk->output == WEFT_WALK_NONE ? 0 : walk->rows * walk->layer->outputs;
    poison_buffer(m, INPUT, x->rows * x->columns);
    poison_buffer(m, OUTPUT, y);
    poison_buffer(m, SAVED, walk->kept_bytes / ELEMENT);
    poison_buffer(m, TEMPORARY,
                  (weft_dropped_offset(walk->forward_bytes) + walk->dropped_bytes) / ELEMENT);
    poison_buffer(m, D_OUTPUT, y);
    poison_buffer(m, D_INPUT, m->has_d_input ? x->rows * x->columns : 0);
    write_value(m, 0);
    for (int64_t i = 0; i < y; i++)
        m->words[D_OUTPUT][i] =
            part_symbol(-1, 0, i / walk->layer->outputs, i % walk->layer->outputs);
}

/* Runs forward, then backward with other temporaries. */
static void run_walk(const struct weft_walk *walk, const char *name, bool has_d_input)
{
    struct memory m = {.walk = walk, .name = name, .has_d_input = has_d_input};
    int64_t most = 1;
    for (int32_t i = 0; i < walk->n_values; i++)
        if (walk->values[i].rows * stride_of(&walk->values[i]) > most)
            most = walk->values[i].rows * stride_of(&walk->values[i]);
    m.now = calloc((size_t)most, sizeof *m.now);
    begin_memory(&m);
    for (int32_t i = 0; i < walk->n_steps; i++)
        forward_step(&m, &walk->steps[i], false);
    m.backward = true;
    poison_buffer(&m, TEMPORARY,
                  (weft_dropped_offset(walk->backward_bytes) + walk->dropped_bytes) / ELEMENT);
    for (int32_t i = 0; i < walk->n_steps; i++)
        if (walk->steps[i].restore != WEFT_RESTORE_NONE)
            forward_step(&m, &walk->steps[i], walk->steps[i].restore == WEFT_RESTORE_THEN);
    for (int32_t i = walk->n_steps - 1; i >= 0; i--)
        backward_step(&m, &walk->steps[i]);
    check_input_gradient(&m);
    for (int b = 0; b < BUFFERS; b++)
        free(m.words[b]);
    free(m.now);
}

/* Each level of the layer; returns false if its recipe is refused. */
static bool check_layer(const struct weft_layer *layer, const char *name, int64_t seq_len)
{
    const struct weft_batch batch = {.samples = 2, .seq_len = seq_len, .compute = WEFT_F32};
    const int levels = layer->kind->recipe->recomputes ? WEFT_RECOMPUTE_COUNT : 1;
    for (int level = 0; level < levels; level++) {
        struct weft_walk walk;
        struct weft_error err = {0};
        const enum weft_status status =
            weft_walk_derive(layer, &batch, (enum weft_recompute)level, &walk, &err);
        if (level > 0 && strstr(err.text, "it has no level") != NULL) continue;
        cr_assert(status == WEFT_OK || (status == WEFT_E_DATA && level == 0), "%s: %s", name,
                  err.text);
        if (status != WEFT_OK || walk.fits.overflowed) return false;
        run_walk(&walk, name, true);
        run_walk(&walk, name, false);
    }
    return true;
}

static struct weft_layer kind_layer(const struct weft_kind *kind)
{
    struct weft_layer layer = {.name = "l",
                               .kind = kind,
                               .tie = -1,
                               .hidden = 12,
                               .outputs = 12,
                               .vocab = 7,
                               .bias = true};
    if (kind->closes_residual) {
        layer.keys[WEFT_BLOCK_HEADS].integer = 3;
        layer.keys[WEFT_BLOCK_FFN].integer = 10;
    }
    if (kind == &weft_kind_positions || kind == &weft_kind_token_types) layer.keys[0].integer = 64;
    weft_layer_complete(&layer);
    if (weft_kind_key(kind, "rope_base") != NULL) {
        layer.keys[WEFT_BLOCK_KV_HEADS].integer = 1;
        layer.keys[WEFT_BLOCK_ROPE_BASE].number = 100;
    }
    return layer;
}

Test(places, of_each_kind_that_trains_hold_their_values)
{
    int32_t n = 0;
    for (int32_t k = 0; k < WEFT_KIND_COUNT; k++) {
        const struct weft_kind *kind = weft_kind_at(k);
        if (!kind->trains) continue;
        struct weft_layer layer = kind_layer(kind);
        cr_assert(check_layer(&layer, kind->type, 5), "%s", kind->type);
        layer.frozen = true;
        cr_assert(check_layer(&layer, kind->type, 3), "%s", kind->type);
        n++;
    }
    cr_assert_geq(n, 11);
}

Test(places, of_random_recipes_hold_their_values)
{
    static struct random_recipe random;
    const int32_t cases = TEST_CASES(1500, 300);
    int32_t n = 0;
    for (int32_t i = 0; i < cases; i++) {
        char name[32];
        snprintf(name, sizeof name, "recipe %d", (int)i);
        random_recipe_make(&random, (uint64_t)i);
        n += check_layer(&random.layer, name, 1 + i % 4);
    }
    cr_assert_gt(n, cases / 2, "only %d of %d are valid", (int)n, (int)cases);
}

/* A spoilt recipe is refused with a reason, or is another valid one. */
Test(places, of_spoilt_recipes_are_refused_or_hold_their_values)
{
    static struct random_recipe random;
    const int32_t cases = TEST_CASES(4000, 800);
    int32_t n = 0;
    for (int32_t i = 0; i < cases; i++) {
        char name[32];
        snprintf(name, sizeof name, "spoilt recipe %d", (int)i);
        random_recipe_make(&random, (uint64_t)i / 3);
        random.drawn += (uint64_t)i;
        for (int32_t k = 0; k < 1 + i % 2; k++)
            random_recipe_spoil(&random);
        n += !check_layer(&random.layer, name, 2);
    }
    cr_assert_gt(n, cases / 4, "only %d of %d are refused", (int)n, (int)cases);
}
