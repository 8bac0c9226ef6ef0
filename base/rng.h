/* SPDX-License-Identifier: Apache-2.0 */
/* Counter-based random numbers. Every draw is a pure function of (seed, stream, counter), so a
 * value depends neither on the caller nor on the order of draws. Streams are named by a hash, such
 * as of a tensor's name. The generator is Philox4x32-10 (Salmon et al., SC'11). */
#ifndef WEFT_BASE_RNG_H
#define WEFT_BASE_RNG_H

#include <stdint.h>

/* The generator: four random words for a counter and a key. The functions below pass counter =
 * (counter, stream) and key = seed, low words first. */
void weft_rng_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

uint64_t weft_rng_u64(uint64_t seed, uint64_t stream, uint64_t counter);

/* Uniform in [0, 1), 53 bits. */
double weft_rng_uniform(uint64_t seed, uint64_t stream, uint64_t counter);

/* Standard normal by Box-Muller on the two halves of one draw's pair (base/normal.h); |result| < 9.
 */
double weft_rng_normal(uint64_t seed, uint64_t stream, uint64_t counter);

/* Uniform in [0, below), below > 0, by a 128-bit multiplication; its bias is negligible. */
uint64_t weft_rng_below(uint64_t seed, uint64_t stream, uint64_t counter, uint64_t below);

#endif
