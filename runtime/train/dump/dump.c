/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/dump/dump.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/numbers.h"
#include "base/text.h"
#include "runtime/arena/arena.h"
#include "runtime/exec/state.h"
#include "runtime/nn/units.h"
#include "runtime/train/dump/npy.h"
#include "runtime/train/dump/values.h"
#include "spec/field.h"
#include "spec/kind.h"

static const char prefix[] = "layer:";

/* A tensor on its way to a file. */
struct copy {
    struct copy *next;
    struct weft_text name;
    int64_t rows, columns, stride; /* elements */
    int32_t n_dims;
    enum weft_dump_number number;
    enum weft_dtype dtype; /* of WEFT_DUMP_COMPUTE */
    double divisor;
    unsigned char bytes[];
};

/* Parameters of a chosen tensor before the step. */
struct parameters {
    float *before; /* [elements]; NULL: not chosen */
};

struct weft_dump {
    struct weft_dump_options options;
    bool *chosen; /* [n_layers] */
    struct copy *first;
    struct parameters *parameters; /* [n_tensors] */
    bool failed;                   /* memory was short for a copy */
};

/* Finds the layer with the next name of the list; -1 without one. */
static int32_t find_layer(const struct weft_model *model, const char *name, size_t length)
{
    for (int32_t l = 0; l < model->n_layers; l++)
        if (strlen(model->layers[l].name) == length &&
            memcmp(model->layers[l].name, name, length) == 0)
            return l;
    return -1;
}

static enum weft_status refuse_name(const struct weft_model *model, const char *name, size_t length,
                                    struct weft_error *err)
{
    char unknown[128];
    const char **names =
        model->n_layers < 1 ? NULL : calloc((size_t)model->n_layers, sizeof *names);
    if (names == NULL) return weft_fail_memory(err, "names of layers");
    for (int32_t l = 0; l < model->n_layers; l++)
        names[l] = model->layers[l].name;
    snprintf(unknown, sizeof unknown, "%.*s", (int)(length < 100 ? length : 100), name);
    const char *nearest = weft_field_nearest(unknown, names, (size_t)model->n_layers);
    enum weft_status status =
        weft_fail(err, WEFT_E_USAGE,
                  "--dump layer:%s: the model has no layer of that name%s%s; its layers are \"%s\" "
                  "to \"%s\"",
                  unknown, nearest != NULL ? ": did you mean " : "", nearest != NULL ? nearest : "",
                  names[0], names[model->n_layers - 1]);
    free(names);
    return status;
}

/* Marks the named layers; `chosen` may be NULL. */
static enum weft_status choose_layers(const struct weft_model *model, const char *list,
                                      bool *chosen, struct weft_error *err)
{
    if (strncmp(list, prefix, strlen(prefix)) != 0)
        return weft_fail(err, WEFT_E_USAGE,
                         "--dump %s: write layer:NAME, with commas between several names", list);
    for (const char *at = list + strlen(prefix);; at++) {
        const size_t length = strcspn(at, ",");
        const int32_t layer = find_layer(model, at, length);
        if (layer < 0) return refuse_name(model, at, length, err);
        if (chosen != NULL) chosen[layer] = true;
        at += length;
        if (*at == '\0') return WEFT_OK;
    }
}

enum weft_status weft_dump_check(const struct weft_model *model, const char *layers,
                                 struct weft_error *err)
{
    return choose_layers(model, layers, NULL, err);
}

static enum weft_status fill_dump(struct weft_dump *dump, struct weft_error *err)
{
    const struct weft_model *model = dump->options.model;
    dump->chosen = calloc((size_t)model->n_layers, sizeof *dump->chosen);
    dump->parameters = calloc((size_t)model->n_tensors, sizeof *dump->parameters);
    if (dump->chosen == NULL || dump->parameters == NULL) return weft_fail_memory(err, "a dump");
    WEFT_TRY(choose_layers(model, dump->options.layers, dump->chosen, err));
    for (int32_t l = 0; l < model->n_layers; l++) {
        const struct weft_layer *layer = &model->layers[l];
        for (int32_t t = 0; dump->chosen[l] && t < layer->n_tensors; t++) {
            struct parameters *of = &dump->parameters[layer->tensors[t]];
            const int64_t n = model->tensors[layer->tensors[t]].elements;
            if (of->before == NULL) of->before = calloc((size_t)n, sizeof *of->before);
            if (of->before == NULL) return weft_fail_memory(err, "parameters of a dump");
        }
    }
    if (mkdir(dump->options.directory, 0777) != 0 && errno != EEXIST)
        return weft_fail(err, WEFT_E_CREATE, "%s: the folder of the dump cannot be made: %s",
                         dump->options.directory, strerror(errno));
    return WEFT_OK;
}

enum weft_status weft_dump_create(const struct weft_dump_options *options, struct weft_dump **out,
                                  struct weft_error *err)
{
    struct weft_dump *dump = calloc(1, sizeof *dump);
    if (dump == NULL) return weft_fail_memory(err, "a dump");
    dump->options = *options;
    enum weft_status status = fill_dump(dump, err);
    if (status == WEFT_OK)
        *out = dump;
    else
        weft_dump_destroy(dump);
    return status;
}

static void drop_copies(struct weft_dump *dump)
{
    while (dump->first != NULL) {
        struct copy *copy = dump->first;
        dump->first = copy->next;
        weft_text_finish(&copy->name);
        free(copy);
    }
}

void weft_dump_forget(struct weft_dump *dump)
{
    drop_copies(dump);
}

void weft_dump_destroy(struct weft_dump *dump)
{
    if (dump == NULL) return;
    drop_copies(dump);
    for (int32_t t = 0; dump->parameters != NULL && t < dump->options.model->n_tensors; t++)
        free(dump->parameters[t].before);
    free(dump->parameters);
    free(dump->chosen);
    free(dump);
}

/* Copies */

static int64_t element_bytes(const struct copy *copy)
{
    return copy->number == WEFT_DUMP_COMPUTE ? weft_dtype_bytes(copy->dtype) : 4;
}

/* Queues a copy of an array with the shape of `like`. The caller names it; NULL without memory. */
static struct copy *push_copy(struct weft_dump *dump, const struct weft_exec_event *event,
                              const struct copy *like, const void *at)
{
    const int64_t bytes = ((like->rows - 1) * like->stride + like->columns) * element_bytes(like);
    struct copy *copy = malloc(sizeof *copy + (size_t)bytes);
    if (copy == NULL) {
        dump->failed = true;
        return NULL;
    }
    *copy = *like;
    copy->next = dump->first;
    dump->first = copy;
    weft_text_init(&copy->name);
    weft_text_addf(&copy->name, "step-%" PRId64 ".", event->step);
    weft_arena_read(event->arena, event->stream, at, bytes, copy->bytes);
    return copy;
}

static void look_at_forward(struct weft_dump *dump, const struct weft_exec_event *event)
{
    const struct weft_nn_call *call = event->call;
    struct weft_dump_value *values = calloc(WEFT_DUMP_VALUES, sizeof *values);
    struct weft_error unsaid = {0};
    int32_t n = 0;
    dump->failed = values == NULL || weft_dump_values(call, values, &n, &unsaid) != WEFT_OK;
    for (int32_t v = 0; v < n && !dump->failed; v++) {
        const struct copy like = {.rows = values[v].rows,
                                  .columns = values[v].columns,
                                  .stride = values[v].stride,
                                  .n_dims = 2,
                                  .number = values[v].number,
                                  .dtype = call->batch.compute,
                                  .divisor = 1};
        struct copy *copy = push_copy(dump, event, &like, values[v].at);
        if (copy != NULL)
            weft_text_addf(&copy->name, "micro-%d.%s.%s", event->micro, call->layer->name,
                           values[v].name);
    }
    free(values);
}

static void look_at_gradients(struct weft_dump *dump, const struct weft_exec_event *event)
{
    const struct weft_nn_call *call = event->call;
    const struct weft_model *model = dump->options.model;
    for (int64_t i = 0; i < event->n_complete; i++) {
        const struct weft_tensor *tensor = &model->tensors[event->complete[i].tensor];
        if (dump->parameters[event->complete[i].tensor].before == NULL) continue;
        const bool flat = tensor->n_dims < 2;
        const struct copy like = {.rows = flat ? 1 : tensor->dims[0],
                                  .columns = flat ? tensor->elements : tensor->dims[1],
                                  .stride = flat ? tensor->elements : tensor->dims[1],
                                  .n_dims = tensor->n_dims,
                                  .number = WEFT_DUMP_COMPUTE,
                                  .dtype = call->gradient_dtype,
                                  .divisor = event->loss_scale};
        struct copy *copy = push_copy(dump, event, &like,
                                      event->base + event->complete[i].state_at *
                                                        weft_dtype_bytes(call->gradient_dtype));
        if (copy == NULL) return;
        weft_text_addf(&copy->name, "group-%d.%s.gradient", event->round, tensor->name);
    }
}

void weft_dump_look(void *context, const struct weft_exec_event *event)
{
    struct weft_dump *dump = context;
    if (event->step < dump->options.first_step || dump->failed) return;
    if (event->backward)
        look_at_gradients(dump, event);
    else if (dump->chosen[event->layer])
        look_at_forward(dump, event);
}

/* Files */

static float value_of(const struct copy *copy, int64_t at)
{
    const unsigned char *from = copy->bytes + at * element_bytes(copy);
    uint16_t narrow;
    int32_t whole;
    float wide;
    if (copy->number == WEFT_DUMP_INT32) {
        memcpy(&whole, from, sizeof whole);
        return (float)whole;
    }
    if (copy->number == WEFT_DUMP_F32 || copy->dtype == WEFT_F32) {
        memcpy(&wide, from, sizeof wide);
        return wide;
    }
    memcpy(&narrow, from, sizeof narrow);
    return copy->dtype == WEFT_BF16 ? weft_bf16_widen(narrow) : weft_f16_widen(narrow);
}

static enum weft_status write_file(const struct weft_dump *dump, const char *name,
                                   const int64_t dims[2], int32_t n_dims, const float *values,
                                   struct weft_error *err)
{
    struct weft_text path;
    weft_text_init(&path);
    weft_text_addf(&path, "%s/%s.npy", dump->options.directory, name);
    enum weft_status status =
        weft_text_ok(&path) ? weft_npy_write(weft_text_chars(&path), dims, n_dims, values, err)
                            : weft_fail_memory(err, "a path");
    weft_text_finish(&path);
    return status;
}

static enum weft_status write_copy(const struct weft_dump *dump, const struct copy *copy,
                                   struct weft_error *err)
{
    const int64_t n = copy->rows * copy->columns;
    const int64_t dims[2] = {copy->n_dims > 1 ? copy->rows : n, copy->columns};
    float *values = malloc((size_t)n * sizeof *values);
    if (values == NULL || !weft_text_ok(&copy->name)) {
        free(values);
        return weft_fail_memory(err, "a dumped tensor");
    }
    for (int64_t r = 0; r < copy->rows; r++)
        for (int64_t c = 0; c < copy->columns; c++)
            values[r * copy->columns + c] =
                (float)((double)value_of(copy, r * copy->stride + c) / copy->divisor);
    enum weft_status status =
        write_file(dump, weft_text_chars(&copy->name), dims, copy->n_dims, values, err);
    free(values);
    return status;
}

/* Walks the parameters of the chosen tensors: reads them, or writes their difference. */
static enum weft_status walk_parameters(struct weft_dump *dump, struct weft_exec *exec,
                                        int64_t written_step, struct weft_error *err)
{
    struct weft_state_cursor cursor = {0};
    struct weft_state_piece piece;
    struct weft_state_access *access = NULL;
    enum weft_status status = weft_exec_state_open(exec, &access, err);
    while (status == WEFT_OK && weft_exec_state_next(exec, &cursor, &piece)) {
        float *before = dump->parameters[piece.tensor].before;
        const struct weft_tensor *tensor = &dump->options.model->tensors[piece.tensor];
        if (before == NULL || piece.state != WEFT_STATE_PARAMETER || !tensor->trainable) continue;
        float *values = malloc((size_t)piece.count * sizeof *values);
        if (values == NULL) {
            status = weft_fail_memory(err, "parameters of a dump");
            break;
        }
        status = weft_exec_state_read(access, &piece, 0, piece.count, values, err);
        for (int64_t i = 0; i < piece.count && status == WEFT_OK; i++)
            before[piece.first + i] =
                written_step > 0 ? values[i] - before[piece.first + i] : values[i];
        free(values);
    }
    weft_exec_state_close(access);
    return status;
}

static enum weft_status write_updates(const struct weft_dump *dump, int64_t step,
                                      struct weft_error *err)
{
    const struct weft_model *model = dump->options.model;
    for (int32_t t = 0; t < model->n_tensors; t++) {
        struct weft_text name;
        if (dump->parameters[t].before == NULL || !model->tensors[t].trainable) continue;
        weft_text_init(&name);
        weft_text_addf(&name, "step-%" PRId64 ".%s.update", step, model->tensors[t].name);
        enum weft_status status =
            write_file(dump, weft_text_chars(&name), model->tensors[t].dims,
                       model->tensors[t].n_dims, dump->parameters[t].before, err);
        weft_text_finish(&name);
        WEFT_TRY(status);
    }
    return WEFT_OK;
}

enum weft_status weft_dump_before(struct weft_dump *dump, struct weft_exec *exec, int64_t step,
                                  struct weft_error *err)
{
    if (step < dump->options.first_step) return WEFT_OK;
    WEFT_TRY(weft_exec_settle(exec, err));
    return walk_parameters(dump, exec, 0, err);
}

enum weft_status weft_dump_after(struct weft_dump *dump, struct weft_exec *exec, int64_t step,
                                 struct weft_error *err)
{
    if (step < dump->options.first_step) return WEFT_OK;
    WEFT_TRY(weft_exec_settle(exec, err));
    if (dump->failed) return weft_fail_memory(err, "copies of the dumped layers");
    WEFT_TRY(walk_parameters(dump, exec, step, err));
    WEFT_TRY(write_updates(dump, step, err));
    enum weft_status status = WEFT_OK;
    for (const struct copy *copy = dump->first; copy != NULL && status == WEFT_OK;
         copy = copy->next)
        status = write_copy(dump, copy, err);
    drop_copies(dump);
    return status;
}
