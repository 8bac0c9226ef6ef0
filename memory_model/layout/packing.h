/* A packing is a set of bodies that get offsets one after another, each at the lowest offset where
 * it meets none of those before it. A body is a buffer as the packing sees it: segments (runs of
 * pieces with the same life) at fixed places. Which body comes when is for seed.c to try, and what
 * is in the way for repair.c to move. Private to memory_model/. */
#ifndef WEFT_MEMORY_MODEL_LAYOUT_PACKING_H
#define WEFT_MEMORY_MODEL_LAYOUT_PACKING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/pool.h"
#include "base/status.h"
#include "base/work.h"
#include "memory_model/layout/buffer.h"

/* Half units of work (base/work.h) that a tenant takes that is looked at. */
enum { WEFT_PACKING_HALF_UNITS = 5 };

struct weft_packing_segment {
    int64_t at; /* in its body */
    int64_t bytes;
    int32_t first, length; /* slots: the life, from `first` on, round the end */
};

struct weft_packing_body {
    int32_t buffer; /* that it stands for */
    int32_t n_segments;
    const struct weft_packing_segment *segments; /* by `at` */
    int64_t bytes;
    double area;           /* bytes times slots */
    int64_t crowd_bytes;   /* the most that lives in a slot of its life, itself included */
    int32_t first, length; /* slots of its longest segment */
};

/* A segment that has its place. */
struct weft_packing_tenant {
    int64_t begin, end;
    int32_t first, length;
    int32_t body;
};

struct weft_packing {
    int32_t n_slots;
    int32_t n_bodies;
    struct weft_packing_body *bodies;
    int64_t *slot_bytes; /* by slot: live sum of the bodies */
    int64_t total_bytes; /* of all bodies side by side */
    /* The state of one pass. */
    bool mirrored; /* bodies stand on their heads: offsets count down from a ceiling */
    int32_t n_tenants;
    struct weft_packing_tenant *tenants; /* by begin */
    int64_t *offsets;                    /* by body; -1 before it has one */
    int32_t *cursors;                    /* scratch, by segment of one body */
    int64_t end_bytes;                   /* highest end so far */
    int64_t work;                        /* tenants looked at, all passes together */
    int64_t counted;                     /* of `work`, in the budget */
    struct weft_budget budget;
    /* All passes together: */
    int64_t least_bytes;   /* the largest live sum: no pass can end lower */
    int64_t best_bytes;    /* lowest end of a whole pass, with */
    int64_t *best_offsets; /* by body */
};

/* Bodies of those buffers that do not live in all slots (those need no packing), arrays the pool's.
 * Buffers and their lives are only read. WEFT_E_SYSTEM. */
WEFT_MUST_USE enum weft_status weft_packing_fill(struct weft_packing *packing,
                                                 struct weft_pool *pool,
                                                 const struct weft_layout_buffer *buffers,
                                                 int32_t n_buffers, int32_t n_slots,
                                                 struct weft_error *err);

/* True when every piece of the buffer lives in every slot. */
bool weft_packing_is_resident(const struct weft_layout_buffer *buffer, int32_t n_slots);

/* Slots of a life. */
int32_t weft_packing_length(struct weft_life life, int32_t n_slots);

/* Starts a pass: no body has a place. */
void weft_packing_clear(struct weft_packing *packing, bool mirrored);

/* Gives a body its lowest offset, unless its end would exceed limit_bytes: then false. */
bool weft_packing_place(struct weft_packing *packing, int32_t body, int64_t limit_bytes);

/* Gives a body the offset, which the caller knows to be free. */
void weft_packing_put(struct weft_packing *packing, int32_t body, int64_t offset);

/* The pass has placed all bodies: keeps the offsets when it ends lower than all before it. A
 * mirrored pass is turned on its feet; after it, only weft_packing_clear. */
void weft_packing_record(struct weft_packing *packing);

/* True when the best ends so little above the live sum that searching on is not worth the time. */
static inline bool weft_packing_is_dense(const struct weft_packing *packing)
{
    return packing->best_bytes - packing->least_bytes <= packing->least_bytes / 2000;
}

/* Spends what looking at so many more tenants took. */
static inline void weft_packing_spend(struct weft_packing *packing, int64_t n_tenants)
{
    weft_work_spend(packing->budget.work, n_tenants * WEFT_PACKING_HALF_UNITS / 2);
}

/* True when the budget for a better one is used up. */
static inline bool weft_packing_is_over(const struct weft_packing *packing)
{
    return weft_budget_is_over(packing->budget);
}

/* Slots from `from` on to `to`, round the end. */
static inline int32_t weft_packing_after(int32_t from, int32_t to, int32_t n_slots)
{
    return to >= from ? to - from : to - from + n_slots;
}

/* True when two lives share a slot: one of two arcs that meet begins within the other. */
static inline bool weft_packing_meet(const struct weft_packing_segment *segment,
                                     const struct weft_packing_tenant *tenant, int32_t n_slots)
{
    int32_t after = weft_packing_after(tenant->first, segment->first, n_slots);
    return after < tenant->length || n_slots - after < segment->length;
}

#endif
