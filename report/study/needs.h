/* SPDX-License-Identifier: Apache-2.0 */
/* Reports on the memory that policies need: one row for each policy and way of placing its blocks,
 * and the bytes by category. */
#ifndef WEFT_REPORT_STUDY_NEEDS_H
#define WEFT_REPORT_STUDY_NEEDS_H

#include "base/units.h"
#include "plan/need.h"
#include "report/answer.h"

/* The first columns of a table of needs: policy and way. */
enum {
    WEFT_NEED_POLICY,
    WEFT_NEED_SHOWN, /* the rule, otherwise the way */
    WEFT_NEED_WAY,
    WEFT_NEED_RULE,
    WEFT_NEED_COLUMNS
};
#define WEFT_NEED_NAMES                                                                            \
    [WEFT_NEED_POLICY] = {"policy", "policy", 'l', WEFT_FIGURE_WORD, 0},                           \
    [WEFT_NEED_SHOWN] = {NULL, "schedule", 'l', WEFT_FIGURE_WORD, 0},                              \
    [WEFT_NEED_WAY] = {"way", NULL, 'l', WEFT_FIGURE_WORD, 0},                                     \
    [WEFT_NEED_RULE] = {"rule", NULL, 'l', WEFT_FIGURE_WORD, 0}

/* Fills these columns. Text omits the policy if it is that of the row before (NULL: none). */
void weft_need_put_name(struct weft_rows *rows, const struct weft_need *row,
                        const struct weft_need *before);

/* "fits", or the excess, like "+8.53 GiB"; "" without a limit (0). */
void weft_need_show_fit(const struct weft_need *need, int64_t limit_bytes,
                        char out[WEFT_UNITS_TEXT_BYTES + 8]);

/* Adds the table "rows" of all needs that apply, compared with the limit (0: none). Data has null
 * for times unless `timed`. */
void weft_report_needs(const struct weft_need *needs, int32_t n, int64_t limit_bytes, bool timed,
                       struct weft_answer *answer);

/* Adds a table of bytes by category, with one column for each published rule. */
void weft_report_needs_memory(const struct weft_need *needs, int32_t n, struct weft_answer *answer);

#endif
