#include "base/watch.h"

#include <stdbool.h>
#include <stddef.h>

#include "base/clock.h"

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
        watch->begun_ns = weft_clock_now_ns();
    }
    watch->look(watch);
}

void weft_watch_count(struct weft_watch *watch, const char *noun, int64_t done, int64_t of)
{
    if (!watch) return;
    if (!watch->noun) watch->from = done;
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

void weft_watch_end(struct weft_watch *watch)
{
    if (!watch) return;
    watch->noun = NULL;
    if (watch->parts > 0) return;
    watch->what = NULL;
    watch->look(watch);
}

double weft_watch_share(const struct weft_watch *watch)
{
    double share = watch->share;
    if (watch->noun && watch->of > watch->from)
        share = (double)(watch->done - watch->from) / (double)(watch->of - watch->from);
    if (watch->parts == 0) return share;
    return ((double)watch->part + (share > 0 ? share : 0)) / (double)watch->parts;
}

int64_t weft_watch_left_ns(const struct weft_watch *watch, int64_t now_ns)
{
    double share = weft_watch_share(watch);
    bool counted = watch->of > 0 || watch->parts > 0;
    if (!counted || share <= 0 || share > 1) return -1;
    return (int64_t)((double)(now_ns - watch->begun_ns) * (1 - share) / share);
}
