/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the key reference from the field tables, as Markdown and as plain lines. */
#include <string.h>

#include "spec/config_reference.h"
#include "spec/config_tables.h"
#include "spec/layer_table.h"

/* Writes the form and range of a value, with `tick` around JSON. */
static void add_value(struct weft_text *out, const struct weft_field *field, const char *tick)
{
    switch (field->kind) {
    case WEFT_FIELD_CHOICES:
        weft_text_addf(out, "%s, of ", weft_field_kind_text(field->kind));
        /* fall through */
    case WEFT_FIELD_CHOICE:
        for (int i = 0; field->choices[i] != NULL; i++) {
            weft_text_addf(out, "%s%s\"", i > 0 ? ", " : "", tick);
            weft_field_choice(field, i, out);
            weft_text_addf(out, "\"%s", tick);
        }
        return;
    case WEFT_FIELD_NAMED:
        for (int i = 0; field->choices[i] != NULL; i++)
            weft_text_addf(out, "%s\"%s\"%s, ", tick, field->choices[i], tick);
        weft_text_add(out, "or ");
        /* fall through */
    case WEFT_FIELD_INTEGER:
    case WEFT_FIELD_AUTO:
    case WEFT_FIELD_NUMBER:
    case WEFT_FIELD_NUMBERS:
    case WEFT_FIELD_BYTES:
    case WEFT_FIELD_RATE:
    case WEFT_FIELD_TIME:
    case WEFT_FIELD_COUNT_UNIT:
        weft_text_addf(out, "%s; ",
                       weft_field_kind_text(field->kind == WEFT_FIELD_NAMED ? WEFT_FIELD_INTEGER
                                                                            : field->kind));
        weft_field_show(field, field->least, out);
        if (field->least == field->most) return;
        weft_text_add(out, " to ");
        weft_field_show(field, field->most, out);
        return;
    case WEFT_FIELD_BOOL:
    case WEFT_FIELD_STRING:
    case WEFT_FIELD_OBJECT:
    case WEFT_FIELD_SHORT:
    case WEFT_FIELD_SECTION:
    case WEFT_FIELD_LIST:
    case WEFT_FIELD_ANY:
        weft_text_add(out, weft_field_kind_text(field->kind));
        return;
    case WEFT_FIELD_REFUSED:
        weft_text_add(out, "not in this version");
        return;
    case WEFT_FIELD_KIND_COUNT:
        return;
    }
}

static void add_default(struct weft_text *out, const struct weft_field *field, bool of_layer,
                        const char *tick)
{
    if (field->fallback == NULL) {
        weft_text_add(out, "required");
    } else if (strcmp(field->fallback, "null") == 0) {
        weft_text_add(out, of_layer ? "see below" : "-");
    } else if (strcmp(field->fallback, "{}") == 0) {
        weft_text_add(out, "its defaults");
    } else {
        weft_text_addf(out, "%s%s%s", tick, field->fallback, tick);
    }
}

/* Lists the kind's required keys, or its optional ones. */
static void add_names(struct weft_text *out, const struct weft_kind *kind, bool required)
{
    bool any = false;
    for (size_t i = 0; i < kind->n_keys; i++) {
        if ((kind->keys[i].fallback == NULL) != required) continue;
        weft_text_addf(out, "%s`%s`", any ? ", " : "", kind->keys[i].name);
        any = true;
    }
    if (!any) weft_text_add(out, "-");
}

static void add_layer_types(struct weft_text *out)
{
    weft_text_add(out, "\n| type | is | needs | may have |\n| --- | --- | --- | --- |\n");
    for (int32_t i = 0; i < WEFT_KIND_COUNT; i++) {
        const struct weft_kind *kind = weft_kind_at(i);
        weft_text_addf(out, "| `%s` | %s | ", kind->type, kind->text);
        add_names(out, kind, true);
        weft_text_add(out, " | ");
        add_names(out, kind, false);
        weft_text_add(out, " |\n");
    }
}

/* Appends the path of a field of the table at `path`: "train.optimizer.lr", "model.layers[]". */
static void add_path(struct weft_text *out, const char *path, const struct weft_field *field)
{
    weft_text_addf(out, "%s%s%s%s", path, *path ? "." : "", field->name,
                   field->kind == WEFT_FIELD_LIST ? "[]" : "");
}

/* Writes a table. `layers` replaces the table common to all layers, and has the keys of all kinds.
 */
static void add_table(struct weft_text *out, const struct weft_field_table *table,
                      const struct weft_field_table *layers, const char *path)
{
    bool of_layer = table == &weft_layer_table;
    if (of_layer) table = layers;
    weft_text_addf(out, "\n## %s\n\n%s\n\n", path, table->text);
    weft_text_add(out, "| key | value | default | |\n| --- | --- | --- | --- |\n");
    for (size_t i = 0; i < table->n_fields; i++) {
        const struct weft_field *field = &table->fields[i];
        weft_text_addf(out, "| `%s` | ", field->name);
        add_value(out, field, "`");
        weft_text_add(out, " | ");
        add_default(out, field, of_layer, "`");
        weft_text_addf(out, " | %s |\n", field->text);
    }
    if (of_layer) add_layer_types(out);
    for (size_t i = 0; i < table->n_fields; i++) {
        const struct weft_field *field = &table->fields[i];
        if (field->table == NULL) continue;
        struct weft_text inner;
        weft_text_init(&inner);
        add_path(&inner, table == &weft_run_table ? "" : path, field);
        if (!weft_text_ok(&inner)) out->failed = true;
        add_table(out, field->table, layers, weft_text_chars(&inner));
        weft_text_finish(&inner);
    }
}

void weft_config_reference(struct weft_text *out)
{
    weft_text_add(
        out, "# Keys of a config\n\n"
             "Generated from the tables that the decoder uses; `weft schema` gives the same as "
             "JSON Schema.\nA config is strict JSON; `$comment` and `$schema` are passed over, "
             "any other key that is not here is an error.\n`--set path.key=value` sets a key "
             "for one run, as in `--set train.optimizer.lr=1e-3` or `--set "
             "model.layers.0.frozen=true`.\n");
    struct weft_pool pool = {0};
    const struct weft_field_table *layers = weft_layer_table_of_all(NULL, &pool);
    if (layers != NULL)
        add_table(out, &weft_run_table, layers, "config");
    else
        out->failed = true;
    weft_pool_finish(&pool);
}

static void visit_keys(const struct weft_field_table *table, const struct weft_field_table *layers,
                       const char *path, weft_config_key_fn *visit, void *context)
{
    bool of_layer = table == &weft_layer_table;
    if (of_layer) table = layers;
    for (size_t i = 0; i < table->n_fields; i++) {
        const struct weft_field *field = &table->fields[i];
        if (field->kind == WEFT_FIELD_REFUSED) continue;
        struct weft_text inner, text;
        weft_text_init(&inner);
        weft_text_init(&text);
        add_path(&inner, path, field);
        if (field->table == NULL || field->kind == WEFT_FIELD_SHORT) {
            bool optional = field->fallback != NULL && strcmp(field->fallback, "null") == 0;
            weft_text_addf(&text, "%s: ", field->text);
            add_value(&text, field, "");
            if (!optional) weft_text_add(&text, field->fallback != NULL ? "; default " : "; ");
            if (!optional) add_default(&text, field, of_layer, "");
            visit(context, weft_text_chars(&inner), weft_text_chars(&text));
        }
        if (field->table != NULL)
            visit_keys(field->table, layers, weft_text_chars(&inner), visit, context);
        weft_text_finish(&inner);
        weft_text_finish(&text);
    }
}

void weft_config_visit_keys(weft_config_key_fn *visit, void *context)
{
    struct weft_pool pool = {0};
    const struct weft_field_table *layers = weft_layer_table_of_all(NULL, &pool);
    if (layers != NULL) visit_keys(&weft_run_table, layers, "", visit, context);
    weft_pool_finish(&pool);
}
