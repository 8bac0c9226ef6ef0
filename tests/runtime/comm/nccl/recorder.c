/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/comm/nccl/recorder.h"

#include <criterion/criterion.h>
#include <string.h>

enum { RANKS = 4, SECOND = 1000000000 };

struct rings {
    struct weft_nccl_ring of[RANKS];
    const struct weft_nccl_ring *all[RANKS];
};
static struct rings rings;

static void begin_rings(void)
{
    memset(&rings, 0, sizeof rings);
    for (int r = 0; r < RANKS; r++)
        rings.all[r] = &rings.of[r];
}

static struct weft_nccl_call call_of(int i)
{
    return (struct weft_nccl_call){(enum weft_nccl_kind)(i % WEFT_NCCL_KIND_COUNT), 1024 * i, i,
                                   -i};
}

/* Issues calls number 1 to n on a rank; those up to `done` are done. */
static void issue(int rank, int n, int done)
{
    for (int i = 1; i <= n; i++) {
        const struct weft_nccl_call call = call_of(i);
        const uint64_t sequence = weft_nccl_record(&rings.of[rank], &call, 10 * i);
        cr_assert_eq(sequence, (uint64_t)i);
        if (i > done) continue;
        weft_nccl_record_started(&rings.of[rank], sequence, 10 * i + 1);
        weft_nccl_record_done(&rings.of[rank], sequence, 10 * i + 2);
    }
}

static void check_finding(enum weft_nccl_finding_kind kind, uint64_t sequence, int32_t rank,
                          const char *text)
{
    const struct weft_nccl_finding found = weft_nccl_compare(rings.all, RANKS);
    struct weft_text said;
    weft_text_init(&said);
    weft_nccl_show_finding(&found, rings.all, &said);
    cr_assert_eq(found.kind, kind, "%d", found.kind);
    cr_assert_eq(found.rank, rank, "%d", found.rank);
    if (kind != WEFT_NCCL_ALIKE) cr_assert_eq(found.sequence, sequence);
    cr_assert_str_eq(weft_text_chars(&said), text);
    weft_text_finish(&said);
}

Test(recorder, keeps_the_last_operations_with_their_times)
{
    begin_rings();
    const int n = 3 * WEFT_NCCL_RECORDED + 7;
    issue(0, n, n - 1);
    struct weft_nccl_seen seen;
    for (int i = 1; i <= n + 1; i++) {
        const bool kept = i <= n && i > n - WEFT_NCCL_RECORDED;
        cr_assert_eq(weft_nccl_recorded(&rings.of[0], (uint64_t)i, &seen), kept, "%d", i);
        if (!kept) continue;
        const struct weft_nccl_call call = call_of(i);
        cr_assert(seen.call.kind == call.kind && seen.call.bytes == call.bytes &&
                  seen.call.from == call.from && seen.call.to == call.to);
        cr_assert_eq(seen.issued_ns, 10 * i);
        cr_assert_eq(seen.started_ns, i < n ? 10 * i + 1 : 0);
        cr_assert_eq(seen.done_ns, i < n ? 10 * i + 2 : 0);
    }
    cr_assert_not(weft_nccl_recorded(&rings.of[0], 0, &seen));
    /* A forgotten operation does not overwrite a later one. */
    weft_nccl_record_done(&rings.of[0], 7, 99);
    cr_assert(weft_nccl_recorded(&rings.of[0], n, &seen) && seen.done_ns == 0);
}

Test(recorder, overdue_is_what_has_started_long_ago)
{
    begin_rings();
    struct weft_nccl_ring *ring = &rings.of[0];
    cr_assert_eq(weft_nccl_overdue(ring, SECOND, 1), 0);
    issue(0, 5, 3);
    cr_assert_eq(weft_nccl_overdue(ring, 100 * (int64_t)SECOND, 1), 0, "it waits for its turn");
    weft_nccl_record_started(ring, 4, SECOND);
    cr_assert_eq(weft_nccl_overdue(ring, 3 * (int64_t)SECOND - 1, 2 * (int64_t)SECOND), 0);
    cr_assert_eq(weft_nccl_overdue(ring, 3 * (int64_t)SECOND, 2 * (int64_t)SECOND), 4);
    weft_nccl_record_done(ring, 4, 2 * (int64_t)SECOND);
    cr_assert_eq(weft_nccl_overdue(ring, 100 * (int64_t)SECOND, 1), 0);
}

Test(recorder, ranks_that_do_the_same_are_alike_however_far_they_are)
{
    begin_rings();
    check_finding(WEFT_NCCL_ALIKE, 0, -1, "");
    for (int r = 0; r < RANKS; r++)
        issue(r, 2000, 2000);
    check_finding(WEFT_NCCL_ALIKE, 0, -1, "");
}

Test(recorder, first_rank_that_differs_from_most_is_named)
{
    begin_rings();
    for (int r = 0; r < RANKS; r++)
        issue(r, 4, 4);
    for (int r = 0; r < RANKS; r++) {
        struct weft_nccl_call call = {WEFT_NCCL_ALL_GATHER, 4096, 64, 128};
        if (r == 0) call.bytes = 8192;
        weft_nccl_record(&rings.of[r], &call, 50);
    }
    /* Later differences are consequences. */
    const struct weft_nccl_call later = {WEFT_NCCL_AGREE, 8, 0, 0};
    weft_nccl_record(&rings.of[3], &later, 60);
    check_finding(WEFT_NCCL_DIFFERS, 5, 0,
                  "operation 5 differs: rank 0 issued all_gather of 8192 bytes from offset 64 to "
                  "128 and rank 1 all_gather of 4096 bytes from offset 64 to 128");
}

Test(recorder, of_equal_halves_the_first_is_taken_for_right)
{
    begin_rings();
    for (int r = 0; r < RANKS; r++) {
        const struct weft_nccl_call call = {WEFT_NCCL_AGREE, r < 2 ? 8 : 16, 0, 64};
        weft_nccl_record(&rings.of[r], &call, 50);
    }
    check_finding(WEFT_NCCL_DIFFERS, 1, 2,
                  "operation 1 differs: rank 2 issued agree of 16 bytes from offset 0 to 64 and "
                  "rank 0 agree of 8 bytes from offset 0 to 64");
}

Test(recorder, rank_without_an_operation_that_others_have_is_named)
{
    begin_rings();
    for (int r = 0; r < RANKS; r++)
        issue(r, r == 2 ? 6 : 9, 6);
    check_finding(WEFT_NCCL_MISSING, 7, 2,
                  "rank 2 has not issued operation 7, which on rank 0 is agree of 7168 bytes from "
                  "offset 7 to -7");
    /* Also if its ring has gone round since. */
    begin_rings();
    for (int r = 0; r < RANKS; r++)
        issue(r, r == 2 ? 1500 : 1502, 1500);
    check_finding(WEFT_NCCL_MISSING, 1501, 2,
                  "rank 2 has not issued operation 1501, which on rank 0 is reduce_scatter of "
                  "1537024 bytes from offset 1501 to -1501");
}

Test(recorder, rank_that_has_not_come_to_it_is_named)
{
    begin_rings();
    for (int r = 0; r < RANKS; r++) {
        issue(r, 5, 3);
        if (r != 1) weft_nccl_record_started(&rings.of[r], 4, 45);
    }
    check_finding(
        WEFT_NCCL_NOT_STARTED, 4, 1,
        "rank 1 has not come to operation 4, which rank 0 has started: all_gather of 4096 "
        "bytes from offset 4 to -4");
    weft_nccl_record_started(&rings.of[1], 4, 46);
    check_finding(WEFT_NCCL_NOT_DONE, 4, -1,
                  "operation 4 has started and ends on no rank: all_gather of 4096 bytes from "
                  "offset 4 to -4");
    for (int r = 0; r < RANKS - 1; r++)
        weft_nccl_record_done(&rings.of[r], 4, 47);
    check_finding(
        WEFT_NCCL_NOT_DONE, 4, 3,
        "rank 3 has not done operation 4, which rank 0 has: all_gather of 4096 bytes from "
        "offset 4 to -4");
}

Test(recorder, nothing_is_said_of_ranks_that_do_not_answer)
{
    begin_rings();
    for (int r = 0; r < RANKS; r++)
        issue(r, r == 0 ? 3 : 9, r == 0 ? 3 : 9);
    rings.all[0] = NULL;
    check_finding(WEFT_NCCL_ALIKE, 0, -1, "");
    const struct weft_nccl_call call = {WEFT_NCCL_AGREE, 8, 0, 0};
    weft_nccl_record(&rings.of[2], &call, 1);
    check_finding(WEFT_NCCL_MISSING, 10, 1,
                  "rank 1 has not issued operation 10, which on rank 2 is agree of 8 bytes from "
                  "offset 0 to 0");
}
