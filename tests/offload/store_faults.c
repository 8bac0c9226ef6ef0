/* SPDX-License-Identifier: Apache-2.0 */
/* Every error of the system at every call, and lost, torn, misplaced and flipped blocks. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "offload/store.h"
#include "tests/effort.h"
#include "tests/offload/fake_disk.h"

enum { FAULT_PAGE = 4096, FAULT_BLOCKS = 4, FAULT_STEPS = 2 };

struct rig {
    struct fake_disk disk;
    unsigned char *memory; /* [FAULT_BLOCKS] */
    int64_t wrong;         /* blocks that came back different without an error */
    int64_t read;
    uint64_t seed;
};

/* Fills a block with bytes that depend on the block and the step. */
static void fill_block(unsigned char *memory, uint64_t seed, int64_t block, int64_t step)
{
    for (uint64_t i = 0; i < FAULT_PAGE / 8; i++) {
        const uint64_t word = weft_rng_u64(seed, (uint64_t)(block * 100 + step), i);
        memcpy(memory + 8 * i, &word, 8);
    }
}

static bool holds(const unsigned char *memory, uint64_t seed, int64_t block, int64_t step)
{
    unsigned char expected[FAULT_PAGE];
    fill_block(expected, seed, block, step);
    return memcmp(memory, expected, FAULT_PAGE) == 0;
}

static enum weft_status run_steps(struct rig *rig, struct weft_store *store, struct weft_error *err)
{
    int64_t tickets[FAULT_BLOCKS];
    for (int64_t step = 0; step < FAULT_STEPS; step++) {
        for (int64_t b = 0; b < FAULT_BLOCKS; b++) {
            const struct weft_memory_span span = {rig->memory + b * FAULT_PAGE, FAULT_PAGE};
            fill_block(span.at, rig->seed, b, step);
            WEFT_TRY(weft_store_submit_write(store, b, step, &span, 1, &tickets[b], err));
        }
        for (int64_t b = 0; b < FAULT_BLOCKS; b++)
            WEFT_TRY(weft_store_wait(store, WEFT_STORE_WRITE, tickets[b], err));
        memset(rig->memory, 0, FAULT_BLOCKS * FAULT_PAGE);
        for (int64_t b = 0; b < FAULT_BLOCKS; b++) {
            const struct weft_memory_span span = {rig->memory + b * FAULT_PAGE, FAULT_PAGE};
            WEFT_TRY(weft_store_submit_read(store, b, &span, 1, &tickets[b], err));
        }
        for (int64_t b = 0; b < FAULT_BLOCKS; b++) {
            WEFT_TRY(weft_store_wait(store, WEFT_STORE_READ, tickets[b], err));
            rig->read++;
            rig->wrong += !holds(rig->memory + b * FAULT_PAGE, rig->seed, b, step);
        }
    }
    return WEFT_OK;
}

static enum weft_status run_rig(struct rig *rig, struct weft_error *err)
{
    const struct weft_store_options options = {.directory = "/the/disk",
                                               .threads = 1,
                                               .requests = 3,
                                               .spans = 1,
                                               .timeout_ns = INT64_C(3600) * 1000000000,
                                               .calls = &rig->disk.calls};
    struct weft_store_block blocks[FAULT_BLOCKS];
    for (int i = 0; i < FAULT_BLOCKS; i++)
        blocks[i] = (struct weft_store_block){.bytes = FAULT_PAGE, .unit = 6, .index = i};
    struct weft_store *store = NULL;
    int64_t resident, all;
    enum weft_status status = weft_store_open(&options, &store, err);
    if (status == WEFT_OK) status = weft_store_reserve(store, blocks, FAULT_BLOCKS, err);
    if (status == WEFT_OK) status = run_steps(rig, store, err);
    if (status == WEFT_OK) status = weft_store_resident(store, &resident, &all, err);
    weft_store_destroy(store);
    return status;
}

static void open_rig(struct rig *rig, uint64_t seed)
{
    *rig =
        (struct rig){.seed = seed, .memory = aligned_alloc(FAULT_PAGE, FAULT_BLOCKS * FAULT_PAGE)};
    fake_disk_init(&rig->disk, FAULT_BLOCKS * FAULT_PAGE);
}

static void close_rig(struct rig *rig)
{
    cr_assert_eq(rig->disk.open_files, 0, "a descriptor leaks");
    fake_disk_finish(&rig->disk);
    free(rig->memory);
}

/* The status for a system error at a call. WEFT_OK: the store continues. */
static enum weft_status expected_of(enum fake_call call, int reason)
{
    if (call == FAKE_NO_COPY || call == FAKE_ALIGNMENT || call == FAKE_DIRECT) return WEFT_OK;
    if (reason == EINTR && call != FAKE_RESIDENT) return WEFT_OK;
    if (reason == EAGAIN && (call == FAKE_READ || call == FAKE_WRITE)) return WEFT_OK;
    if (call != FAKE_OPEN) return WEFT_E_IO;
    switch (reason) {
    case EACCES:
    case EPERM:
    case ENOENT:
    case ENOTDIR:
        return WEFT_E_DATA;
    case EMFILE:
    case ENFILE:
    case ENOMEM:
        return WEFT_E_SYSTEM;
    case EIO:
    case ENOSPC:
    case EDQUOT:
        return WEFT_E_IO;
    case EOPNOTSUPP:
    case EISDIR:
    case EINVAL:
        return WEFT_OK; /* falls back to a named file */
    default:
        return WEFT_E_CREATE;
    }
}

static void fail_call(int64_t number, int reason, bool no_unnamed)
{
    struct rig rig;
    struct weft_error err = {0};
    open_rig(&rig, 3);
    rig.disk.no_unnamed = no_unnamed;
    rig.disk.file_system = 0x9123683E; /* a file system that the store asks for no copies */
    rig.disk.fail_at = number;
    rig.disk.fail_with = reason;
    const enum weft_status status = run_rig(&rig, &err);
    enum weft_status expected = expected_of(rig.disk.failed, reason);
    /* A named file instead of O_TMPFILE takes a second call of open. */
    if (no_unnamed && number == 1 && reason != EINTR && expected == WEFT_OK)
        expected = WEFT_E_CREATE;
    cr_assert_eq(status, expected, "call %lld (kind %d), %s: %d, not %d: %s", (long long)number,
                 (int)rig.disk.failed, strerror(reason), (int)status, (int)expected, err.text);
    cr_assert_eq(rig.wrong, 0);
    if (status != WEFT_OK) cr_assert(strstr(err.text, "/the/disk"), "%s", err.text);
    if (rig.disk.failed == FAKE_READ || rig.disk.failed == FAKE_WRITE)
        cr_assert(status == WEFT_OK ||
                      (strstr(err.text, "of unit 6") && strstr(err.text, strerror(reason))),
                  "%s", err.text);
    cr_assert(rig.disk.names == 0 || rig.disk.failed == FAKE_UNLINK);
    close_rig(&rig);
}

Test(store_faults, every_error_at_every_call)
{
    static const int reasons[] = {EIO,    ENOSPC, EDQUOT,     EINTR,  EAGAIN, EROFS,
                                  EACCES, EPERM,  ENOENT,     EMFILE, ENFILE, ENOMEM,
                                  EINVAL, EFBIG,  EOPNOTSUPP, EISDIR, ENOTDIR};
    struct rig rig;
    struct weft_error err = {0};
    open_rig(&rig, 3);
    rig.disk.no_unnamed = true;
    rig.disk.file_system = 0x9123683E;
    cr_assert_eq(run_rig(&rig, &err), WEFT_OK, "%s", err.text);
    const int64_t calls = rig.disk.all;
    close_rig(&rig);
    cr_assert_eq(calls, 2 + 1 + 1 + 1 + 1 + 1 + 1 + 2 * FAULT_STEPS * FAULT_BLOCKS + 1);
    for (int64_t number = 0; number < calls; number++) {
        for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
            fail_call(number, reasons[i], true);
    }
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        fail_call(0, reasons[i], false);
}

/* A disk that is always full, or never moves a byte, ends in an error too. */
Test(store_faults, a_call_that_never_succeeds_is_given_up)
{
    struct rig rig;
    struct weft_error err = {0};
    open_rig(&rig, 3);
    rig.disk.fail_at = rig.disk.all + 5;
    rig.disk.fail_with = EINTR;
    rig.disk.fails = 1 << 30;
    cr_assert_eq(run_rig(&rig, &err), WEFT_E_IO, "%s", err.text);
    cr_assert(strstr(err.text, "nothing moves"), "%s", err.text);
    close_rig(&rig);
}

Test(store_faults, nothing_damaged_is_accepted)
{
    enum { SEEDS = TEST_CASES(10000, 1000) };
    int64_t refused[FAKE_DAMAGES] = {0}, wrong = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct rig rig;
        struct weft_error err = {0};
        open_rig(&rig, seed);
        rig.disk.damage = (enum fake_damage)(1 + seed % (FAKE_DAMAGES - 1));
        rig.disk.damage_at =
            (int64_t)weft_rng_below(seed, 7, 0, 2 * FAULT_STEPS * FAULT_BLOCKS - 1);
        rig.disk.damage_beside =
            rig.disk.damage == FAKE_FLIPPED
                ? (int64_t)weft_rng_below(seed, 7, 1, FAULT_PAGE)
                : (1 + (int64_t)weft_rng_below(seed, 7, 2, FAULT_BLOCKS - 1)) * FAULT_PAGE;
        const enum weft_status status = run_rig(&rig, &err);
        cr_assert(status == WEFT_OK || status == WEFT_E_IO, "%s", err.text);
        if (status == WEFT_E_IO) cr_assert(strstr(err.text, "CRC"), "%s", err.text);
        refused[rig.disk.damage] += status == WEFT_E_IO;
        wrong += rig.wrong;
        close_rig(&rig);
    }
    cr_assert_eq(wrong, 0);
    for (int damage = 1; damage < FAKE_DAMAGES; damage++)
        cr_assert(refused[damage] > SEEDS / FAKE_DAMAGES / 2, "damage %d: %lld of %d refused",
                  damage, (long long)refused[damage], SEEDS);
}
