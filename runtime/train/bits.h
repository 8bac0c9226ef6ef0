/* SPDX-License-Identifier: Apache-2.0 */
/* The bits of a run depend on more than its config: on the products, the kernel of attention and
 * the instructions of a CPU, or on the library and the model of a GPU. Their names are one text,
 * "products: onednn 2.6.3, avx512_core; attention: avx512", which manifests keep. */
#ifndef WEFT_RUNTIME_TRAIN_BITS_H
#define WEFT_RUNTIME_TRAIN_BITS_H

#include <stdbool.h>

#include "base/text.h"
#include "runtime/device/device.h"
#include "runtime/nn/nn.h"

/* Appends the text of this process. */
void weft_bits_tell(const struct weft_device *device, const struct weft_nn *nn,
                    struct weft_text *out);

/* True if both texts are equal. Otherwise appends the first part that differs, each with a text
 * after it, as "products: onednn 2.6.3, avx512_core in the run, and products: onednn 2.6.3, avx2
 * here". */
bool weft_bits_compare(const char *a, const char *b, const char *after_a, const char *after_b,
                       struct weft_text *out);

#endif
