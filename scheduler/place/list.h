/* List scheduling: for fixed strategies, place every block by walking the slots in time and putting
 * on every lane, whenever it is free, what a rule says is next, without ever holding more than the
 * limit in any slot. Event-exact: the time that it returns is the simulator's. */
#ifndef WEFT_SCHEDULER_PLACE_LIST_H
#define WEFT_SCHEDULER_PLACE_LIST_H

#include "base/work.h"
#include "scheduler/digest/digest.h"
#include "scheduler/place/list_rule.h"

enum { WEFT_LIST_RULES = 7 };
extern const struct weft_list_rule weft_list_rules[WEFT_LIST_RULES];

/* Scratch memory of list scheduling, made once for a table. */
struct weft_list;
WEFT_MUST_USE enum weft_status weft_list_create(const struct weft_digest *table,
                                                struct weft_list **out, struct weft_error *err);
void weft_list_destroy(struct weft_list *list); /* accepts NULL */

/* Placements spend of the work from now on. */
void weft_list_count(struct weft_list *list, struct weft_work *work);

/* [n_items + 1]: where the blocks of an item begin among those of all. */
const int32_t *weft_list_first_blocks(const struct weft_list *list);

/* [n_slots][WEFT_WAIT_KINDS], of the last placement. */
const struct weft_list_wait *weft_list_waits(const struct weft_list *list);

/* Step time in ns (agreements included), or -1 when the strategies' lean rows exceed the problem's
 * limit. Fills moves (room for table->n_blocks) in the order of lanes when it is not NULL. */
int64_t weft_list_place(struct weft_list *list, const int32_t *strategies,
                        struct weft_list_rule rule, struct weft_move *moves, int32_t *n_moves);

/* With any limit from this one to that of the last placement, that would have been the same. */
int64_t weft_list_used(const struct weft_list *list);

/* The best of all rules: its step time, or -1; *rule is set when it is not NULL. */
int64_t weft_list_best(struct weft_list *list, const int32_t *strategies, int32_t *rule);

#endif
