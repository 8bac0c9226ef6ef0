/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/relax/ilp_class.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A class, perhaps of several merged ones. Classes of one kind may merge if their blocks hold about
 * the same bytes a nanosecond. The merged class holds the least of these for each block. */
struct merged {
    int32_t id;          /* its class; the ids of classes that it took are unused */
    int32_t first, last; /* slots */
    double ratio;        /* least bytes a nanosecond of its blocks */
    double work_ns;      /* of all its items */
    const struct weft_problem_item *item; /* the first of them */
};

static const struct weft_problem_item *item_of(const struct weft_ilp *ilp, int32_t item)
{
    return &ilp->table->problem->items[item];
}

uint64_t weft_ilp_strategy_mask(const struct weft_ilp *ilp, int32_t item)
{
    const struct weft_item *it = &item_of(ilp, item)->item;
    uint64_t mask = 0;
    for (int32_t p = 0; p < weft_digest_count(ilp->table, it->decision); p++) {
        if (it->strategies >> p & 1u && ilp->z[weft_digest_at(ilp->table, it->decision, p)] >= 0)
            mask |= UINT64_C(1) << p;
    }
    return mask;
}

static bool equal_blocks(const struct weft_problem_item *a, const struct weft_problem_item *b)
{
    return a->block_ns == b->block_ns && a->item.stair_bytes == b->item.stair_bytes;
}

static bool are_alike(const struct weft_problem_item *a, const struct weft_problem_item *b)
{
    return a->item.kind == b->item.kind && a->item.gather == b->item.gather && a->lane == b->lane &&
           a->item.acquires == b->item.acquires && a->item.may_block == b->item.may_block &&
           a->item.stair_tier == b->item.stair_tier && equal_blocks(a, b);
}

static double ratio_of(const struct weft_problem_item *item)
{
    return (double)item->item.stair_bytes / (double)item->block_ns;
}

/* Slots of a class's columns. */
static void find_window(const struct weft_ilp *ilp, const int32_t *class_of, int32_t c,
                        struct merged *out)
{
    out->first = INT32_MAX;
    for (int32_t i = 0; i < ilp->table->n_items; i++) {
        if (class_of[i] != c) continue;
        const struct weft_problem_item *it = item_of(ilp, i);
        if (!out->item) out->item = it;
        if (it->item.first < out->first) out->first = it->item.first;
        if (it->item.last > out->last) out->last = it->item.last;
        out->work_ns += (double)it->item.n_blocks * (double)it->block_ns;
    }
}

/* Fills class_of[n_items] (-1: no class) and classes[]: one for each item (`alone`), or one for
 * items with equal blocks. Returns the number of classes; *n_columns: columns of A. */
static int32_t group_items(const struct weft_ilp *ilp, bool alone, int32_t *class_of,
                           int32_t *leader, struct merged *classes, int64_t *n_columns)
{
    int32_t n_items = ilp->table->n_items, n_classes = 0;
    *n_columns = 0;
    for (int32_t i = 0; i < n_items; i++) {
        class_of[i] = -1;
        if (weft_ilp_strategy_mask(ilp, i) == 0) continue;
        int32_t c = alone ? n_classes : 0;
        while (c < n_classes && !are_alike(item_of(ilp, leader[c]), item_of(ilp, i)))
            c++;
        if (c == n_classes) leader[n_classes++] = i;
        class_of[i] = c;
    }
    for (int32_t c = 0; c < n_classes; c++) {
        const struct weft_problem_item *first = item_of(ilp, leader[c]);
        classes[c] = (struct merged){.id = c, .ratio = first->block_ns > 0 ? ratio_of(first) : 0};
        find_window(ilp, class_of, c, &classes[c]);
        *n_columns += classes[c].last - classes[c].first;
    }
    return n_classes;
}

/* Orders items by everything except sizes: the kind of move, its lane, and the tier that holds the
 * blocks. 0: the classes may merge. */
static int compare_kinds(const struct weft_problem_item *a, const struct weft_problem_item *b)
{
    bool held_a = a->item.stair_bytes > 0, held_b = b->item.stair_bytes > 0;
    if (a->item.kind != b->item.kind) return a->item.kind < b->item.kind ? -1 : 1;
    if (a->item.gather != b->item.gather) return a->item.gather < b->item.gather ? -1 : 1;
    if (a->lane != b->lane) return a->lane < b->lane ? -1 : 1;
    if (a->item.stair_tier != b->item.stair_tier)
        return a->item.stair_tier < b->item.stair_tier ? -1 : 1;
    if (a->item.acquires != b->item.acquires) return a->item.acquires ? -1 : 1;
    if (a->item.may_block != b->item.may_block) return a->item.may_block ? -1 : 1;
    return held_a - held_b;
}

static int compare_merged(const void *a, const void *b)
{
    const struct merged *x = a, *y = b;
    int kinds = compare_kinds(x->item, y->item);
    if (kinds != 0) return kinds;
    if (x->ratio != y->ratio) return x->ratio < y->ratio ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

/* Bytes that the relaxation loses for each column saved when a class takes the next one, with a
 * ratio no less. A merger that saves no column comes last; an infinite loss forbids it. */
static double loss_of(const struct merged *of, const struct merged *next)
{
    if (compare_kinds(of->item, next->item) != 0) return INFINITY;
    if (of->item->block_ns == 0 || next->item->block_ns == 0) return INFINITY;
    int32_t first = of->first < next->first ? of->first : next->first;
    int32_t last = of->last > next->last ? of->last : next->last;
    int32_t saved = of->last - of->first + next->last - next->first - (last - first);
    if (saved <= 0) return DBL_MAX;
    return (next->ratio - of->ratio) * next->work_ns / saved;
}

/* Merges classes, the least loss first, until their columns are few enough or one of each kind is
 * left. Returns the number left. id[c] is then the class that took class c, or c. */
static int32_t merge_classes(struct merged *classes, int32_t n, int64_t n_columns,
                             int32_t most_columns, int32_t *id)
{
    for (int32_t c = 0; c < n; c++)
        id[c] = c;
    qsort(classes, (size_t)n, sizeof *classes, compare_merged);
    while (n_columns > most_columns) {
        int32_t best = -1;
        double least = INFINITY;
        for (int32_t c = 0; c + 1 < n; c++) {
            double loss = loss_of(&classes[c], &classes[c + 1]);
            if (loss < least) least = loss, best = c;
        }
        if (best < 0) break;
        struct merged *of = &classes[best], *next = of + 1;
        n_columns -= of->last - of->first + next->last - next->first;
        if (next->first < of->first) of->first = next->first;
        if (next->last > of->last) of->last = next->last;
        n_columns += of->last - of->first;
        of->work_ns += next->work_ns;
        id[next->id] = of->id;
        memmove(next, next + 1, (size_t)(n - best - 2) * sizeof *next);
        n--;
    }
    return n;
}

/* Numbers the classes that are left in order of their first items. */
static void renumber_classes(const struct weft_ilp *ilp, const int32_t *id, int32_t *class_of,
                             int32_t *number)
{
    int32_t n = 0;
    for (int32_t i = 0; i < ilp->table->n_items; i++)
        number[i] = -1;
    for (int32_t i = 0; i < ilp->table->n_items; i++) {
        int32_t c = class_of[i];
        if (c < 0) continue;
        while (id[c] != c)
            c = id[c];
        if (number[c] < 0) number[c] = n++;
        class_of[i] = number[c];
    }
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
    of->gathers = leader->item.acquires;
    of->lane = leader->lane;
    of->tier = leader->item.stair_tier;
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
    bool short_of_memory = weft_digest_is_short(ilp->table, of->tier);
    of->may_block = leader->item.may_block && of->unit_bytes > 0 && short_of_memory;
    return fill_prefix(ilp, of, false, &of->released) && fill_prefix(ilp, of, true, &of->due);
}

/* Fills the members of each class in the order of list scheduling. */
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
    int32_t *id = weft_pool_array(&ilp->pool, n_items, sizeof *id);
    struct merged *merged = weft_pool_array(&ilp->pool, n_items, sizeof *merged);
    if (!class_of || !leader || !id || !merged) return weft_fail_memory(err, "classes of items");
    int64_t n_columns;
    /* Merging loses bytes, so a program that it would bring to most_columns may have a third
     * more. */
    int64_t unmerged = (int64_t)most_columns + most_columns / 3;
    ilp->n_classes = group_items(ilp, true, class_of, leader, merged, &n_columns);
    if (n_columns > unmerged)
        ilp->n_classes = group_items(ilp, false, class_of, leader, merged, &n_columns);
    if (n_columns > unmerged) {
        ilp->n_classes = merge_classes(merged, ilp->n_classes, n_columns, most_columns, id);
        renumber_classes(ilp, id, class_of, leader);
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
    for (int32_t c = 0; c < ilp->n_classes; c++)
        if (!fill_class(ilp, &ilp->classes[c])) return weft_fail_memory(err, "classes of items");
    return WEFT_OK;
}
