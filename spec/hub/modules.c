/* SPDX-License-Identifier: Apache-2.0 */
#include "spec/hub/modules.h"

#include <string.h>

#include "spec/hub/layers.h"

/* Appends the module of a tensor: a block's up to its number, otherwise without ".weight". */
static void add_module(const struct weft_hub_family *family, const struct weft_hub_row *row,
                       int32_t block, struct weft_text *out)
{
    const bool is_block = row->place == WEFT_HUB_IN_BLOCK && family->block_module != NULL;
    const char *name = is_block ? family->block_module : row->hub, *number = strstr(name, "{i}");
    weft_text_add(out, weft_hub_prefix_at(row->place, family->prefix));
    if (number != NULL)
        weft_text_addf(out, "%.*s%d", (int)(number - name), name, block);
    else
        weft_text_append(out, name, (size_t)(strrchr(name, '.') - name));
}

void weft_hub_list_modules(const struct weft_hub_family *family, enum weft_hub_place place,
                           int32_t block, struct weft_text *out)
{
    for (const struct weft_hub_row *row = family->rows; row->hub != NULL; row++) {
        struct weft_text module;
        if (row->place != place || row->own == NULL) continue;
        weft_text_init(&module);
        add_module(family, row, block, &module);
        if (out->length == 0 || strstr(weft_text_chars(out), weft_text_chars(&module)) == NULL)
            weft_text_addf(out, "%s%s", out->length > 0 ? "," : "", weft_text_chars(&module));
        if (!weft_text_ok(&module)) out->failed = true;
        weft_text_finish(&module);
    }
}
