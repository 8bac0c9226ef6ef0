/* SPDX-License-Identifier: Apache-2.0 */
/* A strip shows one choice for each of many members in order, such as the policy of each unit, as
 * coloured cells. Rows are below one another and have the same members. */
#ifndef WEFT_REPORT_HTML_STRIP_H
#define WEFT_REPORT_HTML_STRIP_H

#include "report/html/drawing.h"

struct weft_strip_choice {
    const char *name;
    enum weft_hue hue;
    bool low; /* a cell of half the height, for a second choice of this hue */
};

struct weft_strip_row {
    const char *name;                         /* "policy" */
    const struct weft_strip_choice **choices; /* [n_members]; NULL: the member has none */
};

struct weft_strip {
    const char *label;
    int32_t n_members, n_rows;
    const char *const *members; /* names */
    const struct weft_strip_row *rows;
};

#endif
