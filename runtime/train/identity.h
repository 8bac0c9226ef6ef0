/* Ranks train together only if they run the same program file and libweft with the same config, the
 * same plan and the same library of products: anything else ends in other bits, or in a hang. */
#ifndef WEFT_RUNTIME_TRAIN_IDENTITY_H
#define WEFT_RUNTIME_TRAIN_IDENTITY_H

#include "runtime/train/train.h"

/* Collective, before the first step. WEFT_E_DISAGREE naming the ranks that differ from rank 0, and
 * in what. */
WEFT_MUST_USE enum weft_status weft_identity_compare(const struct weft_train_options *options,
                                                     struct weft_error *err);

#endif
