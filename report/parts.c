/* SPDX-License-Identifier: Apache-2.0 */
#include "report/parts.h"

#include <string.h>

#include "base/wrap.h"

void weft_parts_render(const struct weft_parts *parts, int32_t columns, struct weft_text *out)
{
    bool shown[WEFT_PARTS_MOST] = {false};
    size_t taken = 0, between = strlen(parts->between);
    for (int32_t i = 0; i < parts->n; i++) {
        const char *text = parts->texts[parts->worth[i]];
        size_t more = weft_shown_columns(text, strlen(text)) + (taken > 0 ? between : 0);
        bool fits = columns == 0 || taken + more <= (size_t)columns;
        if (text[0] == '\0' || (i >= parts->always && !fits)) continue;
        shown[parts->worth[i]] = true;
        taken += more;
    }
    bool first = true;
    for (int32_t i = 0; i < parts->n; i++) {
        if (!shown[i]) continue;
        weft_text_addf(out, "%s%s", first ? "" : parts->between, parts->texts[i]);
        first = false;
    }
}
