/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layers/recipe/derive.h"
#include "layers/recipe/expression.h"
#include "layers/recipe/kind_json.h"
#include "layers/shared/place.h"

enum weft_status weft_step_refuse(const struct weft_walk *walk, const struct weft_walk_step *step,
                                  struct weft_error *err, const char *format, ...)
{
    char text[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return weft_layer_refuse(err, walk->layer, "steps[%d] (%s): %s", (int)step->index,
                             step->op->name, text);
}

/* Names of expressions. */

static bool is_name(const char *name, const char *text, size_t length)
{
    return strlen(name) == length && memcmp(name, text, length) == 0;
}

static bool find_name(const void *context, const char *name, size_t length, int64_t *out)
{
    const struct weft_walk *walk = context;
    const struct weft_definition *definitions = walk->layer->kind->recipe->definitions;
    for (int32_t i = 0; i < walk->n_definitions; i++) {
        if (!is_name(definitions[i].name, name, length)) continue;
        *out = walk->definitions[i];
        return true;
    }
    if (weft_recipe_find_key(walk->layer, name, length, out)) return true;
    const bool rows = is_name("rows", name, length), samples = is_name("samples", name, length);
    if (!rows && !samples && !is_name("seq_len", name, length)) return false;
    *out = rows ? walk->rows : samples ? walk->batch.samples : walk->batch.seq_len;
    return true;
}

enum weft_status weft_walk_number(struct weft_walk *walk, int32_t step, const char *text,
                                  size_t length, int64_t *out, struct weft_error *err)
{
    const struct weft_names names = {find_name, walk};
    struct weft_expression_fault fault;
    if (weft_expression(text, length, &names, out, &fault)) return WEFT_OK;
    if (!fault.overflowed || walk->layer->kind->identity != NULL)
        return step == WEFT_WALK_NONE
                   ? weft_layer_refuse(err, walk->layer, "%s", fault.text)
                   : weft_layer_refuse(err, walk->layer, "steps[%d]: %s", (int)step, fault.text);
    walk->fits.overflowed = true;
    *out = 0;
    return WEFT_OK;
}

static enum weft_status define_names(struct weft_walk *walk, struct weft_error *err)
{
    const struct weft_definition *definitions = walk->layer->kind->recipe->definitions;
    for (int32_t i = 0; i < WEFT_RECIPE_DEFINITIONS && definitions[i].name != NULL; i++) {
        WEFT_TRY(weft_walk_number(walk, WEFT_WALK_NONE, definitions[i].expression,
                                  strlen(definitions[i].expression), &walk->definitions[i], err));
        walk->n_definitions = i + 1;
    }
    return WEFT_OK;
}

/* Values. */

int64_t weft_value_element(const struct weft_walk *walk, const struct weft_value *value)
{
    return value->dtype == WEFT_VALUE_COMPUTE ? weft_dtype_bytes(walk->batch.compute) : 4;
}

int64_t weft_walk_bytes(struct weft_walk *walk, const struct weft_value *value)
{
    int64_t bytes =
        weft_times(&walk->fits, weft_plus(&walk->fits, value->columns, value->gap),
                   weft_times(&walk->fits, value->rows, weft_value_element(walk, value)));
    if (!weft_checked_round_up(bytes, WEFT_LAYOUT_ALIGN_BYTES, &bytes))
        walk->fits.overflowed = true;
    return bytes;
}

static int32_t find_value(const struct weft_walk *walk, const char *name, size_t length)
{
    for (int32_t i = 0; i < walk->n_values; i++)
        if (walk->values[i].suffix == NULL && is_name(walk->values[i].name, name, length)) return i;
    return WEFT_WALK_NONE;
}

/* Appends "; did you mean \"norm1\"?", or the values so far. */
static void tell_values(const struct weft_walk *walk, const char *name, char *out, size_t bytes)
{
    const char *names[WEFT_WALK_VALUES];
    size_t n = 0, used = 0;
    for (int32_t i = 0; i < walk->n_values; i++)
        if (walk->values[i].suffix == NULL) names[n++] = walk->values[i].name;
    const char *near = weft_field_nearest(name, names, n);
    if (near != NULL) {
        snprintf(out, bytes, "; did you mean \"%.60s\"?", near);
        return;
    }
    out[0] = '\0';
    for (size_t i = 0; i < n && used < bytes; i++)
        used += (size_t)snprintf(out + used, bytes - used, "%s%.60s",
                                 i == 0 ? "; there are " : ", ", names[i]);
}

static enum weft_status add_value(struct weft_walk *walk, struct weft_walk_step *step,
                                  const char *name, const struct weft_value *value, int32_t *out,
                                  struct weft_error *err)
{
    if (name == NULL) return weft_step_refuse(walk, step, err, "an output has no name");
    if (value->suffix == NULL && find_value(walk, name, strlen(name)) != WEFT_WALK_NONE)
        return weft_step_refuse(walk, step, err, "another step makes \"%s\"", name);
    if (walk->n_values == WEFT_WALK_VALUES)
        return weft_step_refuse(walk, step, err, "more than %d values", WEFT_WALK_VALUES);
    *out = walk->n_values;
    struct weft_value *made = &walk->values[walk->n_values++];
    *made = *value;
    made->name = name;
    made->maker = walk->n_steps;
    made->place = *out;
    made->reader = WEFT_WALK_NONE;
    return WEFT_OK;
}

enum weft_status weft_step_check_whole(const struct weft_walk *walk,
                                       const struct weft_walk_step *step, struct weft_error *err)
{
    const struct weft_value *value = &walk->values[step->in[0].value];
    if (weft_span_width(&step->in[0]) == value->columns) return WEFT_OK;
    return weft_step_refuse(walk, step, err, "its input must be all of \"%s\", not columns of it",
                            value->name);
}

enum weft_status weft_step_check_rows(const struct weft_walk *walk,
                                      const struct weft_walk_step *step, struct weft_error *err)
{
    for (int32_t i = 0; i < step->n_in; i++) {
        const struct weft_value *value = &walk->values[step->in[i].value];
        if (value->rows != walk->rows)
            return weft_step_refuse(walk, step, err,
                                    "its input must have a row for each token, and \"%s\" has one "
                                    "for each sample",
                                    value->name);
    }
    return WEFT_OK;
}

enum weft_status weft_step_add_output(struct weft_walk *walk, struct weft_walk_step *step,
                                      int64_t rows, int64_t columns, struct weft_error *err)
{
    const struct weft_value value = {.rows = rows, .columns = columns};
    WEFT_TRY(
        add_value(walk, step, step->from->out[step->n_out], &value, &step->out[step->n_out], err));
    step->n_out++;
    return WEFT_OK;
}

enum weft_status weft_step_add_statistic(struct weft_walk *walk, struct weft_walk_step *step,
                                         const char *suffix, int64_t rows, int64_t columns,
                                         enum weft_value_dtype dtype, struct weft_error *err)
{
    const struct weft_value value = {
        .suffix = suffix, .dtype = dtype, .rows = rows, .columns = columns};
    WEFT_TRY(add_value(walk, step, step->from->out[0], &value,
                       &step->statistics[step->n_statistics], err));
    step->n_statistics++;
    return WEFT_OK;
}

enum weft_status weft_step_add_tensor(struct weft_walk *walk, struct weft_walk_step *step,
                                      int64_t rows, int64_t columns, enum weft_init init,
                                      double std, struct weft_error *err)
{
    const char *name = step->from->tensors[step->n_tensors];
    if (name == NULL)
        return weft_step_refuse(walk, step, err, "tensor %d has no name", (int)step->n_tensors);
    for (int32_t i = 0; i < walk->n_tensors; i++)
        if (strcmp(walk->tensors[i].name, name) == 0)
            return weft_step_refuse(walk, step, err, "another tensor is named \"%s\"", name);
    if (walk->n_tensors == WEFT_LAYER_TENSORS)
        return weft_step_refuse(walk, step, err, "the layer has more than %d tensors",
                                WEFT_LAYER_TENSORS);
    walk->tensors[walk->n_tensors++] =
        (struct weft_layer_tensor){name, rows, columns, init, std, columns > 0};
    step->n_tensors++;
    return WEFT_OK;
}

int64_t weft_step_stripes(struct weft_walk *walk, int64_t rows, int64_t width)
{
    enum { STRIPE_ROWS = 128 }; /* equal to that of runtime/nn/cuda */
    const int64_t stripes = rows / STRIPE_ROWS + (rows % STRIPE_ROWS > 0);
    return weft_times(&walk->fits, weft_times(&walk->fits, stripes, width), (int64_t)sizeof(float));
}

/* Steps. */

/* Reads "qkv" or "qkv[from:to]". */
static enum weft_status read_span(struct weft_walk *walk, struct weft_walk_step *step,
                                  const char *text, struct weft_span *out, struct weft_error *err)
{
    const char *bracket = strchr(text, '[');
    const size_t length = bracket == NULL ? strlen(text) : (size_t)(bracket - text);
    struct weft_span span = {.value = find_value(walk, text, length)};
    if (span.value == WEFT_WALK_NONE) {
        char name[64], near[200];
        snprintf(name, sizeof name, "%.*s", (int)length, text);
        tell_values(walk, name, near, sizeof near);
        return weft_step_refuse(walk, step, err, "no earlier step makes \"%s\"%s", name, near);
    }
    struct weft_value *value = &walk->values[span.value];
    if ((value->dtype == WEFT_VALUE_INT32) != step->op->reads_tokens)
        return weft_step_refuse(walk, step, err,
                                step->op->reads_tokens
                                    ? "its input must be tokens, the \"x\" of a "
                                      "kind with \"input\": \"tokens\""
                                    : "\"%s\" is tokens, which embed alone reads",
                                value->name);
    span.to = value->columns;
    if (bracket != NULL) {
        const char *colon = strchr(bracket, ':'), *end = strchr(bracket, ']');
        if (colon == NULL || end == NULL || end < colon || end[1] != '\0')
            return weft_step_refuse(walk, step, err, "\"%s\" is no value[from:to]", text);
        WEFT_TRY(weft_walk_number(walk, step->index, bracket + 1, (size_t)(colon - bracket) - 1,
                                  &span.from, err));
        WEFT_TRY(weft_walk_number(walk, step->index, colon + 1, (size_t)(end - colon) - 1, &span.to,
                                  err));
        if (!walk->fits.overflowed && (span.from >= span.to || span.to > value->columns))
            return weft_step_refuse(walk, step, err, "\"%s\" is columns %lld to %lld of %lld", text,
                                    (long long)span.from, (long long)span.to,
                                    (long long)value->columns);
    }
    if (value->reader != walk->n_steps) value->n_readers++;
    value->reader = walk->n_steps;
    *out = span;
    return WEFT_OK;
}

static enum weft_status read_inputs(struct weft_walk *walk, struct weft_walk_step *step,
                                    struct weft_error *err)
{
    for (step->n_in = 0; step->n_in < WEFT_STEP_INPUTS; step->n_in++) {
        const char *text = step->from->in[step->n_in];
        if (text == NULL) break;
        WEFT_TRY(read_span(walk, step, text, &step->in[step->n_in], err));
    }
    if (step->n_in != step->op->n_in)
        return weft_step_refuse(walk, step, err, "it has %d inputs and needs %d", (int)step->n_in,
                                (int)step->op->n_in);
    for (int32_t i = 1; i < step->n_in; i++)
        for (int32_t k = 0; k < i; k++)
            if (step->in[i].value == step->in[k].value && step->in[i].from < step->in[k].to &&
                step->in[k].from < step->in[i].to)
                return weft_step_refuse(walk, step, err, "inputs %d and %d share columns", (int)k,
                                        (int)i);
    step->rows = walk->values[step->in[0].value].rows;
    step->add.value = WEFT_WALK_NONE;
    if (step->from->add == NULL) return WEFT_OK;
    if (!step->op->adds_value) return weft_step_refuse(walk, step, err, "it can add no value");
    return read_span(walk, step, step->from->add, &step->add, err);
}

static enum weft_status refuse_kind(const struct weft_walk *walk, const struct weft_walk_step *step,
                                    struct weft_error *err)
{
    char words[100] = "no \"kind\"";
    size_t used = 0;
    for (int word = 1; word < WEFT_WORD_COUNT; word++)
        if ((step->op->kinds & 1u << word) != 0 && used < sizeof words)
            used += (size_t)snprintf(words + used, sizeof words - used, "%s%s",
                                     used == 0 ? "a \"kind\": " : ", ",
                                     weft_word_name((enum weft_word)word));
    return weft_step_refuse(walk, step, err, "it has %s", words);
}

static enum weft_status read_sizes(struct weft_walk *walk, struct weft_walk_step *step,
                                   struct weft_error *err)
{
    static const char *const names[] = {
#define ROW(name, text) #name,
        WEFT_STEP_SIZES(ROW)
#undef ROW
    };
    const struct {
        const char *text;
        int64_t *out;
    } sizes[] = {
#define ROW(name, text) {step->from->name, &step->sizes.name},
        WEFT_STEP_SIZES(ROW)
#undef ROW
    };
    for (int32_t i = 0; i < WEFT_SIZE_COUNT; i++) {
        const unsigned bit = 1u << i;
        if (sizes[i].text == NULL && (step->op->required & bit) == 0) continue;
        if (sizes[i].text == NULL)
            return weft_step_refuse(walk, step, err, "\"%s\" is missing", names[i]);
        if (((step->op->required | step->op->optional) & bit) == 0)
            return weft_step_refuse(walk, step, err, "it has no \"%s\"", names[i]);
        WEFT_TRY(weft_walk_number(walk, step->index, sizes[i].text, strlen(sizes[i].text),
                                  sizes[i].out, err));
    }
    if (step->from->then != WEFT_WORD_NONE && !step->op->has_weight)
        return weft_step_refuse(walk, step, err, "it has no \"then\"");
    const unsigned kinds = step->op->kinds, kind = 1u << step->from->kind;
    if (kinds == 0 ? step->from->kind != WEFT_WORD_NONE : (kinds & kind) == 0)
        return refuse_kind(walk, step, err);
    return WEFT_OK;
}

/* Reads a number, or the key of that name. */
static bool find_number(const struct weft_layer *layer, const char *text, double *out)
{
    char *end;
    const double number = strtod(text, &end);
    const struct weft_field *key = weft_kind_key(layer->kind, text);
    if (end != text && *end == '\0') {
        *out = number;
        return true;
    }
    if (key == NULL || key->kind != WEFT_FIELD_NUMBER) return false;
    *out = *(const double *)(const void *)((const char *)layer + key->offset);
    return true;
}

static enum weft_status read_numbers(struct weft_walk *walk, struct weft_walk_step *step,
                                     struct weft_error *err)
{
    const struct {
        const char *name, *text;
        double *out;
    } numbers[] = {
#define ROW(name, text) {#name, step->from->name, &step->numbers.name},
        WEFT_STEP_NUMBERS(ROW)
#undef ROW
    };
    for (int32_t i = 0; i < WEFT_NUMBER_COUNT; i++) {
        if (numbers[i].text == NULL) continue;
        if ((step->op->numbers & 1u << i) == 0)
            return weft_step_refuse(walk, step, err, "it has no \"%s\"", numbers[i].name);
        if (!find_number(walk->layer, numbers[i].text, numbers[i].out))
            return weft_step_refuse(walk, step, err,
                                    "\"%s\" is \"%s\", which is no number and no "
                                    "key that is one",
                                    numbers[i].name, numbers[i].text);
    }
    return WEFT_OK;
}

static enum weft_status check_add(struct weft_walk *walk, struct weft_walk_step *step,
                                  struct weft_error *err)
{
    if (step->add.value == WEFT_WALK_NONE) return WEFT_OK;
    const struct weft_value *added = &walk->values[step->add.value];
    const struct weft_value *out = &walk->values[step->out[0]];
    if (added->dtype == WEFT_VALUE_COMPUTE && added->rows == out->rows && step->add.from == 0 &&
        step->add.to == added->columns && added->columns == out->columns)
        return WEFT_OK;
    return weft_step_refuse(walk, step, err,
                            "\"add\" needs a whole value of %lld columns, as the result has",
                            (long long)out->columns);
}

static bool depends_on_tensors(const struct weft_walk *walk, const struct weft_walk_step *step)
{
    bool trains = step->n_tensors > 0;
    for (int32_t i = 0; i < step->n_in; i++)
        trains = trains || walk->values[step->in[i].value].trains;
    return trains || (step->add.value != WEFT_WALK_NONE && walk->values[step->add.value].trains);
}

/* Finds whether the step works by rows, and the elements of a row that it caches. */
static void cache_rows(struct weft_walk *walk, struct weft_walk_step *step)
{
    const bool caches = step->op->caches != 0 && step->sizes.causal != 0;
    walk->by_rows = walk->by_rows && (!step->op->mixes_rows || caches);
    walk->sees_later = walk->sees_later || (step->op->caches != 0 && !caches);
    walk->hides = walk->sees_later && walk->batch.hides;
    step->cache_column = walk->cache_columns;
    for (int32_t i = 0; i < step->n_in; i++)
        if ((step->op->caches & (unsigned)WEFT_STEP_IN0 << i) != 0)
            walk->cache_columns =
                weft_plus(&walk->fits, walk->cache_columns, weft_span_width(&step->in[i]));
}

static enum weft_status add_step(struct weft_walk *walk, int32_t index, struct weft_error *err)
{
    const struct weft_recipe_step *from = &walk->layer->kind->recipe->steps[index];
    if (from->when != NULL) {
        int64_t when;
        WEFT_TRY(weft_walk_number(walk, index, from->when, strlen(from->when), &when, err));
        if (when == 0) return WEFT_OK;
    }
    struct weft_walk_step *step = &walk->steps[walk->n_steps];
    step->op = from->op;
    step->from = from;
    step->index = index;
    step->first_tensor = walk->n_tensors;
    WEFT_TRY(read_inputs(walk, step, err));
    WEFT_TRY(read_sizes(walk, step, err));
    WEFT_TRY(read_numbers(walk, step, err));
    WEFT_TRY(step->op->shape(walk, step, err));
    walk->n_products += step->op->has_weight;
    if (walk->n_products > WEFT_RECIPE_PRODUCTS)
        return weft_step_refuse(walk, step, err, "a recipe has at most %d products",
                                WEFT_RECIPE_PRODUCTS);
    WEFT_TRY(check_add(walk, step, err));
    for (int32_t i = step->n_out; i < WEFT_STEP_OUTPUTS; i++)
        if (from->out[i] != NULL)
            return weft_step_refuse(walk, step, err, "it makes no second value \"%s\"",
                                    from->out[i]);
    for (int32_t i = 0; i < step->n_out; i++)
        walk->values[step->out[i]].trains = depends_on_tensors(walk, step);
    cache_rows(walk, step);
    walk->n_steps++;
    return WEFT_OK;
}

/* Every value has a reader, but for a product's result next to its activation. The last step makes
 * the output or a loss. */
static enum weft_status check_whole(struct weft_walk *walk, struct weft_error *err)
{
    walk->output = find_value(walk, "y", 1);
    const struct weft_walk_step *last = &walk->steps[walk->n_steps - 1];
    if (walk->output == WEFT_WALK_NONE && !last->op->is_loss)
        return weft_layer_refuse(err, walk->layer, "no step makes \"y\", and none is a loss");
    if (walk->output == WEFT_WALK_NONE) walk->loss = last->out[0];
    for (int32_t i = 0; i < walk->n_values; i++) {
        const struct weft_value *value = &walk->values[i];
        const bool is_last = value->maker == walk->n_steps - 1;
        const struct weft_walk_step *maker =
            value->maker == WEFT_WALK_NONE ? NULL : &walk->steps[value->maker];
        const bool is_activated = maker != NULL && maker->n_out > 1 && maker->out[0] == i;
        if (value->n_readers == 0 && value->suffix == NULL && i != walk->output && !is_last &&
            !is_activated)
            return weft_layer_refuse(err, walk->layer, "no step reads \"%s\"", value->name);
    }
    if (walk->output == WEFT_WALK_NONE) return WEFT_OK;
    const struct weft_value *y = &walk->values[walk->output];
    const bool fits =
        y->columns == walk->layer->outputs || walk->layer->kind->recipe->outputs_follow;
    if (!fits || y->rows != walk->rows || y->n_readers > 0)
        return weft_layer_refuse(err, walk->layer,
                                 "\"y\" has %lld columns, and the layer %lld outputs; no step may "
                                 "read \"y\"",
                                 (long long)y->columns, (long long)walk->layer->outputs);
    return WEFT_OK;
}

enum weft_status weft_walk_add_steps(struct weft_walk *walk, struct weft_error *err)
{
    const struct weft_recipe *recipe = walk->layer->kind->recipe;
    const bool tokens = walk->layer->kind->input == WEFT_READS_TOKENS;
    WEFT_TRY(define_names(walk, err));
    walk->values[walk->n_values++] = (struct weft_value){
        .name = "x",
        .dtype = tokens ? WEFT_VALUE_INT32 : WEFT_VALUE_COMPUTE,
        .rows = walk->rows,
        .columns = tokens ? 1 : walk->layer->hidden,
        .maker = WEFT_WALK_NONE,
        .reader = WEFT_WALK_NONE,
    };
    if (recipe->n_steps < 1 || recipe->n_steps > WEFT_RECIPE_STEPS)
        return weft_layer_refuse(err, walk->layer, "a recipe has 1 to %d steps", WEFT_RECIPE_STEPS);
    for (int32_t i = 0; i < recipe->n_steps; i++)
        WEFT_TRY(add_step(walk, i, err));
    if (walk->n_steps == 0) return weft_layer_refuse(err, walk->layer, "no step is left");
    return check_whole(walk, err);
}
