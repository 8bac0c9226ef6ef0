/* SPDX-License-Identifier: Apache-2.0 */
/* A drawing shows series as SVG, and tells the same series as a table of data. Colours are hues of
 * the page's style, which has them for light and for dark paper. */
#ifndef WEFT_REPORT_HTML_DRAWING_H
#define WEFT_REPORT_HTML_DRAWING_H

#include "base/text.h"
#include "report/answer.h"

enum weft_hue {
    WEFT_HUE_BLUE,
    WEFT_HUE_ORANGE,
    WEFT_HUE_GREEN,
    WEFT_HUE_PURPLE,
    WEFT_HUE_ROSE,
    WEFT_HUE_TEAL,
    WEFT_HUE_AMBER,
    WEFT_HUE_SLATE,
    WEFT_HUE_MAGENTA,
    WEFT_HUE_BROWN,
    WEFT_HUE_COUNT
};

/* Signs of a legend, which are classes of the style. */
enum weft_sign {
    WEFT_SIGN_SOLID,
    WEFT_SIGN_LIGHT,
    WEFT_SIGN_HATCHED,
    WEFT_SIGN_LINE,
    WEFT_SIGN_DASHED,
    WEFT_SIGN_RING,
    WEFT_SIGN_LOW
};

/* Adds one entry of a legend. A legend is a list between these two. */
void weft_legend_open(struct weft_text *out);
void weft_legend_add(struct weft_text *out, enum weft_sign sign, enum weft_hue hue,
                     const char *name);
void weft_legend_close(struct weft_text *out);

/* Opens and closes a drawing. `label` is read aloud in place of it. */
void weft_svg_open(struct weft_text *out, double width, double height, const char *label);
void weft_svg_close(struct weft_text *out);

/* One kind of drawing. `figure` is its struct: weft_chart, weft_timeline, weft_stack, weft_strip.
 */
struct weft_drawing_kind {
    void (*draw)(const void *figure, struct weft_text *out);
    /* Adds one table with the name `key`. */
    void (*tell)(const void *figure, const char *key, struct weft_answer *data);
};
extern const struct weft_drawing_kind weft_drawing_chart, weft_drawing_timeline, weft_drawing_stack,
    weft_drawing_strip;

#endif
