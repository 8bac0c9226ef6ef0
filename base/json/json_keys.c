/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json/json_keys.h"

#include <string.h>

/* Reading */

static bool is_listed(const struct weft_key_table *table, const char *name)
{
    if (strcmp(name, "$comment") == 0 || strcmp(name, "$schema") == 0) return true;
    for (size_t i = 0; i < table->n_keys; i++)
        if (strcmp(table->keys[i].name, name) == 0) return true;
    return false;
}

static enum weft_status check_names(const struct weft_key_table *table,
                                    const struct weft_json_value *object, const char *where,
                                    struct weft_error *err)
{
    const struct weft_json_value *it = weft_json_first(object);
    for (; it != NULL && !table->open; it = weft_json_next(it)) {
        const char *name = weft_json_name(it);
        if (name != NULL && !is_listed(table, name))
            return weft_fail(err, WEFT_E_DATA, "%s: there is no member \"%.64s\" in this format",
                             where, name);
    }
    return WEFT_OK;
}

static enum weft_status read_text(const struct weft_json_value *object, const char *where,
                                  const char *name, struct weft_pool *pool, const char **out,
                                  struct weft_error *err)
{
    const char *text;
    WEFT_TRY(weft_json_need_string(object, where, name, &text, err));
    *out = weft_pool_string(pool, text);
    return *out == NULL ? weft_fail_memory(err, where) : WEFT_OK;
}

/* The text must have no control characters. */
static enum weft_status read_shown(const struct weft_json_value *object, const char *where,
                                   const char *name, struct weft_pool *pool, const char **out,
                                   struct weft_error *err)
{
    const char *text;
    WEFT_TRY(weft_json_need_string(object, where, name, &text, err));
    for (const char *at = text; *at != '\0'; at++) {
        if ((unsigned char)*at >= 0x20 && *at != 0x7f) continue;
        return weft_fail(err, WEFT_E_DATA,
                         "%s: %s holds the control character %d; a file that weft wrote has none",
                         where, name, *at);
    }
    return read_text(object, where, name, pool, out, err);
}

enum weft_status weft_keys_hash(const struct weft_json_value *object, const char *where,
                                const char *name, struct weft_hash *out, struct weft_error *err)
{
    const char *string;
    WEFT_TRY(weft_json_need_string(object, where, name, &string, err));
    if (weft_hash_read(string, out)) return WEFT_OK;
    return weft_fail(err, WEFT_E_DATA, "%s: %s is not 32 hexadecimal digits", where, name);
}

static enum weft_status read_int32(const struct weft_file_key *key,
                                   const struct weft_json_value *object, const char *where,
                                   int32_t *out, struct weft_error *err)
{
    int64_t value;
    const int64_t most = key->most < INT32_MAX ? key->most : INT32_MAX;
    WEFT_TRY(weft_json_need_integer(object, where, key->name, key->least, most, &value, err));
    *out = (int32_t)value;
    return WEFT_OK;
}

static enum weft_status read_key(const struct weft_file_key *key,
                                 const struct weft_json_value *object, const char *where,
                                 struct weft_pool *pool, void *out, struct weft_error *err)
{
    const struct weft_json_value *value;
    switch (key->kind) {
    case WEFT_KEY_INT32:
        return read_int32(key, object, where, out, err);
    case WEFT_KEY_INT64:
        return weft_json_need_integer(object, where, key->name, key->least, key->most, out, err);
    case WEFT_KEY_NUMBER:
        WEFT_TRY(weft_json_need(object, where, key->name, WEFT_JSON_NUMBER, &value, err));
        (void)weft_json_number(value, out);
        return WEFT_OK;
    case WEFT_KEY_BOOL:
        if (weft_json_bool(weft_json_member(object, key->name), out)) return WEFT_OK;
        return weft_fail(err, WEFT_E_DATA, "%s: %s is not true or false", where, key->name);
    case WEFT_KEY_TEXT:
        return read_text(object, where, key->name, pool, out, err);
    case WEFT_KEY_SHOWN:
        return read_shown(object, where, key->name, pool, out, err);
    case WEFT_KEY_HASH:
        return weft_keys_hash(object, where, key->name, out, err);
    case WEFT_KEY_CONST:
    case WEFT_KEY_ONE_OF:
    case WEFT_KEY_OBJECT:
    case WEFT_KEY_VARIANT:
        break;
    }
    return weft_fail(err, WEFT_E_INTERNAL, "%s: no table reads the key \"%s\"", where, key->name);
}

/* True of an optional key that is absent, and of a null that is allowed. */
static bool may_stay(const struct weft_file_key *key, const struct weft_json_value *object)
{
    if (key->flags == WEFT_KEY_NEEDED) return false;
    const struct weft_json_value *value = weft_json_member(object, key->name);
    if (value == NULL) return key->flags & WEFT_KEY_OPTIONAL;
    return (key->flags & WEFT_KEY_OR_NULL) && weft_json_kind(value) == WEFT_JSON_NULL;
}

enum weft_status weft_keys_read(const struct weft_key_table *table,
                                const struct weft_json_value *object, const char *where,
                                struct weft_pool *pool, void *target, struct weft_error *err)
{
    WEFT_TRY(check_names(table, object, where, err));
    for (size_t i = 0; i < table->n_keys; i++) {
        const struct weft_file_key *key = &table->keys[i];
        if (key->offset == WEFT_KEY_APART || may_stay(key, object)) continue;
        WEFT_TRY(read_key(key, object, where, pool, (char *)target + key->offset, err));
    }
    return WEFT_OK;
}

/* The schema */

/* Ranges of the C types are not part of a format. */
static void put_range(const struct weft_file_key *key, struct weft_json_writer *writer)
{
    if (key->least >= -1) weft_json_put_integer(writer, "minimum", key->least);
    if (key->most < WEFT_KEY_MOST && key->most != INT32_MAX)
        weft_json_put_integer(writer, "maximum", key->most);
}

static void put_names(const char *const *names, struct weft_json_writer *writer)
{
    weft_json_key(writer, "enum");
    weft_json_begin_array(writer);
    for (; *names != NULL; names++)
        weft_json_add_string(writer, *names);
    weft_json_end_array(writer);
}

static void put_type(const struct weft_file_key *key, struct weft_json_writer *writer)
{
    static const char *const types[] = {
        [WEFT_KEY_INT32] = "integer", [WEFT_KEY_INT64] = "integer", [WEFT_KEY_NUMBER] = "number",
        [WEFT_KEY_BOOL] = "boolean",  [WEFT_KEY_TEXT] = "string",   [WEFT_KEY_SHOWN] = "string",
        [WEFT_KEY_HASH] = "string",   [WEFT_KEY_OBJECT] = "object"};
    weft_json_key(writer, "type");
    if (!(key->flags & WEFT_KEY_OR_NULL)) {
        weft_json_add_string(writer, types[key->kind]);
        return;
    }
    weft_json_begin_array(writer);
    weft_json_add_string(writer, types[key->kind]);
    weft_json_add_string(writer, "null");
    weft_json_end_array(writer);
}

/* One value, without the braces. */
static void put_value(const struct weft_file_key *key, struct weft_json_writer *writer)
{
    switch (key->kind) {
    case WEFT_KEY_INT32:
    case WEFT_KEY_INT64:
        put_type(key, writer);
        put_range(key, writer);
        return;
    case WEFT_KEY_NUMBER:
    case WEFT_KEY_BOOL:
    case WEFT_KEY_TEXT:
    case WEFT_KEY_SHOWN:
        put_type(key, writer);
        return;
    case WEFT_KEY_HASH:
        put_type(key, writer);
        weft_json_put_string(writer, "pattern", "^[0-9a-f]{32}$");
        return;
    case WEFT_KEY_CONST:
        weft_json_put_string(writer, "const", key->of);
        return;
    case WEFT_KEY_ONE_OF:
        put_names(key->of, writer);
        return;
    case WEFT_KEY_OBJECT:
        if (key->of == NULL)
            put_type(key, writer);
        else
            weft_keys_schema(key->of, writer);
        return;
    case WEFT_KEY_VARIANT:
        weft_keys_schema_of_any(key->of, writer);
        return;
    }
}

/* A key has a text of its own, so the object's schema with its text is one part of it. */
static void put_part(const struct weft_file_key *key, struct weft_json_writer *writer)
{
    const bool or_null = key->flags & WEFT_KEY_OR_NULL;
    weft_json_key(writer, or_null ? "oneOf" : "allOf");
    weft_json_begin_array(writer);
    if (or_null) {
        weft_json_begin_object(writer);
        weft_json_put_string(writer, "type", "null");
        weft_json_end_object(writer);
    }
    weft_json_begin_object(writer);
    put_value(key, writer);
    weft_json_end_object(writer);
    weft_json_end_array(writer);
}

static void put_key(const struct weft_file_key *key, struct weft_json_writer *writer)
{
    const int levels = (key->flags & WEFT_KEY_LISTS) / WEFT_KEY_LIST;
    weft_json_key(writer, key->name);
    weft_json_begin_object(writer);
    weft_json_put_string(writer, "description", key->text);
    for (int level = levels; level > 0; level >>= 1) {
        weft_json_put_string(writer, "type", "array");
        weft_json_key(writer, "items");
        weft_json_begin_object(writer);
    }
    if (levels == 0 && key->kind == WEFT_KEY_OBJECT && key->of != NULL)
        put_part(key, writer);
    else
        put_value(key, writer);
    for (int level = levels; level > 0; level >>= 1)
        weft_json_end_object(writer);
    weft_json_end_object(writer);
}

void weft_keys_schema(const struct weft_key_table *table, struct weft_json_writer *writer)
{
    weft_json_put_string(writer, "type", "object");
    weft_json_put_string(writer, "description", table->text);
    weft_json_key(writer, "properties");
    weft_json_begin_object(writer);
    for (size_t i = 0; i < table->n_keys; i++)
        put_key(&table->keys[i], writer);
    weft_json_end_object(writer);
    weft_json_key(writer, "required");
    weft_json_begin_array(writer);
    for (size_t i = 0; i < table->n_keys; i++)
        if (!(table->keys[i].flags & WEFT_KEY_OPTIONAL))
            weft_json_add_string(writer, table->keys[i].name);
    weft_json_end_array(writer);
}

void weft_keys_schema_of_any(const struct weft_key_table *const *tables,
                             struct weft_json_writer *writer)
{
    weft_json_key(writer, "oneOf");
    weft_json_begin_array(writer);
    for (; *tables != NULL; tables++) {
        weft_json_begin_object(writer);
        weft_keys_schema(*tables, writer);
        weft_json_end_object(writer);
    }
    weft_json_end_array(writer);
}
