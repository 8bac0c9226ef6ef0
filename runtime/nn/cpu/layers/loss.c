#include <string.h>

#include "layers/shared/layout.h"
#include "runtime/nn/cpu/cpu.h"

static enum weft_status check_targets(const struct weft_nn_call *call, int64_t n,
                                      struct weft_error *err)
{
    for (int64_t i = 0; i < n; i++) {
        const int32_t target = call->targets[i];
        if (target != WEFT_NO_TARGET && (target < 0 || target >= call->layer->outputs)) {
            return weft_fail(
                err, WEFT_E_DATA, "layer %s: target %d of row %lld is outside 0 to %lld",
                call->layer->name, (int)target, (long long)i, (long long)call->layer->outputs - 1);
        }
    }
    return WEFT_OK;
}

/* Computes the logits and the loss of a map to classes. Logits become the rows' own gradient in
 * place. Backward multiplies by the loss scale in its products. */
static enum weft_status classify_rows(const struct weft_nn_cpu *cpu,
                                      const struct weft_nn_call *call,
                                      const struct weft_nn_linear *linear, void *d_logits,
                                      struct weft_error *err)
{
    WEFT_TRY(check_targets(call, linear->rows, err));
    const struct weft_product_finish finish = {.bias = call->layer->bias ? call->tensors[1] : NULL};
    WEFT_TRY(weft_nn_cpu_map(cpu, linear, &finish, d_logits, err));
    const double loss = weft_nn_kernels(cpu, call)->cross_entropy(
        linear->rows, linear->outputs, linear->outputs + linear->gap, call->targets, d_logits);
    *call->loss = call->adds_loss ? *call->loss + loss : loss;
    return WEFT_OK;
}

static enum weft_status classify_backward(const struct weft_nn_cpu *cpu,
                                          const struct weft_nn_call *call,
                                          const struct weft_nn_linear *linear, const void *d_logits,
                                          float *sums, void *dx, struct weft_error *err)
{
    const struct weft_product_finish finish = {0};
    const float scale = (float)(call->scale ? call->loss_scale * *call->scale : call->loss_scale);
    if (call->layer->bias) weft_nn_cpu_map_bias(cpu, linear, scale, d_logits, call, 1, sums);
    WEFT_TRY(weft_nn_cpu_map_weight(cpu, linear, scale, d_logits, call, 0, err));
    if (!dx) return WEFT_OK;
    return weft_nn_cpu_map_input(cpu, linear, scale, &finish, d_logits, dx, err);
}

static struct weft_nn_linear head_of(const struct weft_nn_call *call, int64_t gap)
{
    return (struct weft_nn_linear){.dtype = call->batch.compute,
                                   .rows = call->batch.samples * call->batch.seq_len,
                                   .inputs = call->layer->hidden,
                                   .outputs = call->layer->vocab,
                                   .gap = gap,
                                   .x = call->input,
                                   .weight = call->tensors[0]};
}

enum weft_status weft_nn_cpu_lm_head_forward(const struct weft_nn_cpu *cpu,
                                             const struct weft_nn_call *call,
                                             struct weft_error *err)
{
    const struct weft_lm_head_layout layout = weft_layout_lm_head(call->layer, &call->batch);
    const struct weft_nn_linear linear = head_of(call, layout.gap);
    return classify_rows(cpu, call, &linear, weft_nn_part(call->saved, layout.saved.d_logits), err);
}

enum weft_status weft_nn_cpu_lm_head_backward(const struct weft_nn_cpu *cpu,
                                              const struct weft_nn_call *call,
                                              struct weft_error *err)
{
    const struct weft_lm_head_layout layout = weft_layout_lm_head(call->layer, &call->batch);
    const struct weft_nn_linear linear = head_of(call, layout.gap);
    return classify_backward(cpu, call, &linear, weft_nn_part(call->saved, layout.saved.d_logits),
                             weft_nn_part(call->temporary, layout.backward.sums),
                             call->input_gradient, err);
}

static struct weft_nn_linear classifier_of(const struct weft_nn_call *call, int64_t gap,
                                           const void *pooled)
{
    return (struct weft_nn_linear){.dtype = call->batch.compute,
                                   .rows = call->batch.samples,
                                   .inputs = call->layer->hidden,
                                   .outputs = call->layer->outputs,
                                   .gap = gap,
                                   .x = pooled,
                                   .weight = call->tensors[0]};
}

/* Means over the sequence use pieces of columns on the stack. */
enum { COLUMNS = 1024 };

static void pool_rows(const struct weft_nn_cpu *cpu, const struct weft_nn_call *call, void *pooled)
{
    const enum weft_dtype dtype = call->batch.compute;
    const int64_t width = call->layer->hidden, seq_len = call->batch.seq_len;
    float sums[COLUMNS], row[COLUMNS];
    for (int64_t b = 0; b < call->batch.samples; b++) {
        for (int64_t first = 0; first < width; first += COLUMNS) {
            const int64_t n = width - first < COLUMNS ? width - first : COLUMNS;
            memset(sums, 0, sizeof(sums));
            for (int64_t i = b * seq_len; i < (b + 1) * seq_len; i++) {
                cpu->kernels->widen(dtype, n, weft_nn_at(dtype, call->input, i * width + first),
                                    row);
                for (int64_t j = 0; j < n; j++) {
                    sums[j] += row[j];
                }
            }
            for (int64_t j = 0; j < n; j++) {
                sums[j] /= (float)seq_len;
            }
            cpu->kernels->narrow(dtype, n, sums, weft_nn_to(dtype, pooled, b * width + first));
        }
    }
}

static void spread_rows(const struct weft_nn_cpu *cpu, const struct weft_nn_call *call,
                        const void *d_pooled)
{
    const enum weft_dtype dtype = call->batch.compute;
    const int64_t width = call->layer->hidden, seq_len = call->batch.seq_len;
    float row[COLUMNS];
    for (int64_t b = 0; b < call->batch.samples; b++) {
        for (int64_t first = 0; first < width; first += COLUMNS) {
            const int64_t n = width - first < COLUMNS ? width - first : COLUMNS;
            cpu->kernels->widen(dtype, n, weft_nn_at(dtype, d_pooled, b * width + first), row);
            for (int64_t j = 0; j < n; j++) {
                row[j] /= (float)seq_len;
            }
            for (int64_t i = b * seq_len; i < (b + 1) * seq_len; i++) {
                cpu->kernels->narrow(dtype, n, row,
                                     weft_nn_to(dtype, call->input_gradient, i * width + first));
            }
        }
    }
}

enum weft_status weft_nn_cpu_classifier_forward(const struct weft_nn_cpu *cpu,
                                                const struct weft_nn_call *call,
                                                struct weft_error *err)
{
    const struct weft_classifier_layout layout = weft_layout_classifier(call->layer, &call->batch);
    void *pooled = weft_nn_part(call->saved, layout.saved.pooled);
    pool_rows(cpu, call, pooled);
    const struct weft_nn_linear linear = classifier_of(call, layout.gap, pooled);
    return classify_rows(cpu, call, &linear, weft_nn_part(call->saved, layout.saved.d_logits), err);
}

enum weft_status weft_nn_cpu_classifier_backward(const struct weft_nn_cpu *cpu,
                                                 const struct weft_nn_call *call,
                                                 struct weft_error *err)
{
    const struct weft_classifier_layout layout = weft_layout_classifier(call->layer, &call->batch);
    const struct weft_nn_linear linear =
        classifier_of(call, layout.gap, weft_nn_part(call->saved, layout.saved.pooled));
    void *d_pooled =
        call->input_gradient ? weft_nn_part(call->temporary, layout.backward.d_pooled) : NULL;
    WEFT_TRY(classify_backward(cpu, call, &linear, weft_nn_part(call->saved, layout.saved.d_logits),
                               weft_nn_part(call->temporary, layout.backward.sums), d_pooled, err));
    if (d_pooled) spread_rows(cpu, call, d_pooled);
    return WEFT_OK;
}
