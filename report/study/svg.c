/* SPDX-License-Identifier: Apache-2.0 */
#include "report/study/svg.h"

#include <stdio.h>
#include <string.h>

/* Shares of the font's size, in a wide font such as DejaVu Sans. */
static const double letter_width = 0.61; /* of a word */
static const double mean_width = 0.53;   /* of a line, spaces included */

static void add_escaped_bytes(struct weft_text *out, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '<')
            weft_text_add(out, "&lt;");
        else if (text[i] == '&')
            weft_text_add(out, "&amp;");
        else if (text[i] == '"')
            weft_text_add(out, "&quot;");
        else
            weft_text_append(out, &text[i], 1);
    }
}

void weft_svg_add_escaped(struct weft_text *out, const char *text)
{
    add_escaped_bytes(out, text, strlen(text));
}

double weft_svg_width(const char *text, double font)
{
    size_t letters = 0;
    for (; *text; text++)
        letters += ((unsigned char)*text & 0xc0) != 0x80; /* not the rest of a UTF-8 letter */
    return (double)letters * font * letter_width;
}

void weft_svg_add_cut(struct weft_text *out, const char *text, double font, double width)
{
    char shown[128];
    snprintf(shown, sizeof shown, "%s", text);
    for (size_t n = strlen(shown); n > 2 && weft_svg_width(shown, font) > width; n--)
        memcpy(shown + n - 3, "..", 3);
    weft_svg_add_escaped(out, shown);
}

void weft_svg_add_lines(struct weft_text *out, const char *text, double font, double width,
                        double x, double *y, double line, const char *attributes)
{
    const size_t most = (size_t)(width / (font * mean_width));
    while (*text) {
        size_t length = strlen(text);
        if (length > most)
            for (length = most; length > 0 && text[length] != ' ';)
                length--;
        if (length == 0) length = strcspn(text, " "); /* a word that no line has room for */
        weft_text_addf(out, "<text x=\"%.1f\" y=\"%.1f\"%s>", x, *y, attributes);
        add_escaped_bytes(out, text, length);
        weft_text_add(out, "</text>\n");
        *y += line;
        text += length + (text[length] == ' ');
    }
}
