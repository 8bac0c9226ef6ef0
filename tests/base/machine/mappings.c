/* How much the system lets a process map. */
#include "base/machine/mappings.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static int64_t look_at(const char *text)
{
    char path[] = "/tmp/weft-mappings-XXXXXX";
    const int fd = mkstemp(path);
    cr_assert(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    const int64_t number = weft_map_limit_look(path);
    close(fd);
    unlink(path);
    return number;
}

Test(map_limits, are_numbers_that_the_system_says)
{
    cr_assert_eq(look_at("65530\n"), 65530);
    cr_assert_eq(look_at("2147483647\n"), 2147483647);
    cr_assert_eq(look_at(""), INT64_MAX);
    cr_assert_eq(look_at("many\n"), INT64_MAX);
    cr_assert_eq(look_at("0\n"), INT64_MAX);
    cr_assert_eq(weft_map_limit_look("/nowhere"), INT64_MAX);
}

Test(map_limits, bind_addresses_where_a_limit_is_set)
{
    struct rlimit limit;
    const rlim_t most = (rlim_t)64 << 40;
    cr_assert_eq(getrlimit(RLIMIT_AS, &limit), 0);
    if (limit.rlim_max < most) cr_skip_test("the limit is lower already");
    limit.rlim_cur = most;
    cr_assert_eq(setrlimit(RLIMIT_AS, &limit), 0);
    cr_assert_eq(weft_map_limits_read().address_bytes, (int64_t)most);
}
