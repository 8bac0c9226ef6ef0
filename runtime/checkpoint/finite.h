/* A dead model has a parameter that is not finite in the dtype that layers compute with: NaN,
 * infinite, or of a magnitude that rounds to infinity there. No step brings it back, so it must not
 * replace an earlier checkpoint. Moments are not looked at: an infinite one only stops an update.
 */
#ifndef WEFT_RUNTIME_CHECKPOINT_FINITE_H
#define WEFT_RUNTIME_CHECKPOINT_FINITE_H

#include <stdint.h>

#include "base/status.h"
#include "runtime/checkpoint/save.h"
#include "spec/model.h"

/* Looks at elements [from, from + n) of a piece. WEFT_E_NUMERIC names the first one that is not
 * finite. */
WEFT_MUST_USE enum weft_status weft_finite_check(const struct weft_model *model,
                                                 const struct weft_save_piece *piece, int64_t from,
                                                 int64_t n, const float *values,
                                                 struct weft_error *err);

/* Collective: reads all parameters of the source and looks at them. WEFT_E_NUMERIC or an error of
 * the source, the lowest rank's on all; errors of the exchange. */
WEFT_MUST_USE enum weft_status weft_finite_check_all(const struct weft_model *model,
                                                     const struct weft_save_source *source,
                                                     struct weft_comm *comm,
                                                     struct weft_error *err);

#endif
