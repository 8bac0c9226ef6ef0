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
    struct weft_stretch all;
    struct weft_memory_span span;
    int32_t n = 0;
    int64_t swapped = -1;
    cr_assert_eq(weft_tier_take(tier, pages, &all, 1, &n, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_tier_spans(tier, &all, n, 0, pages * page_bytes, &span, 1, &n, &err), WEFT_OK,
                 "%s", err.text);
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

/* Random takes and gives against a list of pages. */

enum { MODEL_PAGES = 200, MODEL_BUFFERS = 40, MODEL_STRETCHES = 30 };

struct page_model {
    struct weft_tier *tier;
    int owner[MODEL_PAGES]; /* -1: free */
    struct weft_stretch stretches[MODEL_BUFFERS][MODEL_STRETCHES];
    int32_t n[MODEL_BUFFERS];
    uint64_t seed, draws;
};

static int64_t page_draw(struct page_model *m, int64_t below)
{
    return (int64_t)weft_rng_below(m->seed, 3, m->draws++, (uint64_t)below);
}

static int64_t model_free(const struct page_model *m)
{
    int64_t count = 0;
    for (int i = 0; i < MODEL_PAGES; i++)
        count += m->owner[i] < 0;
    return count;
}

/* Models a take: the lowest free pages. Returns the number of stretches. */
static int32_t model_take(struct page_model *m, int buffer, int64_t pages)
{
    int32_t stretches = 0;
    for (int i = 0; i < MODEL_PAGES && pages > 0; i++) {
        if (m->owner[i] >= 0) continue;
        stretches += i == 0 || m->owner[i - 1] != buffer;
        m->owner[i] = buffer;
        pages--;
    }
    return stretches;
}

static void check_owners(const struct page_model *m, int buffer)
{
    int64_t pages = 0;
    for (int32_t i = 0; i < m->n[buffer]; i++) {
        const struct weft_stretch s = m->stretches[buffer][i];
        cr_assert(s.count > 0);
        pages += s.count;
        for (int64_t page = s.first; page < s.first + s.count; page++)
            cr_assert_eq(m->owner[page], buffer, "seed %llu", (unsigned long long)m->seed);
    }
    for (int i = 0; i < MODEL_PAGES; i++)
        pages -= m->owner[i] == buffer;
    cr_assert_eq(pages, 0);
}

static void take_some(struct page_model *m, int buffer)
{
    struct weft_error err = {0};
    const int64_t pages = 1 + page_draw(m, 25), before = model_free(m);
    const int32_t most = 1 + (int32_t)page_draw(m, MODEL_STRETCHES);
    int owner[MODEL_PAGES];
    memcpy(owner, m->owner, sizeof owner);
    const int32_t needed = pages <= before ? model_take(m, buffer, pages) : 0;
    const bool fits = pages <= before && needed <= most;
    if (!fits) memcpy(m->owner, owner, sizeof owner);
    cr_assert_eq(weft_tier_take(m->tier, pages, m->stretches[buffer], most, &m->n[buffer], &err),
                 fits ? WEFT_OK : WEFT_E_INTERNAL, "%s", err.text);
    if (!fits) return;
    cr_assert_eq(m->n[buffer], needed);
    check_owners(m, buffer);
}

static void give_all(struct page_model *m, int buffer)
{
    struct weft_error err = {0};
    for (int i = 0; i < MODEL_PAGES; i++)
        if (m->owner[i] == buffer) m->owner[i] = -1;
    cr_assert_eq(weft_tier_give(m->tier, m->stretches[buffer], m->n[buffer], &err), WEFT_OK, "%s",
                 err.text);
    /* The second give of the same pages is refused and changes nothing. */
    cr_assert_eq(weft_tier_give(m->tier, m->stretches[buffer], m->n[buffer], &err),
                 WEFT_E_INTERNAL);
    m->n[buffer] = 0;
}

Test(tier, gives_the_lowest_pages_and_none_twice)
{
    for (uint64_t seed = 0; seed < TEST_CASES(60, 10); seed++) {
        struct page_model m = {.seed = seed, .tier = tier_of(MODEL_PAGES, TIER_PAGE)};
        for (int i = 0; i < MODEL_PAGES; i++)
            m.owner[i] = -1;
        for (int i = 0; i < 400; i++) {
            const int buffer = (int)page_draw(&m, MODEL_BUFFERS);
            if (m.n[buffer] > 0)
                give_all(&m, buffer);
            else
                take_some(&m, buffer);
            cr_assert_eq(weft_tier_free_pages(m.tier), model_free(&m));
        }
        weft_tier_destroy(m.tier);
    }
}

Test(tier, a_list_with_one_page_too_many_gives_nothing)
{
    struct weft_error err = {0};
    struct weft_tier *tier = tier_of(10, TIER_PAGE);
    struct weft_stretch all;
    int32_t n;
    cr_assert_eq(weft_tier_take(tier, 6, &all, 1, &n, &err), WEFT_OK);
    const struct weft_stretch wrong[][2] = {
        {{0, 2}, {5, 2}}, {{0, 2}, {1, 1}}, {{0, 2}, {-1, 1}}, {{0, 2}, {3, 0}}, {{0, 2}, {9, 2}}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        err.status = WEFT_OK;
        cr_assert_eq(weft_tier_give(tier, wrong[i], 2, &err), WEFT_E_INTERNAL, "%zu", i);
        cr_assert_eq(weft_tier_free_pages(tier), 4);
    }
    weft_tier_destroy(tier);
}

/* Byte k of a buffer is byte k of its pages in order. */
Test(tier, spans_are_the_bytes_of_the_stretches)
{
    enum { SPANS = 4 };
    struct weft_error err = {0};
    struct weft_tier *tier = tier_of(16, TIER_PAGE);
    const struct weft_stretch whole = {0, 16}, pages[] = {{9, 2}, {0, 1}, {4, 3}};
    struct weft_memory_span all, spans[SPANS];
    int32_t n = -1;
    cr_assert_eq(weft_tier_spans(tier, &whole, 1, 0, 16 * TIER_PAGE, &all, 1, &n, &err), WEFT_OK);
    static const int order[] = {9, 10, 0, 4, 5, 6};
    for (uint64_t draw = 0; draw < 500; draw++) {
        const int64_t from = (int64_t)weft_rng_below(1, 1, draw, 6 * TIER_PAGE);
        const int64_t bytes = (int64_t)weft_rng_below(1, 2, draw, (uint64_t)(6 * TIER_PAGE - from));
        cr_assert_eq(weft_tier_spans(tier, pages, 3, from, bytes, spans, SPANS, &n, &err), WEFT_OK,
                     "%s", err.text);
        int64_t at = from;
        for (int32_t i = 0; i < n; i++) {
            for (int64_t k = 0; k < spans[i].bytes; k++, at++)
                cr_assert_eq(spans[i].at + k,
                             all.at + order[at / TIER_PAGE] * TIER_PAGE + at % TIER_PAGE);
        }
        cr_assert_eq(at, from + bytes);
    }
    cr_assert_eq(weft_tier_spans(tier, pages, 3, 1, 6 * TIER_PAGE, spans, SPANS, &n, &err),
                 WEFT_E_INTERNAL);
    err.status = WEFT_OK;
    cr_assert_eq(weft_tier_spans(tier, pages, 3, 0, 6 * TIER_PAGE, spans, 2, &n, &err),
                 WEFT_E_INTERNAL);
    cr_assert(strstr(err.text, "more than 2 spans"), "%s", err.text);
    weft_tier_destroy(tier);
}
