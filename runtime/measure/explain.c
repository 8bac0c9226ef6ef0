/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "runtime/measure/parts.h"

enum { PARTS = 64 };

/* A slot's time with `rest` of PARTS of the difference between the slowest and the mean rank not
 * paid. */
static struct weft_pass_times paid_times(const struct measure_layer *at, int64_t rest)
{
    return (struct weft_pass_times){
        at->forward_ns - (at->forward_ns - at->mean_forward_ns) * rest / PARTS,
        at->backward_ns - (at->backward_ns - at->mean_backward_ns) * rest / PARTS};
}

/* Sets the times of layers. In each slot the slowest rank takes longer than the mean over ranks,
 * and a step pays `part` of PARTS of that difference. With contention ranks wait for one another at
 * every slot, so layers pay all of it. Then compute's rate rises by the share that an overlapped
 * step does not pay. */
static void pay_difference(struct weft_profile *profile, const struct measure_rehearsal *rehearsal,
                           int64_t part)
{
    bool contention = rehearsal->rates.compute > 0;
    int64_t rest = contention ? 0 : PARTS - part, most_ns = 0, mean_ns = 0;
    for (int32_t row = 0; row < WEFT_RECOMPUTE_COUNT * profile->n_layers; row++) {
        const int32_t level = row / profile->n_layers;
        struct weft_layer_times *times = &profile->layers[row % profile->n_layers];
        if (level > 0 && (times->recomputes & 1 << level) == 0) continue;
        const struct measure_layer *at = &rehearsal->layers[row];
        const struct weft_pass_times paid = paid_times(at, rest);
        times->levels[level] = (struct weft_level_times){.forward_ns = paid.forward_ns,
                                                         .backward_ns = paid.backward_ns};
        if (rehearsal->pass_first != NULL) {
            times->levels[level].pass_first = paid_times(&rehearsal->pass_first[row], rest);
            times->levels[level].pass_later = paid_times(&rehearsal->pass_later[row], rest);
        }
        if (level == 0) {
            times->forward_ns = paid.forward_ns;
            times->backward_ns = paid.backward_ns;
        }
        most_ns += at->forward_ns + at->backward_ns;
        mean_ns += at->mean_forward_ns + at->mean_backward_ns;
    }
    profile->rates = rehearsal->rates;
    if (!contention || mean_ns == 0) return;
    double paid = (double)mean_ns + (double)(most_ns - mean_ns) * (double)part / PARTS;
    double rate = profile->rates.compute * (double)most_ns / paid;
    profile->rates.compute = rate < WEFT_RATE_ONE ? (int32_t)lround(rate) : WEFT_RATE_ONE;
}

enum weft_status weft_measure_explain(struct weft_profile *profile,
                                      const struct measure_rehearsal *rehearsal,
                                      measure_step_fn *step, void *context, struct weft_error *err)
{
    int64_t least = 0, most = PARTS, step_ns;
    while (least < most) {
        int64_t part = (least + most + 1) / 2;
        pay_difference(profile, rehearsal, part);
        WEFT_TRY(step(context, &step_ns, err));
        if (step_ns <= rehearsal->step_ns) {
            least = part;
        } else {
            most = part - 1;
        }
    }
    pay_difference(profile, rehearsal, least);
    return WEFT_OK;
}
