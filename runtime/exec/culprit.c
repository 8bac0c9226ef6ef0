/* Who made a step's numbers not finite. What is agreed on after a step says that somebody did: sums
 * over ranks have spread it by then. So the step is run again, which has not changed anything, with
 * a look at what every layer writes, before any sum. A rotated period updates one unit before
 * another's gradient is added up, so there every step is looked at, and nothing is updated on any
 * rank when one has seen something: the first unit that is updated is that whose gradient is done
 * last, so behind its reduction every rank knows what all have seen (weft_comm_raise). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/exec/parts.h"

#define NOBODY INT64_MAX

/* Where a dtype has its exponent, and the step from one exponent to the next. */
struct exponents {
    uint32_t mask, step;
};

static struct exponents exponents_of(enum weft_dtype dtype)
{
    static const struct exponents exponents[WEFT_DTYPE_COUNT] = {[WEFT_F32] = {0x7f800000, 1 << 23},
                                                                 [WEFT_BF16] = {0x7f80, 1 << 7},
                                                                 [WEFT_F16] = {0x7c00, 1 << 10}};
    return exponents[dtype];
}

/* The highest exponent of n numbers, where it stands. */
static uint32_t highest_of_words(uint32_t mask, const unsigned char *numbers, int64_t n)
{
    uint32_t most = 0;
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, numbers + i * (int64_t)sizeof bits, sizeof bits);
        most = (bits & mask) > most ? bits & mask : most;
    }
    return most;
}

static uint32_t highest_of_halves(uint32_t mask, const unsigned char *numbers, int64_t n)
{
    uint16_t most = 0, half_mask = (uint16_t)mask;
    for (int64_t i = 0; i < n; i++) {
        uint16_t bits;
        memcpy(&bits, numbers + i * (int64_t)sizeof bits, sizeof bits);
        bits &= half_mask;
        most = bits > most ? bits : most;
    }
    return most;
}

bool weft_exec_adds_up(enum weft_dtype dtype, const void *numbers, int64_t n, int64_t terms)
{
    struct exponents e = exponents_of(dtype);
    uint32_t limit = e.mask;
    /* Below 2^k / terms each, as many add up to less than 2^k, which rounds to a finite number. */
    for (int64_t many = 1; many < terms && limit > e.step; many *= 2)
        limit -= e.step;
    if (terms > 1 && limit > e.step) limit -= e.step;
    return (dtype == WEFT_F32 ? highest_of_words(e.mask, numbers, n)
                              : highest_of_halves(e.mask, numbers, n)) < limit;
}

/* The elements of a layer's output in one micro-step. */
static int64_t output_elements(const struct weft_nn_call *call)
{
    return call->batch.samples * call->batch.seq_len * call->layer->outputs;
}

static bool forward_is_finite(const struct weft_nn_call *call)
{
    /* As finish takes it: too large is not finite. */
    if (call->loss != NULL && !(fabs(*call->loss) < EXEC_LOSS_MOST)) return false;
    return call->output == NULL ||
           weft_exec_adds_up(call->batch.compute, call->output, output_elements(call), 1);
}

/* In a rotated period the gradient of one unit is applied before another's is added up, so each
 * rank vouches for its part of the sum. Else what is added up is looked at itself. */
static int64_t gradient_terms(const struct weft_exec *exec)
{
    const struct weft_period_rule *period = &exec->options.program->period;
    return period->rotated ? exec->ranks * weft_period_reductions(period) : 1;
}

static bool backward_is_finite(const struct weft_exec *exec, const struct weft_nn_call *call)
{
    const struct weft_config *config = exec->options.config;
    enum weft_dtype reduce = (enum weft_dtype)config->train.precision.reduce;
    for (int32_t i = 0; i < call->layer->n_tensors; i++) {
        int64_t n = config->model->tensors[call->layer->tensors[i]].elements;
        if (call->gradients[i] != NULL &&
            !weft_exec_adds_up(reduce, call->gradients[i], n, gradient_terms(exec)))
            return false;
    }
    return true;
}

struct look_argument {
    struct weft_exec *exec;
    int32_t instruction;
};

static enum weft_status look(struct weft_stream *stream, const void *argument,
                             struct weft_error *err)
{
    (void)stream;
    (void)err;
    const struct look_argument *a = argument;
    const struct exec_bound *bound = &a->exec->bound[a->instruction];
    int64_t before = a->exec->periods * a->exec->options.program->n_instructions;
    bool good = bound->op == WEFT_OP_FORWARD ? forward_is_finite(bound->with.call)
                                             : backward_is_finite(a->exec, bound->with.call);
    if (!good && a->exec->first_bad == NOBODY) a->exec->first_bad = before + a->instruction;
    if (!good && bound->op == WEFT_OP_BACKWARD) weft_comm_raise(a->exec->options.comm);
    return WEFT_OK;
}

void weft_exec_push_look(struct weft_exec *exec, int32_t i)
{
    const struct exec_bound *bound = &exec->bound[i];
    struct look_argument argument = {exec, i};
    if (!exec->looks) return;
    if (bound->op == WEFT_OP_FORWARD || bound->op == WEFT_OP_BACKWARD)
        weft_stream_push(bound->stream, look, &argument, sizeof argument);
}

enum weft_status weft_exec_compare_looks(struct weft_exec *exec, struct weft_culprit *out,
                                         struct weft_error *err)
{
    int64_t *all = calloc((size_t)exec->ranks, sizeof *all), first = NOBODY;
    *out = (struct weft_culprit){.known = false};
    if (all == NULL) return weft_fail_memory(err, "the ranks' findings");
    enum weft_status status =
        weft_comm_exchange(exec->options.comm, &exec->first_bad, sizeof exec->first_bad, all, err);
    for (int32_t r = 0; r < exec->ranks && status == WEFT_OK; r++) {
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
    exec->first_bad = NOBODY;
    exec->failed_step = 0;
    enum weft_status status = weft_exec_step(exec, inputs, &result, NULL, err);
    exec->looks = false;
    if (status != WEFT_OK) return status;
    status = weft_exec_compare_looks(exec, out, err);
    out->repeated = true;
    return status;
}

void weft_exec_describe_culprit(const struct weft_exec *exec, const struct weft_culprit *culprit,
                                struct weft_text *out)
{
    if (!culprit->known) return;
    if (culprit->n_ranks == exec->ranks) weft_text_add(out, "all ranks");
    if (culprit->n_ranks < exec->ranks) weft_text_addf(out, "rank %d", culprit->rank);
    if (culprit->n_ranks > 1 && culprit->n_ranks < exec->ranks)
        weft_text_addf(out, " and %d more", culprit->n_ranks - 1);
    weft_text_addf(out, ", in the %s pass of layer %s", culprit->backward ? "backward" : "forward",
                   exec->options.config->model->layers[culprit->layer].name);
}
