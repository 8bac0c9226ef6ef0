#include "cli/verbs/export_hf.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "base/units.h"
#include "cli/terminal.h"
#include "library/hub/export.h"
#include "library/run_directory.h"

static enum weft_status read_dtype(const char *name, struct weft_hub_export *out,
                                   struct weft_error *err)
{
    static const enum weft_dtype dtypes[] = {WEFT_F32, WEFT_BF16, WEFT_F16};
    if (name == NULL) return WEFT_OK;
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        if (strcmp(weft_dtype_name(dtypes[i]), name) != 0) continue;
        out->has_dtype = true;
        out->dtype = dtypes[i];
        return WEFT_OK;
    }
    return weft_fail(err, WEFT_E_USAGE, "--dtype %s: f32, bf16 or f16", name);
}

static enum weft_status read_flags(const struct weft_cli *cli, struct weft_hub_export *out,
                                   struct weft_error *err)
{
    out->to = cli->output;
    out->shard_bytes = WEFT_HUB_SHARD_BYTES;
    if (cli->snippet || cli->force)
        return weft_fail(err, WEFT_E_USAGE, "%s: no flag of --to hf",
                         cli->snippet ? "--snippet" : "--force");
    if (cli->output == NULL || strcmp(cli->output, "-") == 0)
        return weft_fail(err, WEFT_E_USAGE, "export --to hf: give the folder to make with -o DIR");
    WEFT_TRY(read_dtype(cli->dtype, out, err));
    if (cli->shard_size == NULL) return WEFT_OK;
    struct weft_error why = {0};
    if (weft_units_bytes(cli->shard_size, &out->shard_bytes, &why) == WEFT_OK &&
        out->shard_bytes > 0)
        return WEFT_OK;
    return weft_fail(err, WEFT_E_USAGE, "--shard-size %s: bytes, such as 2GB", cli->shard_size);
}

static void put_json(const struct weft_hub_export *request, const struct weft_hub_exported *done,
                     struct weft_text *out)
{
    struct weft_json_writer writer;
    weft_json_writer_init(&writer, out, 2);
    weft_json_begin_object(&writer);
    weft_json_put_string(&writer, "folder", request->to);
    weft_json_put_string(&writer, "checkpoint", request->checkpoint);
    weft_json_put_string(&writer, "architecture", done->family->architecture);
    weft_json_put_integer(&writer, "tensors", done->n_tensors);
    weft_json_put_integer(&writer, "bytes", done->written.bytes);
    weft_json_put_integer(&writer, "files", done->written.n_files);
    weft_json_key(&writer, "source");
    if (done->source.length > 0)
        weft_json_add_string(&writer, weft_text_chars(&done->source));
    else
        weft_json_add_null(&writer);
    weft_json_end_object(&writer);
    weft_text_add(out, "\n");
}

static enum weft_status report_export(const struct weft_cli *cli,
                                      const struct weft_hub_export *request,
                                      const struct weft_hub_exported *done, struct weft_error *err)
{
    struct weft_cli to_stdout = *cli;
    struct weft_text out;
    char bytes[WEFT_UNITS_TEXT_BYTES];
    to_stdout.output = NULL;
    weft_cli_report_init(&to_stdout, NULL, &out);
    if (cli->json) {
        put_json(request, done, &out);
    } else {
        weft_text_addf(&out, "%s: %s, %d tensors, %s in %d file%s\n", request->to,
                       done->family->architecture, (int)done->n_tensors,
                       weft_units_show_bytes(done->written.bytes, bytes),
                       (int)done->written.n_files, done->written.n_files == 1 ? "" : "s");
        if (done->source.length > 0)
            weft_text_addf(&out, "config.json and tokenizer of %s\n",
                           weft_text_chars(&done->source));
        else
            weft_text_add(&out,
                          "config.json is made from the run's model; no tokenizer is known\n");
    }
    const enum weft_status status = weft_cli_emit(&to_stdout, &out, err);
    weft_text_finish(&out);
    return status;
}

enum weft_status weft_cli_export_hf(const struct weft_cli *cli, struct weft_error *err)
{
    struct weft_hub_export request = {0};
    struct weft_hub_exported done = {0};
    struct weft_config *config = NULL;
    char *checkpoint = NULL, path[WEFT_RUN_FILE_BYTES];
    WEFT_TRY(read_flags(cli, &request, err));
    WEFT_TRY(weft_run_find(cli->operands[0], cli->config, path, &checkpoint, err));
    enum weft_status status =
        weft_config_load(&(struct weft_config_input){.source = path,
                                                     .overrides = cli->overrides,
                                                     .n_overrides = cli->n_overrides,
                                                     .kinds = cli->kinds},
                         &config, err);
    request.checkpoint = checkpoint;
    request.config = config;
    if (status == WEFT_OK) status = weft_hub_export(&request, &done, err);
    if (status == WEFT_OK) status = report_export(cli, &request, &done, err);
    weft_text_finish(&done.source);
    weft_config_destroy(config);
    free(checkpoint);
    return status;
}
