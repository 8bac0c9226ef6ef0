/* SPDX-License-Identifier: Apache-2.0 */
/* List scheduling: places every block for fixed strategies. It walks the slots in time. When a
 * lane is free, a rule chooses the next block. No slot ever exceeds the limit. The returned time
 * is exact: the simulator gets the same. */
#ifndef WEFT_SCHEDULER_PLACE_LIST_H
#define WEFT_SCHEDULER_PLACE_LIST_H

#include "base/work.h"
#include "scheduler/digest/digest.h"
#include "scheduler/place/list_rule.h"

enum { WEFT_LIST_RULES = 7 };
extern const struct weft_list_rule weft_list_rules[WEFT_LIST_RULES];

/* Scratch memory of list scheduling. The table must outlive it. */
struct weft_list;
WEFT_MUST_USE enum weft_status weft_list_create(const struct weft_digest *table,
                                                struct weft_list **out, struct weft_error *err);
void weft_list_destroy(struct weft_list *list); /* accepts NULL */

/* Later placements spend from `work`, which must outlive the list. */
void weft_list_count(struct weft_list *list, struct weft_work *work);

/* True once that work is late: placements that only may be faster end. */
bool weft_list_is_late(const struct weft_list *list);

/* Index of each item's first block among all blocks, [n_items + 1]. */
const int32_t *weft_list_first_blocks(const struct weft_list *list);

/* Waits of the last placement, [n_slots][WEFT_WAIT_KINDS]. */
const struct weft_list_wait *weft_list_waits(const struct weft_list *list);

/* Returns the step time in ns with agreements, or -1 if the strategies do not fit the problem's
 * limit. If `moves` is not NULL (room for table->n_blocks), fills it in the order of lanes and
 * sets *n_moves. */
int64_t weft_list_place(struct weft_list *list, const int32_t *strategies,
                        struct weft_list_rule rule, struct weft_move *moves, int32_t *n_moves);

/* Bytes: the least limit that gives the last placement. Any limit from it up to the last one gives
 * the same. */
int64_t weft_list_used(const struct weft_list *list);

/* Returns the step time in ns of the best rule, or -1 if none fits. Sets *rule, if not NULL, to
 * its index. */
int64_t weft_list_best(struct weft_list *list, const int32_t *strategies, int32_t *rule);

#endif
