/* A store under load from several threads, for ThreadSanitizer: what requests write is plain
 * memory, and only tickets order it. Without the sanitizer it still checks what comes back. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* Every user has blocks of its own, and one that all share: whatever is read of it is whole. */
static void *use_store(void *argument)
{
    const int user = *(int *)argument;
    unsigned char *page = aligned_alloc(PAGE, PAGE);
    const struct weft_span span = {page, PAGE};
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

/* The end, while requests are queued and under way. */
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
            const struct weft_span span = {memory + i * PAGE, PAGE};
            CHECK(weft_store_submit_write(store, i, round, &span, 1, &ticket, &err) == WEFT_OK,
                  "%s", err.text);
        }
        weft_store_destroy(store);
        CHECK(disk.open_files == 0, "a file is open");
        fake_disk_finish(&disk);
    }
}

int main(void)
{
    test_users(0);
    test_users(7);
    test_ends();
    return 0;
}
