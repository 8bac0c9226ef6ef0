#include "memory_model/layout/layout.h"

#include "memory_model/layout/packing.h"
#include "memory_model/layout/repair.h"
#include "memory_model/layout/seed.h"

enum weft_status weft_layout(struct weft_layout_buffer *buffers, int32_t n_buffers, int32_t n_slots,
                             int32_t effort, struct weft_budget budget, int64_t *end_bytes,
                             int64_t *live_bytes, struct weft_error *err)
{
    /* In tenants looked at, of which 400 million take about a second; a small layout needs less of
     * it. From effort 0 on seeds take the same, so that more effort goes on where less ends. */
    static const struct {
        int64_t seed_work, most_work, per_pair;
    } efforts[] = {{4000000, 4000000, 400},
                   {80000000, 40000000, 200},
                   {80000000, 500000000, 2500},
                   {80000000, 2500000000, 12500}};
    int32_t level = effort < 0 ? 0 : effort < 2 ? effort + 1 : 3;
    struct weft_pool pool = {0};
    struct weft_packing packing;
    enum weft_status status;
    WEFT_TRY_GOTO(done, weft_packing_fill(&packing, &pool, buffers, n_buffers, n_slots, err));
    packing.budget = budget;
    WEFT_TRY_GOTO(done, weft_packing_seed(&packing, &pool, efforts[level].seed_work, err));
    int64_t pairs = (int64_t)packing.n_bodies * packing.n_bodies, work = efforts[level].most_work;
    if (pairs < work / efforts[level].per_pair) work = pairs * efforts[level].per_pair;
    WEFT_TRY_GOTO(done, weft_packing_repair(&packing, &pool, work, err));
    /* Residents lie at the bottom: each shuts its addresses to all others for the whole period, so
     * where it lies changes nothing. */
    int64_t floor_bytes = 0;
    for (int32_t i = 0; i < n_buffers; i++) {
        buffers[i].offset = floor_bytes;
        if (weft_packing_is_resident(&buffers[i], n_slots)) floor_bytes += buffers[i].bytes;
    }
    for (int32_t b = 0; b < packing.n_bodies; b++)
        buffers[packing.bodies[b].buffer].offset = floor_bytes + packing.best_offsets[b];
    *end_bytes = floor_bytes + packing.best_bytes;
    *live_bytes = floor_bytes + packing.least_bytes;
done:
    weft_pool_finish(&pool);
    return status;
}
