/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/device/timeline.h"

#include <pthread.h>
#include <stdlib.h>

enum state { ABSENT, GOING, IDLE, BLOCKED, PENDING, WORKING };

/* The state of a lane's stream. */
struct member {
    enum state state;
    const _Atomic uint32_t *pushed, *done;
    const _Atomic uint32_t *reached; /* BLOCKED: it waits until this is not 0 */
    int64_t start_ns, ns;            /* PENDING */
};

struct weft_timeline {
    pthread_mutex_t mutex;
    pthread_cond_t over; /* signals that some work has ended */
    bool issuer_waits;
    struct weft_lane rates[WEFT_MOST_LANES];
    struct weft_lanes lanes; /* the attached lanes */
    struct member members[WEFT_MOST_LANES];
};

enum weft_status weft_timeline_create(struct weft_timeline **out, struct weft_error *err)
{
    struct weft_timeline *timeline = calloc(1, sizeof *timeline);
    if (timeline == NULL) return weft_fail_memory(err, "a timeline");
    pthread_mutex_init(&timeline->mutex, NULL);
    pthread_cond_init(&timeline->over, NULL);
    timeline->lanes.lanes = timeline->rates;
    *out = timeline;
    return WEFT_OK;
}

void weft_timeline_destroy(struct weft_timeline *timeline)
{
    if (timeline == NULL) return;
    pthread_cond_destroy(&timeline->over);
    pthread_mutex_destroy(&timeline->mutex);
    free(timeline);
}

/* True if the lane can do nothing before time advances. */
static bool is_quiet(const struct member *member)
{
    switch (member->state) {
    case GOING:
        return false;
    case IDLE:
        return atomic_load(member->pushed) == atomic_load(member->done);
    case BLOCKED:
        return atomic_load(member->reached) == 0;
    case ABSENT:
    case PENDING:
    case WORKING:
        break;
    }
    return true;
}

static void begin_pending(struct weft_timeline *timeline)
{
    for (int lane = 0; lane < timeline->lanes.n_lanes; lane++) {
        struct member *member = &timeline->members[lane];
        if (member->state != PENDING || member->start_ns > timeline->lanes.now_ns) continue;
        member->state = WORKING;
        weft_lanes_start(&timeline->lanes, lane, member->ns);
    }
}

/* Time at which the next work begins or ends. */
static int64_t next_ns(const struct weft_timeline *timeline)
{
    int64_t next = weft_lanes_next(&timeline->lanes);
    for (int lane = 0; lane < timeline->lanes.n_lanes; lane++) {
        const struct member *member = &timeline->members[lane];
        if (member->state == PENDING && member->start_ns < next) next = member->start_ns;
    }
    return next;
}

/* Lets lanes with finished work go on. Returns true if there are any. */
static bool end_works(struct weft_timeline *timeline)
{
    bool any = false;
    for (int lane = 0; lane < timeline->lanes.n_lanes; lane++) {
        struct member *member = &timeline->members[lane];
        if (member->state != WORKING || weft_lanes_busy(&timeline->lanes, lane)) continue;
        member->state = GOING;
        any = true;
    }
    return any;
}

/* Advances time if no lane can act now. The caller holds the mutex, and calls it after each change
 * that may allow this. */
static void move_on(struct weft_timeline *timeline)
{
    if (!timeline->issuer_waits) return;
    for (int lane = 0; lane < timeline->lanes.n_lanes; lane++)
        if (!is_quiet(&timeline->members[lane])) return;
    for (;;) {
        begin_pending(timeline);
        int64_t next = next_ns(timeline);
        if (next == INT64_MAX) return;
        weft_lanes_advance(&timeline->lanes, next);
        if (end_works(timeline)) break;
    }
    pthread_cond_broadcast(&timeline->over);
}

static void change_state(struct weft_timeline *timeline, int lane, enum state state)
{
    timeline->members[lane].state = state;
    move_on(timeline);
}

void weft_timeline_attach(struct weft_timeline *timeline, int lane, struct weft_rates rates,
                          const _Atomic uint32_t *pushed, const _Atomic uint32_t *done)
{
    pthread_mutex_lock(&timeline->mutex);
    timeline->rates[lane].rates = rates;
    if (lane >= timeline->lanes.n_lanes) timeline->lanes.n_lanes = lane + 1;
    timeline->members[lane] = (struct member){.state = IDLE, .pushed = pushed, .done = done};
    pthread_mutex_unlock(&timeline->mutex);
}

void weft_timeline_issuer_waits(struct weft_timeline *timeline, bool waits)
{
    pthread_mutex_lock(&timeline->mutex);
    timeline->issuer_waits = waits;
    move_on(timeline);
    pthread_mutex_unlock(&timeline->mutex);
}

void weft_timeline_idle(struct weft_timeline *timeline, int lane)
{
    pthread_mutex_lock(&timeline->mutex);
    change_state(timeline, lane, IDLE);
    pthread_mutex_unlock(&timeline->mutex);
}

void weft_timeline_block(struct weft_timeline *timeline, int lane, const _Atomic uint32_t *reached)
{
    pthread_mutex_lock(&timeline->mutex);
    timeline->members[lane].reached = reached;
    change_state(timeline, lane, BLOCKED);
    pthread_mutex_unlock(&timeline->mutex);
}

void weft_timeline_go(struct weft_timeline *timeline, int lane)
{
    pthread_mutex_lock(&timeline->mutex);
    change_state(timeline, lane, GOING);
    pthread_mutex_unlock(&timeline->mutex);
}

int64_t weft_timeline_run(struct weft_timeline *timeline, int lane, int64_t start_ns, int64_t ns)
{
    pthread_mutex_lock(&timeline->mutex);
    struct member *member = &timeline->members[lane];
    int64_t now_ns = timeline->lanes.now_ns;
    member->start_ns = start_ns > now_ns ? start_ns : now_ns;
    member->ns = ns;
    change_state(timeline, lane, PENDING);
    while (member->state != GOING)
        pthread_cond_wait(&timeline->over, &timeline->mutex);
    int64_t end_ns = timeline->lanes.now_ns;
    pthread_mutex_unlock(&timeline->mutex);
    return end_ns;
}
