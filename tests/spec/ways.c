/* SPDX-License-Identifier: Apache-2.0 */
#include "spec/ways.h"

#include <criterion/criterion.h>
#include <string.h>

/* Plan files hold only the names, so each must lead back to its choice. */
Test(ways, names_of_alternatives_are_looked_up)
{
    static const char *const names[] = {
        "device",    "host",           "disk",           "light",  "light+host",  "light+disk",
        "selective", "selective+host", "selective+disk", "medium", "medium+host", "medium+disk",
        "deep",      "deep+host",      "deep+disk",      "whole"};
    int n = 0;
    for (int number = 0; number < WEFT_LAYER_CHOICES; number++) {
        struct weft_layer_choice choice, read = {0};
        if (!weft_layer_choice_at(number, &choice)) continue;
        cr_assert_eq(weft_layer_choice_number(choice), number);
        cr_assert_str_eq(weft_layer_choice_name(choice), names[n++]);
        cr_assert(weft_layer_choice_read(weft_layer_choice_name(choice), &read));
        cr_assert(read.saved_home == choice.saved_home && read.recompute == choice.recompute);
    }
    cr_assert_eq(n, (int)(sizeof names / sizeof *names));
}

Test(ways, other_names_are_none)
{
    static const char *const others[] = {"",     "fsdp", "whole+host", "selective+",
                                         "none", "hos",  "hostx"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        struct weft_layer_choice choice = {WEFT_HOME_DISK, WEFT_RECOMPUTE_WHOLE};
        cr_assert(!weft_layer_choice_read(others[i], &choice), "%s", others[i]);
        cr_assert(choice.saved_home == WEFT_HOME_DISK, "untouched on failure");
    }
}
