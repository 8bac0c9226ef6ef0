/* Supplied layers are those that the user of the library brings: a struct weft_layer_kind of
 * include/weft.h for each type, which is wrapped into a kind as any other. What its functions say
 * is checked here before anybody uses it. */
#ifndef WEFT_LAYERS_SUPPLIED_H
#define WEFT_LAYERS_SUPPLIED_H

#include "base/pool.h"
#include "base/status.h"
#include "spec/kind.h"

/* WEFT_E_USAGE when a kind is incomplete, contradicts itself, or its type is one of Weft's or of
 * `others`. */
WEFT_MUST_USE enum weft_status weft_supplied_check(const struct weft_layer_kind *kind,
                                                   const struct weft_kinds *others,
                                                   struct weft_error *err);

/* A kind of what was checked. What its functions answer is WEFT_E_DATA, naming the layer, when they
 * refuse, or the answer cannot be. NULL when memory runs out; owned by the pool, and `theirs` must
 * outlive it. */
WEFT_MUST_USE const struct weft_kind *weft_supplied_wrap(const struct weft_layer_kind *theirs,
                                                         struct weft_pool *pool);

/* What the kind's functions are told of a layer. */
struct weft_layer_facts weft_supplied_facts(const struct weft_layer *layer,
                                            const struct weft_batch *batch);

/* What a call of the kind's function `what` ("forward") means: `status`, with an error in any case,
 * or WEFT_OK. */
enum weft_status weft_supplied_verdict(const struct weft_layer *layer, const char *what,
                                       enum weft_status status, const struct weft_error *said,
                                       struct weft_error *err);

#endif
