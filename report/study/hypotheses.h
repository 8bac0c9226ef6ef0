/* SPDX-License-Identifier: Apache-2.0 */
/* The three hypotheses of a study about the division of memory (report/study/cases.h):
 *
 *  1. With the same memory for policies, more for scheduling shortens the step, and saturates.
 *  2. With the same memory for scheduling, less for policies lengthens the step.
 *  3. With the same sum, the best division lies in between: neither the least memory for policies
 *     nor all of it is as fast.
 *
 * Each is judged along lines of divisions. Simulated steps that differ by at most 0.05 % count as
 * equal, and measured steps by at most 2 %. */
#ifndef WEFT_REPORT_STUDY_HYPOTHESES_H
#define WEFT_REPORT_STUDY_HYPOTHESES_H

#include "report/study/cases.h"

enum { WEFT_HYPOTHESES = 3 };

enum weft_verdict {
    WEFT_VERDICT_NONE,  /* fewer than three plans on the line */
    WEFT_VERDICT_EQUAL, /* all steps are equal */
    WEFT_VERDICT_HOLDS,
    WEFT_VERDICT_SATURATES, /* of the first: it holds, and the second half of the memory gives at
                               most half of the gain of the first half */
    WEFT_VERDICT_REFUTED,
    WEFT_VERDICTS
};

/* Judges hypothesis 0 to 2 on a line of a case: the limit of policies, the distance of both limits,
 * or the limit of the sum, by number. Lines 0 to n_limits - 3 of the first two have three points or
 * more, and lines 2 to n_limits - 1 of the third. */
enum weft_verdict weft_hypothesis_judge(const struct weft_case *one, enum weft_clock_of_case clock,
                                        int hypothesis, int32_t line);

/* Adds a table of verdicts, and the lines that refute. Nothing for measured steps without a
 * measured case. */
void weft_hypotheses_report(const struct weft_cases *cases, enum weft_clock_of_case clock,
                            struct weft_answer *answer);

#endif
