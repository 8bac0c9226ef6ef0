/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/verbs/export_hf.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "library/hub/export.h"
#include "library/run_directory.h"
#include "report/answer.h"

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

static enum weft_status report_export(const struct weft_cli *cli,
                                      const struct weft_hub_export *request,
                                      const struct weft_hub_exported *done, struct weft_error *err)
{
    const char *source = done->source.length > 0 ? weft_text_chars(&done->source) : NULL;
    struct weft_answer answer = {0};
    char bytes[WEFT_UNITS_TEXT_BYTES];
    weft_answer_word(&answer, "folder", request->to);
    weft_answer_word(&answer, "checkpoint", request->checkpoint);
    weft_answer_word(&answer, "architecture", done->family->architecture);
    weft_answer_integer(&answer, "tensors", done->n_tensors);
    weft_answer_integer(&answer, "bytes", done->written.bytes);
    weft_answer_integer(&answer, "files", done->written.n_files);
    weft_answer_word(&answer, "source", source);
    weft_answer_say(&answer, NULL, "%s: %s, %d tensors, %s in %d file%s\n", request->to,
                    done->family->architecture, (int)done->n_tensors,
                    weft_units_show_bytes(done->written.bytes, bytes), (int)done->written.n_files,
                    done->written.n_files == 1 ? "" : "s");
    const bool images = done->family->images;
    if (source != NULL)
        weft_answer_say(&answer, NULL, "config.json and %s of %s\n",
                        images ? "preparation of images" : "tokenizer", source);
    else
        weft_answer_say(&answer, NULL, "config.json is made from the run's model%s\n",
                        images ? "" : "; no tokenizer is known");
    return weft_cli_print_answer(cli, &answer, err);
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
