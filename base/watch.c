/* SPDX-License-Identifier: Apache-2.0 */
#include "base/watch.h"

#include <stdbool.h>
#include <stddef.h>

void weft_watch_look(struct weft_watch *watch)
{
    if (watch && watch->what) watch->look(watch);
}

void weft_watch_begin(struct weft_watch *watch, const char *what)
{
    if (!watch) return;
    watch->noun = NULL;
    watch->from = watch->done = watch->of = 0;
    watch->best_ns = watch->bound_ns = 0;
    watch->share = -1;
    if (watch->parts == 0) {
        watch->what = what;
        watch->begun_ns = watch->now_ns();
    }
    watch->look(watch);
}

void weft_watch_count(struct weft_watch *watch, const char *noun, int64_t done, int64_t of)
{
    if (!watch) return;
    if (!watch->noun) watch->from = done;
    if (!watch->noun || done != watch->done) watch->counted_ns = watch->now_ns();
    watch->noun = noun;
    watch->done = done;
    watch->of = of;
    weft_watch_look(watch);
}

void weft_watch_part(struct weft_watch *watch, const char *what, const char *noun, int64_t part,
                     int64_t parts, int64_t begun_ns)
{
    if (!watch) return;
    watch->what = parts > 0 ? what : NULL;
    watch->part_noun = noun;
    watch->part = part;
    watch->parts = parts;
    watch->begun_ns = begun_ns;
    watch->counted_ns = watch->now_ns();
    if (parts == 0) watch->look(watch);
}

void weft_watch_plan(struct weft_watch *watch, int64_t best_ns, int64_t bound_ns, double share)
{
    if (!watch) return;
    watch->best_ns = best_ns;
    watch->bound_ns = bound_ns;
    watch->share = share;
    weft_watch_look(watch);
}

void weft_watch_follow(struct weft_watch *watch, const struct weft_watch *other)
{
    if (!watch) return;
    watch->noun = other->noun;
    watch->from = other->from;
    watch->done = other->done;
    watch->of = other->of;
    watch->counted_ns = other->counted_ns;
    if (watch->parts == 0) watch->begun_ns = other->begun_ns;
    if (watch->parts == 0 && other->what) watch->what = other->what;
    weft_watch_look(watch);
}

void weft_watch_end(struct weft_watch *watch)
{
    if (!watch) return;
    watch->noun = NULL;
    if (watch->parts > 0) return;
    watch->what = NULL;
    watch->look(watch);
}

/* The share of the whole work that is done after `more` further counts. */
static double share_after(const struct weft_watch *watch, int64_t more)
{
    double share = watch->share;
    bool counted = watch->noun && watch->of > watch->from;
    if (counted)
        share = (double)(watch->done - watch->from + more) / (double)(watch->of - watch->from);
    if (watch->parts == 0) return share;
    if (!counted) share = (double)more;
    return ((double)watch->part + share) / (double)watch->parts;
}

double weft_watch_share(const struct weft_watch *watch)
{
    return share_after(watch, 0);
}

int64_t weft_watch_left_ns(const struct weft_watch *watch)
{
    double share = share_after(watch, 0), next = share_after(watch, 1);
    bool counted = watch->of > 0 || watch->parts > 0;
    if (!counted || share <= 0 || share > 1) return -1;
    double passed_ns = (double)(watch->now_ns() - watch->begun_ns);
    double all_ns = (double)(watch->counted_ns - watch->begun_ns) / share;
    double late_ns = next < 1 ? passed_ns / next : passed_ns;
    if (share < 1 && next >= 1 && passed_ns > all_ns) return -1;
    return (int64_t)((late_ns > all_ns ? late_ns : all_ns) - passed_ns);
}
