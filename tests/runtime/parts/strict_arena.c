/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "runtime/arena/cpu.h"
#include "tests/runtime/parts/strict.h"

/* The CPU's arena, at addresses that no process may touch. */
static const struct weft_arena_ops strict_arena_ops = {
    .name = "strict",
    WEFT_ARENA_CPU_FUNCTIONS,
};

enum weft_status __real_weft_arena_open(const char *name, int fd, struct weft_arena **out,
                                        struct weft_error *err);
enum weft_status __wrap_weft_arena_open(const char *name, int fd, struct weft_arena **out,
                                        struct weft_error *err);
enum weft_status __wrap_weft_arena_open(const char *name, int fd, struct weft_arena **out,
                                        struct weft_error *err)
{
    if (strcmp(name, "strict") == 0)
        return weft_arena_cpu_open(&strict_arena_ops, WEFT_STRICT_SHIFT_BYTES, fd, out, err);
    return __real_weft_arena_open(name, fd, out, err);
}
