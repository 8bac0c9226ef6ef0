/* SPDX-License-Identifier: Apache-2.0 */
#include "spec/field.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/shown.h"
#include "base/units.h"
#include "spec/names.h"

/* The place of a value, for messages. */
struct place {
    const char *source, *path;
    struct weft_pool *pool;
    struct weft_findings *findings;
};

void weft_findings_init(struct weft_findings *findings)
{
    *findings = (struct weft_findings){0};
    weft_text_init(&findings->text);
}

void weft_findings_finish(struct weft_findings *findings)
{
    weft_text_finish(&findings->text);
    findings->count = 0;
}

/* True if the override's key is the path, or ends in it for a section in its own file:
 * "cluster.link.intra" matches "$.cluster.link.intra" and "$.link.intra", and
 * "model.layers.3.vocab" matches "$.layers[3].vocab". */
static bool gives_path(const char *override, const char *path)
{
    char key[256];
    size_t n = 0, length = strcspn(override, "=");
    for (const char *at = path; *at != '\0' && n < sizeof key; at++)
        if (*at != '$' && *at != ']') key[n++] = (char)(*at == '[' ? '.' : *at);
    if (n < 2 || n - 1 > length || memcmp(override + length - (n - 1), key + 1, n - 1) != 0)
        return false;
    return n - 1 == length || override[length - n] == '.';
}

static const char *override_of(const struct weft_findings *findings, const char *path)
{
    for (int32_t i = findings->n_overrides - 1; i >= 0; i--)
        if (gives_path(findings->overrides[i], path)) return findings->overrides[i];
    return NULL;
}

/* The file of that source; NULL for other sources. A run that was made for a converted document has
 * the document's name too, so the document is preferred. */
static const struct weft_findings_file *file_of(const struct weft_findings *findings,
                                                const char *source)
{
    const struct weft_findings_file *found = NULL;
    for (int32_t i = 0; i < findings->n_files; i++)
        if (strcmp(findings->files[i].source, source) == 0 &&
            (found == NULL || findings->files[i].n_renames > 0))
            found = &findings->files[i];
    return found;
}

/* The path of the user's key. Other paths within a converted document are its beginning. */
static const char *written_path(const struct weft_findings_file *file, const char *path)
{
    for (int32_t i = 0; i < file->n_renames; i++)
        if (strcmp(file->renames[i].path, path) == 0) return file->renames[i].written;
    return file->n_renames > 0 && strncmp(path, "$.layers", 8) == 0 ? "$" : path;
}

/* Appends "source:line:column: path". */
static void add_place(const struct weft_findings *findings, const char *source, const char *path,
                      struct weft_text *line)
{
    size_t at_line, at_column;
    const struct weft_findings_file *file = file_of(findings, source);
    if (file != NULL) path = written_path(file, path);
    weft_text_add(line, source);
    if (file != NULL) {
        weft_json_place(file->written, path, &at_line, &at_column);
        weft_text_addf(line, ":%zu:%zu", at_line, at_column);
    }
    weft_text_addf(line, ": %s", path);
}

void weft_findings_add(struct weft_findings *findings, const char *source, const char *path,
                       const char *format, ...)
{
    char what[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    const char *given = override_of(findings, path);
    struct weft_text line;
    weft_text_init(&line);
    if (given == NULL)
        add_place(findings, source, path, &line);
    else
        weft_text_addf(&line, "%s: %s", source, path);
    weft_text_addf(&line, ": %s", what);
    if (given != NULL) weft_text_addf(&line, " (%.200s was given)", given);
    /* A finding quotes untrusted text, and stays on one line. */
    weft_text_add_shown(&findings->text, weft_text_chars(&line), line.length, WEFT_SHOWN_LINE);
    weft_text_add(&findings->text, "\n");
    if (!weft_text_ok(&line)) findings->text.failed = true;
    weft_text_finish(&line);
    findings->count++;
}

enum weft_status weft_findings_status(const struct weft_findings *findings, struct weft_error *err)
{
    enum { ROOM = WEFT_ERROR_TEXT_BYTES - 64 };
    if (findings->count == 0) return WEFT_OK;
    if (!weft_text_ok(&findings->text)) return weft_fail_memory(err, "the findings in a config");
    const char *text = weft_text_chars(&findings->text);
    int32_t shown = 0;
    size_t length = 0;
    for (const char *end; shown < findings->count; shown++) {
        end = strchr(text + length, '\n');
        if (end == NULL || (size_t)(end - text) > ROOM) break;
        length = (size_t)(end - text) + 1;
    }
    if (shown == 0) return weft_fail(err, WEFT_E_DATA, "%.*s...", ROOM, text);
    if (shown == findings->count) return weft_fail(err, WEFT_E_DATA, "%.*s", (int)length - 1, text);
    return weft_fail(err, WEFT_E_DATA, "%.*sand %d more", (int)length, text,
                     findings->count - shown);
}

const struct weft_field *weft_field_find(const struct weft_field_table *table, const char *name)
{
    for (size_t i = 0; i < table->n_fields; i++) {
        if (strcmp(table->fields[i].name, name) == 0) return &table->fields[i];
    }
    return NULL;
}

const char *weft_field_kind_text(enum weft_field_kind kind)
{
    switch (kind) {
    case WEFT_FIELD_INTEGER:
        return "an integer";
    case WEFT_FIELD_AUTO:
        return "an integer or \"auto\"";
    case WEFT_FIELD_NAMED:
        return "an integer or one of the names";
    case WEFT_FIELD_NUMBER:
        return "a number";
    case WEFT_FIELD_BOOL:
        return "true or false";
    case WEFT_FIELD_STRING:
        return "a string";
    case WEFT_FIELD_BYTES:
        return "bytes with a unit, for example \"24GiB\"";
    case WEFT_FIELD_RATE:
        return "a rate with a unit, for example \"25GB/s\"";
    case WEFT_FIELD_TIME:
        return "a time with a unit, for example \"8us\"";
    case WEFT_FIELD_COUNT_UNIT:
        return "a count with a unit, for example \"312T\"";
    case WEFT_FIELD_CHOICE:
        return "one of the names";
    case WEFT_FIELD_CHOICES:
        return "an array of names";
    case WEFT_FIELD_NUMBERS:
        return "an array of 2 numbers";
    case WEFT_FIELD_OBJECT:
        return "an object";
    case WEFT_FIELD_SHORT:
        return "a path, or an object with one";
    case WEFT_FIELD_SECTION:
        return "an object, or the path of a file that holds one";
    case WEFT_FIELD_LIST:
        return "an array of objects";
    case WEFT_FIELD_ANY:
        return "as the text says";
    case WEFT_FIELD_REFUSED:
        return "left out";
    case WEFT_FIELD_KIND_COUNT:
        break;
    }
    return "";
}

static void add_finding(const struct place *place, const char *what)
{
    weft_findings_add(place->findings, place->source, place->path, "%s", what);
}

static const char *article_of(const struct weft_json_value *value)
{
    switch (weft_json_kind(value)) {
    case WEFT_JSON_ARRAY:
    case WEFT_JSON_OBJECT:
        return "an ";
    case WEFT_JSON_BOOL:
    case WEFT_JSON_NUMBER:
    case WEFT_JSON_STRING:
        return "a ";
    case WEFT_JSON_NULL:
    case WEFT_JSON_KIND_COUNT:
        break;
    }
    return "";
}

static void wrong_kind(const struct place *place, const struct weft_field *field,
                       const struct weft_json_value *value)
{
    const char *string = NULL;
    const char *refused = weft_json_string(value, &string) ? weft_name_refused(string) : NULL;
    if (refused != NULL)
        weft_findings_add(place->findings, place->source, place->path,
                          "\"%.80s\" is not possible; %s", string, refused);
    else
        weft_findings_add(place->findings, place->source, place->path, "is %s%s; must be %s",
                          article_of(value), weft_json_kind_name(weft_json_kind(value)),
                          weft_field_kind_text(field->kind));
}

/* True if the number is in the field's range; adds a finding otherwise. A range of one value needs
 * no explanation. */
static bool in_range(const struct place *place, const struct weft_field *field, double number)
{
    if (number >= field->least && number <= field->most) return true;
    struct weft_text what;
    weft_text_init(&what);
    weft_field_show(field, number, &what);
    if (field->least == field->most) {
        weft_text_add(&what, " is not possible; must be ");
        weft_field_show(field, field->least, &what);
        weft_text_addf(&what, " (%s)", field->text);
    } else {
        weft_text_add(&what, " is out of range; must be ");
        weft_field_show(field, field->least, &what);
        weft_text_add(&what, " to ");
        weft_field_show(field, field->most, &what);
    }
    add_finding(place, weft_text_chars(&what));
    weft_text_finish(&what);
    return false;
}

static void decode_integer(const struct place *place, const struct weft_field *field,
                           const struct weft_json_value *value, int64_t *target)
{
    double number;
    if (!weft_json_number(value, &number)) {
        wrong_kind(place, field, value);
    } else if (in_range(place, field, number) && !weft_json_integer(value, target)) {
        const char *text;
        const int length = (int)weft_json_number_text(value, &text);
        const bool whole = floor(number) == number;
        weft_findings_add(place->findings, place->source, place->path,
                          whole ? "%.*s is not within what is read exactly; must be an integer in "
                                  "digits alone, at most %lld"
                                : "%.*s is not a whole number; must be an integer",
                          length, text, (long long)WEFT_JSON_MOST_INTEGER);
    }
}

/* Decodes an integer, or "auto" as 0. */
static void decode_auto(const struct place *place, const struct weft_field *field,
                        const struct weft_json_value *value, int64_t *target)
{
    const char *word;
    *target = 0;
    if (!weft_json_string(value, &word))
        decode_integer(place, field, value, target);
    else if (strcmp(word, "auto") != 0)
        wrong_kind(place, field, value);
}

/* Decodes an integer, or a name as the negative of its index. */
static void decode_named(const struct place *place, const struct weft_field *field,
                         const struct weft_json_value *value, int64_t *target)
{
    const char *word;
    struct weft_text what;
    if (!weft_json_string(value, &word)) {
        decode_integer(place, field, value, target);
        return;
    }
    for (int i = 0; field->choices[i] != NULL; i++) {
        if (strcmp(field->choices[i], word) != 0) continue;
        *target = -i;
        return;
    }
    weft_text_init(&what);
    weft_text_addf(&what, "\"%.80s\" is not possible; must be ", word);
    for (int i = 0; field->choices[i] != NULL; i++)
        weft_text_addf(&what, "\"%s\", ", field->choices[i]);
    weft_text_addf(&what, "or an integer from %lld to %lld", (long long)field->least,
                   (long long)field->most);
    add_finding(place, weft_text_chars(&what));
    weft_text_finish(&what);
}

static void decode_number(const struct place *place, const struct weft_field *field,
                          const struct weft_json_value *value, double *target)
{
    double number;
    if (!weft_json_number(value, &number)) {
        wrong_kind(place, field, value);
    } else if (number == 0 && field->fallback != NULL && strcmp(field->fallback, "null") == 0) {
        add_finding(place, "is 0, as if it were left out: give a number above 0, or leave it out");
    } else if (in_range(place, field, number)) {
        *target = number;
    }
}

static void decode_pair(const struct place *place, const struct weft_field *field,
                        const struct weft_json_value *value, double *target)
{
    if (weft_json_kind(value) != WEFT_JSON_ARRAY || weft_json_count(value) != 2) {
        wrong_kind(place, field, value);
        return;
    }
    const struct weft_json_value *item = weft_json_first(value);
    for (int i = 0; i < 2; i++, item = weft_json_next(item)) {
        decode_number(place, field, item, &target[i]);
    }
}

/* Decodes a string with a unit of measure (base/units.h). */
static void decode_unit(const struct place *place, const struct weft_field *field,
                        const struct weft_json_value *value, void *target)
{
    const char *string;
    if (!weft_json_string(value, &string)) {
        wrong_kind(place, field, value);
        return;
    }
    struct weft_error error = {0};
    enum weft_status status;
    int64_t integer = 0;
    double number = 0;
    bool whole = field->kind == WEFT_FIELD_BYTES || field->kind == WEFT_FIELD_TIME;
    if (field->kind == WEFT_FIELD_BYTES) {
        status = weft_units_bytes(string, &integer, &error);
    } else if (field->kind == WEFT_FIELD_TIME) {
        status = weft_units_ns(string, &integer, &error);
    } else if (field->kind == WEFT_FIELD_RATE) {
        status = weft_units_bytes_per_s(string, &number, &error);
    } else {
        status = weft_units_count(string, &number, &error);
    }
    if (status != WEFT_OK) {
        add_finding(place, error.text);
    } else if (whole) {
        if (in_range(place, field, (double)integer)) *(int64_t *)target = integer;
    } else if (in_range(place, field, number)) {
        *(double *)target = number;
    }
}

/* Length of the first name in "fsdp=FULL_SHARD=zero3". */
static size_t name_length(const char *names)
{
    return strcspn(names, "=");
}

void weft_field_choice(const struct weft_field *field, int index, struct weft_text *out)
{
    const char *names = field->choices[index];
    weft_text_append(out, names, name_length(names));
}

static bool choice_has(const char *names, const char *name)
{
    size_t length = strlen(name);
    while (true) {
        size_t own = name_length(names);
        if (own == length && memcmp(names, name, length) == 0) return true;
        if (names[own] == '\0') return false;
        names += own + 1;
    }
}

/* The index of the nearest choice, or -1. */
static int nearest_choice(const struct weft_field *field, const char *string)
{
    enum { MOST_CHOICES = 32 };
    struct weft_text names[MOST_CHOICES];
    const char *chars[MOST_CHOICES];
    int n = 0, near = -1;
    for (; n < MOST_CHOICES && field->choices[n] != NULL; n++) {
        weft_text_init(&names[n]);
        weft_field_choice(field, n, &names[n]);
        chars[n] = weft_text_chars(&names[n]);
    }
    const char *found = weft_field_nearest(string, chars, (size_t)n);
    for (int i = 0; i < n; i++) {
        if (found == chars[i]) near = i;
        weft_text_finish(&names[i]);
    }
    return near;
}

static void unknown_choice(const struct place *place, const struct weft_field *field,
                           const char *string)
{
    struct weft_text what;
    weft_text_init(&what);
    weft_text_addf(&what, "\"%.80s\" is not possible; ", string);
    bool one = field->choices[1] == NULL;
    const char *refused = weft_name_refused(string);
    int near = one || refused != NULL ? -1 : nearest_choice(field, string);
    if (refused != NULL) {
        weft_text_add(&what, refused);
    } else if (near >= 0) {
        weft_text_add(&what, "did you mean \"");
        weft_field_choice(field, near, &what);
        weft_text_add(&what, "\"?");
    } else {
        weft_text_add(&what, "must be ");
        for (int i = 0; field->choices[i] != NULL; i++) {
            const char *between = field->choices[i + 1] == NULL ? " or " : ", ";
            weft_text_addf(&what, "%s\"", i == 0 ? "" : between);
            weft_field_choice(field, i, &what);
            weft_text_add(&what, "\"");
        }
    }
    if (one) weft_text_addf(&what, " (%s)", field->text);
    add_finding(place, weft_text_chars(&what));
    weft_text_finish(&what);
}

static void decode_choice(const struct place *place, const struct weft_field *field,
                          const struct weft_json_value *value, int *target)
{
    const char *string;
    if (!weft_json_string(value, &string)) {
        wrong_kind(place, field, value);
        return;
    }
    for (int i = 0; field->choices[i] != NULL; i++) {
        if (choice_has(field->choices[i], string)) {
            *target = i;
            return;
        }
    }
    unknown_choice(place, field, string);
}

static void decode_choices(const struct place *place, const struct weft_field *field,
                           const struct weft_json_value *value, int *target)
{
    int chosen = 0, index = 0;
    if (weft_json_kind(value) != WEFT_JSON_ARRAY) {
        wrong_kind(place, field, value);
        return;
    }
    if (weft_json_count(value) == 0)
        add_finding(place, "is empty; leave the key out or name one at least");
    for (const struct weft_json_value *item = weft_json_first(value); item != NULL;
         item = weft_json_next(item), index++) {
        struct weft_text path;
        weft_text_init(&path);
        weft_text_addf(&path, "%s[%d]", place->path, index);
        const struct place inner = {place->source, weft_text_chars(&path), place->pool,
                                    place->findings};
        int choice = -1;
        const struct weft_field one = {
            .kind = WEFT_FIELD_CHOICE, .choices = field->choices, .text = field->text};
        decode_choice(&inner, &one, item, &choice);
        if (choice >= 0 && (chosen & 1 << choice) != 0) add_finding(&inner, "is named twice");
        if (choice >= 0) chosen |= 1 << choice;
        weft_text_finish(&path);
    }
    *target = chosen;
}

static void decode_string(const struct place *place, const struct weft_field *field,
                          const struct weft_json_value *value, const char **target)
{
    const char *string;
    if (!weft_json_string(value, &string)) {
        wrong_kind(place, field, value);
    } else if (string[0] == '\0') {
        add_finding(place, "is empty; leave the key out or write a value");
    } else {
        const char *copy = weft_pool_string(place->pool, string);
        if (copy == NULL) place->findings->text.failed = true;
        if (copy == NULL) place->findings->count++;
        *target = copy;
    }
}

static void decode_fallback(const struct place *place, const struct weft_field *field,
                            void *target);

static void decode_short(const struct place *place, const struct weft_field *field,
                         const struct weft_json_value *value, void *target)
{
    const struct weft_field_table *table = field->table;
    if (weft_json_kind(value) == WEFT_JSON_OBJECT) {
        weft_field_decode(table, value, place->source, place->path, place->pool, target,
                          place->findings);
        return;
    }
    if (weft_json_kind(value) != WEFT_JSON_STRING) {
        wrong_kind(place, field, value);
        return;
    }
    decode_string(place, field, value, (void *)((char *)target + table->fields[0].offset));
    for (size_t i = 1; i < table->n_fields; i++)
        decode_fallback(place, &table->fields[i], (char *)target + table->fields[i].offset);
}

static void decode_value(const struct place *place, const struct weft_field *field,
                         const struct weft_json_value *value, void *target)
{
    enum weft_json_kind kind = weft_json_kind(value);
    switch (field->kind) {
    case WEFT_FIELD_INTEGER:
        decode_integer(place, field, value, target);
        return;
    case WEFT_FIELD_AUTO:
        decode_auto(place, field, value, target);
        return;
    case WEFT_FIELD_NAMED:
        decode_named(place, field, value, target);
        return;
    case WEFT_FIELD_NUMBER:
        decode_number(place, field, value, target);
        return;
    case WEFT_FIELD_BOOL:
        if (!weft_json_bool(value, target)) wrong_kind(place, field, value);
        return;
    case WEFT_FIELD_STRING:
        decode_string(place, field, value, target);
        return;
    case WEFT_FIELD_BYTES:
    case WEFT_FIELD_RATE:
    case WEFT_FIELD_TIME:
    case WEFT_FIELD_COUNT_UNIT:
        decode_unit(place, field, value, target);
        return;
    case WEFT_FIELD_CHOICE:
        decode_choice(place, field, value, target);
        return;
    case WEFT_FIELD_CHOICES:
        decode_choices(place, field, value, target);
        return;
    case WEFT_FIELD_NUMBERS:
        decode_pair(place, field, value, target);
        return;
    case WEFT_FIELD_OBJECT:
        if (field->fallback != NULL && strcmp(field->fallback, "null") == 0) *(bool *)target = true;
        weft_field_decode(field->table, value, place->source, place->path, place->pool, target,
                          place->findings);
        return;
    case WEFT_FIELD_SHORT:
        decode_short(place, field, value, target);
        return;
    case WEFT_FIELD_SECTION:
        if (kind != WEFT_JSON_OBJECT && kind != WEFT_JSON_STRING) wrong_kind(place, field, value);
        return;
    case WEFT_FIELD_LIST:
        if (kind != WEFT_JSON_ARRAY) wrong_kind(place, field, value);
        return;
    case WEFT_FIELD_ANY:
        return;
    case WEFT_FIELD_REFUSED:
        weft_findings_add(place->findings, place->source, place->path,
                          "this version does not have it; %s", field->text);
        return;
    case WEFT_FIELD_KIND_COUNT:
        return;
    }
}

/* Decodes the default like a user's value. */
static void decode_fallback(const struct place *place, const struct weft_field *field, void *target)
{
    if (strcmp(field->fallback, "null") == 0) return;
    struct weft_json *document = NULL;
    struct weft_error error = {0};
    if (weft_json_parse(field->fallback, strlen(field->fallback), "default", &document, &error) !=
        WEFT_OK) {
        add_finding(place, error.text);
        return;
    }
    decode_value(place, field, weft_json_root(document), target);
    weft_json_destroy(document);
}

static void unknown_key(const struct place *place, const struct weft_field_table *table,
                        const char *name)
{
    enum { MOST_KEYS = 64 };
    const char *names[MOST_KEYS];
    size_t n = 0;
    for (size_t i = 0; i < table->n_fields && n < MOST_KEYS; i++) {
        if (table->fields[i].kind != WEFT_FIELD_REFUSED) names[n++] = table->fields[i].name;
    }
    const char *near = weft_field_nearest(name, names, n);
    if (near != NULL) {
        weft_findings_add(place->findings, place->source, place->path,
                          "unknown key; did you mean \"%s\"?", near);
        return;
    }
    struct weft_text keys;
    weft_text_init(&keys);
    for (size_t i = 0; i < n; i++)
        weft_text_addf(&keys, "%s%s", i == 0 ? "" : ", ", names[i]);
    weft_findings_add(place->findings, place->source, place->path,
                      "unknown key; the keys of \"%s\" are: %s", table->name,
                      weft_text_chars(&keys));
    weft_text_finish(&keys);
}

static bool is_annotation(const char *name)
{
    return strcmp(name, "$comment") == 0 || strcmp(name, "$schema") == 0;
}

void weft_field_decode(const struct weft_field_table *table, const struct weft_json_value *object,
                       const char *source, const char *path, struct weft_pool *pool, void *target,
                       struct weft_findings *findings)
{
    struct place here = {source, path, pool, findings};
    if (object != NULL && weft_json_kind(object) != WEFT_JSON_OBJECT) {
        weft_findings_add(findings, source, path, "is %s%s; must be an object", article_of(object),
                          weft_json_kind_name(weft_json_kind(object)));
        return;
    }
    for (size_t i = 0; i < table->n_fields; i++) {
        const struct weft_field *field = &table->fields[i];
        const struct weft_json_value *value = weft_json_member(object, field->name);
        struct weft_text inner;
        weft_text_init(&inner);
        weft_text_addf(&inner, "%s.%s", path, field->name);
        struct place place = {source, weft_text_chars(&inner), pool, findings};
        void *member = (char *)target + field->offset;
        if (value != NULL) {
            decode_value(&place, field, value, member);
        } else if (field->fallback != NULL) {
            decode_fallback(&place, field, member);
        } else {
            weft_findings_add(findings, source, path, "the key \"%s\" is missing; %s: %s",
                              field->name, weft_field_kind_text(field->kind), field->text);
        }
        weft_text_finish(&inner);
    }
    for (const struct weft_json_value *value = weft_json_first(object); value != NULL;
         value = weft_json_next(value)) {
        const char *name = weft_json_name(value);
        if (is_annotation(name) || weft_field_find(table, name) != NULL) continue;
        struct weft_text inner;
        weft_text_init(&inner);
        weft_text_addf(&inner, "%s.%s", path, name);
        here.path = weft_text_chars(&inner);
        unknown_key(&here, table, name);
        weft_text_finish(&inner);
    }
}

/* Finds the intended name for an unknown one. */

enum { LONGEST = 48 };

static int least_of(int a, int b)
{
    return a < b ? a : b;
}

static bool same_letter(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* Edit distance, ignoring case; a swap of neighbours is one step (optimal string alignment). */
static int edit_distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
    int cost[LONGEST + 1][LONGEST + 1];
    for (size_t i = 0; i <= a_length; i++)
        cost[i][0] = (int)i;
    for (size_t j = 0; j <= b_length; j++)
        cost[0][j] = (int)j;
    for (size_t i = 1; i <= a_length; i++) {
        for (size_t j = 1; j <= b_length; j++) {
            int change = cost[i - 1][j - 1] + (same_letter(a[i - 1], b[j - 1]) ? 0 : 1);
            int best = least_of(change, least_of(cost[i - 1][j], cost[i][j - 1]) + 1);
            if (i > 1 && j > 1 && same_letter(a[i - 1], b[j - 2]) &&
                same_letter(a[i - 2], b[j - 1])) {
                best = least_of(best, cost[i - 2][j - 2] + 1);
            }
            cost[i][j] = best;
        }
    }
    return cost[a_length][b_length];
}

/* Matches prefixes such as "memory" for "memory_limit", if they are long enough. */
static bool begins_with(const char *longer, const char *start, size_t length)
{
    return length >= 3 && strncmp(longer, start, length) == 0;
}

const char *weft_field_nearest(const char *name, const char *const *names, size_t n)
{
    size_t length = strlen(name);
    if (length == 0 || length > LONGEST) return NULL;
    int limit = 1 + (int)length / 4, best = limit + 1;
    const char *near = NULL, *prefix = NULL;
    for (size_t i = 0; i < n; i++) {
        size_t other = strlen(names[i]);
        if (other > LONGEST) continue;
        int steps = edit_distance(name, length, names[i], other);
        /* A replaced one-letter name is another name, not a typing error. */
        if (steps < best && steps < (int)(length > other ? length : other)) {
            best = steps;
            near = names[i];
        }
        if (prefix == NULL &&
            (begins_with(names[i], name, length) || begins_with(name, names[i], other))) {
            prefix = names[i];
        }
    }
    return near != NULL ? near : prefix;
}
