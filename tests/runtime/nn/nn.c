/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/nn/nn.h"

#include <criterion/criterion.h>
#include <string.h>

#include "cpu/layers/subject.h"
#include "runtime/device/device.h"
#include "spec/kind.h"

Test(nn, refuses_a_device_without_kernels)
{
    const struct weft_nn_options options = {.threads = 1, .gemm = "auto"};
    struct weft_nn *nn = NULL;
    struct weft_error err = {0};
    cr_assert_eq(weft_nn_open("tpu", &options, &nn, &err), WEFT_E_ENVIRONMENT);
    /* Modules that this build has are told too. */
    const char *const known = "no layer kernels for device \"tpu\" in this build: it has \"cpu\"";
    cr_assert_eq(strncmp(err.text, known, strlen(known)), 0, "%s", err.text);
    cr_assert_null(nn);
    weft_nn_close(NULL);
}

Test(nn, a_cpu_has_one_way_of_attention)
{
    static const struct {
        const char *attention;
        enum weft_status status;
    } ways[] = {
        {"own", WEFT_OK}, {"auto", WEFT_OK}, {"cudnn", WEFT_E_ENVIRONMENT}, {"mine", WEFT_E_USAGE}};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        const struct weft_nn_options options = {
            .threads = 1, .gemm = "plain", .attention = ways[i].attention};
        struct weft_nn *nn = NULL;
        struct weft_error err = {0};
        cr_expect_eq(weft_nn_open("cpu", &options, &nn, &err), ways[i].status, "%s", err.text);
        weft_nn_close(nn);
    }
}

Test(nn, says_what_multiplies)
{
    struct weft_nn *nn = subject_open("auto");
    cr_assert(strstr(weft_nn_describe(nn), "GFLOP/s"), "%s", weft_nn_describe(nn));
    cr_assert(strstr(weft_nn_describe(nn), " kernels"), "%s", weft_nn_describe(nn));
    struct weft_nn *same = subject_open(weft_nn_gemm_name(nn));
    cr_assert_str_eq(weft_nn_gemm_name(same), weft_nn_gemm_name(nn));
    weft_nn_close(same);
    weft_nn_close(nn);
}

Test(nn, refuses_layers_that_only_plan)
{
    struct weft_nn *nn = subject_open("auto");
    const struct weft_layer layer = {.name = "h.7", .kind = &weft_kind_moe_block};
    const struct weft_nn_call call = {.layer = &layer, .batch = {1, 1, WEFT_F32}};
    struct weft_error err = {0};
    cr_assert_eq(weft_nn_cpu_forward(nn, &call, &err), WEFT_E_DATA);
    cr_assert(strstr(err.text, "layer h.7: the CPU kernels train no moe_block"), "%s", err.text);
    weft_nn_close(nn);
}

Test(nn, runs_on_a_stream_and_its_errors_stop_it)
{
    struct weft_error err = {0};
    struct weft_device *device = NULL;
    struct weft_stream *stream = NULL;
    cr_assert_eq(weft_device_open("cpu", WEFT_CLOCK_WALL, &device, &err), WEFT_OK);
    cr_assert_eq(weft_stream_create(device, "compute", 0, &stream, &err), WEFT_OK);
    struct weft_nn *nn = subject_open("auto");
    struct subject here, there;
    subject_init(&here, subject_block(12, 3, 20), 2, 9, 0);
    subject_init(&there, subject_block(12, 3, 20), 2, 9, 64);
    subject_forward(nn, &here);
    subject_backward(nn, &here);

    there.call.layer = &there.layer;
    weft_nn_forward(nn, stream, &there.call);
    weft_nn_backward(nn, stream, &there.call);
    cr_assert_eq(weft_stream_synchronise(stream, &err), WEFT_OK, "%s", err.text);
    cr_assert(subject_same_bits(&here, &there));

    struct subject wrong;
    int32_t tokens[4] = {0, 1, 2, 77};
    subject_init(&wrong, subject_embedding(5, 4, 3), 1, 4, 0);
    wrong.call.layer = &wrong.layer;
    wrong.call.input = tokens;
    weft_nn_forward(nn, stream, &wrong.call);
    cr_assert_eq(weft_stream_synchronise(stream, &err), WEFT_E_DATA);
    cr_assert(strstr(err.text, "token 77 at position 3"), "%s", err.text);
    subject_finish(&here);
    subject_finish(&there);
    subject_finish(&wrong);
    weft_stream_destroy(stream);
    weft_device_close(device);
    weft_nn_close(nn);
}
