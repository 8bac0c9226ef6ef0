/* SPDX-License-Identifier: Apache-2.0 */
/* Files of NumPy (.npy, version 1.0), of f32 in C order, on every machine with the lowest byte
 * first. Format: numpy.org/doc/stable/reference/generated/numpy.lib.format.html */
#ifndef WEFT_RUNTIME_TRAIN_DUMP_NPY_H
#define WEFT_RUNTIME_TRAIN_DUMP_NPY_H

#include <stdint.h>

#include "base/status.h"

/* Writes values [dims[0], dims[1]]; n_dims is 1 or 2. Does not sync. WEFT_E_CREATE, WEFT_E_IO. */
WEFT_MUST_USE enum weft_status weft_npy_write(const char *path, const int64_t dims[2],
                                              int32_t n_dims, const float *values,
                                              struct weft_error *err);

#endif
