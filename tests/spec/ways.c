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
    enum { N_NAMES = sizeof names / sizeof *names };
    int n = 0;
    for (int number = 0; number < WEFT_LAYER_CHOICES; number++) {
        struct weft_layer_choice choice, read = {0};
        if (!weft_layer_choice_at(number, &choice)) continue;
        cr_assert_eq(weft_layer_choice_number(choice), number);
        const char *name = weft_layer_choice_name(choice);
        const size_t length = strlen(names[n % N_NAMES]);
        const bool moves = choice.input_location == WEFT_LOCATION_HOST;
        cr_assert_eq(moves, n++ >= N_NAMES);
        cr_assert_eq(strncmp(name, names[(n - 1) % N_NAMES], length), 0, "%s", name);
        cr_assert_str_eq(name + length, moves ? "+host-input" : "");
        cr_assert(weft_layer_choice_read(weft_layer_choice_name(choice), &read));
        cr_assert_eq(weft_layer_choice_number(read), number);
    }
    cr_assert_eq(n, 2 * N_NAMES);
}

Test(ways, other_names_are_none)
{
    static const char *const others[] = {"",     "fsdp", "whole+host", "selective+",
                                         "none", "hos",  "hostx",      "host-input"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        struct weft_layer_choice choice = {WEFT_LOCATION_DISK, WEFT_RECOMPUTE_WHOLE,
                                           WEFT_LOCATION_DEVICE};
        cr_assert(!weft_layer_choice_read(others[i], &choice), "%s", others[i]);
        cr_assert(choice.saved_location == WEFT_LOCATION_DISK, "untouched on failure");
    }
}
