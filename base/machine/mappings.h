/* How much memory the system lets a process map, as far as it says. */
#ifndef WEFT_BASE_MACHINE_MAPPINGS_H
#define WEFT_BASE_MACHINE_MAPPINGS_H

#include <stdint.h>

struct weft_map_limits {
    int64_t mappings;      /* vm.max_map_count; INT64_MAX: none is known */
    int64_t address_bytes; /* RLIMIT_AS; INT64_MAX: none */
};

/* Takes no memory. */
struct weft_map_limits weft_map_limits_read(void);
/* The number in a file such as /proc/sys/vm/max_map_count; INT64_MAX when there is none. */
int64_t weft_map_limit_look(const char *path);

#endif
