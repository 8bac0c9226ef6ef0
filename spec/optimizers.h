/* SPDX-License-Identifier: Apache-2.0 */
/* Optimizers: one row each. Planning, state, checkpoints and profiles follow the row. One that
 * updates each element alone has its formula in runtime/nn/optimizers.h, for all devices. */
#ifndef WEFT_SPEC_OPTIMIZERS_H
#define WEFT_SPEC_OPTIMIZERS_H

#include <stdbool.h>
#include <stdint.h>

/* X(enumerator, name in configs, moments, sharing the first moment's presence with momentum,
 *   divides by the root of a second moment, agrees on sums over whole tensors, has one second
 * moment a tensor). Plans store a row's number, so new rows are last. */
#define WEFT_OPTIMIZERS(X)                                                                         \
    X(ADAMW, "adamw", 2, false, true, false, false)                                                \
    X(SGD, "sgd", 1, true, false, false, false)                                                    \
    X(LAMB, "lamb", 2, false, true, true, false)                                                   \
    X(LION, "lion", 1, false, false, false, false)                                                 \
    X(ADAM_MINI, "adam_mini", 1, false, true, false, true)

#define WEFT_OPTIMIZER_ENUMERATOR(type, name, moments, momentum, roots, agrees, means) WEFT_##type,
enum weft_optimizer_type { WEFT_OPTIMIZERS(WEFT_OPTIMIZER_ENUMERATOR) WEFT_OPTIMIZER_COUNT };
#undef WEFT_OPTIMIZER_ENUMERATOR

struct weft_optimizer_row {
    const char *name;
    int32_t moments;   /* fp32 numbers for each parameter, at most 2 */
    bool has_momentum; /* the first moment is kept only if train.optimizer.momentum is above 0 */
    bool has_roots;    /* so moments from 0 need bias correction. Such optimizers share moments */
    bool agrees;       /* ranks sum over tensors within an update, which has two parts */
    bool has_means;    /* the step's record sums squares of each tensor's gradient. Each rank has
                          the second moment of every tensor: their mean over the tensor */
};

static inline const struct weft_optimizer_row *weft_optimizer_row(int type)
{
    static const struct weft_optimizer_row rows[] = {
#define WEFT_OPTIMIZER_ROW(type, name, moments, momentum, roots, agrees, means)                    \
    {name, moments, momentum, roots, agrees, means},
        WEFT_OPTIMIZERS(WEFT_OPTIMIZER_ROW)
#undef WEFT_OPTIMIZER_ROW
    };
    return &rows[type];
}

#endif
