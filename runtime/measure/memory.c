/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/exec/exec.h"
#include "runtime/measure/measure.h"

void weft_measure_trim(void)
{
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

static int64_t find_kib(const char *text, const char *key)
{
    const char *line = strstr(text, key);
    return line == NULL ? 0 : (int64_t)strtoll(line + strlen(key), NULL, 10) * 1024;
}

/* Reads without stdio, because an allocation would count itself. */
int64_t weft_measure_resident_bytes(void)
{
    char text[4096];
    int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    ssize_t length = read(fd, text, sizeof text - 1);
    close(fd);
    if (length <= 0) return 0;
    text[length] = '\0';
    return find_kib(text, "\nRssAnon:") + find_kib(text, "\nRssFile:");
}

int64_t weft_measure_outside_bytes(const struct weft_device *device, const struct weft_arena *arena,
                                   const struct weft_exec *exec, bool *exact)
{
    int64_t bytes = 0;
    *exact = true;
    if (weft_device_memory(device, &bytes, exact))
        bytes -= weft_arena_resident_bytes(arena);
    else
        bytes = weft_measure_resident_bytes() - weft_exec_tier_bytes(exec, WEFT_LOCATION_HOST);
    return bytes > 0 ? bytes : 0;
}
