/* SPDX-License-Identifier: Apache-2.0 */
/* Draws of random cases: functions of a seed, a stream and how many came before. */
#ifndef WEFT_TESTS_PROGRAM_DICE_H
#define WEFT_TESTS_PROGRAM_DICE_H

#include <math.h>
#include <stdbool.h>

#include "base/hash.h"
#include "base/rng.h"

struct dice {
    uint64_t seed, stream, counter;
};

static inline struct dice dice_of(uint64_t seed, const char *stream)
{
    return (struct dice){seed, weft_hash_string(stream), 0};
}

/* One roll a statement: arguments are evaluated in any order, and compilers differ. */
static inline int64_t roll(struct dice *dice, int64_t least, int64_t most)
{
    uint64_t span = (uint64_t)(most - least) + 1;
    return least + (int64_t)weft_rng_below(dice->seed, dice->stream, dice->counter++, span);
}

static inline bool chance(struct dice *dice, int64_t percent)
{
    return roll(dice, 1, 100) <= percent;
}

/* Random on a logarithmic scale: 1 to 10 is as likely as 10 to 100. */
static inline double roll_scale(struct dice *dice, double least, double most)
{
    double share = (double)roll(dice, 0, 1 << 20) / (1 << 20);
    return least * pow(most / least, share);
}

#endif
