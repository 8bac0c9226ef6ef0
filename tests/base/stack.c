/* SPDX-License-Identifier: Apache-2.0 */
#include "base/stack.h"

#include <criterion/criterion.h>
#include <string.h>
#include <sys/resource.h>

static enum weft_status with_limit(rlim_t bytes, struct weft_error *err)
{
    struct rlimit limit;
    cr_assert_eq(getrlimit(RLIMIT_STACK, &limit), 0);
    limit.rlim_cur = bytes;
    cr_assert_eq(setrlimit(RLIMIT_STACK, &limit), 0);
    return weft_stack_check(err);
}

Test(stack, a_limit_that_is_too_small_is_an_error)
{
    struct weft_error err = {0};
    cr_assert_eq(with_limit(WEFT_STACK_LEAST_BYTES, &err), WEFT_OK);
    cr_assert_eq(with_limit(WEFT_STACK_LEAST_BYTES - 4096, &err), WEFT_E_SYSTEM);
    cr_assert_not_null(strstr(err.text, "508 KiB"), "%s", err.text);
    cr_assert_not_null(strstr(err.text, "ulimit -s"), "%s", err.text);
}
