/* SPDX-License-Identifier: Apache-2.0 */
#include "library/hub/source.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json/json.h"
#include "base/log.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/function.h"
#include "runtime/checkpoint/hub_files.h"
#include "spec/run/hub_run.h"

enum { MOST_FILE_BYTES = 1 << 28, MOST_RUNS = 100 };

/* The first is copied only if it is wanted. */
static const char *const kept_names[] = {
    WEFT_HUB_CONFIG_NAME,
    WEFT_HUB_GENERATION_NAME,
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "merges.txt",
    "tokenizer.model",
    "chat_template.jinja",
    "chat_template.json",
    "preprocessor_config.json",
};
enum { KEPT_NAMES = sizeof kept_names / sizeof *kept_names };

/* Files */

bool weft_hub_source_has(const char *folder, const char *name)
{
    struct weft_text path;
    weft_text_init(&path);
    weft_text_addf(&path, "%s/%s", folder, name);
    const bool has = weft_text_ok(&path) && access(weft_text_chars(&path), F_OK) == 0;
    weft_text_finish(&path);
    return has;
}

static enum weft_status copy_file(const char *from, const char *to, const char *name,
                                  struct weft_error *err)
{
    struct weft_text source, target;
    char *bytes = NULL;
    size_t length = 0;
    weft_text_init(&source);
    weft_text_init(&target);
    weft_text_addf(&source, "%s/%s", from, name);
    weft_text_addf(&target, "%s/%s", to, name);
    enum weft_status status =
        weft_text_ok(&source) && weft_text_ok(&target) ? WEFT_OK : weft_fail_memory(err, "a path");
    if (status == WEFT_OK)
        status = weft_file_read(weft_text_chars(&source), MOST_FILE_BYTES, &bytes, &length, err);
    if (status == WEFT_OK) status = weft_file_write(weft_text_chars(&target), bytes, length, err);
    free(bytes);
    weft_text_finish(&target);
    weft_text_finish(&source);
    return status;
}

enum weft_status weft_hub_source_copy(const char *from, const char *to, bool config,
                                      struct weft_error *err)
{
    for (int i = config ? 0 : 1; i < KEPT_NAMES; i++)
        if (weft_hub_source_has(from, kept_names[i]))
            WEFT_TRY(copy_file(from, to, kept_names[i], err));
    return WEFT_OK;
}

/* Tells of parameters that no layer takes, as transformers does. */
static void tell_left_out(const struct weft_hub_files *files)
{
    struct weft_text names;
    weft_text_init(&names);
    weft_hub_files_add_left_out(files, &names);
    if (names.length > 0)
        weft_log(WEFT_LOG_WARNING, "the model has no such head, so these are not read: %s",
                 weft_text_chars(&names));
    weft_text_finish(&names);
}

enum weft_status weft_hub_source_keep(const struct weft_hub_files *files, const char *folder,
                                      struct weft_error *err)
{
    const struct weft_hub_map *map = weft_hub_files_map(files);
    struct weft_json_writer writer;
    struct weft_text text, path;
    weft_text_init(&text);
    weft_text_init(&path);
    weft_text_addf(&path, "%s/" WEFT_HUB_TENSORS_NAME, folder);
    weft_json_writer_init(&writer, &text, 2);
    weft_json_begin_object(&writer);
    enum weft_status status = WEFT_OK;
    for (int32_t e = 0; e < map->n && status == WEFT_OK; e++) {
        const struct weft_safetensors_tensor *tensor = weft_hub_files_tensor(files, e);
        if (tensor == NULL)
            status = weft_fail(err, WEFT_E_DATA, "%s is missing among the tensors of its files",
                               map->entries[e].name);
        else
            weft_json_put_string(&writer, map->entries[e].name,
                                 weft_tensor_type_name(tensor->type));
    }
    weft_json_end_object(&writer);
    tell_left_out(files);
    weft_text_add(&text, "\n");
    if (status == WEFT_OK)
        status =
            weft_text_ok(&text) && weft_text_ok(&path)
                ? weft_file_write(weft_text_chars(&path), weft_text_chars(&text), text.length, err)
                : weft_fail_memory(err, "names of tensors");
    weft_text_finish(&path);
    weft_text_finish(&text);
    return status;
}

/* Finding */

static void cut_text(struct weft_text *text, size_t length)
{
    if (text->data != NULL) text->data[text->length = length] = '\0';
}

static void set_text(struct weft_text *text, const char *chars)
{
    cut_text(text, 0);
    weft_text_add(text, chars);
}

/* Cuts the last name off a path. */
static void cut_name(struct weft_text *path)
{
    const char *slash = strrchr(weft_text_chars(path), '/');
    cut_text(path, slash != NULL ? (size_t)(slash - weft_text_chars(path)) : 0);
}

/* The run's origin, if its checkpoint's manifest names one; otherwise "". */
static enum weft_status read_origin(const char *checkpoint, struct weft_text *out,
                                    struct weft_error *err)
{
    struct weft_checkpoint *opened = NULL;
    WEFT_TRY(weft_checkpoint_open(checkpoint, &opened, err));
    set_text(out, opened->manifest->origin.path);
    weft_checkpoint_close(opened);
    return weft_text_ok(out) ? WEFT_OK : weft_fail_memory(err, "a path");
}

/* The folder of an origin that is no checkpoint: itself, or that of a file. "" if it has no
 * config.json. */
static void find_folder(const char *origin, struct weft_text *folder)
{
    set_text(folder, origin);
    if (!weft_hub_files_are(weft_text_chars(folder)) ||
        !weft_hub_source_has(weft_text_chars(folder), WEFT_HUB_CONFIG_NAME))
        cut_name(folder);
    if (!weft_hub_source_has(weft_text_chars(folder), WEFT_HUB_CONFIG_NAME)) cut_text(folder, 0);
}

/* Follows the origins of runs to a folder with a config.json. *folder stays "" without one. */
static enum weft_status follow_origins(const char *checkpoint, struct weft_text *folder,
                                       struct weft_error *err)
{
    struct weft_text at;
    enum weft_status status = WEFT_OK;
    weft_text_init(&at);
    set_text(&at, checkpoint);
    for (int i = 0; i < MOST_RUNS && status == WEFT_OK; i++) {
        weft_text_addf(folder, "%s/../../hub", weft_text_chars(&at));
        if (weft_hub_source_has(weft_text_chars(folder), WEFT_HUB_CONFIG_NAME)) break;
        cut_text(folder, 0);
        status = read_origin(weft_text_chars(&at), &at, err);
        if (status != WEFT_OK || at.length == 0) break;
        if (access(weft_text_chars(&at), F_OK) != 0) {
            weft_log(WEFT_LOG_WARNING,
                     "%s: is gone, and the run began with it: its config.json and its tokenizer "
                     "cannot be copied",
                     weft_text_chars(&at));
            break;
        }
        if (weft_hub_source_has(weft_text_chars(&at), WEFT_MANIFEST_NAME)) continue;
        find_folder(weft_text_chars(&at), folder);
        break;
    }
    weft_text_finish(&at);
    if (status == WEFT_OK && !weft_text_ok(folder)) status = weft_fail_memory(err, "a path");
    return status;
}

/* Whether the model of the source's config.json has the function of `model`. Reads its family. */
static enum weft_status compare_source(struct weft_hub_source *source,
                                       const struct weft_model *model, bool *same,
                                       struct weft_error *err)
{
    struct weft_config *config = NULL;
    struct weft_json *document = NULL;
    struct weft_text path, ours, theirs;
    const char *type = "";
    weft_text_init(&path);
    weft_text_init(&ours);
    weft_text_init(&theirs);
    weft_text_addf(&path, "%s/" WEFT_HUB_CONFIG_NAME, weft_text_chars(&source->folder));
    enum weft_status status = weft_hub_run_load(weft_text_chars(&path), NULL, 0, &config, err);
    if (status == WEFT_OK) status = weft_json_read(weft_text_chars(&path), &document, err);
    if (status == WEFT_OK) {
        weft_json_string(weft_json_member(weft_json_root(document), "model_type"), &type);
        source->family = weft_hub_family_find(type);
        weft_function_write_nameless(model, &ours);
        weft_function_write_nameless(config->model, &theirs);
        *same = strcmp(weft_text_chars(&ours), weft_text_chars(&theirs)) == 0;
        if (!weft_text_ok(&ours) || !weft_text_ok(&theirs))
            status = weft_fail_memory(err, "a model");
    }
    weft_json_destroy(document);
    weft_config_destroy(config);
    weft_text_finish(&theirs);
    weft_text_finish(&ours);
    weft_text_finish(&path);
    return status;
}

enum weft_status weft_hub_source_find(const char *checkpoint, const struct weft_config *config,
                                      struct weft_hub_source *out, struct weft_error *err)
{
    bool same = false;
    *out = (struct weft_hub_source){0};
    weft_text_init(&out->folder);
    WEFT_TRY(follow_origins(checkpoint, &out->folder, err));
    if (out->folder.length > 0) {
        WEFT_TRY(compare_source(out, config->model, &same, err));
        if (same) return WEFT_OK;
        weft_log(WEFT_LOG_WARNING,
                 "%s: is of a model that computes something else, so config.json is made from the "
                 "run's model, and its tokenizer is not copied",
                 weft_text_chars(&out->folder));
        cut_text(&out->folder, 0);
    }
    return weft_hub_family_of(config->model, &out->family, err);
}

/* Removes files that a run kept in its folder. */
static void drop_kept(const char *hub)
{
    struct weft_text path;
    for (int i = 0; i <= KEPT_NAMES; i++) {
        weft_text_init(&path);
        weft_text_addf(&path, "%s/%s", hub, i < KEPT_NAMES ? kept_names[i] : WEFT_HUB_TENSORS_NAME);
        if (weft_text_ok(&path)) unlink(weft_text_chars(&path));
        weft_text_finish(&path);
    }
    rmdir(hub);
}

/* Fills RUN/hub from a source, which may be one of another run. */
static enum weft_status keep_folder(const struct weft_hub_source *source,
                                    const struct weft_model *model, const char *hub,
                                    struct weft_error *err)
{
    const char *folder = weft_text_chars(&source->folder);
    struct weft_hub_files *files = NULL;
    WEFT_TRY(weft_file_make_directory(hub, err));
    WEFT_TRY(weft_hub_source_copy(folder, hub, true, err));
    if (weft_hub_source_has(folder, WEFT_HUB_TENSORS_NAME))
        return copy_file(folder, hub, WEFT_HUB_TENSORS_NAME, err);
    WEFT_TRY(weft_hub_files_open(folder, model, &files, err));
    const enum weft_status status = weft_hub_source_keep(files, hub, err);
    weft_hub_files_close(files);
    return status;
}

/* Finds the source of a run's origin. Its folder is "" if there is none of the model's function. */
static enum weft_status find_source(const char *from, const struct weft_model *model,
                                    struct weft_hub_source *source, struct weft_error *err)
{
    bool same = false;
    if (weft_hub_source_has(from, WEFT_MANIFEST_NAME))
        WEFT_TRY(follow_origins(from, &source->folder, err));
    else
        find_folder(from, &source->folder);
    if (source->folder.length == 0) return WEFT_OK;
    WEFT_TRY(compare_source(source, model, &same, err));
    if (!same) cut_text(&source->folder, 0);
    return WEFT_OK;
}

static bool are_same(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* Fills RUN/hub. Parameters that can be read are trained also without the rest of their model. */
static void take_folder(const char *from, const struct weft_model *model, const char *hub,
                        struct weft_hub_source *source)
{
    struct weft_error why = {0};
    const bool found = from != NULL && find_source(from, model, source, &why) == WEFT_OK &&
                       source->folder.length > 0;
    if (found && are_same(weft_text_chars(&source->folder), hub)) return;
    /* An earlier run left it. A folder without this file belongs to the user. */
    if (weft_hub_source_has(hub, WEFT_HUB_TENSORS_NAME)) drop_kept(hub);
    if (!found || keep_folder(source, model, hub, &why) == WEFT_OK) return;
    drop_kept(hub);
    weft_log(WEFT_LOG_WARNING,
             "%s: its config.json and tokenizer are not kept for an export to Hugging Face: %s",
             weft_text_chars(&source->folder), why.text);
}

enum weft_status weft_hub_source_take(const char *from, const struct weft_model *model,
                                      const char *run, struct weft_error *err)
{
    struct weft_hub_source source = {0};
    struct weft_text hub;
    weft_text_init(&source.folder);
    weft_text_init(&hub);
    weft_text_addf(&hub, "%s/hub", run);
    const enum weft_status status = weft_text_ok(&hub) ? WEFT_OK : weft_fail_memory(err, "a path");
    if (status == WEFT_OK) take_folder(from, model, weft_text_chars(&hub), &source);
    weft_text_finish(&hub);
    weft_text_finish(&source.folder);
    return status;
}

void weft_hub_source_finish(struct weft_hub_source *source)
{
    weft_text_finish(&source->folder);
}

/* Names and types */

static bool read_type(const char *name, enum weft_tensor_type *out)
{
    static const enum weft_tensor_type types[] = {WEFT_TENSOR_F32, WEFT_TENSOR_F16,
                                                  WEFT_TENSOR_BF16};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (strcmp(weft_tensor_type_name(types[i]), name) != 0) continue;
        *out = types[i];
        return true;
    }
    return false;
}

/* Reads the types of all entries from an import's tensors.json. */
static enum weft_status read_types(const struct weft_json *document, const char *path,
                                   const struct weft_hub_map *map, enum weft_tensor_type *types,
                                   struct weft_error *err)
{
    for (int32_t e = 0; e < map->n; e++) {
        const char *type = "", *name = map->entries[e].name;
        weft_json_string(weft_json_member(weft_json_root(document), name), &type);
        if (!read_type(type, &types[e]))
            return weft_fail(err, WEFT_E_DATA,
                             "%s: has no type F32, F16 or BF16 for %s: import the model again",
                             path, name);
    }
    return WEFT_OK;
}

/* An import's record of names and types. */
static enum weft_status map_kept(const struct weft_hub_source *source,
                                 const struct weft_model *model, const char *path,
                                 struct weft_hub_map **map, enum weft_tensor_type **types,
                                 struct weft_error *err)
{
    struct weft_json *document = NULL;
    struct weft_text table;
    WEFT_TRY(weft_json_read(path, &document, err));
    weft_text_init(&table);
    weft_text_addf(&table, "%s%s", source->family->prefix, weft_hub_table_name(source->family));
    const bool prefixed =
        weft_json_member(weft_json_root(document), weft_text_chars(&table)) != NULL;
    weft_text_finish(&table);
    enum weft_status status = weft_hub_map_create(model, source->family, prefixed, map, err);
    if (status == WEFT_OK) {
        *types = calloc((size_t)(*map)->n + 1, sizeof **types);
        status = *types != NULL ? read_types(document, path, *map, *types, err)
                                : weft_fail_memory(err, "types of tensors");
    }
    weft_json_destroy(document);
    return status;
}

/* The names and types of the source's own files of tensors. */
static enum weft_status map_files(const struct weft_hub_source *source,
                                  const struct weft_model *model, struct weft_hub_map **map,
                                  enum weft_tensor_type **types, struct weft_error *err)
{
    struct weft_hub_files *files = NULL;
    WEFT_TRY(weft_hub_files_open(weft_text_chars(&source->folder), model, &files, err));
    const struct weft_hub_map *theirs = weft_hub_files_map(files);
    enum weft_status status =
        weft_hub_map_create(model, source->family, theirs->prefix[0] != '\0', map, err);
    if (status == WEFT_OK) {
        *types = calloc((size_t)(*map)->n + 1, sizeof **types);
        if (*types == NULL) status = weft_fail_memory(err, "types of tensors");
    }
    for (int32_t e = 0; status == WEFT_OK && e < (*map)->n; e++) {
        const struct weft_safetensors_tensor *tensor = weft_hub_files_tensor(files, e);
        if (tensor == NULL || !read_type(weft_tensor_type_name(tensor->type), &(*types)[e]))
            status = weft_fail(err, WEFT_E_DATA, "%s: has no %s of F32, F16 or BF16",
                               weft_text_chars(&source->folder), (*map)->entries[e].name);
    }
    weft_hub_files_close(files);
    return status;
}

enum weft_status weft_hub_source_map(const struct weft_hub_source *source,
                                     const struct weft_model *model, struct weft_hub_map **map,
                                     enum weft_tensor_type **types, struct weft_error *err)
{
    const char *folder = weft_text_chars(&source->folder);
    struct weft_hub_map *made = NULL;
    enum weft_tensor_type *of = NULL;
    struct weft_text kept;
    enum weft_status status;
    weft_text_init(&kept);
    weft_text_addf(&kept, "%s/" WEFT_HUB_TENSORS_NAME, folder);
    if (source->folder.length == 0) {
        status = weft_hub_map_create(model, source->family, true, &made, err);
        if (status == WEFT_OK) of = calloc((size_t)made->n + 1, sizeof *of);
        if (status == WEFT_OK && of == NULL) status = weft_fail_memory(err, "types of tensors");
        for (int32_t e = 0; status == WEFT_OK && e < made->n; e++)
            of[e] = WEFT_TENSOR_F32;
    } else if (access(weft_text_chars(&kept), F_OK) == 0) {
        status = map_kept(source, model, weft_text_chars(&kept), &made, &of, err);
    } else {
        status = map_files(source, model, &made, &of, err);
    }
    weft_text_finish(&kept);
    if (status == WEFT_OK) {
        *map = made;
        *types = of;
        return WEFT_OK;
    }
    weft_hub_map_destroy(made);
    free(of);
    return status;
}
