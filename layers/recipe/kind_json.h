/* SPDX-License-Identifier: Apache-2.0 */
/* A kind as JSON: an element of "model.kinds" in a config. The tables name every key; the reader
 * makes the structs of recipe.h from it, and the writer makes the JSON from these. */
#ifndef WEFT_LAYERS_RECIPE_KIND_JSON_H
#define WEFT_LAYERS_RECIPE_KIND_JSON_H

#include "layers/recipe/op.h"

/* Targets of the tables. A choice is an index, or -1 if it is left out. The reader decodes other
 * keys by hand. */
struct weft_kind_decoded {
    const char *kind, *text;
    int input; /* enum weft_kind_input of "rows", "tokens" */
};
enum weft_key_type { WEFT_KEY_INTEGER_TYPE, WEFT_KEY_NUMBER_TYPE, WEFT_KEY_FLAG_TYPE };
struct weft_key_decoded {
    const char *name, *text;
    int type; /* enum weft_key_type */
};
struct weft_step_decoded {
    const char *name;
    int op, kind, then, init, save;
};

extern const struct weft_field_table weft_kind_key_table, weft_kind_step_table;

/* The op at a choice of "op"; and the word of a choice of the field, NONE for -1. */
const struct weft_op *weft_kind_op(int choice);
enum weft_word weft_kind_word(const char *field, int choice);
const char *weft_word_name(enum weft_word word);

/* Writes the parts of a kind that its layers' computation depends on: input, definitions, steps. */
void weft_recipe_encode(const struct weft_kind *kind, struct weft_json_writer *writer);

#endif
