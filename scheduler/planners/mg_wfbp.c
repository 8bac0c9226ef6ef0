/* SPDX-License-Identifier: Apache-2.0 */
/* MG-WFBP merges AllReduces of neighbouring layers if that costs less than it saves. It compares by
 * the line a + b * bytes through their times. */
#include "scheduler/planners/planners.h"

/* A layer's gradient. Gradients are in the order in which they get ready. */
struct gradient {
    double ready_ns, start_ns, reduce_ns; /* when and for how long its AllReduce would run */
    double bytes;                         /* including the gradients merged into it */
    bool merged;                          /* into the next */
};

/* The time at which a slot starts, by compute alone. */
static double start_of(const struct weft_draft *draft, int32_t slot)
{
    const struct weft_problem *problem = draft->problem;
    double ns = 0;
    for (int32_t s = 0; s < slot; s++)
        ns += (double)weft_problem_slot_ns(problem, draft->out->strategies, s);
    return ns;
}

/* Computes the starts of AllReduces from gradient `from` on. */
static void time_reductions(struct gradient *gradients, int32_t n, int32_t from)
{
    for (int32_t i = from; i < n; i++) {
        double free_ns = i == 0 ? 0 : gradients[i - 1].start_ns + gradients[i - 1].reduce_ns;
        gradients[i].start_ns = free_ns > gradients[i].ready_ns ? free_ns : gradients[i].ready_ns;
    }
}

/* True if merging pays. The next gradient is ready before this AllReduce ends. By then the
 * AllReduce has not started, or waiting costs less than its fixed part. */
static bool pays_to_merge(const struct gradient *at, double fixed_ns)
{
    double next_ns = at[1].ready_ns;
    if (next_ns >= at->start_ns + at->reduce_ns) return false;
    return at->start_ns > next_ns || next_ns - at->start_ns < fixed_ns;
}

static void merge_reductions(const struct weft_draft *draft, struct gradient *gradients)
{
    struct weft_draft_line line = weft_draft_line_of(draft->problem, WEFT_ALL_REDUCE);
    int32_t n = draft->n_reductions;
    for (int32_t i = 0; i < n; i++) {
        const struct weft_item *item = weft_draft_item(draft, draft->reductions[i]);
        gradients[i].ready_ns = start_of(draft, item->first);
        gradients[i].bytes = (double)item->n_blocks * (double)item->block_bytes;
        gradients[i].reduce_ns = line.fixed_ns + line.ns_per_byte * gradients[i].bytes;
    }
    time_reductions(gradients, n, 0);
    for (int32_t i = 0; i + 1 < n; i++) {
        const struct weft_item *item = weft_draft_item(draft, draft->reductions[i]);
        const struct weft_item *next = weft_draft_item(draft, draft->reductions[i + 1]);
        bool together = draft->micro[item->first - 1] == draft->micro[next->first - 1];
        if (!together || !pays_to_merge(&gradients[i], line.fixed_ns)) continue;
        gradients[i].merged = true;
        gradients[i].reduce_ns = 0;
        gradients[i + 1].bytes += gradients[i].bytes;
        gradients[i + 1].reduce_ns = line.fixed_ns + line.ns_per_byte * gradients[i + 1].bytes;
        time_reductions(gradients, n, i);
    }
}

enum weft_status weft_rule_mg_wfbp(struct weft_draft *draft, const int64_t *values,
                                   struct weft_error *err)
{
    static const enum weft_policy policies[] = {WEFT_POLICY_DP, WEFT_POLICY_COUNT};
    (void)values;
    WEFT_TRY(weft_draft_choose_all(draft, policies, err));
    weft_draft_take(draft);
    struct gradient *gradients =
        weft_pool_array(&draft->pool, (size_t)draft->n_reductions, sizeof *gradients);
    if (!gradients) return weft_fail_memory(err, "gradients");
    merge_reductions(draft, gradients);
    for (int32_t i = 0; i < draft->n_reductions; i++) {
        int32_t last = i;
        while (gradients[last].merged)
            last++;
        weft_draft_reduce_all(draft, draft->reductions[i],
                              weft_draft_item(draft, draft->reductions[last])->first,
                              WEFT_DRAFT_NOT_WAITED_FOR);
    }
    return WEFT_OK;
}
