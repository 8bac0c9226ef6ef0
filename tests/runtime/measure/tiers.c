/* SPDX-License-Identifier: Apache-2.0 */
/* Tiers are measured whole, and ranks have the same figures. Times are not compared with anything:
 * this machine may be busy. */
#include "runtime/measure/tiers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/runtime/exec/job.h"

enum { RANKS = 2, ROUNDS = 3 };

static void shares_are_of_the_speed_alone(void)
{
    CHECK(weft_measure_share(100, 200) == WEFT_RATE_ONE / 2, "half the speed");
    CHECK(weft_measure_share(200, 100) == WEFT_RATE_ONE, "never faster than alone");
    CHECK(weft_measure_share(1, INT64_MAX) == 1, "never nothing");
    const int64_t half = WEFT_RATE_ONE / 2, all = WEFT_RATE_ONE;
    CHECK(weft_measure_duplex(half, half) == WEFT_DUPLEX_HALF, "they take turns");
    CHECK(weft_measure_duplex(all - 1, 1) == WEFT_DUPLEX_HALF, "one starves");
    CHECK(weft_measure_duplex(all, all) == WEFT_DUPLEX_FULL, "none is slower");
    CHECK(weft_measure_duplex(all, all - 100) == WEFT_DUPLEX_FULL, "hardly slower");
}

static void check_shares(const int64_t *shares, int n, const char *what)
{
    for (int i = 0; i < n; i++)
        CHECK(shares[i] >= 1 && shares[i] <= WEFT_RATE_ONE, "%s: share %d is %lld", what, i,
              (long long)shares[i]);
}

static void check_times(const struct weft_curve *curve, const char *what)
{
    CHECK(curve->n >= 1, "%s has no points", what);
    for (int32_t i = 0; i < curve->n; i++)
        CHECK(curve->ns[i] > 0 && (i == 0 || curve->x[i] > curve->x[i - 1]), "%s: point %d", what,
              i);
}

static void check_tiers(const struct weft_profile *profile)
{
    const struct weft_profile_host *host = &profile->tiers.host;
    const struct weft_profile_disk *disk = &profile->tiers.disk;
    CHECK(host->given && disk->given, "a tier is missing");
    check_times(&host->down, "down");
    check_times(&host->up, "up");
    check_times(&disk->read, "read");
    check_times(&disk->write, "write");
    check_shares((const int64_t[]){host->down_beside, host->up_beside, host->updates_beside}, 3,
                 "host");
    check_shares((const int64_t[]){disk->read_beside, disk->write_beside}, 2, "disk");
    CHECK(host->threads == 3 && host->update_bytes_per_s > 0, "updates");
    CHECK(disk->threads >= 1 && disk->block_bytes >= 1 && disk->seats >= disk->threads, "the disk");
    CHECK(disk->path[0] == '/' && disk->file_system[0] != '\0' && disk->verified, "what it is");
}

struct shared {
    struct weft_hash hash[RANKS];
};

struct task {
    const struct job *job;
    struct shared *shared;
};

static struct weft_hash hash_of(const struct weft_profile *profile)
{
    struct weft_text text;
    weft_text_init(&text);
    struct weft_json_writer writer;
    weft_json_writer_init(&writer, &text, 0);
    weft_json_begin_object(&writer);
    weft_keys_write(&weft_profile_host_keys, NULL, &profile->tiers.host, &writer);
    weft_keys_write(&weft_profile_disk_keys, NULL, &profile->tiers.disk, &writer);
    weft_json_end_object(&writer);
    const struct weft_hash hash = weft_hash_bytes(weft_text_chars(&text), text.length);
    weft_text_finish(&text);
    return hash;
}

static int measure(int32_t rank, const struct ranks *ranks, void *argument)
{
    const struct task *task = argument;
    struct weft_comm_options comm = ranks_options(rank, ranks);
    struct weft_nn_options nn = {.threads = 1, .gemm = "auto"};
    struct weft_measure_options options = {.config = task->job->config, .rounds = ROUNDS};
    struct weft_profile profile = {0};
    OK(weft_device_open("cpu", WEFT_CLOCK_WALL, &options.device, &err));
    OK(weft_nn_open("cpu", &nn, &options.nn, &err));
    OK(weft_comm_open("local", &comm, &options.comm, &err));
    OK(weft_measure_tiers(&options, &profile, &err));
    check_tiers(&profile);
    task->shared->hash[rank] = hash_of(&profile);
    weft_pool_finish(&profile.pool);
    weft_comm_close(options.comm);
    weft_nn_close(options.nn);
    weft_device_close(options.device);
    return 0;
}

RANKS_TEST(tiers)
{
    shares_are_of_the_speed_alone();
    char path[64];
    snprintf(path, sizeof path, "cluster.disk.path=%s", job_disk());
    const char *overrides[] = {"cluster.emulate=false",   "cluster.host.memory_limit=1MiB",
                               "cluster.host.threads=3",  path,
                               "cluster.disk.limit=1MiB", NULL};
    struct job job = {0};
    struct weft_error err = {0};
    int32_t n = 5;
    CHECK(weft_config_read("configs/runs/mlp-tiny.json", overrides, n, &job.config, &err) ==
              WEFT_OK,
          "%s", err.text);
    struct shared *shared = job_shared(sizeof *shared);
    struct task task = {&job, shared};
    CHECK(ranks_run(RANKS, measure, &task) == 0, "tiers");
    CHECK(weft_hash_equal(shared->hash[0], shared->hash[1]), "ranks have two profiles");
    weft_config_destroy(job.config);
    return 0;
}
