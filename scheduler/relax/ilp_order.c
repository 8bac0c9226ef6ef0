/* SPDX-License-Identifier: Apache-2.0 */
/* Finds blocks that a point of the relaxation moves as no lane does. Two are under way at once, or
 * others move through a slot in which one is under way. */
#include <math.h>

#include "scheduler/relax/ilp.h"

enum { MOST_DOUBTS = 16 };
/* Parts below this count as none. */
static const double WHOLE = 1e-4;

struct orders {
    const struct weft_ilp *ilp;
    const struct weft_dual *dual;
    const struct weft_box *box;
    const double *worth, *x;
    enum weft_ilp_gain gain;
    int32_t n, most;
    struct weft_doubt *out; /* the most valuable first */
    int32_t *slots;         /* [most]: each doubt arises at the end of its slot */
};

static bool is_counted(const struct weft_ilp_class *of)
{
    return of->n_items == 1 && of->counts;
}

/* Blocks of the class that have moved by the end of a slot. */
static double moved_blocks(const struct orders *o, const struct weft_ilp_class *of, int32_t slot)
{
    if (slot < of->first) return 0;
    if (slot < of->last) return o->x[of->column + slot - of->first];
    if (of->may_block) return o->x[of->due.columns[0]];
    const struct weft_item *item = &o->box->problem->items[of->items[0]].item;
    double decisions = 0;
    for (int32_t p = 0; p < weft_digest_count(o->ilp->table, item->decision); p++) {
        int32_t z = o->ilp->z[weft_digest_at(o->ilp->table, item->decision, p)];
        if (item->strategies >> p & 1u && z >= 0) decisions += o->x[z];
    }
    return decisions * item->n_blocks;
}

static double part_of(double blocks)
{
    double part = blocks - floor(blocks + WHOLE);
    return part > WHOLE ? part : 0;
}

static bool is_open(const struct orders *o, enum weft_moment moment, int32_t item, int32_t block,
                    int32_t slot)
{
    const struct weft_milestones *known = &o->box->moved;
    return weft_milestones_by(known, moment, item, block) > slot &&
           weft_milestones_behind(known, moment, item, block) < slot;
}

/* A doubt at the slot must exceed this value to be kept. */
static double least_value(const struct orders *o, int32_t slot)
{
    for (int32_t k = 0; k < o->n; k++)
        if (o->slots[k] == slot) return o->out[k].value;
    return o->n < o->most ? 1 : o->out[o->n - 1].value;
}

/* Inserts the doubt. It replaces the one of the same slot, or the last one if there is no room. */
static void keep_doubt(struct orders *o, int32_t slot, const struct weft_doubt *doubt)
{
    int32_t at = 0;
    while (at < o->n && o->slots[at] != slot)
        at++;
    if (at == o->n && o->n == o->most) at--;
    if (at == o->n) o->n++;
    for (; at > 0 && o->out[at - 1].value < doubt->value; at--) {
        o->out[at] = o->out[at - 1];
        o->slots[at] = o->slots[at - 1];
    }
    o->out[at] = *doubt;
    o->slots[at] = slot;
}

/* Offers a doubt: a block has begun by `slot`. If the box decides that, the doubt is that the block
 * has ended by `until`. If it decides both, the doubt is that a block of `other` has ended by
 * `slot`. */
static void offer_doubt(struct orders *o, const struct weft_ilp_class *of, int32_t slot,
                        int32_t until, const struct weft_ilp_class *other, double ns)
{
    const double *lambda = o->dual->lambda + weft_problem_lane_at(o->box->problem, of->lane);
    double price = o->gain == WEFT_ILP_SPARE_TIME ? fmax(lambda[slot], lambda[slot + 1])
                                                  : fabs(lambda[slot + 1] - lambda[slot]);
    double value = ns * price * o->worth[slot];
    if (value <= least_value(o, slot)) return;
    struct weft_milestone at = {of->items[0], (int32_t)floor(moved_blocks(o, of, slot) + WHOLE) + 1,
                                slot, false, WEFT_BEGUN};
    if (at.n_blocks < 1 || at.n_blocks > o->box->problem->items[at.item].item.n_blocks) return;
    if (!is_open(o, WEFT_BEGUN, at.item, at.n_blocks - 1, slot)) {
        at.moment = WEFT_ENDED;
        at.slot = until;
    }
    if (at.moment == WEFT_ENDED && !is_open(o, WEFT_ENDED, at.item, at.n_blocks - 1, until)) {
        at.item = other->items[0];
        at.n_blocks = (int32_t)floor(moved_blocks(o, other, slot) + WHOLE) + 1;
        at.slot = slot;
    }
    if (!weft_milestone_is_of(&at, o->box->problem) ||
        !is_open(o, at.moment, at.item, at.n_blocks - 1, at.slot))
        return;
    struct weft_doubt doubt = {.milestone = at, .value = value};
    struct weft_milestone next = {at.item, at.n_blocks, until, false, WEFT_ENDED};
    if (at.moment == WEFT_BEGUN && weft_milestone_is_of(&next, o->box->problem)) doubt.next = next;
    keep_doubt(o, slot, &doubt);
}

/* Compares two classes at the end of a slot in which the first is under way. */
static void compare_classes(struct orders *o, const struct weft_ilp_class *a,
                            const struct weft_ilp_class *b, int32_t slot)
{
    const struct weft_problem *problem = o->box->problem;
    double a_ns = (double)problem->items[a->items[0]].block_ns;
    double b_ns = (double)problem->items[b->items[0]].block_ns;
    double a_now = moved_blocks(o, a, slot), part = part_of(a_now);
    if (part == 0) return;
    double b_now = moved_blocks(o, b, slot), other = part_of(b_now);
    double a_least = fmin(part, 1 - part) * a_ns, b_least = fmin(other, 1 - other) * b_ns;
    if (other > 0 && a_least >= b_least) offer_doubt(o, a, slot, slot, b, b_least);
    double a_next = moved_blocks(o, a, slot + 1), b_next = moved_blocks(o, b, slot + 1);
    bool through = floor(a_next + WHOLE) == floor(a_now + WHOLE) && part_of(a_next) > 0;
    double left = fmin(part, 1 - part_of(a_next)) * a_ns, between = (b_next - b_now) * b_ns;
    if (through && b_next - b_now > WHOLE)
        offer_doubt(o, a, slot, slot + 1, b, fmin(left, between));
}

static bool is_compared(const struct orders *o, const struct weft_ilp_class *a,
                        const struct weft_ilp_class *b)
{
    if (a == b || !is_counted(a) || !is_counted(b) || a->lane != b->lane) return false;
    return o->gain != WEFT_ILP_SPARE_TIME || a->gathers != b->gathers;
}

int32_t weft_ilp_order(const struct weft_ilp *ilp, const struct weft_dual *dual,
                       const struct weft_box *box, enum weft_ilp_gain gain, const double *worth,
                       const double *x, int32_t most, struct weft_doubt *out)
{
    int32_t slots[MOST_DOUBTS];
    struct orders o = {.ilp = ilp,
                       .dual = dual,
                       .box = box,
                       .gain = gain,
                       .worth = worth,
                       .x = x,
                       .most = most < MOST_DOUBTS ? most : MOST_DOUBTS,
                       .out = out,
                       .slots = slots};
    for (int32_t c = 0; c < ilp->n_classes; c++) {
        const struct weft_ilp_class *a = &ilp->classes[c];
        for (int32_t d = 0; d < ilp->n_classes; d++) {
            const struct weft_ilp_class *b = &ilp->classes[d];
            if (!is_compared(&o, a, b)) continue;
            for (int32_t s = a->first; s < a->last; s++)
                compare_classes(&o, a, b, s);
        }
    }
    return o.n;
}
