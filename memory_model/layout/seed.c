#include "memory_model/layout/seed.h"

#include <stdlib.h>
#include <string.h>

#include "memory_model/weigh.h"

/* A training step turns once: from forward to backward. What lives at the turn (saved activations,
 * gathered parameters that are kept) came like opening brackets and goes like closing ones, so it
 * stands on the floor as one stack that is highest at the turn. What comes and goes around it hangs
 * from the ceiling, and is placed outward from the turn: after it in the order of birth, because
 * the room below only grows there, and before it in the reverse order of death, because seen
 * backwards in time the same is true. What lives across the period's seam (reduced gradients) is a
 * stack too, highest where the other is lowest. */

enum order {
    BY_BYTES,
    BY_AREA,
    BY_LENGTH,
    BY_START,
    BY_CROWD,
    WHOLE_ORDER_COUNT,
    /* Orders of bodies on the floor: the further from the turn one reaches, the earlier. */
    BY_DEPTH = WHOLE_ORDER_COUNT, /* on the nearer side */
    BY_DEATH,
    BY_BIRTH,
    /* Orders of bodies that hang from the ceiling. */
    OUTWARD,
    BY_BYTES_OUTWARD,
    BY_MAGNITUDE_OUTWARD,
    BY_BYTES_LATE, /* of equal ones the last to go first */
};

struct rank {
    double first, second; /* keys: less comes earlier */
    const struct weft_packing_body *body;
    int32_t index;
};

/* Where the stack of the seam goes. */
enum seam { BELOW_STACK, ABOVE_STACK, AT_CEILING };

/* How to pack from both ends. */
struct recipe {
    enum order floor, ceiling;
    enum seam seam;
    int32_t least_part;     /* stacked is what lives for a part of the period of at least 1/this */
    int32_t ceiling_permil; /* above the live sum; -1: out of reach of the floor */
};

struct seeding {
    struct weft_packing *packing;
    int32_t turn, seam; /* slots */
    struct rank *ranks; /* by place in the order */
    int64_t *kept;      /* by body: offsets */
};

static int compare_double(double a, double b)
{
    return (a > b) - (a < b);
}

static int compare_int64(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

/* Ends in the order of buffers, so that it is total. */
static int compare_ranks(const void *left, const void *right)
{
    const struct rank *a = left, *b = right;
    if (a->first != b->first) return compare_double(a->first, b->first);
    if (a->second != b->second) return compare_double(a->second, b->second);
    if (a->body->bytes != b->body->bytes) return compare_int64(b->body->bytes, a->body->bytes);
    if (a->body->length != b->body->length) return compare_int64(b->body->length, a->body->length);
    if (a->body->first != b->body->first) return compare_int64(a->body->first, b->body->first);
    return compare_int64(a->index, b->index);
}

/* Slots between the body's life and the turn, 0 when it lives there. */
static int32_t distance(const struct seeding *seeding, const struct weft_packing_body *body)
{
    int32_t n_slots = seeding->packing->n_slots;
    int32_t after = weft_packing_after(seeding->turn, body->first, n_slots);
    int32_t before = n_slots - after - body->length;
    if (after == 0 || before < 0) return 0;
    return after < before ? after : before;
}

static void set_keys(const struct seeding *seeding, enum order order, struct rank *rank)
{
    const struct weft_packing_body *body = rank->body;
    int32_t n_slots = seeding->packing->n_slots;
    int32_t birth = weft_packing_after(body->first, seeding->turn, n_slots); /* before the turn */
    int32_t death = body->length - 1 - birth;                                /* after the turn */
    rank->first = rank->second = 0;
    switch (order) {
    case BY_BYTES:
        break;
    case BY_AREA:
        rank->first = -body->area;
        break;
    case BY_LENGTH:
        rank->first = -body->length;
        break;
    case BY_START:
        rank->first = body->first;
        rank->second = -body->length;
        break;
    case BY_CROWD:
        rank->first = -(double)body->crowd_bytes;
        break;
    case BY_DEPTH:
        rank->first = -(birth < death ? birth : death);
        rank->second = -body->length;
        break;
    case BY_DEATH:
        rank->first = -death;
        rank->second = -body->length;
        break;
    case BY_BIRTH:
        rank->first = -birth;
        rank->second = -body->length;
        break;
    case OUTWARD:
        rank->first = distance(seeding, body);
        break;
    case BY_BYTES_OUTWARD:
        rank->first = -(double)body->bytes;
        rank->second = distance(seeding, body);
        break;
    case BY_MAGNITUDE_OUTWARD:
        for (int64_t bytes = body->bytes; bytes > 0; bytes /= 2)
            rank->first--;
        rank->second = distance(seeding, body);
        break;
    case BY_BYTES_LATE:
        rank->first = -(double)body->bytes;
        rank->second = -(body->first + body->length);
        break;
    }
}

static bool lives_in(const struct seeding *seeding, const struct weft_packing_body *body,
                     int32_t slot)
{
    return weft_packing_after(body->first, slot, seeding->packing->n_slots) < body->length;
}

enum part { STACK, SEAM, REST, ALL };

static enum part part_of(const struct seeding *seeding, const struct weft_packing_body *body,
                         int32_t least_length)
{
    if (lives_in(seeding, body, seeding->turn) && body->length >= least_length) return STACK;
    return lives_in(seeding, body, seeding->seam) ? SEAM : REST;
}

/* Places the bodies of one part first-fit. */
static void place_part(struct seeding *seeding, enum part part, int32_t least_length,
                       enum order order)
{
    struct weft_packing *packing = seeding->packing;
    size_t n = 0;
    for (int32_t b = 0; b < packing->n_bodies; b++) {
        const struct weft_packing_body *body = &packing->bodies[b];
        if (part != ALL && part_of(seeding, body, least_length) != part) continue;
        seeding->ranks[n] = (struct rank){.body = body, .index = b};
        set_keys(seeding, order, &seeding->ranks[n++]);
    }
    qsort(seeding->ranks, n, sizeof *seeding->ranks, compare_ranks);
    for (size_t i = 0; i < n; i++)
        (void)weft_packing_place(packing, seeding->ranks[i].index, INT64_MAX);
}

/* Records the pass, then lets every body sink, from the lowest on, and records that. */
static void finish_pass(struct seeding *seeding)
{
    struct weft_packing *packing = seeding->packing;
    size_t n = (size_t)packing->n_bodies;
    weft_packing_record(packing);
    for (size_t b = 0; b < n; b++) {
        seeding->ranks[b] = (struct rank){
            .first = (double)packing->offsets[b], .body = &packing->bodies[b], .index = (int32_t)b};
    }
    qsort(seeding->ranks, n, sizeof *seeding->ranks, compare_ranks);
    weft_packing_clear(packing, false);
    for (size_t i = 0; i < n; i++)
        (void)weft_packing_place(packing, seeding->ranks[i].index, INT64_MAX);
    weft_packing_record(packing);
}

static void pack_from_both_ends(struct seeding *seeding, const struct recipe *recipe)
{
    struct weft_packing *packing = seeding->packing;
    int32_t n = packing->n_bodies, least_length = packing->n_slots / recipe->least_part;
    weft_packing_clear(packing, false);
    if (recipe->seam == BELOW_STACK) place_part(seeding, SEAM, least_length, BY_LENGTH);
    place_part(seeding, STACK, least_length, recipe->floor);
    if (recipe->seam == ABOVE_STACK) place_part(seeding, SEAM, least_length, BY_LENGTH);
    memcpy(seeding->kept, packing->offsets, (size_t)n * sizeof *seeding->kept);
    int64_t ceiling_bytes =
        weft_arena_round(packing->least_bytes / 1000 * (1000 + recipe->ceiling_permil));
    if (recipe->ceiling_permil < 0) ceiling_bytes = packing->end_bytes + packing->total_bytes;
    if (ceiling_bytes < packing->end_bytes) ceiling_bytes = packing->end_bytes;
    weft_packing_clear(packing, true);
    for (int32_t b = 0; b < n; b++) {
        if (seeding->kept[b] < 0) continue;
        weft_packing_put(packing, b, ceiling_bytes - seeding->kept[b] - packing->bodies[b].bytes);
    }
    if (recipe->seam == AT_CEILING) place_part(seeding, SEAM, least_length, BY_LENGTH);
    place_part(seeding, REST, least_length, recipe->ceiling);
    finish_pass(seeding);
}

/* Behind each pass. */
static bool is_done(const struct seeding *seeding, int64_t work_limit)
{
    struct weft_packing *packing = seeding->packing;
    weft_packing_spend(packing, packing->work - packing->counted);
    packing->counted = packing->work;
    return weft_packing_is_dense(packing) || packing->work >= work_limit ||
           weft_packing_is_over(packing);
}

static void try_whole_orders(struct seeding *seeding, int64_t work_limit)
{
    for (int order = 0; order < WHOLE_ORDER_COUNT; order++) {
        weft_packing_clear(seeding->packing, false);
        place_part(seeding, ALL, 0, (enum order)order);
        finish_pass(seeding);
        if (is_done(seeding, work_limit)) return;
    }
}

static void try_both_ends(struct seeding *seeding, int64_t work_limit)
{
    static const enum order floors[] = {BY_BIRTH, BY_DEATH, BY_DEPTH};
    static const enum order ceilings[] = {OUTWARD, BY_BYTES_OUTWARD, BY_MAGNITUDE_OUTWARD,
                                          BY_BYTES_LATE};
    static const enum seam seams[] = {BELOW_STACK, AT_CEILING, ABOVE_STACK};
    static const int32_t permils[] = {0, 30, 10, -1}, parts[] = {16, INT32_MAX, 64};
    enum { FLOORS = 3, CEILINGS = 4, SEAMS = 3, PERMILS = 4, PARTS = 3 };
    for (int i = 0; i < FLOORS * CEILINGS * SEAMS * PERMILS * PARTS; i++) {
        int rest = i;
        struct recipe recipe;
        recipe.ceiling = ceilings[rest % CEILINGS];
        rest /= CEILINGS;
        recipe.seam = seams[rest % SEAMS];
        rest /= SEAMS;
        recipe.floor = floors[rest % FLOORS];
        rest /= FLOORS;
        recipe.ceiling_permil = permils[rest % PERMILS];
        rest /= PERMILS;
        recipe.least_part = parts[rest];
        pack_from_both_ends(seeding, &recipe);
        if (is_done(seeding, work_limit)) return;
    }
}

/* The turn is where the most bodies live, the seam where the least bytes do. */
static void find_turn(struct seeding *seeding, int32_t *counts)
{
    const struct weft_packing *packing = seeding->packing;
    int32_t n_slots = packing->n_slots;
    for (int32_t b = 0; b < packing->n_bodies; b++) {
        const struct weft_packing_body *body = &packing->bodies[b];
        for (int32_t k = 0, s = body->first; k < body->length; k++) {
            counts[s]++;
            s = s + 1 == n_slots ? 0 : s + 1;
        }
    }
    for (int32_t s = 0; s < n_slots; s++) {
        if (counts[s] > counts[seeding->turn]) seeding->turn = s;
        if (packing->slot_bytes[s] < packing->slot_bytes[seeding->seam]) seeding->seam = s;
    }
}

enum weft_status weft_packing_seed(struct weft_packing *packing, struct weft_pool *pool,
                                   int64_t work_limit, struct weft_error *err)
{
    size_t n_bodies = (size_t)packing->n_bodies;
    struct seeding seeding = {
        .packing = packing,
        .ranks = weft_pool_array(pool, n_bodies, sizeof *seeding.ranks),
        .kept = weft_pool_array(pool, n_bodies, sizeof *seeding.kept),
    };
    int32_t *counts = weft_pool_array(pool, (size_t)packing->n_slots, sizeof *counts);
    if (seeding.ranks == NULL || seeding.kept == NULL || counts == NULL)
        return weft_fail_memory(err, "the layout");
    find_turn(&seeding, counts);
    try_whole_orders(&seeding, work_limit);
    if (!is_done(&seeding, work_limit)) try_both_ends(&seeding, work_limit);
    return WEFT_OK;
}
