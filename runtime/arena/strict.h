/* The strict device's arena: the CPU's, whose addresses nobody can touch (runtime/device/strict.h).
 */
#ifndef WEFT_RUNTIME_ARENA_STRICT_H
#define WEFT_RUNTIME_ARENA_STRICT_H

#include "runtime/arena/backend.h"

extern const struct weft_arena_ops weft_arena_strict;

#endif
