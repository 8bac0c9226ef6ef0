/* A process's memory outside the arena is counted: its own pages, and those of files. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/measure/measure.h"
#include "tests/runtime/exec/job.h"

enum { BYTES = 16 << 20, SLACK = 1 << 20 };

static void touch(const char *pages)
{
    static volatile char sum;
    for (size_t at = 0; at < BYTES; at += 512)
        sum = (char)(sum + pages[at]);
}

/* Like the pages of a library. */
static void pages_of_a_file_count(void)
{
    FILE *file = tmpfile();
    char *bytes = calloc(1, BYTES);
    CHECK(file && bytes && fwrite(bytes, 1, BYTES, file) == BYTES && fflush(file) == 0, "no file");
    free(bytes);
    weft_measure_trim();
    int64_t before = weft_measure_resident_bytes();
    char *mapped = mmap(NULL, BYTES, PROT_READ, MAP_PRIVATE, fileno(file), 0);
    CHECK(mapped != MAP_FAILED, "not mapped");
    touch(mapped);
    int64_t more = weft_measure_resident_bytes() - before;
    CHECK(more >= BYTES - SLACK && more <= BYTES + SLACK, "%lld bytes more", (long long)more);
    munmap(mapped, BYTES);
    fclose(file);
}

static void pages_of_its_own_count(void)
{
    int64_t before = weft_measure_resident_bytes();
    char *own = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(own != MAP_FAILED, "not mapped");
    memset(own, 1, BYTES);
    int64_t more = weft_measure_resident_bytes() - before;
    CHECK(more >= BYTES - SLACK && more <= BYTES + SLACK, "%lld bytes more", (long long)more);
    munmap(own, BYTES);
}

RANKS_TEST(memory)
{
    pages_of_a_file_count();
    pages_of_its_own_count();
    return 0;
}
