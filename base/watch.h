/* A watch is how far a piece of work has come. The worker says so as often as it likes; each time
 * the watcher is called, and decides what it shows and how often. One thread tells at a time. All
 * functions accept NULL: nobody watches. */
#ifndef WEFT_BASE_WATCH_H
#define WEFT_BASE_WATCH_H

#include <stdint.h>

struct weft_watch {
    /* The watcher's: */
    void (*look)(struct weft_watch *watch);
    int64_t (*now_ns)(void);
    /* The worker's; see below: */
    const char *what;       /* "plan"; NULL while nothing is done */
    int64_t begun_ns;       /* on now_ns */
    int64_t counted_ns;     /* when one more was done, or a part began */
    const char *noun;       /* "step": what is counted; NULL: nothing is */
    int64_t from, done, of; /* `from` stood at the beginning; of = 0: nobody knows how many */
    const char *part_noun;
    int64_t part, parts; /* the work is one of several of a larger one; parts = 0: it is not */
    int64_t best_ns, bound_ns; /* step times of a plan in the making; 0 = none yet */
    double share;              /* of the budget; below 0 without one */
};

/* A piece of work begins; the text is static. What is part of a larger one (weft_watch_part) keeps
 * the name and the beginning of that one. */
void weft_watch_begin(struct weft_watch *watch, const char *what);
/* So many of so many are done; how many were done before it began is what the first call says. */
void weft_watch_count(struct weft_watch *watch, const char *noun, int64_t done, int64_t of);
/* What follows is `part` of `parts`, from 0 on, of a work that began at begun_ns; parts = 0: the
 * larger work is over. */
void weft_watch_part(struct weft_watch *watch, const char *what, const char *noun, int64_t part,
                     int64_t parts, int64_t begun_ns);
/* How good the plan is that would be had now, 0 = not known; and the part of the budget that is
 * used up. */
void weft_watch_plan(struct weft_watch *watch, int64_t best_ns, int64_t bound_ns, double share);
/* Takes over what is counted in `other`, which a process that does the work for this one tells;
 * `other` and its noun outlive the work. */
void weft_watch_follow(struct weft_watch *watch, const struct weft_watch *other);
/* Nothing is new but the time. */
void weft_watch_look(struct weft_watch *watch);
/* The piece of work is done, or has failed. */
void weft_watch_end(struct weft_watch *watch);

/* Time that is left by what has been counted so far, parts included; -1 while nothing tells, and
 * once the last one is late. It counts down until the next one is due; after that it grows while
 * nothing is counted. */
int64_t weft_watch_left_ns(const struct weft_watch *watch);
/* From 0 to 1, of all parts or of the budget; -1 when nobody knows. */
double weft_watch_share(const struct weft_watch *watch);

#endif
