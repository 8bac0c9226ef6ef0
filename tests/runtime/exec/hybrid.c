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
    static const char half[] = "train.precision={\"compute\":\"bf16\",\"reduce\":\"bf16\"}";
    static const struct {
        const char *path, *override;
        int32_t ranks, per_node;
        enum weft_policy policy;
    } runs[] = {
        {"configs/runs/gpt-odd.json", "train.clip_norm=0.5", 4, 2, WEFT_POLICY_HSDP},
        {"configs/runs/gpt-odd.json", half, 6, 2, WEFT_POLICY_NODES},
        {"configs/runs/gpt-no-clip.json", "train.precision.compute=bf16", 6, 3, WEFT_POLICY_NODES},
        {"configs/runs/gpt-odd.json", "train.optimizer.type=lamb", 4, 2, WEFT_POLICY_NODES},
        {"configs/runs/gpt-accumulate.json", "train.reduce=micro_step", 4, 2, WEFT_POLICY_NODES},
        {"configs/runs/gpt-odd.json", "cluster.channels=2", 4, 2, WEFT_POLICY_NODES},
        {"configs/runs/gpt-odd.json", "train.optimizer.type=adam_mini", 4, 2, WEFT_POLICY_HSDP},
        {"configs/runs/gpt-odd.json", half, 6, 2, WEFT_POLICY_HSDP},
        {"configs/runs/gpt-accumulate.json", "train.reduce=micro_step", 4, 2, WEFT_POLICY_HSDP},
    };
    /* Sums of 16 bits, and sums of micro-steps, are always among them. */
    for (int i = 0; i < (int)(sizeof runs / sizeof *runs); i++)
        if (i == 1 || i == 4 || test_draws((uint64_t)i, 3, 6))
            check_bits(runs[i].path, runs[i].override, runs[i].ranks, runs[i].per_node,
                       runs[i].policy);
    return 0;
}
