/* SPDX-License-Identifier: Apache-2.0 */
#include "report/html/page.h"

#include <stdarg.h>
#include <stdio.h>

#include "report/html/html.h"

void weft_page_finish(struct weft_page *page)
{
    for (struct weft_page_section *section = page->first; section != NULL; section = section->next)
        weft_answer_finish(&section->body);
    weft_pool_finish(&page->pool);
    *page = (struct weft_page){0};
}

static const char *format_text(struct weft_page *page, const char *format, va_list arguments)
{
    va_list again;
    va_copy(again, arguments);
    const int length = vsnprintf(NULL, 0, format, arguments);
    char *text = length < 0 ? NULL : weft_pool_array(&page->pool, (size_t)length + 1, 1);
    if (text != NULL) vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    if (text == NULL) page->failed = true;
    return text != NULL ? text : "";
}

const char *weft_page_format(struct weft_page *page, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const char *text = format_text(page, format, arguments);
    va_end(arguments);
    return text;
}

void *weft_page_array(struct weft_page *page, int64_t n, size_t size)
{
    void *array = weft_pool_array(&page->pool, (size_t)n, size);
    if (array == NULL) page->failed = true;
    return array;
}

void weft_page_tile(struct weft_page *page, const char *label, const char *value, const char *note)
{
    struct weft_tile *tile = weft_page_array(page, 1, sizeof *tile);
    if (tile == NULL) return;
    tile->label = weft_page_format(page, "%s", label);
    tile->value = weft_page_format(page, "%s", value);
    tile->note = weft_page_format(page, "%s", note);
    *(page->last_tile != NULL ? &page->last_tile->next : &page->first_tile) = tile;
    page->last_tile = tile;
}

struct weft_page_section *weft_page_section(struct weft_page *page, const char *key,
                                            const char *title)
{
    struct weft_page_section *section = weft_page_array(page, 1, sizeof *section);
    if (section == NULL) return NULL;
    section->page = page;
    section->key = key;
    section->title = title;
    *(page->last != NULL ? &page->last->next : &page->first) = section;
    page->last = section;
    return section;
}

static void add_text(struct weft_page_section *section, const char *summary, const char *text)
{
    struct weft_page_text *part = weft_page_array(section->page, 1, sizeof *part);
    if (part == NULL) return;
    part->summary = summary;
    part->text = text;
    *(section->last_text != NULL ? &section->last_text->next : &section->first_text) = part;
    section->last_text = part;
}

void weft_section_say(struct weft_page_section *section, const char *format, ...)
{
    va_list arguments;
    if (section == NULL) return;
    va_start(arguments, format);
    add_text(section, NULL, format_text(section->page, format, arguments));
    va_end(arguments);
}

void weft_section_miss(struct weft_page_section *section, const char *format, ...)
{
    va_list arguments;
    if (section == NULL) return;
    va_start(arguments, format);
    section->missing = format_text(section->page, format, arguments);
    va_end(arguments);
}

void weft_section_fold(struct weft_page_section *section, const char *summary, const char *text)
{
    if (section == NULL) return;
    add_text(section, weft_page_format(section->page, "%s", summary),
             weft_page_format(section->page, "%s", text));
}

void weft_section_draw(struct weft_page_section *section, const char *key, const char *caption,
                       const struct weft_drawing_kind *kind, const void *figure)
{
    if (section == NULL || figure == NULL) return;
    struct weft_page_drawing *drawing = weft_page_array(section->page, 1, sizeof *drawing);
    if (drawing == NULL) return;
    *drawing = (struct weft_page_drawing){NULL, key, caption, kind, figure};
    *(section->last != NULL ? &section->last->next : &section->first) = drawing;
    section->last = drawing;
}

void weft_page_text(const struct weft_page *page, struct weft_text *out)
{
    weft_text_addf(out, "%s\n", page->answer);
    for (const struct weft_tile *tile = page->first_tile; tile != NULL; tile = tile->next)
        weft_text_addf(out, "%-18s %s (%s)\n", tile->label, tile->value, tile->note);
    for (const struct weft_page_section *s = page->first; s != NULL; s = s->next)
        if (s->missing != NULL) weft_text_addf(out, "no %s: %s\n", s->key, s->missing);
    out->failed |= page->failed;
}

/* HTML */

static void add_element(struct weft_text *out, const char *open, const char *text,
                        const char *close)
{
    weft_text_add(out, open);
    weft_html_add(out, text);
    weft_text_add(out, close);
}

static void add_head(const struct weft_page *page, struct weft_text *out)
{
    weft_text_add(out, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
                       "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                       "<meta name=\"color-scheme\" content=\"light dark\">\n");
    if (page->reload_s > 0)
        weft_text_addf(out, "<meta http-equiv=\"refresh\" content=\"%d\">\n", page->reload_s);
    add_element(out, "<title>", page->title, "</title>\n<style>\n");
    for (int32_t i = 0; weft_page_style[i] != NULL; i++)
        weft_text_add(out, weft_page_style[i]);
    weft_text_add(out,
                  "</style></head><body>\n"
                  "<svg class=\"defs\" width=\"0\" height=\"0\" aria-hidden=\"true\"><defs>"
                  "<pattern id=\"hatch\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" "
                  "patternTransform=\"rotate(45)\"><rect class=\"hatch-ground\" width=\"6\" "
                  "height=\"6\"/><path class=\"hatch-line\" d=\"M1.5 0V6\"/></pattern></defs></svg>"
                  "\n<header>");
    add_element(out, "<p class=\"over\">", page->subtitle, "</p>");
    add_element(out, "<h1>", page->title, "</h1>\n");
    add_element(out, "<p class=\"answer\">", page->answer, "</p>\n");
    if (page->first_tile != NULL) weft_text_add(out, "<dl class=\"tiles\">\n");
    for (const struct weft_tile *tile = page->first_tile; tile != NULL; tile = tile->next) {
        add_element(out, "<div><dt>", tile->label, "</dt>");
        add_element(out, "<dd>", tile->value, "</dd>");
        add_element(out, "<dd class=\"sub\">", tile->note, "</dd></div>\n");
    }
    if (page->first_tile != NULL) weft_text_add(out, "</dl>\n");
    weft_text_add(out, "<nav>");
    for (const struct weft_page_section *s = page->first; s != NULL; s = s->next) {
        if (s->missing != NULL) continue;
        weft_text_addf(out, "<a href=\"#%s\">%s</a>", s->key, s->title);
    }
    weft_text_add(out, "</nav></header>\n<main>\n");
}

static void add_drawings(const struct weft_page_section *section, struct weft_text *out)
{
    weft_text_add(out, "<div class=\"figures\">\n");
    for (const struct weft_page_drawing *it = section->first; it != NULL; it = it->next) {
        weft_text_addf(out, "<figure data-key=\"%s\">", it->key);
        if (it->caption != NULL) add_element(out, "<figcaption>", it->caption, "</figcaption>\n");
        it->kind->draw(it->figure, out);
        weft_text_add(out, "</figure>\n");
    }
    weft_text_add(out, "</div>\n");
}

static void add_section(const struct weft_page_section *section, struct weft_text *out)
{
    if (section->missing != NULL) {
        weft_text_addf(out, "<section class=\"missing\" id=\"%s\"><h2>%s</h2><p>", section->key,
                       section->title);
        add_element(out, "", section->missing, "</p></section>\n");
        return;
    }
    weft_text_addf(out, "<section id=\"%s\"><h2>%s</h2>\n", section->key, section->title);
    for (const struct weft_page_text *text = section->first_text; text != NULL; text = text->next)
        if (text->summary == NULL) add_element(out, "<p>", text->text, "</p>\n");
    if (section->first != NULL) add_drawings(section, out);
    weft_html_tables(&section->body, out);
    for (const struct weft_page_text *text = section->first_text; text != NULL; text = text->next) {
        if (text->summary == NULL) continue;
        add_element(out, "<details><summary>", text->summary, "</summary>");
        add_element(out, "<pre>", text->text, "</pre></details>\n");
    }
    weft_text_add(out, "</section>\n");
}

void weft_page_html(const struct weft_page *page, struct weft_text *out)
{
    add_head(page, out);
    for (const struct weft_page_section *section = page->first; section; section = section->next)
        add_section(section, out);
    add_element(out, "</main>\n<footer>", page->program, "</footer>\n</body></html>\n");
    out->failed |= page->failed;
}

/* Data */

/* The drawings of a section as an answer; finish it. */
static void tell_drawings(const struct weft_page_section *section, struct weft_answer *data)
{
    for (const struct weft_page_drawing *it = section->first; it != NULL; it = it->next)
        it->kind->tell(it->figure, it->key, data);
}

void weft_page_json(const struct weft_page *page, struct weft_json_writer *writer)
{
    weft_json_begin_object(writer);
    weft_json_put_string(writer, "title", page->title);
    weft_json_put_string(writer, "answer", page->answer);
    for (const struct weft_page_section *s = page->first; s != NULL; s = s->next) {
        struct weft_answer data = {0};
        weft_json_key(writer, s->key);
        weft_json_begin_object(writer);
        if (s->missing != NULL) weft_json_put_string(writer, "missing", s->missing);
        weft_answer_members(&s->body, writer);
        tell_drawings(s, &data);
        weft_answer_members(&data, writer);
        weft_json_end_object(writer);
        weft_answer_finish(&data);
    }
    weft_json_end_object(writer);
    writer->text->failed |= page->failed;
}

void weft_page_csv(const struct weft_page *page, struct weft_text *out)
{
    for (const struct weft_page_section *s = page->first; s != NULL; s = s->next) {
        for (const struct weft_page_drawing *it = s->first; it != NULL; it = it->next) {
            struct weft_answer data = {0};
            weft_text_addf(out, "# %s %s\n", s->key, it->key);
            it->kind->tell(it->figure, it->key, &data);
            weft_answer_csv(&data, out);
            weft_answer_finish(&data);
        }
    }
    out->failed |= page->failed;
}
