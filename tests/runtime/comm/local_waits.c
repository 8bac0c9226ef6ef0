/* SPDX-License-Identifier: Apache-2.0 */
/* The rank that holds up others, in a control memory without processes. */
#include "runtime/comm/local.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "tests/runtime/comm/ranks.h"

static int opened; /* files, such as those of /proc */

FILE *__real_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode);
FILE *__real_fopen64(const char *path, const char *mode);
FILE *__wrap_fopen64(const char *path, const char *mode);

FILE *__wrap_fopen(const char *path, const char *mode)
{
    opened++;
    return __real_fopen(path, mode);
}

FILE *__wrap_fopen64(const char *path, const char *mode)
{
    opened++;
    return __real_fopen64(path, mode);
}

/* A communicator of `n` ranks. This rank has reached a barrier, and no rank has come. */
static void waits_open(struct weft_local_comm *c, int32_t n)
{
    const size_t bytes = weft_comm_control_bytes(n);
    *c = (struct weft_local_comm){.comm = {.ranks = n}, .barriers = 1};
    c->mapped = aligned_alloc((size_t)sysconf(_SC_PAGESIZE), bytes);
    CHECK(c->mapped != NULL, "memory");
    memset(c->mapped, 0, bytes);
    c->control = c->mapped;
    for (int32_t rank = 0; rank < n; rank++)
        atomic_store(&c->control->ranks[rank].pid, getpid());
}

/* `rank` tells for whom it waits. */
static void waits_tell(struct weft_local_comm *c, int32_t rank, enum weft_local_waiter waiter,
                       int32_t other)
{
    c->comm.rank = rank;
    weft_local_note_wait(&c->comm, waiter, other);
}

static void waits_close(struct weft_local_comm *c)
{
    free(c->mapped);
}

/* A barrier that is over says nothing of the stream's wait, and the reverse. */
RANKS_TEST(a_wait_ends_alone)
{
    for (int32_t i = 0; i < WEFT_LOCAL_WAITERS; i++) {
        const enum weft_local_waiter one = (enum weft_local_waiter)i;
        const enum weft_local_waiter other = (enum weft_local_waiter)(WEFT_LOCAL_WAITERS - 1 - i);
        struct weft_local_comm c;
        waits_open(&c, 3);
        waits_tell(&c, 0, one, 2);
        waits_tell(&c, 0, other, -1);
        CHECK(weft_local_cause(&c.comm, 0) == 2, "waiter %d", (int)i);
        waits_tell(&c, 0, one, -1);
        CHECK(weft_local_cause(&c.comm, 0) == 0, "waiter %d", (int)i);
        waits_tell(&c, 0, other, 1);
        waits_tell(&c, 1, one, 2);
        CHECK(weft_local_cause(&c.comm, 0) == 2, "waiter %d", (int)i);
        waits_close(&c);
    }
    return 0;
}

/* Appends the text of rank 0, and checks how many files it took. */
static void waits_show(struct weft_local_comm *c, struct weft_text *out)
{
    weft_text_init(out);
    c->comm.rank = 0;
    opened = 0;
    weft_local_show_late(c, out);
    CHECK(weft_text_ok(out), "memory");
    CHECK(opened > 0 && opened <= 2 * c->comm.ranks, "%d ranks took %d files", (int)c->comm.ranks,
          opened);
}

static void check_has(const struct weft_text *text, const char *part, bool has)
{
    CHECK((strstr(weft_text_chars(text), part) != NULL) == has, "%s: %s", part,
          weft_text_chars(text));
}

/* Ranks 1 to 255 wait for one another, so each is named and none has another cause. */
RANKS_TEST(a_circle_of_many_is_shown_by_few_reads)
{
    enum { MANY = 256 };
    struct weft_local_comm c;
    struct weft_text text;
    waits_open(&c, MANY);
    for (int32_t rank = 0; rank < MANY; rank++)
        waits_tell(&c, rank, WEFT_LOCAL_AT_BARRIER, (rank + 1) % MANY);
    waits_show(&c, &text);
    check_has(&text, "rank 0 ", false);
    check_has(&text, "rank 1 (process ", true);
    check_has(&text, "; rank 255 (process ", true);
    check_has(&text, "waits for", false);
    weft_text_finish(&text);
    waits_close(&c);
    return 0;
}

/* Rank 3 holds up 1 and 2. Rank 4 leads into the circle of 5 and 6. */
RANKS_TEST(causes_of_chains_and_circles_are_shown)
{
    static const int32_t waits[] = {-1, 2, 3, -1, 5, 6, 5};
    enum { N = sizeof waits / sizeof waits[0] };
    struct weft_local_comm c;
    struct weft_text text;
    waits_open(&c, N);
    for (int32_t rank = 0; rank < N; rank++)
        waits_tell(&c, rank, WEFT_LOCAL_ON_STREAM, waits[rank]);
    waits_show(&c, &text);
    for (int32_t rank = 1; rank < N; rank++) {
        char named[32], cause[48];
        snprintf(named, sizeof named, "rank %d (process ", (int)rank);
        snprintf(cause, sizeof cause, "; rank %d waits for rank 3", (int)rank);
        check_has(&text, named, rank >= 3);
        const char *first = strstr(weft_text_chars(&text), named);
        CHECK(first == NULL || strstr(first + 1, named) == NULL, "%s", weft_text_chars(&text));
        check_has(&text, cause, rank < 3);
        CHECK(weft_local_cause(&c.comm, rank) == (rank < 3 ? 3 : rank), "rank %d", (int)rank);
    }
    weft_text_finish(&text);
    waits_close(&c);
    return 0;
}
