/* SPDX-License-Identifier: Apache-2.0 */
#include "memory_model/category.h"

#include <string.h>

static const struct {
    const char *key, *text;
} categories[WEFT_CATEGORY_COUNT] = {
#define WEFT_CATEGORY_ENTRY(name, key, text) [WEFT_CATEGORY_##name] = {key, text},
    WEFT_CATEGORY_MAP(WEFT_CATEGORY_ENTRY)
#undef WEFT_CATEGORY_ENTRY
};

const char *weft_category_key(enum weft_category category)
{
    return categories[category].key;
}

const char *weft_category_text(enum weft_category category)
{
    return categories[category].text;
}

bool weft_category_read(const char *key, enum weft_category *out)
{
    for (int c = 0; c < WEFT_CATEGORY_COUNT; c++) {
        if (strcmp(categories[c].key, key) != 0) continue;
        *out = (enum weft_category)c;
        return true;
    }
    return false;
}
