/* SPDX-License-Identifier: Apache-2.0 */
#include "report/study/svg.h"

#include <criterion/criterion.h>

Test(svg, text_is_escaped)
{
    struct weft_text out;
    weft_text_init(&out);
    weft_svg_add_escaped(&out, "a<b & \"c\"");
    cr_assert_str_eq(weft_text_chars(&out), "a&lt;b &amp; &quot;c&quot;");
    weft_text_finish(&out);
}

/* Nineteen letters to a line; a word that is longer has a line of its own. */
Test(svg, lines_break_after_a_word)
{
    struct weft_text out;
    double y = 10;
    weft_text_init(&out);
    weft_svg_add_lines(&out, "batch 4 of 1024 <tokens> averyveryverylongwordindeed end", 10, 101, 5,
                       &y, 12, " a=\"b\"");
    cr_assert_str_eq(weft_text_chars(&out),
                     "<text x=\"5.0\" y=\"10.0\" a=\"b\">batch 4 of 1024</text>\n"
                     "<text x=\"5.0\" y=\"22.0\" a=\"b\">&lt;tokens></text>\n"
                     "<text x=\"5.0\" y=\"34.0\" a=\"b\">averyveryverylongwordindeed</text>\n"
                     "<text x=\"5.0\" y=\"46.0\" a=\"b\">end</text>\n");
    cr_assert_float_eq(y, 58, 1e-9);
    weft_text_finish(&out);
}

Test(svg, a_letter_of_several_bytes_is_one)
{
    cr_assert_float_eq(weft_svg_width("\u00d7\u00d7", 10), weft_svg_width("xx", 10), 1e-9);
}

/* Eight letters have room. */
Test(svg, a_word_that_is_too_wide_is_cut)
{
    struct weft_text out;
    weft_text_init(&out);
    weft_svg_add_cut(&out, "abcdefghij", 10, 50);
    weft_svg_add_cut(&out, "abcdefgh", 10, 50);
    cr_assert_str_eq(weft_text_chars(&out), "abcdef..abcdefgh");
    weft_text_finish(&out);
}
