/* SPDX-License-Identifier: Apache-2.0 */
#include "base/status.h"

#include <criterion/criterion.h>
#include <string.h>
#include <sys/resource.h>

#include "tests/effort.h"

Test(status, exit_codes_are_those_of_sysexits_and_go_back)
{
    cr_assert_eq(weft_status_exit_code(WEFT_OK), 0);
    cr_assert_eq(weft_status_exit_code(WEFT_E_DATA), 65);
    cr_assert_eq(weft_status_exit_code(WEFT_E_INFEASIBLE), 78);
    for (int i = 0; i < WEFT_STATUS_COUNT; i++) {
        enum weft_status status = (enum weft_status)i;
        cr_assert_eq(weft_status_of_exit_code(weft_status_exit_code(status)), status);
        cr_assert_neq(weft_status_text(status)[0], '\0');
    }
}

Test(status, unknown_values_are_internal_errors)
{
    cr_assert_eq(weft_status_of_exit_code(-1), WEFT_E_INTERNAL);
    cr_assert_eq(weft_status_of_exit_code(200), WEFT_E_INTERNAL);
    cr_assert_eq(weft_status_exit_code((enum weft_status)1000), 70);
    cr_assert_str_eq(weft_status_text((enum weft_status) - 1), "internal error");
}

Test(status, the_first_error_wins)
{
    struct weft_error err = {0};
    cr_assert_eq(weft_fail(&err, WEFT_E_DATA, "%s:%d", "run.json", 3), WEFT_E_DATA);
    cr_assert_eq(weft_fail(&err, WEFT_E_IO, "later"), WEFT_E_IO);
    cr_assert_eq(err.status, WEFT_E_DATA);
    cr_assert_str_eq(err.text, "run.json:3");
    cr_assert_eq(weft_fail(NULL, WEFT_E_HANG, "nobody listens"), WEFT_E_HANG);
}

Test(status, a_long_message_is_cut_visibly)
{
    struct weft_error err = {0};
    char message[WEFT_ERROR_TEXT_BYTES + 1];
    memset(message, 'x', sizeof message);
    message[WEFT_ERROR_TEXT_BYTES] = '\0';
    weft_fail(&err, WEFT_E_DATA, "%s", message);
    cr_assert_eq(strlen(err.text), WEFT_ERROR_TEXT_BYTES - 1);
    cr_assert_str_eq(err.text + WEFT_ERROR_TEXT_BYTES - 5, "x...");

    /* The longest that fits is whole. */
    err = (struct weft_error){0};
    message[WEFT_ERROR_TEXT_BYTES - 1] = '\0';
    weft_fail(&err, WEFT_E_DATA, "%s", message);
    cr_assert_str_eq(err.text, message);
}

Test(status, an_error_of_one_rank_keeps_its_rank_when_another_text_quotes_it)
{
    struct weft_error own = {0}, met = {0}, told = {0};
    weft_fail(&own, WEFT_E_IO, "rank 7: is only text");
    cr_assert_eq(own.of_rank, 0);
    cr_assert_eq(weft_fail_of_rank(&met, WEFT_E_IO, 2, "no space"), WEFT_E_IO);
    cr_assert_eq(met.of_rank, 3);
    cr_assert_eq(weft_fail_again(&told, &met, "step 4: %s", met.text), WEFT_E_IO);
    cr_assert_str_eq(told.text, "step 4: rank 2: no space");
    cr_assert_eq(told.of_rank, 3);
    cr_assert_eq(told.exit_code, weft_status_exit_code(WEFT_E_IO));
    cr_assert_eq(weft_fail_again(NULL, &met, "nobody listens"), WEFT_E_IO);
    cr_assert_eq(weft_fail_of_rank(&own, WEFT_E_IO, 1, "later"), WEFT_E_IO);
    cr_assert_eq(own.of_rank, 0, "the first fact wins");
}

Test(status, a_source_is_named_once)
{
    struct weft_error met = {0}, told = {0}, again = {0};
    weft_fail(&met, WEFT_E_DATA, "the plan was changed");
    cr_assert_eq(weft_fail_in(&told, &met, "a.json"), WEFT_E_DATA);
    cr_assert_str_eq(told.text, "a.json: the plan was changed");
    weft_fail_in(&again, &told, "a.json");
    cr_assert_str_eq(again.text, told.text);
}

Test(status, memory_failure_names_what)
{
    struct weft_error err = {0};
    cr_assert_eq(weft_fail_memory(&err, "the plan"), WEFT_E_SYSTEM);
    cr_assert_not_null(strstr(err.text, "out of memory for the plan: free some memory"));
}

Test(status, memory_failure_names_the_limit_that_is_set)
{
    struct weft_error err = {0};
    const struct rlimit limit = {INT64_C(1) << 40, INT64_C(1) << 40};
    if (TEST_SANITIZED) cr_skip_test("a sanitizer has more memory than the limit");
    cr_assert_eq(setrlimit(RLIMIT_DATA, &limit), 0);
    cr_assert_eq(weft_fail_memory(&err, "the plan"), WEFT_E_SYSTEM);
    cr_assert_not_null(strstr(err.text, "out of memory for the plan: the process's own memory is "
                                        "limited to 1048576.0 MiB (RLIMIT_DATA)"),
                       "%s", err.text);
}

static enum weft_status try_twice(enum weft_status first, int *reached)
{
    WEFT_TRY(first);
    *reached += 1;
    return WEFT_OK;
}

static enum weft_status try_goto(enum weft_status first, int *cleaned)
{
    enum weft_status status;
    WEFT_TRY_GOTO(done, first);
    *cleaned += 10;
done:
    *cleaned += 1;
    return status;
}

Test(status, try_returns_or_goes_on)
{
    int count = 0;
    cr_assert_eq(try_twice(WEFT_E_LOST, &count), WEFT_E_LOST);
    cr_assert_eq(count, 0);
    cr_assert_eq(try_twice(WEFT_OK, &count), WEFT_OK);
    cr_assert_eq(count, 1);
    count = 0;
    cr_assert_eq(try_goto(WEFT_E_LOST, &count), WEFT_E_LOST);
    cr_assert_eq(count, 1);
    cr_assert_eq(try_goto(WEFT_OK, &count), WEFT_OK);
    cr_assert_eq(count, 12);
}
