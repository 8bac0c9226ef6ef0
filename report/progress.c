/* SPDX-License-Identifier: Apache-2.0 */
#include "report/progress.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "report/parts.h"

enum { PART, COUNT, BEST, BOUND, GAP, SHARE, TIME, N_PARTS };

static void add_count(char *out, const char *noun, int64_t done, int64_t of)
{
    if (of > 0)
        snprintf(out, WEFT_PART_BYTES, "%s %lld of %lld", noun, (long long)done, (long long)of);
    else
        snprintf(out, WEFT_PART_BYTES, "%s %lld", noun, (long long)done);
}

static void add_plan(const struct weft_watch *watch, struct weft_parts *parts)
{
    char text[WEFT_UNITS_TEXT_BYTES];
    int64_t best_ns = watch->best_ns, bound_ns = watch->bound_ns;
    if (best_ns > 0)
        snprintf(parts->texts[BEST], WEFT_PART_BYTES, "best %s", weft_units_show_ns(best_ns, text));
    if (bound_ns > 0)
        snprintf(parts->texts[BOUND], WEFT_PART_BYTES, "bound %s",
                 weft_units_show_ns(bound_ns, text));
    if (best_ns > 0 && bound_ns > 0)
        snprintf(parts->texts[GAP], WEFT_PART_BYTES, "gap %.2f %%",
                 100.0 * (double)(best_ns - bound_ns) / (double)bound_ns);
    if (watch->share >= 0)
        snprintf(parts->texts[SHARE], WEFT_PART_BYTES, "budget %.0f %%",
                 100.0 * (watch->share < 1 ? watch->share : 1));
}

/* The time left, or the time passed if the rest is unknown, in sensible precision. */
static void add_time(const struct weft_watch *watch, char *out)
{
    int64_t left_ns = weft_watch_left_ns(watch);
    const char *what = left_ns >= 0 ? "left" : "so far";
    double s = (double)(left_ns >= 0 ? left_ns : watch->now_ns() - watch->begun_ns) / 1e9;
    if (left_ns < 0 && s < 10)
        snprintf(out, WEFT_PART_BYTES, "%.1f s %s", s, what);
    else if (s < 90)
        snprintf(out, WEFT_PART_BYTES, "%.0f s %s", left_ns >= 0 ? ceil(s) : floor(s), what);
    else if (s < 90 * 60)
        snprintf(out, WEFT_PART_BYTES, "%.0f min %s", s / 60, what);
    else
        snprintf(out, WEFT_PART_BYTES, "%.1f h %s", s / 3600, what);
}

void weft_report_progress(const struct weft_watch *watch, int32_t columns, struct weft_text *out)
{
    static const int32_t worth[N_PARTS] = {PART, TIME, COUNT, BEST, GAP, SHARE, BOUND};
    struct weft_parts parts = {.between = ", ", .worth = worth, .n = N_PARTS};
    int32_t taken = (int32_t)strlen(watch->what) + 2;
    if (watch->parts > 0)
        add_count(parts.texts[PART], watch->part_noun, watch->part + 1, watch->parts);
    if (watch->noun) add_count(parts.texts[COUNT], watch->noun, watch->done, watch->of);
    add_plan(watch, &parts);
    add_time(watch, parts.texts[TIME]);
    weft_text_addf(out, "%s: ", watch->what);
    if (columns > 0) columns = columns > taken ? columns - taken : 1;
    weft_parts_render(&parts, columns, out);
}
