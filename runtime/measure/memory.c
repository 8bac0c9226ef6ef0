#include <fcntl.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/measure/measure.h"

void weft_measure_trim(void)
{
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

/* Read without stdio, because to allocate while counting memory would count itself. */
int64_t weft_measure_anonymous_bytes(void)
{
    char text[4096];
    int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    ssize_t length = read(fd, text, sizeof text - 1);
    close(fd);
    if (length <= 0) return 0;
    text[length] = '\0';
    const char *line = strstr(text, "\nRssAnon:");
    return line == NULL ? 0 : (int64_t)strtoll(line + strlen("\nRssAnon:"), NULL, 10) * 1024;
}
