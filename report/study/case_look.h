/* SPDX-License-Identifier: Apache-2.0 */
/* The look of a case in figures of a study: its model has a colour, and its network a dash. */
#ifndef WEFT_REPORT_STUDY_CASE_LOOK_H
#define WEFT_REPORT_STUDY_CASE_LOOK_H

#include "report/study/cases.h"

struct weft_case_look {
    const char *colour, *dashes; /* of an SVG stroke; static */
};

/* Models and networks count in the order of their first case. Eight colours and three dashes
 * repeat. */
struct weft_case_look weft_case_look(const struct weft_cases *cases, int32_t which);

/* Colour `number` of the eight, for a part of one case. */
const char *weft_case_colour(int32_t number);

#endif
