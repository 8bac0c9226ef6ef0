/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* madvise, MAP_NORESERVE */
#include "offload/tier.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/log.h"
#include "base/machine/mappings.h"
#include "base/machine/memory.h"
#include "base/units.h"
#include "offload/node.h"

enum { LARGE_PAGE_BYTES = 2 << 20, LINE_BYTES = 512 };

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

struct weft_tier {
    const char *name;
    int64_t page_bytes, pages, taken_pages;
    int64_t bytes;
    void *reservation; /* with guards and alignment */
    size_t reservation_bytes;
    unsigned char *memory;
};

static int64_t system_page_bytes(void)
{
    return (int64_t)sysconf(_SC_PAGESIZE);
}

static enum weft_status fail_reserve(const struct weft_tier *tier, int reason,
                                     struct weft_error *err)
{
    char want[WEFT_UNITS_TEXT_BYTES], limit[WEFT_REFUSAL_BYTES];
    weft_units_show_bytes(tier->bytes, want);
    if (reason == ENOMEM && weft_map_refuses(tier->bytes, 0, limit, sizeof limit))
        return weft_fail(err, WEFT_E_SYSTEM,
                         "cannot reserve %s for the tier \"%s\": %s or lower the tier's limit",
                         want, tier->name, limit);
    return weft_fail(err, WEFT_E_SYSTEM, "cannot reserve %s for the tier \"%s\": %s", want,
                     tier->name, strerror(reason));
}

/* Checks before a page is touched: one page too many ends the process by a signal. */
static enum weft_status check_memory(const struct weft_tier *tier, struct weft_error *err)
{
    char limit[LINE_BYTES], want[WEFT_UNITS_TEXT_BYTES], left[WEFT_UNITS_TEXT_BYTES];
    const int64_t available = weft_memory_available(limit, sizeof limit);
    if (tier->bytes <= available) return WEFT_OK;
    return weft_fail(err, WEFT_E_SYSTEM,
                     "the tier \"%s\" takes %s, and %s can be had (%s): lower its limit, start "
                     "fewer ranks, or give this job more memory",
                     tier->name, weft_units_show_bytes(tier->bytes, want),
                     weft_units_show_bytes(available, left), limit);
}

/* Reserves addresses with a guard page on both sides. */
static enum weft_status reserve_addresses(struct weft_tier *tier, struct weft_error *err)
{
    const int64_t page = system_page_bytes();
    int64_t alignment = tier->bytes >= LARGE_PAGE_BYTES ? LARGE_PAGE_BYTES : page;
    if (alignment < tier->page_bytes) alignment = tier->page_bytes;
    tier->reservation_bytes = (size_t)(tier->bytes + 2 * page + alignment);
    void *reservation = mmap(NULL, tier->reservation_bytes, PROT_NONE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (reservation == MAP_FAILED) return fail_reserve(tier, errno, err);
    tier->reservation = reservation;
    const uintptr_t least = (uintptr_t)reservation + (uintptr_t)page;
    const uintptr_t unit = (uintptr_t)alignment;
    tier->memory =
        (unsigned char *)reservation + ((least + unit - 1) / unit * unit - (uintptr_t)reservation);
    return WEFT_OK;
}

/* Makes every page resident. */
static enum weft_status touch_pages(const struct weft_tier *tier, struct weft_error *err)
{
    for (;;) {
        if (madvise(tier->memory, (size_t)tier->bytes, MADV_POPULATE_WRITE) == 0) return WEFT_OK;
        if (errno == EINVAL) break; /* the kernel does not know MADV_POPULATE_WRITE */
        if (errno != EINTR && errno != EAGAIN) return fail_reserve(tier, errno, err);
    }
    volatile unsigned char *memory = tier->memory;
    for (int64_t at = 0; at < tier->bytes; at += system_page_bytes())
        memory[at] = 0;
    return WEFT_OK;
}

static enum weft_status map_tier(struct weft_tier *tier, const struct weft_tier_options *o,
                                 struct weft_error *err)
{
    WEFT_TRY(reserve_addresses(tier, err));
    WEFT_TRY(check_memory(tier, err));
    void *memory = mmap(tier->memory, (size_t)tier->bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (memory == MAP_FAILED) return fail_reserve(tier, errno, err);
    if (o->cores != NULL)
        weft_node_prefer(weft_node_of_cores("/sys/devices/system/node", o->cores, o->n_cores),
                         memory, (size_t)tier->bytes);
    /* A kernel without large pages uses small ones. */
    (void)madvise(memory, (size_t)tier->bytes, MADV_HUGEPAGE);
    return touch_pages(tier, err);
}

enum weft_status weft_tier_create(const struct weft_tier_options *options, struct weft_tier **out,
                                  struct weft_error *err)
{
    const struct weft_tier_options *o = options;
    int64_t bytes, most;
    if (o->page_bytes < system_page_bytes() || (o->page_bytes & (o->page_bytes - 1)) != 0 ||
        o->pages <= 0 || !weft_checked_mul(o->page_bytes, o->pages, &bytes) ||
        !weft_checked_add(bytes, o->page_bytes + 2 * LARGE_PAGE_BYTES, &most))
        return weft_fail(err, WEFT_E_INTERNAL, "a tier of %lld pages of %lld bytes",
                         (long long)o->pages, (long long)o->page_bytes);
    struct weft_tier *tier = calloc(1, sizeof *tier);
    if (tier == NULL) return weft_fail_memory(err, "a tier");
    *tier = (struct weft_tier){
        .name = o->name, .page_bytes = o->page_bytes, .pages = o->pages, .bytes = bytes};
    enum weft_status status = map_tier(tier, o, err);
    if (status != WEFT_OK) {
        weft_tier_destroy(tier);
        return status;
    }
    *out = tier;
    return WEFT_OK;
}

void weft_tier_destroy(struct weft_tier *tier)
{
    if (tier == NULL) return;
    if (tier->reservation != NULL) munmap(tier->reservation, tier->reservation_bytes);
    free(tier);
}

struct weft_memory_span weft_tier_memory(const struct weft_tier *tier)
{
    return (struct weft_memory_span){tier->memory, tier->bytes};
}

enum weft_status weft_tier_take(struct weft_tier *tier, int64_t bytes, struct weft_memory_span *out,
                                struct weft_error *err)
{
    const int64_t left = tier->pages - tier->taken_pages;
    const int64_t pages = bytes > 0 ? (bytes - 1) / tier->page_bytes + 1 : 0;
    if (pages == 0 || pages > left)
        return weft_fail(err, WEFT_E_INTERNAL,
                         "the tier \"%s\" has %lld pages left, and %lld bytes are asked of it",
                         tier->name, (long long)left, (long long)bytes);
    *out = (struct weft_memory_span){tier->memory + tier->taken_pages * tier->page_bytes, bytes};
    tier->taken_pages += pages;
    return WEFT_OK;
}

int64_t weft_tier_resident_bytes(const struct weft_tier *tier)
{
    enum { AT_ONCE = 4096 };
    unsigned char there[AT_ONCE];
    const int64_t page = system_page_bytes(), most = AT_ONCE * page;
    int64_t pages = 0;
    for (int64_t at = 0; at < tier->bytes; at += most) {
        const int64_t part = tier->bytes - at < most ? tier->bytes - at : most;
        /* A page without an answer counts as resident: the tier touched it at creation. */
        if (mincore(tier->memory + at, (size_t)part, there) != 0) memset(there, 1, sizeof there);
        for (int64_t i = 0; i < part / page; i++)
            pages += there[i] & 1;
    }
    return pages * page;
}

bool weft_tier_swapped_bytes(const struct weft_tier *tier, int64_t *swapped_bytes)
{
    FILE *file = fopen("/proc/self/smaps", "re");
    if (file == NULL) return false;
    char line[LINE_BYTES];
    const uintptr_t begin = (uintptr_t)tier->memory, end = begin + (uintptr_t)tier->bytes;
    uintptr_t first = 0, end_of_it = 0;
    int64_t kib, swapped = 0;
    bool found = false;
    while (fgets(line, sizeof line, file) != NULL) {
        uintptr_t a, b;
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " ", &a, &b) == 2) {
            first = a;
            end_of_it = b;
        }
        if (first < begin || end_of_it > end) continue;
        if (sscanf(line, "Swap: %" SCNd64, &kib) != 1) continue;
        swapped += kib * 1024;
        found = true;
    }
    fclose(file);
    if (!found) return false;
    *swapped_bytes = swapped;
    return true;
}

void weft_tier_warn(const struct weft_tier *tier)
{
    char swapped[WEFT_UNITS_TEXT_BYTES], all[WEFT_UNITS_TEXT_BYTES];
    int64_t swapped_bytes = 0;
    if (!weft_tier_swapped_bytes(tier, &swapped_bytes) || swapped_bytes == 0) return;
    weft_log(WEFT_LOG_WARNING,
             "%s of the %s of the tier \"%s\" are swapped out: the machine has not got the memory; "
             "give the tier less, or stop what else runs",
             weft_units_show_bytes(swapped_bytes, swapped), weft_units_show_bytes(tier->bytes, all),
             tier->name);
}
