/* SPDX-License-Identifier: Apache-2.0 */
/* Field tables for entries of "layers": the keys of every layer and those of its kind. Private to
 * this folder. */
#ifndef WEFT_SPEC_LAYER_TABLE_H
#define WEFT_SPEC_LAYER_TABLE_H

#include "spec/kind.h"

/* Target of decoding an entry. */
struct weft_layer_decoded {
    struct weft_layer_entry entry;
    union weft_key foreign; /* value of a key that the entry's kind does not have */
};

/* The table for an entry of `kind` (NULL: unknown). It has the kind's own keys, and the keys of
 * Weft's other kinds, which are decoded and dropped so that an error can name them. The choices of
 * "type" include `others` (may be NULL). The pool owns it; NULL without memory. */
WEFT_MUST_USE const struct weft_field_table *weft_layer_table_of(const struct weft_kind *kind,
                                                                 const struct weft_kinds *others,
                                                                 struct weft_pool *pool);

/* The same with the keys of all kinds, `others` included. */
WEFT_MUST_USE const struct weft_field_table *weft_layer_table_of_all(
    const struct weft_kinds *others, struct weft_pool *pool);

#endif
