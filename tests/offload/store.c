/* SPDX-License-Identifier: Apache-2.0 */
/* A store returns the written bytes, for any order of requests and any behaviour of the disk. */
#include "offload/store.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/log.h"
#include "base/rng.h"
#include "tests/effort.h"
#include "tests/offload/fake_disk.h"

enum { PAGE = 4096, BLOCKS = 12, MOST_PAGES = 6, SEATS = 8, SPANS = 4 };

/* Blocks of random lengths with their expected bytes, and seats in memory with shuffled pages. */
struct model {
    struct weft_store *store;
    struct weft_store_block blocks[BLOCKS];
    unsigned char *held[BLOCKS]; /* NULL: never written */
    unsigned char *memory;
    uint64_t seed, draws;
};

struct seat {
    struct weft_memory_span spans[SPANS];
    int32_t n;
    int64_t block, ticket;
    unsigned char *expected; /* of a read; NULL: a write or a free block */
    enum weft_store_direction direction;
    bool used;
};

static int64_t draw_below(struct model *m, int64_t below)
{
    return (int64_t)weft_rng_below(m->seed, 9, m->draws++, (uint64_t)below);
}

static void open_model(struct model *m, struct weft_store_options options, uint64_t seed)
{
    struct weft_error err = {0};
    *m = (struct model){.seed = seed};
    options.threads = 1 + (int32_t)draw_below(m, 4);
    options.requests = 1 + (int32_t)draw_below(m, 6);
    options.spans = SPANS;
    for (int i = 0; i < BLOCKS; i++)
        m->blocks[i] = (struct weft_store_block){
            .bytes = (1 + draw_below(m, MOST_PAGES)) * PAGE, .unit = i / 3, .index = i % 3};
    m->memory = aligned_alloc(PAGE, SEATS * MOST_PAGES * PAGE);
    cr_assert_eq(weft_store_open(&options, &m->store, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_store_alignment_bytes(m->store), PAGE);
    cr_assert_eq(weft_store_reserve(m->store, m->blocks, BLOCKS, &err), WEFT_OK, "%s", err.text);
}

static void close_model(struct model *m)
{
    weft_store_destroy(m->store);
    for (int i = 0; i < BLOCKS; i++)
        free(m->held[i]);
    free(m->memory);
}

/* Cuts the seat's memory into spans of random lengths, the last one first. */
static void cut_seat(struct model *m, struct seat *seat, int index, int64_t pages)
{
    unsigned char *memory = m->memory + (int64_t)index * MOST_PAGES * PAGE;
    for (seat->n = 0; pages > 0; seat->n++) {
        const int64_t count = seat->n == SPANS - 1 ? pages : 1 + draw_below(m, pages);
        pages -= count;
        seat->spans[seat->n] = (struct weft_memory_span){memory + pages * PAGE, count * PAGE};
    }
}

static void each_span(const struct seat *seat, unsigned char *bytes, bool into_seat, bool *equal)
{
    for (int32_t i = 0; i < seat->n; i++) {
        const size_t length = (size_t)seat->spans[i].bytes;
        if (equal != NULL)
            *equal = *equal && memcmp(seat->spans[i].at, bytes, length) == 0;
        else if (into_seat)
            memcpy(seat->spans[i].at, bytes, length);
        bytes += length;
    }
}

static void settle_seat(struct model *m, struct seat *seat)
{
    struct weft_error err = {0};
    bool equal = true;
    if (!seat->used) return;
    cr_assert_eq(weft_store_wait(m->store, seat->direction, seat->ticket, &err), WEFT_OK, "%s",
                 err.text);
    cr_assert(weft_store_is_done(m->store, seat->direction, seat->ticket));
    if (seat->expected != NULL) each_span(seat, seat->expected, false, &equal);
    cr_assert(equal, "block %lld, seed %llu", (long long)seat->block, (unsigned long long)m->seed);
    free(seat->expected);
    seat->expected = NULL;
    seat->used = false;
}

static unsigned char *random_bytes(struct model *m, int64_t bytes)
{
    unsigned char *out = malloc((size_t)bytes);
    for (int64_t i = 0; i < bytes; i += 8) {
        const uint64_t word = weft_rng_u64(m->seed, 5, m->draws++);
        memcpy(out + i, &word, 8);
    }
    return out;
}

static void submit_one(struct model *m, struct seat *seat, int index)
{
    struct weft_error err = {0};
    seat->block = draw_below(m, BLOCKS);
    const int64_t bytes = m->blocks[seat->block].bytes;
    unsigned char **held = &m->held[seat->block];
    cut_seat(m, seat, index, bytes / PAGE);
    seat->used = true;
    if (*held == NULL || draw_below(m, 2) == 0) {
        seat->direction = WEFT_STORE_WRITE;
        free(*held);
        *held = random_bytes(m, bytes);
        each_span(seat, *held, true, NULL);
        cr_assert_eq(weft_store_submit_write(m->store, seat->block, (int64_t)m->draws, seat->spans,
                                             seat->n, &seat->ticket, &err),
                     WEFT_OK, "%s", err.text);
        return;
    }
    seat->direction = WEFT_STORE_READ;
    seat->expected = malloc((size_t)bytes);
    memcpy(seat->expected, *held, (size_t)bytes);
    cr_assert_eq(
        weft_store_submit_read(m->store, seat->block, seat->spans, seat->n, &seat->ticket, &err),
        WEFT_OK, "%s", err.text);
}

/* Each read returns the last write before it in the order of submission. */
static void run_model(struct weft_store_options options, uint64_t seed, int operations)
{
    struct model m;
    struct seat seats[SEATS] = {0};
    open_model(&m, options, seed);
    for (int i = 0; i < operations; i++) {
        const int index = (int)draw_below(&m, SEATS);
        settle_seat(&m, &seats[index]);
        submit_one(&m, &seats[index], index);
    }
    for (int i = 0; i < SEATS; i++)
        settle_seat(&m, &seats[i]);
    close_model(&m);
}

Test(store, gives_back_what_was_written)
{
    for (uint64_t seed = 0; seed < TEST_CASES(6, 2); seed++) {
        run_model((struct weft_store_options){.directory = "."}, seed, 300);
        run_model((struct weft_store_options){.directory = ".", .buffered = true}, seed, 300);
        run_model((struct weft_store_options){.directory = ".", .unverified = true}, seed, 100);
    }
}

/* Direct I/O resumes at a sector, other I/O at any byte. */
Test(store, short_and_interrupted_moves_are_invisible)
{
    for (uint64_t seed = 1; seed < TEST_CASES(60, 12); seed++) {
        struct fake_disk fake;
        fake_disk_init(&fake, BLOCKS * MOST_PAGES * PAGE);
        fake.dice = seed;
        run_model((struct weft_store_options){.directory = "D",
                                              .buffered = seed % 2 == 0,
                                              .timeout_ns = INT64_C(3600) * 1000000000,
                                              .calls = &fake.calls},
                  seed, 60);
        cr_assert_eq(fake.open_files, 0);
        fake_disk_finish(&fake);
    }
}

/* One store on a disk of memory, with a few blocks of a page. */

static struct fake_disk fake;
static struct weft_store *store;
static unsigned char *seat;
static struct weft_memory_span span;

static void open_small(struct weft_store_options options)
{
    struct weft_error err = {0};
    struct weft_store_block blocks[3];
    for (int i = 0; i < 3; i++)
        blocks[i] = (struct weft_store_block){.bytes = PAGE, .unit = 4, .index = i};
    options.directory = "D";
    options.threads = options.requests = options.spans = 1;
    options.calls = &fake.calls;
    cr_assert_eq(weft_store_open(&options, &store, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_store_reserve(store, blocks, 3, &err), WEFT_OK, "%s", err.text);
}

static void set_up_small(void)
{
    fake_disk_init(&fake, 3 * PAGE);
    seat = aligned_alloc(PAGE, PAGE);
    span = (struct weft_memory_span){seat, PAGE};
    memset(seat, 1, PAGE);
}

static void tear_down_small(void)
{
    weft_store_destroy(store);
    cr_assert_eq(fake.open_files, 0);
    fake_disk_finish(&fake);
    free(seat);
}

static enum weft_status move(int64_t block, bool reads, unsigned char value, struct weft_error *err)
{
    int64_t ticket = -1;
    *err = (struct weft_error){0};
    if (reads) {
        WEFT_TRY(weft_store_submit_read(store, block, &span, 1, &ticket, err));
        return weft_store_wait(store, WEFT_STORE_READ, ticket, err);
    }
    memset(seat, value, PAGE);
    WEFT_TRY(weft_store_submit_write(store, block, value, &span, 1, &ticket, err));
    return weft_store_wait(store, WEFT_STORE_WRITE, ticket, err);
}

static void write_well(int64_t block, unsigned char value)
{
    struct weft_error err;
    cr_assert_eq(move(block, false, value, &err), WEFT_OK, "%s", err.text);
}

Test(store, requests_that_are_not_of_the_block_are_refused, .init = set_up_small,
     .fini = tear_down_small)
{
    struct weft_error err = {0};
    int64_t ticket = -1;
    open_small((struct weft_store_options){0});
    const struct weft_memory_span wrong[] = {
        {seat, PAGE / 2}, {seat + 512, PAGE}, {seat, 2 * PAGE}};
    for (int i = 0; i < 3; i++) {
        err.status = WEFT_OK;
        cr_assert_eq(weft_store_submit_write(store, 0, 1, &wrong[i], 1, &ticket, &err),
                     WEFT_E_INTERNAL, "%d", i);
    }
    err.status = WEFT_OK;
    cr_assert_eq(weft_store_submit_write(store, 3, 1, &span, 1, &ticket, &err), WEFT_E_INTERNAL);
    cr_assert_eq(move(1, true, 0, &err), WEFT_E_INTERNAL);
    cr_assert(strstr(err.text, "never written"), "%s", err.text);
    cr_assert_eq(ticket, -1);
    write_well(1, 5);
    cr_assert_eq(move(1, true, 0, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(seat[7], 5);
}

/* Expects a read to fail with this message because the disk returned other bytes. */
static void read_fails(int64_t block, const char *says)
{
    struct weft_error err;
    cr_assert_eq(move(block, true, 0, &err), WEFT_E_IO, "%s", err.text);
    cr_assert(strstr(err.text, says) && strstr(err.text, "of unit 4") && strstr(err.text, "in D") &&
                  strstr(err.text, "CRC "),
              "%s", err.text);
    char text[sizeof err.text];
    memcpy(text, err.text, sizeof text);
    cr_assert_eq(move(0, false, 1, &err), WEFT_E_IO, "the store goes on");
    cr_assert_str_eq(err.text, text);
}

Test(store, a_flipped_bit_is_found, .init = set_up_small, .fini = tear_down_small)
{
    open_small((struct weft_store_options){0});
    write_well(2, 7);
    fake.bytes[2 * PAGE + 77] ^= 4;
    read_fails(2, "block 2");
}

Test(store, a_block_of_an_earlier_step_is_found, .init = set_up_small, .fini = tear_down_small)
{
    open_small((struct weft_store_options){0});
    write_well(1, 7);
    fake.damage = FAKE_LOST;
    write_well(1, 8);
    read_fails(1, "what the block held before: the last write was lost");
}

Test(store, what_came_back_is_said, .init = set_up_small, .fini = tear_down_small)
{
    open_small((struct weft_store_options){0});
    for (int i = 0; i < 3; i++)
        write_well(i, (unsigned char)(20 + i));
    fake.damage = FAKE_ASTRAY;
    fake.damage_at = fake.made[FAKE_WRITE];
    fake.damage_beside = PAGE;
    read_fails(0, "it is what block 1 of unit 4");
}

Test(store, unverified_believes_the_disk, .init = set_up_small, .fini = tear_down_small)
{
    struct weft_error err;
    open_small((struct weft_store_options){.unverified = true});
    write_well(2, 7);
    fake.bytes[2 * PAGE] = 9;
    cr_assert_eq(move(2, true, 0, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(seat[0], 9);
}

Test(store, a_hung_request_is_named_and_left_behind, .init = set_up_small)
{
    struct weft_error err;
    open_small((struct weft_store_options){.timeout_ns = 30000000});
    write_well(0, 1);
    fake_disk_hold(&fake, true);
    cr_assert_eq(move(0, true, 0, &err), WEFT_E_HANG, "%s", err.text);
    cr_assert(strstr(err.text, "a read of block 0 of unit 4") && strstr(err.text, "30.0 ms"), "%s",
              err.text);
    cr_assert_eq(move(1, false, 1, &err), WEFT_E_HANG, "the store goes on");
    weft_store_destroy(store);
    cr_assert_eq(fake.open_files, 1);
    fake_disk_hold(&fake, false);
    fake_disk_await_closed(&fake);
}

Test(store, is_destroyed_while_requests_are_under_way, .init = set_up_small,
     .fini = tear_down_small)
{
    struct weft_error err = {0};
    int64_t ticket;
    open_small((struct weft_store_options){0});
    for (int i = 0; i < 2; i++)
        cr_assert_eq(weft_store_submit_write(store, i, 1, &span, 1, &ticket, &err), WEFT_OK);
}

Test(store, a_disk_hides_nothing_in_the_page_cache)
{
    struct weft_error err = {0};
    const struct weft_store_options options = {
        .directory = ".", .threads = 2, .requests = 2, .spans = 1};
    const struct weft_store_block block = {.bytes = 64 * PAGE};
    struct weft_memory_span all = {aligned_alloc(PAGE, 64 * PAGE), 64 * PAGE};
    int64_t ticket, resident = -1, bytes = -1;
    memset(all.at, 3, 64 * PAGE);
    cr_assert_eq(weft_store_open(&options, &store, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_store_reserve(store, &block, 1, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_store_submit_write(store, 0, 1, &all, 1, &ticket, &err), WEFT_OK);
    cr_assert_eq(weft_store_wait(store, WEFT_STORE_WRITE, ticket, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_store_resident(store, &resident, &bytes, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(bytes, 64 * PAGE);
    cr_assert_eq(resident, weft_store_facts(store)->direct ? 0 : bytes);
    weft_store_destroy(store);
    free(all.at);
}

static char warnings[1024];

static void note_warning(void *context, enum weft_log_level level, const char *text)
{
    (void)context;
    if (level == WEFT_LOG_WARNING) strncat(warnings, text, sizeof warnings - strlen(warnings) - 1);
}

Test(store, what_slows_it_is_warned_of, .init = set_up_small, .fini = tear_down_small)
{
    weft_log_set_sink(note_warning, NULL);
    fake.file_system = 0x6969;
    fake.alignment = -2;
    open_small((struct weft_store_options){0});
    cr_assert(strstr(warnings, "D is on nfs, a network file system"), "%s", warnings);
    cr_assert(strstr(warnings, "through the page cache") && strstr(warnings, "O_DIRECT"), "%s",
              warnings);
}

/* The double reports that half of each file is in the page cache. */
Test(store, a_file_in_the_page_cache_is_warned_of, .init = set_up_small, .fini = tear_down_small)
{
    weft_log_set_sink(note_warning, NULL);
    open_small((struct weft_store_options){0});
    cr_assert_str_empty(warnings);
    weft_store_warn(store);
    cr_assert(strstr(warnings, "lie in the page cache") && strstr(warnings, "O_DIRECT"), "%s",
              warnings);
}

Test(store, what_another_store_said_is_not_said_again, .init = set_up_small,
     .fini = tear_down_small)
{
    weft_log_set_sink(note_warning, NULL);
    fake.file_system = 0x6969;
    open_small((struct weft_store_options){.quiet = true});
    cr_assert_str_empty(warnings);
}
