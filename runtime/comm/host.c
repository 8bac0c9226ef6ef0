/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* gethostname, readlink */
#include "runtime/comm/host.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { IDENTITY_BYTES = 256 };

const char *weft_host_name(char out[WEFT_HOST_NAME_BYTES])
{
    if (gethostname(out, WEFT_HOST_NAME_BYTES - 1) != 0) out[0] = '\0';
    out[WEFT_HOST_NAME_BYTES - 1] = '\0';
    return out;
}

/* Returns the bytes read; 0 if the file cannot be read. */
static size_t read_boot_id(char *out, size_t most)
{
    const int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd >= 0 ? read(fd, out, most) : -1;
    if (fd >= 0) close(fd);
    return n > 0 ? (size_t)n : 0;
}

static size_t identify_kernel(char out[IDENTITY_BYTES])
{
    char name[WEFT_HOST_NAME_BYTES];
    const size_t n = read_boot_id(out, IDENTITY_BYTES / 2);
    if (n > 0) return n;
    const size_t length = strlen(weft_host_name(name));
    memcpy(out, name, length);
    return length;
}

struct weft_hash weft_host_of_memory(void)
{
    char identity[IDENTITY_BYTES];
    return weft_hash_bytes(identity, identify_kernel(identity));
}

struct weft_hash weft_host_of_network(void)
{
    char identity[IDENTITY_BYTES];
    size_t n = identify_kernel(identity);
    const ssize_t more = readlink("/proc/self/ns/net", identity + n, IDENTITY_BYTES - n);
    return weft_hash_bytes(identity, more > 0 ? n + (size_t)more : n);
}
