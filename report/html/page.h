/* SPDX-License-Identifier: Apache-2.0 */
/* A page is a report before it has a form: an answer in one sentence, figures, and sections in
 * order. A section has text, drawings and tables, or one line that says why it is left out. The
 * page is rendered as one HTML file without scripts and without addresses, as JSON, and as CSV.
 *
 * A lack of memory is kept until the page is rendered. Functions accept a section that is NULL. */
#ifndef WEFT_REPORT_HTML_PAGE_H
#define WEFT_REPORT_HTML_PAGE_H

#include "base/json/json.h"
#include "base/pool.h"
#include "report/answer.h"
#include "report/html/drawing.h"

struct weft_page_drawing {
    struct weft_page_drawing *next;
    const char *key, *caption; /* caption NULL: none */
    const struct weft_drawing_kind *kind;
    const void *figure; /* of the page's pool */
};

struct weft_page_section {
    struct weft_page_section *next;
    struct weft_page *page;
    const char *key, *title;
    struct weft_page_text {
        struct weft_page_text *next;
        const char *summary; /* NULL: a paragraph; otherwise a text as it is, folded below it */
        const char *text;
    } * first_text, *last_text;
    const char *missing; /* NULL: it is not left out */
    struct weft_page_drawing *first, *last;
    struct weft_answer body; /* tables below the drawings, and facts for data */
};

struct weft_page {
    struct weft_pool pool;
    const char *title, *subtitle; /* untrusted, as all texts here */
    const char *answer;
    const char *program; /* "weft 0.2.0" */
    struct weft_tile {
        struct weft_tile *next;
        const char *label, *value, *note;
    } * first_tile, *last_tile;
    struct weft_page_section *first, *last;
    int32_t reload_s; /* a browser reads the page again after this time; 0: never */
    bool failed;
};

/* {0} is a page too. */
void weft_page_finish(struct weft_page *page);

/* Copy a text to the page. "" without memory. */
const char *weft_page_format(struct weft_page *page, const char *format, ...) WEFT_PRINTF(2, 3);
/* Zeroed memory of the page; NULL without memory. */
void *weft_page_array(struct weft_page *page, int64_t n, size_t size);

/* Adds a large figure to the head: "step", "12.4 ms", "predicted 12.1 ms". Texts are copied. */
void weft_page_tile(struct weft_page *page, const char *label, const char *value, const char *note);

/* Adds a section. Key and title are static. */
struct weft_page_section *weft_page_section(struct weft_page *page, const char *key,
                                            const char *title);
/* Add a paragraph; say why the section is left out; add a folded text. */
void weft_section_say(struct weft_page_section *section, const char *format, ...) WEFT_PRINTF(2, 3);
void weft_section_miss(struct weft_page_section *section, const char *format, ...)
    WEFT_PRINTF(2, 3);
void weft_section_fold(struct weft_page_section *section, const char *summary, const char *text);
/* Adds a drawing of the page's memory. */
void weft_section_draw(struct weft_page_section *section, const char *key, const char *caption,
                       const struct weft_drawing_kind *kind, const void *figure);

/* Renderers. Text has the answer, the figures of the head, and the sections that are left out. JSON
 * is an object with a member for each section. CSV has a table for each drawing, after a line with
 * its section and key. */
void weft_page_text(const struct weft_page *page, struct weft_text *out);
void weft_page_html(const struct weft_page *page, struct weft_text *out);
void weft_page_json(const struct weft_page *page, struct weft_json_writer *writer);
void weft_page_csv(const struct weft_page *page, struct weft_text *out);

/* The style sheet, line by line; NULL at the end. */
extern const char *const weft_page_style[];

#endif
