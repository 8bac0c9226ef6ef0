/* Differences between two objects of JSON, for people: a line for each value, with its path.
 */
#ifndef WEFT_BASE_JSON_JSON_COMPARE_H
#define WEFT_BASE_JSON_JSON_COMPARE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json/json.h"
#include "base/text.h"

struct weft_json_comparison {
    const char *above; /* path of the objects themselves; NULL: they are the documents */
    /* Whether the value at a path ("optimizer.lr") is compared; NULL: each is. */
    bool (*counts)(const char *path);
    bool forgets; /* what only the older object has is passed over */
};

/* Appends "optimizer.lr: 0.0006, was 0.001", lines apart, for each value in which the objects, or
 * objects in both of them, differ; an array is one value, and long ones are cut. Returns how many
 * there are. `out` may be NULL. */
int32_t weft_json_compare(const struct weft_json_value *now, const struct weft_json_value *before,
                          const struct weft_json_comparison *how, struct weft_text *out);

#endif
