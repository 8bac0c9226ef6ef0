/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "base/text.h"
#include "layers/recipe/walk.h"
#include "runtime/nn/cuda/attention_choices.h"
#include "runtime/nn/cuda/kinds.h"
#include "spec/kind.h"

/* Creation and destruction */

static int allocate_words(struct weft_nn_cuda *cuda)
{
    void *found = NULL;
    const int code = cuda->machine->share(WEFT_CUDA_CHECKS * (int64_t)sizeof(uint32_t), &found);
    if (code != 0) return code;
    cuda->found = found;
    memset(cuda->found, 0xff, WEFT_CUDA_CHECKS * sizeof(uint32_t));
    return cuda->machine->allocate(WEFT_CUDA_NORM_BYTES, &cuda->norm);
}

/* Opens the library. "auto" goes on without one that cannot be opened, and *unopened has the
 * reason. */
static enum weft_status open_library(struct weft_nn_cuda *cuda, const char *gemm,
                                     struct weft_error *unopened, struct weft_error *err)
{
    const bool wanted = cuda->ops != NULL && strcmp(gemm, cuda->ops->name) == 0;
    if (cuda->ops == NULL || (!wanted && strcmp(gemm, "auto") != 0)) return WEFT_OK;
    if (wanted) return cuda->ops->open(&cuda->library, err);
    const enum weft_status status = cuda->ops->open(&cuda->library, unopened);
    (void)status;
    return WEFT_OK;
}

static void describe_products(struct weft_nn_cuda *cuda, const struct weft_error *unopened)
{
    const bool failed = unopened->status != WEFT_OK;
    snprintf(cuda->description, sizeof cuda->description, "%s kernels of a GPU (%s)%s%.300s%.300s",
             cuda->plain ? "plain" : "own", cuda->machine->name,
             cuda->library != NULL ? "; products by "
             : failed              ? "; products too, for "
                                   : "",
             cuda->library != NULL ? cuda->ops->title(cuda->library) : "",
             failed ? unopened->text : "");
    cuda->described = strlen(cuda->description);
}

static bool is_known(const struct weft_cuda_machine *machine, const char *gemm)
{
    static const char *const names[] = {"auto", "own", "plain"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(names[i], gemm) == 0) return true;
    }
    return machine->library != NULL && strcmp(machine->library->name, gemm) == 0;
}

enum weft_status weft_nn_cuda_open(const struct weft_nn_backend *backend,
                                   const struct weft_cuda_machine *machine,
                                   const struct weft_nn_options *options, struct weft_nn **out,
                                   struct weft_error *err)
{
    if (!is_known(machine, options->gemm)) {
        return weft_fail(err, WEFT_E_USAGE,
                         "there is no way \"%s\" to multiply on a GPU; there are \"auto\", "
                         "\"own\", \"plain\"%s%s",
                         options->gemm, machine->library != NULL ? ", " : "",
                         machine->library != NULL ? machine->library->name : "");
    }
    struct weft_error unopened = {0}, unattending = {0};
    struct weft_nn_cuda *cuda = calloc(1, sizeof *cuda);
    if (cuda == NULL) return weft_fail_memory(err, "the GPU's layer kernels");
    cuda->base.backend = backend;
    cuda->machine = machine;
    cuda->ops = machine->library;
    cuda->plain = strcmp(options->gemm, "plain") == 0;
    enum weft_status status =
        weft_nn_cuda_status(cuda, allocate_words(cuda), "words of the GPU", err);
    if (status == WEFT_OK) status = open_library(cuda, options->gemm, &unopened, err);
    if (status == WEFT_OK)
        status = weft_cuda_attention_open(cuda, options->attention, &unattending, err);
    if (status != WEFT_OK) {
        weft_nn_cuda_close(&cuda->base);
        return status;
    }
    describe_products(cuda, &unopened);
    weft_cuda_attention_describe(cuda, &unattending);
    *out = &cuda->base;
    return WEFT_OK;
}

void weft_nn_cuda_close(struct weft_nn *nn)
{
    struct weft_nn_cuda *cuda = weft_nn_cuda_of(nn);
    for (int32_t i = 0; i < cuda->n_outgrown; i++) {
        cuda->machine->release(cuda->outgrown[i]);
    }
    if (cuda->workspace != NULL) cuda->machine->release(cuda->workspace);
    if (cuda->norm != NULL) cuda->machine->release(cuda->norm);
    if (cuda->found != NULL) cuda->machine->unshare(cuda->found);
    if (cuda->library != NULL) cuda->ops->close(cuda->library);
    weft_cuda_attention_close(cuda);
    free(cuda->choices);
    free(cuda->proved);
    free(cuda->choices_text);
    free(cuda->outgrown);
    free(cuda);
}

const char *weft_nn_cuda_describe(const struct weft_nn *nn)
{
    return ((const struct weft_nn_cuda *)(const void *)nn)->description;
}

const char *weft_nn_cuda_gemm_name(const struct weft_nn *nn)
{
    const struct weft_nn_cuda *cuda = (const struct weft_nn_cuda *)(const void *)nn;
    if (cuda->library != NULL) return cuda->ops->name;
    return cuda->plain ? "plain" : "own";
}

/* Choices of products and attention are in weft_nn_choices. */
void weft_nn_cuda_add_bits(const struct weft_nn *nn, struct weft_text *out)
{
    const struct weft_nn_cuda *cuda = (const struct weft_nn_cuda *)(const void *)nn;
    weft_text_addf(out, "products: %s", weft_nn_cuda_gemm_name(nn));
    if (cuda->library != NULL) weft_text_addf(out, ", %s", cuda->ops->title(cuda->library));
}

enum weft_status weft_nn_cuda_status(const struct weft_nn_cuda *cuda, int code, const char *what,
                                     struct weft_error *err)
{
    if (code == 0) return WEFT_OK;
    if (code == WEFT_CUDA_NOT_BOUND)
        return weft_fail(err, WEFT_E_INTERNAL, "%s: a product that nobody has chosen a way for",
                         what);
    if (code <= WEFT_CUDA_ATTENDING && cuda->attending != NULL)
        return weft_fail(err, WEFT_E_SYSTEM, "%s: %s cannot: %s (%d)", what,
                         cuda->machine->attending->title(cuda->attending),
                         cuda->machine->attending->explain(cuda->attending),
                         WEFT_CUDA_ATTENDING - code);
    if (code < 0)
        return weft_fail(err, WEFT_E_SYSTEM, "%s: %s cannot: %s (%d)", what,
                         cuda->ops->title(cuda->library), cuda->ops->explain(cuda->library, code),
                         -code);
    return weft_fail(err, WEFT_E_SYSTEM, "%s: the GPU cannot: %s (CUDA's error %d)", what,
                     cuda->machine->explain(code), code);
}

/* Workspace */

static enum weft_status keep_outgrown(struct weft_nn_cuda *cuda, struct weft_error *err)
{
    if (cuda->workspace == NULL) return WEFT_OK;
    void **all = realloc(cuda->outgrown, ((size_t)cuda->n_outgrown + 1) * sizeof *all);
    if (all == NULL) return weft_fail_memory(err, "a list of workspaces");
    cuda->outgrown = all;
    all[cuda->n_outgrown++] = cuda->workspace;
    cuda->workspace = NULL;
    cuda->workspace_bytes = 0;
    return WEFT_OK;
}

enum weft_status weft_nn_cuda_reserve(struct weft_nn_cuda *cuda, int64_t bytes,
                                      struct weft_error *err)
{
    void *grown = NULL;
    if (bytes <= cuda->workspace_bytes) return WEFT_OK;
    WEFT_TRY(keep_outgrown(cuda, err));
    WEFT_TRY(weft_nn_cuda_status(cuda, cuda->machine->allocate(bytes, &grown), "a workspace", err));
    cuda->workspace = grown;
    cuda->workspace_bytes = bytes;
    return WEFT_OK;
}

/* Kinds of layers */

/* Found by name, because a module has its own copies of the program's kinds. */
struct cuda_kind {
    const char *type;
    weft_cuda_kind_fn *forward, *backward;
    weft_cuda_needs_fn *needs; /* NULL: no workspace */
    weft_cuda_maps_fn *maps;   /* NULL: no products */
};

/* Kinds that train on a GPU. */
static const struct cuda_kind kinds[] = {
#define ROW(kind, name, needs, maps)                                                               \
    {                                                                                              \
#kind, weft_cuda_##name##_forward, weft_cuda_##name##_backward, needs, maps                \
    }
    ROW(embedding, embedding, NULL, NULL),
    ROW(transformer_block, block, weft_cuda_block_needs, weft_cuda_block_maps),
    ROW(layer_norm, norm, weft_cuda_norm_needs, NULL),
    ROW(linear, linear, weft_cuda_linear_needs, weft_cuda_linear_maps),
    ROW(relu, relu_layer, NULL, NULL),
    ROW(gelu, gelu_layer, NULL, NULL),
    ROW(lm_head, lm_head, weft_cuda_lm_head_needs, weft_cuda_lm_head_maps),
    ROW(classifier, classifier, weft_cuda_classifier_needs, weft_cuda_classifier_maps),
#undef ROW
};

static const struct cuda_kind *find_kind(const struct weft_layer *layer)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(kinds[i].type, layer->kind->type) == 0) return &kinds[i];
    }
    return NULL;
}

int32_t weft_nn_cuda_maps(const struct weft_layer *layer, const struct weft_batch *batch,
                          struct weft_cuda_map out[WEFT_CUDA_MOST_MAPS])
{
    const struct cuda_kind *kind = find_kind(layer);
    return kind == NULL || kind->maps == NULL ? 0 : kind->maps(layer, batch, out);
}

/* The library's part of the workspace, which layers do not use. */
static int64_t library_bytes(const struct weft_nn_cuda *cuda)
{
    return cuda->library != NULL ? cuda->ops->workspace_bytes(cuda->library) : 0;
}

struct weft_nn_needs weft_nn_cuda_needs(const struct weft_nn *nn, const struct weft_layer *layer,
                                        const struct weft_batch *batch)
{
    const struct weft_nn_cuda *cuda = (const struct weft_nn_cuda *)(const void *)nn;
    const struct cuda_kind *kind = find_kind(layer);
    if (kind == NULL || kind->needs == NULL) return (struct weft_nn_needs){0};
    struct weft_nn_needs needs = kind->needs(cuda->plain, layer, batch);
    weft_cuda_attention_needs(cuda, layer, batch, &needs);
    return needs;
}

int64_t weft_nn_cuda_unit_needs(const struct weft_nn *nn)
{
    (void)nn;
    return WEFT_CUDA_UNIT_BYTES;
}

/* Received slices: weft_cuda_sum_ranks adds them in rank order once all are there. A rank's own
 * slice is read in place. */
int64_t weft_nn_cuda_receive_needs(int32_t ranks, int64_t slice_bytes)
{
    return (ranks - 1) * slice_bytes;
}

/* True if the plan has no place for the probabilities of plain kernels. */
static bool lacks_probabilities(const struct weft_nn_cuda *cuda, const struct weft_nn_call *call)
{
    struct weft_cuda_attention ignored;
    return cuda->plain && call->batch.on_gpu && !call->batch.plain &&
           weft_cuda_block_attends(false, call->layer, &call->batch, &ignored);
}

static enum weft_status refuse_call(const struct weft_nn_cuda *cuda,
                                    const struct weft_nn_call *call, struct weft_error *err)
{
    const struct weft_layer *layer = call->layer;
    if (layer->kind->supplied != NULL) {
        return weft_fail(err, WEFT_E_DATA,
                         "layer %s: the functions of its kind are the CPU's, and a GPU has none of "
                         "them: train it with cluster.device.type cpu",
                         layer->name);
    }
    if (find_kind(layer) == NULL) {
        return weft_fail(err, WEFT_E_DATA,
                         "layer %s: the GPU's kernels train no %s; weft_model_trains names the "
                         "layers that train",
                         layer->name, weft_layer_type_of(layer));
    }
    if (call->recompute == WEFT_RECOMPUTE_SELECTIVE && !call->batch.on_gpu) {
        return weft_fail(
            err, WEFT_E_DATA,
            "layer %s: drops a GELU and keeps its product, as a CPU may. A GPU computes "
            "both at once: plan for cluster.device.type cuda",
            layer->name);
    }
    if (lacks_probabilities(cuda, call)) {
        return weft_fail(err, WEFT_E_DATA,
                         "layer %s: plain products attend with probabilities, and the plan is for "
                         "tensor cores, which save statistics: set WEFT_GEMM=plain before planning "
                         "too, or to other products here",
                         layer->name);
    }
    if (call->cache != NULL) {
        return weft_fail(err, WEFT_E_DATA,
                         "layer %s: a GPU computes whole sequences; text is generated on the CPU",
                         layer->name);
    }
    return WEFT_OK;
}

/* True if the layer reads tokens, or targets, as its findings have a place. */
static bool reads_words(const struct weft_nn_call *call, bool of_targets)
{
    const char *type = call->layer->kind->type;
    return of_targets ? strcmp(type, "lm_head") == 0 || strcmp(type, "classifier") == 0
                      : strcmp(type, "embedding") == 0;
}

/* The place for a call's findings, or NULL. Layers beyond the last place share it. */
static uint32_t *place_of_finding(struct weft_nn_cuda *cuda, const struct weft_nn_call *call)
{
    const bool of_targets = reads_words(call, true);
    if (!of_targets && !reads_words(call, false)) return NULL;
    int i = 0;
    while (i < WEFT_CUDA_CHECKS - 1 && cuda->checks[i].layer != NULL &&
           cuda->checks[i].layer != call->layer) {
        i++;
    }
    cuda->checks[i] = (struct weft_cuda_check){call->layer, call->batch, of_targets};
    return &cuda->found[i];
}

enum weft_status weft_nn_cuda_verdict(struct weft_nn *nn, struct weft_error *err)
{
    const struct weft_nn_cuda *cuda = weft_nn_cuda_of(nn);
    for (int i = 0; i < WEFT_CUDA_CHECKS; i++) {
        const struct weft_cuda_check *check = &cuda->checks[i];
        const int64_t row = cuda->found[i];
        if (cuda->found[i] == UINT32_MAX) continue;
        if (check->of_targets) {
            return weft_fail(
                err, WEFT_E_DATA, "layer %s: the target of row %lld is outside 0 to %lld",
                check->layer->name, (long long)row, (long long)check->layer->outputs - 1);
        }
        return weft_fail(err, WEFT_E_DATA,
                         "layer %s: the token at position %lld of sample %lld is outside the "
                         "vocabulary 0 to %lld",
                         check->layer->name, (long long)(row % check->batch.seq_len),
                         (long long)(row / check->batch.seq_len),
                         (long long)check->layer->vocab - 1);
    }
    return WEFT_OK;
}

struct call_argument {
    struct weft_nn_cuda *cuda;
    struct weft_nn_call call;
};
_Static_assert(sizeof(struct call_argument) <= WEFT_TASK_BYTES, "a stream copies a call at once");

/* Takes the plan's scratch. Plain attention in 16 bits, and calls without a plan, need more: they
 * use the workspace after the library's part. */
static enum weft_status find_scratch(const struct call_argument *a, bool backward, char **out,
                                     struct weft_error *err)
{
    const struct weft_nn_call *call = &a->call;
    const struct weft_nn_needs needs =
        weft_nn_cuda_needs(&a->cuda->base, call->layer, &call->batch);
    const int64_t bytes = backward ? needs.backward_bytes : needs.forward_bytes;
    const bool planned = bytes <= call->scratch_bytes;
    WEFT_TRY(weft_nn_cuda_reserve(a->cuda, library_bytes(a->cuda) + (planned ? 0 : bytes), err));
    *out = planned ? call->scratch : a->cuda->workspace + library_bytes(a->cuda);
    return WEFT_OK;
}

/* A call that is not prepared gets a walk of its own. */
static enum weft_status run_kind(const struct call_argument *a, struct CUstream_st *on,
                                 bool backward, struct weft_error *err)
{
    struct weft_walk own;
    struct weft_nn_call call = a->call;
    WEFT_TRY(refuse_call(a->cuda, &call, err));
    const struct cuda_kind *kind = find_kind(call.layer);
    if (call.prepared == NULL && call.layer->kind->recipe != NULL) {
        WEFT_TRY(weft_walk_derive(call.layer, &call.batch, call.recompute, &own, err));
        call.prepared = &own;
    }
    char *scratch = NULL;
    WEFT_TRY(find_scratch(a, backward, &scratch, err));
    const struct weft_cuda_call c = {a->cuda, on, &call, scratch, place_of_finding(a->cuda, &call)};
    return weft_nn_cuda_status(a->cuda, (backward ? kind->backward : kind->forward)(&c),
                               call.layer->name, err);
}

static enum weft_status issue_forward(struct weft_stream *stream, struct CUstream_st *on,
                                      const void *argument, struct weft_error *err)
{
    (void)stream;
    return run_kind(argument, on, false, err);
}

static enum weft_status issue_backward(struct weft_stream *stream, struct CUstream_st *on,
                                       const void *argument, struct weft_error *err)
{
    (void)stream;
    return run_kind(argument, on, true, err);
}

enum weft_status weft_nn_cuda_prepare(const struct weft_nn *nn, const struct weft_nn_call *call,
                                      struct weft_pool *pool, const void **out,
                                      struct weft_error *err)
{
    (void)nn;
    if (call->layer->kind->recipe == NULL) return WEFT_OK;
    struct weft_walk *walk = weft_pool_array(pool, 1, sizeof *walk);
    if (walk == NULL) return weft_fail_memory(err, "the steps of a layer");
    WEFT_TRY(weft_walk_derive(call->layer, &call->batch, call->recompute, walk, err));
    *out = walk;
    return WEFT_OK;
}

void weft_nn_cuda_forward(struct weft_nn *nn, struct weft_stream *stream,
                          const struct weft_nn_call *call)
{
    const struct call_argument argument = {weft_nn_cuda_of(nn), *call};
    argument.cuda->machine->issue(stream, issue_forward, &argument, sizeof argument);
}

void weft_nn_cuda_backward(struct weft_nn *nn, struct weft_stream *stream,
                           const struct weft_nn_call *call)
{
    const struct call_argument argument = {weft_nn_cuda_of(nn), *call};
    argument.cuda->machine->issue(stream, issue_backward, &argument, sizeof argument);
}
