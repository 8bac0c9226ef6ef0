/* The "layers" array: entries by the layer table, the keys that each type has, repetition, ties. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spec/config_parts.h"
#include "spec/config_tables.h"
#include "spec/names.h"

enum { MOST_LAYERS = 16384, MOST_NAME = 200, PATH_BYTES = 256 };

/* The layers so far, and for each the entry that it came from. */
struct expansion {
    const struct weft_section *section;
    const struct weft_layer_kinds *kinds;
    const struct weft_field_table *table; /* of Weft's own types; names the supplied ones too */
    struct weft_pool *pool;
    struct weft_findings *findings;
    struct weft_layer *layers;
    int32_t *entries;
    int32_t n, capacity;
};

static bool has(const char *const *names, const char *name)
{
    for (; *names != NULL; names++) {
        if (strcmp(*names, name) == 0) return true;
    }
    return false;
}

static void entry_path(const struct expansion *expansion, int32_t entry, const char *key,
                       char out[PATH_BYTES])
{
    snprintf(out, PATH_BYTES, "%s.layers[%d]%s%s", expansion->section->path, entry,
             key == NULL ? "" : ".", key == NULL ? "" : key);
}

/* The keys that the type needs are there, and no others. */
static void check_keys(struct expansion *expansion, int32_t number,
                       const struct weft_json_value *object, enum weft_layer_type type)
{
    const struct weft_layer_keys *keys = &weft_layer_type_keys[type];
    const char *source = expansion->section->source;
    char path[PATH_BYTES];
    for (const char *const *key = keys->required; *key != NULL; key++) {
        if (weft_json_member(object, *key) != NULL) continue;
        entry_path(expansion, number, NULL, path);
        const struct weft_field *field = weft_field_find(&weft_layer_table, *key);
        weft_findings_add(expansion->findings, source, path,
                          "the key \"%s\" of a layer of type \"%s\" is missing; %s: %s", *key,
                          weft_layer_type_name(type), weft_field_kind_text(field->kind),
                          field->text);
    }
    for (const struct weft_json_value *value = weft_json_first(object); value != NULL;
         value = weft_json_next(value)) {
        const char *name = weft_json_name(value);
        if (weft_field_find(&weft_layer_table, name) == NULL || has(weft_layer_common_keys, name) ||
            has(keys->required, name) || has(keys->optional, name)) {
            continue;
        }
        struct weft_text own;
        weft_text_init(&own);
        for (const char *const *key = keys->required; *key != NULL; key++) {
            weft_text_addf(&own, "%s%s", own.length == 0 ? "" : ", ", *key);
        }
        for (const char *const *key = keys->optional; *key != NULL; key++) {
            weft_text_addf(&own, ", %s", *key);
        }
        entry_path(expansion, number, name, path);
        weft_findings_add(expansion->findings, source, path,
                          "a layer of type \"%s\" has no such key; it has: %s",
                          weft_layer_type_name(type), weft_text_chars(&own));
        weft_text_finish(&own);
    }
}

static void check_name(struct expansion *expansion, int32_t number,
                       const struct weft_layer_entry *entry)
{
    const char *name = entry->layer.name, *copy = strstr(name, "{i}");
    char path[PATH_BYTES], first[MOST_NAME + 2];
    entry_path(expansion, number, "name", path);
    /* As the first copy has it; one byte too many is kept to be seen. */
    snprintf(first, sizeof first, "%.*s%s%s",
             copy == NULL ? (int)sizeof first - 1 : (int)(copy - name), name,
             copy == NULL ? "" : "0", copy == NULL ? "" : copy + 3);
    if (!weft_name_is_good(first, MOST_NAME)) {
        weft_findings_add(expansion->findings, expansion->section->source, path,
                          "\"%.80s\" cannot be a name; at most %d letters, digits, \"_\", \"-\" "
                          "and \".\" (not two in a row nor at an end), and one \"{i}\" for the "
                          "number of the copy",
                          name, MOST_NAME);
    }
    if (entry->repeat > 1 && copy == NULL) {
        weft_findings_add(expansion->findings, expansion->section->source, path,
                          "\"%.80s\" would name all %d copies; write for example \"%.80s.{i}\"",
                          name, (int)entry->repeat, name);
    }
}

static void check_heads(struct expansion *expansion, int32_t number, const struct weft_layer *layer)
{
    char path[PATH_BYTES];
    if (layer->heads == 0 || layer->hidden == 0) return;
    if (layer->hidden % layer->heads != 0) {
        entry_path(expansion, number, "heads", path);
        weft_findings_add(expansion->findings, expansion->section->source, path,
                          "%lld heads do not divide hidden, %lld", (long long)layer->heads,
                          (long long)layer->hidden);
    }
    if (layer->kv_heads != 0 && layer->heads % layer->kv_heads != 0) {
        entry_path(expansion, number, "kv_heads", path);
        weft_findings_add(expansion->findings, expansion->section->source, path,
                          "%lld kv_heads do not divide heads, %lld", (long long)layer->kv_heads,
                          (long long)layer->heads);
    }
}

/* The embedding that a head shares its weight with, among the layers before it. */
static int32_t find_tie(struct expansion *expansion, int32_t number,
                        const struct weft_layer_entry *entry)
{
    char path[PATH_BYTES];
    int32_t named = -1;
    const char *why = "no earlier layer has this name";
    for (int32_t i = 0; i < expansion->n && named < 0; i++) {
        const char *name = expansion->layers[i].name;
        if (name != NULL && strcmp(name, entry->tie) == 0) named = i;
    }
    if (named >= 0) {
        const struct weft_layer *other = &expansion->layers[named];
        if (other->type != WEFT_LAYER_EMBEDDING) {
            why = "that layer is no embedding";
        } else if (other->vocab != entry->layer.vocab || other->hidden != entry->layer.hidden) {
            why = "that embedding has another vocab or hidden";
        } else {
            return named;
        }
    }
    entry_path(expansion, number, "tie", path);
    weft_findings_add(expansion->findings, expansion->section->source, path,
                      "\"%s\" cannot be tied to: %s; name an earlier embedding of the same vocab "
                      "and hidden",
                      entry->tie, why);
    return -1;
}

/* What a layer puts out and what its type implies. */
static void derive(struct weft_layer_entry *entry)
{
    struct weft_layer *layer = &entry->layer;
    layer->tie = -1;
    if (layer->supplied != NULL) {
        layer->type = WEFT_LAYER_SUPPLIED;
        layer->bias = false;
        return;
    }
    layer->type = (enum weft_layer_type)entry->type;
    if (layer->kv_heads == 0) layer->kv_heads = layer->heads;
    bool biased = has(weft_layer_type_keys[layer->type].optional, "bias");
    if (!biased) layer->bias = false;
    if (layer->type == WEFT_LAYER_LM_HEAD) {
        layer->outputs = layer->vocab;
    } else if (layer->type == WEFT_LAYER_CLASSIFIER) {
        layer->outputs = entry->classes;
    } else if (layer->type != WEFT_LAYER_LINEAR) {
        layer->outputs = layer->hidden;
    }
}

static bool grow(struct expansion *expansion, int64_t more)
{
    int64_t wanted = expansion->n + more;
    if (wanted <= expansion->capacity) return true;
    int64_t capacity = 2 * wanted;
    struct weft_layer *layers = weft_pool_array(expansion->pool, (size_t)capacity, sizeof *layers);
    int32_t *entries = weft_pool_array(expansion->pool, (size_t)capacity, sizeof *entries);
    if (layers == NULL || entries == NULL) return false;
    if (expansion->n > 0) {
        memcpy(layers, expansion->layers, (size_t)expansion->n * sizeof *layers);
        memcpy(entries, expansion->entries, (size_t)expansion->n * sizeof *entries);
    }
    expansion->layers = layers;
    expansion->entries = entries;
    expansion->capacity = (int32_t)capacity;
    return true;
}

static bool repeat(struct expansion *expansion, int32_t number,
                   const struct weft_layer_entry *entry)
{
    if (!grow(expansion, entry->repeat)) return false;
    const char *name = entry->layer.name, *copy = strstr(name, "{i}");
    /* Copies of one name are a finding already. */
    int64_t copies = copy == NULL ? 1 : entry->repeat;
    for (int64_t i = 0; i < copies; i++) {
        struct weft_layer *layer = &expansion->layers[expansion->n];
        *layer = entry->layer;
        if (copy != NULL) {
            layer->name = weft_pool_format(expansion->pool, "%.*s%d%s", (int)(copy - name), name,
                                           (int)i, copy + 3);
            if (layer->name == NULL) return false;
        }
        expansion->entries[expansion->n++] = number;
    }
    return true;
}

/* False when memory runs out. */
static bool add_entry(struct expansion *expansion, int32_t number,
                      const struct weft_json_value *object)
{
    const struct weft_section *section = expansion->section;
    struct weft_findings *findings = expansion->findings;
    struct weft_layer_entry entry = {.type = -1};
    char path[PATH_BYTES];
    int32_t before = findings->count;
    entry_path(expansion, number, NULL, path);
    const char *type = NULL;
    weft_json_string(weft_json_member(object, "type"), &type);
    entry.layer.supplied = type == NULL ? NULL : weft_kind_find(expansion->kinds, type);
    const struct weft_field_table *table = expansion->table;
    if (entry.layer.supplied != NULL)
        table = weft_kind_table(entry.layer.supplied, expansion->pool);
    if (table == NULL) return false;
    weft_field_decode(table, object, section->source, path, expansion->pool, &entry, findings);
    if (entry.type >= 0 && entry.layer.supplied == NULL)
        check_keys(expansion, number, object, (enum weft_layer_type)entry.type);
    if (entry.layer.name != NULL) check_name(expansion, number, &entry);
    check_heads(expansion, number, &entry.layer);
    if (entry.type < 0 || entry.layer.name == NULL) return true;
    derive(&entry);
    if (findings->count == before && entry.tie != NULL) {
        entry.layer.tie = find_tie(expansion, number, &entry);
    }
    if (expansion->n + entry.repeat > MOST_LAYERS) {
        weft_findings_add(findings, section->source, path,
                          "makes more than %d layers in all; repeat it less often", MOST_LAYERS);
        return true;
    }
    return repeat(expansion, number, &entry);
}

static int by_name(const void *a, const void *b)
{
    const struct weft_layer *const *first = a, *const *second = b;
    int order = strcmp((*first)->name, (*second)->name);
    return order != 0 ? order : (*first > *second) - (*first < *second);
}

static bool check_unique(struct expansion *expansion)
{
    if (expansion->n < 2) return true;
    size_t n = (size_t)expansion->n;
    const struct weft_layer **sorted = weft_pool_array(expansion->pool, n, sizeof *sorted);
    if (sorted == NULL) return false;
    for (size_t i = 0; i < n; i++)
        sorted[i] = &expansion->layers[i];
    qsort(sorted, n, sizeof *sorted, by_name);
    for (size_t i = 1; i < n; i++) {
        if (strcmp(sorted[i - 1]->name, sorted[i]->name) != 0) continue;
        char path[PATH_BYTES];
        entry_path(expansion, expansion->entries[sorted[i] - expansion->layers], "name", path);
        weft_findings_add(expansion->findings, expansion->section->source, path,
                          "\"%s\" is also the name of layers[%d]; names must be unique",
                          sorted[i]->name, expansion->entries[sorted[i - 1] - expansion->layers]);
    }
    return true;
}

/* The layer table with the supplied types among the choices of "type", so that who writes another
 * one is told of them. NULL when memory runs out. */
static const struct weft_field_table *name_kinds(const struct weft_layer_kinds *kinds,
                                                 struct weft_pool *pool)
{
    size_t n_fields = weft_layer_table.n_fields, n_kinds = kinds == NULL ? 0 : (size_t)kinds->n;
    if (n_kinds == 0) return &weft_layer_table;
    struct weft_field_table *table = weft_pool_array(pool, 1, sizeof *table);
    struct weft_field *fields = weft_pool_array(pool, n_fields, sizeof *fields);
    const char **types = weft_pool_array(pool, WEFT_LAYER_TYPE_COUNT + n_kinds + 1, sizeof *types);
    if (table == NULL || fields == NULL || types == NULL) return NULL;
    for (size_t i = 0; i < WEFT_LAYER_TYPE_COUNT + n_kinds; i++)
        types[i] = i < WEFT_LAYER_TYPE_COUNT ? weft_layer_type_name((enum weft_layer_type)i)
                                             : kinds->kinds[i - WEFT_LAYER_TYPE_COUNT]->type;
    for (size_t i = 0; i < n_fields; i++) {
        fields[i] = weft_layer_table.fields[i];
        if (strcmp(fields[i].name, "type") == 0) fields[i].choices = types;
    }
    *table = weft_layer_table;
    table->fields = fields;
    return table;
}

void weft_layers_decode(const struct weft_section *section, const struct weft_layer_kinds *kinds,
                        struct weft_pool *pool, struct weft_layer **layers, int32_t *n_layers,
                        struct weft_findings *findings)
{
    struct expansion expansion = {.section = section,
                                  .kinds = kinds,
                                  .table = name_kinds(kinds, pool),
                                  .pool = pool,
                                  .findings = findings};
    const struct weft_json_value *root = section->root;
    char unused;
    weft_field_decode(&weft_model_table, root, section->source, section->path, pool, &unused,
                      findings);
    const struct weft_json_value *list = weft_json_member(root, "layers");
    *n_layers = 0;
    if (list == NULL || weft_json_kind(list) != WEFT_JSON_ARRAY) return;
    bool enough = expansion.table != NULL;
    int32_t number = 0;
    for (const struct weft_json_value *entry = weft_json_first(list); entry != NULL && enough;
         entry = weft_json_next(entry)) {
        enough = add_entry(&expansion, number++, entry);
    }
    if (number == 0) {
        char path[PATH_BYTES];
        snprintf(path, sizeof path, "%s.layers", section->path);
        weft_findings_add(findings, section->source, path,
                          "is empty; a model has at least one "
                          "layer");
    }
    if (enough) enough = check_unique(&expansion);
    if (!enough) {
        findings->count++;
        findings->text.failed = true;
    }
    *layers = expansion.layers;
    *n_layers = expansion.n;
}

static void encode_keys(const char *const *keys, const struct weft_layer_entry *entry,
                        struct weft_json_writer *writer)
{
    for (; *keys != NULL; keys++) {
        if (strcmp(*keys, "repeat") == 0) continue;
        weft_field_encode_key(weft_field_find(&weft_layer_table, *keys), entry, writer);
    }
}

/* Nothing says that the names ran out of memory but a writer whose text has failed. */
static void encode_supplied(const struct weft_layer *layer, struct weft_json_writer *writer)
{
    struct weft_pool pool = {0};
    const struct weft_layer_entry entry = {.layer = *layer, .repeat = 1};
    const struct weft_field_table *table = weft_kind_table(layer->supplied, &pool);
    if (table == NULL) writer->text->failed = true;
    weft_json_begin_object(writer);
    weft_json_flat(writer);
    for (size_t i = 0; table != NULL && i < table->n_fields; i++)
        if (strcmp(table->fields[i].name, "repeat") != 0)
            weft_field_encode_key(&table->fields[i], &entry, writer);
    weft_json_end_object(writer);
    weft_pool_finish(&pool);
}

void weft_layers_encode(const struct weft_model *model, struct weft_json_writer *writer)
{
    weft_json_begin_array(writer);
    for (int32_t i = 0; i < model->n_layers; i++) {
        const struct weft_layer *layer = &model->layers[i];
        if (layer->type == WEFT_LAYER_SUPPLIED) {
            encode_supplied(layer, writer);
            continue;
        }
        struct weft_layer_entry entry = {
            .layer = *layer,
            .type = (int)layer->type,
            .repeat = 1,
            .tie = layer->tie < 0 ? NULL : model->layers[layer->tie].name,
            .classes = layer->outputs,
        };
        weft_json_begin_object(writer);
        weft_json_flat(writer);
        encode_keys(weft_layer_common_keys, &entry, writer);
        encode_keys(weft_layer_type_keys[layer->type].required, &entry, writer);
        encode_keys(weft_layer_type_keys[layer->type].optional, &entry, writer);
        weft_json_end_object(writer);
    }
    weft_json_end_array(writer);
}
