/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/checkpoint/manifest.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/file.h"
#include "base/json/json.h"
#include "base/json/json_compare.h"
#include "runtime/checkpoint/directory.h"
#include "runtime/checkpoint/function.h"

static const char format_name[] = "weft checkpoint";
/* The text ends with this key and its own CRC. */
static const char seal_key[] = ",\n  \"crc32c\": ";
enum { SEAL_BYTES = 64 };

static weft_key_put_fn put_origin_path, put_files, put_crcs, put_function, put_settings, put_reduce,
    put_group, put_bundle;

const struct weft_key_table weft_origin_keys =
    WEFT_KEY_TABLE_OPEN("The origin of a run's first parameters (`weft train --from`).",
                        WEFT_KEY_PUT(WEFT_KEY_NEEDED, WEFT_KEY_TEXT, "path", NULL, put_origin_path,
                                     "of a checkpoint, or of a file of tensors"),
                        WEFT_KEY_VALUE(WEFT_KEY_HASH, weft_origin, parameters,
                                       "fingerprint of all parameters before the first step"));

static const struct weft_key_table link_table =
    WEFT_KEY_TABLE_OPEN("The checkpoint before this one in the same directory.",
                        WEFT_KEY_COUNT(weft_manifest_link, step, "of that checkpoint"),
                        WEFT_KEY_VALUE_AS(WEFT_KEY_NEEDED, "manifest", WEFT_KEY_HASH,
                                          weft_manifest_link, text, "of the text of its manifest"));

static const struct weft_key_table file_table = WEFT_KEY_TABLE_OPEN(
    "A file of tensors by name.",
    WEFT_KEY_VALUE_AS(WEFT_KEY_UNREAD, "name", WEFT_KEY_TEXT, weft_manifest_file, name,
                      "in the manifest's directory"),
    WEFT_KEY_RANGE(weft_manifest_file, bytes, 8, WEFT_KEY_MOST, "of the file"),
    WEFT_KEY_RANGE(weft_manifest_file, chunk_bytes, WEFT_CHECKPOINT_LEAST_CHUNK_BYTES,
                   WEFT_CHECKPOINT_MOST_CHUNK_BYTES, "of one checksum"),
    WEFT_KEY_PUT_RANGE(WEFT_KEY_LIST, WEFT_KEY_INT64, "crc32c", 0, UINT32_MAX, put_crcs,
                       "of each chunk"));

const struct weft_key_table weft_manifest_keys = WEFT_KEY_TABLE_OPEN(
    "The manifest of a checkpoint, written last.",
    WEFT_KEY_PART(WEFT_KEY_CONST, "format", format_name, "of this file"),
    WEFT_KEY_VERSION(WEFT_MANIFEST_VERSION),
    WEFT_KEY_PART(WEFT_KEY_TEXT, "program", WEFT_VERSION, "version of the program that wrote it"),
    WEFT_KEY_COUNT_AS(WEFT_KEY_NEEDED, "step", weft_manifest, progress.step,
                      "after which it was saved"),
    WEFT_KEY_COUNT_AS(WEFT_KEY_NEEDED, "updates", weft_manifest, progress.updates,
                      "of parameters so far"),
    WEFT_KEY_COUNT_AS(WEFT_KEY_NEEDED, "tokens", weft_manifest, progress.tokens, "so far"),
    WEFT_KEY_COUNT_AS(WEFT_KEY_NEEDED, "samples", weft_manifest, progress.samples, "so far"),
    WEFT_KEY_VALUE_AS(WEFT_KEY_UNREAD, "loss_scale", WEFT_KEY_NUMBER, weft_manifest,
                      progress.loss_scale, "1 except in f16"),
    WEFT_KEY_COUNT_AS(WEFT_KEY_NEEDED, "good_steps", weft_manifest, progress.good_steps,
                      "since the scale changed"),
    WEFT_KEY_COUNT_AS(WEFT_KEY_OPTIONAL, "moments_began", weft_manifest, progress.moments_began,
                      "step of resuming with another optimizer"),
    WEFT_KEY_VALUE_AS(WEFT_KEY_NEEDED, "data", WEFT_KEY_HASH, weft_manifest, progress.data,
                      "of the training data"),
    WEFT_KEY_VALUE_AS(WEFT_KEY_OPTIONAL, "parameters", WEFT_KEY_HASH, weft_manifest,
                      progress.parameters, "fingerprint of all parameters, as in a result"),
    WEFT_KEY_INSIDE_IF(WEFT_KEY_UNREAD, "origin", weft_manifest, origin, origin.path[0],
                       &weft_origin_keys, "of a run that began with `--from`"),
    WEFT_KEY_INSIDE_IF(WEFT_KEY_FLAT | WEFT_KEY_UNREAD, "previous", weft_manifest, previous,
                       previous.step, &link_table,
                       "the checkpoint before this one, so that manifests are a chain"),
    WEFT_KEY_VALUE(WEFT_KEY_HASH, weft_manifest, model, "of names and shapes of all tensors"),
    WEFT_KEY_PUT(WEFT_KEY_OPTIONAL | WEFT_KEY_LIST, WEFT_KEY_OBJECT, "layers", NULL, put_function,
                 "the model's function; from version 2 on"),
    WEFT_KEY_VALUE_AS(WEFT_KEY_OPTIONAL, "device", WEFT_KEY_TEXT, weft_manifest, device,
                      "that computed, if it is not `cpu`"),
    WEFT_KEY_COUNT_AS(WEFT_KEY_OPTIONAL, "micro_batch", weft_manifest, split.micro_batch,
                      "samples of a rank and micro-step"),
    WEFT_KEY_COUNT_IF("micro_steps", weft_manifest, split.micro_steps, split.micro_batch,
                      split.micro_batch, "of a step"),
    WEFT_KEY_PUT(WEFT_KEY_OPTIONAL, WEFT_KEY_TEXT, "reduce", NULL, put_reduce,
                 "when gradients were reduced: every `micro_step` or `step`"),
    WEFT_KEY_COUNT_PUT("group", weft_manifest, split.group, put_group,
                       "micro-steps of a round, if neither one nor all"),
    WEFT_KEY_COUNT_AS(WEFT_KEY_OPTIONAL, "turn_layers", weft_manifest, split.layers,
                      "layers that micro-steps took turns by, as in `plan.micro_step_order`"),
    WEFT_KEY_COUNT_IF("ranks", weft_manifest, split.ranks, split.micro_batch, split.micro_batch,
                      "that shared each step's batch"),
    WEFT_KEY_COUNT_AS(WEFT_KEY_OPTIONAL, "idle_ranks", weft_manifest, split.idle,
                      "of them, without a group of micro-batches in the last round"),
    WEFT_KEY_COUNT_PUT("bundle", weft_manifest, split.bundle, put_bundle,
                       "ranks of a node, which were summed first, if there were several nodes"),
    WEFT_KEY_VALUE(WEFT_KEY_TEXT, weft_manifest, kernels, "way to compute products"),
    WEFT_KEY_VALUE_AS(WEFT_KEY_OPTIONAL, "products", WEFT_KEY_TEXT, weft_manifest, products,
                      "the algorithm of each product, if that way is a library with several: its "
                      "version and algorithms"),
    WEFT_KEY_VALUE_AS(WEFT_KEY_OPTIONAL, "bits", WEFT_KEY_TEXT, weft_manifest, bits,
                      "products, attention and instructions that the bits depend on"),
    WEFT_KEY_PUT(WEFT_KEY_NEEDED, WEFT_KEY_OBJECT, "settings", NULL, put_settings,
                 "of train, that resuming compares"),
    WEFT_KEY_PUT(WEFT_KEY_LIST, WEFT_KEY_OBJECT, "files", &file_table, put_files, "in this order"),
    WEFT_KEY_PART_RANGE(WEFT_KEY_INT64, "crc32c", WEFT_KEY_NEEDED, 0, UINT32_MAX, NULL,
                        "of the text up to the comma before this key"));

/* Keys of the train section that a step depends on, besides model, data and batch. */
static const char *const setting_names[] = {"steps",     "seq_len", "seed",      "precision",
                                            "optimizer", "reduce",  "clip_norm", "lr_schedule",
                                            "padding",   "masked"};
enum { N_SETTINGS = sizeof setting_names / sizeof setting_names[0] };

static void pick_settings(const struct weft_json_value *root, struct weft_text *out)
{
    const struct weft_json_value *train = weft_json_member(root, "train");
    struct weft_json_writer writer;
    weft_json_writer_init(&writer, out, 0);
    weft_json_begin_object(&writer);
    for (int i = 0; i < N_SETTINGS; i++) {
        const struct weft_json_value *value = weft_json_member(train, setting_names[i]);
        if (value == NULL) continue;
        weft_json_key(&writer, setting_names[i]);
        weft_json_add_value(&writer, value);
    }
    weft_json_end_object(&writer);
}

enum weft_status weft_manifest_settings(const struct weft_config *config, struct weft_pool *pool,
                                        const char **out, struct weft_error *err)
{
    struct weft_text text, picked;
    struct weft_json *document = NULL;
    weft_text_init(&text);
    weft_text_init(&picked);
    weft_config_write(config, &text);
    enum weft_status status = WEFT_OK;
    if (!weft_text_ok(&text)) status = weft_fail_memory(err, "settings");
    if (status == WEFT_OK)
        status =
            weft_json_parse(weft_text_chars(&text), text.length, "resolved config", &document, err);
    if (status == WEFT_OK) {
        pick_settings(weft_json_root(document), &picked);
        const char *copy =
            weft_text_ok(&picked) ? weft_pool_string(pool, weft_text_chars(&picked)) : NULL;
        if (copy == NULL) {
            status = weft_fail_memory(err, "settings");
        } else {
            *out = copy;
        }
    }
    weft_json_destroy(document);
    weft_text_finish(&picked);
    weft_text_finish(&text);
    return status;
}

void weft_manifest_optimizer(const char *settings, char type[WEFT_MANIFEST_TYPE_BYTES])
{
    struct weft_json *document = NULL;
    const char *text = NULL;
    type[0] = '\0';
    if (weft_json_parse(settings, strlen(settings), "settings", &document, NULL) != WEFT_OK) return;
    const struct weft_json_value *optimizer =
        weft_json_member(weft_json_root(document), "optimizer");
    if (weft_json_string(weft_json_member(optimizer, "type"), &text))
        snprintf(type, WEFT_MANIFEST_TYPE_BYTES, "%s", text);
    weft_json_destroy(document);
}

bool weft_manifest_compares(const char *path)
{
    size_t length = strcspn(path, ".");
    for (int i = 0; i < N_SETTINGS; i++)
        if (strlen(setting_names[i]) == length && strncmp(setting_names[i], path, length) == 0)
            return true;
    return false;
}

static void show_value(const struct weft_json_value *value, struct weft_text *out)
{
    struct weft_json_writer writer;
    weft_json_writer_init(&writer, out, 0);
    weft_json_add_value(&writer, value);
}

/* Keys that only `before` has are from an older version. They cannot be set any more, so they are
 * not compared. */
int32_t weft_manifest_compare(const char *settings, const char *before, struct weft_text *out)
{
    static const struct weft_json_comparison how = {.forgets = true};
    struct weft_json *a = NULL, *b = NULL;
    int32_t n = 0;
    if (weft_json_parse(settings, strlen(settings), "settings", &a, NULL) == WEFT_OK &&
        weft_json_parse(before, strlen(before), "settings", &b, NULL) == WEFT_OK)
        n = weft_json_compare(weft_json_root(a), weft_json_root(b), &how, out);
    weft_json_destroy(b);
    weft_json_destroy(a);
    return n;
}

/* Writing */

static void put_origin_path(const void *context, const void *source,
                            struct weft_json_writer *writer)
{
    const struct weft_origin *origin = source;
    (void)context;
    weft_json_put_string(writer, "path", origin->path);
}

static void put_settings(const void *context, const void *source, struct weft_json_writer *writer)
{
    const struct weft_manifest *manifest = source;
    (void)context;
    const char *settings = manifest->settings;
    struct weft_json *document = NULL;
    if (weft_json_parse(settings, strlen(settings), "settings", &document, NULL) != WEFT_OK) {
        writer->text->failed = true;
        return;
    }
    weft_json_key(writer, "settings");
    weft_json_add_value(writer, weft_json_root(document));
    weft_json_destroy(document);
}

/* Writes one line per layer. */
static void put_function(const void *context, const void *source, struct weft_json_writer *writer)
{
    const struct weft_manifest *manifest = source;
    (void)context;
    const char *function = manifest->function;
    struct weft_json *document = NULL;
    if (weft_json_parse(function, strlen(function), "layers", &document, NULL) != WEFT_OK) {
        writer->text->failed = true;
        return;
    }
    const struct weft_json_value *layer = weft_json_first(weft_json_root(document));
    weft_json_key(writer, "layers");
    weft_json_begin_array(writer);
    for (; layer != NULL; layer = weft_json_next(layer)) {
        const struct weft_json_value *key = weft_json_first(layer);
        weft_json_begin_object(writer);
        weft_json_flat(writer);
        for (; key != NULL; key = weft_json_next(key)) {
            weft_json_key(writer, weft_json_name(key));
            weft_json_add_value(writer, key);
        }
        weft_json_end_object(writer);
    }
    weft_json_end_array(writer);
    weft_json_destroy(document);
}

static void put_crcs(const void *context, const void *source, struct weft_json_writer *writer)
{
    const struct weft_manifest_file *file = source;
    (void)context;
    weft_json_key(writer, "crc32c");
    weft_json_begin_array(writer);
    for (int64_t i = 0; i < file->n_chunks; i++)
        weft_json_add_integer(writer, file->crcs[i]);
    weft_json_end_array(writer);
}

static void put_files(const void *context, const void *source, struct weft_json_writer *writer)
{
    const struct weft_manifest *manifest = source;
    (void)context;
    weft_json_key(writer, "files");
    weft_json_begin_array(writer);
    for (int32_t i = 0; i < manifest->n_files; i++) {
        weft_json_begin_object(writer);
        weft_keys_write(&file_table, NULL, &manifest->files[i], writer);
        weft_json_end_object(writer);
    }
    weft_json_end_array(writer);
}

static void put_reduce(const void *context, const void *source, struct weft_json_writer *writer)
{
    const struct weft_manifest *manifest = source;
    (void)context;
    const struct weft_manifest_split *split = &manifest->split;
    const bool step = split->group == split->micro_steps;
    if (split->micro_batch > 0)
        weft_json_put_string(writer, "reduce",
                             weft_cadence_name(step ? WEFT_CADENCE_STEP : WEFT_CADENCE_MICRO_STEP));
}

static void put_group(const void *context, const void *source, struct weft_json_writer *writer)
{
    const struct weft_manifest *manifest = source;
    (void)context;
    if (manifest->split.group > 1 && manifest->split.group != manifest->split.micro_steps)
        weft_json_put_integer(writer, "group", manifest->split.group);
}

static void put_bundle(const void *context, const void *source, struct weft_json_writer *writer)
{
    const struct weft_manifest *manifest = source;
    (void)context;
    if (manifest->split.bundle > 1) weft_json_put_integer(writer, "bundle", manifest->split.bundle);
}

static int write_seal(uint32_t crc, char out[SEAL_BYTES])
{
    return snprintf(out, SEAL_BYTES, "%s%" PRIu32 "\n}\n", seal_key, crc);
}

void weft_manifest_write(const struct weft_manifest *manifest, struct weft_text *out)
{
    struct weft_json_writer writer;
    char end[SEAL_BYTES];
    size_t begin = out->length;
    weft_json_writer_init(&writer, out, 2);
    weft_json_begin_object(&writer);
    weft_keys_write(&weft_manifest_keys, NULL, manifest, &writer);
    if (!weft_text_ok(out)) return;
    write_seal(weft_crc32c(0, out->data + begin, out->length - begin), end);
    weft_text_add(out, end);
}

/* Reading */

/* The text must end with its CRC, written in the same way. */
static enum weft_status check_seal(const char *bytes, size_t length, const char *path,
                                   struct weft_error *err)
{
    size_t key = strlen(seal_key), at = length;
    while (at > 0 && (length - at < key || memcmp(bytes + at, seal_key, key) != 0))
        at--;
    char end[SEAL_BYTES];
    int n = write_seal(weft_crc32c(0, bytes, at), end);
    if (at > 0 && length - at == (size_t)n && memcmp(bytes + at, end, (size_t)n) == 0)
        return WEFT_OK;
    return weft_fail(err, WEFT_E_DATA,
                     "%s: is damaged: its text does not have the CRC that stands at its end", path);
}

/* Checks the parts of the progress that no table can. */
static enum weft_status read_progress(const struct weft_json_value *root, const char *path,
                                      struct weft_progress *out, struct weft_error *err)
{
    if (out->updates > out->step || out->moments_began > out->step)
        return weft_fail(err, WEFT_E_DATA,
                         "%s: updates %" PRId64 " or moments_began %" PRId64
                         " is above step %" PRId64,
                         path, out->updates, out->moments_began, out->step);
    if (weft_json_number(weft_json_member(root, "loss_scale"), &out->loss_scale) &&
        out->loss_scale > 0)
        return WEFT_OK;
    return weft_fail(err, WEFT_E_DATA, "%s: the member \"loss_scale\" is no positive number", path);
}

static enum weft_status read_origin(const struct weft_json_value *root, const char *path,
                                    struct weft_origin *out, struct weft_error *err)
{
    const struct weft_json_value *origin = NULL;
    const char *text = NULL;
    if (weft_json_member(root, "origin") == NULL) return WEFT_OK;
    WEFT_TRY(weft_json_need(root, path, "origin", WEFT_JSON_OBJECT, &origin, err));
    WEFT_TRY(weft_json_need_string(origin, path, "path", &text, err));
    if (strlen(text) >= sizeof out->path)
        return weft_fail(err, WEFT_E_DATA, "%s: the member \"origin\" has a path that is too long",
                         path);
    snprintf(out->path, sizeof out->path, "%s", text);
    return weft_keys_read(&weft_origin_keys, origin, path, NULL, out, err);
}

static enum weft_status read_link(const struct weft_json_value *root, const char *path,
                                  struct weft_manifest_link *out, struct weft_error *err)
{
    const struct weft_json_value *link = NULL;
    if (weft_json_member(root, "previous") == NULL) return WEFT_OK;
    WEFT_TRY(weft_json_need(root, path, "previous", WEFT_JSON_OBJECT, &link, err));
    return weft_keys_read(&link_table, link, path, NULL, out, err);
}

static enum weft_status read_crcs(const struct weft_json_value *list, const char *where,
                                  struct weft_manifest *manifest, struct weft_manifest_file *out,
                                  struct weft_error *err)
{
    out->n_chunks = weft_checkpoint_chunks(out->bytes, out->chunk_bytes);
    if (weft_json_count(list) != (size_t)out->n_chunks)
        return weft_fail(err, WEFT_E_DATA,
                         "%s: %" PRId64 " bytes are %" PRId64 " chunks, and there are %zu CRCs",
                         where, out->bytes, out->n_chunks, weft_json_count(list));
    out->crcs = weft_pool_array(&manifest->pool, (size_t)out->n_chunks, sizeof *out->crcs);
    if (out->crcs == NULL) return weft_fail_memory(err, where);
    const struct weft_json_value *at = weft_json_first(list);
    for (int64_t i = 0; i < out->n_chunks; i++, at = weft_json_next(at)) {
        int64_t crc = 0;
        if (!weft_json_integer(at, &crc) || crc < 0 || crc > UINT32_MAX)
            return weft_fail(err, WEFT_E_DATA, "%s: a CRC is an integer below 2^32", where);
        out->crcs[i] = (uint32_t)crc;
    }
    return WEFT_OK;
}

/* Only names of this version are accepted, so none leads out of the directory. */
static enum weft_status read_file(const struct weft_json_value *value, const char *path,
                                  struct weft_manifest *manifest, struct weft_error *err)
{
    static const char *const names[WEFT_CHECKPOINT_FILES] = {"model.safetensors",
                                                             "optimizer.safetensors"};
    const char *name = NULL;
    const struct weft_json_value *crcs = NULL;
    int32_t i = manifest->n_files;
    WEFT_TRY(weft_json_need_string(value, path, "name", &name, err));
    if (i == WEFT_CHECKPOINT_FILES || strcmp(name, names[i]) != 0)
        return weft_fail(err, WEFT_E_DATA, "%s: a file of another name than %s, then %s", path,
                         names[0], names[1]);
    struct weft_manifest_file *out = &manifest->files[i];
    out->name = names[i];
    WEFT_TRY(weft_keys_read(&file_table, value, path, &manifest->pool, out, err));
    WEFT_TRY(weft_json_need(value, path, "crc32c", WEFT_JSON_ARRAY, &crcs, err));
    WEFT_TRY(read_crcs(crcs, path, manifest, out, err));
    manifest->n_files++;
    return WEFT_OK;
}

static enum weft_status keep_text(struct weft_manifest *manifest, const char *text,
                                  const char **out, struct weft_error *err)
{
    *out = weft_pool_string(&manifest->pool, text);
    return *out != NULL ? WEFT_OK : weft_fail_memory(err, "a manifest");
}

/* Reads a member as text on one line. */
static enum weft_status read_json(const struct weft_json_value *root, const char *path,
                                  const char *name, enum weft_json_kind kind,
                                  struct weft_manifest *manifest, const char **out,
                                  struct weft_error *err)
{
    const struct weft_json_value *value = NULL;
    struct weft_text text;
    WEFT_TRY(weft_json_need(root, path, name, kind, &value, err));
    weft_text_init(&text);
    show_value(value, &text);
    enum weft_status status = weft_text_ok(&text)
                                  ? keep_text(manifest, weft_text_chars(&text), out, err)
                                  : weft_fail_memory(err, path);
    weft_text_finish(&text);
    return status;
}

static enum weft_status read_function(const struct weft_json_value *root, const char *path,
                                      struct weft_manifest *out, struct weft_error *err)
{
    WEFT_TRY(read_json(root, path, "layers", WEFT_JSON_ARRAY, out, &out->function, err));
    return weft_function_check(weft_json_member(root, "layers"), path, err);
}

static enum weft_status read_group(const struct weft_json_value *root, const char *path,
                                   struct weft_manifest_split *split, struct weft_error *err)
{
    const char *name = NULL;
    enum weft_cadence cadence;
    if (weft_json_member(root, "reduce") == NULL) return WEFT_OK;
    WEFT_TRY(weft_json_need_string(root, path, "reduce", &name, err));
    if (!weft_cadence_read(name, &cadence) || cadence == WEFT_CADENCE_AUTO)
        return weft_fail(err, WEFT_E_DATA, "%s: there is no cadence \"%.64s\"", path, name);
    if (split->bundle == 0) split->bundle = 1;
    if (split->group == 0) split->group = cadence == WEFT_CADENCE_STEP ? split->micro_steps : 1;
    const bool whole = split->group > 0 && split->micro_steps % split->group == 0;
    const bool several = whole && split->micro_steps > split->group;
    if (whole && split->idle == 0) return WEFT_OK;
    if (several && split->idle > 0 && split->idle < split->ranks) return WEFT_OK;
    if (whole)
        return weft_fail(err, WEFT_E_DATA,
                         "%s: %" PRId64 " of %" PRId64
                         " ranks cannot be idle in the last of %" PRId64 " rounds",
                         path, split->idle, split->ranks, split->micro_steps / split->group);
    return weft_fail(err, WEFT_E_DATA,
                     "%s: rounds of %" PRId64 " micro-steps do not divide the %" PRId64
                     " of a step",
                     path, split->group, split->micro_steps);
}

static enum weft_status read_all(const struct weft_json_value *root, const char *path,
                                 struct weft_manifest *out, struct weft_error *err)
{
    const char *format = NULL;
    const struct weft_json_value *files = NULL;
    int64_t version = 0;
    WEFT_TRY(weft_json_need_string(root, path, "format", &format, err));
    if (strcmp(format, format_name) != 0)
        return weft_fail(err, WEFT_E_DATA, "%s: is not the manifest of a checkpoint", path);
    WEFT_TRY(weft_json_need_integer(root, path, "version", 1, WEFT_KEY_MOST, &version, err));
    if (version > WEFT_MANIFEST_VERSION)
        return weft_fail(err, WEFT_E_DATA,
                         "%s: has format version %" PRId64 ", and this program reads up to %d: use "
                         "the one that wrote it, or a newer one",
                         path, version, WEFT_MANIFEST_VERSION);
    WEFT_TRY(weft_keys_read(&weft_manifest_keys, root, path, &out->pool, out, err));
    WEFT_TRY(read_progress(root, path, &out->progress, err));
    WEFT_TRY(read_origin(root, path, &out->origin, err));
    WEFT_TRY(read_link(root, path, &out->previous, err));
    WEFT_TRY(read_group(root, path, &out->split, err));
    if (version > 1) WEFT_TRY(read_function(root, path, out, err));
    WEFT_TRY(read_json(root, path, "settings", WEFT_JSON_OBJECT, out, &out->settings, err));
    WEFT_TRY(weft_json_need(root, path, "files", WEFT_JSON_ARRAY, &files, err));
    const struct weft_json_value *at = weft_json_first(files);
    for (; at != NULL; at = weft_json_next(at))
        WEFT_TRY(read_file(at, path, out, err));
    if (out->n_files == WEFT_CHECKPOINT_FILES) return WEFT_OK;
    return weft_fail(err, WEFT_E_DATA, "%s: lists %d files, not %d", path, out->n_files,
                     WEFT_CHECKPOINT_FILES);
}

enum weft_status weft_manifest_parse(const char *bytes, size_t length, const char *path,
                                     struct weft_manifest **out, struct weft_error *err)
{
    struct weft_json *document = NULL;
    WEFT_TRY(check_seal(bytes, length, path, err));
    WEFT_TRY(weft_json_parse(bytes, length, path, &document, err));
    struct weft_manifest *manifest = calloc(1, sizeof *manifest);
    enum weft_status status = manifest != NULL
                                  ? read_all(weft_json_root(document), path, manifest, err)
                                  : weft_fail_memory(err, path);
    weft_json_destroy(document);
    if (status != WEFT_OK) {
        weft_manifest_destroy(manifest);
        return status;
    }
    *out = manifest;
    return WEFT_OK;
}

void weft_manifest_destroy(struct weft_manifest *manifest)
{
    if (manifest == NULL) return;
    weft_pool_finish(&manifest->pool);
    free(manifest);
}

void weft_checkpoint_link(const char *directory, int64_t step, struct weft_manifest_link *out)
{
    const int64_t most_bytes = INT64_C(1) << 32;
    struct weft_text path;
    char *bytes = NULL;
    size_t length = 0;
    weft_text_init(&path);
    weft_checkpoint_path(directory, step, &path);
    weft_text_addf(&path, "/%s", WEFT_MANIFEST_NAME);
    if (weft_text_ok(&path) &&
        weft_file_read(weft_text_chars(&path), most_bytes, &bytes, &length, NULL) == WEFT_OK)
        *out = (struct weft_manifest_link){step, weft_hash_bytes(bytes, length)};
    free(bytes);
    weft_text_finish(&path);
}
