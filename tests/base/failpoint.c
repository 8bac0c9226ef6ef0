/* SPDX-License-Identifier: Apache-2.0 */
#include "base/failpoint.h"

#include <criterion/criterion.h>

static struct weft_failpoint parse_failpoint(const char *text)
{
    struct weft_error err = {0};
    struct weft_failpoint point;
    cr_assert_eq(weft_failpoint_parse(text, &point, &err), WEFT_OK, "%s", err.text);
    return point;
}

Test(failpoint, strikes_where_it_was_told_and_nowhere_else)
{
    struct weft_failpoint point = parse_failpoint("forward:rank=1:step=3:do=nan:at=7");
    cr_assert_eq(point.at, 7);
    cr_assert_eq(weft_failpoint_at(&point, "forward", 1, 3), WEFT_FAILURE_NAN);
    cr_assert_eq(weft_failpoint_at(&point, "forward", 0, 3), WEFT_FAILURE_NONE);
    cr_assert_eq(weft_failpoint_at(&point, "forward", 1, 4), WEFT_FAILURE_NONE);
    cr_assert_eq(weft_failpoint_at(&point, "backward", 1, 3), WEFT_FAILURE_NONE);
    point = parse_failpoint("save");
    cr_assert_eq(weft_failpoint_at(&point, "save", 5, 99), WEFT_FAILURE_KILL);
    point = parse_failpoint(NULL);
    cr_assert_eq(weft_failpoint_at(&point, "", 0, 0), WEFT_FAILURE_NONE);
    cr_assert_eq(weft_failpoint_at(NULL, "forward", 0, 0), WEFT_FAILURE_NONE);
}

Test(failpoint, refuses_what_is_none)
{
    static const char *const wrong[] = {"",
                                        ":rank=1",
                                        "forward:",
                                        "forward:rank=",
                                        "f:rank=-1",
                                        "f:rank=1x",
                                        "f:do=dance",
                                        "f:do=",
                                        "f:when=3",
                                        "f:step=1::",
                                        "a-place-with-a-name-that-is-too-long-to-be-one"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct weft_error err = {0};
        struct weft_failpoint point = {.at = 77};
        cr_assert_eq(weft_failpoint_parse(wrong[i], &point, &err), WEFT_E_USAGE, "%s", wrong[i]);
        cr_assert_eq(point.at, 77);
    }
}
