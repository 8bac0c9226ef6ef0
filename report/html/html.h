/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of an HTML document: untrusted text, numbers of drawings, and the tables of an answer.
 * Text is escaped twice: by base/shown.h, so that no mark of direction or control character acts,
 * and for HTML. */
#ifndef WEFT_REPORT_HTML_HTML_H
#define WEFT_REPORT_HTML_HTML_H

#include "base/text.h"
#include "report/answer.h"

/* Appends text for an element or an attribute in double quotes. */
void weft_html_add(struct weft_text *out, const char *text);

/* The same on one line, cut at its end with an ellipsis if it is wider than `width` pixels. */
void weft_html_add_cut(struct weft_text *out, const char *text, double font, double width);

/* About the width of escaped text in pixels, rather too much. */
double weft_html_width(const char *text, double font);

/* Appends a coordinate with at most one digit after the point. */
void weft_html_add_place(struct weft_text *out, double place);

/* Appends the tables of an answer that have heads. Facts are for data alone. */
void weft_html_tables(const struct weft_answer *answer, struct weft_text *out);

#endif
