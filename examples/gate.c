/* SPDX-License-Identifier: Apache-2.0 */
/* Trains a byte-level GPT with a layer of its own: y = x * sigmoid(gain * x + bias), where `group`
 * neighbouring channels share a gain and a bias.
 *
 *     cc gate.c $(pkg-config --cflags --libs weft) -lm -o gate
 *     ./gate gate.json run                       one rank, with checkpoints in run/
 *     weft launch -n 2 ./gate gate.json run train.steps=40     goes on from there with two
 *
 *     cc -shared -fPIC -DLAYERS_ONLY gate.c -lm -o gate.so     the layer alone
 *     weft train gate.json --layers ./gate.so */
#define _POSIX_C_SOURCE 200809L /* sigaction */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <weft.h>

/* Both parameters are vectors with one element per group. */
static enum weft_status gate_shape(void *context, const struct weft_layer_facts *facts,
                                   struct weft_layer_shape *out, struct weft_error *error)
{
    int64_t group = facts->keys[0], groups = facts->hidden / group;
    (void)context;
    if (facts->hidden % group != 0)
        return weft_fail(error, WEFT_E_DATA, "group %lld does not divide hidden %lld",
                         (long long)group, (long long)facts->hidden);
    out->n_tensors = 2;
    out->tensors[0] = (struct weft_layer_tensor){"gain", groups, 0, WEFT_INIT_ONE, 0, false};
    out->tensors[1] = (struct weft_layer_tensor){"bias", groups, 0, WEFT_INIT_ZERO, 0, false};
    return WEFT_OK;
}

/* Backward computes the sigmoid again from the input, and sums the gradients of a micro-step in
 * doubles. */
static enum weft_status gate_needs(void *context, const struct weft_layer_facts *facts,
                                   struct weft_layer_needs *out, struct weft_error *error)
{
    double elements = (double)(facts->samples * facts->seq_len * facts->hidden);
    (void)context;
    (void)error;
    out->backward_reads_input = true;
    out->backward_temporary_bytes = 2 * facts->hidden / facts->keys[0] * (int64_t)sizeof(double);
    out->forward_flops = 4 * elements;
    out->backward_flops = 12 * elements;
    return WEFT_OK;
}

static float sigmoid_of(float x)
{
    return 1 / (1 + expf(-x));
}

static enum weft_status gate_forward(void *context, const struct weft_layer_call *call,
                                     struct weft_error *error)
{
    const float *x = call->input, *gain = call->tensors[0], *bias = call->tensors[1];
    int64_t hidden = call->facts.hidden, group = call->facts.keys[0];
    float *y = call->output;
    (void)context;
    (void)error;
    for (int64_t i = 0; i < call->rows * hidden; i++) {
        int64_t g = i % hidden / group;
        y[i] = x[i] * sigmoid_of(gain[g] * x[i] + bias[g]);
    }
    return WEFT_OK;
}

/* Writes the gradients of parameters, or adds them to those of earlier micro-steps. */
static void give_gradient(const struct weft_layer_call *call, int tensor, int64_t n,
                          const double *sums)
{
    float *gradient = call->gradients[tensor];
    for (int64_t g = 0; gradient != NULL && g < n; g++)
        gradient[g] = (float)sums[g] + (call->accumulate[tensor] ? gradient[g] : 0);
}

static enum weft_status gate_backward(void *context, const struct weft_layer_call *call,
                                      struct weft_error *error)
{
    const float *x = call->input, *gain = call->tensors[0], *bias = call->tensors[1];
    const float *dy = call->output_gradient;
    int64_t hidden = call->facts.hidden, group = call->facts.keys[0], groups = hidden / group;
    double *d_gain = call->temporary, *d_bias = d_gain + groups;
    float *dx = call->input_gradient;
    (void)context;
    (void)error;
    memset(d_gain, 0, 2 * (size_t)groups * sizeof *d_gain);
    for (int64_t i = 0; i < call->rows * hidden; i++) {
        int64_t g = i % hidden / group;
        float s = sigmoid_of(gain[g] * x[i] + bias[g]), slope = dy[i] * x[i] * s * (1 - s);
        dx[i] = dy[i] * s + slope * gain[g];
        d_gain[g] += slope * x[i];
        d_bias[g] += slope;
    }
    give_gradient(call, 0, groups, d_gain);
    give_gradient(call, 1, groups, d_bias);
    return WEFT_OK;
}

static const struct weft_kind_key gate_keys[] = {
    {"group", "channels that share a gain and a bias", 1, 1 << 20, true, 1}};
static const struct weft_layer_kind gate = {.type = "gate",
                                            .keys = gate_keys,
                                            .n_keys = 1,
                                            .dtypes = 1u << WEFT_F32,
                                            .shape = gate_shape,
                                            .needs = gate_needs,
                                            .forward = gate_forward,
                                            .backward = gate_backward};

/* `weft train gate.json --layers ./gate.so` finds the layer here. */
static const struct weft_layer_kind *const kinds[] = {&gate};
const struct weft_layers weft_layers = {WEFT_LAYERS_ABI, 1, kinds};

#ifndef LAYERS_ONLY
static enum weft_status show_step(void *context, const struct weft_step *step,
                                  struct weft_error *error)
{
    (void)error;
    if (weft_rank(context) == 0)
        printf("step %lld of %lld: loss %.4f\n", (long long)step->step, (long long)step->steps,
               step->loss);
    return WEFT_OK;
}

static struct weft *weft;

/* The run ends after its step, with a checkpoint. Further signals are the same request. */
static void stop_run(int number)
{
    (void)number;
    weft_stop(weft);
}

int main(int argc, char **argv)
{
    static const int numbers[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2};
    const struct sigaction action = {.sa_handler = stop_run, .sa_flags = SA_RESTART};
    struct weft_error error = {0};
    struct weft_run_result result = {0};
    if (argc < 3) {
        fprintf(stderr, "usage: gate CONFIG RUN [path.key=value...]\n");
        return weft_status_exit_code(WEFT_E_USAGE);
    }
    enum weft_status status = weft_open(&weft, &error);
    if (status == WEFT_OK) status = weft_add_kind(weft, &gate, &error);
    if (status == WEFT_OK)
        status = weft_read_config(weft, argv[1], (const char *const *)argv + 3, argc - 3, &error);
    const struct weft_run_settings settings = {
        .directory = argv[2], .on_step = show_step, .context = weft};
    for (int i = 0; i < 5 && status == WEFT_OK; i++)
        sigaction(numbers[i], &action, NULL);
    if (status == WEFT_OK) status = weft_run(weft, &settings, &result, &error);
    if (status == WEFT_OK && result.stopped)
        status = weft_fail(&error, WEFT_E_STOPPED, "stopped after step %lld, which is saved",
                           (long long)result.steps_done);
    if (status != WEFT_OK)
        fprintf(stderr, "gate: %s\n", error.text);
    else if (weft_rank(weft) == 0 && result.step_ns == 0)
        printf("all %lld steps were done before, parameters %s\n", (long long)result.steps_done,
               result.fingerprint);
    else if (weft_rank(weft) == 0)
        printf("loss %.4f to %.4f, parameters %s\n", result.first_loss, result.last_loss,
               result.fingerprint);
    weft_close(weft);
    return error.exit_code;
}
#endif
