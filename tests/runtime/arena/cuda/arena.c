/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes on a GPU: pages at several addresses, guards, cells, and refusals. */
#include "tests/runtime/device/cuda/site.h"

#include <sys/resource.h>
#include <unistd.h>

#include "base/rng.h"
#include "offload/tier.h"
#include "runtime/arena/arena.h"
#include "runtime/arena/backend.h"
#include "runtime/arena/copy.h"

extern const struct weft_arena_ops weft_arena_cuda;

enum { SHAPES = 12, MOST_PAGES = 6, MOST_MAPPINGS = 8 };
#define PAGE (INT64_C(2) << 20)

static struct weft_device *device;
static struct weft_stream *stream;
static struct weft_arena *arena;
static struct weft_error err;

static void set_up(void)
{
    device = open_gpu();
    stream = open_stream(device, 0);
    cr_assert_eq(weft_arena_cuda.open(-1, &arena, &err), WEFT_OK, "%s", err.text);
}

static void tear_down(void)
{
    weft_stream_destroy(stream);
    weft_arena_close(arena);
    weft_device_close(device);
    expect_no_findings();
}

TestSuite(cuda_arena, .init = set_up, .fini = tear_down);

static unsigned char *at(int64_t offset)
{
    return (unsigned char *)weft_arena_address(arena) + offset;
}

/* A system call that reads the byte says whether it can be read, without a signal: addresses of the
 * double are the process's. */
static bool can_read(const unsigned char *byte)
{
    int ends[2];
    cr_assert_eq(pipe(ends), 0);
    const bool can = write(ends[1], byte, 1) == 1;
    close(ends[0]);
    close(ends[1]);
    return can;
}

static void write_word(int64_t offset, uint64_t word)
{
    weft_arena_write(arena, stream, at(offset), &word, sizeof word);
    await_stream(stream);
}

static uint64_t read_word(int64_t offset)
{
    uint64_t word = 0;
    weft_arena_read(arena, stream, at(offset), sizeof word, &word);
    await_stream(stream);
    return word;
}

Test(cuda_arena, is_whole_large_pages_between_guards)
{
    const struct weft_arena_shape whole = weft_arena_whole(3 << 20);
    cr_assert_eq(weft_arena_map(arena, &whole, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_arena_resident_bytes(arena), 2 * PAGE);
    cr_assert_eq(weft_arena_mappings(arena), 1);
    cr_assert_null(weft_arena_memory(arena));
    cr_assert(can_read(at(0)) && can_read(at(2 * PAGE - 1)));
    cr_assert(!can_read(at(-1)) && !can_read(at(2 * PAGE)));
}

Test(cuda_arena, sees_a_page_at_each_of_its_addresses)
{
    const struct weft_arena_mapping mappings[] = {
        {0, 0, 3}, {4 * PAGE, 1, 3}, {8 * PAGE, 2, 1}, {10 * PAGE, 0, 4}};
    const struct weft_arena_shape shape = {14 * PAGE, PAGE, 5, mappings, 4};
    cr_assert_eq(weft_arena_map(arena, &shape, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_arena_resident_bytes(arena), 5 * PAGE);
    write_word(4 * PAGE + PAGE + 16, 77); /* page 2 */
    cr_assert_eq(read_word(2 * PAGE + 16), 77);
    cr_assert_eq(read_word(8 * PAGE + 16), 77);
    cr_assert_eq(read_word(12 * PAGE + 16), 77);
    cr_assert_eq(read_word(PAGE + 16), 0);
    cr_assert(!can_read(at(3 * PAGE)) && !can_read(at(9 * PAGE)) && !can_read(at(14 * PAGE)));
}

static int64_t draw(uint64_t seed, uint64_t *counter, int64_t first, int64_t last)
{
    return first + (int64_t)weft_rng_below(seed, 1, (*counter)++, (uint64_t)(last - first) + 1);
}

/* Every mapped page gets its number by its first address, and has it at all. */
static void map_at_random(uint64_t seed)
{
    struct weft_arena_mapping mappings[MOST_MAPPINGS];
    struct weft_arena_shape shape = {.page_bytes = PAGE, .mappings = mappings};
    uint64_t counter = 0;
    int64_t next = 0;
    shape.n_pages = draw(seed, &counter, 1, MOST_PAGES);
    shape.n_mappings = draw(seed, &counter, 1, MOST_MAPPINGS);
    for (int64_t i = 0; i < shape.n_mappings; i++) {
        const int64_t first = draw(seed, &counter, 0, shape.n_pages - 1);
        next += draw(seed, &counter, 0, 1) * PAGE;
        mappings[i] = (struct weft_arena_mapping){next, first,
                                                  draw(seed, &counter, 1, shape.n_pages - first)};
        next += mappings[i].n_pages * PAGE;
    }
    shape.span_bytes = next;
    cr_assert_eq(weft_arena_map(arena, &shape, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_arena_resident_bytes(arena), shape.n_pages * PAGE);
    for (int64_t i = 0; i < shape.n_mappings; i++)
        for (int64_t page = 0; page < mappings[i].n_pages; page++)
            write_word(mappings[i].at + page * PAGE, (uint64_t)(mappings[i].first_page + page + 1));
    for (int64_t i = 0; i < shape.n_mappings; i++)
        for (int64_t page = 0; page < mappings[i].n_pages; page++)
            cr_assert_eq(read_word(mappings[i].at + page * PAGE),
                         (uint64_t)(mappings[i].first_page + page + 1));
    weft_arena_unmap(arena, true);
}

Test(cuda_arena, has_the_pages_of_any_shape)
{
    for (uint64_t seed = 0; seed < SHAPES; seed++)
        map_at_random(seed);
}

Test(cuda_arena, refuses_pages_that_the_gpu_does_not_have)
{
    const struct weft_arena_mapping mapping = {0, 0, 1};
    const struct weft_arena_shape shape = {4096, 4096, 1, &mapping, 1};
    cr_assert_eq(weft_arena_map(arena, &shape, &err), WEFT_E_INTERNAL);
    cr_assert_not_null(strstr(err.text, "pages of 2097152"), "%s", err.text);
}

Test(cuda_arena, says_how_much_is_free_where_there_is_no_room)
{
    const struct weft_arena_shape whole = weft_arena_whole(PAGE);
    weft_double_fail("cuMemCreate", 1, CUDA_ERROR_OUT_OF_MEMORY);
    cr_assert_eq(weft_arena_map(arena, &whole, &err), WEFT_E_SYSTEM);
    cr_assert_not_null(strstr(err.text, "no room for an arena of 2.00 MiB"), "%s", err.text);
    cr_assert_not_null(strstr(err.text, "4.00 GiB are free"), "%s", err.text);
}

static const struct weft_arena_mapping two_mappings[] = {{0, 0, 2}, {3 * PAGE, 1, 2}};
static const struct weft_arena_shape two = {5 * PAGE, PAGE, 3, two_mappings, 2};

/* Every call fails once: the arena is as it was before, and nothing is left. */
Test(cuda_arena, that_cannot_be_mapped_leaves_nothing)
{
    static const char *const functions[] = {"cuMemGetAllocationGranularity",
                                            "cuMemAddressReserve",
                                            "cuMemCreate",
                                            "cuMemMap",
                                            "cuMemSetAccess",
                                            "cudaStreamCreateWithPriority",
                                            "cudaMemsetAsync"};
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        int n = 1;
        enum weft_status status = WEFT_E_SYSTEM;
        for (; status != WEFT_OK && n < 50; n++) {
            struct weft_error why = {0};
            weft_double_fail(functions[i], n, cudaErrorLaunchFailure);
            status = weft_arena_map(arena, &two, &why);
            weft_double_fail(NULL, 0, 0);
            if (status != WEFT_OK) cr_assert_null(weft_arena_address(arena));
        }
        cr_assert_gt(n, 2, "%s", functions[i]);
        weft_arena_unmap(arena, true);
    }
}

/* No GPU is lost for one query alone: nothing runs on it any more. */
Test(cuda_arena, is_not_mapped_when_the_gpu_is_lost)
{
    struct weft_error why = {0};
    weft_double_lose("cudaStreamQuery", 1, cudaErrorLaunchFailure);
    cr_assert_neq(weft_arena_map(arena, &two, &why), WEFT_OK);
    cr_assert_null(weft_arena_address(arena));
}

/* The host's tier */

enum { TIER_PAGES = 4, TIER_PAGE = 4096 };

static struct weft_tier *open_tier(void)
{
    const struct weft_tier_options options = {
        .name = "host", .page_bytes = TIER_PAGE, .pages = TIER_PAGES};
    struct weft_tier *tier = NULL;
    cr_assert_eq(weft_tier_create(&options, &tier, &err), WEFT_OK, "%s", err.text);
    return tier;
}

static struct weft_arena_copy copy_of(const struct weft_tier *tier,
                                      enum weft_copy_direction direction)
{
    return (struct weft_arena_copy){
        .direction = direction, .n = 1, .at = {at(0)}, .outside = {weft_tier_memory(tier)}};
}

Test(cuda_arena, says_what_would_help_where_memory_is_not_pinned)
{
    static const cudaError_t codes[] = {cudaErrorInvalidValue, cudaErrorMemoryAllocation,
                                        cudaErrorOperatingSystem, cudaErrorNotSupported};
    struct weft_tier *tier = open_tier();
    struct rlimit locked;
    cr_assert_eq(getrlimit(RLIMIT_MEMLOCK, &locked), 0);
    locked.rlim_cur = 0;
    cr_assert_eq(setrlimit(RLIMIT_MEMLOCK, &locked), 0);
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        struct weft_error why = {0};
        weft_double_fail("cudaHostRegister", 1, (int)codes[i]);
        cr_assert_eq(weft_arena_pin(arena, weft_tier_memory(tier), &why), WEFT_E_SYSTEM);
        cr_assert_not_null(strstr(why.text, "cannot pin 16.0 KiB"), "%s", why.text);
        cr_assert_not_null(strstr(why.text, "ulimit -l unlimited"), "%s", why.text);
        cr_assert_not_null(strstr(why.text, "keep less on the host"), "%s", why.text);
    }
    struct weft_error lost = {0};
    weft_double_fail("cudaHostRegister", 1, cudaErrorLaunchFailure);
    cr_assert_eq(weft_arena_pin(arena, weft_tier_memory(tier), &lost), WEFT_E_SYSTEM);
    cr_assert_null(strstr(lost.text, "ulimit"), "%s", lost.text);
    cr_assert_eq(weft_arena_pin(arena, weft_tier_memory(tier), &err), WEFT_OK, "%s", err.text);
    weft_arena_unpin(arena, weft_tier_memory(tier));
    weft_tier_destroy(tier);
}

/* The stream fails with the reason and drops all later work. */
Test(cuda_arena, that_cannot_copy_fails_the_stream)
{
    const struct weft_arena_shape whole = weft_arena_whole(PAGE);
    struct weft_tier *tier = open_tier();
    cr_assert_eq(weft_arena_map(arena, &whole, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_arena_pin(arena, weft_tier_memory(tier), &err), WEFT_OK, "%s", err.text);
    for (int direction = 0; direction < WEFT_COPY_DIRECTIONS; direction++) {
        struct weft_error why = {0};
        struct weft_stream *down = open_stream(device, 0);
        const struct weft_arena_copy copy = copy_of(tier, (enum weft_copy_direction)direction);
        weft_double_fail("cudaMemcpyAsync", 2, cudaErrorUnknown);
        for (int i = 0; i < 4; i++)
            weft_arena_copy(arena, down, &copy);
        cr_assert_eq(weft_stream_synchronise(down, &why), WEFT_E_SYSTEM);
        cr_assert_not_null(strstr(why.text, "the host's tier"), "%s", why.text);
        weft_stream_destroy(down);
    }
    weft_double_fail(NULL, 0, 0);
    weft_arena_unpin(arena, weft_tier_memory(tier));
    weft_tier_destroy(tier);
}

/* The double finds it; a GPU would let the host wait for the copy. */
Test(cuda_arena, copies_of_a_tier_that_is_not_pinned_are_found)
{
    const struct weft_arena_shape whole = weft_arena_whole(PAGE);
    struct weft_tier *tier = open_tier();
    struct weft_error why = {0};
    char text[512];
    cr_assert_eq(weft_arena_map(arena, &whole, &err), WEFT_OK, "%s", err.text);
    const struct weft_arena_copy copy = copy_of(tier, WEFT_COPY_UP);
    weft_arena_copy(arena, stream, &copy);
    cr_assert_eq(weft_stream_synchronise(stream, &why), WEFT_E_SYSTEM);
    cr_assert_eq(weft_double_take(DOUBLE_UNPINNED, text, sizeof text), 1);
    weft_tier_destroy(tier);
}
