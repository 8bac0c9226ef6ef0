/* SPDX-License-Identifier: Apache-2.0 */
/* A tier: its memory, the reasons to refuse one, and the order in which it gives pages. */
#ifndef _DEFAULT_SOURCE
#define _DEFAULT_SOURCE /* madvise */
#endif
#include "offload/tier.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/machine/memory.h"
#include "base/rng.h"
#include "tests/effort.h"

enum { TIER_PAGE = 4096 };

static int64_t said_available_bytes; /* 0: the machine's own */

int64_t __real_weft_memory_available(char *limit, size_t limit_bytes);
int64_t __wrap_weft_memory_available(char *limit, size_t limit_bytes);
int64_t __wrap_weft_memory_available(char *limit, size_t limit_bytes)
{
    const int64_t bytes = __real_weft_memory_available(limit, limit_bytes);
    if (said_available_bytes == 0) return bytes;
    snprintf(limit, limit_bytes, "memory.max of /a/group");
    return said_available_bytes;
}

static struct weft_tier *tier_of(int64_t pages, int64_t page_bytes)
{
    struct weft_error err = {0};
    struct weft_tier *tier = NULL;
    const int32_t cores[] = {0};
    const struct weft_tier_options options = {
        .name = "host", .page_bytes = page_bytes, .pages = pages, .cores = cores, .n_cores = 1};
    cr_assert_eq(weft_tier_create(&options, &tier, &err), WEFT_OK, "%s", err.text);
    return tier;
}

static void tier_is_refused(int64_t pages, int64_t page_bytes, enum weft_status status,
                            const char *says)
{
    struct weft_error err = {0};
    struct weft_tier *tier = NULL;
    const struct weft_tier_options options = {
        .name = "host", .page_bytes = page_bytes, .pages = pages};
    cr_assert_eq(weft_tier_create(&options, &tier, &err), status, "%s", err.text);
    cr_assert_null(tier);
    cr_assert(strstr(err.text, says), "%s", err.text);
}

/* Tests with a system call whether the byte can be read, without a signal. */
static bool byte_can_be_read(const unsigned char *byte)
{
    int ends[2];
    cr_assert_eq(pipe(ends), 0);
    const bool can = write(ends[1], byte, 1) == 1;
    close(ends[0]);
    close(ends[1]);
    return can;
}

static void lies_well(int64_t pages, int64_t page_bytes)
{
    struct weft_error err = {0};
    struct weft_tier *tier = tier_of(pages, page_bytes);
    struct weft_memory_span span;
    int64_t swapped = -1;
    cr_assert_eq(weft_tier_take(tier, pages * page_bytes, &span, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq((uintptr_t)span.at % (uintptr_t)page_bytes, 0);
    cr_assert(byte_can_be_read(span.at) && byte_can_be_read(span.at + span.bytes - 1));
    cr_assert(!byte_can_be_read(span.at - 1) && !byte_can_be_read(span.at + span.bytes));
    for (int64_t i = 0; i < span.bytes; i += 512)
        cr_assert_eq(span.at[i], 0);
    cr_assert(weft_tier_swapped_bytes(tier, &swapped));
    cr_assert_eq(weft_tier_resident_bytes(tier) + swapped, span.bytes);
    weft_tier_destroy(tier);
}

Test(tier, lies_between_pages_that_nobody_may_touch_and_is_there)
{
    lies_well(3, TIER_PAGE);
    lies_well(1030, TIER_PAGE);
    lies_well(3, 2 << 20);
}

/* A page that the system took back is not counted. */
Test(tier, pages_that_are_in_memory_are_counted)
{
    enum { PAGES = 5000, GONE = 3 }; /* more than one query covers */
    struct weft_tier *tier = tier_of(PAGES, TIER_PAGE);
    const struct weft_memory_span memory = weft_tier_memory(tier);
    cr_assert_eq(weft_tier_resident_bytes(tier), PAGES * TIER_PAGE);
    unsigned char *last = memory.at + memory.bytes - GONE * TIER_PAGE;
    cr_assert_eq(madvise(last, GONE * TIER_PAGE, MADV_DONTNEED), 0);
    cr_assert_eq(weft_tier_resident_bytes(tier), (PAGES - GONE) * TIER_PAGE);
    weft_tier_destroy(tier);
}

Test(tier, memory_that_is_not_there_is_refused_with_the_figure)
{
    said_available_bytes = 7 * TIER_PAGE;
    tier_is_refused(8, TIER_PAGE, WEFT_E_SYSTEM,
                    "takes 32.0 KiB, and 28.0 KiB can be had "
                    "(memory.max of /a/group)");
    weft_tier_destroy(tier_of(7, TIER_PAGE));
    said_available_bytes = 0;
    tier_is_refused(INT64_C(1) << 30, TIER_PAGE, WEFT_E_SYSTEM, "4.00 TiB");
}

Test(tier, the_limit_of_address_space_is_named)
{
    if (TEST_SANITIZED) cr_skip_test("a sanitizer takes more addresses than a limit leaves");
    const struct rlimit limit = {INT64_C(1) << 30, INT64_C(1) << 30};
    setrlimit(RLIMIT_AS, &limit);
    tier_is_refused(1 << 18, TIER_PAGE, WEFT_E_SYSTEM, "RLIMIT_AS");
}

Test(tier, what_is_no_tier_is_refused)
{
    tier_is_refused(0, TIER_PAGE, WEFT_E_INTERNAL, "a tier of 0 pages");
    tier_is_refused(4, 1000, WEFT_E_INTERNAL, "of 1000 bytes");
    tier_is_refused(4, 3 * TIER_PAGE, WEFT_E_INTERNAL, "of 12288 bytes");
    tier_is_refused(INT64_MAX / 2, TIER_PAGE, WEFT_E_INTERNAL, "a tier of");
    weft_tier_destroy(NULL);
}

/* Random sizes, until one does not fit. */
Test(tier, gives_pages_in_order_and_none_twice)
{
    enum { PAGES = 200 };
    for (uint64_t seed = 0; seed < TEST_CASES(60, 10); seed++) {
        struct weft_tier *tier = tier_of(PAGES, TIER_PAGE);
        const unsigned char *next = weft_tier_memory(tier).at;
        struct weft_memory_span span;
        struct weft_error err = {0};
        int64_t left = PAGES;
        for (uint64_t draw = 0; left > 0; draw++) {
            const int64_t bytes = 1 + (int64_t)weft_rng_below(seed, 3, draw, 25 * TIER_PAGE);
            const int64_t pages = (bytes + TIER_PAGE - 1) / TIER_PAGE;
            if (pages > left) break;
            cr_assert_eq(weft_tier_take(tier, bytes, &span, &err), WEFT_OK, "%s", err.text);
            cr_assert(span.at == next && span.bytes == bytes, "seed %llu",
                      (unsigned long long)seed);
            next += pages * TIER_PAGE;
            left -= pages;
        }
        const struct weft_memory_span last = span;
        cr_assert_eq(weft_tier_take(tier, left * TIER_PAGE + 1, &span, &err), WEFT_E_INTERNAL);
        cr_assert(span.at == last.at && span.bytes == last.bytes);
        if (left > 0) cr_assert_eq(weft_tier_take(tier, left * TIER_PAGE, &span, NULL), WEFT_OK);
        cr_assert_eq(weft_tier_take(tier, 1, &span, NULL), WEFT_E_INTERNAL);
        weft_tier_destroy(tier);
    }
}

Test(tier, no_bytes_are_refused)
{
    struct weft_tier *tier = tier_of(2, TIER_PAGE);
    struct weft_memory_span span;
    const int64_t wrong[] = {0, -1, INT64_MIN, INT64_MAX};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct weft_error err = {0};
        cr_assert_eq(weft_tier_take(tier, wrong[i], &span, &err), WEFT_E_INTERNAL, "%zu", i);
        cr_assert(strstr(err.text, "has 2 pages left"), "%s", err.text);
    }
    weft_tier_destroy(tier);
}
