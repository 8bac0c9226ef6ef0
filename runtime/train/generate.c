/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/generate.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "layers/recipe/walk.h"
#include "runtime/checkpoint/checkpoint.h"
#include "spec/config_batch.h"
#include "spec/kind.h"

/* Rows of a prompt that run at once. So many rows repay the load of the weights, and their scores
 * still fit. */
enum { PROMPT_ROWS = 128 };

struct weft_generator {
    const struct weft_config *config;
    const struct weft_model *model;
    struct weft_pool pool;
    int64_t step, window;
    struct weft_device *device;
    struct weft_stream *stream;
    struct weft_nn *nn;
    float **tensors; /* [n_tensors] */
    void *saved;     /* of the current layer */
    void *temporary;
    float *flows[2];       /* [window, width]: alternate between layers */
    double *probabilities; /* [vocab] */
    double loss;
    bool caches;                /* every layer works by rows, or keeps data of earlier rows */
    struct weft_nn_cache *kept; /* [n_layers] */
    int64_t n_cached;           /* number of tokens in the caches */
    int32_t *cached;            /* [window] */
    int64_t probabilities_at;   /* in the head's saved bytes, less 1 at the target */
};

static void *take_memory(struct weft_generator *g, int64_t bytes)
{
    return weft_pool_array(&g->pool, bytes > 0 ? (size_t)bytes : 1, 1);
}

static struct weft_batch batch_of(int64_t seq_len)
{
    return (struct weft_batch){.samples = 1, .seq_len = seq_len, .compute = WEFT_F32};
}

/* Allocates buffers for the largest layer at a whole window. */
static enum weft_status make_buffers(struct weft_generator *g, struct weft_error *err)
{
    const struct weft_batch batch = batch_of(g->window);
    int64_t saved = 0, temporary = 0, flow = 0;
    for (int32_t l = 0; l < g->model->n_layers; l++) {
        struct weft_layer_work work;
        WEFT_TRY(weft_layer_work(&g->model->layers[l], &batch, &work, err));
        if (work.saved_bytes > saved) saved = work.saved_bytes;
        if (work.forward_temporary_bytes > temporary) temporary = work.forward_temporary_bytes;
        if (work.output_bytes > flow) flow = work.output_bytes;
    }
    int64_t vocab = g->model->layers[g->model->n_layers - 1].vocab;
    g->saved = take_memory(g, saved);
    g->temporary = take_memory(g, temporary);
    g->flows[0] = take_memory(g, flow);
    g->flows[1] = take_memory(g, flow);
    g->probabilities = take_memory(g, vocab * (int64_t)sizeof *g->probabilities);
    if (g->saved != NULL && g->temporary != NULL && g->flows[0] != NULL && g->flows[1] != NULL &&
        g->probabilities != NULL)
        return WEFT_OK;
    return weft_fail_memory(err, "a sequence");
}

const struct weft_layer *weft_generate_sees_later(const struct weft_model *model)
{
    const struct weft_batch batch = batch_of(1);
    struct weft_walk walk;
    struct weft_error ignored;
    for (int32_t l = 0; l < model->n_layers; l++) {
        const struct weft_layer *layer = &model->layers[l];
        if (layer->kind->recipe != NULL &&
            weft_walk_derive(layer, &batch, WEFT_RECOMPUTE_NONE, &walk, &ignored) == WEFT_OK &&
            walk.sees_later)
            return layer;
    }
    return NULL;
}

/* A model of samples, such as images, reads numbers. */
static enum weft_status check_ends(const struct weft_model *model, struct weft_error *err)
{
    const struct weft_layer *first = &model->layers[0], *last = &model->layers[model->n_layers - 1];
    const bool reads_tokens = first->kind->input == WEFT_READS_TOKENS;
    if (reads_tokens && last->kind->loss == WEFT_LOSS_OF_ROWS) return WEFT_OK;
    return weft_fail(err, WEFT_E_DATA,
                     "the model continues no text%s: it begins with %s (%s) and ends with %s (%s). "
                     "To generate it must begin with an embedding and end with an lm_head",
                     reads_tokens ? "" : ", because it reads numbers of samples and no tokens",
                     first->name, weft_layer_type_of(first), last->name, weft_layer_type_of(last));
}

enum weft_status weft_generate_check_model(const struct weft_model *model, struct weft_error *err)
{
    const struct weft_layer *later = weft_generate_sees_later(model);
    WEFT_TRY(check_ends(model, err));
    if (later == NULL) return WEFT_OK;
    return weft_layer_refuse(err, later,
                             "its attention sees later tokens too, so the model predicts no next "
                             "token: `weft generate` needs causal attention");
}

/* Walks of layers, for a batch of one row: a layer without one cannot keep rows. */
static enum weft_status read_walks(struct weft_generator *g, struct weft_error *err)
{
    const struct weft_batch batch = batch_of(1);
    struct weft_walk walk;
    g->caches = true;
    for (int32_t l = 0; l < g->model->n_layers; l++) {
        const struct weft_layer *layer = &g->model->layers[l];
        g->caches = g->caches && layer->kind->recipe != NULL;
        if (layer->kind->recipe == NULL) continue;
        WEFT_TRY(weft_walk_derive(layer, &batch, WEFT_RECOMPUTE_NONE, &walk, err));
        g->caches = g->caches && walk.by_rows;
        if (walk.most_rows > 0 && walk.most_rows < g->window) g->window = walk.most_rows;
        if (walk.loss != WEFT_WALK_NONE)
            g->probabilities_at = walk.values[walk.values[walk.loss].place].offset;
    }
    return WEFT_OK;
}

static enum weft_status make_caches(struct weft_generator *g, struct weft_error *err)
{
    const int64_t size = sizeof(float);
    const struct weft_batch batch = batch_of(1);
    struct weft_walk walk;
    g->kept = weft_pool_array(&g->pool, (size_t)g->model->n_layers, sizeof *g->kept);
    g->cached = take_memory(g, g->window * (int64_t)sizeof *g->cached);
    void *scores = take_memory(g, PROMPT_ROWS * g->window * size);
    bool made = g->kept != NULL && scores != NULL && g->cached != NULL;
    for (int32_t l = 0; l < g->model->n_layers && made && g->caches; l++) {
        WEFT_TRY(weft_walk_derive(&g->model->layers[l], &batch, WEFT_RECOMPUTE_NONE, &walk, err));
        g->kept[l] = (struct weft_nn_cache){.most_rows = g->window, .scores = scores};
        g->kept[l].rows = take_memory(g, g->window * walk.cache_columns * size);
        made = g->kept[l].rows != NULL;
    }
    return made ? WEFT_OK : weft_fail_memory(err, "the keys and values of a sequence");
}

static enum weft_status read_tensors(struct weft_generator *g, const struct weft_layout *layout,
                                     const struct weft_checkpoint *checkpoint,
                                     struct weft_error *err)
{
    WEFT_TRY(weft_checkpoint_matches(checkpoint, layout, err));
    weft_checkpoint_warn(checkpoint);
    WEFT_TRY(weft_checkpoint_verify(checkpoint, 0, 1, err));
    g->tensors = weft_pool_array(&g->pool, (size_t)g->model->n_tensors, sizeof *g->tensors);
    if (g->tensors == NULL) return weft_fail_memory(err, "the parameters");
    for (int32_t t = 0; t < g->model->n_tensors; t++) {
        int64_t elements = g->model->tensors[t].elements;
        g->tensors[t] = take_memory(g, elements * (int64_t)sizeof(float));
        if (g->tensors[t] == NULL) return weft_fail_memory(err, "the parameters");
        WEFT_TRY(weft_checkpoint_read(checkpoint, layout, t, WEFT_STATE_PARAMETER, 0, elements,
                                      g->tensors[t], err));
    }
    return WEFT_OK;
}

/* Prefers the checkpoint's library, so that one file always gives one text. Uses another only if
 * this build lacks it. */
static enum weft_status open_kernels(struct weft_generator *g, const char *library, int32_t threads,
                                     struct weft_error *err)
{
    struct weft_error other = {0};
    struct weft_nn_options options = {.threads = threads, .gemm = library};
    if (weft_nn_open("cpu", &options, &g->nn, &other) == WEFT_OK) return WEFT_OK;
    options.gemm = "auto";
    return weft_nn_open("cpu", &options, &g->nn, err);
}

static enum weft_status read_checkpoint(struct weft_generator *g, const char *path, int32_t threads,
                                        struct weft_error *err)
{
    struct weft_checkpoint *checkpoint = NULL;
    struct weft_layout *layout = NULL;
    enum weft_status status = weft_checkpoint_open(path, &checkpoint, err);
    if (status == WEFT_OK)
        status = weft_layout_create(g->model, weft_config_states(g->config),
                                    weft_config_nodes(g->config), WEFT_CHECKPOINT_CHUNK_BYTES,
                                    &layout, err);
    if (status == WEFT_OK) status = read_tensors(g, layout, checkpoint, err);
    if (status == WEFT_OK) {
        g->step = checkpoint->manifest->progress.step;
        status = open_kernels(g, checkpoint->manifest->kernels, threads, err);
    }
    weft_layout_destroy(layout);
    weft_checkpoint_close(checkpoint);
    return status;
}

static enum weft_status fill_generator(struct weft_generator *g, const char *path, int32_t threads,
                                       struct weft_error *err)
{
    WEFT_TRY(weft_generate_check_model(g->model, err));
    g->window = g->config->train.seq_len;
    WEFT_TRY(read_walks(g, err));
    WEFT_TRY(read_checkpoint(g, path, threads, err));
    WEFT_TRY(make_buffers(g, err));
    WEFT_TRY(make_caches(g, err));
    WEFT_TRY(weft_device_open("cpu", WEFT_CLOCK_WALL, &g->device, err));
    return weft_stream_create(g->device, "generate", 0, &g->stream, err);
}

enum weft_status weft_generator_create(const struct weft_config *config, const char *path,
                                       int32_t threads, struct weft_generator **out,
                                       struct weft_error *err)
{
    struct weft_generator *g = calloc(1, sizeof *g);
    if (g == NULL) return weft_fail_memory(err, "a generator");
    g->config = config;
    g->model = config->model;
    enum weft_status status = fill_generator(g, path, threads, err);
    if (status != WEFT_OK) {
        weft_generator_destroy(g);
        return status;
    }
    *out = g;
    return WEFT_OK;
}

void weft_generator_destroy(struct weft_generator *g)
{
    if (g == NULL) return;
    weft_stream_destroy(g->stream);
    weft_nn_close(g->nn);
    weft_device_close(g->device);
    weft_pool_finish(&g->pool);
    free(g);
}

int64_t weft_generator_step(const struct weft_generator *g)
{
    return g->step;
}

void weft_generator_forget(struct weft_generator *g)
{
    g->caches = false;
}

/* Runs tokens [before, before + n). The caches hold the first `before`; without caches that is 0.
 * The head gets the last `rows`, with a target each. */
static enum weft_status run_rows(struct weft_generator *g, const int32_t *tokens, int64_t before,
                                 int64_t n, int64_t rows, const int32_t *targets,
                                 struct weft_error *err)
{
    const void *input = tokens + before;
    for (int32_t l = 0; l < g->model->n_layers; l++) {
        const struct weft_layer *layer = &g->model->layers[l];
        bool head = l == g->model->n_layers - 1;
        struct weft_nn_call call = {
            .layer = layer,
            .batch = batch_of(head ? rows : n),
            .input = head ? (const float *)input + (n - rows) * layer->hidden : input,
            .targets = targets,
            .output = g->flows[l % 2],
            .saved = g->saved,
            .temporary = g->temporary,
            .loss_scale = 1,
            .loss = &g->loss,
            .cache = g->caches ? &g->kept[l] : NULL,
        };
        g->kept[l].before = before;
        for (int32_t t = 0; t < layer->n_tensors; t++)
            call.tensors[t] = g->tensors[layer->tensors[t]];
        weft_nn_forward(g->nn, g->stream, &call);
        input = call.output;
    }
    return weft_stream_synchronise(g->stream, err);
}

/* The head's result for the last row is probabilities, less 1 at the target, which is token 0. */
static enum weft_status run_layers(struct weft_generator *g, const int32_t *tokens, int64_t before,
                                   int64_t n, struct weft_error *err)
{
    static const int32_t target = 0;
    return run_rows(g, tokens, before, n, 1, &target, err);
}

int64_t weft_generator_rows(const struct weft_generator *g, int64_t n)
{
    return n < g->window ? n : g->window;
}

/* Rows without a target keep their logits. */
static enum weft_status run_without_targets(struct weft_generator *g, const int32_t *tokens,
                                            int64_t n, struct weft_error *err)
{
    int32_t *targets = malloc((size_t)n * sizeof *targets);
    if (targets == NULL) return weft_fail_memory(err, "the rows of logits");
    for (int64_t i = 0; i < n; i++)
        targets[i] = WEFT_NO_TARGET;
    const bool caches = g->caches;
    g->caches = false;
    const enum weft_status status = run_rows(g, tokens, 0, n, n, targets, err);
    g->caches = caches;
    free(targets);
    return status;
}

enum weft_status weft_generator_logits(struct weft_generator *g, const int32_t *tokens, int64_t n,
                                       float *out, struct weft_error *err)
{
    const struct weft_layer *head = &g->model->layers[g->model->n_layers - 1];
    const int64_t rows = weft_generator_rows(g, n);
    const struct weft_batch batch = batch_of(rows);
    struct weft_walk walk;
    WEFT_TRY(weft_walk_derive(head, &batch, WEFT_RECOMPUTE_NONE, &walk, err));
    WEFT_TRY(run_without_targets(g, tokens + (n - rows), rows, err));
    const struct weft_value *logits = &walk.values[walk.values[walk.loss].place];
    const char *from = (const char *)g->saved + logits->offset;
    const int64_t stride = (logits->columns + logits->gap) * (int64_t)sizeof(float);
    for (int64_t i = 0; i < rows; i++)
        memcpy(out + i * head->vocab, from + i * stride, (size_t)head->vocab * sizeof(float));
    return WEFT_OK;
}

/* Runs new tokens in blocks of rows: many for a prompt, one for each token after it. The last bits
 * of a row may depend on the rows run with it, so a text cut elsewhere may continue differently.
 * Beyond the window every token moves to another place, so nothing can be kept. */
static enum weft_status run_cached(struct weft_generator *g, const int32_t *tokens, int64_t n,
                                   struct weft_error *err)
{
    int64_t known = 0;
    while (known < g->n_cached && known < n - 1 && g->cached[known] == tokens[known])
        known++;
    for (g->n_cached = known; g->n_cached < n;) {
        const int64_t left = n - g->n_cached, rows = left < PROMPT_ROWS ? left : PROMPT_ROWS;
        WEFT_TRY(run_layers(g, tokens, g->n_cached, rows, err));
        memcpy(g->cached + g->n_cached, tokens + g->n_cached, (size_t)rows * sizeof *tokens);
        g->n_cached += rows;
    }
    return WEFT_OK;
}

static enum weft_status run_all(struct weft_generator *g, const int32_t *tokens, int64_t n,
                                struct weft_error *err)
{
    bool caches = g->caches;
    int64_t seen = n < g->window ? n : g->window;
    g->caches = false;
    enum weft_status status = run_layers(g, tokens + (n - seen), 0, seen, err);
    g->caches = caches;
    return status;
}

enum weft_status weft_generator_next(struct weft_generator *g, const int32_t *tokens, int64_t n,
                                     const struct weft_sampling *sampling, int32_t *next,
                                     struct weft_error *err)
{
    const struct weft_layer *head = &g->model->layers[g->model->n_layers - 1];
    WEFT_TRY(g->caches && n <= g->window ? run_cached(g, tokens, n, err)
                                         : run_all(g, tokens, n, err));
    const float *d_logits =
        (const float *)(const void *)((const char *)g->saved + g->probabilities_at);
    for (int64_t i = 0; i < head->vocab; i++) {
        double p = (double)d_logits[i] + (i == 0);
        if (!isfinite(p)) {
            return weft_fail(err, WEFT_E_NUMERIC,
                             "token %" PRId64 " after %" PRId64 " others has a probability that "
                             "is no number: the checkpoint of step %" PRId64 " has diverged. "
                             "Generate from an earlier one",
                             i, n, g->step);
        }
        g->probabilities[i] = p > 0 ? p : 0;
    }
    *next = weft_sample(sampling, g->probabilities, head->vocab, (uint64_t)n);
    return WEFT_OK;
}
