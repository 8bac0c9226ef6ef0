/* Plain planners: each is a row of a table, which says what units shard, when they are gathered and
 * how gradients are reduced. */
#include <stdlib.h>

#include "scheduler/planners/ahead.h"
#include "scheduler/planners/bucket.h"
#include "scheduler/planners/fixed.h"
#include "scheduler/planners/planners.h"

const struct weft_setting weft_fsdp2_settings[] = {
    {"1", {1, 0}}, {"2", {2, 0}}, {"3", {3, 0}}, {"kept", {1, 1}}, {NULL, {0}},
};

enum choice {
    CHOOSE_DP,
    CHOOSE_SDP,
    CHOOSE_RESIDENT, /* zero1; a frozen unit, which has no state to shard, stays whole */
    CHOOSE_ROOT,     /* fsdp, but the root, which stays gathered */
    CHOOSE_AS_SET    /* the same, or all stay gathered: fsdp2's setting */
};
enum gathering { NEVER, BEHIND_UPDATES, ON_DEMAND, AHEAD };
enum reducing { AT_ONCE, IN_BUCKETS, BEFORE_OVERFLOW, ONE_AT_A_TIME };

struct plain_rule {
    const char *planner;
    enum choice choice;
    enum gathering gathering;
    enum reducing reducing;
};

static enum weft_status choose_plainly(const struct plain_rule *rule, struct weft_draft *draft,
                                       const struct weft_schedule_options *options,
                                       struct weft_error *err)
{
    static const enum weft_policy dp[] = {WEFT_POLICY_DP, WEFT_POLICY_COUNT};
    static const enum weft_policy sdp[] = {WEFT_POLICY_SDP, WEFT_POLICY_COUNT};
    if (rule->choice == CHOOSE_AS_SET && weft_draft_values(options, weft_fsdp2_settings)[1])
        return weft_ahead_keep(draft, err);
    if (rule->choice >= CHOOSE_ROOT) return weft_ahead_choose(draft, err);
    if (rule->choice != CHOOSE_RESIDENT)
        return weft_draft_choose_all(draft, rule->choice == CHOOSE_DP ? dp : sdp, err);
    for (int32_t u = 0; u < draft->problem->n_decisions; u++)
        WEFT_TRY(weft_draft_choose_resident(draft, u, err));
    return WEFT_OK;
}

static void place_plainly(const struct plain_rule *rule, struct weft_draft *draft,
                          const struct weft_schedule_options *options)
{
    struct weft_bucket_rule buckets = {.size = weft_draft_values(options, weft_bucket_settings)[0],
                                       .before_overflow = rule->reducing == BEFORE_OVERFLOW};
    int32_t depth = (int32_t)weft_draft_values(options, weft_fsdp2_settings)[0];
    weft_draft_take(draft);
    if (rule->gathering == BEHIND_UPDATES) weft_draft_gather_after_updates(draft, UINT32_MAX);
    if (rule->gathering == ON_DEMAND) weft_ahead_gather(draft, 0);
    if (rule->gathering == AHEAD) weft_ahead_gather(draft, depth);
    if (rule->reducing == AT_ONCE)
        weft_draft_reduce_at_once(draft);
    else if (rule->reducing == ONE_AT_A_TIME)
        weft_ahead_reduce(draft);
    else
        weft_bucket_reduce(draft, &buckets);
}

static enum weft_status decide_plainly(const struct plain_rule *rule,
                                       const struct weft_problem *problem,
                                       const struct weft_schedule_options *options,
                                       struct weft_candidate *out, struct weft_error *err)
{
    struct weft_draft draft;
    enum weft_status status;
    WEFT_TRY_GOTO(done, weft_draft_init(&draft, rule->planner, problem, out, err));
    WEFT_TRY_GOTO(done, choose_plainly(rule, &draft, options, err));
    place_plainly(rule, &draft, options);
    WEFT_TRY_GOTO(done, weft_draft_end(&draft, err));
done:
    weft_draft_finish(&draft);
    return status;
}

/* X(identifier, row). PyTorch's DistributedDataParallel shards nothing: an AllReduce when a bucket
 * is full. ZeRO stage 1: ddp's buckets as ReduceScatters, then one AllGather of all parameters that
 * nothing overlaps; stage 2 reduces a unit's gradient as soon as it is ready. FairScale gathers
 * every unit before each of its uses; PyTorch's FSDP2 one unit ahead. */
#define DRAFTED_MAP(X)                                                                             \
    X(ddp, "ddp", CHOOSE_DP, NEVER, IN_BUCKETS)                                                    \
    X(zero1, "zero1", CHOOSE_RESIDENT, BEHIND_UPDATES, IN_BUCKETS)                                 \
    X(zero2, "zero2", CHOOSE_SDP, BEHIND_UPDATES, AT_ONCE)                                         \
    X(fairscale, "fairscale", CHOOSE_ROOT, ON_DEMAND, BEFORE_OVERFLOW)                             \
    X(fsdp2, "fsdp2", CHOOSE_AS_SET, AHEAD, ONE_AT_A_TIME)

#define DRAFTED(identifier, ...)                                                                   \
    enum weft_status weft_planner_##identifier(                                                    \
        const struct weft_problem *problem, const struct weft_schedule_options *options,           \
        struct weft_candidate *out, struct weft_outcome *outcome, struct weft_error *err)          \
    {                                                                                              \
        static const struct plain_rule rule = {__VA_ARGS__};                                       \
        (void)outcome;                                                                             \
        return decide_plainly(&rule, problem, options, out, err);                                  \
    }

DRAFTED_MAP(DRAFTED)

/* X(identifier, policy): that for all units and one rule for all blocks. */
#define FIXED_MAP(X)                                                                               \
    X(all_dp, WEFT_POLICY_DP)                                                                      \
    X(all_zero1, WEFT_POLICY_ZERO1)                                                                \
    X(all_sdp, WEFT_POLICY_SDP)                                                                    \
    X(all_fsdp, WEFT_POLICY_FSDP)

#define FIXED(identifier, policy)                                                                  \
    enum weft_status weft_planner_##identifier(                                                    \
        const struct weft_problem *problem, const struct weft_schedule_options *options,           \
        struct weft_candidate *out, struct weft_outcome *outcome, struct weft_error *err)          \
    {                                                                                              \
        (void)options;                                                                             \
        (void)outcome;                                                                             \
        return weft_fixed_decide(&weft_fixed_rules[policy], problem, out, err);                    \
    }

FIXED_MAP(FIXED)
