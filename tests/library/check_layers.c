/* SPDX-License-Identifier: Apache-2.0 */
/* weft_check_layers, through weft.h alone: a right layer passes, and each way to be wrong is named
 * with its layer, its tensor and an element. A plain main, as tests/library/weft.c. */
#include <weft.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

enum fault {
    RIGHT,
    INPUT_SCALED,
    WEIGHT_TRANSPOSED,
    ONE_ELEMENT,
    BIAS_SIGN,
    NOT_ADDED,
    NOT_WRITTEN,
    BEYOND,
    OUTPUT_LEFT,
    FAULTS
};

/* y = tanh(W x + b) + |x|, W square: a matrix, a vector, a curve and a kink. */
static enum weft_status shape(void *context, const struct weft_layer_facts *facts,
                              struct weft_layer_shape *out, struct weft_error *error)
{
    int64_t h = facts->hidden;
    (void)context;
    (void)error;
    out->n_tensors = 2;
    out->tensors[0] = (struct weft_layer_tensor){"weight", h, h, WEFT_INIT_NORMAL, 0.2, true};
    out->tensors[1] = (struct weft_layer_tensor){"bias", h, 0, WEFT_INIT_ZERO, 0, false};
    return WEFT_OK;
}

static enum weft_status needs(void *context, const struct weft_layer_facts *facts,
                              struct weft_layer_needs *out, struct weft_error *error)
{
    (void)context;
    (void)error;
    out->saved_bytes = facts->samples * facts->seq_len * facts->hidden * (int64_t)sizeof(float);
    out->backward_temporary_bytes = facts->hidden * (int64_t)sizeof(float);
    out->backward_reads_input = true;
    out->forward_flops = out->backward_flops = (double)(facts->hidden * facts->hidden);
    return WEFT_OK;
}

static enum weft_status forward(void *context, const struct weft_layer_call *call,
                                struct weft_error *error)
{
    const enum fault *fault = context;
    const float *x = call->input, *w = call->tensors[0], *b = call->tensors[1];
    float *y = call->output, *kept = call->saved;
    int64_t h = call->facts.hidden;
    (void)error;
    for (int64_t t = 0; t < call->rows; t++) {
        for (int64_t o = 0; o < h; o++) {
            float sum = b[o];
            for (int64_t i = 0; i < h; i++)
                sum += w[o * h + i] * x[t * h + i];
            kept[t * h + o] = tanhf(sum);
            if (*fault == OUTPUT_LEFT && t == 3 && o == 1) continue;
            y[t * h + o] = kept[t * h + o] + fabsf(x[t * h + o]);
        }
    }
    return WEFT_OK;
}

static void give(enum fault fault, const struct weft_layer_call *call, int tensor, int64_t at,
                 float value)
{
    float *gradient = call->gradients[tensor];
    if (fault == BIAS_SIGN && tensor == 1) value = -value;
    if (fault == ONE_ELEMENT && tensor == 0 && at == 13) value *= 1.25f;
    if (fault == NOT_WRITTEN && tensor == 1 && at == 2) return;
    gradient[at] = value + (call->accumulate[tensor] && fault != NOT_ADDED ? gradient[at] : 0);
}

static void backward_of_row(enum fault fault, const struct weft_layer_call *call, int64_t t)
{
    const float *x = call->input, *w = call->tensors[0], *dy = call->output_gradient;
    const float *kept = call->saved;
    float *dx = call->input_gradient, *slope = call->temporary;
    int64_t h = call->facts.hidden;
    for (int64_t o = 0; o < h; o++)
        slope[o] = dy[t * h + o] * (1 - kept[t * h + o] * kept[t * h + o]);
    for (int64_t i = 0; i < h; i++) {
        float sum = x[t * h + i] < 0 ? -dy[t * h + i] : dy[t * h + i];
        for (int64_t o = 0; o < h; o++)
            sum += slope[o] * (fault == WEIGHT_TRANSPOSED ? w[i * h + o] : w[o * h + i]);
        dx[t * h + i] = fault == INPUT_SCALED ? 1.1f * sum : sum;
    }
}

static enum weft_status backward(void *context, const struct weft_layer_call *call,
                                 struct weft_error *error)
{
    enum fault fault = *(const enum fault *)context;
    const float *x = call->input, *dy = call->output_gradient, *kept = call->saved;
    int64_t h = call->facts.hidden;
    (void)error;
    for (int64_t t = 0; t < call->rows; t++)
        backward_of_row(fault, call, t);
    for (int64_t o = 0; o < h; o++) {
        float of_bias = 0;
        for (int64_t i = 0; i < h; i++) {
            float of_weight = 0;
            for (int64_t t = 0; t < call->rows; t++) {
                float slope = dy[t * h + o] * (1 - kept[t * h + o] * kept[t * h + o]);
                of_weight += slope * x[t * h + i];
                if (i == 0) of_bias += slope;
            }
            give(fault, call, 0, o * h + i, of_weight);
        }
        give(fault, call, 1, o, of_bias);
    }
    if (fault == BEYOND) ((float *)call->temporary)[h] = 1;
    return WEFT_OK;
}

#define CONFIG                                                                                     \
    "{\"version\":1,\"model\":{\"layers\":["                                                       \
    "{\"name\":\"wte\",\"type\":\"embedding\",\"vocab\":256,\"hidden\":16},"                       \
    "{\"name\":\"mix.{i}\",\"type\":\"mix\",\"hidden\":16,\"repeat\":3},"                          \
    "{\"name\":\"head\",\"type\":\"lm_head\",\"vocab\":256,\"hidden\":16}]},"                      \
    "\"cluster\":{\"ranks\":1},\"train\":{\"steps\":1,\"micro_batch\":2,\"seq_len\":8,"            \
    "\"data\":\"/usr/share/common-licenses/GPL-3\"}}"

static enum weft_status check(enum fault fault, uint32_t dtypes, struct weft_error *error)
{
    const struct weft_layer_kind mix = {.type = "mix",
                                        .dtypes = dtypes,
                                        .context = &fault,
                                        .shape = shape,
                                        .needs = needs,
                                        .forward = forward,
                                        .backward = backward};
    struct weft *weft = NULL;
    CHECK(weft_open(&weft, error) == WEFT_OK, "%s", error->text);
    CHECK(weft_check_layers(weft, error) == WEFT_E_USAGE, "%s", error->text);
    CHECK(weft_add_kind(weft, &mix, error) == WEFT_OK, "%s", error->text);
    const char *const narrow[] = {"train.precision.compute=bf16"};
    CHECK(weft_take_config(weft, CONFIG, NULL, narrow, dtypes == 1u << WEFT_BF16, error) == WEFT_OK,
          "%s", error->text);
    enum weft_status status = weft_check_layers(weft, error);
    weft_close(weft);
    return status;
}

int main(void)
{
    static const char *const says[FAULTS][2] = {
        [INPUT_SCALED] = {"not the derivative", "for the input, of 256 elements"},
        [WEIGHT_TRANSPOSED] = {"not the derivative", "for the input"},
        [ONE_ELEMENT] = {"mix.0.weight, of 256 elements that were tried worst at element 13",
                         "differences of forward give"},
        [BIAS_SIGN] = {"not the derivative", "for mix.0.bias, of 16 elements"},
        [NOT_ADDED] = {"does not add to the gradient of mix.0.weight", "element 0"},
        [NOT_WRITTEN] = {"gradient of mix.0.bias: element 2 is not written", ""},
        [BEYOND] = {"its backward function writes outside of temporary", ""},
        [OUTPUT_LEFT] = {"output of its forward function: element 49 is not written", ""},
    };
    struct weft_error error;
    CHECK(check(RIGHT, 1u << WEFT_F32, &error) == WEFT_OK, "%s", error.text);
    CHECK(check(RIGHT, 1u << WEFT_BF16, &error) == WEFT_E_USAGE && strstr(error.text, "16 bits"),
          "%s", error.text);
    for (int fault = RIGHT + 1; fault < FAULTS; fault++) {
        CHECK(check((enum fault)fault, 1u << WEFT_F32, &error) == WEFT_E_NUMERIC, "fault %d: %s",
              fault, error.text);
        for (int i = 0; i < 2; i++)
            CHECK(strstr(error.text, says[fault][i]) != NULL, "fault %d: %s", fault, error.text);
        CHECK(strstr(error.text, "layer \"mix.0\" (mix)") != NULL, "%s", error.text);
        printf("%s\n", error.text);
    }
    return failures > 0;
}
