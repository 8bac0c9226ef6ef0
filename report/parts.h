/* A line of parts of which some may be left out: as many as it has room for, those that matter most
 * first, in the order in which they stand. */
#ifndef WEFT_REPORT_PARTS_H
#define WEFT_REPORT_PARTS_H

#include <stdint.h>

#include "base/text.h"

enum { WEFT_PARTS_MOST = 8, WEFT_PART_BYTES = 80 };

struct weft_parts {
    const char *between;  /* ", " */
    const int32_t *worth; /* [n]: parts by how much they matter, the most first */
    int32_t n, always;    /* the first `always` of them are never left out */
    char texts[WEFT_PARTS_MOST][WEFT_PART_BYTES]; /* "": there is no such part */
};

/* Appends the line, without its end. No columns (0): all parts. */
void weft_parts_render(const struct weft_parts *parts, int32_t columns, struct weft_text *out);

#endif
