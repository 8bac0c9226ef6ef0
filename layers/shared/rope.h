/* SPDX-License-Identifier: Apache-2.0 */
/* Frequencies of rotary positions, as Hugging Face's Llama has them: pair j of a head of `size`
 * columns turns by base^(-2j / size) a position. Models were trained with powers, frequencies and
 * angles rounded to fp32, so all are. Only exact operations are used: the bits are equal
 * everywhere. */
#ifndef WEFT_LAYERS_SHARED_ROPE_H
#define WEFT_LAYERS_SHARED_ROPE_H

#include <stdint.h>

/* Llama 3's scaling to longer sequences. Waves longer than original / low turn `factor` times
 * slower, waves shorter than original / high as before, and waves in between are mixed. */
struct weft_rope_scaling {
    double factor; /* 0: none */
    double low, high;
    int64_t original; /* the sequence length before scaling */
};

enum { WEFT_ROPE_MOST_SIZE = 1024 };

/* Writes size / 2 frequencies. `size` is even and at most WEFT_ROPE_MOST_SIZE; `base` is at least
 * 1, `factor` at least 1, and low below high. */
void weft_rope_frequencies(int64_t size, double base, const struct weft_rope_scaling *scaling,
                           float *frequencies);

#endif
