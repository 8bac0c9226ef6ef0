/* SPDX-License-Identifier: Apache-2.0 */
#include "proof/certificate.h"

#include <inttypes.h>

#include "problem/early.h"
#include "problem/pages.h"
#include "proof/orders.h"

/* A walk over the tree: the known facts at a node, and the results so far. */
struct walk {
    const struct weft_certificate *certificate;
    const struct weft_problem *problem;
    struct weft_priced priced;
    struct weft_box *box;
    uint64_t *allowed;
    struct branch {
        const struct weft_certificate_node *node;
        uint64_t first, second; /* strategies of its decision */
        struct weft_told told;  /* facts told to the box */
        bool in_second;
    } * path; /* [n_nodes] */
    int32_t depth;
    struct weft_orders *orders; /* NULL before the first search */
    int64_t steps_left;         /* of all searches */
    bool ahead;                 /* no order of the problem has the time of a plan */
    int64_t least_ns;
    int32_t least_leaf;
};

/* Checks that a leaf may have a search, and makes the scratch of the first one. */
static enum weft_status begin_search(struct walk *walk, int32_t at, struct weft_error *err)
{
    const struct weft_certificate_node *leaf = &walk->certificate->nodes[at];
    if (walk->ahead)
        return weft_fail(err, WEFT_E_DATA,
                         "certificate: leaf %d searches orders, but the host runs ahead of them",
                         at);
    if (!weft_orders_can(walk->problem))
        return weft_fail(err, WEFT_E_DATA,
                         "certificate: leaf %d searches orders of too many slots and blocks", at);
    if (leaf->steps > walk->steps_left)
        return weft_fail(err, WEFT_E_DATA,
                         "certificate: its searches take more than %" PRId64
                         " steps in all, up to leaf %d",
                         weft_orders_most_steps(walk->problem), at);
    walk->steps_left -= leaf->steps;
    if (walk->orders != NULL) return WEFT_OK;
    return weft_orders_create(walk->problem, &walk->orders, err);
}

/* Repeats a leaf's search. Prices apply to the box. */
static enum weft_status search_leaf(struct walk *walk, int32_t at, struct weft_error *err)
{
    const struct weft_certificate_node *leaf = &walk->certificate->nodes[at];
    int64_t steps = leaf->steps;
    WEFT_TRY(begin_search(walk, at, err));
    switch (
        weft_orders_try_box(walk->orders, walk->box, &walk->priced, leaf->searched_ns, &steps)) {
    case WEFT_ORDERS_NONE:
        return WEFT_OK;
    case WEFT_ORDERS_FOUND:
        return weft_fail(err, WEFT_E_DATA,
                         "certificate: leaf %d claims that no order takes less than %" PRId64
                         " ns; one takes %" PRId64 " ns",
                         at, leaf->searched_ns, weft_orders_found(walk->orders)->step_ns);
    case WEFT_ORDERS_SPENT:
        break;
    }
    return weft_fail(err, WEFT_E_DATA,
                     "certificate: the search of leaf %d takes more than %" PRId64 " steps", at,
                     leaf->steps);
}

static enum weft_status visit_leaf(struct walk *walk, int32_t at, struct weft_error *err)
{
    int32_t prices = walk->certificate->nodes[at].prices;
    if (prices < 0 || prices >= walk->certificate->n_prices)
        return weft_fail(err, WEFT_E_DATA, "certificate: leaf %d has no prices", at);
    weft_box_make(walk->box, walk->allowed);
    WEFT_TRY(weft_prices_apply(walk->box, &walk->certificate->prices[prices], &walk->priced, err));
    int64_t ns = weft_priced_bound_ns(walk->problem, &walk->priced, walk->box->allowed);
    if (ns < walk->certificate->nodes[at].searched_ns) {
        WEFT_TRY(search_leaf(walk, at, err));
        ns = walk->certificate->nodes[at].searched_ns;
    }
    if (walk->least_leaf < 0 || ns < walk->least_ns) {
        walk->least_ns = ns;
        walk->least_leaf = at;
    }
    return WEFT_OK;
}

static enum weft_status visit_strategies(struct walk *walk, int32_t at, struct weft_error *err)
{
    const struct weft_certificate_node *node = &walk->certificate->nodes[at];
    if (node->decision < 0 || node->decision >= walk->problem->n_decisions)
        return weft_fail(err, WEFT_E_DATA, "certificate: node %d is of decision %d of %d", at,
                         node->decision, walk->problem->n_decisions);
    uint64_t now = walk->allowed[node->decision];
    if ((now & node->strategies) == 0 || (now & ~node->strategies) == 0)
        return weft_fail(err, WEFT_E_DATA,
                         "certificate: node %d does not divide the strategies of decision %d", at,
                         node->decision);
    walk->path[walk->depth++] = (struct branch){
        .node = node, .first = now & node->strategies, .second = now & ~node->strategies};
    walk->allowed[node->decision] = now & node->strategies;
    return WEFT_OK;
}

/* Tells the box that the milestone or the count is reached, or that it is not. */
static struct weft_told tell_box(struct walk *walk, const struct weft_certificate_node *node,
                                 bool reached)
{
    struct weft_milestone milestone = node->milestone;
    struct weft_count count = node->count;
    milestone.reached = count.reached = reached;
    if (node->kind == WEFT_NODE_COUNT) return weft_box_tell_count(walk->box, &count);
    return weft_box_tell(walk->box, &milestone);
}

static enum weft_status visit_milestone(struct walk *walk, int32_t at, struct weft_error *err)
{
    const struct weft_certificate_node *node = &walk->certificate->nodes[at];
    if (!weft_milestone_is_of(&node->milestone, walk->problem))
        return weft_fail(err, WEFT_E_DATA,
                         "certificate: node %d asks for %d blocks of item %d by slot %d, which is "
                         "outside its blocks or its window",
                         at, node->milestone.n_blocks, node->milestone.item, node->milestone.slot);
    walk->path[walk->depth++] = (struct branch){.node = node, .told = tell_box(walk, node, true)};
    return WEFT_OK;
}

static enum weft_status visit_count(struct walk *walk, int32_t at, struct weft_error *err)
{
    const struct weft_certificate_node *node = &walk->certificate->nodes[at];
    int32_t group = node->count.group;
    if (group < 0 || group >= walk->certificate->n_groups || node->count.n_decisions < 1 ||
        node->count.n_decisions > walk->certificate->groups[group].n_decisions)
        return weft_fail(
            err, WEFT_E_DATA,
            "certificate: node %d asks for %d decisions of group %d, which has not that "
            "many",
            at, node->count.n_decisions, group);
    walk->path[walk->depth++] = (struct branch){.node = node, .told = tell_box(walk, node, true)};
    return WEFT_OK;
}

/* Goes from the first subtree of a branch to its second. */
static void enter_second(struct walk *walk, struct branch *branch)
{
    branch->in_second = true;
    if (branch->node->kind == WEFT_NODE_STRATEGIES) {
        walk->allowed[branch->node->decision] = branch->second;
        return;
    }
    weft_box_take_back(&branch->told);
    branch->told = tell_box(walk, branch->node, false);
}

static void leave_branch(struct walk *walk, const struct branch *branch)
{
    if (branch->node->kind == WEFT_NODE_STRATEGIES)
        walk->allowed[branch->node->decision] = branch->first | branch->second;
    else
        weft_box_take_back(&branch->told);
    walk->depth--;
}

/* After a leaf, enters the second subtree of the nearest node without one. False at the end of the
 * tree. */
static bool turn_to_second(struct walk *walk)
{
    while (walk->depth > 0) {
        struct branch *branch = &walk->path[walk->depth - 1];
        if (!branch->in_second) {
            enter_second(walk, branch);
            return true;
        }
        leave_branch(walk, branch);
    }
    return false;
}

static enum weft_status visit_all(struct walk *walk, struct weft_error *err)
{
    const struct weft_certificate *certificate = walk->certificate;
    bool more = true;
    int32_t at = 0;
    for (; more && at < certificate->n_nodes; at++) {
        switch (certificate->nodes[at].kind) {
        case WEFT_NODE_STRATEGIES:
            WEFT_TRY(visit_strategies(walk, at, err));
            break;
        case WEFT_NODE_MILESTONE:
            WEFT_TRY(visit_milestone(walk, at, err));
            break;
        case WEFT_NODE_COUNT:
            WEFT_TRY(visit_count(walk, at, err));
            break;
        case WEFT_NODE_LEAF:
            WEFT_TRY(visit_leaf(walk, at, err));
            more = turn_to_second(walk);
            break;
        }
    }
    if (!more && at == certificate->n_nodes) return WEFT_OK;
    return weft_fail(err, WEFT_E_DATA, "certificate: %s, so that its leaves do not cover all plans",
                     more ? "a leaf is missing" : "nodes come after its last leaf");
}

/* Checks that groups name existing decisions, each once, and some of a decision's strategies. */
static enum weft_status check_groups(const struct walk *walk, struct weft_error *err)
{
    for (int32_t g = 0; g < walk->certificate->n_groups; g++) {
        const struct weft_group *group = &walk->certificate->groups[g];
        bool ok = group->n_decisions > 0;
        for (int32_t k = 0; k < group->n_decisions && ok; k++)
            ok = group->decisions[k] >= 0 && group->decisions[k] < walk->problem->n_decisions &&
                 (k == 0 || group->decisions[k] > group->decisions[k - 1]);
        if (!ok)
            return weft_fail(err, WEFT_E_DATA,
                             "certificate: group %d does not name decisions in increasing order",
                             g);
    }
    return WEFT_OK;
}

static enum weft_status start_walk(struct walk *walk, struct weft_pool *pool,
                                   struct weft_error *err)
{
    size_t n_decisions = (size_t)walk->problem->n_decisions,
           n_nodes = (size_t)walk->certificate->n_nodes;
    WEFT_TRY(check_groups(walk, err));
    walk->priced.cost =
        weft_pool_array(pool, (size_t)walk->problem->n_strategies, sizeof *walk->priced.cost);
    walk->allowed = weft_pool_array(pool, n_decisions, sizeof *walk->allowed);
    walk->path = weft_pool_array(pool, n_nodes, sizeof *walk->path);
    if (walk->priced.cost == NULL || walk->allowed == NULL || walk->path == NULL)
        return weft_fail_memory(err, "a certificate");
    for (size_t u = 0; u < n_decisions; u++)
        walk->allowed[u] = weft_decision_all(&walk->problem->decisions[u]);
    WEFT_TRY(weft_box_create(walk->problem, &walk->box, err));
    return weft_box_set_groups(walk->box, walk->certificate->groups, walk->certificate->n_groups,
                               err);
}

/* Walks the tree over the problem, which may be another form of the one that was hashed. `ahead`:
 * no search of orders is sound there. */
static enum weft_status check_tree(const struct weft_certificate *certificate,
                                   const struct weft_problem *problem, bool ahead, int64_t bound_ns,
                                   int64_t *proven_ns, struct weft_error *err)
{
    struct walk walk = {.certificate = certificate,
                        .problem = problem,
                        .ahead = ahead,
                        .steps_left = weft_orders_most_steps(problem),
                        .least_leaf = -1};
    struct weft_pool pool = {0};
    enum weft_status status = start_walk(&walk, &pool, err);
    if (status == WEFT_OK) status = visit_all(&walk, err);
    weft_box_destroy(walk.box);
    weft_orders_destroy(walk.orders);
    weft_pool_finish(&pool);
    if (status != WEFT_OK) return status;
    if (proven_ns != NULL) *proven_ns = walk.least_ns;
    if (bound_ns <= walk.least_ns) return WEFT_OK;
    return weft_fail(err, WEFT_E_DATA,
                     "the plan claims that no step is below %" PRId64
                     " ns; its certificate proves %" PRId64 " ns (leaf %d)",
                     bound_ns, walk.least_ns, walk.least_leaf);
}

/* *none: there is no certificate, and no claim. */
static enum weft_status check_claim(const struct weft_certificate *certificate,
                                    const struct weft_problem *problem, int64_t bound_ns,
                                    bool *none, struct weft_error *err)
{
    *none = certificate->n_nodes == 0;
    if (*none) {
        if (bound_ns == 0) return WEFT_OK;
        return weft_fail(err, WEFT_E_DATA,
                         "the plan claims a bound of %" PRId64 " ns and has no certificate for it",
                         bound_ns);
    }
    if (!weft_hash_equal(certificate->problem, weft_problem_hash(problem)))
        return weft_fail(err, WEFT_E_DATA,
                         "the problem in the plan is not the one that its certificate was made "
                         "for: a time, a size or a name in it was changed; plan again");
    return WEFT_OK;
}

enum weft_status weft_certificate_check(const struct weft_certificate *certificate,
                                        const struct weft_problem *problem, int64_t bound_ns,
                                        int64_t *proven_ns, struct weft_error *err)
{
    bool none;
    struct weft_problem *early = NULL;
    WEFT_TRY(check_claim(certificate, problem, bound_ns, &none, err));
    if (none && proven_ns != NULL) *proven_ns = 0;
    if (none) return WEFT_OK;
    if (!weft_problem_is_early(problem))
        return check_tree(certificate, problem, false, bound_ns, proven_ns, err);
    WEFT_TRY(weft_problem_early(problem, &early, err));
    enum weft_status status = check_tree(certificate, early, true, bound_ns, proven_ns, err);
    weft_problem_destroy(early);
    return status;
}

enum weft_status weft_certificate_check_in_pages(const struct weft_certificate *certificate,
                                                 const struct weft_problem *problem,
                                                 int64_t page_bytes, int64_t bound_ns,
                                                 int64_t *proven_ns, struct weft_error *err)
{
    bool none;
    struct weft_problem *early = NULL, *paged = NULL;
    WEFT_TRY(check_claim(certificate, problem, bound_ns, &none, err));
    if (none && proven_ns != NULL) *proven_ns = 0;
    if (none) return WEFT_OK;
    const bool ahead = weft_problem_is_early(problem);
    if (ahead) WEFT_TRY(weft_problem_early(problem, &early, err));
    enum weft_status status =
        weft_problem_in_pages(ahead ? early : problem, page_bytes, WEFT_PAGES_LEAST, &paged, err);
    if (status == WEFT_OK) status = check_tree(certificate, paged, ahead, bound_ns, proven_ns, err);
    weft_problem_destroy(paged);
    weft_problem_destroy(early);
    return status;
}

struct weft_hash weft_problem_hash(const struct weft_problem *problem)
{
    struct weft_text text;
    struct weft_json_writer writer;
    struct weft_hash hash = {0};
    struct weft_problem unnamed = *problem; /* names change no plan */
    unnamed.names = (struct weft_problem_names){0};
    weft_text_init(&text);
    weft_json_writer_init(&writer, &text, 0);
    weft_problem_write(&unnamed, &writer);
    if (weft_text_ok(&text)) hash = weft_hash_bytes(weft_text_chars(&text), text.length);
    weft_text_finish(&text);
    return hash;
}
