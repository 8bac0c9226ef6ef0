/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "shard/shard.h"

Test(policy, reads_what_it_names)
{
    for (int p = 0; p < WEFT_POLICY_COUNT; p++) {
        enum weft_policy read = WEFT_POLICY_COUNT;
        cr_assert(weft_policy_read(weft_policy_name((enum weft_policy)p), &read));
        cr_assert_eq((int)read, p);
    }
}

Test(policy, knows_the_names_of_others)
{
    static const struct {
        const char *name;
        enum weft_policy policy;
    } aliases[] = {
        {"NO_SHARD", WEFT_POLICY_DP},       {"ddp", WEFT_POLICY_DP},
        {"SHARD_GRAD_OP", WEFT_POLICY_SDP}, {"zero2", WEFT_POLICY_SDP},
        {"FULL_SHARD", WEFT_POLICY_FSDP},   {"zero3", WEFT_POLICY_FSDP},
    };
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++) {
        enum weft_policy read = WEFT_POLICY_COUNT;
        cr_assert(weft_policy_read(aliases[i].name, &read), "%s", aliases[i].name);
        cr_assert_eq(read, aliases[i].policy);
    }
}

Test(policy, refuses_other_names)
{
    static const char *const names[] = {
        "", "=", "NO_SHARD=ddp", "NO_SHARD=", "FSDP", "fsdp ", "dd", "ddpx"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        enum weft_policy read = WEFT_POLICY_COUNT;
        cr_assert_not(weft_policy_read(names[i], &read), "%s", names[i]);
        cr_assert_eq(read, WEFT_POLICY_COUNT, "the output stays untouched");
    }
}
