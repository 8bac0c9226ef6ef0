/* SPDX-License-Identifier: Apache-2.0 */
/* The bits of Llama's and Qwen 3's blocks: every level of recomputation that a block has, under
 * every policy, with saved activations in the arena or on the host, ends as keeping all under dp,
 * for each number of ranks and cadence. The arena is poisoned, so a read of dead bytes gives NaN.
 */
#include <stdio.h>
#include <string.h>

#include "tests/effort.h"
#include "tests/runtime/exec/job.h"

enum { STEPS = 3 };

struct outcome {
    struct weft_hash fingerprint;
    double last_loss;
};

struct task {
    const struct job *job;
    struct outcome *outcome;
};

/* A block, its head's width and the sequence. Heads of 64 columns and rows are whole ones, which
 * keep logs of sums. */
static const struct block {
    const char *type;
    int32_t head_dim, seq_len;
    const char *more, *embedding, *head; /* other keys of layers */
} block_of[] = {{"llama_block", 64, 64, "", "", ""},
                {"qwen3_block", 10, 21, "", "", ""},
                {"gemma2_block", 6, 21, ",\"window\":5,\"query_scalar\":10,\"attention_cap\":2",
                 ",\"scale\":4.9", ",\"logit_cap\":3,\"tie\":\"e\""}};

/* One way to train. */
struct way {
    enum weft_recompute level;
    enum weft_policy policy;
    bool offloaded;
};

static int train_rank(int32_t rank, const struct ranks *ranks, void *argument)
{
    const struct task *task = argument;
    struct job_rank r;
    struct outcome outcome = {0};
    job_rank_open(&r, task->job, rank, ranks, WEFT_CLOCK_VIRTUAL, true);
    for (int64_t step = 1; step <= STEPS; step++) {
        const struct weft_step_result result = job_rank_step(&r, step);
        CHECK(result.finite, "step %lld: loss %g", (long long)step, result.loss);
        outcome.last_loss = result.loss;
    }
    OK(weft_exec_compare_replicas(r.exec, STEPS, &err));
    outcome.fingerprint = job_rank_end(&r);
    if (rank == 0) *task->outcome = outcome;
    return 0;
}

static void open_job(struct job *job, const struct block *block, int32_t ranks, const char *cadence,
                     const struct way *way)
{
    char model[760], set_ranks[32], seq_len[32], reduce[40], level[40], locations[60];
    snprintf(model, sizeof model,
             "model={\"layers\":["
             "{\"name\":\"e\",\"type\":\"embedding\",\"vocab\":256,\"hidden\":24%s},"
             "{\"name\":\"b.{i}\",\"type\":\"%s\",\"repeat\":2,\"hidden\":24,\"heads\":4,"
             "\"kv_heads\":2,\"head_dim\":%d,\"ffn\":20%s},"
             "{\"name\":\"n\",\"type\":\"rms_norm\",\"hidden\":24},"
             "{\"name\":\"h\",\"type\":\"lm_head\",\"vocab\":256,\"hidden\":24,\"bias\":false%s}]}",
             block->embedding, block->type, (int)block->head_dim, block->more, block->head);
    snprintf(set_ranks, sizeof set_ranks, "cluster.ranks=%d", (int)ranks);
    snprintf(seq_len, sizeof seq_len, "train.seq_len=%d", (int)block->seq_len);
    snprintf(reduce, sizeof reduce, "train.reduce=%s", cadence);
    snprintf(level, sizeof level, "plan.recompute=%s", weft_recompute_names[way->level]);
    snprintf(locations, sizeof locations, "plan.offload.activations=[\"%s\"]",
             way->offloaded ? "host" : "device");
    const char *overrides[] = {model,
                               set_ranks,
                               seq_len,
                               reduce,
                               level,
                               locations,
                               "train.micro_batch=1",
                               "train.grad_accum=2",
                               "plan.blocks=2",
                               "cluster.emulate=false",
                               "cluster.host.memory_limit=1GB",
                               "cluster.host.down.bandwidth=1GB/s",
                               "cluster.host.up.bandwidth=2GB/s",
                               "cluster.host.update=1GB/s",
                               NULL};
    job_open(job, "configs/runs/llama-tiny.json", overrides);
}

/* Checks that both blocks are at the level, and offloaded if they keep something. */
static void check_plan(const struct job *job, const struct way *way, const char *what)
{
    int32_t n_level = 0, n_offloaded = 0;
    for (int32_t l = 0; l < job->program->n_layers; l++) {
        n_level += weft_program_recompute(job->program, l) == way->level;
        n_offloaded += weft_program_saves_offloaded(job->program, l);
    }
    CHECK(n_level >= 2, "%s: %d layers are at the level", what, (int)n_level);
    CHECK((n_offloaded > 0) == way->offloaded, "%s: %d layers are offloaded", what,
          (int)n_offloaded);
}

static struct outcome run_way(const struct block *block, int32_t ranks, const char *cadence,
                              const struct way *way, struct outcome *shared)
{
    char what[120];
    struct job job;
    struct task task = {&job, shared};
    snprintf(what, sizeof what, "%s, %d ranks, %s, level %d, %s%s", block->type, (int)ranks,
             cadence, (int)way->level, weft_policy_name(way->policy),
             way->offloaded ? ", offloaded" : "");
    open_job(&job, block, ranks, cadence, way);
    job_plan_policy(&job, way->policy, (ranks + (int32_t)way->level) % 2 == 0);
    check_plan(&job, way, what);
    CHECK(ranks_run(ranks, train_rank, &task) == 0, "%s: a rank failed", what);
    job_close(&job);
    return *shared;
}

/* False for a level that the layers of the block lack. */
static bool has_level(const struct block *block, enum weft_recompute level)
{
    struct job job;
    struct weft_layer_work work;
    const struct way plain = {WEFT_RECOMPUTE_NONE, WEFT_POLICY_DP, false};
    open_job(&job, block, 1, "step", &plain);
    const struct weft_batch batch = weft_config_batch(job.config);
    OK(weft_layer_work(&job.config->model->layers[1], &batch, &work, &err));
    const bool has = level == WEFT_RECOMPUTE_NONE || work.splits[level].possible;
    job_close(&job);
    return has;
}

/* All ways of some ranks and a cadence, or each 24th of them; returns their number. */
static int32_t check_ways(const struct block *block, int32_t ranks, const char *cadence,
                          int32_t turn, struct outcome *shared)
{
    static const enum weft_policy policies[] = {WEFT_POLICY_DP, WEFT_POLICY_ZERO1, WEFT_POLICY_SDP,
                                                WEFT_POLICY_FSDP};
    const struct way plain = {WEFT_RECOMPUTE_NONE, WEFT_POLICY_DP, false};
    const int64_t every = TEST_CASES_OF(1, 24, 48);
    const struct outcome first = run_way(block, ranks, cadence, &plain, shared);
    int32_t n = 0;
    for (int32_t i = 1; i < WEFT_RECOMPUTE_COUNT * 4 * 2; i++) {
        const struct way way = {(enum weft_recompute)(i / 8), policies[i / 2 % 4], i % 2 == 1};
        const bool keeps = way.level != WEFT_RECOMPUTE_WHOLE;
        if ((i + 5 * turn) % every != 0 || (way.offloaded && !keeps) ||
            !has_level(block, way.level))
            continue;
        const struct outcome found = run_way(block, ranks, cadence, &way, shared);
        CHECK(weft_hash_equal(first.fingerprint, found.fingerprint) &&
                  first.last_loss == found.last_loss,
              "%s, %d ranks, %s: level %d under %s%s has other bits", block->type, (int)ranks,
              cadence, (int)way.level, weft_policy_name(way.policy),
              way.offloaded ? ", offloaded" : "");
        n++;
    }
    return n;
}

RANKS_TEST(kinds)
{
    struct outcome *shared = job_shared(sizeof *shared);
    int32_t n = 0, turn = 0;
    for (size_t b = 0; b < sizeof block_of / sizeof *block_of; b++)
        for (int32_t ranks = 1; ranks <= 4; ranks++)
            for (int c = 0; c < 2; c++)
                n +=
                    check_ways(&block_of[b], ranks, c == 0 ? "step" : "micro_step", turn++, shared);
    printf("%d ways with the bits of dp\n", (int)n);
    CHECK(n >= TEST_CASES(20, 8), "only %d ways", (int)n);
    return 0;
}
