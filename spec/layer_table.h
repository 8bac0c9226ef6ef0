/* The field tables of entries of "layers": what every layer has, with the keys of its kind. For the
 * files of this folder alone. */
#ifndef WEFT_SPEC_LAYER_TABLE_H
#define WEFT_SPEC_LAYER_TABLE_H

#include "spec/kind.h"

/* What an entry is decoded into. */
struct weft_layer_decoded {
    struct weft_layer_entry entry;
    union weft_key foreign; /* the value of a key that the entry's kind does not have */
};

/* The table for an entry of that kind: its own keys, and those of Weft's other kinds, whose values
 * are decoded and forgotten, so that whoever writes one can be told. NULL: a kind that is not
 * known. Types of `others` (may be NULL) are among the choices of "type". NULL when memory runs
 * out; owned by the pool. */
WEFT_MUST_USE const struct weft_field_table *weft_layer_table_of(const struct weft_kind *kind,
                                                                 const struct weft_kinds *others,
                                                                 struct weft_pool *pool);

/* The same with the keys of all kinds, of `others` too. */
WEFT_MUST_USE const struct weft_field_table *weft_layer_table_of_all(
    const struct weft_kinds *others, struct weft_pool *pool);

#endif
