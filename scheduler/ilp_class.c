#include "scheduler/ilp_class.h"

#include <math.h>

/* How alike two items must be to share a class. */
struct likeness {
    bool alone;       /* never */
    bool equal;       /* equal blocks */
    double tolerance; /* else: bytes a nanosecond within this, relative */
};

static const struct likeness levels[] = {
    {.alone = true},     {.equal = true},    {.tolerance = 0.003}, {.tolerance = 0.01},
    {.tolerance = 0.03}, {.tolerance = 0.1}, {.tolerance = 0.3},   {.tolerance = 1},
    {.tolerance = 3},    {.tolerance = 1e9},
};
enum { N_LEVELS = sizeof levels / sizeof levels[0] };

static const struct weft_problem_item *item_of(const struct weft_ilp *ilp, int32_t item)
{
    return &ilp->table->problem->items[item];
}

uint32_t weft_ilp_policy_mask(const struct weft_ilp *ilp, int32_t item)
{
    const struct weft_item *it = &item_of(ilp, item)->item;
    uint32_t mask = 0;
    for (int p = 0; p < WEFT_POLICY_COUNT; p++) {
        if (it->policies >> p & 1u && ilp->z[it->unit * WEFT_POLICY_COUNT + p] >= 0)
            mask |= 1u << p;
    }
    return mask;
}

static bool equal_blocks(const struct weft_problem_item *a, const struct weft_problem_item *b)
{
    return a->block_ns == b->block_ns && a->item.stair_bytes == b->item.stair_bytes;
}

static bool alike(const struct weft_problem_item *a, const struct weft_problem_item *b,
                  const struct likeness *level)
{
    if (a->item.kind != b->item.kind || a->item.gather != b->item.gather || level->alone)
        return false;
    if (equal_blocks(a, b)) return true;
    if (level->equal || a->block_ns == 0 || b->block_ns == 0) return false;
    if ((a->item.stair_bytes == 0) != (b->item.stair_bytes == 0)) return false;
    double ratio_a = (double)a->item.stair_bytes / (double)a->block_ns;
    double ratio_b = (double)b->item.stair_bytes / (double)b->block_ns;
    return fabs(ratio_a - ratio_b) <= level->tolerance * ratio_a;
}

/* Fills class_of[n_items] (-1: no class); returns the number of classes and of columns of A. */
static int32_t group(const struct weft_ilp *ilp, const struct likeness *level, int32_t *class_of,
                     int32_t *leader, int64_t *n_columns)
{
    int32_t n_items = ilp->table->n_items, n_classes = 0;
    *n_columns = 0;
    for (int32_t i = 0; i < n_items; i++) {
        class_of[i] = -1;
        if (weft_ilp_policy_mask(ilp, i) == 0) continue;
        int32_t c = 0;
        while (c < n_classes && !alike(item_of(ilp, leader[c]), item_of(ilp, i), level))
            c++;
        if (c == n_classes) leader[n_classes++] = i;
        class_of[i] = c;
    }
    for (int32_t c = 0; c < n_classes; c++) {
        int32_t first = INT32_MAX, last = 0;
        for (int32_t i = 0; i < n_items; i++) {
            if (class_of[i] != c) continue;
            const struct weft_item *item = &item_of(ilp, i)->item;
            if (item->first < first) first = item->first;
            if (item->last > last) last = item->last;
        }
        *n_columns += last - first;
    }
    return n_classes;
}

static bool fill_prefix(struct weft_ilp *ilp, const struct weft_ilp_class *of, bool by_last,
                        struct weft_ilp_prefix *out)
{
    out->slots = weft_pool_array(&ilp->pool, (size_t)of->n_items, sizeof *out->slots);
    out->columns = weft_pool_array(&ilp->pool, (size_t)of->n_items, sizeof *out->columns);
    out->blocking = weft_pool_array(&ilp->pool, (size_t)of->n_items, sizeof *out->blocking);
    if (!out->slots || !out->columns || !out->blocking) return false;
    for (int32_t k = 0; k < of->n_items; k++) {
        const struct weft_item *item = &item_of(ilp, of->items[k])->item;
        int32_t slot = by_last ? item->last : item->first, at = out->n;
        while (at > 0 && out->slots[at - 1] > slot)
            at--;
        if (at > 0 && out->slots[at - 1] == slot) continue;
        for (int32_t m = out->n; m > at; m--)
            out->slots[m] = out->slots[m - 1];
        out->slots[at] = slot;
        out->n++;
    }
    return true;
}

double weft_ilp_work(const struct weft_ilp *ilp, const struct weft_ilp_class *of, int32_t item)
{
    const struct weft_problem_item *it = item_of(ilp, item);
    if (of->counts) return it->item.n_blocks;
    return ldexp((double)(it->item.n_blocks * it->block_ns), -ilp->time_shift);
}

/* Bytes a unit of channel time, rounded down: holding less is a relaxation. */
static double least_ratio(const struct weft_ilp *ilp, const struct weft_ilp_class *of)
{
    double least = INFINITY;
    for (int32_t k = 0; k < of->n_items; k++) {
        const struct weft_problem_item *it = item_of(ilp, of->items[k]);
        double ratio = (double)it->item.stair_bytes / (double)it->block_ns;
        if (ratio < least) least = ratio;
    }
    return ldexp(least * (1 - 1e-15), ilp->time_shift - ilp->bytes_shift);
}

static bool fill_class(struct weft_ilp *ilp, struct weft_ilp_class *of)
{
    const struct weft_problem_item *leader = item_of(ilp, of->items[0]);
    of->gathers = leader->item.kind == WEFT_ALL_GATHER;
    of->channel = leader->channel;
    of->counts = true;
    of->first = INT32_MAX;
    for (int32_t k = 0; k < of->n_items; k++) {
        const struct weft_problem_item *it = item_of(ilp, of->items[k]);
        if (!equal_blocks(it, leader)) of->counts = false;
        if (it->item.first < of->first) of->first = it->item.first;
        if (it->item.last > of->last) of->last = it->item.last;
    }
    for (int32_t k = 0; k < of->n_items; k++)
        of->most += weft_ilp_work(ilp, of, of->items[k]);
    if (of->counts) {
        of->unit_time = ldexp((double)leader->block_ns, -ilp->time_shift);
        of->unit_bytes = ldexp((double)leader->item.stair_bytes, -ilp->bytes_shift);
    } else {
        of->unit_time = 1;
        of->unit_bytes = least_ratio(ilp, of);
        of->most *= 1 + 1e-12; /* a sum of rounded terms, and an upper bound */
    }
    bool short_of_memory = ilp->limit_bytes < ilp->table->most_bytes;
    of->may_block = of->gathers && of->unit_bytes > 0 && short_of_memory;
    return fill_prefix(ilp, of, false, &of->released) && fill_prefix(ilp, of, true, &of->due);
}

/* Members in the order in which list scheduling takes them. */
static void fill_members(struct weft_ilp *ilp, const int32_t *class_of)
{
    const struct weft_digest *table = ilp->table;
    for (int pass = 0; pass < 2; pass++) {
        const int32_t *order = pass == 0 ? table->gathers : table->reductions;
        int32_t n = pass == 0 ? table->n_gathers : table->n_reductions;
        for (int32_t k = 0; k < n; k++) {
            if (class_of[order[k]] < 0) continue;
            struct weft_ilp_class *of = &ilp->classes[class_of[order[k]]];
            of->items[of->n_items++] = order[k];
        }
    }
}

enum weft_status weft_ilp_classify(struct weft_ilp *ilp, int32_t most_columns,
                                   struct weft_error *err)
{
    size_t n_items = (size_t)ilp->table->n_items;
    int32_t *class_of = weft_pool_array(&ilp->pool, n_items, sizeof *class_of);
    int32_t *leader = weft_pool_array(&ilp->pool, n_items, sizeof *leader);
    if (!class_of || !leader) return weft_fail_memory(err, "classes of items");
    int64_t n_columns = 0;
    for (int level = 0; level < N_LEVELS; level++) {
        ilp->n_classes = group(ilp, &levels[level], class_of, leader, &n_columns);
        if (n_columns <= most_columns) break;
    }
    ilp->classes = weft_pool_array(&ilp->pool, (size_t)ilp->n_classes, sizeof *ilp->classes);
    if (!ilp->classes) return weft_fail_memory(err, "classes of items");
    for (int32_t c = 0; c < ilp->n_classes; c++) {
        int32_t n = 0;
        for (size_t i = 0; i < n_items; i++)
            n += class_of[i] == c;
        ilp->classes[c].items = weft_pool_array(&ilp->pool, (size_t)n, sizeof(int32_t));
        if (!ilp->classes[c].items) return weft_fail_memory(err, "classes of items");
    }
    fill_members(ilp, class_of);
    ilp->all_counts = true;
    for (int32_t c = 0; c < ilp->n_classes; c++) {
        if (!fill_class(ilp, &ilp->classes[c])) return weft_fail_memory(err, "classes of items");
        ilp->all_counts = ilp->all_counts && ilp->classes[c].counts;
    }
    return WEFT_OK;
}
