/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* realpath */
#include "runtime/checkpoint/origin.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/text.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/directory.h"
#include "runtime/checkpoint/function.h"
#include "runtime/checkpoint/hub_files.h"
#include "spec/config.h"
#include "spec/hub_model.h"
#include "spec/run/hub_run.h"

struct weft_origin_file {
    const struct weft_model *model;
    struct weft_checkpoint *checkpoint;     /* NULL: a plain file */
    struct weft_safetensors *plain;         /* NULL: no file with Weft's names */
    struct weft_hub_files *hub;             /* NULL: no files of Hugging Face */
    const struct weft_safetensors *tensors; /* of checkpoint or plain; NULL: of hub */
    const char *path;                       /* for messages; borrowed while it is opened */
};

static bool is_directory(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

static bool is_checkpoint(const char *path)
{
    struct weft_text manifest;
    int64_t step;
    weft_text_init(&manifest);
    weft_text_addf(&manifest, "%s/%s", path, WEFT_MANIFEST_NAME);
    bool is = weft_checkpoint_step_of(path, &step) || access(weft_text_chars(&manifest), F_OK) == 0;
    weft_text_finish(&manifest);
    return is;
}

/* Replaces a run's `path` with that of its latest checkpoint. */
static enum weft_status find_latest(const char *from, char path[PATH_MAX], struct weft_error *err)
{
    struct weft_text directory;
    char *latest = NULL;
    weft_text_init(&directory);
    weft_text_addf(&directory, "%s/checkpoints", path);
    enum weft_status status =
        weft_text_ok(&directory) ? weft_checkpoint_latest(weft_text_chars(&directory), &latest, err)
                                 : weft_fail_memory(err, "a path");
    weft_text_finish(&directory);
    if (status == WEFT_OK && latest == NULL)
        status = weft_fail(err, WEFT_E_NO_INPUT,
                           "--from %s: no checkpoint is there: give a run that saved one, "
                           "RUN/checkpoints/step-N, a safetensors file, or a model's folder of "
                           "Hugging Face with model.safetensors",
                           from);
    if (status == WEFT_OK && strlen(latest) < PATH_MAX) memcpy(path, latest, strlen(latest) + 1);
    free(latest);
    return status;
}

enum weft_status weft_origin_find(const char *from, char path[WEFT_ORIGIN_PATH_BYTES],
                                  struct weft_error *err)
{
    char found[PATH_MAX];
    if (realpath(from, found) == NULL)
        return weft_fail(err, errno == EACCES ? WEFT_E_PERMISSION : WEFT_E_NO_INPUT,
                         "--from %s: %s. Give a run that saved a checkpoint, "
                         "RUN/checkpoints/step-N, or a safetensors file",
                         from, strerror(errno));
    if (is_directory(found) && !is_checkpoint(found) && !weft_hub_files_are(found))
        WEFT_TRY(find_latest(from, found, err));
    if (strlen(found) >= WEFT_ORIGIN_PATH_BYTES)
        return weft_fail(err, WEFT_E_USAGE, "--from %.60s...: the path is too long", from);
    memcpy(path, found, strlen(found) + 1);
    return WEFT_OK;
}

/* Comparing with a model */

/* Differences of one kind: "; missing: a, b". */
struct differences {
    const char *kind;
    int32_t n;
    struct weft_text text;
};
enum { MISSING, NOT_WANTED, OF_SHAPE, OF_TYPE, KINDS };
/* Room for each kind in a message. */
enum { MOST_BYTES = 850 };

static struct weft_text *add_name(struct differences *of, const char *name)
{
    if (of->text.length < MOST_BYTES)
        weft_text_addf(&of->text, "%s%s", of->n == 0 ? "" : ", ", name);
    of->n++;
    return of->text.length < MOST_BYTES ? &of->text : NULL;
}

/* Compares a tensor of the file with its wanted shape. */
static void compare_tensor(const char *name, const int64_t *dims, int32_t n_dims,
                           const struct weft_safetensors_tensor *found,
                           struct differences all[KINDS])
{
    if (found == NULL) {
        (void)add_name(&all[MISSING], name);
    } else if (!weft_safetensors_has_shape(found, dims, n_dims)) {
        struct weft_text *out = add_name(&all[OF_SHAPE], name);
        if (out != NULL) weft_safetensors_put_shapes(found, dims, n_dims, out);
    } else if (found->type != WEFT_TENSOR_F32 && found->type != WEFT_TENSOR_F16 &&
               found->type != WEFT_TENSOR_BF16) {
        struct weft_text *out = add_name(&all[OF_TYPE], name);
        if (out != NULL) weft_text_addf(out, " is %s", weft_tensor_type_name(found->type));
    }
}

static void add_foreign(void *context, const char *name)
{
    (void)add_name(context, name);
}

/* Compares by the names of Hugging Face's files. */
static enum weft_status compare_hub_tensors(const struct weft_origin_file *file,
                                            struct differences all[KINDS], struct weft_error *err)
{
    const struct weft_hub_map *map = weft_hub_files_map(file->hub);
    for (int32_t e = 0; e < map->n; e++) {
        const struct weft_hub_entry *entry = &map->entries[e];
        compare_tensor(entry->name, entry->dims, entry->n_dims, weft_hub_files_tensor(file->hub, e),
                       all);
    }
    return weft_hub_files_rest(file->hub, add_foreign, &all[NOT_WANTED], err);
}

static bool is_of_model(const struct weft_model *model, const char *name)
{
    for (int32_t t = 0; t < model->n_tensors; t++)
        if (strcmp(model->tensors[t].name, name) == 0) return true;
    return false;
}

static enum weft_status fail_different(const char *path, struct differences all[KINDS],
                                       struct weft_error *err)
{
    struct weft_text text;
    weft_text_init(&text);
    for (int k = 0; k < KINDS; k++) {
        if (all[k].n == 0) continue;
        weft_text_addf(&text, "%s%s (%d): %s", text.length > 0 ? "; " : "", all[k].kind, all[k].n,
                       weft_text_chars(&all[k].text));
        if (all[k].text.length >= MOST_BYTES) weft_text_add(&text, ", ...");
    }
    enum weft_status status = WEFT_OK;
    if (!weft_text_ok(&text))
        status = weft_fail_memory(err, path);
    else if (text.length > 0)
        status = weft_fail(err, WEFT_E_DATA, "%s: does not have the model's tensors: %s", path,
                           weft_text_chars(&text));
    weft_text_finish(&text);
    return status;
}

static void compare_own_tensors(const struct weft_origin_file *file, struct differences all[KINDS])
{
    const struct weft_model *model = file->model;
    for (int32_t t = 0; t < model->n_tensors; t++) {
        const struct weft_tensor *tensor = &model->tensors[t];
        compare_tensor(tensor->name, tensor->dims, tensor->n_dims,
                       weft_safetensors_find(file->tensors, tensor->name), all);
    }
    /* Names are unique in both, so counts show whether the file has extra ones. */
    if (file->tensors->n_tensors == model->n_tensors - all[MISSING].n) return;
    for (int32_t t = 0; t < file->tensors->n_tensors; t++)
        if (!is_of_model(model, file->tensors->tensors[t].name))
            (void)add_name(&all[NOT_WANTED], file->tensors->tensors[t].name);
}

static enum weft_status compare_tensors(const struct weft_origin_file *file, const char *path,
                                        struct weft_error *err)
{
    struct differences all[KINDS] = {{.kind = "missing"},
                                     {.kind = "not the model's"},
                                     {.kind = "of another shape"},
                                     {.kind = "not F32, F16 or BF16"}};
    enum weft_status status = WEFT_OK;
    for (int k = 0; k < KINDS; k++)
        weft_text_init(&all[k].text);
    if (file->hub != NULL)
        status = compare_hub_tensors(file, all, err);
    else
        compare_own_tensors(file, all);
    if (status == WEFT_OK) status = fail_different(path, all, err);
    for (int k = 0; k < KINDS; k++)
        weft_text_finish(&all[k].text);
    return status;
}

/* The user may want another model with the same tensors, but not by mistake. */
static enum weft_status compare_function(const struct weft_origin_file *file, const char *path,
                                         struct weft_error *err)
{
    struct weft_error why = {0};
    enum weft_status status = weft_checkpoint_has_function(file->checkpoint, file->model, &why);
    if (status != WEFT_E_DATA)
        return status == WEFT_OK ? WEFT_OK : weft_fail_again(err, &why, "%s", why.text);
    return weft_fail(err, status, "%s. To take its tensors all the same, give --from %s/%s",
                     why.text, path, file->checkpoint->manifest->files[0].name);
}

/* Compares the model's function with that of config.json: shapes do not tell the number of heads.
 */
static enum weft_status compare_hub_function(const struct weft_origin_file *file, const char *path,
                                             struct weft_error *err)
{
    enum { SHOWN = 5 };
    struct weft_config *config = NULL;
    struct weft_text ours, theirs, differences;
    WEFT_TRY(weft_hub_run_load(path, NULL, 0, &config, err));
    weft_text_init(&ours);
    weft_text_init(&theirs);
    weft_text_init(&differences);
    weft_function_write_nameless(file->model, &ours);
    weft_function_write_nameless(config->model, &theirs);
    const char *numbers = strstr(config->notes, WEFT_HUB_NUMBERS_NOTE);
    enum weft_status status = WEFT_OK;
    if (!weft_text_ok(&ours) || !weft_text_ok(&theirs))
        status = weft_fail_memory(err, path);
    else if (numbers != NULL)
        status = weft_fail(err, WEFT_E_DATA, "%s: no layer of Weft computes with %s", path,
                           numbers + strlen(WEFT_HUB_NUMBERS_NOTE ": "));
    else if (weft_function_compare(weft_text_chars(&ours), weft_text_chars(&theirs), SHOWN,
                                   &differences) > 0)
        status = weft_fail(err, WEFT_E_DATA, "%s: is of another model than the run's: %s", path,
                           weft_text_chars(&differences));
    weft_text_finish(&differences);
    weft_text_finish(&theirs);
    weft_text_finish(&ours);
    weft_config_destroy(config);
    return status;
}

/* A folder has a config.json, or is taken as a file alone. */
static enum weft_status open_hub(struct weft_origin_file *file, const char *path,
                                 struct weft_error *err)
{
    struct weft_text config;
    WEFT_TRY(weft_hub_files_open(path, file->model, &file->hub, err));
    WEFT_TRY(compare_tensors(file, path, err));
    if (!is_directory(path)) return WEFT_OK;
    weft_text_init(&config);
    weft_hub_model_path(path, &config);
    enum weft_status status = weft_text_ok(&config) ? WEFT_OK : weft_fail_memory(err, path);
    if (status == WEFT_OK) status = compare_hub_function(file, weft_text_chars(&config), err);
    weft_text_finish(&config);
    return status;
}

static enum weft_status open_file(struct weft_origin_file *file, const char *path,
                                  struct weft_error *err)
{
    file->path = path;
    if (!is_checkpoint(path) && weft_hub_files_are(path)) return open_hub(file, path, err);
    if (!is_directory(path)) {
        WEFT_TRY(weft_safetensors_open(path, &file->plain, err));
        file->tensors = file->plain;
        if (weft_hub_files_have_names(file->plain)) return open_hub(file, path, err);
        return compare_tensors(file, path, err);
    }
    WEFT_TRY(weft_checkpoint_open(path, &file->checkpoint, err));
    file->tensors = file->checkpoint->files[0];
    WEFT_TRY(compare_tensors(file, path, err));
    return compare_function(file, path, err);
}

enum weft_status weft_origin_open(const char *path, const struct weft_model *model,
                                  struct weft_origin_file **out, struct weft_error *err)
{
    struct weft_origin_file *file = calloc(1, sizeof *file);
    if (file == NULL) return weft_fail_memory(err, path);
    file->model = model;
    enum weft_status status = open_file(file, path, err);
    if (status != WEFT_OK) {
        weft_origin_close(file);
        return status;
    }
    *out = file;
    return WEFT_OK;
}

void weft_origin_close(struct weft_origin_file *file)
{
    if (file == NULL) return;
    weft_checkpoint_close(file->checkpoint);
    weft_hub_files_close(file->hub);
    weft_safetensors_destroy(file->plain);
    free(file);
}

enum weft_status weft_origin_verify(const struct weft_origin_file *file, int64_t part,
                                    int64_t parts, struct weft_error *err)
{
    if (file->checkpoint == NULL) return WEFT_OK;
    return weft_checkpoint_verify_parameters(file->checkpoint, part, parts, err);
}

void weft_origin_warn(const struct weft_origin_file *file)
{
    if (file->checkpoint != NULL) {
        weft_checkpoint_warn(file->checkpoint);
        return;
    }
    if (file->plain == NULL) return;
    weft_log(WEFT_LOG_WARNING,
             "%s: is a file of tensors alone: names and shapes are the model's, and whether it is "
             "damaged or of a model that computes something else cannot be checked",
             file->plain->path);
}

enum weft_status weft_origin_read(const struct weft_origin_file *file, int32_t tensor,
                                  int64_t first, int64_t count, float *out, struct weft_error *err)
{
    if (file->hub != NULL) return weft_hub_files_read(file->hub, tensor, first, count, out, err);
    const struct weft_safetensors_tensor *from =
        weft_safetensors_find(file->tensors, file->model->tensors[tensor].name);
    return weft_safetensors_read_f32(file->tensors, from, first, count, out, err);
}
