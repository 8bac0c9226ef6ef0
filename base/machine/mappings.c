#include "base/machine/mappings.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

enum { NUMBER_CHARS = 32 };

/* No stdio, which would ask for memory. */
int64_t weft_map_limit_look(const char *path)
{
    char text[NUMBER_CHARS] = "", *end = text;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return INT64_MAX;
    const ssize_t length = read(fd, text, sizeof text - 1);
    close(fd);
    const int64_t number = length > 0 ? strtoll(text, &end, 10) : 0;
    return end != text && number > 0 ? number : INT64_MAX;
}

struct weft_map_limits weft_map_limits_read(void)
{
    struct weft_map_limits limits = {weft_map_limit_look("/proc/sys/vm/max_map_count"), INT64_MAX};
    struct rlimit space;
    if (getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY &&
        space.rlim_cur <= (rlim_t)INT64_MAX)
        limits.address_bytes = (int64_t)space.rlim_cur;
    return limits;
}
