/* SPDX-License-Identifier: Apache-2.0 */
/* Supplied layers come from the library's user: one struct weft_layer_kind (include/weft.h) for
 * each type. A wrapper turns it into a kind like Weft's own, and checks each answer of its
 * functions before use. */
#ifndef WEFT_LAYERS_SUPPLIED_H
#define WEFT_LAYERS_SUPPLIED_H

#include "base/pool.h"
#include "base/status.h"
#include "spec/kind.h"

/* Checks a kind. WEFT_E_USAGE if it is incomplete or contradicts itself, or if Weft or `others`
 * already have its type. */
WEFT_MUST_USE enum weft_status weft_supplied_check(const struct weft_layer_kind *kind,
                                                   const struct weft_kinds *others,
                                                   struct weft_error *err);

/* Wraps a checked kind. If one of its functions refuses, or gives an impossible answer, the wrapper
 * fails with WEFT_E_DATA and names the layer. Returns NULL if memory runs out. The pool owns the
 * result, and `theirs` must outlive it. */
WEFT_MUST_USE const struct weft_kind *weft_supplied_wrap(const struct weft_layer_kind *theirs,
                                                         struct weft_pool *pool);

/* The description of a layer that the kind's functions get. `batch` may be NULL: samples and
 * seq_len are then 0. */
struct weft_layer_facts weft_supplied_facts(const struct weft_layer *layer,
                                            const struct weft_batch *batch);

/* Turns the result of a kind's function into Weft's. Returns `status`, or WEFT_E_INTERNAL if it is
 * out of range. On failure *err has the function's own text, or `what` if it gave none. */
enum weft_status weft_supplied_verdict(const struct weft_layer *layer, const char *what,
                                       enum weft_status status, const struct weft_error *said,
                                       struct weft_error *err);

#endif
