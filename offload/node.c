/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* syscall */
#include "offload/node.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MOST_NODES = 1024, WORD_BITS = 8 * sizeof(unsigned long), LIST_BYTES = 4096 };

/* From linux/mempolicy.h, which some machines lack. */
enum { PREFER_NODE = 1 };

/* Number of elements of `wanted` in a list like "0-3,8"; without `wanted`, the list's length. */
static int32_t count_listed(const char *list, const int32_t *wanted, int32_t n)
{
    int32_t count = 0;
    for (const char *at = list; *at >= '0' && *at <= '9';) {
        char *end;
        const long first = strtol(at, &end, 10);
        const long last = *end == '-' ? strtol(end + 1, &end, 10) : first;
        if (wanted == NULL) count += (int32_t)(last - first + 1);
        for (int32_t i = 0; i < n && wanted != NULL; i++)
            count += wanted[i] >= first && wanted[i] <= last;
        at = *end == ',' ? end + 1 : end;
    }
    return count;
}

static const char *read_list(const char *path, char out[LIST_BYTES])
{
    FILE *file = fopen(path, "re");
    if (file == NULL || fgets(out, LIST_BYTES, file) == NULL) out[0] = '\0';
    if (file != NULL) fclose(file);
    return out;
}

int32_t weft_node_of_cores(const char *directory, const int32_t *cores, int32_t n)
{
    char path[LIST_BYTES], list[LIST_BYTES];
    int32_t best = -1, most = 0, nodes = 0;
    snprintf(path, sizeof path, "%s/online", directory);
    nodes = count_listed(read_list(path, list), NULL, 0);
    for (int32_t node = 0; node < MOST_NODES && nodes > 1; node++) {
        snprintf(path, sizeof path, "%s/node%d/cpulist", directory, (int)node);
        const int32_t count = count_listed(read_list(path, list), cores, n);
        if (count > most) best = node;
        if (count > most) most = count;
    }
    return best;
}

void weft_node_prefer(int32_t node, void *at, size_t bytes)
{
    unsigned long mask[MOST_NODES / WORD_BITS] = {0};
    if (node < 0 || node >= MOST_NODES) return;
    mask[(size_t)node / WORD_BITS] = 1UL << (size_t)node % WORD_BITS;
#ifdef SYS_mbind
    /* On failure memory comes from any node, which is slower and otherwise equal. */
    (void)syscall(SYS_mbind, at, bytes, PREFER_NODE, mask, (unsigned long)MOST_NODES + 1, 0);
#else
    (void)at;
    (void)bytes;
#endif
}
