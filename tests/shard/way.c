/* SPDX-License-Identifier: Apache-2.0 */
#include "shard/way.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

/* Every number has a way, and every way a name of policy, keep and location that reads back. */
Test(way, numbers_and_names_read_back)
{
    for (int number = 0; number < WEFT_WAYS; number++) {
        const struct weft_way way = weft_way_at(number);
        char name[64];
        snprintf(name, sizeof name, "%s%s%s%s", weft_policy_name(way.policy),
                 way.keep == WEFT_KEEP_DEVICE ? "" : "+",
                 way.keep == WEFT_KEEP_DEVICE ? "" : weft_keep_names[way.keep],
                 way.parameters == WEFT_HOME_HOST ? "+host-parameters" : "");
        cr_assert_str_eq(weft_way_name(way), name);
        cr_assert_eq(weft_way_number(way), number);
        struct weft_way read = weft_way_at(WEFT_WAYS - 1 - number);
        cr_assert(weft_way_read(name, &read));
        cr_assert_eq(weft_way_number(read), number, "\"%s\"", name);
    }
}

Test(way, other_names_are_none)
{
    static const char *const others[] = {"",
                                         "sd",
                                         "sdpx",
                                         "xsdp",
                                         "SDP",
                                         "+host",
                                         "sdp+",
                                         "sdp+device",
                                         "sdp+other",
                                         "fsdp+host-parameters+host",
                                         "fsdp+host-parameters+"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        struct weft_way way = {.policy = WEFT_POLICY_HSDP};
        cr_assert_not(weft_way_read(others[i], &way), "\"%s\"", others[i]);
        cr_assert_eq(way.policy, WEFT_POLICY_HSDP);
    }
}
