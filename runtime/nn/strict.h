/* The strict device's kernels: the CPU's, which reach the memory behind addresses that nobody can
 * touch (runtime/device/strict.h). */
#ifndef WEFT_RUNTIME_NN_STRICT_H
#define WEFT_RUNTIME_NN_STRICT_H

#include "runtime/nn/backend.h"

extern const struct weft_nn_backend weft_nn_backend_strict;

#endif
