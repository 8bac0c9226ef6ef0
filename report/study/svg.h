/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of an SVG document: text that is safe in it, and lines of text no wider than a page. */
#ifndef WEFT_REPORT_STUDY_SVG_H
#define WEFT_REPORT_STUDY_SVG_H

#include "base/text.h"

/* Appends text for an element or an attribute. */
void weft_svg_add_escaped(struct weft_text *out, const char *text);

/* About the width of a word in a sans-serif font of this size, rather too much. */
double weft_svg_width(const char *text, double font);

/* Appends a word of ASCII, cut at its end with ".." if it is wider. */
void weft_svg_add_cut(struct weft_text *out, const char *text, double font, double width);

/* Appends text elements at (x, *y), `attributes` in each, and moves *y by `line` for each. Text is
 * broken after a space, before it is wider than `width`. */
void weft_svg_add_lines(struct weft_text *out, const char *text, double font, double width,
                        double x, double *y, double line, const char *attributes);

#endif
