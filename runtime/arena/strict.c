/* The CPU's arena with inaccessible addresses. */
#include "runtime/device/strict.h"
#include "runtime/arena/cpu.h"

static enum weft_status strict_open(int fd, struct weft_arena **out, struct weft_error *err)
{
    return weft_arena_cpu_open(&weft_arena_strict, WEFT_STRICT_SHIFT_BYTES, fd, out, err);
}

const struct weft_arena_ops weft_arena_strict = {
    .name = "strict",
    .open = strict_open,
    WEFT_ARENA_CPU_FUNCTIONS,
};
