/* Sets of one policy. */
#ifndef WEFT_TESTS_POLICIES_H
#define WEFT_TESTS_POLICIES_H

#include "shard/shard.h"

enum { DP = 1 << WEFT_POLICY_DP, SDP = 1 << WEFT_POLICY_SDP };

#endif
