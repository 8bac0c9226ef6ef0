/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/study/least.h"

enum weft_status weft_least_lower(const struct weft_least *least, int64_t no, int64_t *yes,
                                  struct weft_error *err)
{
    const int64_t unit = no < least->unit ? 1 : least->unit;
    while (*yes - no > unit && (least->share == 0 || *yes - no > *yes / least->share)) {
        const int64_t middle = no + (*yes - no) / 2 / unit * unit;
        bool passes;
        WEFT_TRY(least->ask(least->context, middle, &passes, err));
        if (passes)
            *yes = middle;
        else
            no = middle;
    }
    return WEFT_OK;
}

enum weft_status weft_least_find(const struct weft_least *least, int64_t no, int64_t *yes,
                                 struct weft_error *err)
{
    const int64_t unit = least->unit;
    bool passes;
    WEFT_TRY(least->ask(least->context, *yes, &passes, err));
    while (!passes && *yes <= least->most / 2) {
        no = *yes;
        *yes = no < unit && no > unit / 2 ? unit : no * 2;
        WEFT_TRY(least->ask(least->context, *yes, &passes, err));
    }
    if (passes) return weft_least_lower(least, no, yes, err);
    *yes = 0;
    return WEFT_OK;
}
