/* Repairs of a list schedule. A rule decides at every moment by what it sees then; looking back, a
 * wait of compute often has a cause that can be put off: gathers held where a reduction then had
 * to complete at once, or a block on the channel ahead of one that was needed. So: place, look for
 * the longest waits, put off their causes, and place again, as long as that helps.
 *
 * RESULTS.md: planner-ideas/repairs. */
#ifndef WEFT_SCHEDULER_PLACE_REPAIR_H
#define WEFT_SCHEDULER_PLACE_REPAIR_H

#include "scheduler/place/list.h"

struct weft_repair;
WEFT_MUST_USE enum weft_status weft_repair_create(const struct weft_digest *table,
                                                  struct weft_repair **out, struct weft_error *err);
void weft_repair_destroy(struct weft_repair *repair); /* accepts NULL */

/* As weft_list_place, for strategies that fit, and the best of at most 1 + most_tries placements.
 */
int64_t weft_repair_place(struct weft_repair *repair, struct weft_list *list,
                          const int32_t *strategies, struct weft_list_rule rule, int32_t most_tries,
                          struct weft_move *moves, int32_t *n_moves);

/* The rule of the best of the last placements; its arrays are the repairs' and kept until the next.
 */
struct weft_list_rule weft_repair_rule(const struct weft_repair *repair);

#endif
