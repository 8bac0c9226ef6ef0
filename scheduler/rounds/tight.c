#include "scheduler/rounds/tight.h"

#include <stdlib.h>
#include <string.h>

int64_t weft_tight_room(const struct weft_digest *table, int64_t *room_bytes)
{
    int64_t most = 0;
    weft_digest_lean_rows(table, table->leanest, room_bytes, NULL);
    for (int32_t s = 0; s < table->n_slots; s++) {
        room_bytes[s] = table->problem->memory_limit_bytes - room_bytes[s];
        if (room_bytes[s] < 0) room_bytes[s] = 0;
        if (room_bytes[s] > most) most = room_bytes[s];
    }
    return most;
}

static int64_t held(const int64_t *room_bytes, int32_t slot, int64_t bytes)
{
    return room_bytes[slot] < bytes ? room_bytes[slot] : bytes;
}

enum weft_status weft_tight_create(const struct weft_problem *problem, const int64_t *room_bytes,
                                   int64_t bytes, struct weft_tight *out, struct weft_error *err)
{
    size_t n = (size_t)problem->n_common;
    *out = (struct weft_tight){.problem = *problem};
    out->common = calloc(n + (size_t)problem->n_slots + 1, sizeof *out->common);
    if (!out->common) return weft_fail_memory(err, "a tighter problem");
    if (n > 0) memcpy(out->common, problem->common, n * sizeof *out->common);
    for (int32_t s = 0; s < problem->n_slots;) {
        int32_t first = s;
        int64_t more = held(room_bytes, s, bytes);
        while (s < problem->n_slots && held(room_bytes, s, bytes) == more)
            s++;
        if (more > 0)
            out->common[n++] = (struct weft_hold){WEFT_CATEGORY_TEMPORARY, first, s - 1, more};
    }
    out->problem.common = out->common;
    out->problem.n_common = (int32_t)n;
    return WEFT_OK;
}

void weft_tight_finish(struct weft_tight *tight)
{
    free(tight->common);
    *tight = (struct weft_tight){0};
}
