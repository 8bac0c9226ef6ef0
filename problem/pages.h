/* SPDX-License-Identifier: Apache-2.0 */
/* A problem in pages has the decisions, items and slots of a problem, and rows of whole pages of
 * the device's memory. In both forms a hold in all slots counts its bytes, because such buffers
 * share one range of pages. The room for pages is rounded down to whole ones, so these bytes are
 * rounded up once, in sum. Memory outside the arena counts its bytes.
 *
 * Least pages. No plan takes fewer, so a bound of this problem holds for plans in these pages. Each
 * hold of a page or more has its own pages, and is rounded up. A smaller one counts its bytes,
 * because small buffers may share a page. The blocks of an item share pages too: k blocks take at
 * least k stair_bytes, rounded up. A block counts the least of that for a block, over all k, if all
 * blocks are a page or more.
 *
 * Usual pages. A program mostly takes as many: each hold is rounded up, and all blocks of an item
 * together. Small common holds are put into shared pages as paging does (memory_model/pages/). A
 * plan of this problem mostly fits in its pages, but it need not. */
#ifndef WEFT_PROBLEM_PAGES_H
#define WEFT_PROBLEM_PAGES_H

#include "problem/problem.h"

enum weft_page_rows { WEFT_PAGES_LEAST, WEFT_PAGES_USUAL };

/* Makes the problem in pages of page_bytes. It borrows from `problem` everything but the device's
 * holds, blocks and limit. The caller destroys it first. WEFT_E_DATA if a sum is out of range;
 * WEFT_E_SYSTEM without memory. */
WEFT_MUST_USE enum weft_status weft_problem_in_pages(const struct weft_problem *problem,
                                                     int64_t page_bytes, enum weft_page_rows rows,
                                                     struct weft_problem **out,
                                                     struct weft_error *err);

#endif
