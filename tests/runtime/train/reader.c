/* SPDX-License-Identifier: Apache-2.0 */
/* The reader against data read by hand, also when it is slow and when reading fails. A plain
 * program, because Criterion's sandbox does not start under ThreadSanitizer. */
#include "runtime/train/reader.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/runtime/exec/job.h"

enum { COUNT = 3, STRIDE = 7, SEQ = 64, BYTES = 100000, STEPS = 40 };

static const char run_text[] =
    "{\"version\": 1, \"model\": {\"layers\": ["
    "{\"name\": \"wte\", \"type\": \"embedding\", \"vocab\": 256, \"positions\": 64, \"hidden\": "
    "8},"
    "{\"name\": \"head\", \"type\": \"lm_head\", \"vocab\": 256, \"hidden\": 8}]},"
    "\"cluster\": {\"ranks\": 1}, \"train\": {\"micro_batch\": 3, \"seq_len\": 64}}";

static void make_file(char path[32])
{
    strcpy(path, "/tmp/weft-data-XXXXXX");
    int fd = mkstemp(path);
    CHECK(fd >= 0, "no file");
    for (int i = 0; i < BYTES; i += 1000) {
        unsigned char bytes[1000];
        for (int b = 0; b < 1000; b++)
            bytes[b] = (unsigned char)(((i + b) * 7919 >> 8) | 1);
        CHECK(write(fd, bytes, sizeof bytes) == sizeof bytes, "not written");
    }
    close(fd);
}

static struct weft_reader *open_reader(struct weft_data *data, int64_t first_step)
{
    struct weft_reader *reader = NULL;
    const struct weft_reader_options options = {
        .data = data,
        .share = {.first = 5, .count = 1, .rounds = COUNT, .stride = STRIDE},
        .input_bytes = COUNT * SEQ * 4,
        .target_bytes = COUNT * SEQ * 4,
        .first_step = first_step,
        .last_step = STEPS,
    };
    OK(weft_reader_create(&options, &reader, &err));
    return reader;
}

static int64_t take_and_compare(struct weft_reader *reader, struct weft_data *other, int64_t step)
{
    static int32_t input[COUNT * SEQ], targets[COUNT * SEQ];
    const void *read_input = NULL;
    const int32_t *read_targets = NULL;
    int64_t wait_ns = -1;
    OK(weft_reader_take(reader, step, &read_input, &read_targets, &wait_ns, &err));
    for (int64_t s = 0; s < COUNT; s++)
        OK(weft_data_fill(other, step, 5 + s * STRIDE, 1, input + s * SEQ, targets + s * SEQ,
                          &err));
    CHECK(memcmp(read_input, input, sizeof input) == 0, "step %lld: input", (long long)step);
    CHECK(memcmp(read_targets, targets, sizeof targets) == 0, "step %lld: targets",
          (long long)step);
    CHECK(wait_ns >= 0, "step %lld: waited %lld ns", (long long)step, (long long)wait_ns);
    return wait_ns;
}

/* The reader's thread signals each batch that it has read, while it holds the mutex. */
static atomic_int batches_read;
static pthread_t main_thread;

int __real_pthread_cond_broadcast(pthread_cond_t *condition);
int __wrap_pthread_cond_broadcast(pthread_cond_t *condition);
int __wrap_pthread_cond_broadcast(pthread_cond_t *condition)
{
    if (!pthread_equal(pthread_self(), main_thread)) atomic_fetch_add(&batches_read, 1);
    return __real_pthread_cond_broadcast(condition);
}

/* A step that is long enough for that. */
static void wait_until_read(int batches)
{
    while (atomic_load(&batches_read) < batches)
        weft_clock_sleep_until_ns(weft_clock_now_ns() + 100000);
}

static void in_order(struct weft_data *data, struct weft_data *other)
{
    struct weft_reader *reader = open_reader(data, 1);
    for (int64_t step = 1; step <= STEPS; step++) {
        int64_t wait_ns = take_and_compare(reader, other, step);
        CHECK(step == 1 || wait_ns == 0, "step %lld: waited %lld ns for a batch that is there",
              (long long)step, (long long)wait_ns);
        CHECK(take_and_compare(reader, other, step) == 0, "a batch that is there is waited for");
        if (step < STEPS) wait_until_read((int)step + 1);
    }
    weft_reader_destroy(reader);
}

static void out_of_order(struct weft_data *data, struct weft_data *other)
{
    static const int64_t steps[] = {7, 8, 8, 3, 4, 4, 5, 40, 39, 40, 1, 1};
    struct weft_reader *reader = open_reader(data, 7);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        take_and_compare(reader, other, steps[i]);
    weft_reader_destroy(reader);
}

static void fails_when_the_file_does(struct weft_data *data, const char *path)
{
    const void *input;
    const int32_t *targets;
    const int64_t most = 2 + WEFT_READER_AHEAD;
    int64_t wait_ns, step = 1;
    struct weft_error err = {0};
    struct weft_reader *reader = open_reader(data, 1);
    CHECK(truncate(path, 10) == 0, "not cut");
    /* The steps ahead may have been read before the cut. */
    while (step <= most &&
           weft_reader_take(reader, step, &input, &targets, &wait_ns, &err) == WEFT_OK)
        step++;
    CHECK(step <= most, "a file cut short was read on");
    CHECK(err.status == WEFT_E_DATA && strstr(err.text, path) != NULL, "%s", err.text);
    struct weft_error again = {0};
    CHECK(weft_reader_take(reader, step, &input, &targets, &wait_ns, &again) == WEFT_E_DATA,
          "a failed reader works again");
    weft_reader_destroy(reader);
}

/* The seed makes the first steps read no sample of the file's missing end. */
static void a_failure_is_known_one_step_early(void)
{
    char path[32], setting[64];
    struct weft_config *config = NULL;
    struct weft_data *data = NULL;
    const void *input;
    const int32_t *targets;
    int64_t wait_ns = -1, failed = 0;
    make_file(path);
    snprintf(setting, sizeof setting, "train.data=%s", path);
    const char *overrides[] = {setting};
    OK(weft_config_parse(run_text, strlen(run_text), "run", ".", overrides, 1, &config, &err));
    OK(weft_data_open(config, WEFT_DATA_TRAINING, &data, &err));
    CHECK(truncate(path, BYTES * 19 / 20) == 0, "not cut");
    struct weft_reader *reader = open_reader(data, 1);
    for (int64_t step = 1; step <= STEPS && failed == 0; step++) {
        struct weft_error err = {0};
        if (weft_reader_take(reader, step, &input, &targets, &wait_ns, &err) != WEFT_OK) {
            CHECK(step == 1, "step %lld failed, and look_ahead had not told", (long long)step);
            failed = step;
            continue;
        }
        if (weft_reader_look_ahead(reader, step, &wait_ns, &err) == WEFT_OK) continue;
        CHECK(err.status == WEFT_E_DATA && strstr(err.text, path) != NULL, "%s", err.text);
        CHECK(wait_ns >= 0, "waited %lld ns", (long long)wait_ns);
        struct weft_error why = {0};
        failed = step + 1;
        CHECK(weft_reader_take(reader, failed, &input, &targets, &wait_ns, &why) == WEFT_E_DATA,
              "step %lld can be read", (long long)failed);
    }
    CHECK(failed > 2, "step %lld failed", (long long)failed);
    weft_reader_destroy(reader);
    weft_data_close(data);
    weft_config_destroy(config);
    unlink(path);
}

int main(void)
{
    main_thread = pthread_self();
    char path[32], setting[64];
    struct weft_config *config = NULL;
    struct weft_data *data = NULL, *other = NULL;
    make_file(path);
    snprintf(setting, sizeof setting, "train.data=%s", path);
    const char *overrides[] = {setting};
    OK(weft_config_parse(run_text, strlen(run_text), "run", ".", overrides, 1, &config, &err));
    OK(weft_data_open(config, WEFT_DATA_TRAINING, &data, &err));
    OK(weft_data_open(config, WEFT_DATA_TRAINING, &other, &err));
    in_order(data, other);
    out_of_order(data, other);
    fails_when_the_file_does(data, path);
    a_failure_is_known_one_step_early();
    weft_reader_destroy(NULL);
    weft_data_close(data);
    weft_data_close(other);
    weft_config_destroy(config);
    unlink(path);
    return 0;
}
