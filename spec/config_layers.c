/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes the "layers" array: entries by the layer table, keys of each type, repetition, ties. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spec/config_parts.h"
#include "spec/config_tables.h"
#include "spec/layer_table.h"
#include "spec/names.h"

enum { MOST_LAYERS = 16384, MOST_NAME = 200, PATH_BYTES = 256 };

/* The layers so far, and the entry of each. */
struct expansion {
    const struct weft_section *section;
    const struct weft_kinds *kinds;
    struct weft_pool *pool;
    struct weft_findings *findings;
    struct weft_layer *layers;
    int32_t *entries;
    int32_t n, capacity;
    const struct weft_kind *last_kind; /* of `last_table`, which the next layer mostly has too */
    const struct weft_field_table *last_table; /* NULL: none yet */
};

static void entry_path(const struct expansion *expansion, int32_t entry, const char *key,
                       char out[PATH_BYTES])
{
    snprintf(out, PATH_BYTES, "%s.layers[%d]%s%s", expansion->section->path, entry,
             key == NULL ? "" : ".", key == NULL ? "" : key);
}

/* Refuses keys that only other kinds have. */
static void check_keys(struct expansion *expansion, int32_t number,
                       const struct weft_json_value *object, const struct weft_field_table *table,
                       const struct weft_kind *kind)
{
    char path[PATH_BYTES];
    for (const struct weft_json_value *value = weft_json_first(object); value != NULL;
         value = weft_json_next(value)) {
        const char *name = weft_json_name(value);
        if (weft_field_find(table, name) == NULL || weft_kind_key(kind, name) != NULL ||
            weft_field_find(&weft_layer_table, name) != NULL)
            continue;
        struct weft_text own;
        weft_text_init(&own);
        for (size_t i = 0; i < kind->n_keys; i++)
            weft_text_addf(&own, "%s%s", i == 0 ? "" : ", ", kind->keys[i].name);
        entry_path(expansion, number, name, path);
        weft_findings_add(expansion->findings, expansion->section->source, path,
                          "a layer of type \"%s\" has no such key; it has: %s", kind->type,
                          weft_text_chars(&own));
        weft_text_finish(&own);
    }
}

/* Lets the kind check its values together. */
static void check_values(struct expansion *expansion, int32_t number,
                         const struct weft_layer *layer)
{
    struct weft_fault faults[WEFT_FAULTS];
    int32_t n = layer->kind->check == NULL ? 0 : layer->kind->check(layer, faults);
    for (int32_t i = 0; i < n; i++) {
        char path[PATH_BYTES];
        entry_path(expansion, number, faults[i].key, path);
        weft_findings_add(expansion->findings, expansion->section->source, path, "%s",
                          faults[i].text);
    }
}

static void check_name(struct expansion *expansion, int32_t number,
                       const struct weft_layer_entry *entry)
{
    const char *name = entry->layer.name, *copy = strstr(name, "{i}");
    char path[PATH_BYTES], first[MOST_NAME + 2];
    entry_path(expansion, number, "name", path);
    /* The first copy's name, with one extra byte that shows a longer name. */
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

/* Finds the earlier layer that this one shares its first tensor with. */
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
        if (other->kind != entry->layer.kind->ties) {
            why = "that layer is of another type";
        } else if (other->kind != entry->layer.kind &&
                   (other->vocab != entry->layer.vocab || other->hidden != entry->layer.hidden)) {
            why = "that embedding has another vocab or hidden";
        } else {
            return named;
        }
    }
    entry_path(expansion, number, "tie", path);
    weft_findings_add(
        expansion->findings, expansion->section->source, path,
        "\"%s\" cannot be tied to: %s; name an earlier layer of type %s%s", entry->tie, why,
        entry->layer.kind->ties->type,
        entry->layer.kind->ties == entry->layer.kind ? "" : ", of the same vocab and hidden");
    return -1;
}

static bool grow_layers(struct expansion *expansion, int64_t more)
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

static bool repeat_layer(struct expansion *expansion, int32_t number,
                         const struct weft_layer_entry *entry)
{
    if (!grow_layers(expansion, entry->repeat)) return false;
    const char *name = entry->layer.name, *copy = strstr(name, "{i}");
    /* Copies with one name are a finding already. */
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

/* The keys of a kind (NULL: unknown). A table takes longer to make than a layer to read. */
static const struct weft_field_table *table_of(struct expansion *expansion,
                                               const struct weft_kind *kind)
{
    if (expansion->last_table == NULL || expansion->last_kind != kind)
        expansion->last_table = weft_layer_table_of(kind, expansion->kinds, expansion->pool);
    expansion->last_kind = kind;
    return expansion->last_table;
}

/* Returns false without memory. */
static bool add_entry(struct expansion *expansion, int32_t number,
                      const struct weft_json_value *object)
{
    const struct weft_section *section = expansion->section;
    struct weft_findings *findings = expansion->findings;
    struct weft_layer_decoded decoded = {.entry.type = -1, .entry.layer.tie = -1};
    struct weft_layer_entry *entry = &decoded.entry;
    char path[PATH_BYTES];
    int32_t before = findings->count;
    entry_path(expansion, number, NULL, path);
    const char *type = NULL;
    weft_json_string(weft_json_member(object, "type"), &type);
    const struct weft_kind *kind = type == NULL ? NULL : weft_kind_find(expansion->kinds, type);
    const struct weft_field_table *table = table_of(expansion, kind);
    if (table == NULL) return false;
    weft_field_decode(table, object, section->source, path, expansion->pool, &decoded, findings);
    if (kind == NULL && type != NULL) {
        entry_path(expansion, number, "type", path);
        weft_findings_add(findings, section->source, path,
                          "a layer of your own needs an element of model.kinds, --layers FILE, or "
                          "weft_add_kind in a program");
    }
    if (kind != NULL) {
        check_keys(expansion, number, object, table, kind);
        entry->layer.kind = kind;
        weft_layer_complete(&entry->layer);
        /* Demands of a wrong value would be further findings. */
        if (kind->identity == NULL || findings->count == before)
            check_values(expansion, number, &entry->layer);
    }
    if (entry->layer.name != NULL) check_name(expansion, number, entry);
    if (kind == NULL || entry->layer.name == NULL) return true;
    if (findings->count == before && entry->tie != NULL)
        entry->layer.tie = find_tie(expansion, number, entry);
    if (expansion->n + entry->repeat > MOST_LAYERS) {
        weft_findings_add(findings, section->source, path,
                          "makes more than %d layers in all; repeat it less often", MOST_LAYERS);
        return true;
    }
    return repeat_layer(expansion, number, entry);
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

/* Refuses kinds of the config that no layer has. */
static void check_used(const struct expansion *expansion, int32_t first)
{
    for (int32_t i = first; expansion->kinds != NULL && i < expansion->kinds->n; i++) {
        const struct weft_kind *kind = expansion->kinds->kinds[i];
        char path[PATH_BYTES];
        bool used = false;
        for (int32_t l = 0; l < expansion->n && !used; l++)
            used = expansion->layers[l].kind == kind;
        snprintf(path, sizeof path, "%s.kinds[%d].kind", expansion->section->path, i - first);
        if (!used)
            weft_findings_add(expansion->findings, expansion->section->source, path,
                              "no layer has the type \"%s\"; leave the kind out", kind->type);
    }
}

void weft_layers_decode(const struct weft_section *section, const struct weft_kinds *kinds,
                        struct weft_pool *pool, struct weft_layer **layers, int32_t *n_layers,
                        struct weft_findings *findings)
{
    struct expansion expansion = {
        .section = section, .kinds = kinds, .pool = pool, .findings = findings};
    const struct weft_json_value *root = section->root;
    char unused;
    weft_field_decode(&weft_model_table, root, section->source, section->path, pool, &unused,
                      findings);
    const struct weft_json_value *list = weft_json_member(root, "layers");
    *n_layers = 0;
    if (list == NULL || weft_json_kind(list) != WEFT_JSON_ARRAY) return;
    const struct weft_kinds *others = kinds;
    const int32_t before = findings->count;
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s.kinds", section->path);
    bool enough = weft_kinds_decode(weft_json_member(root, "kinds"), section->source, path, others,
                                    pool, &expansion.kinds, findings);
    if (findings->count > before) return; /* layers of these kinds would be further findings */
    int32_t number = 0;
    for (const struct weft_json_value *entry = weft_json_first(list); entry != NULL && enough;
         entry = weft_json_next(entry)) {
        enough = add_entry(&expansion, number++, entry);
    }
    if (number == 0) {
        snprintf(path, sizeof path, "%s.layers", section->path);
        weft_findings_add(findings, section->source, path,
                          "is empty; a model has at least one "
                          "layer");
    }
    if (enough) enough = check_unique(&expansion);
    if (enough && findings->count == before) check_used(&expansion, others == NULL ? 0 : others->n);
    if (!enough) {
        findings->count++;
        findings->text.failed = true;
    }
    *layers = expansion.layers;
    *n_layers = expansion.n;
}

void weft_kinds_encode(const struct weft_model *model, struct weft_json_writer *writer)
{
    int32_t n = 0;
    for (int32_t i = 0; i < model->n_layers; i++) {
        const struct weft_kind *kind = model->layers[i].kind;
        bool first = kind->identity != NULL;
        for (int32_t k = 0; k < i && first; k++)
            first = model->layers[k].kind != kind;
        if (!first) continue;
        if (n++ == 0) {
            weft_json_key(writer, "kinds");
            weft_json_begin_array(writer);
        }
        weft_kind_encode(kind, writer);
    }
    if (n > 0) weft_json_end_array(writer);
}

void weft_layers_encode(const struct weft_model *model, struct weft_json_writer *writer)
{
    weft_json_begin_array(writer);
    for (int32_t i = 0; i < model->n_layers; i++) {
        const struct weft_layer *layer = &model->layers[i];
        const struct weft_layer_entry entry = {
            .layer = *layer,
            .repeat = 1,
            .tie = layer->tie < 0 ? NULL : model->layers[layer->tie].name,
        };
        weft_json_begin_object(writer);
        weft_json_flat(writer);
        weft_field_encode_key(weft_field_find(&weft_layer_table, "name"), &entry, writer);
        weft_json_put_string(writer, "type", layer->kind->type);
        weft_field_encode_key(weft_field_find(&weft_layer_table, "frozen"), &entry, writer);
        for (size_t k = 0; k < layer->kind->n_keys; k++)
            weft_field_encode_key(&layer->kind->keys[k], &entry, writer);
        weft_json_end_object(writer);
    }
    weft_json_end_array(writer);
}
