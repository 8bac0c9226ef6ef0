#include "memory_model/layout/repair.h"

#include <criterion/criterion.h>

#include "base/rng.h"
#include "memory_model/layout/seed.h"

/* Rectangles (slots by bytes) that tile a whole one, so that the live sum can be reached exactly.
 */
enum { REPAIR_N_SLOTS = 32, MOST = 64, UNIT_BYTES = 256, HEIGHT = 48 };

struct tiling {
    struct weft_layout_buffer buffers[MOST];
    struct weft_life lives[MOST];
    int64_t offsets[MOST];
    int32_t n;
    uint64_t seed, draws;
};

static int32_t draw_repair(struct tiling *tiling, int32_t below)
{
    return (int32_t)weft_rng_below(tiling->seed, 0, tiling->draws++, (uint64_t)below);
}

static void add_repair(struct tiling *tiling, int32_t first, int32_t length, int32_t at,
                       int32_t height)
{
    int32_t i = tiling->n++;
    tiling->lives[i] = (struct weft_life){first, first + length - 1};
    tiling->offsets[i] = (int64_t)at * UNIT_BYTES;
    tiling->buffers[i] = (struct weft_layout_buffer){
        .bytes = (int64_t)height * UNIT_BYTES, .n_pieces = 1, .lives = &tiling->lives[i]};
}

/* Cuts one in two, along slots or along bytes. */
static void split(struct tiling *tiling)
{
    int32_t i = draw_repair(tiling, tiling->n);
    struct weft_life *life = &tiling->lives[i];
    int32_t length = life->last - life->first + 1, at = (int32_t)(tiling->offsets[i] / UNIT_BYTES);
    int32_t height = (int32_t)(tiling->buffers[i].bytes / UNIT_BYTES);
    if (draw_repair(tiling, REPAIR_N_SLOTS + HEIGHT) < REPAIR_N_SLOTS) {
        if (length < 2) return;
        int32_t cut = 1 + draw_repair(tiling, length - 1);
        add_repair(tiling, life->first + cut, length - cut, at, height);
        life->last = life->first + cut - 1;
    } else {
        if (height < 2) return;
        int32_t cut = 1 + draw_repair(tiling, height - 1);
        add_repair(tiling, life->first, length, at + cut, height - cut);
        tiling->buffers[i].bytes = (int64_t)cut * UNIT_BYTES;
    }
}

static void tile(struct tiling *tiling, uint64_t seed, int32_t n)
{
    *tiling = (struct tiling){.seed = seed};
    add_repair(tiling, 0, REPAIR_N_SLOTS / 2, 0, HEIGHT);
    add_repair(tiling, REPAIR_N_SLOTS / 2, REPAIR_N_SLOTS / 2, 0, HEIGHT);
    while (tiling->n < n)
        split(tiling);
}

static void check_repair(const struct weft_packing *packing)
{
    for (int32_t a = 0; a < packing->n_bodies; a++) {
        const struct weft_packing_body *left = &packing->bodies[a];
        int64_t begin = packing->best_offsets[a], end = begin + left->bytes;
        cr_assert(begin >= 0 && end <= packing->best_bytes);
        for (int32_t b = 0; b < a; b++) {
            const struct weft_packing_body *right = &packing->bodies[b];
            struct weft_packing_tenant tenant = {.first = right->first, .length = right->length};
            if (!weft_packing_meet(&left->segments[0], &tenant, packing->n_slots)) continue;
            int64_t other = packing->best_offsets[b];
            cr_assert(end <= other || begin >= other + right->bytes, "%d lies on %d", a, b);
        }
    }
}

/* The least end that `work` finds from the orders alone or from a bad start. */
static int64_t pack(struct tiling *tiling, bool seeded, int64_t work)
{
    struct weft_pool pool = {0};
    struct weft_packing packing;
    cr_assert_eq(
        weft_packing_fill(&packing, &pool, tiling->buffers, tiling->n, REPAIR_N_SLOTS, NULL),
        WEFT_OK);
    if (seeded) {
        cr_assert_eq(weft_packing_seed(&packing, &pool, INT64_MAX, NULL), WEFT_OK);
    } else {
        int64_t at = 0;
        weft_packing_clear(&packing, false);
        for (int32_t b = 0; b < packing.n_bodies; at += packing.bodies[b++].bytes)
            weft_packing_put(&packing, b, at);
        weft_packing_record(&packing);
        cr_assert_eq(packing.best_bytes, packing.total_bytes);
    }
    cr_assert_eq(weft_packing_repair(&packing, &pool, work, NULL), WEFT_OK);
    check_repair(&packing);
    cr_assert_eq(packing.least_bytes, HEIGHT * UNIT_BYTES);
    cr_assert_geq(packing.best_bytes, packing.least_bytes);
    int64_t end_bytes = packing.best_bytes;
    weft_pool_finish(&pool);
    return end_bytes;
}

Test(repair, finds_tilings_from_a_heap)
{
    int32_t perfect = 0;
    for (uint64_t seed = 0; seed < 40; seed++) {
        struct tiling tiling;
        tile(&tiling, seed, 16);
        perfect += pack(&tiling, false, 4000000) == HEIGHT * UNIT_BYTES;
    }
    cr_assert_geq(perfect, 36, "%d of 40 tilings found", perfect);
}

Test(repair, improves_what_orders_leave)
{
    int64_t orders = 0, repaired = 0;
    for (uint64_t seed = 100; seed < 130; seed++) {
        struct tiling tiling;
        tile(&tiling, seed, MOST);
        int64_t before = pack(&tiling, true, 0), after = pack(&tiling, true, 4000000);
        cr_assert_leq(after, before);
        cr_assert_leq(pack(&tiling, true, 8000000), after, "more work never ends higher");
        orders += before - HEIGHT * UNIT_BYTES;
        repaired += after - HEIGHT * UNIT_BYTES;
    }
    cr_assert_gt(orders, 0, "else there is nothing to improve");
    cr_assert_leq(2 * repaired, orders, "%lld of %lld above the live sums is left",
                  (long long)repaired, (long long)orders);
}

Test(repair, leaves_a_dense_packing_alone)
{
    struct weft_life life = {0, 1};
    struct weft_layout_buffer buffer = {.bytes = 512, .n_pieces = 1, .lives = &life};
    struct weft_pool pool = {0};
    struct weft_packing packing;
    cr_assert_eq(weft_packing_fill(&packing, &pool, &buffer, 1, 4, NULL), WEFT_OK);
    cr_assert_eq(weft_packing_seed(&packing, &pool, 1, NULL), WEFT_OK);
    cr_assert_eq(packing.best_bytes, 512);
    cr_assert_eq(weft_packing_repair(&packing, &pool, INT64_MAX, NULL), WEFT_OK);
    cr_assert_eq(packing.best_offsets[0], 0);
    weft_pool_finish(&pool);
}
