#include "memory_model/layout/packing.h"

#include <criterion/criterion.h>

enum { PACKING_N_SLOTS = 4 };

static const struct weft_life all = {0, 3}, wraps_all = {2, 1}, early = {0, 1}, late = {2, 3},
                              turn = {3, 0};

static struct weft_packing fill(struct weft_pool *pool, const struct weft_layout_buffer *buffers,
                                int32_t n)
{
    struct weft_packing packing;
    cr_assert_eq(weft_packing_fill(&packing, pool, buffers, n, PACKING_N_SLOTS, NULL), WEFT_OK);
    return packing;
}

Test(packing, counts_slots_round_the_end)
{
    cr_assert_eq(weft_packing_length(early, PACKING_N_SLOTS), 2);
    cr_assert_eq(weft_packing_length(turn, PACKING_N_SLOTS), 2);
    cr_assert_eq(weft_packing_length(all, PACKING_N_SLOTS), 4);
    cr_assert_eq(weft_packing_length(wraps_all, PACKING_N_SLOTS), 4);
}

Test(packing, leaves_out_what_lives_always_or_not_at_all)
{
    struct weft_life pieces[] = {all, early};
    struct weft_layout_buffer buffers[] = {
        {.bytes = 256, .n_pieces = 1, .lives = &all},
        {.bytes = 256, .n_pieces = 1, .lives = &wraps_all},
        {.bytes = 0, .n_pieces = 1, .lives = &early},
        {.bytes = 512, .n_pieces = 2, .lives = pieces},
    };
    struct weft_pool pool = {0};
    struct weft_packing packing = fill(&pool, buffers, 4);
    cr_assert_eq(packing.n_bodies, 1);
    cr_assert_eq(packing.bodies[0].buffer, 3);
    cr_assert_eq(packing.bodies[0].crowd_bytes, 512);
    cr_assert_eq(packing.bodies[0].length, 4);
    cr_assert_eq((int64_t)packing.bodies[0].area, 4 * 256 + 2 * 256);
    cr_assert_eq(packing.slot_bytes[1], 512);
    cr_assert_eq(packing.slot_bytes[2], 256);
    weft_pool_finish(&pool);
}

Test(packing, joins_pieces_of_one_life)
{
    struct weft_life pieces[] = {early, early, late, early};
    struct weft_layout_buffer buffer = {.bytes = 1024, .n_pieces = 4, .lives = pieces};
    struct weft_pool pool = {0};
    struct weft_packing packing = fill(&pool, &buffer, 1);
    const struct weft_packing_body *body = &packing.bodies[0];
    cr_assert_eq(body->n_segments, 3);
    cr_assert_eq(body->segments[0].bytes, 512);
    cr_assert_eq(body->segments[1].at, 512);
    cr_assert_eq(body->segments[1].bytes, 256);
    cr_assert_eq(body->segments[2].at, 768);
    weft_pool_finish(&pool);
}

/* a: two pieces, the lower early, the upper late. b lives early and c late, both one piece; d round
 * the end, so it meets them all. */
static struct weft_packing four(struct weft_pool *pool)
{
    static const struct weft_life pieces[] = {{0, 1}, {2, 3}};
    const struct weft_layout_buffer buffers[] = {
        {.bytes = 512, .n_pieces = 2, .lives = pieces},
        {.bytes = 256, .n_pieces = 1, .lives = &early},
        {.bytes = 256, .n_pieces = 1, .lives = &late},
        {.bytes = 256, .n_pieces = 1, .lives = &turn},
    };
    return fill(pool, buffers, 4);
}

Test(packing, places_at_the_lowest_offset)
{
    struct weft_pool pool = {0};
    struct weft_packing packing = four(&pool);
    weft_packing_clear(&packing, false);
    for (int32_t b = 0; b < 3; b++)
        cr_assert(weft_packing_place(&packing, b, 512));
    cr_assert_eq(packing.offsets[0], 0);
    cr_assert_eq(packing.offsets[1], 256, "on the early piece, below the late one's bytes");
    cr_assert_eq(packing.offsets[2], 0, "where the early piece was");
    cr_assert_eq(packing.end_bytes, 512);
    cr_assert_not(weft_packing_place(&packing, 3, 767), "its end would be at 768");
    cr_assert_eq(packing.offsets[3], -1);
    cr_assert(weft_packing_place(&packing, 3, 768));
    weft_pool_finish(&pool);
}

Test(packing, a_staircase_rises_until_every_step_is_free)
{
    struct weft_pool pool = {0};
    struct weft_packing packing = four(&pool);
    weft_packing_clear(&packing, false);
    weft_packing_put(&packing, 1, 0);
    weft_packing_put(&packing, 2, 512);
    /* At 256 its late piece would meet c; from 512 on nothing does. */
    cr_assert(weft_packing_place(&packing, 0, INT64_MAX));
    cr_assert_eq(packing.offsets[0], 512);
    weft_pool_finish(&pool);
}

Test(packing, mirrored_bodies_stand_on_their_heads)
{
    struct weft_pool pool = {0};
    struct weft_packing packing = four(&pool);
    weft_packing_clear(&packing, true);
    cr_assert(weft_packing_place(&packing, 0, INT64_MAX));
    cr_assert(weft_packing_place(&packing, 1, INT64_MAX));
    cr_assert_eq(packing.offsets[1], 0, "now the late piece is the lower one");
    cr_assert(weft_packing_place(&packing, 2, INT64_MAX));
    cr_assert_eq(packing.offsets[2], 256);
    weft_pool_finish(&pool);
}

Test(packing, keeps_the_lowest_of_whole_passes)
{
    struct weft_pool pool = {0};
    struct weft_packing packing = four(&pool);
    cr_assert_eq(packing.least_bytes, 768);
    cr_assert_not(weft_packing_is_dense(&packing), "there is none yet");
    weft_packing_clear(&packing, false);
    for (int32_t b = 3; b >= 0; b--)
        cr_assert(weft_packing_place(&packing, b, INT64_MAX));
    weft_packing_record(&packing);
    cr_assert_eq(packing.best_bytes, 1024, "a stands on b, so that its late piece is above c");
    /* On their heads: d, then a with its late piece lower, then c and b where a leaves room. */
    weft_packing_clear(&packing, true);
    static const int32_t order[] = {3, 0, 1, 2};
    for (int i = 0; i < 4; i++)
        cr_assert(weft_packing_place(&packing, order[i], INT64_MAX));
    weft_packing_record(&packing);
    cr_assert_eq(packing.best_bytes, 768);
    cr_assert(weft_packing_is_dense(&packing));
    cr_assert_eq(packing.best_offsets[3], 512, "first from the ceiling");
    cr_assert_eq(packing.best_offsets[0], 0);
    weft_packing_clear(&packing, false);
    weft_packing_put(&packing, 0, 4096);
    weft_packing_record(&packing);
    cr_assert_eq(packing.best_bytes, 768);
    cr_assert_eq(packing.best_offsets[0], 0);
    weft_pool_finish(&pool);
}

Test(packing, lives_meet_round_the_end)
{
    struct weft_packing_segment segment = {.first = 3, .length = 2};
    struct weft_packing_tenant tenant = {.first = 0, .length = 1};
    cr_assert(weft_packing_meet(&segment, &tenant, PACKING_N_SLOTS));
    tenant.first = 1;
    cr_assert_not(weft_packing_meet(&segment, &tenant, PACKING_N_SLOTS));
    tenant.length = 3;
    cr_assert(weft_packing_meet(&segment, &tenant, PACKING_N_SLOTS));
}
