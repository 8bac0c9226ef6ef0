/* SPDX-License-Identifier: Apache-2.0 */
/* Random configs as text, from a seed alone; nothing of Criterion, so that bench/ has them too. */
#ifndef WEFT_TESTS_PROGRAM_RANDOM_CONFIG_H
#define WEFT_TESTS_PROGRAM_RANDOM_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"

/* Writes a small config that trains all its layers: 1 to 8 layers and a head, f32 or bf16, 1 to 4
 * ranks. Unless it is `plain`, it has one to three micro-steps under either cadence, with or
 * without clipping, and adamw or lamb. It has no figures of a device or a network. */
void random_config(uint64_t seed, bool plain, struct weft_text *out);

/* Shapes of the layers of a whole config. */
enum random_shape {
    RANDOM_EVEN,      /* transformer blocks, all alike */
    RANDOM_UNEVEN,    /* layers of 2^10 to 2^26 parameters, nothing alike */
    RANDOM_EXPERTS,   /* a mixture of experts */
    RANDOM_IMAGES,    /* ResNet-like: images shrink, maps grow */
    RANDOM_EMBEDDING, /* a vocabulary that is most of the model */
    RANDOM_TINY,      /* one that can be executed: random_config's layers, 2 to 4 ranks */
    RANDOM_SHAPES
};
enum random_shape random_whole_shape(uint64_t seed);

/* The figures of a whole config that are found with the problem that it makes. */
struct random_whole {
    double link_scale;   /* of the times of all collectives */
    int64_t limit_bytes; /* of memory; 0: none */
};

/* Targets of whole configs: channel time over compute time with every unit fsdp, 0.1 to 10, and
 * the position of the limit from the least (0) to ample (1). */
double random_whole_ratio(uint64_t seed);
double random_whole_share(uint64_t seed);

/* One as a user might write it, for a cluster that is given by figures. 2 to 200 layers, some
 * frozen, some tied; 2 to 4,096 ranks (tiny: 2 to 4), on one level or two; accumulation, no
 * clipping, LAMB, SGD, two channels, contention, f32 or bf16. Of `plan` all is left as it is. */
void random_whole_config(uint64_t seed, const struct random_whole *figures, struct weft_text *out);

#endif
