/* SPDX-License-Identifier: Apache-2.0 */
/* A store under load from several threads, for ThreadSanitizer. Requests write plain memory, and
 * only tickets order them. Without the sanitizer it still checks the bytes. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "offload/copy.h"
#include "offload/store.h"
#include "tests/offload/fake_disk.h"

#define CHECK(condition, ...)                                                                      \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "race.c:%d: %s: ", __LINE__, #condition);                              \
            fprintf(stderr, __VA_ARGS__);                                                          \
            fprintf(stderr, "\n");                                                                 \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

enum { PAGE = 4096, USERS = 3, BLOCKS = 6, ROUNDS = 200 };

static struct weft_store *store;

/* Each user has its own blocks. All share one, and every read of it must be consistent. */
static void *use_store(void *argument)
{
    const int user = *(int *)argument;
    unsigned char *page = aligned_alloc(PAGE, PAGE);
    const struct weft_memory_span span = {page, PAGE};
    struct weft_error err = {.status = WEFT_OK};
    int64_t ticket;
    for (int round = 0; round < ROUNDS; round++) {
        const int64_t block = round % 3 == 0 ? 0 : 1 + user;
        memset(page, 1 + (user * ROUNDS + round) % 250, PAGE);
        CHECK(weft_store_submit_write(store, block, round, &span, 1, &ticket, &err) == WEFT_OK,
              "%s", err.text);
        CHECK(weft_store_wait(store, WEFT_STORE_WRITE, ticket, &err) == WEFT_OK, "%s", err.text);
        memset(page, 0, PAGE);
        CHECK(weft_store_submit_read(store, block, &span, 1, &ticket, &err) == WEFT_OK, "%s",
              err.text);
        while (round % 2 == 0 && !weft_store_is_done(store, WEFT_STORE_READ, ticket)) {
        }
        CHECK(weft_store_wait(store, WEFT_STORE_READ, ticket, &err) == WEFT_OK, "%s", err.text);
        CHECK(page[0] != 0 && memcmp(page, page + 1, PAGE - 1) == 0, "block %d is torn",
              (int)block);
        CHECK(block == 0 || page[0] == 1 + (user * ROUNDS + round) % 250, "block %d is another",
              (int)block);
    }
    free(page);
    return NULL;
}

static void open_store(struct fake_disk *disk, int32_t threads)
{
    struct weft_store_block blocks[BLOCKS];
    struct weft_error err = {.status = WEFT_OK};
    const struct weft_store_options options = {.directory = "D",
                                               .threads = threads,
                                               .requests = 2,
                                               .spans = 1,
                                               .timeout_ns = INT64_C(3600) * 1000000000,
                                               .calls = &disk->calls};
    for (int i = 0; i < BLOCKS; i++)
        blocks[i] = (struct weft_store_block){.bytes = PAGE, .index = i};
    CHECK(weft_store_open(&options, &store, &err) == WEFT_OK, "%s", err.text);
    CHECK(weft_store_reserve(store, blocks, BLOCKS, &err) == WEFT_OK, "%s", err.text);
}

static void test_users(uint64_t dice)
{
    struct fake_disk disk;
    pthread_t users[USERS];
    int numbers[USERS];
    fake_disk_init(&disk, BLOCKS * PAGE);
    disk.dice = dice;
    open_store(&disk, 2);
    for (int i = 0; i < USERS; i++) {
        numbers[i] = i;
        CHECK(pthread_create(&users[i], NULL, use_store, &numbers[i]) == 0, "no thread");
    }
    for (int i = 0; i < USERS; i++)
        pthread_join(users[i], NULL);
    weft_store_destroy(store);
    CHECK(disk.open_files == 0, "a file is open");
    fake_disk_finish(&disk);
}

/* The store closes while requests are queued and in progress. */
static void test_ends(void)
{
    static unsigned char memory[BLOCKS * PAGE] __attribute__((aligned(4096)));
    for (int round = 0; round < 100; round++) {
        struct fake_disk disk;
        struct weft_error err = {.status = WEFT_OK};
        int64_t ticket;
        fake_disk_init(&disk, BLOCKS * PAGE);
        open_store(&disk, 2);
        for (int i = 0; i < round % BLOCKS; i++) {
            const struct weft_memory_span span = {memory + i * PAGE, PAGE};
            CHECK(weft_store_submit_write(store, i, round, &span, 1, &ticket, &err) == WEFT_OK,
                  "%s", err.text);
        }
        weft_store_destroy(store);
        CHECK(disk.open_files == 0, "a file is open");
        fake_disk_finish(&disk);
    }
}

/* Blocks go down and up again. Each copy follows the one that wrote its source. */
static void test_copies(void)
{
    enum { SEATS = 3, COPIES = 300 };
    static unsigned char offloaded[SEATS][PAGE], here[SEATS][PAGE];
    struct weft_error err = {.status = WEFT_OK};
    struct weft_copier *copier = NULL;
    const struct weft_copier_options options = {
        .links = {[WEFT_COPY_UP] = {true, 1000, 1e12}}, .requests = 2, .spans = 1};
    CHECK(weft_copier_create(&options, &copier, &err) == WEFT_OK, "%s", err.text);
    int64_t down[SEATS], up[SEATS];
    for (int i = 0; i < COPIES + SEATS; i++) {
        const int seat = i % SEATS;
        const struct weft_memory_span near = {here[seat], PAGE}, far = {offloaded[seat], PAGE};
        if (i >= SEATS) {
            CHECK(weft_copier_wait(copier, WEFT_COPY_UP, up[seat], &err) == WEFT_OK, "%s",
                  err.text);
            CHECK(here[seat][PAGE - 1] == (unsigned char)(i - SEATS), "copy %d is another", i);
        }
        memset(here[seat], i, PAGE);
        CHECK(weft_copier_submit(copier, WEFT_COPY_DOWN, &far, 1, &near, 1, &down[seat], &err) ==
                  WEFT_OK,
              "%s", err.text);
        CHECK(weft_copier_wait(copier, WEFT_COPY_DOWN, down[seat], &err) == WEFT_OK, "%s",
              err.text);
        memset(here[seat], 0, PAGE);
        CHECK(weft_copier_submit(copier, WEFT_COPY_UP, &near, 1, &far, 1, &up[seat], &err) ==
                  WEFT_OK,
              "%s", err.text);
    }
    weft_copier_destroy(copier);
}

int main(void)
{
    test_copies();
    test_users(0);
    test_users(7);
    test_ends();
    return 0;
}
