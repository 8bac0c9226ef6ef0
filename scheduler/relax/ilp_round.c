/* SPDX-License-Identifier: Apache-2.0 */
/* Rounds a point of the relaxation to a placement. */
#include <math.h>
#include <stdlib.h>

#include "scheduler/relax/ilp_class.h"

/* A block's movement begins when this part of it has moved, and ends when this part is left. */
static const double EDGE = 0.01;
/* A moment within a slot is before the slot's end by this part of it. */
static const double WITHIN = 1e-6;

static const struct weft_problem_item *item_of(const struct weft_ilp *ilp, int32_t item)
{
    return &ilp->table->problem->items[item];
}

/* The moment at which the class has moved `work` of `total`. */
static double moment_of(const struct weft_ilp_class *of, const double *x, double total, double work)
{
    double before = 0, now = 0;
    for (int32_t slot = of->first;; slot++, before = now) {
        now = slot < of->last ? x[of->column + slot - of->first] : total;
        if (now < work * (1 - 1e-9) && slot < of->last) continue;
        double part = now > before ? (work - before) / (now - before) : 0;
        return slot + (part < 0 ? 0 : part > 1 ? 1 : part) * (1 - WITHIN);
    }
}

/* A moment within the window of slots. */
static double clamp_moment(double moment, const struct weft_item *item)
{
    if (moment < item->first) return item->first;
    return moment > item->last + 1 - WITHIN ? item->last + 1 - WITHIN : moment;
}

/* Sets the moments of a block that moves after `work` of `total`. Blocks without time move when
 * they hold least. */
static void set_moments(const struct weft_ilp_class *of, const struct weft_problem_item *item,
                        const double *x, double total, double work, double block,
                        struct weft_ilp_moved *out)
{
    if (item->block_ns == 0) {
        out->begin = out->middle = out->end =
            clamp_moment(item->item.acquires ? INFINITY : 0, &item->item);
        return;
    }
    out->begin = clamp_moment(moment_of(of, x, total, work + EDGE * block), &item->item);
    out->middle = clamp_moment(moment_of(of, x, total, work + block / 2), &item->item);
    out->end = clamp_moment(moment_of(of, x, total, work + (1 - EDGE) * block), &item->item);
}

/* Reads the blocks of a class, which move in the order of its items. Returns their number. */
static int32_t read_class(const struct weft_ilp *ilp, const struct weft_ilp_class *of,
                          const double *x, const int32_t *strategies, struct weft_ilp_moved *moved)
{
    int32_t n = 0;
    double work = 0, total = 0;
    for (int32_t i = 0; i < of->n_items; i++)
        if (weft_item_active(&item_of(ilp, of->items[i])->item, strategies))
            total += weft_ilp_work(ilp, of, of->items[i]);
    for (int32_t k = 0; of->may_block && k < of->due.n; k++)
        total -= x[of->due.blocking[k]];
    for (int32_t i = 0; i < of->n_items; i++) {
        const struct weft_problem_item *item = item_of(ilp, of->items[i]);
        if (!weft_item_active(&item->item, strategies)) continue;
        double block = weft_ilp_work(ilp, of, of->items[i]) / item->item.n_blocks;
        int32_t staged = weft_ilp_staged(ilp, of, x, strategies, i);
        for (int32_t b = 0; b < item->item.n_blocks; b++) {
            struct weft_ilp_moved *at = &moved[n++];
            *at = (struct weft_ilp_moved){.item = of->items[i], .nth = b, .due = item->item.last};
            if (b >= staged) {
                at->begin = at->middle = at->end = item->item.last + 1;
                continue;
            }
            set_moments(of, item, x, total, work, block, at);
            work += block;
        }
    }
    return n;
}

/* Puts each block after its predecessor in its chain. A chain has few items. */
static void follow_chains(const struct weft_ilp *ilp, struct weft_ilp_moved *moved, int32_t n,
                          int32_t *first)
{
    for (int32_t i = 0; i < ilp->table->n_items; i++)
        first[i] = -1;
    for (int32_t k = n - 1; k >= 0; k--)
        if (moved[k].nth == 0) first[moved[k].item] = k;
    for (bool any = true; any;) {
        any = false;
        for (int32_t k = 0; k < n; k++) {
            int32_t after = item_of(ilp, moved[k].item)->after;
            if (after < 0 || first[after] < 0) continue;
            double least = nextafter(moved[first[after] + moved[k].nth].middle, INFINITY);
            if (moved[k].middle >= least) continue;
            moved[k].middle = least;
            if (moved[k].end < least) moved[k].end = least;
            any = true;
        }
    }
}

static int compare_moved(const void *a, const void *b)
{
    const struct weft_ilp_moved *x = a, *y = b;
    if (x->middle != y->middle) return x->middle < y->middle ? -1 : 1;
    if (x->due != y->due) return x->due < y->due ? -1 : 1;
    if (x->item != y->item) return x->item < y->item ? -1 : 1;
    return x->nth < y->nth ? -1 : x->nth > y->nth;
}

int32_t weft_ilp_round(const struct weft_ilp *ilp, const double *x, const int32_t *strategies,
                       struct weft_ilp_moved *moved, int32_t *first, struct weft_move *moves)
{
    int32_t n = 0;
    for (int32_t c = 0; c < ilp->n_classes; c++)
        n += read_class(ilp, &ilp->classes[c], x, strategies, moved + n);
    follow_chains(ilp, moved, n, first);
    qsort(moved, (size_t)n, sizeof *moved, compare_moved);
    for (int32_t k = 0; k < n; k++) {
        bool acquires = item_of(ilp, moved[k].item)->item.acquires;
        int32_t slot = (int32_t)(acquires ? moved[k].begin : moved[k].end);
        if (!acquires && slot > moved[k].due) return -1;
        moves[k] = (struct weft_move){.item = moved[k].item, .slot = slot};
    }
    return n;
}
