/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/runtime/checkpoint/shared_system.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/rng.h"
#include "tests/runtime/comm/ranks.h"

enum { MOST_FILES = 64, MOST_PAGES = 4096, MOST_NAMES = 64, PATH_BYTES = 256 };

struct page {
    int fd; /* -1: free */
    int64_t number;
    int64_t end; /* of the bytes written here; a file may grow */
    bool is_dirty;
    unsigned char bytes[SHARED_PAGE_BYTES];
};

struct shared_host {
    struct shared_host_options options;
    uint64_t draws;
    int64_t now_ns;
    struct shared_counts counts;
    int32_t n_pages, n_names, n_open;
    struct page pages[MOST_PAGES];
    struct {
        char path[PATH_BYTES];
        int64_t appears_ns;
    } names[MOST_NAMES];
};

static bool one_in(struct shared_host *host, uint64_t n)
{
    return weft_rng_below(host->options.seed, 1, host->draws++, n) == 0;
}

/* A fault of a call that is not done. */
static bool call_fails(struct shared_host *host)
{
    const bool does = !host->options.only_pages && one_in(host, 150);
    host->counts.failed += does;
    return does;
}

/* Result of a call that was done; its reply may be lost. */
static int answer_lost(struct shared_host *host, int error, int if_lost)
{
    if (error != 0 || host->options.only_pages || !one_in(host, 8)) return error;
    host->counts.lost++;
    return if_lost;
}

static int result_of(int returned)
{
    return returned == 0 ? 0 : errno;
}

/* Pages */

static int64_t length_of(int fd)
{
    struct stat about;
    CHECK(fstat(fd, &about) == 0, "fstat");
    return about.st_size;
}

static struct page *page_of(struct shared_host *host, int fd, int64_t number)
{
    struct page *unused = NULL;
    for (int32_t i = 0; i < host->n_pages; i++) {
        if (host->pages[i].fd == fd && host->pages[i].number == number) return &host->pages[i];
        if (host->pages[i].fd < 0) unused = &host->pages[i];
    }
    if (unused == NULL) {
        CHECK(host->n_pages < MOST_PAGES, "too many pages");
        unused = &host->pages[host->n_pages++];
    }
    *unused = (struct page){.fd = fd, .number = number};
    (void)!pread(fd, unused->bytes, SHARED_PAGE_BYTES, (off_t)(number * SHARED_PAGE_BYTES));
    return unused;
}

static void write_back(struct page *page)
{
    const int64_t at = page->number * SHARED_PAGE_BYTES, left = length_of(page->fd) - at;
    int64_t bytes = left < SHARED_PAGE_BYTES ? left : SHARED_PAGE_BYTES;
    if (bytes < page->end) bytes = page->end;
    if (page->is_dirty && bytes > 0)
        CHECK(pwrite(page->fd, page->bytes, (size_t)bytes, (off_t)at) == bytes, "pwrite");
    page->is_dirty = false;
}

/* Ends all pages of a file; `keeps`: after writing them back. */
static void end_pages(struct shared_host *host, int fd, bool keeps)
{
    for (int32_t i = 0; i < host->n_pages; i++) {
        if (host->pages[i].fd != fd) continue;
        if (keeps) write_back(&host->pages[i]);
        host->pages[i].fd = -1;
    }
}

static int write_pages(void *context, int fd, const void *bytes, size_t length, int64_t offset,
                       size_t *written)
{
    struct shared_host *host = context;
    const int64_t inside = offset % SHARED_PAGE_BYTES, room = SHARED_PAGE_BYTES - inside;
    const size_t n = (int64_t)length < room ? length : (size_t)room;
    if (one_in(host, 100) && call_fails(host)) return EIO;
    struct page *page = page_of(host, fd, offset / SHARED_PAGE_BYTES);
    memcpy(page->bytes + inside, bytes, n);
    page->is_dirty = true;
    if (page->end < inside + (int64_t)n) page->end = inside + (int64_t)n;
    *written = n; /* short, as writes may be */
    page =
        &host->pages[weft_rng_below(host->options.seed, 2, host->draws++, (uint64_t)host->n_pages)];
    if (page->fd >= 0 && one_in(host, 3)) {
        write_back(page);
        host->counts.back++;
    }
    return 0;
}

/* Writes zeros, which stay in pages, like libraries where the system cannot reserve. */
static int reserve_bytes(void *context, int fd, int64_t bytes)
{
    struct shared_host *host = context;
    if (ftruncate(fd, (off_t)bytes) != 0) return errno;
    for (int64_t p = 0; p * SHARED_PAGE_BYTES < bytes; p++)
        page_of(host, fd, p)->is_dirty = true;
    return 0;
}

static int sync_file(void *context, int fd)
{
    struct shared_host *host = context;
    const bool fault = call_fails(host);
    end_pages(host, fd, !fault);
    return fault ? EIO : 0;
}

static int close_file(void *context, int fd)
{
    struct shared_host *host = context;
    const bool fault = call_fails(host);
    end_pages(host, fd, !fault);
    host->n_open--;
    close(fd);
    return fault ? EIO : 0;
}

/* Names */

static bool is_visible(struct shared_host *host, const char *path)
{
    if (host->options.makes_names || host->options.only_pages) return true;
    int32_t i = 0;
    while (i < host->n_names && strcmp(host->names[i].path, path) != 0)
        i++;
    if (i == host->n_names) {
        CHECK(i < MOST_NAMES && strlen(path) < PATH_BYTES, "too many names");
        strcpy(host->names[host->n_names++].path, path);
        const uint64_t ms = weft_rng_below(host->options.seed, 3, host->draws++, 60000);
        host->names[i].appears_ns = host->now_ns + (one_in(host, 2) ? (int64_t)ms * 1000000 : 0);
        host->counts.late += host->names[i].appears_ns > host->now_ns;
    }
    return host->names[i].appears_ns <= host->now_ns;
}

static void pause_host(void *context, int64_t ns)
{
    struct shared_host *host = context;
    host->now_ns += ns;
}

static int make_directory(void *context, const char *path)
{
    return answer_lost(context, call_fails(context) ? EIO : result_of(mkdir(path, 0700)), EEXIST);
}

static int create_name(void *context, const char *path, int *fd)
{
    const int opened = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (opened < 0) return errno;
    const int error = answer_lost(context, 0, EEXIST);
    if (error != 0) {
        close(opened);
        return error;
    }
    ((struct shared_host *)context)->n_open++;
    *fd = opened;
    return 0;
}

static int open_existing(void *context, const char *path, int *fd)
{
    struct shared_host *host = context;
    if (!is_visible(host, path)) return one_in(host, 4) ? ESTALE : ENOENT;
    const int opened = open(path, O_RDWR | O_CLOEXEC);
    if (opened < 0) return errno;
    host->n_open++;
    *fd = opened;
    return 0;
}

static int rename_path(void *context, const char *from, const char *to)
{
    return answer_lost(context, call_fails(context) ? EIO : result_of(rename(from, to)), ENOENT);
}

static int look_for(void *context, const char *path)
{
    struct stat about;
    (void)context;
    return result_of(lstat(path, &about));
}

static int sync_directory(void *context, const char *path)
{
    (void)path;
    return call_fails(context) ? EIO : 0;
}

static int remove_file(void *context, const char *path)
{
    return answer_lost(context, result_of(unlink(path)), ENOENT);
}

static int remove_directory(void *context, const char *path)
{
    return answer_lost(context, result_of(rmdir(path)), ENOENT);
}

struct shared_host *shared_host_open(const struct shared_host_options *options)
{
    struct shared_host *host = calloc(1, sizeof *host);
    CHECK(host != NULL, "no memory");
    host->options = *options;
    return host;
}

void shared_host_close(struct shared_host *host)
{
    CHECK(host->n_open == 0, "%d files are open at the end", host->n_open);
    free(host);
}

struct weft_sink shared_host_sink(struct shared_host *host)
{
    struct weft_sink sink = weft_sink_system;
    sink.context = host;
    sink.make_directory = make_directory;
    sink.create = create_name;
    sink.open = open_existing;
    sink.reserve = reserve_bytes;
    sink.write = write_pages;
    sink.begin_sync = NULL;
    sink.sync = sync_file;
    sink.close = close_file;
    sink.rename = rename_path;
    sink.look = look_for;
    sink.pause = pause_host;
    sink.sync_directory = sync_directory;
    sink.remove = remove_file;
    sink.remove_directory = remove_directory;
    return sink;
}

struct shared_counts shared_host_counts(const struct shared_host *host)
{
    return host->counts;
}
