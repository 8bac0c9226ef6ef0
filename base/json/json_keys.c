/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json/json_keys.h"

#include <stdio.h>
#include <string.h>

enum { PLACE_BYTES = 640 };

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

static enum weft_status read_name(const struct weft_file_key *key,
                                  const struct weft_json_value *object, const char *where,
                                  int32_t *out, struct weft_error *err)
{
    const struct weft_key_names *names = key->of;
    const char *text;
    WEFT_TRY(weft_json_need_string(object, where, key->name, &text, err));
    for (int32_t i = 0; i < names->count; i++) {
        if (strcmp(text, names->name(i)) != 0) continue;
        *out = i;
        return WEFT_OK;
    }
    return weft_fail(err, WEFT_E_DATA, "%s: there is no %s \"%.64s\"", where, names->what, text);
}

static enum weft_status read_one_of(const struct weft_file_key *key,
                                    const struct weft_json_value *object, const char *where,
                                    int32_t *out, struct weft_error *err)
{
    const char *const *names = key->of;
    const char *text;
    struct weft_text known;
    WEFT_TRY(weft_json_need_string(object, where, key->name, &text, err));
    for (int32_t i = 0; names[i] != NULL; i++) {
        if (strcmp(text, names[i]) != 0) continue;
        *out = i;
        return WEFT_OK;
    }
    weft_text_init(&known);
    for (int32_t i = 0; names[i] != NULL; i++)
        weft_text_addf(&known, "%s\"%s\"", i > 0 ? ", " : "", names[i]);
    weft_fail(err, WEFT_E_DATA, "%s: %s is \"%.64s\"; must be one of %s", where, key->name, text,
              weft_text_chars(&known));
    weft_text_finish(&known);
    return WEFT_E_DATA;
}

static enum weft_status read_inside(const struct weft_file_key *key,
                                    const struct weft_json_value *object, const char *where,
                                    struct weft_pool *pool, void *out, struct weft_error *err)
{
    const struct weft_json_value *value;
    char place[PLACE_BYTES];
    WEFT_TRY(weft_json_need(object, where, key->name, WEFT_JSON_OBJECT, &value, err));
    snprintf(place, sizeof place, "%s: %s", where, key->name);
    return weft_keys_read(key->of, value, place, pool, out, err);
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
    case WEFT_KEY_NAME:
        return read_name(key, object, where, out, err);
    case WEFT_KEY_ONE_OF:
        return read_one_of(key, object, where, out, err);
    case WEFT_KEY_OBJECT:
        return read_inside(key, object, where, pool, out, err);
    case WEFT_KEY_CONST:
    case WEFT_KEY_VARIANT:
        break;
    }
    return weft_fail(err, WEFT_E_INTERNAL, "%s: no table reads the key \"%s\"", where, key->name);
}

static enum weft_status read_list(const struct weft_file_key *key,
                                  const struct weft_json_value *object, const char *where,
                                  struct weft_pool *pool, void *target, struct weft_error *err)
{
    const struct weft_json_value *array;
    char place[PLACE_BYTES];
    WEFT_TRY(weft_json_need(object, where, key->name, WEFT_JSON_ARRAY, &array, err));
    const size_t n = weft_json_count(array);
    if (n > INT32_MAX) return weft_fail(err, WEFT_E_DATA, "%s: too many %s", where, key->name);
    char *members = weft_pool_array(pool, n, key->size);
    if (members == NULL) return weft_fail_memory(err, where);
    int32_t i = 0;
    for (const struct weft_json_value *it = weft_json_first(array); it != NULL;
         it = weft_json_next(it), i++) {
        snprintf(place, sizeof place, "%s: %s[%d]", where, key->name, i);
        WEFT_TRY(weft_keys_read(key->of, it, place, pool, members + (size_t)i * key->size, err));
    }
    memcpy((char *)target + key->offset, &members, sizeof members);
    memcpy((char *)target + key->count, &i, sizeof i);
    return WEFT_OK;
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
        if (key->offset == WEFT_KEY_APART || (key->flags & WEFT_KEY_UNREAD)) continue;
        if (may_stay(key, object)) continue;
        if (key->flags & WEFT_KEY_LIST)
            WEFT_TRY(read_list(key, object, where, pool, target, err));
        else
            WEFT_TRY(read_key(key, object, where, pool, (char *)target + key->offset, err));
        if (key->n_given == sizeof(bool)) *(bool *)((char *)target + key->given) = true;
    }
    return WEFT_OK;
}

/* Writing */

static int64_t integer_at(const struct weft_file_key *key, const void *at)
{
    return key->kind == WEFT_KEY_INT32 ? *(const int32_t *)at : *(const int64_t *)at;
}

static size_t bytes_of(enum weft_key_kind kind)
{
    static const size_t bytes[] = {
        [WEFT_KEY_INT32] = sizeof(int32_t),
        [WEFT_KEY_INT64] = sizeof(int64_t),
        [WEFT_KEY_NUMBER] = sizeof(double),
        [WEFT_KEY_BOOL] = sizeof(bool),
        [WEFT_KEY_TEXT] = sizeof(char *),
        [WEFT_KEY_SHOWN] = sizeof(char *),
        [WEFT_KEY_HASH] = sizeof(struct weft_hash),
        [WEFT_KEY_CONST] = 0,
        [WEFT_KEY_ONE_OF] = sizeof(int32_t),
        [WEFT_KEY_NAME] = sizeof(int32_t),
        [WEFT_KEY_OBJECT] = 0,
        [WEFT_KEY_VARIANT] = 0,
    };
    return bytes[kind];
}

static bool is_written(const struct weft_file_key *key, const void *source);

/* True if a key of the object would be written. */
static bool has_keys(const struct weft_key_table *table, const void *source)
{
    for (size_t i = 0; i < table->n_keys; i++)
        if (is_written(&table->keys[i], source)) return true;
    return false;
}

static bool is_written(const struct weft_file_key *key, const void *source)
{
    const bool is_text = key->kind == WEFT_KEY_TEXT || key->kind == WEFT_KEY_CONST;
    if (key->offset == WEFT_KEY_APART)
        return (is_text && key->of != NULL) || key->size > 0 || (key->flags & WEFT_KEY_OR_NULL);
    if (!(key->flags & WEFT_KEY_OPTIONAL)) return true;
    const unsigned char *bytes = source;
    if (key->flags & WEFT_KEY_ZERO) return integer_at(key, bytes + key->offset) >= key->least;
    if (key->n_given == 0 && key->kind == WEFT_KEY_OBJECT)
        return has_keys(key->of, bytes + key->offset);
    const size_t first = key->n_given > 0 ? key->given : key->offset;
    const size_t n = key->n_given > 0 ? key->n_given : bytes_of(key->kind);
    for (size_t i = first; i < first + n; i++)
        if (bytes[i] != 0) return true;
    return false;
}

static void write_integer(const struct weft_file_key *key, int64_t value,
                          struct weft_json_writer *writer)
{
    if ((key->flags & WEFT_KEY_OR_NULL) && (value < key->least || value > key->most))
        weft_json_add_null(writer);
    else
        weft_json_add_integer(writer, value);
}

/* Writes the value at its address. */
static void write_value(const struct weft_file_key *key, const void *context, const void *at,
                        struct weft_json_writer *writer)
{
    char hash[WEFT_HASH_TEXT_BYTES];
    switch (key->kind) {
    case WEFT_KEY_INT32:
    case WEFT_KEY_INT64:
        write_integer(key, integer_at(key, at), writer);
        return;
    case WEFT_KEY_NUMBER:
        weft_json_add_number(writer, *(const double *)at);
        return;
    case WEFT_KEY_BOOL:
        weft_json_add_bool(writer, *(const bool *)at);
        return;
    case WEFT_KEY_TEXT:
    case WEFT_KEY_SHOWN:
        weft_json_add_string(writer, *(const char *const *)at);
        return;
    case WEFT_KEY_HASH:
        weft_json_add_string(writer, weft_hash_show(*(const struct weft_hash *)at, hash));
        return;
    case WEFT_KEY_ONE_OF:
        weft_json_add_string(writer, ((const char *const *)key->of)[*(const int32_t *)at]);
        return;
    case WEFT_KEY_NAME:
        weft_json_add_string(writer,
                             ((const struct weft_key_names *)key->of)->name(*(const int32_t *)at));
        return;
    case WEFT_KEY_OBJECT:
        weft_json_begin_object(writer);
        if (key->flags & WEFT_KEY_FLAT) weft_json_flat(writer);
        weft_keys_write(key->of, context, at, writer);
        weft_json_end_object(writer);
        return;
    case WEFT_KEY_CONST:
    case WEFT_KEY_VARIANT:
        return;
    }
}

/* A value that is in no struct: null, a text or an integer of the row. */
static void write_apart(const struct weft_file_key *key, struct weft_json_writer *writer)
{
    const bool is_text = key->kind == WEFT_KEY_TEXT || key->kind == WEFT_KEY_CONST;
    weft_json_key(writer, key->name);
    if (key->flags & WEFT_KEY_OR_NULL)
        weft_json_add_null(writer);
    else if (is_text)
        weft_json_add_string(writer, key->of);
    else
        weft_json_add_integer(writer, (int64_t)key->size);
}

static void write_list(const struct weft_file_key *key, const void *context, const void *source,
                       struct weft_json_writer *writer)
{
    const char *at = *(const char *const *)(const void *)((const char *)source + key->offset);
    const int32_t n = *(const int32_t *)(const void *)((const char *)source + key->count);
    weft_json_begin_array(writer);
    for (int32_t i = 0; i < n; i++)
        write_value(key, context, at + (size_t)i * key->size, writer);
    weft_json_end_array(writer);
}

void weft_keys_write(const struct weft_key_table *table, const void *context, const void *source,
                     struct weft_json_writer *writer)
{
    for (size_t i = 0; i < table->n_keys; i++) {
        const struct weft_file_key *key = &table->keys[i];
        if (key->put != NULL) {
            key->put(context, source, writer);
        } else if (!is_written(key, source)) {
            continue;
        } else if (key->offset == WEFT_KEY_APART) {
            write_apart(key, writer);
        } else {
            weft_json_key(writer, key->name);
            if (key->flags & WEFT_KEY_LIST)
                write_list(key, context, source, writer);
            else
                write_value(key, context, (const char *)source + key->offset, writer);
        }
    }
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
        [WEFT_KEY_HASH] = "string",   [WEFT_KEY_NAME] = "string",   [WEFT_KEY_OBJECT] = "object"};
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
    case WEFT_KEY_NAME:
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
