/* SPDX-License-Identifier: Apache-2.0 */
/* How much the system lets a process map. */
#include "base/machine/mappings.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/effort.h"

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

/* Bytes that this process has, by a line of /proc/self/status. */
static int64_t bytes_of(const char *name)
{
    char line[128];
    long long kib = 0;
    FILE *file = fopen("/proc/self/status", "r");
    cr_assert_not_null(file);
    while (fgets(line, sizeof line, file) != NULL && strncmp(line, name, strlen(name)) != 0) {
    }
    cr_assert_eq(sscanf(line + strlen(name), ": %lld kB", &kib), 1, "%s", line);
    fclose(file);
    return kib * 1024;
}

static void leave_room(int resource, const char *used, int64_t room_bytes)
{
    struct rlimit limit;
    cr_assert_eq(getrlimit((__rlimit_resource_t)resource, &limit), 0);
    limit.rlim_cur = (rlim_t)(bytes_of(used) + room_bytes);
    cr_assert_eq(setrlimit((__rlimit_resource_t)resource, &limit), 0);
}

static const int64_t one_mib = INT64_C(1) << 20;

Test(map_refusal, names_the_limit_that_binds)
{
    char text[WEFT_REFUSAL_BYTES] = "untouched";
    cr_assert_not(weft_map_refuses(one_mib, one_mib, text, sizeof text));
    leave_room(RLIMIT_DATA, "VmData", 8 * one_mib);
    cr_assert_not(weft_map_refuses(4 * one_mib, INT64_C(1) << 40, text, sizeof text));
    cr_assert_str_eq(text, "untouched");
    cr_assert(weft_map_refuses(12 * one_mib, 0, text, sizeof text));
    cr_assert_not_null(strstr(text, "own memory is limited to "), "%s", text);
    cr_assert_not_null(strstr(text, "(RLIMIT_DATA), and it uses "), "%s", text);
    cr_assert_not_null(strstr(text, "ulimit -d"), "%s", text);
    if (TEST_SANITIZED) return; /* a sanitizer has more addresses than a limit leaves */
    leave_room(RLIMIT_AS, "VmSize", 8 * one_mib);
    cr_assert_not(weft_map_refuses(2 * one_mib, 2 * one_mib, text, sizeof text));
    cr_assert(weft_map_refuses(2 * one_mib, 10 * one_mib, text, sizeof text));
    cr_assert_not_null(strstr(text, "address space is limited to "), "%s", text);
    cr_assert_not_null(strstr(text, "ulimit -v"), "%s", text);
}

Test(map_refusal, of_a_thread_is_for_its_stack_or_for_their_number)
{
    char text[WEFT_REFUSAL_BYTES];
    weft_thread_refusal(EAGAIN, text, sizeof text);
    cr_assert_not_null(strstr(text, "ulimit -u"), "%s", text);
    leave_room(RLIMIT_DATA, "VmData", weft_thread_stack_bytes() / 2);
    weft_thread_refusal(EAGAIN, text, sizeof text);
    cr_assert_not_null(strstr(text, "ulimit -d"), "%s", text);
    cr_assert_null(strstr(text, "ulimit -u"), "%s", text);
    if (TEST_SANITIZED) return;
    leave_room(RLIMIT_AS, "VmSize", weft_thread_stack_bytes() / 2);
    weft_thread_refusal(EAGAIN, text, sizeof text);
    cr_assert_not_null(strstr(text, "ulimit -v"), "%s", text);
}
