/* SPDX-License-Identifier: Apache-2.0 */
/* A dead model has a parameter that is not finite in the dtype of compute: NaN, infinite, or
 * rounded to infinity there. No step repairs it, so no run begins with it, and it must not replace
 * an earlier checkpoint. Moments are not checked: an infinite moment only stops an update. */
#ifndef WEFT_RUNTIME_CHECKPOINT_FINITE_H
#define WEFT_RUNTIME_CHECKPOINT_FINITE_H

#include <stdint.h>

#include "base/numbers.h"
#include "base/status.h"
#include "runtime/checkpoint/save.h"
#include "spec/model.h"

/* Checks elements [first, first + n) of a tensor that are read from the file `path`, for compute in
 * `dtype`. WEFT_E_DATA names the first one that is not finite there, and a dtype that holds it. */
WEFT_MUST_USE enum weft_status weft_finite_check_read(const char *path, const char *tensor,
                                                      int64_t first, int64_t n, const float *values,
                                                      enum weft_dtype dtype,
                                                      struct weft_error *err);

/* Checks elements [from, from + n) of a piece. WEFT_E_NUMERIC names the first one that is not
 * finite. */
WEFT_MUST_USE enum weft_status weft_finite_check(const struct weft_model *model,
                                                 const struct weft_save_piece *piece, int64_t from,
                                                 int64_t n, const float *values,
                                                 struct weft_error *err);

/* Collective: reads and checks all parameters of the source. Returns the lowest rank's error on all
 * ranks: WEFT_E_NUMERIC or an error of the source. Also errors of the exchange. */
WEFT_MUST_USE enum weft_status weft_finite_check_all(const struct weft_model *model,
                                                     const struct weft_save_source *source,
                                                     struct weft_comm *comm,
                                                     struct weft_error *err);

#endif
