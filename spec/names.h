/* Names are what everything of a layer or a tensor is found by: its entries in checkpoints, its
 * initial values. So no two are alike in a model, also with what files put behind them. */
#ifndef WEFT_SPEC_NAMES_H
#define WEFT_SPEC_NAMES_H

#include "spec/model.h"

/* Whether a layer, or a tensor of one, may have the name: letters, digits, "_", "-" and ".", at
 * most `most_bytes` of them. It goes into paths, so ".." is refused, and at an end that other names
 * are joined to by a dot, "." too. */
bool weft_name_is_good(const char *name, size_t most_bytes);

/* WEFT_E_DATA when two layers of the model have one name. */
WEFT_MUST_USE enum weft_status weft_names_check_layers(const struct weft_model *model,
                                                       struct weft_error *err);
/* WEFT_E_DATA naming both layers when two tensors have one name, or one has the name that another's
 * moments are saved under. */
WEFT_MUST_USE enum weft_status weft_names_check_tensors(const struct weft_model *model,
                                                        struct weft_error *err);

#endif
