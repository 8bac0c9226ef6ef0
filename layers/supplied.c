/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/supplied.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "layers/shared/keys.h"
#include "spec/names.h"

#define LARGE (INT64_C(1) << 53)
enum { MOST_NAME = 100, MOST_WIDTH = 1 << 24, COMMON_FIELDS = 5 };
_Static_assert(sizeof(union weft_key) == sizeof(int64_t), "keys that are integers are an array");

static const char *const common_fields[COMMON_FIELDS] = {"name", "type", "repeat", "frozen",
                                                         "hidden"};

/* True for a name without dots and dashes: files join types and keys with these. */
static bool is_word(const char *name)
{
    return name != NULL && weft_name_is_good(name, MOST_NAME) && strpbrk(name, ".-") == NULL;
}

static enum weft_status check_key(const struct weft_layer_kind *kind, int32_t k,
                                  struct weft_error *err)
{
    const struct weft_kind_key *key = &kind->keys[k];
    if (!is_word(key->name))
        return weft_fail(err, WEFT_E_USAGE,
                         "layer kind \"%s\": the name of key %d must be of letters, digits and "
                         "\"_\"",
                         kind->type, (int)k);
    for (int i = 0; i < COMMON_FIELDS; i++)
        if (strcmp(key->name, common_fields[i]) == 0)
            return weft_fail(err, WEFT_E_USAGE,
                             "layer kind \"%s\": every layer has \"%s\": give its key another name",
                             kind->type, key->name);
    for (int32_t i = 0; i < k; i++)
        if (strcmp(key->name, kind->keys[i].name) == 0)
            return weft_fail(err, WEFT_E_USAGE, "layer kind \"%s\": two keys are named \"%s\"",
                             kind->type, key->name);
    bool fits = !key->optional || (key->fallback >= key->least && key->fallback <= key->most);
    if (key->least <= key->most && key->least >= -LARGE && key->most <= LARGE && fits)
        return WEFT_OK;
    return weft_fail(err, WEFT_E_USAGE,
                     "layer kind \"%s\": the range of \"%s\", %lld to %lld, is empty, beyond 2^53, "
                     "or without its fallback",
                     kind->type, key->name, (long long)key->least, (long long)key->most);
}

enum weft_status weft_supplied_check(const struct weft_layer_kind *kind,
                                     const struct weft_kinds *others, struct weft_error *err)
{
    if (!is_word(kind->type))
        return weft_fail(err, WEFT_E_USAGE,
                         "a layer kind's type must be of letters, digits and \"_\", at most %d",
                         MOST_NAME);
    if (weft_kind_find(others, kind->type) != NULL)
        return weft_fail(err, WEFT_E_USAGE,
                         "layer kind \"%s\": there is a type of this name already; choose another",
                         kind->type);
    if (kind->shape == NULL || kind->needs == NULL || kind->forward == NULL ||
        kind->backward == NULL)
        return weft_fail(err, WEFT_E_USAGE,
                         "layer kind \"%s\": it needs all of shape, needs, forward and backward",
                         kind->type);
    if (kind->dtypes == 0 || kind->dtypes >> WEFT_DTYPE_COUNT != 0)
        return weft_fail(err, WEFT_E_USAGE,
                         "layer kind \"%s\": dtypes must name what it computes in, such as "
                         "1u << WEFT_F32",
                         kind->type);
    if (kind->n_keys < 0 || kind->n_keys > WEFT_KIND_KEYS)
        return weft_fail(err, WEFT_E_USAGE, "layer kind \"%s\": %d keys; 0 to %d are possible",
                         kind->type, (int)kind->n_keys, WEFT_KIND_KEYS);
    for (int32_t k = 0; k < kind->n_keys; k++)
        WEFT_TRY(check_key(kind, k, err));
    return WEFT_OK;
}

/* Rows of hidden and of the kind's keys, or NULL if memory runs out. */
static struct weft_field *make_keys(const struct weft_layer_kind *theirs, struct weft_pool *pool)
{
    static const struct weft_field hidden = WEFT_ROW_HIDDEN;
    struct weft_field *fields = weft_pool_array(pool, (size_t)theirs->n_keys + 1, sizeof *fields);
    if (fields == NULL) return NULL;
    fields[0] = hidden;
    for (int32_t k = 0; k < theirs->n_keys; k++) {
        const struct weft_kind_key *key = &theirs->keys[k];
        struct weft_field *field = &fields[k + 1];
        field->name = key->name;
        field->kind = WEFT_FIELD_INTEGER;
        field->offset = WEFT_KEY_AT((size_t)k);
        field->least = (double)key->least;
        field->most = (double)key->most;
        field->text = key->text == NULL ? key->name : key->text;
        if (key->optional) {
            field->fallback = weft_pool_format(pool, "%lld", (long long)key->fallback);
            if (field->fallback == NULL) return NULL;
        }
    }
    return fields;
}

struct weft_layer_facts weft_supplied_facts(const struct weft_layer *layer,
                                            const struct weft_batch *batch)
{
    struct weft_layer_facts facts = {.name = layer->name,
                                     .hidden = layer->hidden,
                                     .keys = &layer->keys[0].integer,
                                     .frozen = layer->frozen};
    if (batch == NULL) return facts;
    facts.samples = batch->samples;
    facts.seq_len = batch->seq_len;
    facts.dtype = batch->compute;
    return facts;
}

enum weft_status weft_supplied_verdict(const struct weft_layer *layer, const char *what,
                                       enum weft_status status, const struct weft_error *said,
                                       struct weft_error *err)
{
    if (status == WEFT_OK) return WEFT_OK;
    if ((unsigned)status >= WEFT_STATUS_COUNT) status = WEFT_E_INTERNAL;
    return weft_fail(err, status, "layer \"%s\" (%s): %s", layer->name, layer->kind->supplied->type,
                     said->text[0] != '\0' ? said->text : what);
}

static enum weft_status fail_answer(const struct weft_layer *layer, const char *what,
                                    struct weft_error *err)
{
    return weft_fail(err, WEFT_E_DATA, "layer \"%s\" (%s): %s", layer->name,
                     layer->kind->supplied->type, what);
}

static enum weft_status check_tensors(const struct weft_layer *layer,
                                      const struct weft_layer_shape *shape, struct weft_error *err)
{
    for (int32_t i = 0; i < shape->n_tensors; i++) {
        const struct weft_layer_tensor *tensor = &shape->tensors[i];
        if (tensor->name == NULL || !weft_name_is_good(tensor->name, MOST_NAME))
            return fail_answer(layer,
                               "a tensor's name must be of letters, digits, \"_\", \"-\" and "
                               "\".\", not two in a row nor at an end",
                               err);
        for (int32_t k = 0; k < i; k++)
            if (strcmp(tensor->name, shape->tensors[k].name) == 0)
                return fail_answer(layer, "two of its tensors have one name", err);
        if (tensor->rows < 1 || tensor->rows > INT32_MAX || tensor->columns < 0 ||
            tensor->columns > INT32_MAX)
            return fail_answer(layer,
                               "a tensor's rows must be from 1 to 2^31 - 1, and columns likewise, "
                               "or 0 of a vector",
                               err);
        if ((unsigned)tensor->init >= WEFT_INIT_COUNT || !isfinite(tensor->init_std) ||
            tensor->init_std < 0)
            return fail_answer(layer, "a tensor's initial values make no sense", err);
    }
    return WEFT_OK;
}

static enum weft_status supplied_shape(const struct weft_layer *layer, double residual_std,
                                       struct weft_layer_shape *out, struct weft_error *err)
{
    (void)residual_std;
    const struct weft_layer_kind *kind = layer->kind->supplied;
    const struct weft_layer_facts facts = weft_supplied_facts(layer, NULL);
    struct weft_layer_shape shape = {0};
    struct weft_error said = {0};
    enum weft_status status = kind->shape(kind->context, &facts, &shape, &said);
    WEFT_TRY(weft_supplied_verdict(layer, "its shape function failed", status, &said, err));
    if (shape.outputs == 0) shape.outputs = layer->hidden;
    if (shape.outputs < 1 || shape.outputs > MOST_WIDTH)
        return fail_answer(layer, "its outputs must be from 1 to 2^24, or 0 for hidden", err);
    if (shape.n_tensors < 0 || shape.n_tensors > WEFT_LAYER_TENSORS)
        return fail_answer(layer, "it has more tensors than a layer can have, or less than none",
                           err);
    WEFT_TRY(check_tensors(layer, &shape, err));
    *out = shape;
    return WEFT_OK;
}

static enum weft_status check_dtype(const struct weft_layer *layer, enum weft_dtype dtype,
                                    struct weft_error *err)
{
    uint32_t dtypes = layer->kind->supplied->dtypes;
    if ((dtypes >> dtype & 1u) != 0) return WEFT_OK;
    char names[64] = "";
    for (int i = 0; i < WEFT_DTYPE_COUNT; i++) {
        size_t used = strlen(names);
        if ((dtypes >> i & 1u) == 0) continue;
        snprintf(names + used, sizeof names - used, "%s%s", used > 0 ? ", " : "",
                 weft_dtype_name((enum weft_dtype)i));
    }
    return weft_fail(err, WEFT_E_DATA,
                     "layer \"%s\" (%s): it computes in %s, and train.precision.compute is %s",
                     layer->name, layer->kind->supplied->type, names, weft_dtype_name(dtype));
}

static enum weft_status ask_needs(const struct weft_layer *layer, const struct weft_batch *batch,
                                  struct weft_layer_needs *out, struct weft_error *err)
{
    const struct weft_layer_kind *kind = layer->kind->supplied;
    const struct weft_layer_facts facts = weft_supplied_facts(layer, batch);
    struct weft_layer_needs needs = {0};
    struct weft_error said = {0};
    WEFT_TRY(check_dtype(layer, batch->compute, err));
    enum weft_status status = kind->needs(kind->context, &facts, &needs, &said);
    WEFT_TRY(weft_supplied_verdict(layer, "its needs function failed", status, &said, err));
    if (needs.saved_bytes < 0 || needs.forward_temporary_bytes < 0 ||
        needs.backward_temporary_bytes < 0)
        return fail_answer(layer, "it needs less than 0 bytes", err);
    if (!isfinite(needs.forward_flops) || !isfinite(needs.backward_flops) ||
        needs.forward_flops < 0 || needs.backward_flops < 0)
        return fail_answer(layer, "its flops are negative or not finite", err);
    *out = needs;
    return WEFT_OK;
}

/* Elements of all tensors, or 0 with the overflow noted in `sizes`. */
static int64_t parameters_of(struct weft_sizes *sizes, const struct weft_layer_shape *shape)
{
    int64_t sum = 0;
    for (int32_t i = 0; i < shape->n_tensors; i++) {
        const struct weft_layer_tensor *tensor = &shape->tensors[i];
        sum = weft_plus(sizes, sum,
                        weft_times(sizes, tensor->rows, tensor->columns > 0 ? tensor->columns : 1));
    }
    return sum;
}

static enum weft_status supplied_needs(struct weft_subject *subject, struct weft_layer_work *work,
                                       struct weft_error *err)
{
    struct weft_layer_needs needs = {0};
    struct weft_layer_shape shape = {0};
    WEFT_TRY(ask_needs(subject->layer, subject->batch, &needs, err));
    WEFT_TRY(supplied_shape(subject->layer, 0, &shape, err));
    work->saved_bytes = needs.saved_bytes;
    work->forward_temporary_bytes = needs.forward_temporary_bytes;
    work->backward_temporary_bytes = needs.backward_temporary_bytes;
    work->backward_reads_input = needs.backward_reads_input;
    work->backward_reads_output = needs.backward_reads_output;
    work->forward_flops = needs.forward_flops;
    work->backward_flops = needs.backward_flops;
    subject->weights = (double)parameters_of(&subject->sizes, &shape);
    return WEFT_OK;
}

static void supplied_sizes(const struct weft_layer *layer, struct weft_text *out)
{
    const struct weft_layer_kind *theirs = layer->kind->supplied;
    weft_text_addf(out, " hidden=%lld outputs=%lld", (long long)layer->hidden,
                   (long long)layer->outputs);
    for (int32_t k = 0; k < theirs->n_keys; k++)
        weft_text_addf(out, " %s=%lld", theirs->keys[k].name, (long long)layer->keys[k].integer);
}

const struct weft_kind *weft_supplied_wrap(const struct weft_layer_kind *theirs,
                                           struct weft_pool *pool)
{
    struct weft_kind *kind = weft_pool_array(pool, 1, sizeof *kind);
    struct weft_field *keys = make_keys(theirs, pool);
    if (kind == NULL || keys == NULL) return NULL;
    *kind = (struct weft_kind){
        .type = theirs->type,
        .text = "A layer of the caller's own.",
        .keys = keys,
        .n_keys = (size_t)theirs->n_keys + 1,
        .trains = true,
        .cpu_only = true,
        .supplied = theirs,
        .shape = supplied_shape,
        .needs = supplied_needs,
        .add_sizes = supplied_sizes,
    };
    return kind;
}
