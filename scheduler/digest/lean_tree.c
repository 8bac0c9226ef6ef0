/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/digest/lean_tree.h"

#include <stdlib.h>
#include <string.h>

/* Most rows to compare, and the depth at which a branch is cut. Fewer nodes than LEAST_NODES reach
 * no plan of a problem that is so large. Only the root is looked at then: it may prove the best. */
enum { MOST_WORK = 100000000, MOST_DEPTH = 256, LEAST_NODES = 16 };

struct tree {
    struct weft_digest *table;
    struct weft_problem problem; /* the table's problem with limits one byte below the best */
    struct weft_box *box;
    uint64_t *allowed; /* [MOST_DEPTH][n_decisions] */
    int64_t nodes;     /* that the work still allows */
    bool cut;          /* part of the tree was skipped */
};

static int32_t tightest_row(const struct weft_box *box)
{
    int32_t tightest = 0, n_rows = weft_problem_n_rows(box->problem);
    for (int32_t r = 1; r < n_rows; r++)
        if (box->room[r] < box->room[tightest]) tightest = r;
    return tightest;
}

int32_t weft_lean_tree_decision(const struct weft_box *box)
{
    size_t n_rows = (size_t)weft_problem_n_rows(box->problem), row = (size_t)tightest_row(box);
    int32_t chosen = -1;
    int64_t widest = -1;
    for (int32_t u = 0; u < box->problem->n_decisions; u++) {
        uint64_t left = box->allowed[u];
        if ((left & (left - 1)) == 0) continue;
        int64_t spread = 0, least = box->least[(size_t)u * n_rows + row];
        for (int32_t p = 0; p < box->problem->decisions[u].n_strategies; p++) {
            int64_t bytes = box->lean[weft_strategy_at(box->problem, u, p) * n_rows + row];
            if (left >> p & 1u && bytes - least > spread) spread = bytes - least;
        }
        if (spread > widest) {
            widest = spread;
            chosen = u;
        }
    }
    return chosen;
}

static uint64_t *allowed_at(const struct tree *tree, int32_t depth)
{
    return tree->allowed + (size_t)depth * (size_t)tree->table->n_decisions;
}

/* Sets all tiers' limits so that only rows below the best peak fit. */
static void set_limits(struct tree *tree)
{
    const struct weft_problem *problem = tree->table->problem;
    int64_t more_bytes = tree->table->least_bytes - 1 - weft_digest_limit_bytes(tree->table);
    for (int32_t tier = 0; tier < problem->n_tiers; tier++) {
        int64_t bytes = problem->tiers[tier].limit_bytes;
        if (bytes > WEFT_DIGEST_MOST_LIMIT) bytes = WEFT_DIGEST_MOST_LIMIT;
        tree->problem.tiers[tier].limit_bytes = bytes + more_bytes;
    }
}

/* Keeps the box's only plan if its peak is lower than the best. */
static void take_leanest(struct tree *tree, const uint64_t *allowed)
{
    struct weft_digest *table = tree->table;
    int64_t *rows = tree->box->room; /* scratch: the next restriction fills it again */
    for (int32_t u = 0; u < table->n_decisions; u++)
        for (int32_t p = 0; p < weft_digest_count(table, u); p++)
            if (allowed[u] >> p & 1u) table->leanest[u] = p;
    table->least_bytes = weft_digest_lean_rows(table, table->leanest, rows, NULL);
    set_limits(tree);
}

static void search_tree(struct tree *tree, int32_t depth)
{
    size_t bytes = (size_t)tree->table->n_decisions * sizeof *tree->allowed;
    uint64_t *allowed = allowed_at(tree, depth);
    if (depth + 1 == MOST_DEPTH || --tree->nodes < 0) {
        tree->cut = true;
        return;
    }
    weft_box_restrict(tree->box, &(struct weft_facts){.allowed = allowed});
    if (tree->box->empty) return;
    memcpy(allowed, tree->box->allowed, bytes);
    int32_t decision = weft_lean_tree_decision(tree->box);
    if (decision < 0) {
        take_leanest(tree, allowed);
        return;
    }
    for (int32_t p = 0; p < weft_digest_count(tree->table, decision) && !tree->cut; p++) {
        if (!(allowed[decision] >> p & 1u)) continue;
        uint64_t *child = allowed_at(tree, depth + 1);
        memcpy(child, allowed, bytes);
        child[decision] = UINT64_C(1) << p;
        search_tree(tree, depth + 1);
    }
}

enum weft_status weft_lean_tree_search(struct weft_digest *table, struct weft_error *err)
{
    int64_t size = (int64_t)table->problem->n_strategies * table->n_rows + 1;
    struct tree tree = {.table = table, .problem = *table->problem, .nodes = MOST_WORK / size};
    if (tree.nodes < 2) return WEFT_OK;
    if (tree.nodes < LEAST_NODES) tree.nodes = 1;
    set_limits(&tree);
    tree.allowed =
        calloc((size_t)MOST_DEPTH * (size_t)table->n_decisions + 1, sizeof *tree.allowed);
    if (!tree.allowed) return weft_fail_memory(err, "a tree of strategies");
    enum weft_status status = weft_box_create(&tree.problem, &tree.box, err);
    if (status == WEFT_OK && tree.box->lean) {
        for (int32_t u = 0; u < table->n_decisions; u++)
            tree.allowed[u] = weft_decision_all(&table->problem->decisions[u]);
        search_tree(&tree, 0);
        if (!tree.cut) table->least_proven_bytes = table->least_bytes;
    }
    weft_box_destroy(tree.box);
    free(tree.allowed);
    return status;
}
