/* SPDX-License-Identifier: Apache-2.0 */
#include "base/checked.h"
#include "memory_model/weigh.h"
#include "memory_model/weigh_parts.h"

static bool add_scratch(int64_t scratch_bytes, int64_t *temporary_bytes)
{
    return weft_checked_round_up(scratch_bytes, WEFT_ARENA_ALIGN_BYTES, &scratch_bytes) &&
           weft_checked_add(*temporary_bytes, scratch_bytes, temporary_bytes);
}

/* Whether temporaries with scratch fit into 63 bits at every level. */
static bool fits_levels(const struct weft_layer_work *work)
{
    const int64_t most = work->forward_temporary_bytes > work->backward_temporary_bytes
                             ? work->forward_temporary_bytes
                             : work->backward_temporary_bytes;
    int64_t sum;
    for (int level = 0; level < WEFT_RECOMPUTE_COUNT; level++) {
        if (!weft_checked_add(most, work->splits[level].dropped_bytes, &sum) ||
            !weft_checked_add(sum, WEFT_ARENA_ALIGN_BYTES, &sum))
            return false;
    }
    return true;
}

int weft_weigh_timed_levels(const struct weft_weigh_options *options,
                            const struct weft_layer *layer, struct weft_pool *pool)
{
    const int all = (1 << WEFT_RECOMPUTE_COUNT) - 1;
    const char *key =
        options->profile == NULL ? NULL : weft_layer_key(pool, layer, &options->batch);
    const struct weft_layer_times *times =
        key == NULL ? NULL : weft_profile_times(options->profile, layer->name, key);
    return times == NULL || times->recomputes == 0 ? all : times->recomputes;
}

enum weft_status weft_weigh_layer_work(const struct weft_weigh_options *options,
                                       const struct weft_layer *layer, struct weft_pool *pool,
                                       struct weft_layer_work *out, struct weft_error *err)
{
    struct weft_layer_work work;
    WEFT_TRY(weft_layer_work(layer, &options->batch, &work, err));
    const char *key =
        options->profile == NULL ? NULL : weft_layer_key(pool, layer, &options->batch);
    if (options->profile != NULL && key == NULL) return weft_fail_memory(err, "a layer's key");
    const struct weft_layer_times *times =
        key == NULL ? NULL : weft_profile_times(options->profile, layer->name, key);
    if (times != NULL &&
        (!add_scratch(times->forward_scratch_bytes, &work.forward_temporary_bytes) ||
         !add_scratch(times->backward_scratch_bytes, &work.backward_temporary_bytes) ||
         !fits_levels(&work)))
        return weft_fail(err, WEFT_E_DATA,
                         "%s profile: the scratch of layer %s does not fit in 63 bits",
                         options->profile->source, layer->name);
    *out = work;
    return WEFT_OK;
}
