/* SPDX-License-Identifier: Apache-2.0 */
/* The host's memory of all ranks is claimed by machine and container before any rank takes it. Its
 * cores are divided among the ranks of a machine. */
#include "runtime/exec/host.h"

#include <stdio.h>
#include <string.h>

#include "runtime/exec/parts.h"
#include "tests/runtime/comm/machines.h"
#include "tests/runtime/exec/job.h"

/* CHECKs that the ranks may take the memory again, or are refused with these words. */
static void take_again(const struct job_rank *r, struct fake_machine at, const char *refusal)
{
    struct weft_error why = {0};
    struct exec_host *again = NULL;
    fake_machine = at;
    const enum weft_status status = weft_exec_host_create(r->exec, &again, &why);
    fake_machine.machine = 0;
    if (refusal == NULL)
        CHECK(status == WEFT_OK, "%s", why.text);
    else
        CHECK(status == WEFT_E_SYSTEM && strstr(why.text, refusal) != NULL && again == NULL,
              "%s, not %s", why.text, refusal);
    weft_exec_host_destroy(again);
}

/* CHECKs the threads that update on the host, of ranks with one thread of compute on 12 cores. */
static void check_threads(const struct job_rank *r, uint64_t machine, int32_t asked, int32_t right)
{
    struct weft_config config = *r->exec->options.config;
    struct weft_error why = {0};
    int32_t threads = 0;
    config.cluster.threads = 1;
    config.cluster.host.threads = asked;
    fake_machine.machine = machine;
    fake_cores = 12;
    const enum weft_status status =
        weft_exec_update_threads(&config, r->exec->options.comm, &threads, &why);
    fake_machine.machine = 0;
    fake_cores = 0;
    CHECK(status == WEFT_OK && threads == right, "%d threads, not %d: %s", (int)threads, (int)right,
          why.text);
}

static int claim_as_rank(int32_t rank, const struct ranks *ranks, void *argument)
{
    struct job_rank r;
    job_rank_open(&r, argument, rank, ranks, WEFT_CLOCK_VIRTUAL, false);
    const int64_t each = weft_exec_host_bytes(r.exec->host);
    const uint64_t other = (uint64_t)rank + 1;
    CHECK(each > 0, "the program has nothing on the host");
    take_again(&r, (struct fake_machine){1, 2 * each, 0, 0}, NULL);
    take_again(&r, (struct fake_machine){1, 2 * each - rank, 0, 0}, "2 ranks take ");
    take_again(&r, (struct fake_machine){other, each, 0, 0}, NULL);
    take_again(&r, (struct fake_machine){other, each - rank, 0, 0}, "1 rank takes ");
    take_again(&r, (struct fake_machine){1, 2 * each, other, each}, NULL);
    take_again(&r, (struct fake_machine){1, 2 * each, other, each - rank}, "memory.max of /group");
    take_again(&r, (struct fake_machine){1, 2 * each - 1, other, each}, "had (the machine)");
    check_threads(&r, 1, 0, 12 / 2 - 3);
    check_threads(&r, other, 0, 12 - 3);
    check_threads(&r, 1, 5, 5);
    job_rank_close(&r);
    return 0;
}

/* Nodes on their own may share a machine, and their ranks count together there. */
RANKS_TEST(host)
{
    static const char *const steps[] = {"train.across.every=0", "train.across.every=2"};
    for (int i = 0; i < 2; i++) {
        struct job job;
        const char *overrides[] = {"cluster.ranks=2",
                                   "cluster.ranks_per_node=1",
                                   "cluster.emulate=false",
                                   "cluster.link.inter.alpha=10us",
                                   "cluster.link.inter.bandwidth=1GB/s",
                                   "plan.offload.state=[\"device\"]",
                                   "plan.offload.activations=[\"host\"]",
                                   "cluster.host.memory_limit=1GB",
                                   "cluster.host.down.bandwidth=1GB/s",
                                   "cluster.host.up.bandwidth=1GB/s",
                                   steps[i],
                                   NULL};
        job_open(&job, "configs/runs/gpt-odd.json", overrides);
        job_plan_policy(&job, WEFT_POLICY_FSDP, false);
        CHECK(ranks_run(2, claim_as_rank, &job) == 0, "%s", steps[i]);
        job_close(&job);
    }
    return 0;
}
