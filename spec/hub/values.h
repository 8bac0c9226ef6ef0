/* SPDX-License-Identifier: Apache-2.0 */
/* Values of config.json next to the usual ones of a key's row. */
#ifndef WEFT_SPEC_HUB_VALUES_H
#define WEFT_SPEC_HUB_VALUES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json/json.h"
#include "base/text.h"

/* Whether the value is one of `usual` (families.h). An array or an object is if each of its
 * elements is, so an empty one always is. */
bool weft_hub_value_is(const struct weft_json_value *value, const char *usual, int64_t head_dim);

/* Appends the value as JSON on one line, cut after about 60 bytes. */
void weft_hub_value_show(const struct weft_json_value *value, struct weft_text *out);
/* Appends the usual values: "\"silu\" or null". */
void weft_hub_usual_show(const char *usual, int64_t head_dim, struct weft_text *out);

#endif
