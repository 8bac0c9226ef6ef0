/* SPDX-License-Identifier: Apache-2.0 */
#include "base/wrap.h"

#include <string.h>

#include "base/utf8.h"

enum { ESCAPE = 27 };

/* Bytes of an escape sequence at `at`; 0 if there is none. */
static size_t escape_length(const char *at, size_t left)
{
    size_t length = 2;
    if (left < 3 || at[0] != ESCAPE || at[1] != '[') return 0;
    while (length < left && at[length] >= '0' && at[length] <= '9')
        length++;
    return length < left && at[length] == 'm' ? length + 1 : 0;
}

size_t weft_shown_columns(const char *bytes, size_t length)
{
    size_t columns = 0;
    for (size_t at = 0; at < length;) {
        size_t escape = escape_length(bytes + at, length - at);
        columns += escape == 0 && !weft_utf8_continues((unsigned char)bytes[at]);
        at += escape > 0 ? escape : 1;
    }
    return columns;
}

static size_t word_end(const char *bytes, size_t length, size_t at)
{
    while (at < length && bytes[at] == ' ')
        at++;
    while (at < length && bytes[at] != ' ')
        at++;
    return at;
}

/* True if the word before `end` is a number, which stays on the line of its unit. */
static bool ends_in_number(const char *bytes, size_t end)
{
    size_t at = end;
    while (at > 0 && strchr("0123456789.+-", bytes[at - 1]))
        at--;
    return at < end && (at == 0 || bytes[at - 1] == ' ');
}

size_t weft_wrap_at(const char *bytes, size_t length, size_t columns)
{
    size_t first = word_end(bytes, length, 0), best = 0;
    for (size_t end = first; end == first || weft_shown_columns(bytes, end) <= columns;
         end = word_end(bytes, length, end)) {
        if (end == length) return length;
        if (!ends_in_number(bytes, end)) best = end;
    }
    return best > 0 ? best : first;
}

static size_t count_spaces(const char *bytes, size_t length, size_t at)
{
    size_t n = 0;
    while (at + n < length && bytes[at + n] == ' ')
        n++;
    return n;
}

/* The column for continuation lines: the text after the label, which ends in two spaces, unless it
 * is far to the right. A line without a label is indented a little further. */
static size_t find_indent(const char *line, size_t length, size_t columns)
{
    enum { FAR_IN = 8 };
    size_t lead = count_spaces(line, length, 0);
    for (size_t at = lead; at < length; at++) {
        size_t spaces = count_spaces(line, length, at);
        if (spaces < 2) continue;
        size_t column = weft_shown_columns(line, at + spaces);
        if (column <= columns / 3 && at + spaces < length) return column;
        break;
    }
    size_t column = lead < FAR_IN ? lead + 2 : lead;
    return column <= columns / 2 ? column : 0;
}

/* Breaks a line; continuation lines start in column `indent`. A line with hardly any room on a
 * narrow terminal starts further left. */
static void break_line(const char *line, size_t length, size_t columns, size_t indent,
                       struct weft_text *out)
{
    enum { FAR_IN = 4 };
    size_t lead = count_spaces(line, length, 0), first = 0;
    if (columns > 0 && lead > columns / 2) {
        first = indent = columns > 2 * FAR_IN ? FAR_IN : 0;
        line += lead;
        length -= lead;
    }
    size_t at = columns == 0 ? length : weft_wrap_at(line, length, columns - first);
    weft_text_addf(out, "%*s", (int)first, "");
    weft_text_append(out, line, at);
    for (at += count_spaces(line, length, at); at < length;) {
        size_t left = length - at, n = weft_wrap_at(line + at, left, columns - indent);
        size_t shown = weft_shown_columns(line + at, n),
               most = columns > shown ? columns - shown : 0;
        weft_text_addf(out, "\n%*s", (int)(indent < most ? indent : most), "");
        weft_text_append(out, line + at, n);
        at += n;
        at += count_spaces(line, length, at);
    }
}

void weft_wrap(const char *text, size_t columns, struct weft_text *out)
{
    for (;;) {
        size_t length = strcspn(text, "\n");
        if (columns == 0 || weft_shown_columns(text, length) <= columns)
            weft_text_append(out, text, length);
        else
            break_line(text, length, columns, find_indent(text, length, columns), out);
        text += length;
        if (*text == '\0') return;
        weft_text_add(out, "\n");
        text++;
    }
}

/* True if the line at `text` continues in the next one. */
static bool goes_on(const char *text, size_t length)
{
    return length > 0 && text[0] != ' ' && text[length] == '\n' && text[length + 1] != '\n' &&
           text[length + 1] != ' ' && text[length + 1] != '\0';
}

void weft_wrap_prose(const char *text, size_t columns, struct weft_text *out)
{
    struct weft_text paragraph;
    weft_text_init(&paragraph);
    for (size_t length; *text != '\0'; text += length) {
        length = strcspn(text, "\n");
        weft_text_append(&paragraph, text, length);
        if (goes_on(text, length)) {
            weft_text_add(&paragraph, " ");
        } else if (text[0] == ' ') {
            weft_wrap(weft_text_chars(&paragraph), columns, out);
            paragraph.length = 0;
        } else {
            break_line(weft_text_chars(&paragraph), paragraph.length, columns, 0, out);
            paragraph.length = 0;
        }
        if (text[length] == '\0') break;
        if (!goes_on(text, length)) weft_text_add(out, "\n");
        length++;
    }
    if (!weft_text_ok(&paragraph)) out->failed = true;
    weft_text_finish(&paragraph);
}
