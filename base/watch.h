/* SPDX-License-Identifier: Apache-2.0 */
/* A watch shows the progress of work. The worker reports as often as it likes; each report calls
 * the watcher, which decides when to print. One thread reports at a time. All functions accept
 * NULL. */
#ifndef WEFT_BASE_WATCH_H
#define WEFT_BASE_WATCH_H

#include <stdint.h>

struct weft_watch {
    /* Set by the watcher: */
    void (*look)(struct weft_watch *watch);
    int64_t (*now_ns)(void);
    /* Set by the worker; see below: */
    const char *what;       /* "plan"; NULL while idle */
    int64_t begun_ns;       /* on now_ns */
    int64_t counted_ns;     /* time of the last count, or of a part's begin */
    const char *noun;       /* "step": the counted unit; NULL: none */
    int64_t from, done, of; /* `from`: the count at the beginning; of = 0: total not known */
    const char *part_noun;
    int64_t part, parts;       /* a part of larger work; parts = 0: no parts */
    int64_t best_ns, bound_ns; /* step times of the plan in the making; 0: none yet */
    double share;              /* spent share of the budget; below 0: no budget */
};

/* Begins work; the text is static. A part of larger work (weft_watch_part) keeps that work's name
 * and begin. */
void weft_watch_begin(struct weft_watch *watch, const char *what);
/* Reports `done` of `of`. The first call gives the count before the work began. */
void weft_watch_count(struct weft_watch *watch, const char *noun, int64_t done, int64_t of);
/* Begins `part` of `parts`, from 0, of work that began at begun_ns; parts = 0: the larger work
 * ends. */
void weft_watch_part(struct weft_watch *watch, const char *what, const char *noun, int64_t part,
                     int64_t parts, int64_t begun_ns);
/* Reports the best plan so far, 0 = not known, and the spent share of the budget. */
void weft_watch_plan(struct weft_watch *watch, int64_t best_ns, int64_t bound_ns, double share);
/* Copies the counts of `other`, which another process reports, and its name unless this is part of
 * larger work. The texts of `other` outlive the work. */
void weft_watch_follow(struct weft_watch *watch, const struct weft_watch *other);
/* Reports only that time passed. */
void weft_watch_look(struct weft_watch *watch);
/* Ends the work, done or failed. */
void weft_watch_end(struct weft_watch *watch);

/* Estimates the time left from the counts so far, parts included; -1 if it is not known, or the
 * last count is late. It decreases until the next count is due, then grows while nothing is
 * counted. */
int64_t weft_watch_left_ns(const struct weft_watch *watch);
/* The share done, 0 to 1, of all parts or of the budget; -1 if it is not known. */
double weft_watch_share(const struct weft_watch *watch);

#endif
