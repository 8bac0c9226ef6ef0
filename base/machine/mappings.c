/* SPDX-License-Identifier: Apache-2.0 */
#include "base/machine/mappings.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { NUMBER_CHARS = 32, STATUS_CHARS = 4096, KIB = 1024, MIB = 1024 * KIB };

/* Reads the beginning of a file without stdio, which would allocate memory. */
static bool read_text(const char *path, char *out, size_t capacity)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    const ssize_t length = read(fd, out, capacity - 1);
    close(fd);
    out[length > 0 ? length : 0] = '\0';
    return length > 0;
}

int64_t weft_map_limit_look(const char *path)
{
    char text[NUMBER_CHARS] = "", *end = text;
    const int64_t number = read_text(path, text, sizeof text) ? strtoll(text, &end, 10) : 0;
    return end != text && number > 0 ? number : INT64_MAX;
}

static int64_t read_limit(int resource)
{
    struct rlimit limit;
    if (getrlimit((__rlimit_resource_t)resource, &limit) != 0) return INT64_MAX;
    if (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur > (rlim_t)INT64_MAX) return INT64_MAX;
    return (int64_t)limit.rlim_cur;
}

struct weft_map_limits weft_map_limits_read(void)
{
    return (struct weft_map_limits){weft_map_limit_look("/proc/sys/vm/max_map_count"),
                                    read_limit(RLIMIT_AS), read_limit(RLIMIT_DATA)};
}

/* Bytes from a line "VmSize: 1234 kB" of /proc/self/status; 0: not known. */
static int64_t used_bytes(const char *status, const char *name)
{
    const char *line = strstr(status, name);
    return line != NULL ? strtoll(line + strlen(name), NULL, 10) * KIB : 0;
}

/* A memory limit: names, bytes, and the process's use. */
struct limited {
    const char *memory, *resource;
    char flag; /* option of ulimit */
    int64_t most, used;
};

static bool does_refuse(const struct limited *limited, int64_t bytes, char *out, size_t capacity)
{
    if (limited->most == INT64_MAX || limited->most - limited->used >= bytes) return false;
    snprintf(out, capacity,
             "the process's %s is limited to %.1f MiB (%s), and it uses %.1f MiB: raise it "
             "(ulimit -%c)",
             limited->memory, (double)limited->most / MIB, limited->resource,
             (double)limited->used / MIB, limited->flag);
    return true;
}

bool weft_map_refuses(int64_t data_bytes, int64_t other_bytes, char *out, size_t capacity)
{
    char status[STATUS_CHARS] = "";
    const struct weft_map_limits limits = weft_map_limits_read();
    (void)read_text("/proc/self/status", status, sizeof status);
    const struct limited addresses = {"address space", "RLIMIT_AS", 'v', limits.address_bytes,
                                      used_bytes(status, "\nVmSize:")};
    const struct limited own = {"own memory", "RLIMIT_DATA", 'd', limits.data_bytes,
                                used_bytes(status, "\nVmData:")};
    return does_refuse(&addresses, data_bytes + other_bytes, out, capacity) ||
           does_refuse(&own, data_bytes, out, capacity);
}

int64_t weft_thread_stack_bytes(void)
{
    static const int64_t unlimited_bytes = 2 * MIB, slack_bytes = MIB / 16;
    const int64_t limit = read_limit(RLIMIT_STACK);
    return (limit == INT64_MAX ? unlimited_bytes : limit) + slack_bytes;
}

void weft_thread_refusal(int error, char *out, size_t capacity)
{
    char limit[WEFT_REFUSAL_BYTES];
    if (weft_map_refuses(weft_thread_stack_bytes(), 0, limit, sizeof limit))
        snprintf(out, capacity, "there is no room for its stack: %s", limit);
    else
        snprintf(out, capacity,
                 "%s. Raise the limit of processes (ulimit -u, or pids.max of the cgroup) or start "
                 "fewer ranks",
                 strerror(error));
}
