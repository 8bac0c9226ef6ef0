/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/checkpoint/hub_write.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json/json.h"
#include "base/numbers.h"
#include "base/text.h"
#include "base/units.h"
#include "runtime/checkpoint/turned.h"

enum { LENGTH_BYTES = 8, ALIGN_BYTES = 8, BUFFER_ELEMENTS = 1 << 16 };

struct hub_output {
    const struct weft_hub_write *options;
    int32_t *files;   /* [map->n]: the file of each entry */
    int32_t *order;   /* [map->n]: entries by file, and in it in the order of the file */
    int64_t *offsets; /* [map->n]: of each entry in its file's data */
    int32_t n_files;
    int64_t bytes;
    float *buffer;    /* [BUFFER_ELEMENTS] */
    uint16_t *halves; /* the same */
    const char *path; /* of the open file */
    int fd;
    int64_t at; /* its end */
};

static int64_t entry_bytes(const struct weft_hub_write *options, int32_t entry)
{
    return options->map->entries[entry].elements * weft_tensor_type_bytes(options->types[entry]);
}

/* Fills files in the model's order. A file begins if an entry does not fit into the last one. */
static void share_entries(struct hub_output *o)
{
    int64_t fill = 0;
    o->n_files = 1;
    for (int32_t e = 0; e < o->options->map->n; e++) {
        const int64_t bytes = entry_bytes(o->options, e);
        if (fill > 0 && bytes > o->options->shard_bytes - fill) {
            o->n_files++;
            fill = 0;
        }
        fill += bytes;
        o->bytes += bytes;
        o->files[e] = o->n_files - 1;
        o->order[e] = e;
    }
}

/* Whether entry a comes before b: by file, by type, by name. */
static bool comes_before(const struct hub_output *o, int32_t a, int32_t b)
{
    const struct weft_hub_write *options = o->options;
    if (o->files[a] != o->files[b]) return o->files[a] < o->files[b];
    if (options->types[a] != options->types[b]) return options->types[a] > options->types[b];
    return strcmp(options->map->entries[a].name, options->map->entries[b].name) < 0;
}

/* A heap sort: a comparison needs the output, which qsort does not pass. */
static void sift_down(const struct hub_output *o, int32_t root, int32_t n)
{
    for (int32_t child = 2 * root + 1; child < n; child = 2 * root + 1) {
        if (child + 1 < n && comes_before(o, o->order[child], o->order[child + 1])) child++;
        if (!comes_before(o, o->order[root], o->order[child])) return;
        const int32_t moved = o->order[root];
        o->order[root] = o->order[child];
        o->order[child] = moved;
        root = child;
    }
}

static void sort_entries(struct hub_output *o)
{
    const int32_t n = o->options->map->n;
    for (int32_t i = n / 2; i-- > 0;)
        sift_down(o, i, n);
    for (int32_t end = n - 1; end > 0; end--) {
        const int32_t last = o->order[0];
        o->order[0] = o->order[end];
        o->order[end] = last;
        sift_down(o, 0, end);
    }
    int64_t at = 0;
    for (int32_t i = 0; i < n; i++) {
        const int32_t e = o->order[i];
        if (i > 0 && o->files[o->order[i - 1]] != o->files[e]) at = 0;
        o->offsets[e] = at;
        at += entry_bytes(o->options, e);
    }
}

/* "model.safetensors", or "model-00001-of-00003.safetensors". */
static void add_name(const struct hub_output *o, int32_t file, struct weft_text *out)
{
    if (o->n_files == 1)
        weft_text_add(out, "model.safetensors");
    else
        weft_text_addf(out, "model-%05d-of-%05d.safetensors", (int)file + 1, (int)o->n_files);
}

/* Writing bytes */

static enum weft_status fail_file(const struct hub_output *o, const char *verb, int error,
                                  struct weft_error *err)
{
    return weft_fail(err, WEFT_E_IO, "%s: cannot be %s: %s", o->path, verb, strerror(error));
}

static enum weft_status put_bytes(struct hub_output *o, const void *bytes, size_t length,
                                  struct weft_error *err)
{
    const int error = weft_sink_write(o->options->sink, o->fd, bytes, length, o->at);
    o->at += (int64_t)length;
    return error == 0 ? WEFT_OK : fail_file(o, "written", error, err);
}

/* Without spaces, as the safetensors library writes it. Names have no characters to escape. */
static void put_entry(const struct hub_output *o, int32_t e, struct weft_text *out)
{
    const struct weft_hub_entry *entry = &o->options->map->entries[e];
    weft_text_addf(out, ",\"%s\":{\"dtype\":\"%s\",\"shape\":[", entry->name,
                   weft_tensor_type_name(o->options->types[e]));
    for (int32_t d = 0; d < entry->n_dims; d++)
        weft_text_addf(out, "%s%" PRId64, d == 0 ? "" : ",", entry->dims[d]);
    weft_text_addf(out, "],\"data_offsets\":[%" PRId64 ",%" PRId64 "]}", o->offsets[e],
                   o->offsets[e] + entry_bytes(o->options, e));
}

/* The header of the entries order[first, end), padded with spaces. */
static enum weft_status write_header(struct hub_output *o, int32_t first, int32_t end,
                                     struct weft_error *err)
{
    struct weft_text text;
    weft_text_init(&text);
    weft_text_add(&text, "{\"__metadata__\":{\"format\":\"pt\"}");
    for (int32_t i = first; i < end; i++)
        put_entry(o, o->order[i], &text);
    weft_text_add(&text, "}");
    while (weft_text_ok(&text) && text.length % ALIGN_BYTES != 0)
        weft_text_add(&text, " ");
    enum weft_status status = weft_text_ok(&text) ? WEFT_OK : weft_fail_memory(err, o->path);
    if (status == WEFT_OK && text.length > WEFT_SAFETENSORS_MOST_HEADER_BYTES)
        status =
            weft_fail(err, WEFT_E_DATA, "%s: the model has too many tensors for one file", o->path);
    unsigned char length[LENGTH_BYTES];
    for (int i = 0; i < LENGTH_BYTES; i++)
        length[i] = (unsigned char)((uint64_t)text.length >> (8 * i) & 255);
    if (status == WEFT_OK) status = put_bytes(o, length, sizeof length, err);
    if (status == WEFT_OK) status = put_bytes(o, text.data, text.length, err);
    weft_text_finish(&text);
    return status;
}

/* Elements */

static const enum weft_dtype dtypes[WEFT_TENSOR_TYPE_COUNT] = {
    [WEFT_TENSOR_F32] = WEFT_F32, [WEFT_TENSOR_F16] = WEFT_F16, [WEFT_TENSOR_BF16] = WEFT_BF16};

static enum weft_status check_finite(const struct hub_output *o, int32_t e, int64_t first,
                                     int64_t n, struct weft_error *err)
{
    const float limit = weft_dtype_limit(dtypes[o->options->types[e]]);
    for (int64_t i = 0; i < n; i++) {
        if (fabsf(o->buffer[i]) < limit) continue;
        return weft_fail(err, WEFT_E_NUMERIC,
                         "element %" PRId64 " of %s is %g, which is not finite in %s%s", first + i,
                         o->options->map->entries[e].name,
                         weft_units_unsigned_nan((double)o->buffer[i]),
                         weft_tensor_type_name(o->options->types[e]),
                         isfinite(o->buffer[i]) ? ": export with --dtype f32" : "");
    }
    return WEFT_OK;
}

static enum weft_status put_elements(struct hub_output *o, int32_t e, int64_t n,
                                     struct weft_error *err)
{
    const enum weft_tensor_type type = o->options->types[e];
    if (type == WEFT_TENSOR_F32) return put_bytes(o, o->buffer, (size_t)n * sizeof *o->buffer, err);
    for (int64_t i = 0; i < n; i++)
        o->halves[i] = type == WEFT_TENSOR_BF16 ? weft_bf16_narrow(o->buffer[i])
                                                : weft_f16_narrow(o->buffer[i]);
    return put_bytes(o, o->halves, (size_t)n * sizeof *o->halves, err);
}

struct hub_part {
    const struct weft_hub_write *options;
    const struct weft_hub_entry *entry;
};

static enum weft_status read_part(const void *context, int64_t first, int64_t count, float *out,
                                  struct weft_error *err)
{
    const struct hub_part *part = context;
    const struct weft_hub_entry *entry = part->entry;
    return part->options->read(part->options->context, entry->tensor, entry->first + first, count,
                               out, err);
}

static enum weft_status write_entry(struct hub_output *o, int32_t e, struct weft_error *err)
{
    const struct hub_part part = {o->options, &o->options->map->entries[e]};
    const struct weft_hub_entry *entry = part.entry;
    struct weft_turned turned = {
        .rows = entry->dims[0], .columns = entry->dims[1], .source = read_part, .context = &part};
    enum weft_status status = WEFT_OK;
    for (int64_t at = 0; at < entry->elements && status == WEFT_OK; at += BUFFER_ELEMENTS) {
        const int64_t left = entry->elements - at;
        const int64_t n = left < BUFFER_ELEMENTS ? left : BUFFER_ELEMENTS;
        status = entry->transposed ? weft_turned_read(&turned, at, n, o->buffer, err)
                                   : read_part(&part, at, n, o->buffer, err);
        if (status == WEFT_OK) status = check_finite(o, e, at, n, err);
        if (status == WEFT_OK) status = put_elements(o, e, n, err);
    }
    weft_turned_finish(&turned);
    return status;
}

/* Files */

static enum weft_status fill_file(struct hub_output *o, int32_t first, int32_t end,
                                  struct weft_error *err)
{
    WEFT_TRY(write_header(o, first, end, err));
    for (int32_t i = first; i < end; i++)
        WEFT_TRY(write_entry(o, o->order[i], err));
    const int error = o->options->sink->sync(o->options->sink->context, o->fd);
    return error == 0 ? WEFT_OK : fail_file(o, "synced", error, err);
}

static enum weft_status write_file(struct hub_output *o, int32_t first, int32_t end,
                                   struct weft_error *err)
{
    const struct weft_sink *sink = o->options->sink;
    struct weft_text path;
    weft_text_init(&path);
    weft_text_addf(&path, "%s/", o->options->directory);
    add_name(o, o->files[o->order[first]], &path);
    o->path = weft_text_chars(&path);
    o->at = 0;
    o->fd = -1;
    int error = weft_text_ok(&path) ? sink->create(sink->context, o->path, &o->fd) : ENOMEM;
    enum weft_status status = error == 0 ? WEFT_OK : fail_file(o, "created", error, err);
    if (status == WEFT_OK) status = fill_file(o, first, end, err);
    error = o->fd >= 0 ? sink->close(sink->context, o->fd) : 0;
    if (status == WEFT_OK && error != 0) status = fail_file(o, "closed", error, err);
    o->path = NULL;
    weft_text_finish(&path);
    return status;
}

static int compare_names(const void *a, const void *b)
{
    const struct weft_hub_entry *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

static void put_index(const struct hub_output *o, const struct weft_hub_entry **sorted,
                      struct weft_text *out)
{
    const struct weft_hub_map *map = o->options->map;
    struct weft_json_writer writer;
    weft_json_writer_init(&writer, out, 2);
    weft_json_begin_object(&writer);
    weft_json_key(&writer, "metadata");
    weft_json_begin_object(&writer);
    weft_json_put_integer(&writer, "total_size", o->bytes);
    weft_json_end_object(&writer);
    weft_json_key(&writer, "weight_map");
    weft_json_begin_object(&writer);
    for (int32_t i = 0; i < map->n; i++) {
        struct weft_text name;
        weft_text_init(&name);
        add_name(o, o->files[sorted[i] - map->entries], &name);
        weft_json_put_string(&writer, sorted[i]->name, weft_text_chars(&name));
        weft_text_finish(&name);
    }
    weft_json_end_object(&writer);
    weft_json_end_object(&writer);
    weft_text_add(out, "\n");
}

static enum weft_status write_index(const struct hub_output *o, struct weft_error *err)
{
    const struct weft_hub_map *map = o->options->map;
    const struct weft_hub_entry **sorted = calloc((size_t)map->n + 1, sizeof *sorted);
    struct weft_text text, path;
    if (sorted == NULL) return weft_fail_memory(err, "an index");
    for (int32_t i = 0; i < map->n; i++)
        sorted[i] = &map->entries[i];
    qsort(sorted, (size_t)map->n, sizeof *sorted, compare_names);
    weft_text_init(&text);
    weft_text_init(&path);
    put_index(o, sorted, &text);
    weft_text_addf(&path, "%s/model.safetensors.index.json", o->options->directory);
    const enum weft_status status =
        weft_text_ok(&text) && weft_text_ok(&path)
            ? weft_file_write(weft_text_chars(&path), weft_text_chars(&text), text.length, err)
            : weft_fail_memory(err, "an index");
    weft_text_finish(&path);
    weft_text_finish(&text);
    free(sorted);
    return status;
}

static enum weft_status write_files(struct hub_output *o, struct weft_error *err)
{
    const int32_t n = o->options->map->n;
    share_entries(o);
    sort_entries(o);
    for (int32_t first = 0, end = 0; first < n; first = end) {
        while (end < n && o->files[o->order[end]] == o->files[o->order[first]])
            end++;
        WEFT_TRY(write_file(o, first, end, err));
    }
    return o->n_files > 1 ? write_index(o, err) : WEFT_OK;
}

enum weft_status weft_hub_write(const struct weft_hub_write *options, struct weft_hub_written *out,
                                struct weft_error *err)
{
    const size_t n = (size_t)options->map->n;
    struct hub_output o = {.options = options, .fd = -1};
    o.files = calloc(n, sizeof *o.files);
    o.order = calloc(n, sizeof *o.order);
    o.offsets = calloc(n, sizeof *o.offsets);
    o.buffer = malloc(BUFFER_ELEMENTS * sizeof *o.buffer);
    o.halves = malloc(BUFFER_ELEMENTS * sizeof *o.halves);
    const bool complete = o.files && o.order && o.offsets && o.buffer && o.halves;
    const enum weft_status status =
        complete ? write_files(&o, err) : weft_fail_memory(err, "an export");
    if (status == WEFT_OK) *out = (struct weft_hub_written){o.n_files, o.bytes};
    free(o.halves);
    free(o.buffer);
    free(o.offsets);
    free(o.order);
    free(o.files);
    return status;
}
