/* Finds the rank and layer that first made a number not finite. The agreement after a step only
 * says that some rank did, since sums have spread it by then. A step that is not finite has changed
 * nothing, so it is run again. This time a look checks every layer's results before any sum.
 *
 * A rotated period updates one unit before it sums the gradient of another. So every step has
 * looks, and no rank updates after any look has found something. The unit with the last gradient is
 * updated first. After its reduction every rank knows the findings of all ranks
 * (weft_comm_carry). */
#include <stdlib.h>

#include "runtime/exec/exec.h"
#include "runtime/exec/parts.h"
#include "runtime/exec/units.h"

#define NOBODY INT64_MAX

/* Terms of the sum that a gradient becomes part of after its look. A rotated period applies one
 * unit before it sums another, so each rank vouches for its own term. Otherwise the sum itself is
 * checked. */
static int64_t gradient_terms(const struct weft_exec *exec)
{
    const struct weft_period_rule *period = &exec->options.program->period;
    return period->rotated ? exec->ranks * weft_period_reductions(period) - period->idle : 1;
}

const struct weft_nn_look *weft_exec_bind_look(struct weft_exec *exec,
                                               const struct weft_nn_call *call, bool backward)
{
    const struct weft_layer *layer = call->layer;
    bool rotated = exec->options.program->period.rotated;
    struct weft_nn_look *look = weft_pool_array(&exec->pool, 1, sizeof *look);
    struct weft_nn_numbers *numbers =
        weft_pool_array(&exec->pool, (size_t)layer->n_tensors + 1, sizeof *numbers);
    if (look == NULL || numbers == NULL) return NULL;
    *look = (struct weft_nn_look){
        .numbers = numbers,
        .terms = backward ? gradient_terms(exec) : 1,
        .loss = backward ? NULL : call->loss,
        .first = EXEC_OWN(exec, first_bad),
        .stop = backward && rotated ? EXEC_OWN(exec, step.stop) : NULL,
    };
    for (int32_t i = 0; i < layer->n_tensors && backward; i++) {
        if (call->gradients[i] == NULL) continue;
        int64_t n = exec->options.config->model->tensors[layer->tensors[i]].elements;
        numbers[look->n_numbers++] =
            (struct weft_nn_numbers){call->gradients[i], n, call->gradient_dtype};
    }
    int64_t n = call->batch.samples * call->batch.seq_len * layer->outputs;
    if (!backward && call->output != NULL)
        numbers[look->n_numbers++] = (struct weft_nn_numbers){call->output, n, call->batch.compute};
    return look;
}

void weft_exec_push_look(struct weft_exec *exec, int32_t i)
{
    const struct exec_bound *bound = &exec->bound[i];
    if (!exec->looks || (bound->op != WEFT_OP_FORWARD && bound->op != WEFT_OP_BACKWARD)) return;
    struct weft_nn_look look = *bound->with.layer.look;
    look.place = exec->periods * exec->options.program->n_instructions + i;
    weft_nn_look(exec->options.nn, bound->stream, &look);
}

enum weft_status weft_exec_compare_looks(struct weft_exec *exec, struct weft_culprit *out,
                                         struct weft_error *err)
{
    int64_t mine = exec->mailbox.first_bad, first = NOBODY;
    const int32_t ranks = weft_comm_ranks(exec->options.comm);
    int64_t *all = calloc((size_t)ranks, sizeof *all);
    *out = (struct weft_culprit){.known = false};
    if (all == NULL) return weft_fail_memory(err, "the ranks' findings");
    enum weft_status status = weft_comm_exchange(exec->options.comm, &mine, sizeof mine, all, err);
    for (int32_t r = 0; r < ranks && status == WEFT_OK; r++) {
        if (all[r] < first) *out = (struct weft_culprit){.known = true, .rank = r};
        if (all[r] < first) first = all[r];
        out->n_ranks += first != NOBODY && all[r] == first;
    }
    if (out->known) {
        const struct weft_program *program = exec->options.program;
        const struct weft_instruction *at = &program->instructions[first % program->n_instructions];
        out->layer = at->layer;
        out->backward = at->op == WEFT_OP_BACKWARD;
    }
    free(all);
    return status;
}

enum weft_status weft_exec_find_culprit(struct weft_exec *exec,
                                        const struct weft_step_inputs *inputs,
                                        struct weft_culprit *out, struct weft_error *err)
{
    struct weft_step_result result;
    if (exec->options.program->period.rotated) return weft_exec_compare_looks(exec, out, err);
    exec->pending.valid = false;
    exec->looks = true;
    weft_exec_push_forget(exec);
    exec->failed_step = 0;
    enum weft_status status = weft_exec_step(exec, inputs, &result, NULL, err);
    exec->looks = false;
    if (status != WEFT_OK) return status;
    status = weft_exec_compare_looks(exec, out, err);
    out->recovered = result.finite;
    return status;
}

void weft_exec_describe_culprit(const struct weft_exec *exec, const struct weft_culprit *culprit,
                                struct weft_text *out)
{
    const int32_t ranks = weft_comm_ranks(exec->options.comm);
    if (!culprit->known) return;
    if (culprit->n_ranks == ranks) weft_text_add(out, "all ranks");
    if (culprit->n_ranks < ranks) weft_text_addf(out, "rank %d", culprit->rank);
    if (culprit->n_ranks > 1 && culprit->n_ranks < ranks)
        weft_text_addf(out, " and %d more", culprit->n_ranks - 1);
    weft_text_addf(out, ", in the %s pass of layer %s", culprit->backward ? "backward" : "forward",
                   exec->options.config->model->layers[culprit->layer].name);
}
