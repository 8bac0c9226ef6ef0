/* SPDX-License-Identifier: Apache-2.0 */
/* A process's memory outside the arena is counted: its own pages, and those of files. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/measure/measure.h"
#include "tests/runtime/exec/job.h"

enum { BYTES = 16 << 20, SLACK = 1 << 20 };

static void touch(const char *pages)
{
    static volatile char sum;
    for (size_t at = 0; at < BYTES; at += 512)
        sum = (char)(sum + pages[at]);
}

/* Like the pages of a library. */
static void pages_of_a_file_count(void)
{
    FILE *file = tmpfile();
    char *bytes = calloc(1, BYTES);
    CHECK(file && bytes && fwrite(bytes, 1, BYTES, file) == BYTES && fflush(file) == 0, "no file");
    free(bytes);
    weft_measure_trim();
    int64_t before = weft_measure_resident_bytes();
    char *mapped = mmap(NULL, BYTES, PROT_READ, MAP_PRIVATE, fileno(file), 0);
    CHECK(mapped != MAP_FAILED, "not mapped");
    touch(mapped);
    int64_t more = weft_measure_resident_bytes() - before;
    CHECK(more >= BYTES - SLACK && more <= BYTES + SLACK, "%lld bytes more", (long long)more);
    munmap(mapped, BYTES);
    fclose(file);
}

static void pages_of_its_own_count(void)
{
    int64_t before = weft_measure_resident_bytes();
    char *own = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(own != MAP_FAILED, "not mapped");
    memset(own, 1, BYTES);
    int64_t more = weft_measure_resident_bytes() - before;
    CHECK(more >= BYTES - SLACK && more <= BYTES + SLACK, "%lld bytes more", (long long)more);
    munmap(own, BYTES);
}

/* A device, an arena and a host tier with known bytes: the linker gives calls of the three to this
 * test. */
static struct {
    bool replaced, has_memory, exact;
    int64_t device_bytes, arena_bytes, host_bytes;
} known;

bool __real_weft_device_memory(const struct weft_device *device, int64_t *bytes, bool *exact);
bool __wrap_weft_device_memory(const struct weft_device *device, int64_t *bytes, bool *exact);
bool __wrap_weft_device_memory(const struct weft_device *device, int64_t *bytes, bool *exact)
{
    if (!known.replaced) return __real_weft_device_memory(device, bytes, exact);
    if (!known.has_memory) return false;
    *bytes = known.device_bytes;
    *exact = known.exact;
    return true;
}

int64_t __real_weft_arena_resident_bytes(const struct weft_arena *arena);
int64_t __wrap_weft_arena_resident_bytes(const struct weft_arena *arena);
int64_t __wrap_weft_arena_resident_bytes(const struct weft_arena *arena)
{
    return known.replaced ? known.arena_bytes : __real_weft_arena_resident_bytes(arena);
}

int64_t __real_weft_exec_tier_bytes(const struct weft_exec *exec, enum weft_location location);
int64_t __wrap_weft_exec_tier_bytes(const struct weft_exec *exec, enum weft_location location);
int64_t __wrap_weft_exec_tier_bytes(const struct weft_exec *exec, enum weft_location location)
{
    if (!known.replaced) return __real_weft_exec_tier_bytes(exec, location);
    return location == WEFT_LOCATION_HOST ? known.host_bytes : 0;
}

static int64_t outside_bytes(bool *exact)
{
    return weft_measure_outside_bytes(NULL, NULL, NULL, exact);
}

/* The device's own figure without the arena, or the process's without the host tier. */
static void bytes_outside_are_without_arena_and_tier(void)
{
    enum { MIB = 1 << 20 };
    bool exact = false;
    known.replaced = known.has_memory = known.exact = true;
    known.device_bytes = 700;
    known.arena_bytes = 300;
    known.host_bytes = 50;
    CHECK(outside_bytes(&exact) == 400 && exact, "%lld", (long long)outside_bytes(&exact));
    known.exact = false;
    CHECK(outside_bytes(&exact) == 400 && !exact, "bytes of others may be there");
    known.arena_bytes = 701;
    CHECK(outside_bytes(&exact) == 0, "never below 0");
    known.has_memory = false;
    known.host_bytes = 0;
    const int64_t own_bytes = outside_bytes(&exact);
    CHECK(own_bytes > MIB && exact, "%lld bytes of this process", (long long)own_bytes);
    known.host_bytes = MIB;
    const int64_t less_bytes = own_bytes - outside_bytes(&exact);
    CHECK(less_bytes > MIB / 2 && less_bytes < MIB + MIB / 2, "%lld bytes less",
          (long long)less_bytes);
    known.host_bytes = INT64_C(1) << 50;
    CHECK(outside_bytes(&exact) == 0, "never below 0");
    known.replaced = false;
}

RANKS_TEST(memory)
{
    pages_of_a_file_count();
    pages_of_its_own_count();
    bytes_outside_are_without_arena_and_tier();
    return 0;
}
