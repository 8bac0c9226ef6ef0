/* SPDX-License-Identifier: Apache-2.0 */
/* Exact search of strategies and placements together, for small problems. Choices of strategies
 * come in order of their least cost at the root's prices (scheduler/search/near.h). Exact placement
 * searches each one, until that cost reaches the best step. If no try is cut, no plan in rows is
 * faster than the best. */
#ifndef WEFT_SCHEDULER_TREE_JOINT_H
#define WEFT_SCHEDULER_TREE_JOINT_H

#include "scheduler/tree/branch.h"

/* Searches placements of the best's strategies, and of all others if every placement of the best's
 * was tried. Takes a part of the search's budget. Needs prices of the root. WEFT_E_SYSTEM only. */
WEFT_MUST_USE enum weft_status weft_joint_search(struct weft_branch *branch,
                                                 struct weft_error *err);

#endif
