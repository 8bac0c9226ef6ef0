#include "runtime/nn/initial.h"

#include <string.h>

#include "base/rng.h"

void weft_nn_initial_values(const struct weft_nn_initial *initial, float *out)
{
    switch (initial->init) {
    case WEFT_INIT_ZERO:
        memset(out, 0, (size_t)initial->n * sizeof(*out));
        return;
    case WEFT_INIT_ONE:
        for (int64_t i = 0; i < initial->n; i++) {
            out[i] = 1.0f;
        }
        return;
    case WEFT_INIT_NORMAL:
        for (int64_t i = 0; i < initial->n; i++) {
            const uint64_t element = (uint64_t)(initial->first + i);
            out[i] = (float)(weft_rng_normal(initial->seed, initial->name, element) * initial->std);
        }
        return;
    case WEFT_INIT_COUNT:
        return;
    }
}
