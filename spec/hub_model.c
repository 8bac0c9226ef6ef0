/* SPDX-License-Identifier: Apache-2.0 */
#include "spec/hub_model.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "spec/field.h"
#include "spec/hub/layers.h"
#include "spec/hub/modules.h"
#include "spec/hub/values.h"
#include "spec/hub/windows.h"
#include "spec/kind.h"
#include "spec/model.h"

enum { N_CHANGES = WEFT_HUB_COMPUTATION };

/* A conversion. */
struct hub_reading {
    const char *source;
    const struct weft_json *document;
    const struct weft_json_value *root;
    const struct weft_hub_family *family;
    int64_t sizes[WEFT_HUB_SIZES];    /* 0 where the family has none */
    const char *keys[WEFT_HUB_SIZES]; /* as the user wrote them */
    int64_t head_dim;
    bool ties, has_architecture;
    struct weft_hub_windows windows;
    bool is_local;                    /* the block that is written has a window */
    int first_block;                  /* its layer */
    int32_t n_blocks;                 /* entries of blocks */
    struct weft_text told[N_CHANGES]; /* keys with values, by their change */
    struct weft_text missing, unknown;
    struct weft_hub_model *out;
    struct weft_error *err;
};

bool weft_hub_model_is(const struct weft_json_value *root)
{
    return weft_json_kind(root) == WEFT_JSON_OBJECT &&
           weft_json_member(root, "model_type") != NULL && weft_json_member(root, "layers") == NULL;
}

void weft_hub_model_path(const char *given, struct weft_text *out)
{
    struct stat about;
    const size_t length = strlen(given);
    const bool is_folder = stat(given, &about) == 0 && S_ISDIR(about.st_mode);
    weft_text_add(out, given);
    if (is_folder) weft_text_add(out, given[length - 1] == '/' ? "config.json" : "/config.json");
}

/* Fails with WEFT_E_DATA at a key of the user's file: "config.json:3:5: $.key: ". */
static WEFT_PRINTF(3, 4) enum weft_status
    fail_key(const struct hub_reading *reading, const char *key, const char *format, ...)
{
    char what[768], path[256];
    size_t line = 0, column = 0;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    snprintf(path, sizeof path, "$.%s", key);
    weft_json_place(reading->document, path, &line, &column);
    return weft_fail(reading->err, WEFT_E_DATA, "%s:%zu:%zu: %s: %s", reading->source, line, column,
                     path, what);
}

/* Appends "key value" to a list of them. */
static void add_told(struct weft_text *list, const char *key, const char *value)
{
    weft_text_addf(list, "%s%s %s", list->length > 0 ? ", " : "", key, value);
}

static void add_value_told(struct weft_text *list, const char *key,
                           const struct weft_json_value *value)
{
    struct weft_text text;
    weft_text_init(&text);
    weft_hub_value_show(value, &text);
    add_told(list, key, weft_text_chars(&text));
    weft_text_finish(&text);
}

static enum weft_status find_family(struct hub_reading *reading)
{
    const char *type = "";
    weft_json_string(weft_json_member(reading->root, "model_type"), &type);
    reading->family = weft_hub_family_find(type);
    if (reading->family != NULL) return WEFT_OK;
    return fail_key(reading, "model_type",
                    "\"%.80s\" is no type of model that Weft reads; it reads " WEFT_HUB_TYPES
                    ". Describe other models by \"layers\" (docs/keys.md, model.layers[])",
                    type);
}

/* Sizes */

static int64_t size_of_rule(const struct hub_reading *reading, int64_t rule)
{
    if (rule == WEFT_HUB_AS_HEADS) return reading->sizes[WEFT_HUB_HEADS];
    if (rule == WEFT_HUB_FOUR_HIDDEN) return 4 * reading->sizes[WEFT_HUB_HIDDEN];
    return rule;
}

/* The member of a size, by its name or its alias. Both are possible if they agree. */
static enum weft_status find_size(const struct hub_reading *reading, enum weft_hub_size size,
                                  const char **key, const struct weft_json_value **out)
{
    const struct weft_hub_size_key *row = &reading->family->sizes[size];
    const struct weft_json_value *first = weft_json_member(reading->root, row->key);
    const struct weft_json_value *second =
        row->alias != NULL ? weft_json_member(reading->root, row->alias) : NULL;
    int64_t one = 0, other = 0;
    *key = first == NULL && second != NULL ? row->alias : row->key;
    *out = first == NULL ? second : first;
    if (first == NULL || second == NULL) return WEFT_OK;
    const bool agree = weft_json_kind(first) == weft_json_kind(second) &&
                       weft_json_integer(first, &one) == weft_json_integer(second, &other) &&
                       one == other;
    return agree ? WEFT_OK
                 : fail_key(reading, row->alias, "is the same key as $.%s, with another value",
                            row->key);
}

/* The number of classes is that of their names, and "num_labels" may repeat it. */
static enum weft_status read_labels(struct hub_reading *reading,
                                    const struct weft_json_value *labels)
{
    const char *key = reading->family->sizes[WEFT_HUB_CLASSES].key;
    const struct weft_json_value *number = weft_json_member(reading->root, key);
    int64_t n = (int64_t)weft_json_count(labels), given = n;
    reading->keys[WEFT_HUB_CLASSES] = "id2label";
    reading->sizes[WEFT_HUB_CLASSES] = n;
    if (weft_json_kind(labels) != WEFT_JSON_OBJECT || n < 1)
        return fail_key(reading, "id2label", "must be an object with a name for each class");
    if (number == NULL || (weft_json_integer(number, &given) && given == n)) return WEFT_OK;
    return fail_key(reading, key, "must be the number of classes in id2label, %" PRId64, n);
}

static enum weft_status read_size(struct hub_reading *reading, enum weft_hub_size size)
{
    enum { MOST = INT32_MAX };
    const struct weft_hub_size_key *row = &reading->family->sizes[size];
    const struct weft_json_value *value = NULL;
    int64_t *out = &reading->sizes[size];
    char number[32];
    if (row->key == NULL) return WEFT_OK;
    const struct weft_json_value *labels = weft_json_member(reading->root, "id2label");
    if (size == WEFT_HUB_CLASSES && labels != NULL && weft_json_kind(labels) != WEFT_JSON_NULL)
        return read_labels(reading, labels);
    WEFT_TRY(find_size(reading, size, &reading->keys[size], &value));
    if (value == NULL) {
        *out = size_of_rule(reading, row->missing);
        snprintf(number, sizeof number, "%" PRId64, *out);
        if (row->missing != row->null) add_told(&reading->missing, row->key, number);
        return WEFT_OK;
    }
    if (weft_json_kind(value) == WEFT_JSON_NULL && row->null != 0) {
        *out = size_of_rule(reading, row->null);
        return WEFT_OK;
    }
    if (!weft_json_integer(value, out) || *out < 1 || *out > MOST)
        return fail_key(reading, reading->keys[size], "must be an integer from 1 to %d", MOST);
    return WEFT_OK;
}

/* Whether heads have a size of their own, and not hidden / heads. */
static bool sizes_heads(const struct weft_hub_family *family)
{
    const struct weft_hub_key *row = weft_hub_key_find(family, "head_dim");
    return row != NULL && row->missing != NULL;
}

/* An image is a square of whole patches. */
static enum weft_status check_image(const struct hub_reading *reading)
{
    enum { MOST_SIDE = 4096, MOST_WIDTH = 1 << 24 };
    const int64_t image = reading->sizes[WEFT_HUB_IMAGE], patch = reading->sizes[WEFT_HUB_PATCH];
    const char *const *keys = reading->keys;
    if (image % patch != 0 || image / patch > MOST_SIDE)
        return fail_key(reading, keys[WEFT_HUB_IMAGE],
                        "is %" PRId64 ", and must be a multiple of %s, %" PRId64
                        ", with at most %d patches a side",
                        image, keys[WEFT_HUB_PATCH], patch, MOST_SIDE);
    if (patch > MOST_SIDE || patch * patch > MOST_WIDTH / reading->sizes[WEFT_HUB_CHANNELS])
        return fail_key(reading, keys[WEFT_HUB_PATCH],
                        "is %" PRId64 ", and a patch has more than %d numbers", patch, MOST_WIDTH);
    return WEFT_OK;
}

/* The conditions that layer kinds have too, by the user's keys. */
static enum weft_status check_sizes(struct hub_reading *reading)
{
    const int64_t *sizes = reading->sizes;
    const char *const *keys = reading->keys;
    const int64_t heads = sizes[WEFT_HUB_HEADS], kv_heads = sizes[WEFT_HUB_KV_HEADS];
    const int64_t hidden = sizes[WEFT_HUB_HIDDEN];
    if (hidden % heads != 0 && !sizes_heads(reading->family))
        return fail_key(reading, keys[WEFT_HUB_HEADS],
                        "is %" PRId64 ", which does not divide %s, %" PRId64
                        ": every head needs the same whole number of columns",
                        heads, keys[WEFT_HUB_HIDDEN], hidden);
    if (kv_heads > 0 && heads % kv_heads != 0)
        return fail_key(reading, keys[WEFT_HUB_KV_HEADS],
                        "is %" PRId64 ", which does not divide %s, %" PRId64, kv_heads,
                        keys[WEFT_HUB_HEADS], heads);
    if (sizes[WEFT_HUB_ACTIVE] > sizes[WEFT_HUB_EXPERTS])
        return fail_key(reading, keys[WEFT_HUB_ACTIVE], "is %" PRId64 ", more than %s, %" PRId64,
                        sizes[WEFT_HUB_ACTIVE], keys[WEFT_HUB_EXPERTS], sizes[WEFT_HUB_EXPERTS]);
    reading->head_dim = hidden / heads;
    return reading->family->images ? check_image(reading) : WEFT_OK;
}

static enum weft_status read_sizes(struct hub_reading *reading)
{
    for (int i = 0; i < WEFT_HUB_SIZES; i++)
        WEFT_TRY(read_size(reading, (enum weft_hub_size)i));
    return check_sizes(reading);
}

/* Other keys */

static enum weft_status read_ties(struct hub_reading *reading)
{
    const char *const key = "tie_word_embeddings";
    const struct weft_json_value *value = weft_json_member(reading->root, key);
    reading->ties = reading->family->ties;
    if (value == NULL || weft_json_bool(value, &reading->ties)) return WEFT_OK;
    return fail_key(reading, key, "must be true or false");
}

/* Refuses models with another head, such as reward models. */
static enum weft_status read_architectures(struct hub_reading *reading)
{
    const char *const key = "architectures", *name;
    const char *const known = reading->family->architecture;
    const struct weft_json_value *list = weft_json_member(reading->root, key);
    if (list == NULL || weft_json_kind(list) == WEFT_JSON_NULL) return WEFT_OK;
    if (weft_json_kind(list) != WEFT_JSON_ARRAY)
        return fail_key(reading, key, "must be an array of names");
    for (const struct weft_json_value *at = weft_json_first(list); at; at = weft_json_next(at)) {
        if (!weft_json_string(at, &name))
            return fail_key(reading, key, "must be an array of names");
        if (strcmp(name, known) != 0)
            return fail_key(reading, key,
                            "\"%.80s\" has another head or other layers than Weft's; Weft reads "
                            "\"%s\" alone. Describe other models by \"layers\" (docs/keys.md)",
                            name, known);
        reading->has_architecture = true;
    }
    return WEFT_OK;
}

/* The types of layers, or the rule that takes their place. */
static enum weft_status read_types(struct hub_reading *reading)
{
    const struct weft_hub_family *family = reading->family;
    const struct weft_json_value *types = weft_json_member(reading->root, WEFT_HUB_LAYER_TYPES);
    reading->windows.pattern = family->pattern;
    for (int i = 0; i < WEFT_HUB_PATTERN_KEYS && family->pattern_keys[i] != NULL; i++) {
        const char *key = family->pattern_keys[i];
        const struct weft_json_value *pattern = weft_json_member(reading->root, key);
        if (pattern == NULL || weft_json_kind(pattern) == WEFT_JSON_NULL) continue;
        if (!weft_json_integer(pattern, &reading->windows.pattern) || reading->windows.pattern < 1)
            return fail_key(reading, key, "must be null or an integer from 1");
        break;
    }
    if (types == NULL || weft_json_kind(types) == WEFT_JSON_NULL) return WEFT_OK;
    if (!weft_hub_layer_types_fit(types, reading->sizes[WEFT_HUB_LAYERS]))
        return fail_key(reading, WEFT_HUB_LAYER_TYPES,
                        "must have \"" WEFT_HUB_LOCAL "\" or \"" WEFT_HUB_GLOBAL
                        "\" for each of the %" PRId64 " layers",
                        reading->sizes[WEFT_HUB_LAYERS]);
    reading->windows.types = types;
    return WEFT_OK;
}

/* Reads which layers have a window. For kinds without one it is the longest sequence that the
 * window changes nothing for. */
static enum weft_status read_window(struct hub_reading *reading, struct weft_pool *pool)
{
    const struct weft_hub_family *family = reading->family;
    const struct weft_json_value *value = NULL, *flag = NULL;
    int64_t window = family->missing_window, first = 28;
    bool used = true;
    if (family->window == NULL) return WEFT_OK;
    WEFT_TRY(read_types(reading));
    if (family->window_flag != NULL) {
        flag = weft_json_member(reading->root, family->window_flag);
        used = false;
        if (flag != NULL && !weft_json_bool(flag, &used))
            return fail_key(reading, family->window_flag, "must be true or false");
        if (weft_json_integer(weft_json_member(reading->root, "max_window_layers"), &first) &&
            first >= reading->sizes[WEFT_HUB_LAYERS])
            used = false; /* the layers from this one on have a window */
        reading->windows.first = first;
    }
    value = weft_json_member(reading->root, family->window);
    if (value != NULL && weft_json_kind(value) == WEFT_JSON_NULL) return WEFT_OK;
    if (value != NULL && (!weft_json_integer(value, &window) || window < 1))
        return fail_key(reading, family->window, "must be null or an integer from 1");
    if (!used) return WEFT_OK;
    reading->windows.window = window;
    if (weft_kind_key(weft_kind_find(NULL, family->block), "window") != NULL) return WEFT_OK;
    reading->out->window = window;
    reading->out->window_path = weft_pool_format(pool, "$.%s", family->window);
    return reading->out->window_path != NULL ? WEFT_OK : weft_fail_memory(reading->err, "a model");
}

static bool is_size(const struct hub_reading *reading, const char *name)
{
    for (int i = 0; i < WEFT_HUB_SIZES; i++) {
        const struct weft_hub_size_key *row = &reading->family->sizes[i];
        if (row->key != NULL && strcmp(row->key, name) == 0) return true;
        if (row->alias != NULL && strcmp(row->alias, name) == 0) return true;
    }
    return false;
}

static bool is_window(const struct weft_hub_family *family, const char *name)
{
    for (int i = 0; i < WEFT_HUB_PATTERN_KEYS && family->pattern_keys[i] != NULL; i++)
        if (strcmp(family->pattern_keys[i], name) == 0) return true;
    return (family->window != NULL &&
            (strcmp(family->window, name) == 0 || strcmp(WEFT_HUB_LAYER_TYPES, name) == 0)) ||
           (family->local_base != NULL && strcmp(family->local_base, name) == 0) ||
           (family->window_flag != NULL && strcmp(family->window_flag, name) == 0);
}

/* An unknown key next to a missing size is taken for a slip. */
static enum weft_status note_unknown(struct hub_reading *reading,
                                     const struct weft_json_value *value)
{
    const char *missing[WEFT_HUB_SIZES], *name = weft_json_name(value);
    size_t n = 0;
    for (int i = 0; i < WEFT_HUB_SIZES; i++)
        if (reading->family->sizes[i].key != NULL &&
            weft_json_member(reading->root, reading->keys[i]) == NULL)
            missing[n++] = reading->family->sizes[i].key;
    const char *near = weft_field_nearest(name, missing, n);
    if (near != NULL)
        return fail_key(reading, name,
                        "is no key of a model of type \"%s\"; did you mean \"%s\", which is "
                        "missing?",
                        reading->family->type, near);
    add_value_told(&reading->unknown, name, value);
    return WEFT_OK;
}

static enum weft_status refuse_value(const struct hub_reading *reading,
                                     const struct weft_hub_key *row,
                                     const struct weft_json_value *value)
{
    struct weft_text is, must;
    weft_text_init(&is);
    weft_text_init(&must);
    weft_hub_value_show(value, &is);
    weft_hub_usual_show(row->usual, reading->head_dim, &must);
    enum weft_status status = fail_key(
        reading, row->key,
        "is %s; must be %s%s: no layer of Weft does another computation. To plan as if it were, "
        "write a model of \"layers\" (docs/keys.md)",
        weft_text_chars(&is), weft_text_chars(&must),
        strstr(row->usual, WEFT_HUB_HEAD_DIM) != NULL ? ", which is hidden size / heads" : "");
    weft_text_finish(&is);
    weft_text_finish(&must);
    return status;
}

/* Whether a layer kind of this model takes the key. */
static bool is_taken(const struct weft_hub_family *family, const struct weft_hub_key *row)
{
    const char *const kinds[] = {family->block, family->norm, "lm_head"};
    for (size_t i = 0; row->to != NULL && i < sizeof kinds / sizeof *kinds; i++)
        if (weft_kind_key(weft_kind_find(NULL, kinds[i]), row->to) != NULL) return true;
    return false;
}

/* The object of rotary positions in the file. Layers with a base of their own have a part of it. */
static const struct weft_json_value *rope_of(const struct hub_reading *reading, const char *part)
{
    const struct weft_json_value *rope = weft_json_member(reading->root, "rope_scaling");
    if (weft_json_kind(rope) != WEFT_JSON_OBJECT)
        rope = weft_json_member(reading->root, "rope_parameters");
    if (weft_json_kind(rope) != WEFT_JSON_OBJECT) return NULL;
    const struct weft_json_value *of = weft_json_member(rope, part);
    return reading->family->local_base != NULL && of != NULL ? of : rope;
}

/* The object of rotary positions, if a layer of this model computes them: unscaled, or scaled as in
 * Llama 3. Otherwise NULL. */
static const struct weft_json_value *taken_rope(const struct hub_reading *reading)
{
    const struct weft_json_value *rope = rope_of(reading, WEFT_HUB_GLOBAL);
    const struct weft_kind *block = weft_kind_find(NULL, reading->family->block);
    const char *type = "default";
    double number;
    if (rope == NULL || weft_kind_key(block, "rope_factor") == NULL) return NULL;
    weft_json_string(weft_json_member(rope, "type"), &type);
    weft_json_string(weft_json_member(rope, "rope_type"), &type);
    const bool scaled = strcmp(type, "llama3") == 0;
    if (!scaled && strcmp(type, "default") != 0) return NULL;
    for (int i = 1; i < WEFT_HUB_ROPE_MEMBERS; i++)
        if (weft_json_number(weft_json_member(rope, weft_hub_rope_members[i].member), &number) !=
            scaled)
            return NULL;
    return rope;
}

static enum weft_status judge_member(struct hub_reading *reading,
                                     const struct weft_json_value *value)
{
    const char *name = weft_json_name(value);
    if (is_size(reading, name) || is_window(reading->family, name)) return WEFT_OK;
    const struct weft_hub_key *row = weft_hub_key_find(reading->family, name);
    if (row == NULL)
        return weft_json_kind(value) == WEFT_JSON_NULL ? WEFT_OK : note_unknown(reading, value);
    double number;
    const bool is_rope = strcmp(name, "rope_scaling") == 0 || strcmp(name, "rope_parameters") == 0;
    if (row->change == WEFT_HUB_NOTHING || (is_rope && taken_rope(reading) != NULL) ||
        weft_hub_value_is(value, row->usual, reading->head_dim))
        return WEFT_OK;
    if (is_taken(reading->family, row))
        return weft_json_number(value, &number) ? WEFT_OK
                                                : fail_key(reading, name, "must be a number");
    if (row->change == WEFT_HUB_COMPUTATION) return refuse_value(reading, row, value);
    add_value_told(&reading->told[row->change], name, value);
    return WEFT_OK;
}

/* Judges all keys, and the defaults of keys that are left out. */
static enum weft_status judge_keys(struct hub_reading *reading)
{
    const struct weft_json_value *at = weft_json_first(reading->root);
    for (; at != NULL; at = weft_json_next(at))
        WEFT_TRY(judge_member(reading, at));
    for (const struct weft_hub_key *row = reading->family->keys; row->key != NULL; row++)
        if (row->missing != NULL && !is_taken(reading->family, row) &&
            weft_json_member(reading->root, row->key) == NULL)
            add_told(&reading->told[row->change], row->key, row->missing);
    return WEFT_OK;
}

static void begin_layer(struct weft_json_writer *writer, const char *name, const char *type)
{
    weft_json_begin_object(writer);
    weft_json_put_string(writer, "name", name);
    weft_json_put_string(writer, "type", type);
}

/* Errors of a layer's key name the user's key. */
static enum weft_status rename_key(struct hub_reading *reading, struct weft_pool *pool, int layer,
                                   const char *key, const char *written)
{
    struct weft_hub_model *out = reading->out;
    struct weft_findings_rename *rename = &out->renames[out->n_renames];
    rename->path = weft_pool_format(pool, "$.layers[%d].%s", layer, key);
    rename->written = weft_pool_format(pool, "$.%s", written);
    if (rename->path == NULL || rename->written == NULL)
        return weft_fail_memory(reading->err, "a model");
    out->n_renames++;
    return WEFT_OK;
}

/* Writes a key of a layer whose value is one of the user's sizes. */
static enum weft_status put_size(struct hub_reading *reading, struct weft_pool *pool,
                                 struct weft_json_writer *writer, int layer, const char *key,
                                 enum weft_hub_size size)
{
    if (reading->sizes[size] == 0) return WEFT_OK;
    weft_json_put_integer(writer, key, reading->sizes[size]);
    return rename_key(reading, pool, layer, key, reading->keys[size]);
}

/* True if the object of rotary positions has the base, and not the file itself. */
static bool has_base(const struct hub_reading *reading)
{
    return weft_json_member(reading->root, "rope_theta") == NULL &&
           weft_json_member(taken_rope(reading), "rope_theta") != NULL;
}

/* Layers with a window may have a base of their own, and no scaling. */
static bool has_local_base(const struct hub_reading *reading)
{
    return reading->is_local && reading->family->local_base != NULL;
}

/* Writes the keys that a kind of layer takes as they are. */
static enum weft_status put_taken(struct hub_reading *reading, struct weft_pool *pool, int layer,
                                  const struct weft_kind *kind, struct weft_json_writer *writer)
{
    for (const struct weft_hub_key *row = reading->family->keys; row->key != NULL; row++) {
        if (row->to == NULL || weft_kind_key(kind, row->to) == NULL) continue;
        if (strcmp(row->to, "rope_base") == 0 && (has_local_base(reading) || has_base(reading)))
            continue;
        const struct weft_json_value *value = weft_json_member(reading->root, row->key);
        double number;
        if (value != NULL && row->change == WEFT_HUB_NUMBERS &&
            weft_hub_value_is(value, row->usual, 0))
            continue;
        if (weft_json_number(value, &number)) {
            weft_json_key(writer, row->to);
            weft_json_add_value(writer, value);
            WEFT_TRY(rename_key(reading, pool, layer, row->to, row->key));
        } else if (value == NULL && row->missing != NULL) {
            weft_json_put_number(writer, row->to, strtod(row->missing, NULL));
        }
    }
    return WEFT_OK;
}

static void put_local_base(const struct hub_reading *reading, struct weft_json_writer *writer)
{
    const struct weft_hub_family *family = reading->family;
    double base = family->missing_base;
    const struct weft_json_value *given = weft_json_member(reading->root, family->local_base);
    if (!weft_json_number(given, &base))
        weft_json_number(weft_json_member(rope_of(reading, WEFT_HUB_LOCAL), "rope_theta"), &base);
    weft_json_put_number(writer, "rope_base", base);
}

static enum weft_status put_rope(struct hub_reading *reading, struct weft_pool *pool,
                                 struct weft_json_writer *writer)
{
    const struct weft_json_value *rope = taken_rope(reading);
    double number;
    if (has_local_base(reading)) {
        put_local_base(reading, writer);
        return WEFT_OK;
    }
    for (int i = 0; rope != NULL && i < WEFT_HUB_ROPE_MEMBERS; i++) {
        const struct weft_json_value *value =
            weft_json_member(rope, weft_hub_rope_members[i].member);
        const bool is_given = i == 0 && weft_json_member(reading->root, "rope_theta") != NULL;
        if (is_given || !weft_json_number(value, &number)) continue;
        weft_json_key(writer, weft_hub_rope_members[i].to);
        weft_json_add_value(writer, value);
        WEFT_TRY(rename_key(reading, pool, reading->first_block, weft_hub_rope_members[i].to,
                            weft_json_name(rope)));
    }
    return WEFT_OK;
}

/* Writes the window of a block that has one. */
static enum weft_status put_window(struct hub_reading *reading, struct weft_pool *pool,
                                   struct weft_json_writer *writer)
{
    const struct weft_hub_family *family = reading->family;
    if (!reading->is_local || weft_kind_key(weft_kind_find(NULL, family->block), "window") == NULL)
        return WEFT_OK;
    weft_json_put_integer(writer, "window", reading->windows.window);
    return rename_key(reading, pool, reading->first_block, "window", family->window);
}

/* Writes block `index`, or all of them if it is negative. Renamed keys are those of the first. */
static enum weft_status write_block(struct hub_reading *reading, struct weft_pool *pool,
                                    int64_t index, struct weft_json_writer *writer)
{
    const struct weft_hub_family *family = reading->family;
    const int32_t n_renames = reading->out->n_renames;
    char name[64];
    reading->is_local = weft_hub_layer_is_local(&reading->windows, index < 0 ? 0 : index);
    snprintf(name, sizeof name, "%.*s%" PRId64, (int)strcspn(family->block_name, "{"),
             family->block_name, index);
    begin_layer(writer, index < 0 ? family->block_name : name, family->block);
    if (index < 0)
        WEFT_TRY(put_size(reading, pool, writer, reading->first_block, "repeat", WEFT_HUB_LAYERS));
    for (int i = 0; i < WEFT_HUB_SIZES; i++)
        if (weft_hub_block_keys[i] != NULL)
            WEFT_TRY(put_size(reading, pool, writer, reading->first_block, weft_hub_block_keys[i],
                              (enum weft_hub_size)i));
    if (family->block_flag != NULL) weft_json_put_bool(writer, family->block_flag, true);
    WEFT_TRY(put_taken(reading, pool, reading->first_block, weft_kind_find(NULL, family->block),
                       writer));
    WEFT_TRY(put_rope(reading, pool, writer));
    WEFT_TRY(put_window(reading, pool, writer));
    weft_json_end_object(writer);
    reading->is_local = false;
    if (index > 0) reading->out->n_renames = n_renames;
    return WEFT_OK;
}

/* One entry, or an entry a block if some have windows and some have none. */
static enum weft_status write_blocks(struct hub_reading *reading, struct weft_pool *pool,
                                     struct weft_json_writer *writer)
{
    enum { MOST_ENTRIES = 4096 };
    const int64_t layers = reading->sizes[WEFT_HUB_LAYERS];
    reading->n_blocks = 1;
    if (layers > MOST_ENTRIES || !weft_hub_windows_differ(&reading->windows, layers))
        return write_block(reading, pool, -1, writer);
    reading->n_blocks = (int32_t)layers;
    for (int64_t i = 0; i < layers; i++)
        WEFT_TRY(write_block(reading, pool, i, writer));
    return WEFT_OK;
}

/* Writes the size of a layer's input or output that follows from several of the user's. */
static enum weft_status put_product(struct hub_reading *reading, struct weft_pool *pool,
                                    struct weft_json_writer *writer, int layer, const char *key,
                                    int64_t value, enum weft_hub_size named)
{
    weft_json_put_integer(writer, key, value);
    return rename_key(reading, pool, layer, key, reading->keys[named]);
}

/* Writes the keys of a layer of a model of images, but for those of a norm. */
static enum weft_status put_image(struct hub_reading *reading, struct weft_pool *pool,
                                  enum weft_hub_place place, int layer,
                                  struct weft_json_writer *writer)
{
    const int64_t *sizes = reading->sizes, side = sizes[WEFT_HUB_IMAGE] / sizes[WEFT_HUB_PATCH];
    const int64_t area = sizes[WEFT_HUB_PATCH] * sizes[WEFT_HUB_PATCH];
    if (place == WEFT_HUB_IN_EMBEDDING) {
        WEFT_TRY(put_product(reading, pool, writer, layer, "hidden",
                             sizes[WEFT_HUB_CHANNELS] * area, WEFT_HUB_PATCH));
        WEFT_TRY(put_size(reading, pool, writer, layer, "outputs", WEFT_HUB_HIDDEN));
        WEFT_TRY(put_size(reading, pool, writer, layer, "patch", WEFT_HUB_PATCH));
        return WEFT_OK;
    }
    WEFT_TRY(put_size(reading, pool, writer, layer, "hidden", WEFT_HUB_HIDDEN));
    if (place == WEFT_HUB_IN_POSITIONS) {
        WEFT_TRY(put_product(reading, pool, writer, layer, "positions", side * side + 1,
                             WEFT_HUB_IMAGE));
        weft_json_put_bool(writer, "class_token", true);
    } else if (place == WEFT_HUB_IN_HEAD) {
        WEFT_TRY(put_size(reading, pool, writer, layer, "classes", WEFT_HUB_CLASSES));
        weft_json_put_bool(writer, "first", true);
    }
    return WEFT_OK;
}

/* Writes a layer before or after the blocks. */
static enum weft_status write_around(struct hub_reading *reading, struct weft_pool *pool,
                                     enum weft_hub_place place, int layer,
                                     struct weft_json_writer *writer)
{
    const struct weft_hub_family *family = reading->family;
    const bool embeds = place == WEFT_HUB_IN_EMBEDDING, heads = place == WEFT_HUB_IN_HEAD;
    const char *kind = weft_hub_kind_at(family, place);
    begin_layer(writer, weft_hub_name_at(family, place), kind);
    if (family->images) {
        WEFT_TRY(put_image(reading, pool, place, layer, writer));
        WEFT_TRY(put_taken(reading, pool, layer, weft_kind_find(NULL, kind), writer));
        weft_json_end_object(writer);
        return WEFT_OK;
    }
    if (embeds || heads) WEFT_TRY(put_size(reading, pool, writer, layer, "vocab", WEFT_HUB_VOCAB));
    if (embeds) WEFT_TRY(put_size(reading, pool, writer, layer, "positions", WEFT_HUB_POSITIONS));
    WEFT_TRY(put_size(reading, pool, writer, layer, "hidden", WEFT_HUB_HIDDEN));
    if (embeds && family->scales_embedding)
        weft_json_put_number(writer, "scale", sqrt((double)reading->sizes[WEFT_HUB_HIDDEN]));
    if (place == WEFT_HUB_IN_TYPES)
        WEFT_TRY(put_size(reading, pool, writer, layer, "types", WEFT_HUB_TOKEN_TYPES));
    if (place == WEFT_HUB_IN_DENSE)
        weft_json_put_integer(writer, "outputs", reading->sizes[WEFT_HUB_HIDDEN]);
    if (place == WEFT_HUB_IN_ACTIVATION) weft_json_put_bool(writer, "erf", true);
    if (!embeds) WEFT_TRY(put_taken(reading, pool, layer, weft_kind_find(NULL, kind), writer));
    if (heads) weft_json_put_bool(writer, "bias", family->masked);
    if (heads && reading->ties) weft_json_put_string(writer, "tie", family->embed_name);
    weft_json_end_object(writer);
    return WEFT_OK;
}

static enum weft_status write_layers(struct hub_reading *reading, struct weft_pool *pool,
                                     struct weft_json_writer *writer)
{
    const struct weft_hub_layers *layers = weft_hub_layers_of(reading->family);
    reading->first_block = layers->n_before;
    weft_json_begin_object(writer);
    weft_json_key(writer, "layers");
    weft_json_begin_array(writer);
    for (int i = 0; i < layers->n_before; i++)
        WEFT_TRY(write_around(reading, pool, layers->places[i], i, writer));
    WEFT_TRY(write_blocks(reading, pool, writer));
    for (int i = layers->n_before; i < layers->n_before + layers->n_after; i++)
        WEFT_TRY(write_around(reading, pool, layers->places[i], i + reading->n_blocks, writer));
    weft_json_end_array(writer);
    weft_json_end_object(writer);
    return WEFT_OK;
}

static enum weft_status write_section(struct hub_reading *reading, struct weft_pool *pool)
{
    struct weft_json_writer writer;
    struct weft_text text;
    weft_text_init(&text);
    weft_json_writer_init(&writer, &text, 0);
    enum weft_status status = write_layers(reading, pool, &writer);
    if (status == WEFT_OK && !weft_text_ok(&text))
        status = weft_fail_memory(reading->err, "a model");
    if (status == WEFT_OK)
        status = weft_json_parse(weft_text_chars(&text), text.length, reading->source,
                                 &reading->out->section, reading->err);
    weft_text_finish(&text);
    return status;
}

static void add_note(const struct hub_reading *reading, const char *sentence,
                     const struct weft_text *keys, struct weft_text *out)
{
    if (keys->length > 0)
        weft_text_addf(out, "%s%s: %s: %s", out->length > 0 ? "\n" : "", reading->source, sentence,
                       weft_text_chars(keys));
    if (keys->failed) out->failed = true;
}

static enum weft_status write_notes(struct hub_reading *reading, struct weft_pool *pool)
{
    struct weft_text notes;
    const struct weft_text *told = reading->told;
    weft_text_init(&notes);
    add_note(reading, "left out, so the defaults of transformers count", &reading->missing, &notes);
    add_note(reading,
             "no layer of Weft has dropout, so its masks are not counted and training does "
             "without it",
             &told[WEFT_HUB_DROPOUT], &notes);
    if (!reading->has_architecture)
        add_note(reading, "no labels are planned, but a head on the vocabulary",
                 &told[WEFT_HUB_LABELS], &notes);
    add_note(reading, "initial values are Weft's own", &told[WEFT_HUB_START], &notes);
    add_note(reading, WEFT_HUB_NUMBERS_NOTE, &told[WEFT_HUB_NUMBERS], &notes);
    add_note(reading, "keys that Weft does not know are not used", &reading->unknown, &notes);
    reading->out->notes =
        weft_text_ok(&notes) ? weft_pool_string(pool, weft_text_chars(&notes)) : NULL;
    weft_text_finish(&notes);
    return reading->out->notes != NULL ? WEFT_OK : weft_fail_memory(reading->err, "a model");
}

static enum weft_status read_model(struct hub_reading *reading, struct weft_pool *pool)
{
    WEFT_TRY(find_family(reading));
    WEFT_TRY(read_architectures(reading));
    WEFT_TRY(read_sizes(reading));
    WEFT_TRY(read_ties(reading));
    WEFT_TRY(read_window(reading, pool));
    WEFT_TRY(judge_keys(reading));
    WEFT_TRY(write_notes(reading, pool));
    return write_section(reading, pool);
}

enum weft_status weft_hub_model_convert(const char *source, const struct weft_json *document,
                                        struct weft_pool *pool, struct weft_hub_model *out,
                                        struct weft_error *err)
{
    struct weft_hub_model model = {.notes = ""};
    struct hub_reading reading = {.source = source,
                                  .document = document,
                                  .root = weft_json_root(document),
                                  .out = &model,
                                  .err = err};
    struct weft_text *const texts[] = {&reading.missing, &reading.unknown};
    for (int i = 0; i < N_CHANGES; i++)
        weft_text_init(&reading.told[i]);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        weft_text_init(texts[i]);
    enum weft_status status = read_model(&reading, pool);
    for (int i = 0; i < N_CHANGES; i++)
        weft_text_finish(&reading.told[i]);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        weft_text_finish(texts[i]);
    if (status == WEFT_OK) *out = model;
    return status;
}

enum weft_status weft_hub_model_name_modules(const struct weft_json *document,
                                             struct weft_model *model, struct weft_error *err)
{
    const char *type = "";
    weft_json_string(weft_json_member(weft_json_root(document), "model_type"), &type);
    const struct weft_hub_family *family = weft_hub_family_find(type);
    if (family == NULL || family->rows == NULL || model->n_layers < 3) return WEFT_OK;
    const int32_t first = weft_hub_layers_of(family)->n_before;
    const char **modules = weft_pool_array(&model->pool, (size_t)model->n_layers, sizeof *modules);
    if (modules == NULL) return weft_fail_memory(err, "names of modules");
    for (int32_t l = 0; l < model->n_layers; l++) {
        struct weft_text text;
        weft_text_init(&text);
        weft_hub_list_modules(family, weft_hub_place_of(family, l, model->n_layers), l - first,
                              &text);
        modules[l] =
            weft_text_ok(&text) ? weft_pool_string(&model->pool, weft_text_chars(&text)) : NULL;
        weft_text_finish(&text);
        if (modules[l] == NULL) return weft_fail_memory(err, "names of modules");
    }
    model->modules = modules;
    return WEFT_OK;
}
