/* SPDX-License-Identifier: Apache-2.0 */
/* ByteScheduler over AllReduce: gradients move in blocks. Of the ready ones, the gradient of the
 * layer that is needed first goes first. The credit is the number of elements that may be on their
 * way at once, so that the channel never idles. A block on its way cannot be overtaken. */
#include "scheduler/planners/planners.h"

const struct weft_setting weft_bytescheduler_settings[] = {
    {"16e6", {16000000}},
    {"4e6", {4000000}},
    {"64e6", {64000000}},
    {NULL, {0}},
};

/* A block on its way. */
struct flight {
    int64_t end_ns, elements;
};

struct run {
    struct weft_draft *draft;
    int32_t *left; /* by position in the list of reductions: blocks not yet sent */
    struct flight *flights;
    int32_t first_flight, n_flights;
    int64_t credit, channel_ns;
};

/* The reduction of the first unit among the ones ready by `slot`; -1: none. Units are numbered in
 * order of first use. */
static int32_t most_urgent(const struct run *run, int32_t slot)
{
    int32_t best = -1;
    for (int32_t i = 0; i < run->draft->n_reductions; i++) {
        const struct weft_item *item = weft_draft_item(run->draft, run->draft->reductions[i]);
        if (run->left[i] == 0 || item->first > slot) continue;
        if (best < 0 ||
            item->decision < weft_draft_item(run->draft, run->draft->reductions[best])->decision)
            best = i;
    }
    return best;
}

/* Sends blocks from `now_ns` to `until_ns`, as the credit allows. */
static void send_blocks(struct run *run, int32_t slot, int64_t now_ns, int64_t until_ns)
{
    for (int32_t best; (best = most_urgent(run, slot)) >= 0;) {
        while (run->first_flight < run->n_flights &&
               run->flights[run->first_flight].end_ns <= now_ns)
            run->credit += run->flights[run->first_flight++].elements;
        if (run->credit <= 0) now_ns = run->flights[run->first_flight].end_ns;
        if (now_ns >= until_ns) return;
        if (run->credit <= 0) continue;
        int32_t index = run->draft->reductions[best];
        int64_t elements = weft_draft_block_elements(run->draft, index);
        if (run->channel_ns < now_ns) run->channel_ns = now_ns;
        run->channel_ns += run->draft->problem->items[index].block_ns;
        run->flights[run->n_flights++] = (struct flight){run->channel_ns, elements};
        run->credit -= elements;
        run->left[best]--;
        weft_draft_reduce(run->draft, index, slot, WEFT_DRAFT_NOT_WAITED_FOR, 1);
    }
}

/* True if blocks that must be complete before the next slot are not sent. */
static bool is_due(const struct run *run, int32_t slot)
{
    for (int32_t i = 0; i < run->draft->n_reductions; i++)
        if (run->left[i] > 0 &&
            weft_draft_item(run->draft, run->draft->reductions[i])->last <= slot)
            return true;
    return false;
}

static void walk_slots(struct run *run)
{
    const struct weft_problem *problem = run->draft->problem;
    int64_t now_ns = 0;
    for (int32_t s = 0; s < problem->n_slots; s++) {
        int64_t ns = weft_problem_slot_ns(problem, run->draft->out->strategies, s);
        send_blocks(run, s, now_ns, now_ns + ns);
        now_ns += ns;
        while (is_due(run, s)) {
            send_blocks(run, s, now_ns,
                        run->channel_ns > now_ns ? run->channel_ns + 1 : now_ns + 1);
            if (run->channel_ns > now_ns) now_ns = run->channel_ns;
        }
    }
}

static enum weft_status prepare_blocks(struct run *run, struct weft_error *err)
{
    struct weft_draft *draft = run->draft;
    size_t n_blocks = 0;
    run->left = weft_pool_array(&draft->pool, (size_t)draft->n_reductions, sizeof *run->left);
    if (!run->left) return weft_fail_memory(err, "reductions");
    for (int32_t i = 0; i < draft->n_reductions; i++) {
        run->left[i] = weft_draft_item(draft, draft->reductions[i])->n_blocks;
        n_blocks += (size_t)run->left[i];
    }
    run->flights = weft_pool_array(&draft->pool, n_blocks, sizeof *run->flights);
    return run->flights ? WEFT_OK : weft_fail_memory(err, "reductions");
}

enum weft_status weft_rule_bytescheduler(struct weft_draft *draft, const int64_t *values,
                                         struct weft_error *err)
{
    static const enum weft_policy policies[] = {WEFT_POLICY_DP, WEFT_POLICY_COUNT};
    struct run run = {.draft = draft, .credit = values[0]};
    WEFT_TRY(weft_draft_choose_all(draft, policies, err));
    weft_draft_take(draft);
    WEFT_TRY(prepare_blocks(&run, err));
    walk_slots(&run);
    return WEFT_OK;
}
