/* SPDX-License-Identifier: Apache-2.0 */
#include "base/pool.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 64, LEAST_CHUNK_BYTES = 4096, MOST_CHUNK_BYTES = 1 << 20 };

struct weft_pool_chunk {
    struct weft_pool_chunk *next;
    char *start;     /* first aligned byte after this header */
    size_t capacity; /* bytes from start */
    size_t used;     /* a multiple of ALIGNMENT */
};

void weft_pool_init(struct weft_pool *pool)
{
    pool->chunks = NULL;
}

void weft_pool_finish(struct weft_pool *pool)
{
    while (pool->chunks != NULL) {
        struct weft_pool_chunk *chunk = pool->chunks;
        pool->chunks = chunk->next;
        free(chunk);
    }
}

static struct weft_pool_chunk *make_chunk(size_t capacity)
{
    const size_t overhead = sizeof(struct weft_pool_chunk) + ALIGNMENT;
    if (capacity > SIZE_MAX - overhead) return NULL;
    /* calloc, because the system's pages for large chunks are zero already. */
    struct weft_pool_chunk *chunk = calloc(1, overhead + capacity);
    if (chunk == NULL) return NULL;
    uintptr_t behind = (uintptr_t)(chunk + 1);
    size_t gap = (ALIGNMENT - behind % ALIGNMENT) % ALIGNMENT;
    chunk->start = (char *)(chunk + 1) + gap;
    chunk->capacity = capacity;
    return chunk;
}

/* Adds a chunk of at least `bytes` to the pool. A large chunk goes after the newest, which keeps
 * serving small requests. */
static struct weft_pool_chunk *grow_pool(struct weft_pool *pool, size_t bytes)
{
    struct weft_pool_chunk *newest = pool->chunks;
    size_t usual = newest == NULL ? LEAST_CHUNK_BYTES : 2 * newest->capacity;
    if (usual > MOST_CHUNK_BYTES) usual = MOST_CHUNK_BYTES;
    bool own = newest != NULL && bytes > usual / 4;
    struct weft_pool_chunk *chunk = make_chunk(own || bytes > usual ? bytes : usual);
    if (chunk == NULL) return NULL;
    struct weft_pool_chunk **link = own ? &newest->next : &pool->chunks;
    chunk->next = *link;
    *link = chunk;
    return chunk;
}

void *weft_pool_array(struct weft_pool *pool, size_t count, size_t size)
{
    if (size != 0 && count > (SIZE_MAX - ALIGNMENT) / size) return NULL;
    size_t bytes = (count * size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    /* An empty array also gets its own address. */
    if (bytes == 0) bytes = ALIGNMENT;
    struct weft_pool_chunk *chunk = pool->chunks;
    if (chunk == NULL || chunk->capacity - chunk->used < bytes) chunk = grow_pool(pool, bytes);
    if (chunk == NULL) return NULL;
    void *array = chunk->start + chunk->used;
    chunk->used += bytes;
    return array;
}

char *weft_pool_string(struct weft_pool *pool, const char *string)
{
    size_t bytes = strlen(string) + 1;
    char *copy = weft_pool_array(pool, bytes, 1);
    if (copy != NULL) memcpy(copy, string, bytes);
    return copy;
}

char *weft_pool_format(struct weft_pool *pool, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (length < 0) return NULL;
    char *string = weft_pool_array(pool, (size_t)length + 1, 1);
    if (string == NULL) return NULL;
    va_start(arguments, format);
    vsnprintf(string, (size_t)length + 1, format, arguments);
    va_end(arguments);
    return string;
}
