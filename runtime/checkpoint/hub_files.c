#define _GNU_SOURCE /* S_ISDIR */
#include "runtime/checkpoint/hub_files.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json/json.h"
#include "base/text.h"

enum { MOST_SHARDS = 1000, NAME_BYTES = 256, BLOCK_ELEMENTS = 1024 };

static const char single_name[] = "model.safetensors";
static const char index_name[] = "model.safetensors.index.json";

struct weft_hub_files {
    char *path;
    int32_t n;
    struct weft_safetensors **files; /* [n] */
    const char *prefix;              /* of names, except of the head's */
};

/* "{i}" stands for a number. */
struct hub_name {
    const char *own, *hub;
    bool transposed; /* GPT-2's products are written as input x weight */
};
static const struct hub_name gpt2_names[] = {
    {"wte.tokens", "wte.weight", false},
    {"wte.positions", "wpe.weight", false},
    {"h.{i}.ln1.weight", "h.{i}.ln_1.weight", false},
    {"h.{i}.ln1.bias", "h.{i}.ln_1.bias", false},
    {"h.{i}.attn.qkv.weight", "h.{i}.attn.c_attn.weight", true},
    {"h.{i}.attn.qkv.bias", "h.{i}.attn.c_attn.bias", false},
    {"h.{i}.attn.proj.weight", "h.{i}.attn.c_proj.weight", true},
    {"h.{i}.attn.proj.bias", "h.{i}.attn.c_proj.bias", false},
    {"h.{i}.ln2.weight", "h.{i}.ln_2.weight", false},
    {"h.{i}.ln2.bias", "h.{i}.ln_2.bias", false},
    {"h.{i}.mlp.fc.weight", "h.{i}.mlp.c_fc.weight", true},
    {"h.{i}.mlp.fc.bias", "h.{i}.mlp.c_fc.bias", false},
    {"h.{i}.mlp.proj.weight", "h.{i}.mlp.c_proj.weight", true},
    {"h.{i}.mlp.proj.bias", "h.{i}.mlp.c_proj.bias", false},
    {"ln_f.weight", "ln_f.weight", false},
    {"ln_f.bias", "ln_f.bias", false},
};
/* Buffers that are no parameters. */
static const char *const gpt2_masks[] = {"h.{i}.attn.bias", "h.{i}.attn.masked_bias"};
static const char head_hub_name[] = "lm_head.weight", head_own_name[] = "head.weight";

/* A tensor whose name tells the family. */
static const struct {
    const char *name, *prefix; /* prefix NULL: not read */
} signs[] = {{"wte.weight", ""},
             {"transformer.wte.weight", "transformer."},
             {"model.embed_tokens.weight", NULL},
             {"embed_tokens.weight", NULL}};

/* Whether the name fits the pattern. *number gets the digits that {i} stands for. */
static bool fits_pattern(const char *name, const char *pattern, struct weft_text *number)
{
    while (*pattern != '\0') {
        if (strncmp(pattern, "{i}", 3) == 0) {
            const char *begin = name;
            while (isdigit((unsigned char)*name))
                name++;
            if (name == begin) return false;
            weft_text_append(number, begin, (size_t)(name - begin));
            pattern += 3;
        } else if (*pattern++ != *name++) {
            return false;
        }
    }
    return *name == '\0';
}

/* The row of Weft's name. *out gets the name in the files; NULL: none. */
static const struct hub_name *find_name(const struct weft_hub_files *files, const char *own,
                                        char out[NAME_BYTES])
{
    const struct hub_name *found = NULL;
    for (size_t i = 0; found == NULL && i < sizeof gpt2_names / sizeof *gpt2_names; i++) {
        struct weft_text number;
        const char *hub = gpt2_names[i].hub, *at = strstr(hub, "{i}");
        weft_text_init(&number);
        if (fits_pattern(own, gpt2_names[i].own, &number)) {
            found = &gpt2_names[i];
            snprintf(out, NAME_BYTES, "%s%.*s%s%s", files->prefix,
                     (int)(at != NULL ? (size_t)(at - hub) : strlen(hub)), hub,
                     weft_text_chars(&number), at != NULL ? at + 3 : "");
        }
        weft_text_finish(&number);
    }
    return found;
}

static struct weft_hub_tensor find_tensor(const struct weft_hub_files *files, const char *name)
{
    struct weft_hub_tensor out = {0};
    for (int32_t i = 0; i < files->n && out.tensor == NULL; i++) {
        out.file = files->files[i];
        out.tensor = weft_safetensors_find(out.file, name);
    }
    return out;
}

struct weft_hub_tensor weft_hub_files_find(const struct weft_hub_files *files, const char *name)
{
    char hub[NAME_BYTES];
    if (strcmp(name, head_own_name) == 0) return find_tensor(files, head_hub_name);
    const struct hub_name *row = find_name(files, name, hub);
    struct weft_hub_tensor out = {0};
    if (row == NULL) return out;
    out = find_tensor(files, hub);
    out.transposed = row->transposed;
    return out;
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

bool weft_hub_files_have_names(const struct weft_safetensors *file)
{
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (weft_safetensors_find(file, signs[i].name) != NULL) return true;
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

static enum weft_status find_prefix(struct weft_hub_files *files, struct weft_error *err)
{
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
        if (find_tensor(files, signs[i].name).tensor == NULL) continue;
        files->prefix = signs[i].prefix;
        if (files->prefix != NULL) return WEFT_OK;
        return weft_fail(err, WEFT_E_DATA,
                         "%s: has the names of another family of Hugging Face (%s); Weft imports "
                         "gpt2 alone",
                         files->path, signs[i].name);
    }
    return weft_fail(err, WEFT_E_DATA,
                     "%s: has no names of Hugging Face that Weft knows; it imports gpt2",
                     files->path);
}

static enum weft_status open_all(struct weft_hub_files *files, struct weft_error *err)
{
    struct weft_text path;
    if (!is_folder(files->path)) {
        WEFT_TRY(is_index(files->path) ? open_index(files, files->path, err)
                                       : add_file(files, files->path, err));
        return find_prefix(files, err);
    }
    const bool sharded = has_file(files->path, index_name);
    join_name(files->path, sharded ? index_name : single_name, &path);
    enum weft_status status = weft_text_ok(&path) ? WEFT_OK : weft_fail_memory(err, files->path);
    if (status == WEFT_OK)
        status = sharded ? open_index(files, weft_text_chars(&path), err)
                         : add_file(files, weft_text_chars(&path), err);
    weft_text_finish(&path);
    return status == WEFT_OK ? find_prefix(files, err) : status;
}

enum weft_status weft_hub_files_open(const char *path, struct weft_hub_files **out,
                                     struct weft_error *err)
{
    struct weft_hub_files *files = calloc(1, sizeof *files);
    if (files != NULL) files->path = strdup(path);
    enum weft_status status =
        files != NULL && files->path != NULL ? WEFT_OK : weft_fail_memory(err, path);
    if (status == WEFT_OK) status = open_all(files, err);
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
    free(files->files);
    free(files->path);
    free(files);
}

/* Tensors that the model does not have */

static bool is_mask(const struct weft_hub_files *files, const char *name)
{
    const size_t length = strlen(files->prefix);
    bool is = false;
    if (strncmp(name, files->prefix, length) != 0) return false;
    for (size_t i = 0; i < sizeof gpt2_masks / sizeof *gpt2_masks; i++) {
        struct weft_text number;
        weft_text_init(&number);
        is = is || fits_pattern(name + length, gpt2_masks[i], &number);
        weft_text_finish(&number);
    }
    return is;
}

/* A tied head that was saved too must be the token table. */
static enum weft_status compare_head(const struct weft_hub_files *files, struct weft_error *err)
{
    enum { MOST_BYTES = 1 << 16 };
    static const char *const table_name = "wte.tokens";
    const struct weft_hub_tensor head = find_tensor(files, head_hub_name);
    const struct weft_hub_tensor table = weft_hub_files_find(files, table_name);
    bool same = table.tensor != NULL && head.tensor->type == table.tensor->type &&
                head.tensor->bytes == table.tensor->bytes;
    char *buffers = malloc(2 * MOST_BYTES);
    if (buffers == NULL) return weft_fail_memory(err, files->path);
    enum weft_status status = WEFT_OK;
    for (int64_t at = 0; status == WEFT_OK && same && at < head.tensor->bytes; at += MOST_BYTES) {
        const int64_t left = head.tensor->bytes - at, n = left < MOST_BYTES ? left : MOST_BYTES;
        status = weft_safetensors_read_bytes(head.file, head.tensor->begin + at, n, buffers, err);
        if (status == WEFT_OK)
            status = weft_safetensors_read_bytes(table.file, table.tensor->begin + at, n,
                                                 buffers + MOST_BYTES, err);
        same = status != WEFT_OK || memcmp(buffers, buffers + MOST_BYTES, (size_t)n) == 0;
    }
    free(buffers);
    if (status == WEFT_OK && !same)
        status =
            weft_fail(err, WEFT_E_DATA,
                      "%s: %s is not the token table, and the model's head is tied to it; leave "
                      "\"tie\" out of the model's head",
                      files->path, head_hub_name);
    return status;
}

/* Visits the tensors of a file that are not used. used [file->n_tensors]. */
static enum weft_status visit_rest(const struct weft_hub_files *files,
                                   const struct weft_safetensors *file, const bool *used,
                                   weft_hub_files_visit *visit, void *context,
                                   struct weft_error *err)
{
    for (int32_t i = 0; i < file->n_tensors; i++) {
        const char *name = file->tensors[i].name;
        if (used[i] || is_mask(files, name)) continue;
        if (strcmp(name, head_hub_name) == 0)
            WEFT_TRY(compare_head(files, err));
        else
            visit(context, name);
    }
    return WEFT_OK;
}

enum weft_status weft_hub_files_rest(const struct weft_hub_files *files, const char *const *own,
                                     int32_t n, weft_hub_files_visit *visit, void *context,
                                     struct weft_error *err)
{
    enum weft_status status = WEFT_OK;
    for (int32_t f = 0; status == WEFT_OK && f < files->n; f++) {
        const struct weft_safetensors *file = files->files[f];
        bool *used = calloc((size_t)file->n_tensors + 1, sizeof *used);
        if (used == NULL) return weft_fail_memory(err, files->path);
        for (int32_t t = 0; t < n; t++) {
            const struct weft_hub_tensor found = weft_hub_files_find(files, own[t]);
            if (found.tensor != NULL && found.file == file)
                used[found.tensor - file->tensors] = true;
        }
        status = visit_rest(files, file, used, visit, context, err);
        free(used);
    }
    return status;
}

/* Element (r, c) of Weft's tensor is element (c, r) of the file's. Reads blocks of rows, a column
 * at a time. */
static enum weft_status read_transposed(const struct weft_hub_tensor *from, int64_t first,
                                        int64_t count, float *out, struct weft_error *err)
{
    float block[BLOCK_ELEMENTS];
    const int64_t columns = from->tensor->dims[0], rows = from->tensor->dims[1];
    const int64_t end_row = (first + count + columns - 1) / columns;
    for (int64_t row = first / columns; row < end_row; row += BLOCK_ELEMENTS) {
        const int64_t left = end_row - row, n = left < BLOCK_ELEMENTS ? left : BLOCK_ELEMENTS;
        for (int64_t column = 0; column < columns; column++) {
            WEFT_TRY(weft_safetensors_read_f32(from->file, from->tensor, column * rows + row, n,
                                               block, err));
            for (int64_t i = 0; i < n; i++) {
                const int64_t element = (row + i) * columns + column;
                if (element >= first && element < first + count) out[element - first] = block[i];
            }
        }
    }
    return WEFT_OK;
}

enum weft_status weft_hub_tensor_read(const struct weft_hub_tensor *tensor, int64_t first,
                                      int64_t count, float *out, struct weft_error *err)
{
    if (tensor->transposed) return read_transposed(tensor, first, count, out, err);
    return weft_safetensors_read_f32(tensor->file, tensor->tensor, first, count, out, err);
}
