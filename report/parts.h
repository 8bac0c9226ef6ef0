/* SPDX-License-Identifier: Apache-2.0 */
/* A line of parts with room for some of them. The most important parts are chosen first, and shown
 * in their given order. */
#ifndef WEFT_REPORT_PARTS_H
#define WEFT_REPORT_PARTS_H

#include <stdint.h>

#include "base/text.h"

enum { WEFT_PARTS_MOST = 8, WEFT_PART_BYTES = 80 };

struct weft_parts {
    const char *between;  /* ", " */
    const int32_t *worth; /* [n]: indices of parts, most important first */
    int32_t n, always;    /* the first `always` of `worth` are always shown */
    char texts[WEFT_PARTS_MOST][WEFT_PART_BYTES]; /* "": no such part */
};

/* Appends the line without a line end. columns 0: all parts. */
void weft_parts_render(const struct weft_parts *parts, int32_t columns, struct weft_text *out);

#endif
