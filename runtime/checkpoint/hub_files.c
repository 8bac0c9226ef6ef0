/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* S_ISDIR */
#include "runtime/checkpoint/hub_files.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json/json.h"
#include "base/text.h"
#include "runtime/checkpoint/turned.h"

enum { MOST_SHARDS = 1000 };

static const char single_name[] = "model.safetensors";
static const char index_name[] = "model.safetensors.index.json";

struct weft_hub_files {
    char *path;
    int32_t n;
    struct weft_safetensors **files; /* [n] */
    struct weft_hub_map *map;
    struct weft_hub_tensor *tensors; /* [map->n]: the map's entries in the files */
    /* Window of the transposed entry that was read last; -1: none. */
    int32_t turned_entry;
    struct weft_turned turned;
};

static struct weft_hub_tensor find_tensor(const struct weft_hub_files *files, const char *name)
{
    struct weft_hub_tensor out = {0};
    for (int32_t i = 0; i < files->n && out.tensor == NULL; i++) {
        out.file = files->files[i];
        out.tensor = weft_safetensors_find(out.file, name);
    }
    return out;
}

/* By the name, otherwise by the older one. */
static struct weft_hub_tensor find_entry(struct weft_hub_files *files, const char *name)
{
    const struct weft_hub_tensor found = find_tensor(files, name);
    const char *old = found.tensor == NULL ? weft_hub_old_name(&files->map->pool, name) : NULL;
    return old != NULL ? find_tensor(files, old) : found;
}

/* Files */

static void join_name(const char *folder, const char *name, struct weft_text *out)
{
    weft_text_init(out);
    weft_text_addf(out, "%s/%s", folder, name);
}

static bool has_file(const char *folder, const char *name)
{
    struct weft_text path;
    join_name(folder, name, &path);
    const bool has = access(weft_text_chars(&path), F_OK) == 0;
    weft_text_finish(&path);
    return has;
}

static bool is_folder(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

static bool is_index(const char *path)
{
    const size_t length = strlen(path), end = strlen(".json");
    return length > end && strcmp(path + length - end, ".json") == 0;
}

bool weft_hub_files_are(const char *path)
{
    if (!is_folder(path)) return is_index(path);
    return has_file(path, single_name) || has_file(path, index_name);
}

/* The name of the family's table of tokens in a file: with the prefix, without it, or NULL. */
static const char *find_table(const struct weft_safetensors *file,
                              const struct weft_hub_family *family)
{
    struct weft_text name;
    weft_text_init(&name);
    weft_text_addf(&name, "%s%s", family->prefix, weft_hub_table_name(family));
    const struct weft_safetensors_tensor *table =
        weft_safetensors_find(file, weft_text_chars(&name));
    weft_text_finish(&name);
    if (table == NULL) table = weft_safetensors_find(file, weft_hub_table_name(family));
    return table != NULL ? table->name : NULL;
}

bool weft_hub_files_have_names(const struct weft_safetensors *file)
{
    const struct weft_hub_family *family;
    for (int32_t i = 0; (family = weft_hub_family_at(i)) != NULL; i++)
        if (family->rows != NULL && find_table(file, family) != NULL) return true;
    return false;
}

static enum weft_status add_file(struct weft_hub_files *files, const char *path,
                                 struct weft_error *err)
{
    struct weft_safetensors **grown =
        realloc(files->files, (size_t)(files->n + 1) * sizeof(*files->files));
    if (grown == NULL) return weft_fail_memory(err, path);
    files->files = grown;
    WEFT_TRY(weft_safetensors_open(path, &files->files[files->n], err));
    files->n++;
    return WEFT_OK;
}

/* The opened shard of that name, opened if need be. */
static enum weft_status open_shard(struct weft_hub_files *files, const char *folder,
                                   const char *shard, int32_t *out, struct weft_error *err)
{
    if (shard[0] == '\0' || shard[0] == '.' || strchr(shard, '/') != NULL)
        return weft_fail(err, WEFT_E_DATA, "%s: \"%.80s\" is no name of a shard", files->path,
                         shard);
    struct weft_text path;
    join_name(folder, shard, &path);
    enum weft_status status = weft_text_ok(&path) ? WEFT_OK : weft_fail_memory(err, files->path);
    for (*out = 0; *out < files->n; ++*out)
        if (strcmp(files->files[*out]->path, weft_text_chars(&path)) == 0) break;
    if (status == WEFT_OK && *out == MOST_SHARDS)
        status =
            weft_fail(err, WEFT_E_DATA, "%s: has more than %d shards", files->path, MOST_SHARDS);
    if (status == WEFT_OK && *out == files->n)
        status = add_file(files, weft_text_chars(&path), err);
    weft_text_finish(&path);
    return status;
}

/* Opens all shards, and checks that the index and the shards have the same tensors. */
static enum weft_status read_map(struct weft_hub_files *files, const char *folder,
                                 const struct weft_json_value *map, struct weft_error *err)
{
    int64_t listed = 0, there = 0;
    const char *shard;
    if (weft_json_kind(map) != WEFT_JSON_OBJECT || weft_json_first(map) == NULL)
        return weft_fail(
            err, WEFT_E_DATA,
            "%s: has no \"weight_map\" of tensors: it is no index of a checkpoint. Give "
            "--from the folder of a model, or a safetensors file",
            files->path);
    for (const struct weft_json_value *at = weft_json_first(map); at; at = weft_json_next(at)) {
        int32_t f = 0;
        if (!weft_json_string(at, &shard))
            return weft_fail(err, WEFT_E_DATA, "%s: $.weight_map: %.80s: must be a file's name",
                             files->path, weft_json_name(at));
        WEFT_TRY(open_shard(files, folder, shard, &f, err));
        if (weft_safetensors_find(files->files[f], weft_json_name(at)) == NULL)
            return weft_fail(err, WEFT_E_DATA, "%s: lists tensor %.80s in %s, which lacks it",
                             files->path, weft_json_name(at), shard);
        listed++;
    }
    for (int32_t f = 0; f < files->n; f++)
        there += files->files[f]->n_tensors;
    if (listed == there) return WEFT_OK;
    return weft_fail(err, WEFT_E_DATA, "%s: lists %lld tensors, and its %d files have %lld",
                     files->path, (long long)listed, files->n, (long long)there);
}

static enum weft_status open_index(struct weft_hub_files *files, const char *path,
                                   struct weft_error *err)
{
    struct weft_json *document = NULL;
    const char *slash = strrchr(path, '/');
    struct weft_text folder;
    WEFT_TRY(weft_json_read(path, &document, err));
    weft_text_init(&folder);
    if (slash != NULL)
        weft_text_append(&folder, path, (size_t)(slash - path));
    else
        weft_text_add(&folder, ".");
    enum weft_status status =
        read_map(files, weft_text_chars(&folder),
                 weft_json_member(weft_json_root(document), "weight_map"), err);
    weft_text_finish(&folder);
    weft_json_destroy(document);
    return status;
}

/* The table of tokens in any of the files, which shows whether names have the prefix. */
static const char *find_any_table(const struct weft_hub_files *files,
                                  const struct weft_hub_family *family)
{
    const char *name = NULL;
    for (int32_t i = 0; i < files->n && name == NULL; i++)
        name = find_table(files->files[i], family);
    return name;
}

static enum weft_status refuse_names(const struct weft_hub_files *files,
                                     const struct weft_hub_family *wanted, struct weft_error *err)
{
    const struct weft_hub_family *family;
    const char *name = NULL;
    for (int32_t i = 0; name == NULL && (family = weft_hub_family_at(i)) != NULL; i++)
        if (family->rows != NULL) name = find_any_table(files, family);
    if (name != NULL)
        return weft_fail(err, WEFT_E_DATA,
                         "%s: has the names of another family of Hugging Face (%s), and the model "
                         "is of %s's, with %s%s",
                         files->path, name, wanted->type, wanted->prefix,
                         weft_hub_table_name(wanted));
    return weft_fail(err, WEFT_E_DATA,
                     "%s: has no names of Hugging Face that Weft knows; it "
                     "reads " WEFT_HUB_TRAINED_TYPES,
                     files->path);
}

/* Finds the map's entries in the files. */
static enum weft_status map_files(struct weft_hub_files *files, const struct weft_model *model,
                                  struct weft_error *err)
{
    const struct weft_hub_family *family = NULL;
    WEFT_TRY(weft_hub_family_of(model, &family, err));
    const char *table = find_any_table(files, family);
    if (table == NULL) return refuse_names(files, family, err);
    const bool prefixed = strcmp(table, weft_hub_table_name(family)) != 0;
    WEFT_TRY(weft_hub_map_create(model, family, prefixed, &files->map, err));
    files->tensors = calloc((size_t)files->map->n + 1, sizeof *files->tensors);
    if (files->tensors == NULL) return weft_fail_memory(err, files->path);
    for (int32_t e = 0; e < files->map->n; e++)
        files->tensors[e] = find_entry(files, files->map->entries[e].name);
    return WEFT_OK;
}

static enum weft_status open_all(struct weft_hub_files *files, struct weft_error *err)
{
    struct weft_text path;
    if (!is_folder(files->path))
        return is_index(files->path) ? open_index(files, files->path, err)
                                     : add_file(files, files->path, err);
    const bool sharded = !has_file(files->path, single_name); /* both: as transformers does */
    join_name(files->path, sharded ? index_name : single_name, &path);
    enum weft_status status = weft_text_ok(&path) ? WEFT_OK : weft_fail_memory(err, files->path);
    if (status == WEFT_OK)
        status = sharded ? open_index(files, weft_text_chars(&path), err)
                         : add_file(files, weft_text_chars(&path), err);
    weft_text_finish(&path);
    return status;
}

enum weft_status weft_hub_files_open(const char *path, const struct weft_model *model,
                                     struct weft_hub_files **out, struct weft_error *err)
{
    struct weft_hub_files *files = calloc(1, sizeof *files);
    if (files == NULL) return weft_fail_memory(err, path);
    files->turned_entry = -1;
    files->path = strdup(path);
    enum weft_status status = files->path != NULL ? WEFT_OK : weft_fail_memory(err, path);
    if (status == WEFT_OK) status = open_all(files, err);
    if (status == WEFT_OK) status = map_files(files, model, err);
    if (status == WEFT_OK)
        *out = files;
    else
        weft_hub_files_close(files);
    return status;
}

void weft_hub_files_close(struct weft_hub_files *files)
{
    if (files == NULL) return;
    for (int32_t i = 0; i < files->n; i++)
        weft_safetensors_destroy(files->files[i]);
    weft_turned_finish(&files->turned);
    weft_hub_map_destroy(files->map);
    free(files->tensors);
    free(files->files);
    free(files->path);
    free(files);
}

const struct weft_hub_map *weft_hub_files_map(const struct weft_hub_files *files)
{
    return files->map;
}

const struct weft_safetensors_tensor *weft_hub_files_tensor(const struct weft_hub_files *files,
                                                            int32_t entry)
{
    return files->tensors[entry].tensor;
}

/* Tensors that the model does not have */

/* A tied head that was saved too must be the token table. */
static enum weft_status compare_head(const struct weft_hub_files *files,
                                     const struct weft_hub_tensor *head, struct weft_error *err)
{
    enum { MOST_BYTES = 1 << 16 };
    const struct weft_hub_tensor *table = &files->tensors[0];
    bool same = table->tensor != NULL && head->tensor->type == table->tensor->type &&
                head->tensor->bytes == table->tensor->bytes;
    char *buffers = malloc(2 * MOST_BYTES);
    if (buffers == NULL) return weft_fail_memory(err, files->path);
    enum weft_status status = WEFT_OK;
    for (int64_t at = 0; status == WEFT_OK && same && at < head->tensor->bytes; at += MOST_BYTES) {
        const int64_t left = head->tensor->bytes - at, n = left < MOST_BYTES ? left : MOST_BYTES;
        status = weft_safetensors_read_bytes(head->file, head->tensor->begin + at, n, buffers, err);
        if (status == WEFT_OK)
            status = weft_safetensors_read_bytes(table->file, table->tensor->begin + at, n,
                                                 buffers + MOST_BYTES, err);
        same = status != WEFT_OK || memcmp(buffers, buffers + MOST_BYTES, (size_t)n) == 0;
    }
    free(buffers);
    if (status == WEFT_OK && !same)
        status =
            weft_fail(err, WEFT_E_DATA,
                      "%s: %s is not the token table, and the model's head is tied to it; leave "
                      "\"tie\" out of the model's head",
                      files->path, weft_hub_head_name(files->map->family));
    return status;
}

/* Visits the tensors of a file that are not used. used [file->n_tensors]. */
static enum weft_status visit_rest(const struct weft_hub_files *files,
                                   const struct weft_safetensors *file, const bool *used,
                                   weft_hub_files_visit *visit, void *context,
                                   struct weft_error *err)
{
    for (int32_t i = 0; i < file->n_tensors; i++) {
        const struct weft_hub_tensor rest = {file, &file->tensors[i]};
        const char *name = rest.tensor->name;
        if (used[i] || weft_hub_is_unread(files->map, name)) continue;
        if (strcmp(name, weft_hub_head_name(files->map->family)) == 0)
            WEFT_TRY(compare_head(files, &rest, err));
        else
            visit(context, name);
    }
    return WEFT_OK;
}

enum weft_status weft_hub_files_rest(const struct weft_hub_files *files,
                                     weft_hub_files_visit *visit, void *context,
                                     struct weft_error *err)
{
    enum weft_status status = WEFT_OK;
    for (int32_t f = 0; status == WEFT_OK && f < files->n; f++) {
        const struct weft_safetensors *file = files->files[f];
        bool *used = calloc((size_t)file->n_tensors + 1, sizeof *used);
        if (used == NULL) return weft_fail_memory(err, files->path);
        for (int32_t e = 0; e < files->map->n; e++)
            if (files->tensors[e].tensor != NULL && files->tensors[e].file == file)
                used[files->tensors[e].tensor - file->tensors] = true;
        status = visit_rest(files, file, used, visit, context, err);
        free(used);
    }
    return status;
}

void weft_hub_files_add_left_out(const struct weft_hub_files *files, struct weft_text *out)
{
    for (int32_t f = 0; f < files->n; f++) {
        const struct weft_safetensors *file = files->files[f];
        for (int32_t i = 0; i < file->n_tensors; i++) {
            if (!weft_hub_is_left_out(files->map, file->tensors[i].name)) continue;
            weft_text_addf(out, "%s%s", out->length > 0 ? ", " : "", file->tensors[i].name);
        }
    }
}

/* Reading */

static enum weft_status read_source(const void *context, int64_t first, int64_t count, float *out,
                                    struct weft_error *err)
{
    const struct weft_hub_tensor *from = context;
    return weft_safetensors_read_f32(from->file, from->tensor, first, count, out, err);
}

/* Elements of an entry in Weft's order. */
static enum weft_status read_entry(struct weft_hub_files *files, int32_t e, int64_t first,
                                   int64_t count, float *out, struct weft_error *err)
{
    const struct weft_hub_entry *entry = &files->map->entries[e];
    if (!entry->transposed) return read_source(&files->tensors[e], first, count, out, err);
    if (files->turned_entry != e) {
        weft_turned_finish(&files->turned);
        files->turned_entry = e;
        files->turned = (struct weft_turned){.rows = entry->dims[1],
                                             .columns = entry->dims[0],
                                             .source = read_source,
                                             .context = &files->tensors[e]};
    }
    return weft_turned_read(&files->turned, first, count, out, err);
}

enum weft_status weft_hub_files_read(struct weft_hub_files *files, int32_t tensor, int64_t first,
                                     int64_t count, float *out, struct weft_error *err)
{
    const int32_t *begins = files->map->begins;
    for (int32_t e = begins[tensor]; e < begins[tensor + 1] && count > 0; e++) {
        const struct weft_hub_entry *entry = &files->map->entries[e];
        const int64_t from = first - entry->first, left = entry->elements - from;
        const int64_t n = count < left ? count : left;
        if (n <= 0) continue;
        WEFT_TRY(read_entry(files, e, from, n, out, err));
        first += n;
        count -= n;
        out += n;
    }
    return WEFT_OK;
}
