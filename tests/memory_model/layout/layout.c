#include "memory_model/layout/layout.h"

#include <criterion/criterion.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "base/rng.h"
#include "memory_model/weigh.h"
#include "tests/effort.h"

/* Buffers as a plan of a transformer has them, without a model: sizes and slots by hand. */
struct instance {
    struct weft_layout_buffer *buffers;
    int32_t n_buffers, n_slots, n_pieces;
    struct weft_pool pool;
    uint64_t seed, counter;
};

struct shape {
    int32_t layers, blocks;
    int32_t sdp_every;  /* every so many units are sdp, the others fsdp; 0: none */
    int32_t ahead;      /* slots over which a unit's blocks are gathered before use */
    int32_t behind;     /* slots over which a unit's blocks are reduced after the last gradient */
    int64_t unit_bytes; /* of a layer's parameters, a multiple of 256 * blocks */
    int64_t embedding_bytes;
    int64_t saved_bytes, output_bytes, temporary_bytes;
    int64_t uneven;   /* sizes vary by up to one in so many; 0: all equal */
    int64_t widening; /* a gradient has so many times the bytes of its parameters */
};

#define MIB (INT64_C(1) << 20)

static const struct shape shapes[] = {
    {12, 4, 0, 1, 1, 28 * MIB, 156 * MIB, 60 * MIB, 6 * MIB, 20 * MIB, 0, 1},
    {12, 4, 2, 1, 1, 28 * MIB, 156 * MIB, 60 * MIB, 6 * MIB, 20 * MIB, 0, 1},
    {12, 8, 0, 2, 2, 28 * MIB, 156 * MIB, 10 * MIB, 2 * MIB, 8 * MIB, 0, 1},
    {12, 8, 3, 3, 2, 28 * MIB, 156 * MIB, 10 * MIB, 2 * MIB, 8 * MIB, 8, 1},
    {24, 7, 0, 2, 3, 28 * MIB, 126 * MIB, 50 * MIB, 4 * MIB, 16 * MIB, 0, 1},
    {24, 7, 1, 2, 3, 28 * MIB, 126 * MIB, 50 * MIB, 4 * MIB, 16 * MIB, 4, 1},
    {48, 10, 0, 2, 2, 80 * MIB, 300 * MIB, 50 * MIB, 8 * MIB, 32 * MIB, 0, 1},
    {48, 10, 3, 3, 3, 80 * MIB, 300 * MIB, 20 * MIB, 8 * MIB, 32 * MIB, 16, 1},
    {96, 10, 0, 2, 2, 80 * MIB, 300 * MIB, 100 * MIB, 8 * MIB, 32 * MIB, 0, 1},
    {100, 10, 2, 2, 3, 80 * MIB, 300 * MIB, 100 * MIB, 8 * MIB, 32 * MIB, 3, 1},
    {100, 10, 0, 1, 0, 800 * MIB, 300 * MIB, MIB, MIB, MIB, 0, 1},
    {6, 3, 0, 1, 1, 3 * MIB / 4, 76800, MIB, MIB / 4, MIB / 2, 0, 1},
    {6, 3, 2, 2, 2, 3 * MIB / 4, 76800, MIB, MIB / 4, MIB / 2, 3, 1},
    {4, 1, 0, 1, 1, 3 * MIB / 4, 76800, MIB, MIB / 4, MIB / 2, 3, 1},
};
enum { UNEVEN = 12 };

/* Where a few buffers are a good part of what lives: bf16 parameters in units of many blocks, f32
 * gradients, gathered far ahead and reduced late, as plans within a tight limit have them. */
static const struct shape hard_shapes[] = {
    {80, 16, 0, 2, 5, 1632 * MIB, 2004 * MIB, 505 * MIB, 32 * MIB, 288 * MIB, 0, 2},
    {80, 10, 3, 4, 4, 1630 * MIB, 2000 * MIB, 505 * MIB, 32 * MIB, 288 * MIB, 0, 2},
    {96, 20, 0, 2, 3, 3460 * MIB, 1200 * MIB, 1300 * MIB, 48 * MIB, 400 * MIB, 0, 2},
    {126, 2, 0, 2, 6, 6080 * MIB, 4008 * MIB, 476 * MIB, 32 * MIB, 272 * MIB, 0, 2},
    {126, 16, 9, 1, 2, 6080 * MIB, 4000 * MIB, 476 * MIB, 32 * MIB, 272 * MIB, 16, 2},
    {40, 4, 1, 40, 40, 600 * MIB, 620 * MIB, 620 * MIB, 20 * MIB, 128 * MIB, 0, 2},
};

static int64_t vary(const struct shape *shape, int64_t bytes, int32_t i, int64_t step)
{
    if (shape->uneven == 0) return bytes;
    int64_t range = bytes / shape->uneven / step + 1;
    return bytes + (int64_t)weft_rng_below(5, (uint64_t)bytes, (uint64_t)i, (uint64_t)range) * step;
}

/* The lives of its pieces, to be changed where they differ. */
static struct weft_life *add_layout(struct instance *in, int64_t bytes, int32_t n_pieces,
                                    int32_t first, int32_t last)
{
    struct weft_life *lives = weft_pool_array(&in->pool, (size_t)n_pieces, sizeof *lives);
    for (int32_t i = 0; i < n_pieces; i++)
        lives[i] = (struct weft_life){first, last};
    in->buffers[in->n_buffers++] =
        (struct weft_layout_buffer){.bytes = bytes, .n_pieces = n_pieces, .lives = lives};
    in->n_pieces += n_pieces;
    return lives;
}

static void gather(struct instance *in, const struct shape *shape, int64_t bytes, int32_t least,
                   int32_t first_use, int32_t last_use)
{
    struct weft_life *lives = add_layout(in, bytes, shape->blocks, first_use, last_use);
    for (int32_t i = 0; i < shape->blocks; i++) {
        int32_t launch = first_use - shape->ahead + shape->ahead * i / shape->blocks;
        lives[i].first = launch < least ? least : launch;
    }
}

static void make(struct instance *in, const struct shape *shape)
{
    int32_t n = shape->layers, units = n + 1; /* a tied embedding, and the blocks */
    int32_t fill = units, end = fill + 2 * (n + 2) + 2;
    *in = (struct instance){.n_slots = end + 1};
    in->buffers = weft_pool_array(&in->pool, (size_t)(16 * (n + 2)), sizeof *in->buffers);
    for (int32_t l = 0; l < n + 2; l++) {
        int32_t forward = fill + 1 + l, backward = fill + 2 * (n + 2) - l;
        bool head = l == n + 1;
        int64_t output = vary(shape, shape->output_bytes, l, 256);
        int64_t saved = vary(shape, shape->saved_bytes, l, 256);
        if (!head) add_layout(in, output, 1, forward, backward - 1);
        if (!head) add_layout(in, output, 1, backward - 1, backward);
        if (l > 0) add_layout(in, head ? 3 * saved : saved, 1, forward, backward);
        if (l > 0) add_layout(in, shape->temporary_bytes, 1, forward, forward);
        if (l > 0) add_layout(in, 2 * shape->temporary_bytes, 1, backward, backward);
        if (head) continue;
        int64_t bytes = l == 0 ? shape->embedding_bytes
                               : vary(shape, shape->unit_bytes, l, 256 * shape->blocks);
        int64_t shard = bytes / shape->blocks; /* of as many ranks */
        for (int i = 0; i < 3; i++)
            add_layout(in, shard, 1, 0, end);
        bool sdp = shape->sdp_every != 0 && l % shape->sdp_every == 0;
        int32_t head_forward = fill + n + 2;
        if (l == 0) {
            gather(in, shape, bytes, l + 1, forward, sdp ? head_forward + 1 : forward);
            if (!sdp) gather(in, shape, bytes, forward + 1, head_forward, head_forward + 1);
        } else {
            gather(in, shape, bytes, l + 1, forward, sdp || l == n ? backward : forward);
            if (!sdp && l < n) gather(in, shape, bytes, forward + 1, backward, backward);
        }
        struct weft_life *lives = add_layout(in, bytes * shape->widening, shape->blocks,
                                             l == 0 ? head_forward + 1 : backward, backward);
        for (int32_t i = 0; i < shape->blocks; i++) {
            int32_t done = backward + 1 + shape->behind * i / shape->blocks;
            lives[i].last = done > end - 1 ? end - 1 : done;
        }
        add_layout(in, shard, 1, backward + 1, l);
    }
}

static int64_t draw_layout(struct instance *in, int64_t below)
{
    return (int64_t)weft_rng_below(in->seed, 0, in->counter++, (uint64_t)below);
}

/* Anything goes: lives that wrap, lives of all slots, pieces that never meet, empty buffers. */
static void make_random(struct instance *in, uint64_t seed)
{
    *in = (struct instance){.seed = seed};
    int32_t n_buffers = (int32_t)draw_layout(in, 40);
    in->n_slots = 1 + (int32_t)draw_layout(in, 24);
    in->buffers = weft_pool_array(&in->pool, (size_t)n_buffers, sizeof *in->buffers);
    for (int32_t b = 0; b < n_buffers; b++) {
        int32_t n_pieces = 1 + (int32_t)draw_layout(in, 5);
        int64_t bytes = n_pieces * 256 * draw_layout(in, 9);
        struct weft_life *lives = add_layout(in, bytes, n_pieces, 0, in->n_slots - 1);
        for (int32_t i = 0; i < n_pieces && draw_layout(in, 4) != 0; i++) {
            lives[i].first = (int32_t)draw_layout(in, in->n_slots);
            lives[i].last = (int32_t)draw_layout(in, in->n_slots);
        }
    }
}

/* By slot and byte range alone, knowing nothing of how the layout was found. */
static void check_layout(const struct instance *in, int64_t end_bytes, int64_t live_bytes)
{
    int64_t end = 0, most = 0;
    for (int32_t a = 0; a < in->n_buffers; a++) {
        const struct weft_layout_buffer *buffer = &in->buffers[a];
        cr_assert_geq(buffer->offset, 0);
        cr_assert_eq(buffer->offset % WEFT_ARENA_ALIGN_BYTES, 0);
        if (buffer->offset + buffer->bytes > end) end = buffer->offset + buffer->bytes;
    }
    cr_assert_eq(end_bytes, end);
    struct range {
        int64_t begin, end;
    } *ranges = calloc((size_t)in->n_pieces + 1, sizeof *ranges);
    for (int32_t s = 0; s < in->n_slots; s++) {
        int64_t live = 0;
        int32_t n = 0;
        for (int32_t b = 0; b < in->n_buffers; b++) {
            const struct weft_layout_buffer *buffer = &in->buffers[b];
            int64_t piece = buffer->bytes / buffer->n_pieces;
            for (int32_t i = 0; i < buffer->n_pieces; i++) {
                if (!weft_life_has(buffer->lives[i], s) || piece == 0) continue;
                live += piece;
                int64_t begin = buffer->offset + i * piece;
                for (int32_t k = 0; k < n; k++) {
                    cr_assert(begin >= ranges[k].end || begin + piece <= ranges[k].begin,
                              "slot %d: piece %d of buffer %d lies on another", s, i, b);
                }
                ranges[n++] = (struct range){begin, begin + piece};
            }
        }
        if (live > most) most = live;
    }
    free(ranges);
    cr_assert_eq(live_bytes, most);
    cr_assert_geq(end_bytes, live_bytes);
}

static const struct weft_budget no_limit;

static int64_t lay_out(struct instance *in, int32_t effort, int64_t *live_bytes)
{
    struct weft_error err = {0};
    int64_t end_bytes = -1;
    enum weft_status status = weft_layout(in->buffers, in->n_buffers, in->n_slots, effort, no_limit,
                                          &end_bytes, live_bytes, &err);
    cr_assert_eq(status, WEFT_OK, "%s", err.text);
    check_layout(in, end_bytes, *live_bytes);
    return end_bytes;
}

Test(layout, nothing_needs_nothing)
{
    int64_t end_bytes = -1, live_bytes = -1;
    cr_assert_eq(weft_layout(NULL, 0, 3, 0, no_limit, &end_bytes, &live_bytes, NULL), WEFT_OK);
    cr_assert_eq(end_bytes, 0);
    cr_assert_eq(live_bytes, 0);
}

Test(layout, buffers_that_never_meet_share_bytes)
{
    struct weft_life a = {0, 1}, b = {2, 3}, wraps = {3, 0};
    struct weft_layout_buffer buffers[] = {
        {.bytes = 512, .n_pieces = 1, .lives = &a},
        {.bytes = 512, .n_pieces = 1, .lives = &b},
        {.bytes = 256, .n_pieces = 1, .lives = &wraps},
    };
    int64_t end_bytes, live_bytes;
    cr_assert_eq(weft_layout(buffers, 3, 4, 0, no_limit, &end_bytes, &live_bytes, NULL), WEFT_OK);
    cr_assert_eq(end_bytes, 768);
    cr_assert_eq(live_bytes, 768);
    cr_assert_eq(buffers[0].offset, buffers[1].offset);
    cr_assert_neq(buffers[2].offset, buffers[0].offset, "it meets both");
}

/* A gradient that leaves block by block and a gather that arrives block by block need the room of
 * one, because each step of the one stair stands on a step of the other. */
Test(layout, staircases_stand_on_each_other)
{
    struct weft_life leaves[] = {{0, 0}, {0, 1}, {0, 2}};
    struct weft_life arrives[] = {{1, 5}, {2, 5}, {3, 5}};
    struct weft_layout_buffer buffers[] = {
        {.bytes = 768, .n_pieces = 3, .lives = leaves},
        {.bytes = 768, .n_pieces = 3, .lives = arrives},
    };
    int64_t end_bytes, live_bytes;
    cr_assert_eq(weft_layout(buffers, 2, 6, 0, no_limit, &end_bytes, &live_bytes, NULL), WEFT_OK);
    cr_assert_eq(live_bytes, 768);
    cr_assert_eq(end_bytes, 768);
}

Test(layout, nothing_overlaps_in_random_instances)
{
    for (uint64_t seed = 0; seed < TEST_CASES(400, 100); seed++) {
        struct instance in;
        make_random(&in, seed);
        int64_t live_bytes;
        (void)lay_out(&in, 0, &live_bytes);
        weft_pool_finish(&in.pool);
    }
}

Test(layout, is_deterministic_and_effort_never_hurts)
{
    struct shape shape = shapes[UNEVEN];
    struct instance a, b;
    make(&a, &shape);
    make(&b, &shape);
    int64_t live_bytes, end_bytes = lay_out(&a, 0, &live_bytes);
    cr_assert_eq(lay_out(&b, 0, &live_bytes), end_bytes);
    for (int32_t i = 0; i < a.n_buffers; i++)
        cr_assert_eq(a.buffers[i].offset, b.buffers[i].offset);
    cr_assert_leq(lay_out(&b, 2, &live_bytes), end_bytes);
    weft_pool_finish(&a.pool);
    weft_pool_finish(&b.pool);
}

/* When the budget is used up the first layout that there is stands, and it is a layout. */
Test(layout, ends_with_its_budget)
{
    struct instance in;
    int64_t live_bytes, end_bytes;
    make(&in, &hard_shapes[0]);
    int64_t searched = lay_out(&in, 1, &live_bytes);
    for (int64_t units = 1; units <= 10000000; units *= 10000000) {
        struct weft_work work = {0};
        cr_assert_eq(weft_layout(in.buffers, in.n_buffers, in.n_slots, 1,
                                 weft_budget_of(&work, units), &end_bytes, &live_bytes, NULL),
                     WEFT_OK);
        check_layout(&in, end_bytes, live_bytes);
        cr_assert_gt(end_bytes, searched, "%d units cut nothing short", (int)units);
        cr_assert_leq(work.spent, units + 5000000, "it goes on: %lld", (long long)work.spent);
    }
    weft_pool_finish(&in.pool);
}

/* A short search makes a layout too, and takes a part of what the next longer one does. */
Test(layout, a_short_search_is_short)
{
    struct instance in;
    int64_t live_bytes, end_bytes, units[2];
    make(&in, &hard_shapes[0]);
    for (int32_t effort = -1; effort <= 0; effort++) {
        struct weft_work work = {0};
        cr_assert_eq(weft_layout(in.buffers, in.n_buffers, in.n_slots, effort,
                                 weft_budget_unlimited(&work), &end_bytes, &live_bytes, NULL),
                     WEFT_OK);
        check_layout(&in, end_bytes, live_bytes);
        units[effort + 1] = work.spent;
    }
    cr_assert_lt(4 * units[0], units[1], "%d of %d units", (int)units[0], (int)units[1]);
    weft_pool_finish(&in.pool);
}

Test(layout, ends_within_2_percent_of_what_lives_where_buffers_are_large)
{
    for (size_t i = 0; i < TEST_CASES(sizeof hard_shapes / sizeof *hard_shapes, 1); i++) {
        struct instance in;
        make(&in, &hard_shapes[i]);
        int64_t live_bytes, end_bytes = lay_out(&in, 1, &live_bytes);
        double ratio = (double)end_bytes / (double)live_bytes;
        fprintf(stderr, "layout: hard, %3d layers, %4d pieces: end/live %.4f\n",
                hard_shapes[i].layers, in.n_pieces, ratio);
        cr_assert_leq(ratio, 1.02);
        weft_pool_finish(&in.pool);
    }
}

Test(layout, ends_within_2_percent_of_what_lives)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        struct instance in;
        make(&in, &shapes[i]);
        int64_t live_bytes, end_bytes = lay_out(&in, 0, &live_bytes);
        double ratio = (double)end_bytes / (double)live_bytes;
        fprintf(stderr, "layout: %3d layers, %4d pieces: end/live %.4f\n", shapes[i].layers,
                in.n_pieces, ratio);
        cr_assert_leq(ratio, 1.02);
        weft_pool_finish(&in.pool);
    }
}
