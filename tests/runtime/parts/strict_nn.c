/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "runtime/nn/cpu/units.h"
#include "tests/runtime/parts/strict.h"

/* The CPU's kernels. They reach the memory of addresses that no process may touch. */
static const struct weft_nn_backend strict_nn_ops = {
    .name = "strict",
    WEFT_NN_CPU_FUNCTIONS,
};

enum weft_status __real_weft_nn_open(const char *name, const struct weft_nn_options *options,
                                     struct weft_nn **out, struct weft_error *err);
enum weft_status __wrap_weft_nn_open(const char *name, const struct weft_nn_options *options,
                                     struct weft_nn **out, struct weft_error *err);
enum weft_status __wrap_weft_nn_open(const char *name, const struct weft_nn_options *options,
                                     struct weft_nn **out, struct weft_error *err)
{
    if (strcmp(name, "strict") == 0)
        return weft_nn_cpu_open(&strict_nn_ops, WEFT_STRICT_SHIFT_BYTES, options, out, err);
    return __real_weft_nn_open(name, options, out, err);
}
