/* Supplied layers are those that the user of the library brings: a struct weft_layer_kind of
 * include/weft.h for each type. What its functions say is checked here before anybody uses it. */
#ifndef WEFT_SPEC_SUPPLIED_H
#define WEFT_SPEC_SUPPLIED_H

#include "base/status.h"
#include "spec/field.h"
#include "spec/layer.h"
#include "spec/model.h"

/* The kinds that a config may use besides Weft's own types. */
struct weft_layer_kinds {
    const struct weft_layer_kind *const *kinds; /* [n] */
    int32_t n;
};

/* WEFT_E_USAGE when a kind is incomplete, contradicts itself, or its type is one of Weft's or of
 * `others`. */
WEFT_MUST_USE enum weft_status weft_kind_check(const struct weft_layer_kind *kind,
                                               const struct weft_layer_kinds *others,
                                               struct weft_error *err);

/* The kind of that type, or NULL; `kinds` may be NULL. */
const struct weft_layer_kind *weft_kind_find(const struct weft_layer_kinds *kinds,
                                             const char *type);

/* The field table of a kind's entries in "layers": name, type, repeat, frozen, hidden and its own
 * keys, decoded into a struct weft_layer_entry. NULL when memory runs out; owned by the pool. */
WEFT_MUST_USE const struct weft_field_table *weft_kind_table(const struct weft_layer_kind *kind,
                                                             struct weft_pool *pool);

/* Asks the layer's kind for tensors and outputs (resolved: never 0). WEFT_E_DATA naming the layer
 * when it refuses, or its answer cannot be. */
WEFT_MUST_USE enum weft_status weft_supplied_shape(const struct weft_layer *layer,
                                                   struct weft_layer_shape *out,
                                                   struct weft_error *err);

/* The same of buffers and flops; WEFT_E_DATA too when it does not compute in the batch's dtype. */
WEFT_MUST_USE enum weft_status weft_supplied_needs(const struct weft_layer *layer,
                                                   const struct weft_batch *batch,
                                                   struct weft_layer_needs *out,
                                                   struct weft_error *err);

/* What the kind's functions are told of a layer. */
struct weft_layer_facts weft_supplied_facts(const struct weft_layer *layer,
                                            const struct weft_batch *batch);

/* What a call of the kind's function `what` ("forward") means: `status`, with an error in any case,
 * or WEFT_OK. */
enum weft_status weft_supplied_verdict(const struct weft_layer *layer, const char *what,
                                       enum weft_status status, const struct weft_error *said,
                                       struct weft_error *err);

#endif
