#include "memory_model/layout.h"

#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "memory_model/packing.h"

/* Residents lie at the bottom, whatever the order: each shuts its addresses to all others for the
 * whole period, so where it lies changes nothing. The rest is packed first-fit in many orders, and
 * the best is improved by moving what sticks out towards the front of the order. */

enum order {
    BY_BYTES,
    BY_AREA,
    BY_LENGTH,
    BY_START,
    BY_CROWD,
    ORDER_COUNT,
};

/* A body in a sort: qsort cannot be told the key otherwise. */
struct ranked {
    const struct weft_packing_body *body;
    int64_t offset;
    enum order order;
    int32_t index;
};

struct search {
    struct weft_packing packing;
    int64_t least_bytes;   /* the largest live sum */
    int64_t best_bytes;    /* the lowest end so far, with best_offsets */
    int64_t *best_offsets; /* by body */
    int64_t pass_limit;    /* of improve */
    int64_t work_limit;    /* of packing.work */
    /* Scratch. */
    struct ranked *ranked;
    int32_t *order;            /* bodies */
    int64_t *kept;             /* by body: offsets */
    int64_t *heights, *depths; /* by slot */
};

static int compare_int64(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

/* Negative when `a` comes before `b`. Ends in the order of buffers, so that it is total. */
static int compare(const struct weft_packing_body *a, const struct weft_packing_body *b,
                   enum order order)
{
    int by_bytes = compare_int64(b->bytes, a->bytes);
    int by_length = compare_int64(b->length, a->length);
    int by_start = compare_int64(a->first, b->first);
    int by = 0;
    switch (order) {
    case BY_AREA:
        by = (b->area > a->area) - (b->area < a->area);
        break;
    case BY_LENGTH:
        by = by_length != 0 ? by_length : by_start;
        break;
    case BY_START:
        by = by_start != 0 ? by_start : by_length;
        break;
    case BY_CROWD:
        by = compare_int64(b->crowd_bytes, a->crowd_bytes);
        break;
    case BY_BYTES:
    case ORDER_COUNT:
        break;
    }
    if (by == 0) by = by_bytes;
    if (by == 0) by = by_length != 0 ? by_length : by_start;
    return by != 0 ? by : compare_int64(a->buffer, b->buffer);
}

static int compare_ranked(const void *left, const void *right)
{
    const struct ranked *a = left, *b = right;
    if (a->offset != b->offset) return compare_int64(a->offset, b->offset);
    return compare(a->body, b->body, a->order);
}

/* Puts all bodies into search->order: by offset where offsets are given, then by `order`. */
static void rank(struct search *search, const int64_t *offsets, enum order order)
{
    struct weft_packing *packing = &search->packing;
    for (int32_t b = 0; b < packing->n_bodies; b++) {
        search->ranked[b] = (struct ranked){
            .body = &packing->bodies[b],
            .offset = offsets == NULL ? 0 : offsets[b],
            .order = order,
            .index = b,
        };
    }
    qsort(search->ranked, (size_t)packing->n_bodies, sizeof *search->ranked, compare_ranked);
    for (int32_t i = 0; i < packing->n_bodies; i++)
        search->order[i] = search->ranked[i].index;
}

static void record(struct search *search)
{
    const struct weft_packing *packing = &search->packing;
    if (packing->end_bytes >= search->best_bytes) return;
    search->best_bytes = packing->end_bytes;
    memcpy(search->best_offsets, packing->offsets,
           (size_t)packing->n_bodies * sizeof *packing->offsets);
}

/* Places all bodies in search->order. The position in it of the first that would end above
 * limit_bytes, or -1 when all have a place. */
static int32_t place_all(struct search *search, int64_t limit_bytes)
{
    struct weft_packing *packing = &search->packing;
    weft_packing_clear(packing, false);
    for (int32_t i = 0; i < packing->n_bodies; i++) {
        if (!weft_packing_place(packing, search->order[i], limit_bytes)) return i;
    }
    record(search);
    return -1;
}

/* Lets every body of the pass sink, from the lowest on. */
static void settle(struct search *search)
{
    memcpy(search->kept, search->packing.offsets,
           (size_t)search->packing.n_bodies * sizeof *search->kept);
    rank(search, search->kept, BY_BYTES);
    (void)place_all(search, INT64_MAX);
}

/* Bodies that live for `least_length` slots or more (activations, and what is gathered for long,
 * nest like brackets) stand on the floor, the others hang from the ceiling, which is as low as the
 * fullest slot lets it be. */
static void place_from_both_ends(struct search *search, int32_t least_length, enum order floor,
                                 enum order ceiling)
{
    struct weft_packing *packing = &search->packing;
    int32_t n = packing->n_bodies;
    weft_packing_clear(packing, false);
    rank(search, NULL, floor);
    for (int32_t i = 0; i < n; i++) {
        int32_t b = search->order[i];
        if (packing->bodies[b].length >= least_length)
            (void)weft_packing_place(packing, b, INT64_MAX);
    }
    weft_packing_heights(packing, search->heights);
    memcpy(search->kept, packing->offsets, (size_t)n * sizeof *search->kept);
    weft_packing_clear(packing, true);
    rank(search, NULL, ceiling);
    for (int32_t i = 0; i < n; i++) {
        int32_t b = search->order[i];
        if (search->kept[b] < 0) (void)weft_packing_place(packing, b, INT64_MAX);
    }
    weft_packing_heights(packing, search->depths);
    int64_t ceiling_bytes = 0;
    for (int32_t s = 0; s < packing->n_slots; s++) {
        int64_t bytes = search->heights[s] + search->depths[s];
        if (bytes > ceiling_bytes) ceiling_bytes = bytes;
    }
    for (int32_t b = 0; b < n; b++) {
        if (search->kept[b] < 0)
            search->kept[b] = ceiling_bytes - packing->offsets[b] - packing->bodies[b].bytes;
    }
    memcpy(packing->offsets, search->kept, (size_t)n * sizeof *search->kept);
    packing->end_bytes = ceiling_bytes;
    record(search);
    settle(search);
}

static void try_orders(struct search *search)
{
    for (enum order order = 0; order < ORDER_COUNT; order++) {
        rank(search, NULL, order);
        (void)place_all(search, INT64_MAX);
        settle(search);
        if (search->best_bytes <= search->least_bytes) return;
    }
    for (int32_t part = 2; part <= 32; part *= 2) {
        int32_t least_length = search->packing.n_slots / part + 1;
        for (enum order order = 0; order < ORDER_COUNT; order++) {
            place_from_both_ends(search, least_length, BY_LENGTH, order);
            if (search->best_bytes <= search->least_bytes) return;
        }
    }
}

/* Squeaky wheel: aims between the best and the least possible, and moves whatever does not fit
 * there towards the front, so that what is hard to place comes to be placed early. */
static void improve(struct search *search)
{
    struct weft_packing *packing = &search->packing;
    rank(search, search->best_offsets, BY_BYTES);
    uint64_t draw = 0;
    for (int64_t pass = 0; pass < search->pass_limit && packing->work < search->work_limit;
         pass++) {
        if (search->best_bytes <= search->least_bytes) return;
        int64_t gap = search->best_bytes - search->least_bytes;
        int64_t aim = search->best_bytes - (gap + 7) / 8;
        int32_t stuck = place_all(search, aim);
        if (stuck < 0) continue;
        int32_t body = search->order[stuck];
        int32_t to = (int32_t)weft_rng_below(0, 0, draw++, (uint64_t)stuck + 1);
        memmove(&search->order[to + 1], &search->order[to],
                (size_t)(stuck - to) * sizeof *search->order);
        search->order[to] = body;
    }
}

static int64_t largest_live_sum(const struct weft_packing *packing)
{
    int64_t most = 0;
    for (int32_t s = 0; s < packing->n_slots; s++) {
        if (packing->slot_bytes[s] > most) most = packing->slot_bytes[s];
    }
    return most;
}

static enum weft_status start(struct search *search, struct weft_pool *pool, struct weft_error *err)
{
    size_t n_bodies = (size_t)search->packing.n_bodies, n_slots = (size_t)search->packing.n_slots;
    search->ranked = weft_pool_array(pool, n_bodies, sizeof *search->ranked);
    search->order = weft_pool_array(pool, n_bodies, sizeof *search->order);
    search->kept = weft_pool_array(pool, n_bodies, sizeof *search->kept);
    search->best_offsets = weft_pool_array(pool, n_bodies, sizeof *search->best_offsets);
    search->heights = weft_pool_array(pool, n_slots, sizeof *search->heights);
    search->depths = weft_pool_array(pool, n_slots, sizeof *search->depths);
    if (search->ranked == NULL || search->order == NULL || search->kept == NULL ||
        search->best_offsets == NULL || search->heights == NULL || search->depths == NULL) {
        return weft_fail_memory(err, "the layout");
    }
    search->best_bytes = INT64_MAX;
    search->least_bytes = largest_live_sum(&search->packing);
    return WEFT_OK;
}

enum weft_status weft_layout(struct weft_layout_buffer *buffers, int32_t n_buffers, int32_t n_slots,
                             int32_t effort, int64_t *end_bytes, int64_t *live_bytes,
                             struct weft_error *err)
{
    /* A tenth of a second at most on large instances, and on small ones until little more is to be
     * had; as much again for each step of effort. */
    static const int64_t passes_of_effort = 2000, work_of_effort = 100000000;
    int64_t share = (effort > 0 ? effort : 0) + 1;
    struct weft_pool pool = {0};
    struct search search = {.pass_limit = passes_of_effort * share,
                            .work_limit = work_of_effort * share};
    enum weft_status status;
    WEFT_TRY_GOTO(done,
                  weft_packing_fill(&search.packing, &pool, buffers, n_buffers, n_slots, err));
    WEFT_TRY_GOTO(done, start(&search, &pool, err));
    try_orders(&search);
    improve(&search);
    int64_t floor_bytes = 0;
    for (int32_t i = 0; i < n_buffers; i++) {
        buffers[i].offset = floor_bytes;
        if (weft_packing_is_resident(&buffers[i], n_slots)) floor_bytes += buffers[i].bytes;
    }
    for (int32_t b = 0; b < search.packing.n_bodies; b++)
        buffers[search.packing.bodies[b].buffer].offset = floor_bytes + search.best_offsets[b];
    *end_bytes = floor_bytes + search.best_bytes;
    *live_bytes = floor_bytes + search.least_bytes;
done:
    weft_pool_finish(&pool);
    return status;
}
