/* SPDX-License-Identifier: Apache-2.0 */
/* Optimizers: one row each. Planning, state, checkpoints and profiles follow the row. One that
 * updates each element alone has its formula in runtime/nn/optimizers.h, for all devices. */
#ifndef WEFT_SPEC_OPTIMIZERS_H
#define WEFT_SPEC_OPTIMIZERS_H

#include <stdbool.h>
#include <stdint.h>

/* X(enumerator, name in configs, moments, sharing the first moment's presence with momentum,
 *   divides by the root of a second moment, agrees on sums over whole tensors). Plans store a row's
 * number, so new rows are last. */
#define WEFT_OPTIMIZERS(X)                                                                         \
    X(ADAMW, "adamw", 2, false, true, false)                                                       \
    X(SGD, "sgd", 1, true, false, false)                                                           \
    X(LAMB, "lamb", 2, false, true, true)                                                          \
    X(LION, "lion", 1, false, false, false)

#define WEFT_OPTIMIZER_ENUMERATOR(type, name, moments, momentum, roots, agrees) WEFT_##type,
enum weft_optimizer_type { WEFT_OPTIMIZERS(WEFT_OPTIMIZER_ENUMERATOR) WEFT_OPTIMIZER_COUNT };
#undef WEFT_OPTIMIZER_ENUMERATOR

struct weft_optimizer_row {
    const char *name;
    int32_t moments;   /* fp32 numbers for each parameter, at most 2 */
    bool has_momentum; /* the first moment is kept only if train.optimizer.momentum is above 0 */
    bool has_roots;    /* so moments from 0 need bias correction. Such optimizers share moments */
    bool agrees;       /* ranks sum over tensors within an update, which has two parts */
};

static inline const struct weft_optimizer_row *weft_optimizer_row(int type)
{
    static const struct weft_optimizer_row rows[] = {
#define WEFT_OPTIMIZER_ROW(type, name, moments, momentum, roots, agrees)                           \
    {name, moments, momentum, roots, agrees},
        WEFT_OPTIMIZERS(WEFT_OPTIMIZER_ROW)
#undef WEFT_OPTIMIZER_ROW
    };
    return &rows[type];
}

#endif
