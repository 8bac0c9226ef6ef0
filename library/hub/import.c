/* SPDX-License-Identifier: Apache-2.0 */
#include "library/hub/import.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"
#include "library/hub/folder.h"
#include "library/hub/source.h"
#include "runtime/checkpoint/finite.h"
#include "runtime/checkpoint/hub_files.h"
#include "runtime/checkpoint/origin.h"
#include "runtime/checkpoint/save.h"
#include "spec/config_batch.h"
#include "spec/run/hub_run.h"

/* The parameters of an origin, a tensor at a time. */
struct import_pieces {
    const struct weft_model *model;
    const struct weft_origin_file *from;
    const char *path; /* for messages */
    int32_t tensor;   /* of the last piece */
};

static void rewind_pieces(void *context)
{
    struct import_pieces *pieces = context;
    pieces->tensor = -1;
}

static bool next_piece(void *context, struct weft_save_piece *out)
{
    struct import_pieces *pieces = context;
    if (++pieces->tensor >= pieces->model->n_tensors) return false;
    *out = (struct weft_save_piece){.tensor = pieces->tensor,
                                    .state = WEFT_STATE_PARAMETER,
                                    .count = pieces->model->tensors[pieces->tensor].elements,
                                    .dtype = WEFT_F32};
    return true;
}

static enum weft_status read_piece(void *context, int64_t from, int64_t n, float *out,
                                   struct weft_error *err)
{
    const struct import_pieces *pieces = context;
    WEFT_TRY(weft_origin_read(pieces->from, pieces->tensor, from, n, out, err));
    return weft_finite_check_read(pieces->path, pieces->model->tensors[pieces->tensor].name, from,
                                  n, out, WEFT_F32, err);
}

/* Saves the checkpoint of step 0 as one rank. */
static enum weft_status save_parameters(const struct weft_hub_import *request,
                                        const struct weft_config *config,
                                        const struct weft_origin_file *from, const char *run,
                                        struct weft_error *err)
{
    const struct weft_comm_options alone = {.ranks = 1, .local = {.control_fd = -1}};
    const struct weft_progress progress = {.loss_scale = 1};
    struct import_pieces pieces = {config->model, from, request->from, -1};
    const struct weft_save_source source = {&pieces, rewind_pieces, next_piece, read_piece};
    struct weft_saver_options options = {
        .sink = &weft_sink_system, .keep = 2, .precious = -1, .kernels = "none"};
    struct weft_pool pool = {0};
    struct weft_layout *layout = NULL;
    struct weft_comm *comm = NULL;
    struct weft_saver *saver = NULL;
    struct weft_text directory;
    weft_text_init(&directory);
    weft_text_addf(&directory, "%s/checkpoints", run);
    enum weft_status status = weft_text_ok(&directory) ? WEFT_OK : weft_fail_memory(err, "a path");
    if (status == WEFT_OK)
        status = weft_layout_create(config->model, 1u << WEFT_STATE_PARAMETER, 1,
                                    WEFT_CHECKPOINT_CHUNK_BYTES, &layout, err);
    if (status == WEFT_OK) status = weft_manifest_settings(config, &pool, &options.settings, err);
    if (status == WEFT_OK) status = weft_comm_open("local", &alone, &comm, err);
    options.directory = weft_text_chars(&directory);
    options.layout = layout;
    options.comm = comm;
    if (status == WEFT_OK) status = weft_saver_create(&options, &saver, err);
    if (status == WEFT_OK) status = weft_saver_save(saver, &progress, &source, err);
    weft_saver_destroy(saver);
    weft_comm_close(comm);
    weft_layout_destroy(layout);
    weft_pool_finish(&pool);
    weft_text_finish(&directory);
    return status;
}

static enum weft_status write_config(const struct weft_config *config, const char *run,
                                     struct weft_error *err)
{
    struct weft_text text, path;
    weft_text_init(&text);
    weft_text_init(&path);
    weft_config_write(config, &text);
    weft_text_addf(&path, "%s/config.json", run);
    const enum weft_status status =
        weft_text_ok(&text) && weft_text_ok(&path)
            ? weft_file_write(weft_text_chars(&path), weft_text_chars(&text), text.length, err)
            : weft_fail_memory(err, "a config");
    weft_text_finish(&path);
    weft_text_finish(&text);
    return status;
}

/* Keeps the types of tensors, and the small files, in RUN/hub. */
static enum weft_status keep_source(const char *from, const struct weft_model *model,
                                    const char *run, struct weft_error *err)
{
    struct weft_hub_files *files = NULL;
    struct weft_text hub;
    weft_text_init(&hub);
    weft_text_addf(&hub, "%s/hub", run);
    enum weft_status status = weft_text_ok(&hub) ? WEFT_OK : weft_fail_memory(err, "a path");
    if (status == WEFT_OK) status = weft_file_make_directory(weft_text_chars(&hub), err);
    if (status == WEFT_OK) status = weft_hub_source_copy(from, weft_text_chars(&hub), true, err);
    if (status == WEFT_OK) status = weft_hub_files_open(from, model, &files, err);
    if (status == WEFT_OK) status = weft_hub_source_keep(files, weft_text_chars(&hub), err);
    weft_hub_files_close(files);
    weft_text_finish(&hub);
    return status;
}

static enum weft_status fill_run(const struct weft_hub_import *request,
                                 const struct weft_config *config, const char *run,
                                 struct weft_error *err)
{
    struct weft_origin_file *from = NULL;
    WEFT_TRY(weft_origin_open(request->from, config->model, &from, err));
    enum weft_status status = save_parameters(request, config, from, run, err);
    weft_origin_close(from);
    if (status == WEFT_OK) status = keep_source(request->from, config->model, run, err);
    return status == WEFT_OK ? write_config(config, run, err) : status;
}

/* Tensors are compared before anything is written. */
static enum weft_status look_at_tensors(const struct weft_hub_import *request,
                                        const struct weft_config *config, struct weft_error *err)
{
    struct weft_origin_file *from = NULL;
    WEFT_TRY(weft_origin_open(request->from, config->model, &from, err));
    weft_origin_close(from);
    return WEFT_OK;
}

enum weft_status weft_hub_import(const struct weft_hub_import *request, struct weft_config **config,
                                 struct weft_error *err)
{
    struct weft_folder folder;
    if (!weft_hub_files_are(request->from))
        return weft_fail(err, WEFT_E_NO_INPUT,
                         "%s: has no model.safetensors and no model.safetensors.index.json: give "
                         "the folder of a model of Hugging Face, with its config.json",
                         request->from);
    WEFT_TRY(weft_folder_check(request->to, err));
    WEFT_TRY(
        weft_hub_run_load(request->from, request->overrides, request->n_overrides, config, err));
    WEFT_TRY(look_at_tensors(request, *config, err));
    WEFT_TRY(weft_folder_begin(request->to, &folder, err));
    enum weft_status status = fill_run(request, *config, weft_folder_path(&folder), err);
    return weft_folder_end(&folder, status, err);
}
