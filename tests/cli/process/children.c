/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/process/children.h"

#include <criterion/criterion.h>
#include <signal.h>

Test(children, a_signal_that_nobody_waits_for_is_told_at_the_end)
{
    struct weft_error error = {0};
    weft_children_begin();
    cr_assert(raise(SIGTERM) == 0);
    cr_assert(weft_children_end(WEFT_OK, &error) == WEFT_E_STOPPED);
    cr_assert_str_eq(error.text, "stopped by signal 15");
}

Test(children, a_failure_comes_before_a_late_signal)
{
    struct weft_error error = {0};
    weft_children_begin();
    cr_assert(raise(SIGUSR1) == 0);
    cr_assert(weft_children_end(WEFT_E_DATA, &error) == WEFT_E_DATA && error.status == WEFT_OK);
    weft_children_begin();
    cr_assert(weft_children_end(WEFT_OK, &error) == WEFT_OK, "an earlier signal is told again");
}

Test(children, signals_have_their_handlers_again, .signal = SIGTERM)
{
    weft_children_begin();
    cr_assert(weft_children_end(WEFT_OK, NULL) == WEFT_OK);
    raise(SIGTERM);
}
