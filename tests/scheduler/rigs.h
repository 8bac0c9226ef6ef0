/* SPDX-License-Identifier: Apache-2.0 */
/* What tests of the search need around what they test, made in the one order in which it can be
 * made. A rig that cannot be made fails the test that runs. */
#ifndef WEFT_TESTS_SCHEDULER_RIGS_H
#define WEFT_TESTS_SCHEDULER_RIGS_H

#include "scheduler/relax/dual.h"
#include "scheduler/search/search.h"
#include "scheduler/tree/branch.h"
#include "scheduler/tree/proof.h"

/* A tree that is to be grown, without its root, and the leanest plan. */
struct branch_rig {
    struct weft_problem *problem; /* destroyed with the rig; NULL where the caller has it */
    struct weft_schedule_options options;
    struct weft_digest *table;
    struct weft_search *search;
    struct weft_branch *branch;
};

/* `problem` is the rig's own or the caller's, who lets it live as long; `options` are set before.
 */
void branch_rig_begin(struct branch_rig *rig, const struct weft_problem *problem,
                      int64_t limit_bytes);
void branch_rig_end(struct branch_rig *rig);

/* A proof of one leaf without prices, what finds prices, and a search that has no plan yet. */
struct proof_rig {
    struct weft_problem *problem; /* the rig's; set before, with its limit */
    struct weft_digest *table;
    struct weft_dual *dual;
    struct weft_proof *proof;
    struct weft_search *search;
};

void proof_rig_begin(struct proof_rig *rig, int32_t most_nodes);
void proof_rig_end(struct proof_rig *rig);

#endif
