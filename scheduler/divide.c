#include "scheduler/divide.h"

#include <math.h>

#include "scheduler/groups.h"

/* What a unit that is like no other counts more than one that others can stand in for. */
static const double ALONE_FIRST = 100;
/* A share that is this near to a whole one is decided. */
static const double DECIDED = 1e-6;
/* Iterations of the simplex method: some, and one for so many rows of the program. What they come
 * to is a bound too. */
enum { SOME_ITERATIONS = 20, ROWS_PER_ITERATION = 20 };
/* Ways that may be tried in vain, one after another. */
enum { MOST_IN_VAIN = 5 };
/* A gain below this part of what is missing is as good as none. */
static const double LEAST_GAIN = 1e-3;

/* How undecided the node's relaxation is on a unit: 0 when one policy has all. */
static double indecision(const struct weft_branch *branch, int32_t unit, int *best)
{
    double most = -1, sum = 0;
    for (int p = 0; p < WEFT_POLICY_COUNT; p++) {
        bool kept = branch->keeper[unit * WEFT_POLICY_COUNT + p] == p;
        if (!(branch->proof->box->allowed[unit] >> p & 1u) || !kept) continue;
        double share = branch->share[unit * WEFT_POLICY_COUNT + p];
        sum += share;
        if (share > most) {
            most = share;
            *best = p;
        }
    }
    return sum > 0 ? 1 - most / sum : 0;
}

int weft_divide_policies_left(const struct weft_branch *branch, int32_t unit)
{
    uint32_t allowed = branch->proof->box->allowed[unit];
    int n = 0;
    for (int p = 0; p < WEFT_POLICY_COUNT; p++)
        n += allowed >> p & 1u && branch->keeper[unit * WEFT_POLICY_COUNT + p] == p;
    return n;
}

/* Keeps the choice among the best of them. */
static void add_choice(struct weft_branch_split *split, int32_t unit, int policy, double value)
{
    int32_t at = split->n_choices;
    if (at == WEFT_BRANCH_CHOICES) {
        if (value <= split->choices[--at].value) return;
    } else {
        split->n_choices++;
    }
    for (; at > 0 && split->choices[at - 1].value < value; at--)
        split->choices[at] = split->choices[at - 1];
    split->choices[at].unit = unit;
    split->choices[at].policy = policy;
    split->choices[at].value = value;
}

void weft_divide_suggest(struct weft_branch *branch, int32_t node)
{
    struct weft_branch_split *split = &branch->splits[node];
    *split = (struct weft_branch_split){
        .chosen = true, .milestone = branch->milestone, .count = branch->count};
    for (int32_t u = 0; u < branch->table->n_units; u++) {
        int p = -1;
        if (weft_divide_policies_left(branch, u) < 2) continue;
        double value = indecision(branch, u, &p) * branch->weight[u];
        if (!branch->grouped[u]) value *= ALONE_FIRST;
        if (p >= 0) add_choice(split, u, p, value);
    }
    split->decided = split->n_choices == 0 || split->choices[0].value <= DECIDED;
}

/* A way to divide a node: two kinds of child, of which the first has `policies`, or reaches. */
struct way {
    struct weft_proof_node child;
    double score;
};
enum { MOST_WAYS = WEFT_BRANCH_CHOICES + 2 };

/* All ways, in the order in which they are taken when none raises anything: counts first, then
 * policies, but milestones where these are decided. */
static int list_ways(const struct weft_branch *branch, int32_t node, struct way *ways)
{
    const struct weft_branch_split *split = &branch->splits[node];
    bool milestone = split->milestone.n_blocks > 0 && branch->milestones_left > 0;
    struct weft_proof_node at_milestone = {.kind = WEFT_NODE_MILESTONE,
                                           .milestone = split->milestone};
    int n = 0;
    if (split->count.n_units > 0)
        ways[n++].child = (struct weft_proof_node){.kind = WEFT_NODE_COUNT, .count = split->count};
    if (milestone && split->decided) ways[n++].child = at_milestone;
    for (int32_t k = 0; k < split->n_choices; k++) {
        int32_t unit = split->choices[k].unit;
        ways[n++].child = (struct weft_proof_node){
            .kind = WEFT_NODE_POLICIES,
            .unit = unit,
            .policies = weft_kept_by(&branch->keeper[unit * WEFT_POLICY_COUNT], UINT32_MAX,
                                     split->choices[k].policy)};
    }
    if (milestone && !split->decided) ways[n++].child = at_milestone;
    return n;
}

/* How much further than the node the child's relaxation is, at most as far as is of use. */
static double gain_of(struct weft_branch *branch, int32_t node, const struct weft_proof_node *child)
{
    struct weft_pool pool = {0};
    struct weft_mip_result result = {.status = WEFT_MIP_UNKNOWN, .bound = -INFINITY};
    int64_t bound_ns = branch->proof->nodes[node].bound_ns;
    double missing_ns = (double)(branch->search->step_ns - bound_ns), gain_ns = 0;
    weft_proof_enter_child(branch->proof, node, child);
    if (branch->proof->box->empty) return missing_ns;
    int64_t iterations = SOME_ITERATIONS + branch->ilp->mip.n_rows / ROWS_PER_ITERATION;
    weft_branch_relax(branch, branch->proof->box, iterations, &pool, &result);
    if (result.status == WEFT_MIP_INFEASIBLE)
        gain_ns = missing_ns;
    else if (isfinite(result.bound))
        gain_ns = ldexp(result.bound, branch->ilp->time_shift) - (double)bound_ns;
    weft_pool_finish(&pool);
    return gain_ns < missing_ns ? gain_ns : missing_ns;
}

/* The product of both gains, each at least a small part of what is missing: what raises one child
 * alone leaves the other to be divided again. */
static double score_way(struct weft_branch *branch, int32_t node, struct weft_proof_node child)
{
    double missing_ns = (double)(branch->search->step_ns - branch->proof->nodes[node].bound_ns);
    double least_ns = LEAST_GAIN * missing_ns, score = 1;
    for (int side = 0; side < 2; side++) {
        child.milestone.reached = child.count.reached = side == 0;
        double gain_ns = gain_of(branch, node, &child);
        score *= (gain_ns > least_ns ? gain_ns : least_ns) / missing_ns;
        child.policies = ~child.policies;
    }
    return score;
}

/* The way with the greatest score; the first when there is no time to try. */
static int best_way(struct weft_branch *branch, int32_t node, struct way *ways, int n)
{
    int best = 0;
    /* One that keeps nothing from one question to the next would begin anew for each trial. */
    bool keeps = branch->options->solver.release != NULL;
    bool tries = n > 1 && keeps && branch->ilp &&
                 branch->search->step_ns > branch->proof->nodes[node].bound_ns;
    for (int k = 0; k < n && tries; k++) {
        if (branch->failure[0] || weft_search_is_late(branch->search)) break;
        ways[k].score = score_way(branch, node, ways[k].child);
        if (ways[k].score > ways[best].score) best = k;
        tries = ways[best].score < 1 && k - best < MOST_IN_VAIN;
    }
    return best;
}

bool weft_divide(struct weft_branch *branch, int32_t node)
{
    struct way ways[MOST_WAYS] = {0};
    struct weft_proof *proof = branch->proof;
    int n = list_ways(branch, node, ways);
    if (n == 0) return false;
    const struct weft_proof_node *child = &ways[best_way(branch, node, ways, n)].child;
    if (child->kind == WEFT_NODE_COUNT) return weft_proof_branch_count(proof, node, &child->count);
    if (child->kind == WEFT_NODE_POLICIES)
        return weft_proof_branch(proof, node, child->unit, child->policies);
    branch->milestones_left--;
    return weft_proof_branch_at(proof, node, &child->milestone);
}
