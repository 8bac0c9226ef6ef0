/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/tree/trim.h"

#include <string.h>

struct trim {
    struct weft_proof *proof;
    const struct weft_search *search;
    int64_t bound_ns, boxes_left, boxes_free;
    int32_t *links, n_links; /* of a chain: the children with the rest, downwards */
    bool *kept;              /* [n_links]: the split is needed */
    int32_t *stack;          /* scratch */
    int32_t failed;          /* the leaf that failed the last trial; 0: none */
    struct weft_error *err;
};

/* A check of the certificate computes a box for each leaf, half of the nodes. When the budget is
 * used up, trimming may still compute an eighth of them: often one makes the root a leaf. */
enum { FREE_PART = 16 };

static bool is_over(const struct trim *trim)
{
    return trim->boxes_left <= 0 || (trim->boxes_free <= 0 && weft_search_is_spent(trim->search));
}

static void count_box(struct trim *trim)
{
    trim->boxes_left--;
    trim->boxes_free--;
}

static int32_t sibling_of(const struct weft_proof *proof, int32_t node)
{
    int32_t first = proof->nodes[proof->nodes[node].parent].children;
    return node == first ? first + 1 : first;
}

static bool is_leaf(const struct trim *trim, int32_t node)
{
    return trim->proof->nodes[node].children == 0;
}

/* True if the node's own prices reach the bound in its box; false if no time is left to look. */
static enum weft_status reaches_bound(struct trim *trim, int32_t node, bool *yes)
{
    *yes = false;
    if (is_over(trim)) return WEFT_OK;
    count_box(trim);
    return weft_proof_reaches(trim->proof, node, trim->bound_ns, yes, trim->err);
}

/* True if all leaves below a node reach the bound. The leaf that failed last is tried first. */
static enum weft_status all_reach(struct trim *trim, int32_t node, bool *yes)
{
    const struct weft_proof_node *nodes = trim->proof->nodes;
    int32_t depth = 0, first = 0;
    *yes = true;
    for (int32_t at = trim->failed; at > 0 && first == 0; at = nodes[at].parent)
        if (at == node) first = trim->failed;
    if (first > 0 && is_leaf(trim, first)) WEFT_TRY(reaches_bound(trim, first, yes));
    trim->stack[depth++] = node;
    while (depth > 0 && *yes) {
        int32_t at = trim->stack[--depth], child = nodes[at].children;
        if (child == 0) {
            if (at != first) WEFT_TRY(reaches_bound(trim, at, yes));
            if (!*yes) trim->failed = at;
            continue;
        }
        if (!nodes[child].whole) trim->stack[depth++] = child + 1;
        if (!nodes[child + 1].whole) trim->stack[depth++] = child;
    }
    return WEFT_OK;
}

/* Finds the chain of splits from a node down in which each has a leaf aside. Of two leaves the
 * weaker one is the rest. */
static void find_links(struct trim *trim, int32_t node)
{
    const struct weft_proof_node *nodes = trim->proof->nodes;
    trim->n_links = 0;
    while (!is_leaf(trim, node)) {
        int32_t first = nodes[node].children, rest = first;
        bool leaf[2] = {is_leaf(trim, first), is_leaf(trim, first + 1)};
        if (nodes[first].whole || nodes[first + 1].whole) {
            node = nodes[first].whole ? first : first + 1;
            continue;
        }
        if (!leaf[0] && !leaf[1]) break;
        if (leaf[0] && (!leaf[1] || nodes[first + 1].bound_ns < nodes[first].bound_ns)) rest++;
        trim->links[trim->n_links++] = rest;
        node = rest;
    }
}

static void set_whole(struct trim *trim, int32_t from, int32_t to, bool whole)
{
    for (int32_t k = from; k < to; k++)
        if (!trim->kept[k]) trim->proof->nodes[trim->links[k]].whole = whole;
}

/* Takes away as many splits of the chain's part as the node can do without, by halving. Splits that
 * are kept already stay. */
static enum weft_status drop_splits(struct trim *trim, int32_t from, int32_t to, int32_t node)
{
    bool yes;
    while (from < to && trim->kept[from])
        from++;
    if (from == to || is_over(trim)) return WEFT_OK;
    set_whole(trim, from, to, true);
    WEFT_TRY(all_reach(trim, node, &yes));
    if (yes) return WEFT_OK;
    set_whole(trim, from, to, false);
    if (to - from == 1) return WEFT_OK;
    int32_t middle = from + (to - from) / 2;
    WEFT_TRY(drop_splits(trim, from, middle, node));
    return drop_splits(trim, middle, to, node);
}

/* Keeps the splits above the link that a node below needs. */
static enum weft_status keep_needed(struct trim *trim, int32_t link, int32_t node)
{
    set_whole(trim, 0, link, false);
    WEFT_TRY(drop_splits(trim, 0, link, node));
    for (int32_t k = 0; k < link; k++)
        trim->kept[k] = !trim->proof->nodes[trim->links[k]].whole;
    return WEFT_OK;
}

/* Keeps the splits that the rest needs, then from the bottom up the splits above that each leaf
 * aside needs. */
static enum weft_status trim_links(struct trim *trim, int32_t rest)
{
    memset(trim->kept, 0, (size_t)trim->n_links);
    trim->failed = 0;
    WEFT_TRY(keep_needed(trim, trim->n_links, rest));
    for (int32_t k = trim->n_links - 1; k >= 0; k--)
        if (trim->kept[k]) WEFT_TRY(keep_needed(trim, k, sibling_of(trim->proof, trim->links[k])));
    return WEFT_OK;
}

/* Trims the chain at a node. If a leaf aside can stand for the rest too, the chain ends with it. */
static enum weft_status trim_chain(struct trim *trim, int32_t node)
{
    find_links(trim, node);
    if (trim->n_links == 0) return WEFT_OK;
    WEFT_TRY(trim_links(trim, trim->links[trim->n_links - 1]));
    for (int32_t k = 0; k < trim->n_links; k++) {
        int32_t aside = sibling_of(trim->proof, trim->links[k]);
        bool yes;
        if (!trim->kept[k]) continue;
        trim->proof->nodes[aside].whole = true;
        WEFT_TRY(reaches_bound(trim, aside, &yes));
        trim->proof->nodes[aside].whole = yes;
        if (!yes) continue;
        trim->n_links = k;
        return trim_links(trim, aside);
    }
    return WEFT_OK;
}

/* True if no chain continues from the parent to the node. */
static bool is_top(const struct trim *trim, int32_t node)
{
    return node == 0 || !is_leaf(trim, sibling_of(trim->proof, node));
}

static bool is_lost(const struct weft_proof *proof, int32_t node)
{
    return proof->nodes[node].bound_ns == INT64_MAX;
}

/* Excludes a node that is no longer part of the tree from the bound. */
static void bury_if_lost(struct weft_proof *proof, int32_t node)
{
    int32_t parent = proof->nodes[node].parent;
    if (parent < 0) return;
    if (!is_lost(proof, parent) && proof->nodes[parent].children != 0 &&
        !proof->nodes[sibling_of(proof, node)].whole)
        return;
    proof->nodes[node].bound_ns = INT64_MAX;
    proof->nodes[node].closed = true;
}

/* Makes a node a leaf if its own prices reach the bound. */
static enum weft_status collapse_nodes(struct trim *trim)
{
    struct weft_proof_node *nodes = trim->proof->nodes;
    for (int32_t i = 0; i < trim->proof->n_nodes; i++) {
        bool yes = false;
        bury_if_lost(trim->proof, i);
        if (is_leaf(trim, i) || is_lost(trim->proof, i)) continue;
        if (nodes[i].bound_ns >= trim->bound_ns) WEFT_TRY(reaches_bound(trim, i, &yes));
        if (yes) nodes[i].children = 0;
    }
    return WEFT_OK;
}

/* Bounds the weakest leaf in its own box: children may have no more than their parent's bound yet.
 * Repeats this until the bound of the weakest stays. */
static enum weft_status tighten_weakest(struct trim *trim)
{
    struct weft_proof *proof = trim->proof;
    while (trim->boxes_left > 0 && !weft_search_is_spent(trim->search)) {
        int32_t weakest = weft_proof_least(proof);
        int64_t before_ns = proof->nodes[weakest].bound_ns;
        count_box(trim);
        WEFT_TRY(weft_proof_reprice(proof, weakest, trim->err));
        if (proof->nodes[weakest].bound_ns == before_ns) break;
    }
    trim->bound_ns = weft_proof_bound_ns(proof);
    return WEFT_OK;
}

static enum weft_status trim_all(struct trim *trim)
{
    WEFT_TRY(tighten_weakest(trim));
    WEFT_TRY(collapse_nodes(trim));
    for (int32_t i = trim->proof->n_nodes - 1; i >= 0 && !is_over(trim); i--)
        if (!is_leaf(trim, i) && !is_lost(trim->proof, i) && is_top(trim, i))
            WEFT_TRY(trim_chain(trim, i));
    for (int32_t i = 0; i < trim->proof->n_nodes; i++) {
        bury_if_lost(trim->proof, i);
        if (!is_lost(trim->proof, i)) trim->proof->nodes[i].bound_ns = trim->bound_ns;
    }
    return WEFT_OK;
}

enum weft_status weft_trim(struct weft_proof *proof, const struct weft_search *search,
                           int64_t most_boxes, struct weft_error *err)
{
    struct weft_pool pool = {0};
    size_t n = (size_t)proof->n_nodes;
    struct trim trim = {.proof = proof,
                        .search = search,
                        .boxes_left = most_boxes,
                        .boxes_free = proof->n_nodes / FREE_PART,
                        .links = weft_pool_array(&pool, n, sizeof *trim.links),
                        .kept = weft_pool_array(&pool, n, sizeof *trim.kept),
                        .stack = weft_pool_array(&pool, n, sizeof *trim.stack),
                        .err = err};
    enum weft_status status =
        trim.links && trim.kept && trim.stack ? trim_all(&trim) : weft_fail_memory(err, "a proof");
    weft_pool_finish(&pool);
    return status;
}
