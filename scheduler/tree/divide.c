/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/tree/divide.h"

#include <math.h>

#include "scheduler/tree/groups.h"
#include "scheduler/tree/press.h"

/* Factor on the indecision of a decision without a group. Alike decisions can take each other's
 * strategies, so a branch on one of them raises little. */
static const double ALONE_FIRST = 100;
/* A decision is decided if its weighted indecision is at most this. */
static const double DECIDED = 1e-6;
/* Simplex iterations of a trial: SOME_ITERATIONS, and one for each ROWS_PER_ITERATION rows of the
 * program. An unfinished trial also gives a bound. */
enum { SOME_ITERATIONS = 20, ROWS_PER_ITERATION = 20 };
/* Ways tried in a row without a better score, at most. */
enum { MOST_IN_VAIN = 5 };
/* Least gain of a child, as a part of the missing time. A pressed way with a lower score was in
 * vain. */
static const double LEAST_GAIN = 1e-3;
/* A score below POOR_SCORE counts as none, and pressure is tried. There both children gain a
 * hundredth, or one of them a tenth. A score of GOOD_SCORE ends the trials under pressure. */
static const double POOR_SCORE = 1e-4, GOOD_SCORE = 0.1;

/* Share of a decision outside its greatest strategy, *best; 0 if one strategy has all. */
static double indecision_of(const struct weft_branch *branch, int32_t decision, int *best)
{
    double most = -1, sum = 0;
    for (int32_t p = 0; p < weft_digest_count(branch->table, decision); p++) {
        bool kept = branch->keeper[weft_digest_at(branch->table, decision, p)] == p;
        if (!(branch->proof->box->allowed[decision] >> p & 1u) || !kept) continue;
        double share = branch->share[weft_digest_at(branch->table, decision, p)];
        sum += share;
        if (share > most) {
            most = share;
            *best = p;
        }
    }
    return sum > 0 ? 1 - most / sum : 0;
}

int weft_divide_strategies_left(const struct weft_branch *branch, int32_t decision)
{
    uint64_t allowed = branch->proof->box->allowed[decision];
    int n = 0;
    for (int32_t p = 0; p < weft_digest_count(branch->table, decision); p++)
        n += allowed >> p & 1u && branch->keeper[weft_digest_at(branch->table, decision, p)] == p;
    return n;
}

/* Inserts the choice, greatest value first, if it is among the WEFT_BRANCH_CHOICES best. */
static void add_choice(struct weft_branch_split *split, int32_t decision, int32_t strategy,
                       double value)
{
    int32_t at = split->n_choices;
    if (at == WEFT_BRANCH_CHOICES) {
        if (value <= split->choices[--at].value) return;
    } else {
        split->n_choices++;
    }
    for (; at > 0 && split->choices[at - 1].value < value; at--)
        split->choices[at] = split->choices[at - 1];
    split->choices[at].decision = decision;
    split->choices[at].strategy = strategy;
    split->choices[at].value = value;
}

void weft_divide_suggest(struct weft_branch *branch, int32_t node)
{
    struct weft_branch_split *split = &branch->splits[node];
    *split = (struct weft_branch_split){
        .chosen = true, .milestone = branch->milestone, .count = branch->count};
    for (int32_t u = 0; u < branch->table->n_decisions; u++) {
        int p = -1;
        if (weft_divide_strategies_left(branch, u) < 2) continue;
        double value = indecision_of(branch, u, &p) * branch->weight[u];
        if (!branch->grouped[u]) value *= ALONE_FIRST;
        if (p >= 0) add_choice(split, u, p, value);
    }
    split->decided = split->n_choices == 0 || split->choices[0].value <= DECIDED;
}

/* A way to divide a node. The first child has `strategies`, or reaches the milestone or count; the
 * second does not. If `next` has blocks, a trial may divide the first child at it. */
struct way {
    struct weft_proof_node child;
    struct weft_milestone next;
    double score;
};
enum { MOST_WAYS = WEFT_BRANCH_CHOICES + 2 };

/* Lists all ways, the best first if no trial raises a bound: the count, then strategies. The
 * milestone precedes the strategies if they are decided, and follows them otherwise. */
static int list_ways(const struct weft_branch *branch, int32_t node, struct way *ways)
{
    const struct weft_branch_split *split = &branch->splits[node];
    bool milestone = split->milestone.n_blocks > 0 && branch->milestones_left > 0;
    struct weft_proof_node at_milestone = {.kind = WEFT_NODE_MILESTONE,
                                           .milestone = split->milestone};
    int n = 0;
    if (split->count.n_decisions > 0)
        ways[n++].child = (struct weft_proof_node){.kind = WEFT_NODE_COUNT, .count = split->count};
    if (milestone && split->decided) ways[n++].child = at_milestone;
    for (int32_t k = 0; k < split->n_choices; k++) {
        int32_t decision = split->choices[k].decision;
        ways[n++].child = (struct weft_proof_node){
            .kind = WEFT_NODE_STRATEGIES,
            .decision = decision,
            .strategies =
                weft_kept_by(&branch->keeper[weft_digest_at(branch->table, decision, 0)],
                             weft_decision_all(&branch->table->problem->decisions[decision]),
                             split->choices[k].strategy)};
    }
    if (milestone && !split->decided) ways[n++].child = at_milestone;
    return n;
}

/* Measures of a trial. A gain is the rise of a child's value above the node's, as a part of the
 * missing time. Both values are under the same pressure (scheduler/tree/press.h). */
struct trial {
    double pressure, from_ns, missing_ns;
    double enough; /* a score that ends the trials */
    int in_vain;   /* ways tried after the best so far, at most */
};

/* Gain of a descendant's relaxation, at most 1; 1 if its box is empty. */
static double gain_of(struct weft_branch *branch, int32_t node, const struct trial *trial,
                      const struct weft_proof_node *path, int32_t n_path)
{
    struct weft_pool pool = {0};
    struct weft_lp_result result = {.bound = -INFINITY};
    double gain = 0;
    weft_proof_enter_below(branch->proof, node, path, n_path);
    if (branch->proof->box->empty) return 1;
    int64_t iterations = SOME_ITERATIONS + branch->ilp->lp.n_rows / ROWS_PER_ITERATION;
    weft_ilp_press(branch->ilp, trial->pressure);
    weft_branch_relax(branch, branch->proof->box, iterations, &pool, &result);
    weft_ilp_press(branch->ilp, 0);
    if (result.status == WEFT_LP_INFEASIBLE)
        gain = 1;
    else if (isfinite(result.bound))
        gain = (ldexp(result.bound, branch->ilp->time_shift) - trial->from_ns) / trial->missing_ns;
    weft_pool_finish(&pool);
    return gain < 1 ? gain : 1;
}

/* Raises a gain to LEAST_GAIN: a way that helps one child alone leaves the other to be divided
 * again. */
static double at_least(double gain)
{
    return gain > LEAST_GAIN ? gain : LEAST_GAIN;
}

/* The gain of the child that reaches a milestone, divided by the next one: the geometric mean. */
static double gain_of_next(struct weft_branch *branch, int32_t node, const struct trial *trial,
                           struct weft_proof_node path[2])
{
    double product = 1;
    for (int side = 0; side < 2; side++) {
        path[1].milestone.reached = side == 0;
        product *= at_least(gain_of(branch, node, trial, path, 2));
    }
    return sqrt(product);
}

/* The product of both children's gains. */
static double score_way(struct weft_branch *branch, int32_t node, const struct trial *trial,
                        const struct way *way)
{
    struct weft_proof_node path[2] = {way->child,
                                      {.kind = WEFT_NODE_MILESTONE, .milestone = way->next}};
    double score = 1;
    for (int side = 0; side < 2; side++) {
        path[0].milestone.reached = path[0].count.reached = side == 0;
        double gain = gain_of(branch, node, trial, path, 1);
        if (side == 0 && gain < 1 && way->next.n_blocks > 0)
            gain = fmax(gain, gain_of_next(branch, node, trial, path));
        score *= at_least(gain);
        path[0].strategies = ~path[0].strategies;
    }
    return score;
}

static bool may_try(const struct weft_branch *branch)
{
    return !branch->failure[0] && !weft_search_is_spent(branch->search);
}

/* The way with the greatest score; the first when there is no time to try. */
static int best_way(struct weft_branch *branch, int32_t node, const struct trial *trial,
                    struct way *ways, int n)
{
    int best = 0;
    for (int k = 0; k < n && may_try(branch); k++) {
        ways[k].score = score_way(branch, node, trial, &ways[k]);
        if (ways[k].score > ways[best].score) best = k;
        if (ways[best].score >= trial->enough || k - best >= trial->in_vain) break;
    }
    return best;
}

/* The best way under the pressure that brings the node's relaxation to the best plan; false when
 * there is none. */
static bool best_pressed(struct weft_branch *branch, int32_t node, struct way *out)
{
    struct way ways[WEFT_PRESS_MOST] = {0};
    struct weft_press press;
    if (!weft_press_find(branch, node, branch->search->step_ns, &press)) return false;
    struct trial trial = {press.pressure, press.value_ns, press.spare_ns, GOOD_SCORE,
                          WEFT_PRESS_MOST};
    for (int32_t k = 0; k < press.n_doubts; k++) {
        ways[k].child = (struct weft_proof_node){.kind = WEFT_NODE_MILESTONE,
                                                 .milestone = press.doubts[k].milestone};
        ways[k].next = press.doubts[k].next;
    }
    *out = ways[best_way(branch, node, &trial, ways, press.n_doubts)];
    return press.n_doubts > 0;
}

/* Chooses how to divide a node; false if there is no way. */
static bool choose_way(struct weft_branch *branch, int32_t node, struct weft_proof_node *child)
{
    struct way ways[MOST_WAYS] = {0}, pressed = {0};
    double bound_ns = (double)branch->proof->nodes[node].bound_ns;
    struct trial trial = {0, bound_ns, (double)branch->search->step_ns - bound_ns, 1, MOST_IN_VAIN};
    int n = list_ways(branch, node, ways), best = 0;
    /* A solver without `release` keeps nothing between calls: each trial would start anew. */
    bool tries = branch->ilp && branch->options->solver.release && trial.missing_ns > 0;
    bool presses = tries && branch->milestones_left > 0 && branch->presses_left > 0;
    if (presses || (tries && n > 1)) best = best_way(branch, node, &trial, ways, n);
    if (n > 0) *child = ways[best].child;
    if (!presses || ways[best].score >= POOR_SCORE || !may_try(branch)) return n > 0;
    bool found = best_pressed(branch, node, &pressed);
    branch->presses_left =
        pressed.score >= LEAST_GAIN ? WEFT_BRANCH_PRESSES : branch->presses_left - 1;
    if (!found || pressed.score < ways[best].score) return n > 0;
    *child = pressed.child;
    return true;
}

bool weft_divide(struct weft_branch *branch, int32_t node)
{
    struct weft_proof *proof = branch->proof;
    struct weft_proof_node child;
    if (!choose_way(branch, node, &child)) return false;
    if (child.kind == WEFT_NODE_COUNT) return weft_proof_branch_count(proof, node, &child.count);
    if (child.kind == WEFT_NODE_STRATEGIES)
        return weft_proof_branch(proof, node, child.decision, child.strategies);
    branch->milestones_left--;
    return weft_proof_branch_at(proof, node, &child.milestone);
}
