/* SPDX-License-Identifier: Apache-2.0 */
/* Writes JSON Schema (draft-07) from the field tables. */
#include <string.h>

#include "spec/config_reference.h"
#include "spec/config_tables.h"
#include "spec/layer_table.h"

static void write_object(struct weft_json_writer *writer, const struct weft_field_table *table,
                         const struct weft_field_table *layers);

/* The pattern of a value with a unit (base/units.h). */
static const char *unit_pattern(enum weft_field_kind kind)
{
    switch (kind) {
    case WEFT_FIELD_BYTES:
        return "^[0-9]+([.][0-9]+)? ?([kMGTP]?B|[KMGTP]iB)$";
    case WEFT_FIELD_RATE:
        return "^[0-9]+([.][0-9]+)? ?([kMGT]?(B|bit)|[KMGT]iB)/s$";
    case WEFT_FIELD_TIME:
        return "^[0-9]+([.][0-9]+)? ?(ns|us|ms|s|min|h)$";
    case WEFT_FIELD_COUNT_UNIT:
        return "^[0-9]+([.][0-9]+)? ?[kMGTP]?$";
    case WEFT_FIELD_INTEGER:
    case WEFT_FIELD_AUTO:
    case WEFT_FIELD_NAMED:
    case WEFT_FIELD_NUMBER:
    case WEFT_FIELD_BOOL:
    case WEFT_FIELD_STRING:
    case WEFT_FIELD_CHOICE:
    case WEFT_FIELD_CHOICES:
    case WEFT_FIELD_NUMBERS:
    case WEFT_FIELD_OBJECT:
    case WEFT_FIELD_SHORT:
    case WEFT_FIELD_SECTION:
    case WEFT_FIELD_LIST:
    case WEFT_FIELD_ANY:
    case WEFT_FIELD_REFUSED:
    case WEFT_FIELD_KIND_COUNT:
        break;
    }
    return "";
}

static void write_number(struct weft_json_writer *writer, const struct weft_field *field,
                         const char *type)
{
    weft_json_put_string(writer, "type", type);
    weft_json_put_number(writer, "minimum", field->least);
    weft_json_put_number(writer, "maximum", field->most);
}

/* Writes every name of a choice, aliases included. */
static void write_choices(struct weft_json_writer *writer, const struct weft_field *field)
{
    weft_json_key(writer, "enum");
    weft_json_begin_array(writer);
    for (int i = 0; field->choices[i] != NULL; i++) {
        for (const char *name = field->choices[i];;) {
            size_t length = strcspn(name, "=");
            struct weft_text text;
            weft_text_init(&text);
            weft_text_append(&text, name, length);
            if (!weft_text_ok(&text)) writer->text->failed = true;
            weft_json_add_string(writer, weft_text_chars(&text));
            weft_text_finish(&text);
            if (name[length] == '\0') break;
            name += length + 1;
        }
    }
    weft_json_end_array(writer);
}

/* Writes an integer or the word "auto", or one of the choices. */
static void write_auto(struct weft_json_writer *writer, const struct weft_field *field)
{
    weft_json_key(writer, "anyOf");
    weft_json_begin_array(writer);
    weft_json_begin_object(writer);
    write_number(writer, field, "integer");
    weft_json_end_object(writer);
    weft_json_begin_object(writer);
    if (field->choices != NULL)
        write_choices(writer, field);
    else
        weft_json_put_string(writer, "const", "auto");
    weft_json_end_object(writer);
    weft_json_end_array(writer);
}

/* Writes the type of a value, without the braces. */
static void write_type(struct weft_json_writer *writer, const struct weft_field *field,
                       const struct weft_field_table *layers)
{
    switch (field->kind) {
    case WEFT_FIELD_INTEGER:
        write_number(writer, field, "integer");
        return;
    case WEFT_FIELD_AUTO:
    case WEFT_FIELD_NAMED:
        write_auto(writer, field);
        return;
    case WEFT_FIELD_NUMBER:
        write_number(writer, field, "number");
        return;
    case WEFT_FIELD_BOOL:
        weft_json_put_string(writer, "type", "boolean");
        return;
    case WEFT_FIELD_STRING:
        weft_json_put_string(writer, "type", "string");
        weft_json_put_integer(writer, "minLength", 1);
        return;
    case WEFT_FIELD_BYTES:
    case WEFT_FIELD_RATE:
    case WEFT_FIELD_TIME:
    case WEFT_FIELD_COUNT_UNIT:
        weft_json_put_string(writer, "type", "string");
        weft_json_put_string(writer, "pattern", unit_pattern(field->kind));
        return;
    case WEFT_FIELD_CHOICE:
        write_choices(writer, field);
        return;
    case WEFT_FIELD_CHOICES:
        weft_json_put_string(writer, "type", "array");
        weft_json_put_integer(writer, "minItems", 1);
        weft_json_put_bool(writer, "uniqueItems", true);
        weft_json_key(writer, "items");
        weft_json_begin_object(writer);
        write_choices(writer, field);
        weft_json_end_object(writer);
        return;
    case WEFT_FIELD_NUMBERS:
        weft_json_put_string(writer, "type", "array");
        weft_json_put_integer(writer, "minItems", 2);
        weft_json_put_integer(writer, "maxItems", 2);
        weft_json_key(writer, "items");
        weft_json_begin_object(writer);
        write_number(writer, field, "number");
        weft_json_end_object(writer);
        return;
    case WEFT_FIELD_OBJECT:
        write_object(writer, field->table, layers);
        return;
    case WEFT_FIELD_SHORT:
    case WEFT_FIELD_SECTION:
        weft_json_key(writer, "anyOf");
        weft_json_begin_array(writer);
        weft_json_begin_object(writer);
        weft_json_put_string(writer, "type", "string");
        weft_json_end_object(writer);
        weft_json_begin_object(writer);
        write_object(writer, field->table, layers);
        weft_json_end_object(writer);
        weft_json_end_array(writer);
        return;
    case WEFT_FIELD_LIST:
        weft_json_put_string(writer, "type", "array");
        weft_json_put_integer(writer, "minItems", 1);
        weft_json_key(writer, "items");
        weft_json_begin_object(writer);
        write_object(writer, field->table, layers);
        weft_json_end_object(writer);
        return;
    case WEFT_FIELD_ANY:
    case WEFT_FIELD_REFUSED:
    case WEFT_FIELD_KIND_COUNT:
        return;
    }
}

static void write_keys(struct weft_json_writer *writer, const struct weft_field *fields, size_t n,
                       bool required)
{
    for (size_t i = 0; i < n; i++)
        if (!required || fields[i].fallback == NULL) weft_json_add_string(writer, fields[i].name);
}

/* Writes the required and allowed keys of each layer type. */
static void write_layer_types(struct weft_json_writer *writer)
{
    weft_json_key(writer, "allOf");
    weft_json_begin_array(writer);
    for (int32_t i = 0; i < WEFT_KIND_COUNT; i++) {
        const struct weft_kind *kind = weft_kind_at(i);
        weft_json_begin_object(writer);
        weft_json_key(writer, "if");
        weft_json_begin_object(writer);
        weft_json_flat(writer);
        weft_json_key(writer, "properties");
        weft_json_begin_object(writer);
        weft_json_key(writer, "type");
        weft_json_begin_object(writer);
        weft_json_put_string(writer, "const", kind->type);
        weft_json_end_object(writer);
        weft_json_end_object(writer);
        weft_json_end_object(writer);
        weft_json_key(writer, "then");
        weft_json_begin_object(writer);
        weft_json_key(writer, "required");
        weft_json_begin_array(writer);
        write_keys(writer, kind->keys, kind->n_keys, true);
        weft_json_end_array(writer);
        weft_json_key(writer, "propertyNames");
        weft_json_begin_object(writer);
        weft_json_key(writer, "enum");
        weft_json_begin_array(writer);
        weft_json_add_string(writer, "$comment");
        weft_json_add_string(writer, "$schema");
        write_keys(writer, weft_layer_table.fields, weft_layer_table.n_fields, false);
        write_keys(writer, kind->keys, kind->n_keys, false);
        weft_json_end_array(writer);
        weft_json_end_object(writer);
        weft_json_end_object(writer);
        weft_json_end_object(writer);
    }
    weft_json_end_array(writer);
}

/* Writes the members of an object's schema, without the braces. `layers` replaces the table common
 * to all layers, and has the keys of all kinds. */
static void write_object(struct weft_json_writer *writer, const struct weft_field_table *table,
                         const struct weft_field_table *layers)
{
    bool of_layer = table == &weft_layer_table;
    if (of_layer) table = layers;
    weft_json_put_string(writer, "type", "object");
    weft_json_put_string(writer, "description", table->text);
    weft_json_key(writer, "properties");
    weft_json_begin_object(writer);
    weft_json_key(writer, "$comment");
    weft_json_add_bool(writer, true);
    weft_json_key(writer, "$schema");
    weft_json_add_bool(writer, true);
    for (size_t i = 0; i < table->n_fields; i++) {
        const struct weft_field *field = &table->fields[i];
        if (field->kind == WEFT_FIELD_REFUSED) continue;
        weft_json_key(writer, field->name);
        weft_json_begin_object(writer);
        if (field->kind != WEFT_FIELD_OBJECT) {
            weft_json_put_string(writer, "description", field->text);
        }
        write_type(writer, field, layers);
        weft_field_put_default(field, writer);
        weft_json_end_object(writer);
    }
    weft_json_end_object(writer);
    weft_json_key(writer, "required");
    weft_json_begin_array(writer);
    for (size_t i = 0; i < table->n_fields; i++) {
        if (table->fields[i].fallback == NULL) weft_json_add_string(writer, table->fields[i].name);
    }
    weft_json_end_array(writer);
    weft_json_put_bool(writer, "additionalProperties", false);
    if (of_layer) write_layer_types(writer);
}

enum weft_status weft_config_schema(const char *kind, struct weft_text *out, struct weft_error *err)
{
    static const struct weft_field_table *const tables[] = {&weft_run_table, &weft_model_table,
                                                            &weft_cluster_table};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        if (strcmp(kind, tables[i]->name) != 0) continue;
        struct weft_pool pool = {0};
        const struct weft_field_table *layers = weft_layer_table_of_all(NULL, &pool);
        if (layers == NULL) {
            weft_pool_finish(&pool);
            return weft_fail_memory(err, "a schema");
        }
        struct weft_json_writer writer;
        weft_json_writer_init(&writer, out, 2);
        weft_json_begin_object(&writer);
        weft_json_put_string(&writer, "$schema", "http://json-schema.org/draft-07/schema#");
        weft_json_put_string(&writer, "title", kind);
        write_object(&writer, tables[i], layers);
        weft_json_end_object(&writer);
        weft_text_add(out, "\n");
        weft_pool_finish(&pool);
        return weft_text_ok(out) ? WEFT_OK : weft_fail_memory(err, "a schema");
    }
    return weft_fail(err, WEFT_E_USAGE,
                     "there is no schema of \"%s\"; there are: config, model, cluster", kind);
}
