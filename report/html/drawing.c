/* SPDX-License-Identifier: Apache-2.0 */
#include "report/html/drawing.h"

#include "report/html/html.h"

static const char *const sign_classes[] = {
    [WEFT_SIGN_SOLID] = "solid", [WEFT_SIGN_LIGHT] = "light",   [WEFT_SIGN_HATCHED] = "hatched",
    [WEFT_SIGN_LINE] = "line",   [WEFT_SIGN_DASHED] = "dashed", [WEFT_SIGN_RING] = "ring",
    [WEFT_SIGN_LOW] = "low"};

void weft_legend_open(struct weft_text *out)
{
    weft_text_add(out, "<ul class=\"legend\">");
}

void weft_legend_add(struct weft_text *out, enum weft_sign sign, enum weft_hue hue,
                     const char *name)
{
    weft_text_addf(out, "<li><i class=\"%s c%d\"></i>", sign_classes[sign], (int)hue);
    weft_html_add(out, name);
    weft_text_add(out, "</li>");
}

void weft_legend_close(struct weft_text *out)
{
    weft_text_add(out, "</ul>\n");
}

void weft_svg_open(struct weft_text *out, double width, double height, const char *label)
{
    weft_text_addf(out,
                   "<div class=\"wide\"><svg class=\"%s\" viewBox=\"0 0 %.0f %.0f\" role=\"img\" "
                   "aria-label=\"",
                   width > 700 ? "large" : "small", width, height);
    weft_html_add(out, label);
    weft_text_add(out, "\">\n");
}

void weft_svg_close(struct weft_text *out)
{
    weft_text_add(out, "</svg></div>\n");
}
