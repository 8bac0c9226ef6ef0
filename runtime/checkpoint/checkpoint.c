/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/checkpoint/checkpoint.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/file.h"
#include "base/log.h"
#include "runtime/checkpoint/directory.h"
#include "runtime/checkpoint/function.h"

enum { MOST_DIFFERENCES = 5, READ_BYTES = 262144 };
static const int64_t most_manifest_bytes = INT64_C(64) << 20;

enum weft_status weft_checkpoint_latest(const char *directory, char **path, struct weft_error *err)
{
    int64_t *steps = NULL;
    int32_t n = 0;
    WEFT_TRY(weft_checkpoint_scan(directory, &steps, &n, err));
    char *found = NULL;
    enum weft_status status = WEFT_OK;
    if (n > 0) {
        struct weft_text text;
        weft_text_init(&text);
        weft_checkpoint_path(directory, steps[n - 1], &text);
        found = weft_text_ok(&text) ? strdup(weft_text_chars(&text)) : NULL;
        if (found == NULL) status = weft_fail_memory(err, "a path");
        weft_text_finish(&text);
    }
    free(steps);
    if (status == WEFT_OK) *path = found;
    return status;
}

/* A missing file of a checkpoint is bad data, not a wrong path of the user. */
static enum weft_status of_checkpoint(enum weft_status status, struct weft_error *err)
{
    if (status != WEFT_E_NO_INPUT) return status;
    if (err != NULL) {
        err->status = WEFT_E_DATA;
        err->exit_code = weft_status_exit_code(WEFT_E_DATA);
    }
    return WEFT_E_DATA;
}

/* Refuses other files: opening a pipe would wait for a writer. */
static enum weft_status check_plain(const char *path, struct weft_error *err)
{
    struct stat about;
    bool known = stat(path, &about) == 0;
    if (!known && errno == ELOOP)
        return weft_fail(err, WEFT_E_DATA, "%s: cannot be read: %s", path, strerror(ELOOP));
    if (!known || S_ISREG(about.st_mode)) return WEFT_OK;
    return weft_fail(err, WEFT_E_DATA, "%s: is not a plain file", path);
}

/* Path of a file by name, or by number if the checkpoint is in memory. */
static void name_file(const struct weft_checkpoint *checkpoint, const char *name, int file,
                      struct weft_text *out)
{
    int fd;
    weft_text_init(out);
    if (weft_checkpoint_memory_file(checkpoint->path, file, &fd))
        weft_text_addf(out, "/proc/self/fd/%d", fd);
    else
        weft_text_addf(out, "%s/%s", checkpoint->path, name);
}

static enum weft_status read_manifest(struct weft_checkpoint *checkpoint, struct weft_error *err)
{
    struct weft_text path;
    char *bytes = NULL;
    size_t length = 0;
    int64_t step = 0;
    name_file(checkpoint, WEFT_MANIFEST_NAME, WEFT_CHECKPOINT_FILES, &path);
    enum weft_status status = weft_text_ok(&path) ? check_plain(weft_text_chars(&path), err)
                                                  : weft_fail_memory(err, "a path");
    if (status == WEFT_OK)
        status = weft_file_read(weft_text_chars(&path), most_manifest_bytes, &bytes, &length, err);
    status = of_checkpoint(status, err);
    if (status == WEFT_OK)
        status =
            weft_manifest_parse(bytes, length, weft_text_chars(&path), &checkpoint->manifest, err);
    if (status == WEFT_OK && weft_checkpoint_step_of(checkpoint->path, &step) &&
        step != checkpoint->manifest->progress.step)
        status = weft_fail(err, WEFT_E_DATA, "%s: is of step %" PRId64 ", not of its directory's",
                           weft_text_chars(&path), checkpoint->manifest->progress.step);
    free(bytes);
    weft_text_finish(&path);
    return status;
}

static enum weft_status open_file(struct weft_checkpoint *checkpoint, int32_t f,
                                  struct weft_error *err)
{
    const struct weft_manifest_file *file = &checkpoint->manifest->files[f];
    struct weft_text path;
    name_file(checkpoint, file->name, f, &path);
    enum weft_status status =
        weft_text_ok(&path)
            ? weft_safetensors_open(weft_text_chars(&path), &checkpoint->files[f], err)
            : weft_fail_memory(err, "a path");
    status = of_checkpoint(status, err);
    if (status == WEFT_OK && checkpoint->files[f]->file_bytes != file->bytes)
        status =
            weft_fail(err, WEFT_E_DATA, "%s: has %" PRId64 " bytes, and the manifest says %" PRId64,
                      weft_text_chars(&path), checkpoint->files[f]->file_bytes, file->bytes);
    weft_text_finish(&path);
    return status;
}

/* Name of the tensor at a byte, for messages. */
static const char *tensor_at(const struct weft_safetensors *file, int64_t byte)
{
    int32_t low = 0, high = file->n_tensors;
    if (byte < file->data_begin) return "the header";
    while (high - low > 1) {
        int32_t middle = low + (high - low) / 2;
        if (file->tensors[middle].begin <= byte) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return file->n_tensors > 0 ? file->tensors[low].name : "no tensor";
}

static enum weft_status verify_chunk(const struct weft_checkpoint *checkpoint, int32_t f,
                                     int64_t chunk, char *buffer, struct weft_error *err)
{
    const struct weft_manifest_file *known = &checkpoint->manifest->files[f];
    const struct weft_safetensors *file = checkpoint->files[f];
    int64_t begin = chunk * known->chunk_bytes;
    int64_t bytes = weft_checkpoint_chunk_length(known->bytes, known->chunk_bytes, chunk);
    uint32_t crc = 0;
    for (int64_t done = 0; done < bytes;) {
        int64_t n = bytes - done < READ_BYTES ? bytes - done : READ_BYTES;
        WEFT_TRY(weft_safetensors_read_bytes(file, begin + done, n, buffer, err));
        crc = weft_crc32c(crc, buffer, (size_t)n);
        done += n;
    }
    if (crc == known->crcs[chunk]) return WEFT_OK;
    return weft_fail(err, WEFT_E_DATA,
                     "%s: is damaged in chunk %" PRId64 " (bytes %" PRId64 " to %" PRId64
                     ", from %s to %s): its CRC is %08" PRIx32 ", the manifest's %08" PRIx32,
                     file->path, chunk, begin, begin + bytes - 1, tensor_at(file, begin),
                     tensor_at(file, begin + bytes - 1), crc, known->crcs[chunk]);
}

/* Names and shapes are compared with the model before the data are verified, so they must be
 * right. */
static enum weft_status verify_headers(const struct weft_checkpoint *checkpoint,
                                       struct weft_error *err)
{
    enum weft_status status = WEFT_OK;
    char *buffer = malloc(READ_BYTES);
    if (buffer == NULL) return weft_fail_memory(err, "a chunk of a checkpoint");
    for (int32_t f = 0; f < WEFT_CHECKPOINT_FILES && status == WEFT_OK; f++) {
        int64_t n = weft_checkpoint_chunks(checkpoint->files[f]->data_begin,
                                           checkpoint->manifest->files[f].chunk_bytes);
        for (int64_t c = 0; c < n && status == WEFT_OK; c++)
            status = verify_chunk(checkpoint, f, c, buffer, err);
    }
    free(buffer);
    return status;
}

/* A dangling link is a checkpoint with missing data. */
static enum weft_status fail_open(const char *path, int error, struct weft_error *err)
{
    struct stat about;
    enum weft_status status = lstat(path, &about) == 0 ? WEFT_E_DATA : WEFT_E_NO_INPUT;
    if (error == EACCES) status = WEFT_E_PERMISSION;
    return weft_fail(err, status, "%s: no such checkpoint: %s", path, strerror(error));
}

static enum weft_status open_all(struct weft_checkpoint *checkpoint, struct weft_error *err)
{
    struct stat about;
    int fd;
    if (!weft_checkpoint_memory_file(checkpoint->path, 0, &fd) &&
        stat(checkpoint->path, &about) != 0)
        return fail_open(checkpoint->path, errno, err);
    WEFT_TRY(read_manifest(checkpoint, err));
    for (int32_t f = 0; f < WEFT_CHECKPOINT_FILES; f++)
        WEFT_TRY(open_file(checkpoint, f, err));
    return verify_headers(checkpoint, err);
}

/* Adds the remedy if the checkpoint is damaged. */
static enum weft_status fail_with_hint(enum weft_status status, const struct weft_error *why,
                                       struct weft_error *err)
{
    return weft_fail(err, status, "%s%s", why->text,
                     status == WEFT_E_DATA
                         ? ". To go on from an older checkpoint, move this directory away"
                         : "");
}

enum weft_status weft_checkpoint_open(const char *path, struct weft_checkpoint **out,
                                      struct weft_error *err)
{
    struct weft_checkpoint *checkpoint = calloc(1, sizeof *checkpoint);
    if (checkpoint == NULL) return weft_fail_memory(err, path);
    checkpoint->path = strndup(path, weft_checkpoint_path_length(path));
    struct weft_error why = {0};
    enum weft_status status =
        checkpoint->path != NULL ? open_all(checkpoint, &why) : weft_fail_memory(&why, path);
    if (status != WEFT_OK) {
        weft_checkpoint_close(checkpoint);
        return fail_with_hint(status, &why, err);
    }
    *out = checkpoint;
    return WEFT_OK;
}

void weft_checkpoint_close(struct weft_checkpoint *checkpoint)
{
    if (checkpoint == NULL) return;
    for (int32_t f = 0; f < WEFT_CHECKPOINT_FILES; f++)
        weft_safetensors_destroy(checkpoint->files[f]);
    weft_manifest_destroy(checkpoint->manifest);
    free(checkpoint->path);
    free(checkpoint);
}

/* Comparing with a model */

/* Counts one more difference. Returns true, after a separator, while the text has room for it. */
static bool is_told(int32_t *n, struct weft_text *out)
{
    if (++*n > MOST_DIFFERENCES) return false;
    weft_text_add(out, *n == 1 ? "" : "; ");
    return true;
}

static void compare_entry(const struct weft_safetensors *file, const struct weft_layout *layout,
                          const struct weft_layout_entry *entry, int32_t *n, struct weft_text *out)
{
    const struct weft_layout_shape wanted = weft_layout_shape_of(layout->model, entry);
    const struct weft_safetensors_tensor *found = weft_safetensors_find(file, entry->name);
    if (found == NULL) {
        if (entry->state == WEFT_STATE_PARAMETER && is_told(n, out))
            weft_text_addf(out, "%s is missing", entry->name);
    } else if (!weft_safetensors_has_shape(found, wanted.dims, wanted.n_dims)) {
        if (!is_told(n, out)) return;
        weft_text_add(out, entry->name);
        weft_safetensors_put_shapes(found, wanted.dims, wanted.n_dims, out);
    } else if (found->type != WEFT_TENSOR_F32) {
        if (is_told(n, out))
            weft_text_addf(out, "%s is of %s, not F32", entry->name,
                           weft_tensor_type_name(found->type));
    }
}

/* Linear time if nothing differs: names are then in the layout's order. */
static bool is_wanted(const struct weft_layout_file *file, int32_t i, const char *name)
{
    if (i < file->n_entries && strcmp(file->entries[i].name, name) == 0) return true;
    for (int32_t e = 0; e < file->n_entries; e++) {
        if (strcmp(file->entries[e].name, name) == 0) return true;
    }
    return false;
}

/* Whether this is the name of a tensor's moment under some optimizer, on any node. */
static bool is_moment(const struct weft_model *model, const char *name)
{
    const size_t length = weft_layout_tensor_length(name, strlen(name));
    for (int32_t t = 0; t < model->n_tensors && name[length] != '\0'; t++) {
        const char *tensor = model->tensors[t].name;
        if (strlen(tensor) == length && memcmp(tensor, name, length) == 0) return true;
    }
    return false;
}

/* Nodes that have a state of their own in the checkpoint; 1: all ranks stepped together. */
static int32_t count_nodes(const struct weft_checkpoint *checkpoint)
{
    const struct weft_safetensors *file = checkpoint->files[1];
    int32_t nodes = 1;
    for (int32_t t = 0; t < file->n_tensors; t++) {
        const char *name = file->tensors[t].name;
        const size_t length = weft_layout_tensor_length(name, strlen(name));
        int node = 0;
        if (sscanf(name + length, ".node%9d", &node) == 1 && node >= nodes) nodes = node + 1;
    }
    return nodes;
}

/* The anchor is where all nodes were after the last average, which no other state tells. */
static enum weft_status compare_anchors(const struct weft_checkpoint *checkpoint,
                                        const struct weft_layout *layout, struct weft_error *err)
{
    for (int32_t e = 0; e < layout->files[1].n_entries; e++) {
        const struct weft_layout_entry *entry = &layout->files[1].entries[e];
        if (entry->state != WEFT_STATE_ANCHOR) continue;
        if (weft_safetensors_find(checkpoint->files[1], entry->name) != NULL) return WEFT_OK;
        return weft_fail(err, WEFT_E_DATA,
                         "%s: has no parameters of the last average, which train.across.momentum "
                         "and train.across.lr need: leave these out, or begin with its parameters: "
                         "--from %s",
                         checkpoint->path, checkpoint->path);
    }
    return WEFT_OK;
}

/* A state cannot be divided between nodes, or made of several. */
static enum weft_status compare_nodes(const struct weft_checkpoint *checkpoint,
                                      const struct weft_layout *layout, struct weft_error *err)
{
    const int32_t found = count_nodes(checkpoint);
    if (found == layout->nodes) return compare_anchors(checkpoint, layout, err);
    if (found == 1)
        return weft_fail(
            err, WEFT_E_DATA,
            "%s: has one state, since all ranks stepped together, and with "
            "train.across.every %d nodes have one each: set it to 0, or begin with its "
            "parameters: --from %s",
            checkpoint->path, layout->nodes, checkpoint->path);
    return weft_fail(err, WEFT_E_DATA,
                     "%s: has the states of %d nodes that stepped on their own, and this run has "
                     "%d: set train.across.every, cluster.ranks and cluster.ranks_per_node as "
                     "before, or begin with the first node's parameters: --from %s",
                     checkpoint->path, found, layout->nodes, checkpoint->path);
}

/* Compares names and shapes of all tensors, in linear time if nothing differs. */
static void compare_tensors(const struct weft_checkpoint *checkpoint,
                            const struct weft_layout *layout, int32_t *n, struct weft_text *out)
{
    for (int32_t f = 0; f < WEFT_CHECKPOINT_FILES; f++) {
        const struct weft_layout_file *wanted = &layout->files[f];
        const struct weft_safetensors *found = checkpoint->files[f];
        for (int32_t e = 0; e < wanted->n_entries; e++)
            compare_entry(found, layout, &wanted->entries[e], n, out);
        for (int32_t t = 0; t < found->n_tensors && *n <= MOST_DIFFERENCES; t++) {
            const char *name = found->tensors[t].name;
            if (is_wanted(wanted, t, name) || (f == 1 && is_moment(layout->model, name))) continue;
            if (is_told(n, out)) weft_text_addf(out, "%s is not the model's", name);
        }
    }
}

/* Version 1 shows of the layers only the order of their tensors. Their number and names are equal
 * here. */
static void compare_order(const struct weft_checkpoint *checkpoint,
                          const struct weft_layout *layout, int32_t *n, struct weft_text *out)
{
    const struct weft_layout_file *wanted = &layout->files[0];
    for (int32_t e = 0; e < wanted->n_entries && *n == 0; e++) {
        const char *name = checkpoint->files[0]->tensors[e].name;
        if (strcmp(name, wanted->entries[e].name) != 0 && is_told(n, out))
            weft_text_addf(out, "its layers stand in another order: %s where the model has %s",
                           name, wanted->entries[e].name);
    }
}

static void compare_functions(const struct weft_manifest *manifest, const struct weft_model *model,
                              int32_t *n, struct weft_text *out)
{
    struct weft_text function;
    weft_text_init(&function);
    weft_function_write(model, &function);
    if (!weft_text_ok(&function)) {
        out->failed = true;
    } else if (!weft_hash_equal(manifest->model,
                                weft_hash_bytes(weft_text_chars(&function), function.length))) {
        *n = weft_function_compare(weft_text_chars(&function), manifest->function, MOST_DIFFERENCES,
                                   out);
        if (*n == 0 && is_told(n, out)) weft_text_add(out, "its layers have another hash");
    }
    weft_text_finish(&function);
}

/* WEFT_OK without differences. Frees the text. */
static enum weft_status end_comparison(const struct weft_checkpoint *checkpoint, const char *what,
                                       int32_t n, struct weft_text *text, struct weft_error *err)
{
    enum weft_status status = WEFT_OK;
    if (n > MOST_DIFFERENCES) weft_text_add(text, "; and more");
    if (!weft_text_ok(text))
        status = weft_fail_memory(err, checkpoint->path);
    else if (n > 0)
        status = weft_fail(err, WEFT_E_DATA, "%s: is not a checkpoint of this %s: %s",
                           checkpoint->path, what, weft_text_chars(text));
    weft_text_finish(text);
    return status;
}

enum weft_status weft_checkpoint_has_function(const struct weft_checkpoint *checkpoint,
                                              const struct weft_model *model,
                                              struct weft_error *err)
{
    struct weft_text text;
    int32_t n = 0;
    weft_text_init(&text);
    if (checkpoint->manifest->function != NULL)
        compare_functions(checkpoint->manifest, model, &n, &text);
    return end_comparison(checkpoint, "model", n, &text, err);
}

enum weft_status weft_checkpoint_matches(const struct weft_checkpoint *checkpoint,
                                         const struct weft_layout *layout, struct weft_error *err)
{
    const struct weft_manifest *manifest = checkpoint->manifest;
    struct weft_text text;
    int32_t n = 0;
    WEFT_TRY(compare_nodes(checkpoint, layout, err));
    weft_text_init(&text);
    compare_tensors(checkpoint, layout, &n, &text);
    const char *what = n > 0 ? "model and optimizer" : "model";
    if (n == 0 && manifest->function == NULL) compare_order(checkpoint, layout, &n, &text);
    if (n == 0 && manifest->function != NULL) compare_functions(manifest, layout->model, &n, &text);
    return end_comparison(checkpoint, what, n, &text, err);
}

void weft_checkpoint_warn(const struct weft_checkpoint *checkpoint)
{
    if (checkpoint->manifest->function != NULL) return;
    weft_log(WEFT_LOG_WARNING,
             "%s: was saved by an older version of weft, which noted tensors alone: whether heads, "
             "types of layers, ties and layers without tensors are the model's cannot be checked",
             checkpoint->path);
}

/* Moments */

bool weft_checkpoint_has(const struct weft_checkpoint *checkpoint, const struct weft_layout *layout,
                         int32_t tensor, enum weft_state state)
{
    int32_t f = 0;
    const struct weft_layout_entry *entry = weft_layout_find(layout, tensor, state, &f);
    return entry != NULL && weft_safetensors_find(checkpoint->files[f], entry->name) != NULL;
}

/* One bit for each moment of a layer's tensors, in the layout and in the checkpoint. */
static void find_moments(const struct weft_checkpoint *checkpoint, const struct weft_layout *layout,
                         const struct weft_layer *layer, unsigned *wanted, unsigned *found)
{
    for (int32_t i = 0; i < layer->n_tensors; i++) {
        for (int state = WEFT_STATE_MOMENT1; state < WEFT_STATE_COUNT; state++) {
            int32_t f = 0;
            struct weft_text name;
            weft_text_init(&name);
            weft_text_addf(&name, "%s%s", layout->model->tensors[layer->tensors[i]].name,
                           weft_layout_suffix((enum weft_state)state));
            if (weft_layout_find(layout, layer->tensors[i], (enum weft_state)state, &f) != NULL)
                *wanted |= 1u << state;
            if (weft_text_ok(&name) &&
                weft_safetensors_find(checkpoint->files[1], weft_text_chars(&name)) != NULL)
                *found |= 1u << state;
            weft_text_finish(&name);
        }
    }
}

/* A pending gradient that starts at 0 makes one update without a gradient. */
static const char *moments_text(unsigned moments)
{
    const unsigned outer = 1u << WEFT_STATE_ANCHOR | 1u << WEFT_STATE_OUTER;
    if (moments == 1u << WEFT_STATE_PENDING) return "its pending gradient";
    if (moments == outer) return "anchor and outer momentum";
    if ((moments & ~outer) == 0)
        return (moments >> WEFT_STATE_ANCHOR & 1) != 0 ? "its anchor" : "its outer momentum";
    const bool first = (moments >> WEFT_STATE_MOMENT1 & 1) != 0;
    const unsigned seconds = 1u << WEFT_STATE_MOMENT2 | 1u << WEFT_STATE_MEAN2;
    const bool second = (moments & seconds) != 0;
    return first && second ? "moments" : first ? "its moment" : "its second moment";
}

int32_t weft_checkpoint_compare_moments(const struct weft_checkpoint *checkpoint,
                                        const struct weft_layout *layout, int32_t *n_begun,
                                        struct weft_text *out)
{
    int32_t n = 0;
    *n_begun = 0;
    for (int32_t l = 0; l < layout->model->n_layers; l++) {
        const struct weft_layer *layer = &layout->model->layers[l];
        unsigned wanted = 0, found = 0;
        find_moments(checkpoint, layout, layer, &wanted, &found);
        const unsigned begun = wanted & ~found, dropped = found & ~wanted;
        *n_begun += (begun & ~(1u << WEFT_STATE_PENDING)) != 0;
        if (begun != 0)
            weft_text_addf(out, "%s%s: %s start%s at 0", n++ > 0 ? "\n" : "", layer->name,
                           moments_text(begun), (begun & (begun - 1)) != 0 ? "" : "s");
        if (dropped != 0)
            weft_text_addf(out, "%s%s: %s of the checkpoint %s not needed any more",
                           n++ > 0 ? "\n" : "", layer->name, moments_text(dropped),
                           (dropped & (dropped - 1)) != 0 ? "are" : "is");
    }
    return n;
}

/* Data */

static enum weft_status verify_files(const struct weft_checkpoint *checkpoint, int32_t n_files,
                                     int64_t part, int64_t parts, struct weft_error *err)
{
    enum weft_status status = WEFT_OK;
    struct weft_error why = {0};
    char *buffer = malloc(READ_BYTES);
    if (buffer == NULL) return weft_fail_memory(err, "a chunk of a checkpoint");
    for (int32_t f = 0; f < n_files && status == WEFT_OK; f++) {
        int64_t n = checkpoint->manifest->files[f].n_chunks;
        for (int64_t c = part; c < n && status == WEFT_OK; c += parts)
            status = verify_chunk(checkpoint, f, c, buffer, &why);
    }
    free(buffer);
    return status == WEFT_OK ? WEFT_OK : fail_with_hint(status, &why, err);
}

enum weft_status weft_checkpoint_verify(const struct weft_checkpoint *checkpoint, int64_t part,
                                        int64_t parts, struct weft_error *err)
{
    return verify_files(checkpoint, WEFT_CHECKPOINT_FILES, part, parts, err);
}

enum weft_status weft_checkpoint_verify_parameters(const struct weft_checkpoint *checkpoint,
                                                   int64_t part, int64_t parts,
                                                   struct weft_error *err)
{
    return verify_files(checkpoint, 1, part, parts, err);
}

enum weft_status weft_checkpoint_read(const struct weft_checkpoint *checkpoint,
                                      const struct weft_layout *layout, int32_t tensor,
                                      enum weft_state state, int64_t first, int64_t count,
                                      float *out, struct weft_error *err)
{
    int32_t f = 0;
    const struct weft_layout_entry *entry = weft_layout_find(layout, tensor, state, &f);
    const struct weft_safetensors_tensor *found =
        entry == NULL ? NULL : weft_safetensors_find(checkpoint->files[f], entry->name);
    if (found == NULL)
        return weft_fail(err, WEFT_E_DATA, "%s: has no %s of tensor %s", checkpoint->path,
                         state == WEFT_STATE_PARAMETER ? "values" : "moments",
                         layout->model->tensors[tensor].name);
    return weft_safetensors_read_f32(checkpoint->files[f], found, first, count, out, err);
}
