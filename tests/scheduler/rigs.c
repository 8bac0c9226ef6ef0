/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/scheduler/rigs.h"
#include "tests/scheduler/limit.h"

#include <criterion/criterion.h>

void branch_rig_begin(struct branch_rig *rig, const struct weft_problem *problem,
                      int64_t limit_bytes)
{
    cr_assert_eq(weft_digest_create(problem, &rig->table, NULL), WEFT_OK);
    cr_assert_eq(weft_search_create(with_limit(rig->table, limit_bytes), &rig->search, NULL),
                 WEFT_OK);
    weft_search_begin(rig->search, rig->options.budget);
    cr_assert_geq(weft_search_try(rig->search, rig->table->leanest), 0);
    cr_assert_eq(weft_branch_create(rig->table, &rig->options, rig->search, &rig->branch, NULL),
                 WEFT_OK);
}

void branch_rig_end(struct branch_rig *rig)
{
    weft_branch_destroy(rig->branch);
    weft_search_destroy(rig->search);
    weft_digest_destroy(rig->table);
    weft_problem_destroy(rig->problem);
}

void proof_rig_begin(struct proof_rig *rig, int32_t most_nodes)
{
    int64_t limit_bytes = rig->problem->tiers[0].limit_bytes;
    cr_assert_eq(weft_digest_create(rig->problem, &rig->table, NULL), WEFT_OK);
    cr_assert_eq(weft_dual_create(with_limit(rig->table, limit_bytes), &rig->dual, NULL), WEFT_OK);
    cr_assert_eq(weft_proof_create(rig->problem, most_nodes, &rig->proof, NULL), WEFT_OK);
    cr_assert_eq(weft_search_create(with_limit(rig->table, limit_bytes), &rig->search, NULL),
                 WEFT_OK);
}

void proof_rig_end(struct proof_rig *rig)
{
    weft_search_destroy(rig->search);
    weft_proof_destroy(rig->proof);
    weft_dual_destroy(rig->dual);
    weft_digest_destroy(rig->table);
    weft_problem_destroy(rig->problem);
}
