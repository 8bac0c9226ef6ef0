/* Where a point of the relaxation moves blocks as no serial channel does: two under way at once, or
 * others through a slot in which one is under way. */
#include <math.h>

#include "scheduler/ilp.h"

/* Parts that are less than this are none. */
static const double WHOLE = 1e-4;

struct orders {
    const struct weft_ilp *ilp;
    const struct weft_dual *dual;
    const struct weft_box *box;
    const double *worth, *x;
    double best;
    struct weft_milestone *out;
};

static bool is_counted(const struct weft_ilp_class *of)
{
    return of->n_items == 1 && of->counts;
}

/* What has moved of the class at the end of a slot. */
static double moved(const struct orders *o, const struct weft_ilp_class *of, int32_t slot)
{
    if (slot < of->first) return 0;
    if (slot < of->last) return o->x[of->column + slot - of->first];
    if (of->may_block) return o->x[of->due.columns[0]];
    const struct weft_item *item = &o->box->problem->items[of->items[0]].item;
    double units = 0;
    for (int p = 0; p < WEFT_POLICY_COUNT; p++) {
        int32_t z = o->ilp->z[item->unit * WEFT_POLICY_COUNT + p];
        if (item->policies >> p & 1u && z >= 0) units += o->x[z];
    }
    return units * item->n_blocks;
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

/* Offers to ask whether a block has begun by `slot`, and if it has, whether it has ended by
 * `until`, and if it has not, whether another one that moves there has ended by `slot`. */
static void offer(struct orders *o, const struct weft_ilp_class *of, int32_t slot, int32_t until,
                  const struct weft_ilp_class *other, double ns)
{
    int32_t channel = of->channel * o->dual->n_slots;
    const double *lambda = o->dual->lambda + channel;
    double value = ns * fabs(lambda[slot + 1] - lambda[slot]) * o->worth[slot];
    if (value <= o->best) return;
    struct weft_milestone at = {of->items[0], (int32_t)floor(moved(o, of, slot) + WHOLE) + 1, slot,
                                false, WEFT_BEGUN};
    if (at.n_blocks < 1 || at.n_blocks > o->box->problem->items[at.item].item.n_blocks) return;
    if (!is_open(o, WEFT_BEGUN, at.item, at.n_blocks - 1, slot)) {
        at.moment = WEFT_ENDED;
        at.slot = until;
    }
    if (at.moment == WEFT_ENDED && !is_open(o, WEFT_ENDED, at.item, at.n_blocks - 1, until)) {
        at.item = other->items[0];
        at.n_blocks = (int32_t)floor(moved(o, other, slot) + WHOLE) + 1;
        at.slot = slot;
    }
    if (!weft_milestone_is_of(&at, o->box->problem) ||
        !is_open(o, at.moment, at.item, at.n_blocks - 1, at.slot))
        return;
    o->best = value;
    *o->out = at;
}

/* Of two classes, at the end of a slot in which the first is under way. */
static void compare(struct orders *o, const struct weft_ilp_class *a,
                    const struct weft_ilp_class *b, int32_t slot)
{
    const struct weft_problem *problem = o->box->problem;
    double a_ns = (double)problem->items[a->items[0]].block_ns;
    double b_ns = (double)problem->items[b->items[0]].block_ns;
    double a_now = moved(o, a, slot), part = part_of(a_now);
    if (part == 0) return;
    double b_now = moved(o, b, slot), other = part_of(b_now);
    double a_least = fmin(part, 1 - part) * a_ns, b_least = fmin(other, 1 - other) * b_ns;
    if (other > 0 && a_least >= b_least) offer(o, a, slot, slot, b, b_least);
    double a_next = moved(o, a, slot + 1), b_next = moved(o, b, slot + 1);
    bool through = floor(a_next + WHOLE) == floor(a_now + WHOLE) && part_of(a_next) > 0;
    double left = fmin(part, 1 - part_of(a_next)) * a_ns, between = (b_next - b_now) * b_ns;
    if (through && b_next - b_now > WHOLE) offer(o, a, slot, slot + 1, b, fmin(left, between));
}

double weft_ilp_order(const struct weft_ilp *ilp, const struct weft_dual *dual,
                      const struct weft_box *box, const double *worth, const double *x,
                      struct weft_milestone *out)
{
    struct orders o = {
        .ilp = ilp, .dual = dual, .box = box, .worth = worth, .x = x, .best = 1, .out = out};
    for (int32_t c = 0; c < ilp->n_classes; c++) {
        const struct weft_ilp_class *a = &ilp->classes[c];
        for (int32_t d = 0; d < ilp->n_classes && is_counted(a); d++) {
            const struct weft_ilp_class *b = &ilp->classes[d];
            if (d == c || !is_counted(b) || a->channel != b->channel) continue;
            for (int32_t s = a->first; s < a->last; s++)
                compare(&o, a, b, s);
        }
    }
    return o.best > 1 ? o.best : 0;
}
