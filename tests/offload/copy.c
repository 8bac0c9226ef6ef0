/* SPDX-License-Identifier: Apache-2.0 */
/* Order of copies, and their exact time on an emulated link, independent of the machine. */
#include "offload/copy.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

enum { COPY_BLOCK = 4096, MOST_SLEEPS = 64 };

static const int64_t hour_ns = INT64_C(3600) * 1000000000;

/* A wait for the link sleeps until a computed time. Tests that ask for it record this time and do
 * not sleep. */
static bool sleeps_are_noted;
static int64_t noted_ns[MOST_SLEEPS];
static int n_noted;

void __real_weft_clock_sleep_until_ns(int64_t ns);
void __wrap_weft_clock_sleep_until_ns(int64_t ns);
void __wrap_weft_clock_sleep_until_ns(int64_t ns)
{
    if (!sleeps_are_noted)
        __real_weft_clock_sleep_until_ns(ns);
    else if (n_noted < MOST_SLEEPS)
        noted_ns[n_noted++] = ns;
}

static struct weft_copier *copier_of(struct weft_copy_link down, int32_t requests)
{
    struct weft_error err = {0};
    struct weft_copier *copier = NULL;
    const struct weft_copier_options options = {
        .links = {[WEFT_COPY_DOWN] = down}, .requests = requests, .spans = 2};
    cr_assert_eq(weft_copier_create(&options, &copier, &err), WEFT_OK, "%s", err.text);
    return copier;
}

static int64_t copy_block(struct weft_copier *copier, enum weft_copy_direction direction,
                          unsigned char *to, unsigned char *from, int64_t bytes)
{
    struct weft_error err = {0};
    int64_t ticket = -1;
    const struct weft_memory_span source = {from, bytes};
    const struct weft_memory_span target[] = {{to, bytes / 2}, {to + bytes / 2, bytes - bytes / 2}};
    cr_assert_eq(weft_copier_submit(copier, direction, target, 2, &source, 1, &ticket, &err),
                 WEFT_OK, "%s", err.text);
    return ticket;
}

/* A block goes down and up again many times. Each copy reads the bytes of the one before. */
Test(copy, copies_of_a_direction_are_in_order)
{
    enum { COPIES = 100 };
    static unsigned char blocks[COPIES + 1][COPY_BLOCK];
    struct weft_error err = {0};
    struct weft_copier *copier = copier_of((struct weft_copy_link){0}, 7);
    memset(blocks[0], 77, COPY_BLOCK);
    int64_t ticket = -1;
    for (int i = 0; i < COPIES; i++)
        ticket = copy_block(copier, WEFT_COPY_UP, blocks[i + 1], blocks[i], COPY_BLOCK);
    cr_assert_eq(weft_copier_wait(copier, WEFT_COPY_UP, ticket, &err), WEFT_OK, "%s", err.text);
    cr_assert(weft_copier_is_done(copier, WEFT_COPY_UP, 0));
    cr_assert_eq(memcmp(blocks[COPIES], blocks[0], COPY_BLOCK), 0);
    weft_copier_destroy(copier);
}

Test(copy, an_emulated_link_takes_one_block_at_a_time)
{
    enum { COPIES = 10 };
    static unsigned char blocks[2][COPY_BLOCK];
    struct weft_error err = {0};
    /* The link is so slow that every copy ends early: an hour of alpha and an hour a block. */
    const struct weft_copy_link link = {
        .emulated = true, .alpha_ns = hour_ns, .bytes_per_s = COPY_BLOCK / 3600.0};
    struct weft_copier *copier = copier_of(link, COPIES);
    sleeps_are_noted = true;
    const int64_t from_ns = weft_clock_now_ns();
    int64_t ticket = -1;
    for (int i = 0; i < COPIES; i++)
        ticket = copy_block(copier, WEFT_COPY_DOWN, blocks[1], blocks[0],
                            i % 2 ? COPY_BLOCK : COPY_BLOCK / 2);
    cr_assert_eq(weft_copier_wait(copier, WEFT_COPY_DOWN, ticket, &err), WEFT_OK, "%s", err.text);
    const int64_t to_ns = weft_clock_now_ns();
    cr_assert_eq(n_noted, COPIES);
    const int64_t first_ns = noted_ns[0] - hour_ns * 3 / 2;
    cr_assert(first_ns >= from_ns && first_ns <= to_ns);
    for (int i = 1; i < COPIES; i++)
        cr_assert_eq(noted_ns[i] - noted_ns[i - 1], i % 2 ? 2 * hour_ns : hour_ns * 3 / 2);
    /* The other direction has a link of its own. */
    ticket = copy_block(copier, WEFT_COPY_UP, blocks[1], blocks[0], COPY_BLOCK);
    cr_assert_eq(weft_copier_wait(copier, WEFT_COPY_UP, ticket, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(n_noted, COPIES);
    weft_copier_destroy(copier);
    cr_assert_eq(weft_copy_link_ns(&link, COPY_BLOCK), 2 * hour_ns);
}

Test(copy, a_link_s_time_passes)
{
    static unsigned char blocks[2][COPY_BLOCK];
    struct weft_error err = {0};
    const struct weft_copy_link link = {
        .emulated = true, .alpha_ns = 5000000, .bytes_per_s = COPY_BLOCK / 0.005};
    struct weft_copier *copier = copier_of(link, 4);
    const int64_t from_ns = weft_clock_now_ns();
    int64_t ticket = -1;
    for (int i = 0; i < 4; i++)
        ticket = copy_block(copier, WEFT_COPY_DOWN, blocks[1], blocks[0], COPY_BLOCK);
    cr_assert_eq(weft_copier_wait(copier, WEFT_COPY_DOWN, ticket, &err), WEFT_OK, "%s", err.text);
    cr_assert(weft_clock_now_ns() - from_ns >= 40000000);
    weft_copier_destroy(copier);
}

Test(copy, sides_that_differ_are_refused)
{
    static unsigned char blocks[2][COPY_BLOCK];
    struct weft_error err = {0};
    struct weft_copier *copier = copier_of((struct weft_copy_link){0}, 1);
    const struct weft_memory_span spans[] = {
        {blocks[0], COPY_BLOCK}, {blocks[1], COPY_BLOCK - 1}, {blocks[1], 0}};
    int64_t ticket = -1;
    cr_assert_eq(weft_copier_submit(copier, WEFT_COPY_UP, spans, 1, spans + 1, 1, &ticket, &err),
                 WEFT_E_INTERNAL);
    cr_assert_eq(weft_copier_submit(copier, WEFT_COPY_UP, spans, 3, spans, 1, &ticket, NULL),
                 WEFT_E_INTERNAL);
    cr_assert_eq(ticket, -1);
    weft_copier_destroy(copier);
    struct weft_copier_options options = {.requests = 1, .spans = 1};
    options.links[WEFT_COPY_UP].emulated = true;
    err.status = WEFT_OK;
    cr_assert_eq(weft_copier_create(&options, &copier, &err), WEFT_E_INTERNAL);
    cr_assert(strstr(err.text, "link up"), "%s", err.text);
    weft_copier_destroy(NULL);
}

/* A copy that is still on a slow link at the timeout. */
Test(copy, a_copy_that_hangs_is_named)
{
    static unsigned char blocks[2][COPY_BLOCK];
    struct weft_error err = {0};
    struct weft_copier *copier = NULL;
    const struct weft_copier_options options = {
        .links = {[WEFT_COPY_DOWN] = {true, 400000000, 1e12}},
        .requests = 2,
        .spans = 2,
        .timeout_ns = 20000000};
    cr_assert_eq(weft_copier_create(&options, &copier, &err), WEFT_OK, "%s", err.text);
    const int64_t ticket = copy_block(copier, WEFT_COPY_DOWN, blocks[1], blocks[0], COPY_BLOCK);
    cr_assert_eq(weft_copier_wait(copier, WEFT_COPY_DOWN, ticket, &err), WEFT_E_HANG);
    cr_assert(strstr(err.text, "a copy down of 4.00 KiB"), "%s", err.text);
    cr_assert(!weft_copier_is_done(copier, WEFT_COPY_DOWN, ticket));
    weft_copier_destroy(copier);
}
