/* SPDX-License-Identifier: Apache-2.0 */
/* hsdp and nodes: 4 ranks of nodes of 2, and 6 of nodes of 2 and of 3, end in the bits of dp, with
 * any plan.
 * Buffers are poisoned when they die, and times are the simulator's. */
#include "tests/effort.h"
#include "tests/runtime/exec/same_bits.h"

static void check_bits(const char *path, const char *override, int32_t n, int32_t per_node,
                       enum weft_policy policy)
{
    check_same_bits(path, override, n, per_node, "plan.policies=dp,zero1,fsdp,sdp,hsdp,nodes",
                    policy);
}

RANKS_TEST(hybrid)
{
    static const struct {
        const char *path, *override;
        int32_t ranks, per_node;
    } runs[] = {
        {"configs/runs/gpt-odd.json", "train.clip_norm=0.5", 4, 2},
        {"configs/runs/gpt-odd.json", "train.precision={\"compute\":\"bf16\",\"reduce\":\"bf16\"}",
         6, 2},
        {"configs/runs/gpt-no-clip.json", "train.precision.compute=bf16", 6, 3},
        {"configs/runs/gpt-odd.json", "train.optimizer.type=lamb", 4, 2},
        {"configs/runs/gpt-accumulate.json", "train.reduce=micro_step", 4, 2},
        {"configs/runs/gpt-odd.json", "cluster.channels=2", 4, 2},
    };
    /* Sums of 16 bits, and sums of micro-steps, are always among them. */
    for (int i = 0; i < 6; i++)
        for (int other = 0; other < 2; other++)
            if (i == 1 || i == 4 || test_draws(2 * (uint64_t)i + (uint64_t)other, 4, 6))
                check_bits(runs[i].path, runs[i].override, runs[i].ranks, runs[i].per_node,
                           other == 0 ? WEFT_POLICY_HSDP : WEFT_POLICY_NODES);
    return 0;
}
