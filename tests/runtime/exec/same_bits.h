/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of a policy end in the bits of dp, with any schedule. Buffers are poisoned when they
 * die, and times are the simulator's. */
#ifndef WEFT_TESTS_RUNTIME_EXEC_SAME_BITS_H
#define WEFT_TESTS_RUNTIME_EXEC_SAME_BITS_H

#include "tests/runtime/exec/job.h"

/* Trains a config of `ranks` ranks, `per_node` of a node, with dp, or sdp if it has none, with the
 * policy in all trainable units, early and late, and with random policies of "plan.policies=..." in
 * `policies`, and CHECKs that all end alike. `override` is one setting more. */
void check_same_bits(const char *path, const char *override, int32_t ranks, int32_t per_node,
                     const char *policies, enum weft_policy policy);

#endif
