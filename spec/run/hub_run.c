/* SPDX-License-Identifier: Apache-2.0 */
#include "spec/run/hub_run.h"

#include "base/json/json.h"
#include "spec/hub/layers.h"
#include "spec/hub_model.h"

enum weft_status weft_hub_run_write(const char *path, struct weft_text *out, struct weft_error *err)
{
    enum { USUAL_TOKENS = 2048 };
    struct weft_json *document = NULL;
    struct weft_json_writer writer;
    struct weft_text file;
    weft_text_init(&file);
    weft_hub_model_path(path, &file);
    enum weft_status status = weft_text_ok(&file)
                                  ? weft_json_read(weft_text_chars(&file), &document, err)
                                  : weft_fail_memory(err, "a path");
    weft_text_finish(&file);
    if (status != WEFT_OK) return status;
    const struct weft_json_value *root = weft_json_root(document);
    const int64_t positions = weft_hub_positions(root), rows = weft_hub_image_rows(root);
    const bool is_model = weft_hub_model_is(root) || (weft_json_member(root, "layers") != NULL &&
                                                      weft_json_member(root, "version") == NULL);
    weft_json_destroy(document);
    if (!is_model)
        return weft_fail(err, WEFT_E_DATA,
                         "%s: has no \"model_type\": give the config.json of a model of Hugging "
                         "Face, or a model of Weft, or a config of Weft without --hf",
                         path);
    weft_json_writer_init(&writer, out, 0);
    weft_json_begin_object(&writer);
    weft_json_put_integer(&writer, "version", 1);
    weft_json_key(&writer, "cluster");
    weft_json_begin_object(&writer);
    weft_json_put_integer(&writer, "ranks", 1);
    weft_json_end_object(&writer);
    weft_json_key(&writer, "train");
    weft_json_begin_object(&writer);
    weft_json_put_integer(&writer, "micro_batch", 1);
    weft_json_put_integer(&writer, "seq_len",
                          rows > 0                                    ? rows
                          : 0 < positions && positions < USUAL_TOKENS ? positions
                                                                      : USUAL_TOKENS);
    weft_json_put_integer(&writer, "steps", 1);
    weft_json_put_number(&writer, "clip_norm", 1);
    weft_json_key(&writer, "optimizer");
    weft_json_begin_object(&writer);
    weft_json_put_string(&writer, "type", "adamw");
    weft_json_end_object(&writer);
    weft_json_key(&writer, "precision");
    weft_json_begin_object(&writer);
    weft_json_put_string(&writer, "compute", "bf16");
    weft_json_end_object(&writer);
    weft_json_end_object(&writer);
    weft_json_end_object(&writer);
    return weft_text_ok(out) ? WEFT_OK : weft_fail_memory(err, "a config");
}

enum weft_status weft_hub_run_load(const char *path, const char *const *overrides, int32_t n,
                                   struct weft_config **out, struct weft_error *err)
{
    enum { MOST_OVERRIDES = 80 };
    const char *all[MOST_OVERRIDES + 1];
    struct weft_text run, model;
    struct weft_json_writer writer;
    if (n > MOST_OVERRIDES)
        return weft_fail(err, WEFT_E_USAGE, "%s: more than %d keys are set", path, MOST_OVERRIDES);
    weft_text_init(&run);
    weft_text_init(&model);
    weft_text_add(&model, "model=");
    weft_json_writer_init(&writer, &model, 0);
    weft_json_add_string(&writer, path);
    enum weft_status status = weft_hub_run_write(path, &run, err);
    if (status == WEFT_OK && !(weft_text_ok(&run) && weft_text_ok(&model)))
        status = weft_fail_memory(err, path);
    all[0] = weft_text_chars(&model);
    for (int32_t i = 0; i < n; i++)
        all[i + 1] = overrides[i];
    if (status == WEFT_OK)
        status = weft_config_load(&(struct weft_config_input){.bytes = weft_text_chars(&run),
                                                              .length = run.length,
                                                              .source = path,
                                                              .overrides = all,
                                                              .n_overrides = n + 1},
                                  out, err);
    weft_text_finish(&run);
    weft_text_finish(&model);
    return status;
}
