/* SPDX-License-Identifier: Apache-2.0 */
#include "library/hub/export.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json/json.h"
#include "library/hub/config.h"
#include "library/hub/folder.h"
#include "library/hub/source.h"
#include "runtime/checkpoint/function.h"
#include "runtime/checkpoint/origin.h"
#include "spec/run/hub_run.h"

struct hub_exporting {
    const struct weft_hub_export *request;
    const struct weft_origin_file *from;
    const struct weft_hub_source *source;
    const struct weft_hub_map *map;
    enum weft_tensor_type *types;
    const char *folder;
};

/* Names of dtypes in config.json. */
static const char *const torch_names[] = {
    [WEFT_F32] = "float32", [WEFT_BF16] = "bfloat16", [WEFT_F16] = "float16"};

static enum weft_status write_file(const struct hub_exporting *e, const char *name,
                                   const struct weft_text *text, struct weft_error *err)
{
    struct weft_text path;
    weft_text_init(&path);
    weft_text_addf(&path, "%s/%s", e->folder, name);
    const enum weft_status status =
        weft_text_ok(text) && weft_text_ok(&path)
            ? weft_file_write(weft_text_chars(&path), weft_text_chars(text), text->length, err)
            : weft_fail_memory(err, name);
    weft_text_finish(&path);
    return status;
}

/* config.json */

/* Copies config.json with another dtype. */
static void put_config(const struct weft_json_value *root, const char *dtype, struct weft_text *out)
{
    struct weft_json_writer writer;
    weft_json_writer_init(&writer, out, 2);
    weft_json_begin_object(&writer);
    const struct weft_json_value *at = weft_json_first(root);
    for (; at != NULL; at = weft_json_next(at)) {
        const char *name = weft_json_name(at);
        weft_json_key(&writer, name);
        if (strcmp(name, "dtype") == 0 || strcmp(name, "torch_dtype") == 0)
            weft_json_add_string(&writer, dtype);
        else
            weft_json_add_value(&writer, at);
    }
    if (weft_json_member(root, "dtype") == NULL && weft_json_member(root, "torch_dtype") == NULL)
        weft_json_put_string(&writer, "dtype", dtype);
    weft_json_end_object(&writer);
    weft_text_add(out, "\n");
}

static enum weft_status copy_config(const struct hub_exporting *e, struct weft_error *err)
{
    struct weft_json *document = NULL;
    struct weft_text path, text;
    weft_text_init(&path);
    weft_text_init(&text);
    weft_text_addf(&path, "%s/" WEFT_HUB_CONFIG_NAME, weft_text_chars(&e->source->folder));
    enum weft_status status = weft_json_read(weft_text_chars(&path), &document, err);
    if (status == WEFT_OK) {
        put_config(weft_json_root(document), torch_names[e->request->dtype], &text);
        status = write_file(e, WEFT_HUB_CONFIG_NAME, &text, err);
    }
    weft_json_destroy(document);
    weft_text_finish(&text);
    weft_text_finish(&path);
    return status;
}

/* Reads the written config.json back: its model must compute as the exported one. */
static enum weft_status check_config(const struct hub_exporting *e, struct weft_error *err)
{
    enum { SHOWN = 5 };
    const struct weft_model *model = e->request->config->model;
    struct weft_config *config = NULL;
    struct weft_text ours, theirs, differences;
    WEFT_TRY(weft_hub_run_load(e->folder, NULL, 0, &config, err));
    weft_text_init(&ours);
    weft_text_init(&theirs);
    weft_text_init(&differences);
    weft_function_write_nameless(model, &ours);
    weft_function_write_nameless(config->model, &theirs);
    enum weft_status status = WEFT_OK;
    if (!weft_text_ok(&ours) || !weft_text_ok(&theirs))
        status = weft_fail_memory(err, "a model");
    else if (weft_function_compare(weft_text_chars(&ours), weft_text_chars(&theirs), SHOWN,
                                   &differences) > 0)
        status =
            weft_fail(err, WEFT_E_DATA,
                      "%s: a config.json of %s cannot describe this model. The model and the "
                      "nearest one differ: %s",
                      e->request->checkpoint, e->map->family->type, weft_text_chars(&differences));
    weft_text_finish(&differences);
    weft_text_finish(&theirs);
    weft_text_finish(&ours);
    weft_config_destroy(config);
    return status;
}

static enum weft_status make_config(const struct hub_exporting *e, struct weft_error *err)
{
    const struct weft_config *config = e->request->config;
    const enum weft_dtype dtype = e->request->has_dtype ? e->request->dtype : WEFT_F32;
    struct weft_text text;
    weft_text_init(&text);
    enum weft_status status = weft_hub_config_write(
        config->model, e->map->family, config->train.seq_len, torch_names[dtype], &text, err);
    if (status == WEFT_OK) status = write_file(e, WEFT_HUB_CONFIG_NAME, &text, err);
    weft_text_finish(&text);
    return status == WEFT_OK ? check_config(e, err) : status;
}

/* generation_config.json of a source that has none: the tokens of config.json. */
static enum weft_status make_generation(const struct hub_exporting *e, struct weft_error *err)
{
    static const char *const keys[] = {"bos_token_id", "eos_token_id", "pad_token_id"};
    struct weft_json *document = NULL;
    struct weft_json_writer writer;
    struct weft_text path, text;
    weft_text_init(&path);
    weft_text_init(&text);
    weft_text_addf(&path, "%s/" WEFT_HUB_CONFIG_NAME, e->folder);
    enum weft_status status = weft_json_read(weft_text_chars(&path), &document, err);
    const struct weft_json_value *root = document != NULL ? weft_json_root(document) : NULL;
    weft_json_writer_init(&writer, &text, 2);
    weft_json_begin_object(&writer);
    weft_json_put_bool(&writer, "_from_model_config", true);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const struct weft_json_value *value = weft_json_member(root, keys[i]);
        if (value == NULL || weft_json_kind(value) == WEFT_JSON_NULL) continue;
        weft_json_key(&writer, keys[i]);
        weft_json_add_value(&writer, value);
    }
    weft_json_end_object(&writer);
    weft_text_add(&text, "\n");
    if (status == WEFT_OK) status = write_file(e, WEFT_HUB_GENERATION_NAME, &text, err);
    weft_json_destroy(document);
    weft_text_finish(&text);
    weft_text_finish(&path);
    return status;
}

/* Tensors */

static enum weft_status read_elements(const void *context, int32_t tensor, int64_t first,
                                      int64_t count, float *out, struct weft_error *err)
{
    return weft_origin_read(context, tensor, first, count, out, err);
}

static enum weft_status fill_folder(const struct hub_exporting *e, struct weft_hub_exported *out,
                                    struct weft_error *err)
{
    const char *source = weft_text_chars(&e->source->folder);
    const bool has_source = e->source->folder.length > 0, changes = e->request->has_dtype;
    if (!has_source)
        WEFT_TRY(make_config(e, err));
    else if (changes)
        WEFT_TRY(copy_config(e, err));
    if (has_source) WEFT_TRY(weft_hub_source_copy(source, e->folder, !changes, err));
    if (!e->map->family->images &&
        (!has_source || !weft_hub_source_has(source, WEFT_HUB_GENERATION_NAME)))
        WEFT_TRY(make_generation(e, err));
    const struct weft_hub_write write = {.directory = e->folder,
                                         .sink = &weft_sink_system,
                                         .map = e->map,
                                         .types = e->types,
                                         .shard_bytes = e->request->shard_bytes,
                                         .read = read_elements,
                                         .context = e->from};
    return weft_hub_write(&write, &out->written, err);
}

static void set_types(const struct hub_exporting *e)
{
    static const enum weft_tensor_type types[] = {
        [WEFT_F32] = WEFT_TENSOR_F32, [WEFT_BF16] = WEFT_TENSOR_BF16, [WEFT_F16] = WEFT_TENSOR_F16};
    for (int32_t i = 0; e->request->has_dtype && i < e->map->n; i++)
        e->types[i] = types[e->request->dtype];
}

static enum weft_status export_from(const struct weft_hub_export *request,
                                    const struct weft_origin_file *from,
                                    struct weft_hub_source *source, struct weft_hub_exported *out,
                                    struct weft_error *err)
{
    struct weft_hub_map *map = NULL;
    struct hub_exporting e = {.request = request, .from = from, .source = source};
    struct weft_folder folder;
    WEFT_TRY(weft_hub_source_map(source, request->config->model, &map, &e.types, err));
    e.map = map;
    set_types(&e);
    enum weft_status status = weft_folder_begin(request->to, &folder, err);
    if (status == WEFT_OK) {
        e.folder = weft_folder_path(&folder);
        status = weft_folder_end(&folder, fill_folder(&e, out, err), err);
    }
    out->n_tensors = map->n;
    out->family = map->family;
    weft_hub_map_destroy(map);
    free(e.types);
    return status;
}

enum weft_status weft_hub_export(const struct weft_hub_export *request,
                                 struct weft_hub_exported *out, struct weft_error *err)
{
    struct weft_origin_file *from = NULL;
    struct weft_hub_source source = {0};
    struct weft_hub_exported exported = {0};
    WEFT_TRY(weft_folder_check(request->to, err));
    WEFT_TRY(weft_origin_open(request->checkpoint, request->config->model, &from, err));
    enum weft_status status = weft_origin_verify(from, 0, 1, err);
    if (status == WEFT_OK)
        status = weft_hub_source_find(request->checkpoint, request->config, &source, err);
    if (status == WEFT_OK) status = export_from(request, from, &source, &exported, err);
    weft_origin_close(from);
    if (status == WEFT_OK) {
        exported.source = source.folder;
        *out = exported;
        return WEFT_OK;
    }
    weft_hub_source_finish(&source);
    return status;
}
