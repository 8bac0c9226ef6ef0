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
                 way.parameters == WEFT_LOCATION_HOST ? "+host-parameters" : "");
        cr_assert_str_eq(weft_way_name(way), name);
        cr_assert_eq(weft_way_number(way), number);
        struct weft_way read = weft_way_at(WEFT_WAYS - 1 - number);
        cr_assert(weft_way_read(name, &read));
        cr_assert_eq(weft_way_number(read), number, "\"%s\"", name);
    }
}

/* Strategies of a unit are bits of 64, and only ways that policy and locations allow have one. */
Test(way, half_of_the_numbers_are_ways_of_a_unit)
{
    enum { WAYS_OF_A_UNIT = 30 };
    int allowed = 0;
    for (int number = 0; number < WEFT_WAYS; number++)
        allowed += weft_way_allowed(weft_way_at(number));
    cr_assert_eq(allowed, WAYS_OF_A_UNIT);
}

Test(way, parameters_of_a_node_may_be_on_the_host_and_are_not_updated_there)
{
    for (int keep = 0; keep < WEFT_KEEP_COUNT; keep++) {
        struct weft_way way = {WEFT_POLICY_NODES, (enum weft_keep)keep, WEFT_LOCATION_HOST};
        cr_assert_eq(weft_way_allowed(way), keep != WEFT_KEEP_HOST_UPDATE);
        way.policy = WEFT_POLICY_HSDP;
        cr_assert_not(weft_way_allowed(way));
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
