/* SPDX-License-Identifier: Apache-2.0 */
/* Overrides such as "--set train.optimizer.lr=1e-3" edit the JSON before decoding, so their values
 * get the same checks. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spec/config_parts.h"
#include "spec/config_tables.h"
#include "spec/layer_table.h"

static enum weft_status fail_override(const struct weft_override *override, struct weft_error *err,
                                      const char *format, ...) WEFT_PRINTF(3, 4);

static enum weft_status fail_override(const struct weft_override *override, struct weft_error *err,
                                      const char *format, ...)
{
    char what[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    return weft_fail(err, WEFT_E_USAGE, "--set %s: %s", override->text, what);
}

/* The path up to segment `n`, such as "train.optimizer". */
static const char *path_of(const struct weft_override *override, int n, char out[256])
{
    size_t length = 0;
    out[0] = '\0';
    for (int i = 0; i < n && length < 256; i++) {
        length += (size_t)snprintf(out + length, 256 - length, "%s%s", i == 0 ? "" : ".",
                                   override->segments[i]);
    }
    return out;
}

static enum weft_status fail_unknown(const struct weft_override *override, int at,
                                     const struct weft_field_table *table, struct weft_error *err)
{
    enum { MOST_KEYS = 64 };
    const char *names[MOST_KEYS];
    size_t n = 0;
    for (size_t i = 0; i < table->n_fields && n < MOST_KEYS; i++)
        names[n++] = table->fields[i].name;
    char path[256];
    path_of(override, at + 1, path);
    const char *near = weft_field_nearest(override->segments[at], names, n);
    if (near != NULL) {
        char before[256];
        path_of(override, at, before);
        return fail_override(override, err, "there is no key \"%s\"; did you mean \"%s%s%s\"?",
                             path, before, at == 0 ? "" : ".", near);
    }
    struct weft_text keys;
    weft_text_init(&keys);
    for (size_t i = 0; i < n; i++)
        weft_text_addf(&keys, "%s%s", i == 0 ? "" : ", ", names[i]);
    enum weft_status status =
        fail_override(override, err, "there is no key \"%s\"; the keys there are: %s", path,
                      weft_text_chars(&keys));
    weft_text_finish(&keys);
    return status;
}

static bool is_index(const char *string)
{
    size_t digits = strspn(string, "0123456789");
    return digits > 0 && digits < 7 && string[digits] == '\0';
}

/* Follows the path through the tables. With `unknown` a key of a layer that no type has is stored
 * there, and is no fault. */
static enum weft_status check_path(const struct weft_override *override,
                                   const struct weft_kinds *kinds, struct weft_pool *pool,
                                   int *unknown, struct weft_error *err)
{
    const struct weft_field_table *table = &weft_run_table;
    bool of_layer = false;
    for (int i = 0; i < override->n_segments; i++) {
        const struct weft_field *field = weft_field_find(table, override->segments[i]);
        bool last = i + 1 == override->n_segments;
        if (field == NULL && of_layer && last && unknown != NULL) {
            *unknown = i;
            return WEFT_OK;
        }
        if (field == NULL) return fail_unknown(override, i, table, err);
        if (last) return WEFT_OK;
        char path[256];
        path_of(override, i + 1, path);
        if (field->table == NULL) {
            return fail_override(override, err, "\"%s\" is %s and has no keys", path,
                                 weft_field_kind_text(field->kind));
        }
        if (field->kind == WEFT_FIELD_LIST) {
            i++;
            if (!is_index(override->segments[i])) {
                return fail_override(
                    override, err,
                    "\"%s\" is not the number of an element; write for example \"%s.0\"",
                    override->segments[i], path);
            }
        }
        table = field->table;
        of_layer = table == &weft_layer_table;
        if (of_layer) table = weft_layer_table_of_all(kinds, pool);
        if (table == NULL) return weft_fail_memory(err, "an override");
    }
    return WEFT_OK;
}

enum weft_status weft_override_check(const struct weft_override *override,
                                     const struct weft_json_value *model,
                                     const struct weft_kinds *kinds, struct weft_pool *pool,
                                     struct weft_error *err)
{
    const struct weft_json_value *kind = weft_json_first(weft_json_member(model, "kinds"));
    const char *name;
    if (override->unknown == 0) return WEFT_OK;
    for (; kind != NULL; kind = weft_json_next(kind)) {
        const struct weft_json_value *key = weft_json_first(weft_json_member(kind, "keys"));
        for (; key != NULL; key = weft_json_next(key))
            if (weft_json_string(weft_json_member(key, "name"), &name) &&
                strcmp(name, override->segments[override->unknown]) == 0)
                return WEFT_OK;
    }
    return check_path(override, kinds, pool, NULL, err);
}

enum weft_status weft_override_parse(const char *text, const struct weft_kinds *kinds,
                                     struct weft_pool *pool, struct weft_override *out,
                                     struct weft_error *err)
{
    *out = (struct weft_override){.text = text};
    char *copy = weft_pool_string(pool, text);
    if (copy == NULL) return weft_fail_memory(err, "an override");
    char *equals = strchr(copy, '=');
    if (equals == NULL || equals == copy) {
        return fail_override(out, err, "must be key=value, such as train.steps=100");
    }
    *equals = '\0';
    out->value = equals + 1;
    char *at = copy;
    while (at != NULL) {
        if (out->n_segments == WEFT_OVERRIDE_SEGMENTS) {
            return fail_override(out, err, "no key is that deep");
        }
        out->segments[out->n_segments++] = at;
        at = strchr(at, '.');
        if (at != NULL) *at++ = '\0';
    }
    return check_path(out, kinds, pool, &out->unknown, err);
}

struct edit {
    const struct weft_override *override;
    const struct weft_json_value *value; /* NULL: the bare string override->value */
    struct weft_json_writer writer;
    struct weft_error *err;
};

static enum weft_status write_edited(struct edit *edit, const struct weft_json_value *node, int at);

static void write_value(struct edit *edit)
{
    if (edit->value != NULL) {
        weft_json_add_value(&edit->writer, edit->value);
    } else {
        weft_json_add_string(&edit->writer, edit->override->value);
    }
}

static enum weft_status write_object(struct edit *edit, const struct weft_json_value *node, int at)
{
    const char *key = edit->override->segments[at];
    bool found = false;
    weft_json_begin_object(&edit->writer);
    for (const struct weft_json_value *value = weft_json_first(node); value != NULL;
         value = weft_json_next(value)) {
        weft_json_key(&edit->writer, weft_json_name(value));
        if (strcmp(weft_json_name(value), key) == 0) {
            found = true;
            WEFT_TRY(write_edited(edit, value, at + 1));
        } else {
            weft_json_add_value(&edit->writer, value);
        }
    }
    if (!found) {
        weft_json_key(&edit->writer, key);
        WEFT_TRY(write_edited(edit, NULL, at + 1));
    }
    weft_json_end_object(&edit->writer);
    return WEFT_OK;
}

static enum weft_status write_array(struct edit *edit, const struct weft_json_value *node, int at)
{
    long index = strtol(edit->override->segments[at], NULL, 10), n = 0;
    weft_json_begin_array(&edit->writer);
    for (const struct weft_json_value *value = weft_json_first(node); value != NULL;
         value = weft_json_next(value), n++) {
        if (n == index) {
            WEFT_TRY(write_edited(edit, value, at + 1));
        } else {
            weft_json_add_value(&edit->writer, value);
        }
    }
    weft_json_end_array(&edit->writer);
    if (index < n) return WEFT_OK;
    char path[256];
    return fail_override(edit->override, edit->err, "\"%s\" has %ld elements, numbered from 0",
                         path_of(edit->override, at, path), n);
}

static enum weft_status write_edited(struct edit *edit, const struct weft_json_value *node, int at)
{
    if (at == edit->override->n_segments) {
        write_value(edit);
        return WEFT_OK;
    }
    bool index = is_index(edit->override->segments[at]);
    if (!index && (node == NULL || weft_json_kind(node) == WEFT_JSON_OBJECT)) {
        return write_object(edit, node, at);
    }
    if (index && node != NULL && weft_json_kind(node) == WEFT_JSON_ARRAY) {
        return write_array(edit, node, at);
    }
    char path[256];
    path_of(edit->override, at, path);
    if (node == NULL)
        return fail_override(edit->override, edit->err, "the config has no \"%s\"", path);
    return fail_override(edit->override, edit->err,
                         "in the config \"%s\" is of kind %s and has no \"%s\"", path,
                         weft_json_kind_name(weft_json_kind(node)), edit->override->segments[at]);
}

/* Reads the value as JSON if it is JSON. A text that only begins like JSON is a mistake. */
static enum weft_status read_value(const struct weft_override *override, struct weft_json **out,
                                   struct weft_error *err)
{
    struct weft_error error = {0};
    const char *value = override->value;
    if (weft_json_parse(value, strlen(value), "value", out, &error) == WEFT_OK) return WEFT_OK;
    if (error.status == WEFT_E_SYSTEM) return weft_fail(err, error.status, "%s", error.text);
    if (value[0] == '\0') return fail_override(override, err, "the value is missing");
    if (strchr("{[\"", value[0]) != NULL) return fail_override(override, err, "%s", error.text);
    return WEFT_OK;
}

enum weft_status weft_override_apply(const struct weft_override *override, int from,
                                     const struct weft_json *document, struct weft_json **out,
                                     struct weft_error *err)
{
    struct weft_json *value = NULL;
    struct weft_text text;
    enum weft_status status;
    weft_text_init(&text);
    struct edit edit = {.override = override, .err = err};
    WEFT_TRY_GOTO(done, read_value(override, &value, err));
    if (value != NULL) edit.value = weft_json_root(value);
    weft_json_writer_init(&edit.writer, &text, 0);
    WEFT_TRY_GOTO(done, write_edited(&edit, weft_json_root(document), from));
    if (!weft_text_ok(&text)) {
        status = weft_fail_memory(err, "an override");
        goto done;
    }
    status = weft_json_parse(weft_text_chars(&text), text.length, override->text, out, err);
done:
    weft_json_destroy(value);
    weft_text_finish(&text);
    return status;
}
