/* SPDX-License-Identifier: Apache-2.0 */
/* Differences between two JSON objects, for people: a line for each value, with its path. */
#ifndef WEFT_BASE_JSON_JSON_COMPARE_H
#define WEFT_BASE_JSON_JSON_COMPARE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json/json.h"
#include "base/text.h"

struct weft_json_comparison {
    const char *above; /* path of the objects themselves; NULL: they are the documents */
    /* True if the value at a path ("optimizer.lr") is compared; NULL: all are. */
    bool (*counts)(const char *path);
    bool forgets; /* ignores members of the older object only */
};

/* Appends a line such as "optimizer.lr: 0.0006, was 0.001" for each value that differs, also in
 * objects within both. An array is one value; long values are cut. Returns the number of
 * differences. `out` may be NULL. */
int32_t weft_json_compare(const struct weft_json_value *now, const struct weft_json_value *before,
                          const struct weft_json_comparison *how, struct weft_text *out);

#endif
