#include "program/predict.h"

#include <inttypes.h>
#include <stdlib.h>

#include "program/trace.h"

/* Predicts all but arena_bytes and total_bytes, which stay unchanged. */
static enum weft_status predict_plan(const struct weft_plan *plan, struct weft_prediction *out,
                                     struct weft_error *err)
{
    int64_t *scratch = calloc(weft_simulate_words(plan->problem), sizeof *scratch);
    if (scratch == NULL) return weft_fail_memory(err, "prediction");
    weft_simulate_plan(plan, scratch, out);
    free(scratch);
    out->peak_bytes = weft_plan_peak(plan, 0, &out->peak_slot);
    return out->peak_bytes < 0 ? weft_fail_memory(err, "memory rows") : WEFT_OK;
}

enum weft_status weft_plan_predict(struct weft_plan *plan, struct weft_error *err)
{
    struct weft_prediction prediction = plan->prediction;
    WEFT_TRY(predict_plan(plan, &prediction, err));
    plan->prediction = prediction;
    return WEFT_OK;
}

static enum weft_status check_decision(const struct weft_plan *plan, struct weft_error *err)
{
    char said[WEFT_HASH_TEXT_BYTES], found[WEFT_HASH_TEXT_BYTES];
    struct weft_hash hash = weft_plan_decision_hash(plan);
    if (!plan->decision_hash || weft_hash_equal(*plan->decision_hash, hash)) return WEFT_OK;
    return weft_fail(err, WEFT_E_DATA,
                     "the plan says that its decision_hash is %s, its strategies, placements and "
                     "pages have %s: they were changed since it was written; plan again",
                     weft_hash_show(*plan->decision_hash, said), weft_hash_show(hash, found));
}

enum weft_status weft_plan_check_prediction(const struct weft_plan *plan, struct weft_error *err)
{
    const struct weft_prediction *said = &plan->prediction;
    struct weft_prediction found = {0};
    WEFT_TRY(predict_plan(plan, &found, err));
    const struct {
        const char *name;
        int64_t said, found;
    } figures[] = {
        {"step_ns", said->step_ns, found.step_ns},
        {"exposed_ns", said->exposed_ns, found.exposed_ns},
        {"compute_ns", said->compute_ns, found.compute_ns},
        {"slowdown_ns", said->slowdown_ns, found.slowdown_ns},
        {"channel_ns", said->channel_ns, found.channel_ns},
        {"peak_bytes", said->peak_bytes, found.peak_bytes},
        {"peak_slot", said->peak_slot, found.peak_slot},
    };
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
        if (figures[i].said == figures[i].found) continue;
        return weft_fail(err, WEFT_E_DATA,
                         "the plan says that its %s is %" PRId64 ", its placements give %" PRId64
                         ": plan again",
                         figures[i].name, figures[i].said, figures[i].found);
    }
    const int64_t bound_ns =
        plan->bound_ns > plan->paged_bound_ns ? plan->bound_ns : plan->paged_bound_ns;
    if (bound_ns <= found.step_ns) return check_decision(plan, err);
    return weft_fail(err, WEFT_E_DATA,
                     "the plan says that no step is below %" PRId64 " ns, its own takes %" PRId64
                     ": plan again",
                     bound_ns, found.step_ns);
}
