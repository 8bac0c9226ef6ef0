/* SPDX-License-Identifier: Apache-2.0 */
/* central: 1 to 4 ranks, and 6 of nodes of 2, end in the bits of dp, with any plan. Buffers are
 * poisoned when they die, and times are the simulator's. */
#include "tests/effort.h"
#include "tests/runtime/exec/same_bits.h"

static void check_central(const char *path, const char *override, int32_t n, int32_t per_node)
{
    static uint64_t n_called;
    if (!test_draws(n_called++, 2, 3)) return;
    check_same_bits(path, override, n, per_node, "plan.policies=dp,fsdp,sdp,central",
                    WEFT_POLICY_CENTRAL);
}

RANKS_TEST(central)
{
    check_central("configs/runs/gpt-odd.json", "train.clip_norm=0.5", 1, 1);
    check_central("configs/runs/gpt-odd.json", "train.clip_norm=0.5", 4, 4);
    check_central("configs/runs/gpt-odd.json",
                  "train.precision={\"compute\":\"bf16\",\"reduce\":\"bf16\"}", 3, 3);
    check_central("configs/runs/gpt-no-clip.json", "train.precision.compute=bf16", 6, 2);
    check_central("configs/runs/gpt-accumulate.json", "train.reduce=step", 2, 2);
    check_central("configs/runs/gpt-frozen.json", "train.optimizer.type=lamb", 3, 3);
    check_central("configs/runs/gpt-odd.json", "train.optimizer.type=adam_mini", 4, 2);
    return 0;
}
