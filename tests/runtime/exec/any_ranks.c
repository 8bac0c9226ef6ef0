/* A step's groups of micro-batches decide its bits, not the ranks that share the groups. Numbers of
 * ranks that divide the groups end in one fingerprint and one loss, under every policy of several
 * rounds, placement and period, also if ranks are two nodes with one bundle of groups each round.
 */
#include <stdio.h>
#include <string.h>

#include "tests/effort.h"
#include "tests/runtime/exec/job.h"

enum { STEPS = 3, KEYS = 12, KEY_BYTES = 48 };

struct outcome {
    struct weft_hash fingerprint;
    double losses[STEPS + 1];
};

struct task {
    const struct job *job;
    struct outcome *outcome;
};

/* How a number of ranks shares the groups. */
struct share {
    int32_t ranks, per_node, rounds;
};

/* A run's order, and settings that round otherwise. */
struct order {
    int32_t groups, micro_steps; /* of a step; of a group */
    const char *settings[3];
    struct share shares[4];
};

static int train_rank(int32_t rank, const struct ranks *ranks, void *argument)
{
    const struct task *task = argument;
    struct job_rank r;
    struct outcome outcome = {0};
    job_rank_open(&r, task->job, rank, ranks, WEFT_CLOCK_VIRTUAL, true);
    for (int64_t step = 1; step <= STEPS; step++)
        outcome.losses[step] = job_rank_step(&r, step).loss;
    OK(weft_exec_settle(r.exec, &err));
    OK(weft_exec_fingerprint(r.exec, &outcome.fingerprint, &err));
    if (rank == 0) *task->outcome = outcome;
    job_rank_close(&r);
    return 0;
}

static void open_job(struct job *job, const struct order *order, const struct share *share)
{
    static char keys[KEYS][KEY_BYTES];
    const char *overrides[KEYS + 4];
    int n = 0;
    snprintf(keys[n++], KEY_BYTES, "cluster.ranks=%d", share->ranks);
    snprintf(keys[n++], KEY_BYTES, "cluster.ranks_per_node=%d", share->per_node);
    snprintf(keys[n++], KEY_BYTES, "train.micro_batch=2");
    snprintf(keys[n++], KEY_BYTES, "train.grad_accum=%d", share->rounds * order->micro_steps);
    snprintf(keys[n++], KEY_BYTES, "train.group=%d", order->micro_steps);
    snprintf(keys[n++], KEY_BYTES, "cluster.emulate=false");
    for (int i = 0; i < n; i++)
        overrides[i] = keys[i];
    for (int i = 0; i < 3 && order->settings[i] != NULL; i++)
        overrides[n++] = order->settings[i];
    overrides[n] = NULL;
    job_open(job, "configs/runs/gpt-odd.json", overrides);
}

static void check_outcome(const struct outcome *first, const struct outcome *outcome,
                          const char *what)
{
    CHECK(weft_hash_equal(first->fingerprint, outcome->fingerprint), "%s: other parameters", what);
    for (int s = 1; s <= STEPS; s++)
        CHECK(first->losses[s] == outcome->losses[s], "%s, step %d: loss %.17g, not %.17g", what, s,
              outcome->losses[s], first->losses[s]);
}

/* Returns the bits of the order, after all of its shares were compared. */
static struct outcome check_order(const struct order *order, int o, struct outcome *shared)
{
    struct outcome first;
    int n = 0;
    for (int s = 0; s < 4 && order->shares[s].ranks > 0; s++) {
        const struct share *share = &order->shares[s];
        struct job job;
        open_job(&job, order, share);
        for (int plan = 0; plan < TEST_CASES(4, 2); plan++) {
            char what[96];
            struct task task = {&job, shared};
            if (plan == 0)
                job_plan_policy(&job, s % 2 == 0 ? WEFT_POLICY_FSDP : WEFT_POLICY_SDP, true);
            else
                job_plan_random(&job, (uint64_t)(100 * o + 10 * s + plan));
            snprintf(what, sizeof what, "order %d, %d rounds of %d ranks, plan %d", o,
                     share->rounds, share->ranks, plan);
            CHECK(ranks_run(share->ranks, train_rank, &task) == 0, "%s: a rank failed", what);
            if (n++ == 0) first = *shared;
            check_outcome(&first, shared, what);
        }
        job_close(&job);
    }
    printf("order %d: %d groups of %d micro-steps, %d plans with the same bits\n", o, order->groups,
           order->micro_steps, n);
    return first;
}

RANKS_TEST(any_ranks)
{
    static const struct order orders[] = {
        {4, 1, {NULL}, {{1, 1, 4}, {2, 2, 2}, {4, 4, 1}}},
        {4, 2, {"train.clip_norm=0"}, {{1, 1, 4}, {2, 2, 2}, {4, 4, 1}}},
        {6, 1, {"train.precision.compute=bf16"}, {{1, 1, 6}, {2, 2, 3}, {3, 3, 2}}},
        {3, 3, {"train.optimizer.type=lamb"}, {{1, 1, 3}, {3, 3, 1}}},
        {4, 1, {"train.precision.compute=f16", "train.clip_norm=0.5"}, {{1, 1, 4}, {4, 4, 1}}},
    };
    struct outcome *shared = job_shared(sizeof *shared), found[2];
    for (int o = 0; o < (int)(sizeof orders / sizeof *orders); o++) {
        const struct outcome outcome = check_order(&orders[o], o, shared);
        if (o < 2) found[o] = outcome;
    }
    /* The comparison of bits can fail: other groups round otherwise. */
    CHECK(!weft_hash_equal(found[0].fingerprint, found[1].fingerprint), "fingerprints cannot tell");
    return 0;
}
