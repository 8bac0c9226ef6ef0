/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* memfd_create, fallocate */
#include "runtime/arena/cpu.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/units.h"

enum { STAT_BLOCK_BYTES = 512 };

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* Linux 6.1 */
#endif

static enum weft_status check_file_limit(int64_t bytes, struct weft_error *err)
{
    const int64_t most_bytes = weft_file_most_bytes();
    if (bytes <= most_bytes) return WEFT_OK;
    char want[WEFT_UNITS_TEXT_BYTES], most[WEFT_UNITS_TEXT_BYTES];
    return weft_fail(err, WEFT_E_SYSTEM,
                     "an arena of %s is above the limit of file sizes, %s, which binds shared "
                     "memory too (RLIMIT_FSIZE): raise it (ulimit -f) or lower the memory limit",
                     weft_units_show_bytes(bytes, want), weft_units_show_bytes(most_bytes, most));
}

static enum weft_status fail_size(int64_t bytes, int reason, struct weft_error *err)
{
    char want[WEFT_UNITS_TEXT_BYTES];
    return weft_fail(err, WEFT_E_SYSTEM,
                     "cannot get %s of shared memory for the arena: %s. Lower the memory limit, "
                     "start fewer ranks, or give this job more memory (its memory cgroup, or the "
                     "size of /dev/shm if the memory lies there)",
                     weft_units_show_bytes(bytes, want), strerror(reason));
}

/* Allocates the file's pages. They are zero, because the file was empty. */
static enum weft_status allocate_pages(const struct weft_arena_of_cpu *a, int64_t bytes,
                                       struct weft_error *err)
{
    while (fallocate(a->fd, 0, 0, bytes) != 0) {
        if (errno != EINTR) return fail_size(bytes, errno, err); /* retry after a signal */
    }
    return WEFT_OK;
}

/* Asks for large pages, because a step touches the whole arena several times and every small page
 * costs a lookup. MADV_COLLAPSE needs at least one present and touched page in each large one, so
 * the loop makes one. Refused pages stay small. Large pages survive in the file when this view is
 * unmapped. */
static void ask_for_large_pages(int fd, int64_t bytes)
{
    const struct weft_arena_shape whole = weft_arena_whole(bytes);
    const struct weft_arena_view_options options = {.fd = fd, .shape = &whole, .writes = true};
    struct weft_arena_view view = {0};
    struct weft_error none = {0};
    if (bytes < WEFT_ARENA_LARGE_PAGE_BYTES) return;
    if (weft_arena_view_map(&view, &options, &none) != WEFT_OK) return;
    for (int64_t at = 0; at + WEFT_ARENA_LARGE_PAGE_BYTES <= bytes;
         at += WEFT_ARENA_LARGE_PAGE_BYTES) {
        if (fallocate(fd, 0, at, weft_arena_system_page_bytes()) != 0) break;
        (void)*(volatile unsigned char *)(view.at + at);
    }
    madvise(view.at, (size_t)bytes, MADV_COLLAPSE);
    weft_arena_view_unmap(&view);
    errno = 0;
}

static enum weft_status map_memory(struct weft_arena_of_cpu *a,
                                   const struct weft_arena_shape *shape, struct weft_error *err)
{
    const int64_t bytes = shape->n_pages * shape->page_bytes;
    WEFT_TRY(check_file_limit(bytes, err));
    if (ftruncate(a->fd, bytes) != 0) return fail_size(bytes, errno, err);
    ask_for_large_pages(a->fd, bytes);
    WEFT_TRY(allocate_pages(a, bytes, err));
    const struct weft_arena_view_options options = {.fd = a->fd,
                                                    .shape = shape,
                                                    .writes = true,
                                                    .populates = true,
                                                    .below_bytes = a->shift_bytes};
    return weft_arena_view_map(&a->view, &options, err);
}

static enum weft_status keep_shape(struct weft_arena_of_cpu *a,
                                   const struct weft_arena_shape *shape, struct weft_error *err)
{
    const size_t n = (size_t)shape->n_mappings;
    struct weft_arena_mapping *mappings = calloc(n + 1, sizeof *mappings);
    if (mappings == NULL) return weft_fail_memory(err, "an arena's shape");
    if (n > 0) memcpy(mappings, shape->mappings, n * sizeof *mappings);
    a->shape = *shape;
    a->shape.mappings = mappings;
    if (n > 0) return WEFT_OK;
    a->shape.n_mappings = 1;
    mappings[0].n_pages = shape->n_pages;
    return WEFT_OK;
}

void weft_arena_cpu_unmap(struct weft_arena *arena, bool give_back)
{
    struct weft_arena_of_cpu *a = weft_arena_of_cpu(arena);
    weft_arena_cpu_forget(a);
    weft_arena_view_unmap(&a->view);
    /* The descriptor outlives the mapping. If ftruncate fails, closing it frees the pages. */
    if (give_back && a->span_bytes > 0 && ftruncate(a->fd, 0) != 0) errno = 0;
    free((void *)a->shape.mappings);
    a->shape = (struct weft_arena_shape){0};
    a->span_bytes = 0;
}

enum weft_status weft_arena_cpu_map(struct weft_arena *arena, const struct weft_arena_shape *shape,
                                    struct weft_error *err)
{
    struct weft_arena_of_cpu *a = weft_arena_of_cpu(arena);
    const int64_t spare_bytes = weft_arena_system_page_bytes() + WEFT_ARENA_LARGE_PAGE_BYTES;
    const int64_t most_bytes = a->shift_bytes > 0 ? a->shift_bytes - weft_arena_system_page_bytes()
                                                  : INT64_MAX - spare_bytes;
    if (a->span_bytes > 0)
        return weft_fail(err, WEFT_E_INTERNAL, "an arena is mapped already: unmap it first");
    if (shape->span_bytes > most_bytes ||
        shape->n_pages > (INT64_MAX - spare_bytes) / shape->page_bytes) {
        return weft_fail(err, WEFT_E_INTERNAL, "an arena of %lld bytes cannot be mapped",
                         (long long)shape->span_bytes);
    }
    a->span_bytes = shape->span_bytes;
    enum weft_status status = keep_shape(a, shape, err);
    if (status == WEFT_OK) status = map_memory(a, shape, err);
    if (status != WEFT_OK) weft_arena_cpu_unmap(arena, true);
    return status;
}

void *weft_arena_cpu_address(const struct weft_arena *arena)
{
    const struct weft_arena_of_cpu *a = weft_arena_of_cpu(arena);
    return a->view.at == NULL ? NULL : a->view.at - a->shift_bytes;
}

unsigned char *weft_arena_cpu_memory(const struct weft_arena *arena)
{
    return weft_arena_of_cpu(arena)->view.at;
}

int64_t weft_arena_cpu_resident_bytes(const struct weft_arena *arena)
{
    const struct weft_arena_of_cpu *a = weft_arena_of_cpu(arena);
    struct stat status;
    if (a->view.at == NULL || fstat(a->fd, &status) != 0) return 0;
    return (int64_t)status.st_blocks * STAT_BLOCK_BYTES;
}

int64_t weft_arena_cpu_mappings(const struct weft_arena *arena)
{
    return weft_arena_of_cpu(arena)->view.n_mappings;
}

void weft_arena_cpu_close(struct weft_arena *arena)
{
    struct weft_arena_of_cpu *a = weft_arena_of_cpu(arena);
    weft_arena_cpu_unmap(arena, true);
    if (a->owns_fd && a->fd >= 0) close(a->fd);
    free(a);
}

enum weft_status weft_arena_cpu_open(const struct weft_arena_ops *ops, int64_t shift_bytes, int fd,
                                     struct weft_arena **out, struct weft_error *err)
{
    struct weft_arena_of_cpu *a = calloc(1, sizeof *a);
    if (a == NULL) return weft_fail_memory(err, "an arena");
    a->arena.ops = ops;
    a->shift_bytes = shift_bytes;
    a->owns_fd = fd < 0;
    a->fd = fd < 0 ? memfd_create("weft-arena", MFD_CLOEXEC) : fd;
    if (a->fd < 0) {
        weft_fail(err, WEFT_E_SYSTEM, "cannot make shared memory for the arena: %s",
                  strerror(errno));
        free(a);
        return WEFT_E_SYSTEM;
    }
    *out = &a->arena;
    return WEFT_OK;
}

static enum weft_status cpu_open(int fd, struct weft_arena **out, struct weft_error *err)
{
    return weft_arena_cpu_open(&weft_arena_cpu, 0, fd, out, err);
}

const struct weft_arena_ops weft_arena_cpu = {
    .name = "cpu",
    .open = cpu_open,
    WEFT_ARENA_CPU_FUNCTIONS,
};
