/* The CPU's kernels, with addresses that are inaccessible outside of work. */
#include "runtime/device/strict.h"
#include "runtime/nn/cpu/units.h"

static enum weft_status strict_open(const struct weft_nn_options *options, struct weft_nn **out,
                                    struct weft_error *err)
{
    return weft_nn_cpu_open(&weft_nn_backend_strict, WEFT_STRICT_SHIFT_BYTES, options, out, err);
}

const struct weft_nn_backend weft_nn_backend_strict = {
    .name = "strict",
    .open = strict_open,
    WEFT_NN_CPU_FUNCTIONS,
};
