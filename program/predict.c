/* SPDX-License-Identifier: Apache-2.0 */
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
    weft_simulate_mean(plan, scratch, out);
    free(scratch);
    out->peak_bytes = weft_plan_peak(plan, 0, &out->peak_slot);
    return out->peak_bytes < 0 ? weft_fail_memory(err, "memory rows") : WEFT_OK;
}

struct lane_launches {
    int64_t first_ns, latest_ns; /* of the launches seen */
    bool any;
};

static int64_t longest_wait(const struct weft_plan *plan, const struct weft_plan_times *times)
{
    const struct weft_problem *problem = plan->problem;
    struct lane_launches lanes[WEFT_MOST_LANES] = {0};
    int64_t longest_ns = 0, gap_ns = 0;
    for (int32_t i = 0; i < plan->n_placements; i++) {
        const int32_t lane = problem->items[plan->placements[i].item].lane;
        const int64_t launch_ns = times->slot_start_ns[plan->placements[i].launch];
        if (problem->lanes[lane].kind >= WEFT_LANE_KIND_DOWN) continue;
        struct lane_launches *on = &lanes[lane];
        if (!on->any) *on = (struct lane_launches){launch_ns, launch_ns, true};
        if (launch_ns - on->latest_ns > gap_ns) gap_ns = launch_ns - on->latest_ns;
        if (launch_ns > on->latest_ns) on->latest_ns = launch_ns;
        const int64_t average_ns = problem->items[plan->placements[i].item].average_ns;
        int64_t took_ns = times->end_ns[i] - times->start_ns[i];
        if (average_ns > took_ns) took_ns = average_ns;
        if (took_ns > longest_ns) longest_ns = took_ns;
    }
    for (int32_t lane = 0; lane < problem->n_lanes; lane++) {
        const struct lane_launches *on = &lanes[lane];
        const int64_t over_ns = plan->prediction.step_ns - on->latest_ns + on->first_ns;
        if (on->any && over_ns > gap_ns) gap_ns = over_ns;
    }
    /* A node that is slower keeps the others waiting for all steps between two averages. */
    const int64_t every = problem->period.every, most_ns = INT64_C(3600000000000);
    const int64_t step_ns = plan->prediction.step_ns;
    if (every > 0 && step_ns > 0)
        gap_ns = every < most_ns / step_ns ? every * step_ns + gap_ns : most_ns + gap_ns;
    return gap_ns + longest_ns;
}

enum weft_status weft_plan_longest_wait(const struct weft_plan *plan, int64_t *out_ns,
                                        struct weft_error *err)
{
    const size_t slots = (size_t)plan->problem->n_slots, blocks = (size_t)plan->n_placements;
    int64_t *all = calloc(weft_simulate_words(plan->problem) + slots + 2 * blocks, sizeof *all);
    if (all == NULL) return weft_fail_memory(err, "prediction");
    struct weft_plan_times times = {
        .slot_start_ns = all, .start_ns = all + slots, .end_ns = all + slots + blocks};
    weft_simulate_plan_times(plan, all + slots + 2 * blocks, &times);
    *out_ns = longest_wait(plan, &times);
    free(all);
    return WEFT_OK;
}

/* Bytes that a rank sends for a block: its parts for other nodes, and the sum of its part to them.
 */
static int64_t sent_bytes(const struct weft_problem *problem, const struct weft_item *item)
{
    const int64_t nodes = problem->period.gossip ? 2 : problem->ranks / problem->ranks_per_node;
    return item->kind == WEFT_AVERAGE ? 2 * (item->block_bytes / nodes) * (nodes - 1) : 0;
}

enum weft_status weft_plan_find_averages(const struct weft_plan *plan,
                                         struct weft_plan_averages *out, struct weft_error *err)
{
    const struct weft_problem *problem = plan->problem;
    struct weft_plan_averages found = {0};
    for (int32_t i = 0; i < plan->n_placements; i++) {
        const struct weft_problem_item *item = &problem->items[plan->placements[i].item];
        if (!weft_item_averages(&item->item)) continue;
        found.ns += item->average_ns;
        found.sent_bytes += sent_bytes(problem, &item->item);
    }
    int64_t *scratch = calloc(weft_simulate_words(problem), sizeof *scratch);
    if (scratch == NULL) return weft_fail_memory(err, "prediction");
    if (problem->period.every > 0)
        weft_simulate_extremes(plan, scratch, &found.usual_ns, &found.longest_ns);
    free(scratch);
    *out = found;
    return WEFT_OK;
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
    return weft_fail(
        err, WEFT_E_DATA,
        "the plan says that its decision_hash is %s, its strategies, placements, "
        "pages and periods have %s: they were changed since it was written; plan again",
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

enum weft_status weft_plan_check_claims(const struct weft_plan *plan, const char *source,
                                        struct weft_error *err)
{
    struct weft_error why = {0};
    WEFT_TRY(weft_plan_check_rows(plan, source, err));
    enum weft_status status = weft_plan_check_prediction(plan, &why);
    if (status == WEFT_OK) status = weft_plan_check_bounds(plan, &why);
    return status == WEFT_OK ? WEFT_OK : weft_fail_in(err, &why, source);
}
