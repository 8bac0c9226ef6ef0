/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/pool.h"
#include "layers/shared/block.h"
#include "runtime/nn/cuda/choices/attention_choices.h"
#include "runtime/nn/cuda/layers/walk.h"
#include "spec/kind.h"

/* The library's part of the workspace, which layers do not use. */
static int64_t library_bytes(const struct weft_nn_cuda *cuda)
{
    return cuda->library != NULL ? cuda->ops->workspace_bytes(cuda->library) : 0;
}

static struct weft_nn_needs scratch_of_steps(const struct weft_nn_cuda *cuda,
                                             const struct weft_cuda_walk *walk)
{
    struct weft_nn_needs needs = walk->step_needs;
    weft_cuda_attention_needs(cuda, &walk->walk, &needs);
    return needs;
}

struct weft_nn_needs weft_nn_cuda_needs(const struct weft_nn *nn, const struct weft_layer *layer,
                                        const struct weft_batch *batch)
{
    const struct weft_nn_cuda *cuda = (const struct weft_nn_cuda *)(const void *)nn;
    struct weft_cuda_walk walk;
    struct weft_error unsaid = {0};
    if (layer->kind->recipe == NULL ||
        weft_cuda_walk_derive(cuda->plain, layer, batch, WEFT_RECOMPUTE_NONE, &walk, &unsaid) !=
            WEFT_OK)
        return (struct weft_nn_needs){0};
    struct weft_nn_needs needs = scratch_of_steps(cuda, &walk);
    needs.backward_bytes += walk.scale_bytes;
    return needs;
}

/* True if the plan has no place for the probabilities of plain kernels. */
static bool lacks_probabilities(const struct weft_nn_cuda *cuda, const struct weft_walk *walk)
{
    for (int32_t i = 0; i < walk->n_steps && cuda->plain; i++) {
        const struct weft_walk_step *step = &walk->steps[i];
        if (strcmp(step->op->name, "attend") == 0 && step->from->save != WEFT_WORD_LOG_SUMS &&
            walk->batch.on_gpu && !walk->batch.plain && weft_attend_uses_tensor_cores(walk, step))
            return true;
    }
    return false;
}

static enum weft_status refuse_layer(const struct weft_nn_call *call, struct weft_error *err)
{
    const struct weft_layer *layer = call->layer;
    if (layer->kind->supplied != NULL) {
        return weft_fail(err, WEFT_E_DATA,
                         "layer %s: the functions of its kind are the CPU's, and a GPU has none of "
                         "them: train it with cluster.device.type cpu",
                         layer->name);
    }
    if (layer->kind->recipe == NULL || !layer->kind->trains) {
        return weft_fail(err, WEFT_E_DATA,
                         "layer %s: the GPU's kernels train no %s; weft_model_trains names the "
                         "layers that train",
                         layer->name, weft_layer_type_of(layer));
    }
    if (call->cache != NULL) {
        return weft_fail(err, WEFT_E_DATA,
                         "layer %s: a GPU computes whole sequences; text is generated on the CPU",
                         layer->name);
    }
    return WEFT_OK;
}

static enum weft_status refuse_walk(const struct weft_nn_cuda *cuda, const struct weft_walk *walk,
                                    struct weft_error *err)
{
    if (lacks_probabilities(cuda, walk)) {
        return weft_fail(err, WEFT_E_DATA,
                         "layer %s: plain products attend with probabilities, and the plan is for "
                         "tensor cores, which save statistics: set WEFT_GEMM=plain before planning "
                         "too, or to other products here",
                         walk->layer->name);
    }
    return WEFT_OK;
}

/* The step that reads tokens or targets, or NULL. */
static const struct weft_walk_step *reader_of_words(const struct weft_walk *walk)
{
    for (int32_t i = 0; i < walk->n_steps; i++)
        if (walk->steps[i].op->reads_tokens || walk->steps[i].op->is_loss) return &walk->steps[i];
    return NULL;
}

/* The place for a call's findings, or NULL. Layers beyond the last place share it. */
static uint32_t *place_of_finding(struct weft_nn_cuda *cuda, const struct weft_walk *walk)
{
    const struct weft_walk_step *step = reader_of_words(walk);
    if (step == NULL) return NULL;
    int i = 0;
    while (i < WEFT_CUDA_CHECKS - 1 && cuda->checks[i].layer != NULL &&
           cuda->checks[i].layer != walk->layer) {
        i++;
    }
    const bool of_targets = step->op->is_loss;
    cuda->checks[i] =
        (struct weft_cuda_check){walk->layer, walk->batch, of_targets,
                                 of_targets ? weft_span_width(&step->in[0]) : step->sizes.vocab};
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
            return weft_fail(err, WEFT_E_DATA,
                             "layer %s: the target of row %lld is outside 0 to %lld",
                             check->layer->name, (long long)row, (long long)check->limit - 1);
        }
        return weft_fail(err, WEFT_E_DATA,
                         "layer %s: the token at position %lld of sample %lld is outside the "
                         "vocabulary 0 to %lld",
                         check->layer->name, (long long)(row % check->batch.seq_len),
                         (long long)(row / check->batch.seq_len), (long long)check->limit - 1);
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
static enum weft_status find_scratch(const struct call_argument *a, int64_t bytes, char **out,
                                     struct weft_error *err)
{
    const bool planned = bytes <= a->call.scratch_bytes;
    WEFT_TRY(weft_nn_cuda_reserve(a->cuda, library_bytes(a->cuda) + (planned ? 0 : bytes), err));
    *out = planned ? a->call.scratch : a->cuda->workspace + library_bytes(a->cuda);
    return WEFT_OK;
}

static enum weft_status derive_call(const struct weft_nn_cuda *cuda,
                                    const struct weft_nn_call *call, struct weft_cuda_walk *out,
                                    struct weft_error *err)
{
    WEFT_TRY(refuse_layer(call, err));
    return weft_cuda_walk_derive(cuda->plain, call->layer, &call->batch, call->recompute, out, err);
}

static enum weft_status run_layer(const struct call_argument *a, struct CUstream_st *on,
                                  bool backward, struct weft_error *err)
{
    struct weft_cuda_walk own;
    if (a->call.prepared == NULL) WEFT_TRY(derive_call(a->cuda, &a->call, &own, err));
    const struct weft_cuda_walk *walk = a->call.prepared != NULL ? a->call.prepared : &own;
    WEFT_TRY(refuse_walk(a->cuda, &walk->walk, err));
    const struct weft_nn_needs needs = scratch_of_steps(a->cuda, walk);
    const int64_t scale_at = needs.backward_bytes;
    char *scratch = NULL;
    WEFT_TRY(find_scratch(a, backward ? scale_at + walk->scale_bytes : needs.forward_bytes,
                          &scratch, err));
    uint32_t *found = place_of_finding(a->cuda, &walk->walk);
    const int code =
        backward ? weft_cuda_walk_backward(a->cuda, walk, &a->call, scratch, scale_at, found, on)
                 : weft_cuda_walk_forward(a->cuda, walk, &a->call, scratch, found, on);
    return weft_nn_cuda_status(a->cuda, code, a->call.layer->name, err);
}

static enum weft_status issue_forward(struct weft_stream *stream, struct CUstream_st *on,
                                      const void *argument, struct weft_error *err)
{
    (void)stream;
    return run_layer(argument, on, false, err);
}

static enum weft_status issue_backward(struct weft_stream *stream, struct CUstream_st *on,
                                       const void *argument, struct weft_error *err)
{
    (void)stream;
    return run_layer(argument, on, true, err);
}

enum weft_status weft_nn_cuda_prepare(const struct weft_nn *nn, const struct weft_nn_call *call,
                                      struct weft_pool *pool, const void **out,
                                      struct weft_error *err)
{
    const struct weft_nn_cuda *cuda = (const struct weft_nn_cuda *)(const void *)nn;
    struct weft_cuda_walk *walk = weft_pool_array(pool, 1, sizeof *walk);
    if (walk == NULL) return weft_fail_memory(err, "the steps of a layer");
    WEFT_TRY(derive_call(cuda, call, walk, err));
    WEFT_TRY(refuse_walk(cuda, &walk->walk, err));
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
