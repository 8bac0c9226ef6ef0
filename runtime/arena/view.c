/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* MAP_POPULATE, MAP_NORESERVE */
#include "runtime/arena/view.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/machine/mappings.h"
#include "base/units.h"

enum { CHUNK_BYTES = 4096 };

int64_t weft_arena_system_page_bytes(void)
{
    return (int64_t)sysconf(_SC_PAGESIZE);
}

/* Memory may be short here, so files are read without stdio, which would allocate. */

static int64_t count_lines(const char *path)
{
    char chunk[CHUNK_BYTES];
    int64_t lines = 0;
    ssize_t length;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    while ((length = read(fd, chunk, sizeof chunk)) > 0) {
        for (ssize_t i = 0; i < length; i++)
            lines += chunk[i] == '\n';
    }
    close(fd);
    return lines;
}

/* Reports a failed mmap: errno's reason, and the limit that caused it. */
static enum weft_status fail_mmap(const struct weft_arena_shape *shape, struct weft_error *err)
{
    enum { SPARE = 2 }; /* mappings that one call may need */
    const int reason = errno;
    const struct weft_map_limits limits = weft_map_limits_read();
    const int64_t mappings = count_lines("/proc/self/maps");
    char want[WEFT_UNITS_TEXT_BYTES], most[WEFT_UNITS_TEXT_BYTES], page[WEFT_UNITS_TEXT_BYTES];
    weft_units_show_bytes(shape->n_pages * shape->page_bytes, want);
    if (reason == ENOMEM && mappings + SPARE > limits.mappings) {
        return weft_fail(err, WEFT_E_SYSTEM,
                         "cannot map an arena of %s in %" PRId64 " stretches of pages of %s: the "
                         "system lets a process have %" PRId64 " mappings (vm.max_map_count), and "
                         "this one has them. Raise it (sysctl vm.max_map_count), or plan with "
                         "larger pages",
                         want, shape->n_mappings, weft_units_show_bytes(shape->page_bytes, page),
                         limits.mappings);
    }
    if (reason == ENOMEM && limits.address_bytes != INT64_MAX) {
        return weft_fail(err, WEFT_E_SYSTEM,
                         "cannot map an arena of %s: the address space is limited to %s "
                         "(RLIMIT_AS), and every rank maps the arenas of all: raise it (ulimit -v)",
                         want, weft_units_show_bytes(limits.address_bytes, most));
    }
    return weft_fail(err, WEFT_E_SYSTEM, "cannot map an arena of %s: %s", want, strerror(reason));
}

/* Reserves addresses for the shape and inaccessible guard pages on both sides. The start is aligned
 * so that a place in the shape and its address are equal modulo a large page. */
static enum weft_status reserve_span(struct weft_arena_view *view,
                                     const struct weft_arena_shape *shape, int64_t below_bytes,
                                     unsigned char **at, struct weft_error *err)
{
    const int64_t page_bytes = weft_arena_system_page_bytes();
    const bool large = shape->n_pages * shape->page_bytes >= WEFT_ARENA_LARGE_PAGE_BYTES;
    const int64_t alignment = large ? WEFT_ARENA_LARGE_PAGE_BYTES : page_bytes;
    view->reservation_bytes = (size_t)(below_bytes + shape->span_bytes + page_bytes + alignment);
    void *reservation = mmap(NULL, view->reservation_bytes, PROT_NONE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (reservation == MAP_FAILED) return fail_mmap(shape, err);
    view->reservation = reservation;
    const uintptr_t first = (uintptr_t)reservation + (uintptr_t)(below_bytes + page_bytes);
    const uintptr_t aligned = (first + (uintptr_t)alignment - 1) / (uintptr_t)alignment;
    *at = (unsigned char *)reservation + (aligned * (uintptr_t)alignment - (uintptr_t)reservation);
    return WEFT_OK;
}

/* The state while mapping a view. */
struct site {
    const struct weft_arena_view_options *options;
    struct weft_arena_view *view;
    unsigned char *at; /* of byte 0 of the shape */
    int64_t end;       /* of the last mapping */
    int64_t end_page;  /* first page after the last mapping */
    int32_t next_read; /* earlier reads end before the next mapping */
};

/* Counts the system's mappings. A guard between stretches is one. A stretch that continues the last
 * one's pages merges with it. */
static enum weft_status map_stretch(struct site *site, struct weft_arena_mapping stretch,
                                    struct weft_error *err)
{
    const struct weft_arena_view_options *o = site->options;
    const int64_t page_bytes = o->shape->page_bytes, bytes = stretch.n_pages * page_bytes;
    const int access = o->writes ? PROT_READ | PROT_WRITE : PROT_READ;
    const int flags = MAP_SHARED | MAP_FIXED | (o->populates ? MAP_POPULATE : 0);
    unsigned char *mapped = mmap(site->at + stretch.at, (size_t)bytes, access, flags, o->fd,
                                 stretch.first_page * page_bytes);
    if (mapped == MAP_FAILED) return fail_mmap(o->shape, err);
    const bool first = site->view->at == NULL; /* the guard in front is counted already */
    site->view->at = mapped - stretch.at;
    if (first || stretch.at > site->end || stretch.first_page != site->end_page)
        site->view->n_mappings += stretch.at > site->end && !first ? 2 : 1;
    site->end = stretch.at + bytes;
    site->end_page = stretch.first_page + stretch.n_pages;
    return WEFT_OK;
}

static bool is_read(struct site *site, int64_t page_at)
{
    const struct weft_ranges *reads = site->options->reads;
    while (site->next_read < reads->n && reads->ranges[site->next_read].end <= page_at)
        site->next_read++;
    return site->next_read < reads->n &&
           reads->ranges[site->next_read].begin < page_at + site->options->shape->page_bytes;
}

/* Maps the stretch's pages that are in `reads`. */
static enum weft_status map_reads(struct site *site, struct weft_arena_mapping stretch,
                                  struct weft_error *err)
{
    const int64_t page_bytes = site->options->shape->page_bytes;
    for (int64_t p = 0, first; p < stretch.n_pages; p++) {
        first = p;
        while (p < stretch.n_pages && is_read(site, stretch.at + p * page_bytes))
            p++;
        if (p == first) continue;
        WEFT_TRY(map_stretch(site,
                             (struct weft_arena_mapping){stretch.at + first * page_bytes,
                                                         stretch.first_page + first, p - first},
                             err));
    }
    return WEFT_OK;
}

static enum weft_status map_all(struct site *site, struct weft_error *err)
{
    const struct weft_arena_shape *shape = site->options->shape;
    const struct weft_arena_mapping whole = {.n_pages = shape->n_pages};
    const int64_t n = shape->n_mappings > 0 ? shape->n_mappings : 1;
    for (int64_t i = 0; i < n; i++) {
        const struct weft_arena_mapping *at = shape->n_mappings > 0 ? &shape->mappings[i] : &whole;
        WEFT_TRY(site->options->reads == NULL ? map_stretch(site, *at, err)
                                              : map_reads(site, *at, err));
    }
    return WEFT_OK;
}

enum weft_status weft_arena_view_map(struct weft_arena_view *view,
                                     const struct weft_arena_view_options *options,
                                     struct weft_error *err)
{
    struct site site = {.options = options, .view = view};
    WEFT_TRY(reserve_span(view, options->shape, options->below_bytes, &site.at, err));
    view->n_mappings = 2; /* the guards on both sides */
    enum weft_status status = map_all(&site, err);
    if (status != WEFT_OK) weft_arena_view_unmap(view);
    return status;
}

void weft_arena_view_unmap(struct weft_arena_view *view)
{
    if (view->reservation != NULL) munmap(view->reservation, view->reservation_bytes);
    *view = (struct weft_arena_view){0};
}
