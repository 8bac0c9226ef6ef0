/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* for realpath */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json/json.h"
#include "base/log.h"
#include "base/machine/cores.h"
#include "base/machine/memory.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/job/shipped.h"
#include "cli/terminal.h"
#include "runtime/train/train.h"
#include "spec/config.h"
#include "spec/hub/layers.h"
#include "spec/hub_model.h"

static const char usual_file[] = "run.json", usual_model[] = "gpt-10m",
                  usual_data[] = "/usr/share/common-licenses/GPL-3";
enum { USUAL_TOKENS = 128, USUAL_RANKS = 2, MOST_TOKENS = 2048, LEAST_LIMIT = 256 << 20 };

/* The config to write. */
struct draft {
    const struct weft_cli *cli;
    const char *file, *data;
    struct weft_text model;    /* path of its file */
    struct weft_json *layers;  /* a model of Weft, which is copied; NULL: one of Hugging Face */
    struct weft_json *cluster; /* of --cluster; NULL: this machine */
    int64_t positions;         /* of the model; 0: not known */
    bool is_here;              /* the cluster is this machine */
};

static enum weft_status list_shipped(const struct weft_cli *cli, struct weft_error *err)
{
    static const char *const titles[] = {
        [WEFT_SHIPPED_RUNS] = "configs (weft plan NAME)",
        [WEFT_SHIPPED_MODELS] = "models (--model NAME)",
        [WEFT_SHIPPED_CLUSTERS] = "clusters (--cluster NAME)",
    };
    struct weft_text out;
    weft_cli_report_init(cli, cli->output, &out);
    for (int kind = WEFT_SHIPPED_RUNS; kind <= WEFT_SHIPPED_CLUSTERS; kind++) {
        struct weft_text names;
        weft_text_init(&names);
        weft_shipped_list((enum weft_shipped)kind, &names);
        weft_text_addf(&out, "%s: %s\n", titles[kind], weft_text_chars(&names));
        weft_text_finish(&names);
    }
    enum weft_status status = weft_cli_emit_text(cli, &out, err);
    weft_text_finish(&out);
    return status;
}

/* Refuses a file that is there, and a folder that takes none. */
static enum weft_status check_file(const char *file, struct weft_error *err)
{
    char folder[4096];
    const char *slash = strrchr(file, '/');
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - file) + 1 : 1,
             slash ? file : ".");
    if (access(file, F_OK) == 0)
        return weft_fail(err, WEFT_E_CREATE,
                         "%s: is there already, and is not written over: give another name, as in "
                         "weft init other.json",
                         file);
    if (access(folder, W_OK | X_OK) == 0) return WEFT_OK;
    return weft_fail(err, WEFT_E_CREATE, "%s: cannot write there: %s", file, strerror(errno));
}

/* The absolute path of the data, which must have a byte. A file with a size is not read, since it
 * may be large. */
static enum weft_status find_data(const struct weft_cli *cli, char **out, struct weft_error *err)
{
    const char *given = cli->data != NULL ? cli->data : usual_data;
    char *bytes = NULL;
    size_t length = 1;
    struct stat about;
    if (cli->data == NULL && access(usual_data, R_OK) != 0)
        return weft_fail(err, WEFT_E_USAGE, "init needs a text to train on: give --data FILE");
    const bool has_size = stat(given, &about) == 0 && S_ISREG(about.st_mode) && about.st_size > 0;
    if (!has_size || access(given, R_OK) != 0)
        WEFT_TRY(weft_file_read(given, SIZE_MAX / 2, &bytes, &length, err));
    free(bytes);
    if (length == 0)
        return weft_fail(err, WEFT_E_DATA, "%s: is empty: give a text, or a token file", given);
    *out = realpath(given, NULL);
    return *out != NULL ? WEFT_OK
                        : weft_fail(err, WEFT_E_NO_INPUT, "%s: %s", given, strerror(errno));
}

/* Finds the model's file. A model of Weft is copied, so that the config needs no other file. */
static enum weft_status find_model(struct draft *draft, struct weft_error *err)
{
    const struct weft_cli *cli = draft->cli;
    const char *given = cli->hf ? cli->hf : cli->model ? cli->model : usual_model;
    struct weft_text found;
    if (cli->hf && cli->model)
        return weft_fail(err, WEFT_E_USAGE, "--hf %s: takes the place of --model; give one of them",
                         cli->hf);
    weft_text_init(&found);
    enum weft_status status = weft_shipped_find(WEFT_SHIPPED_MODELS, given, &found, err);
    if (status == WEFT_OK) weft_hub_model_path(weft_text_chars(&found), &draft->model);
    weft_text_finish(&found);
    WEFT_TRY(status);
    WEFT_TRY(weft_json_read(weft_text_chars(&draft->model), &draft->layers, err));
    const struct weft_json_value *root = weft_json_root(draft->layers);
    draft->positions = weft_hub_positions(root);
    if (!weft_hub_model_is(root)) return WEFT_OK;
    weft_json_destroy(draft->layers);
    draft->layers = NULL;
    return WEFT_OK;
}

static enum weft_status find_cluster(struct draft *draft, struct weft_error *err)
{
    struct weft_text path;
    draft->is_here = draft->cli->cluster == NULL;
    if (draft->is_here) return WEFT_OK;
    weft_text_init(&path);
    enum weft_status status =
        weft_shipped_find(WEFT_SHIPPED_CLUSTERS, draft->cli->cluster, &path, err);
    if (status == WEFT_OK) status = weft_json_read(weft_text_chars(&path), &draft->cluster, err);
    weft_text_finish(&path);
    return status;
}

/* A quarter of this machine's memory for all ranks, in units of 64 MiB. */
static int64_t choose_limit(int64_t ranks)
{
    char name[WEFT_MEMORY_NAME_BYTES];
    const int64_t most = INT64_C(8) << 30, left = weft_memory_available(name, sizeof name);
    const int64_t least = left < most ? left : most;
    const int64_t bytes = least / 4 / ranks / (64 << 20) * (64 << 20);
    return bytes > LEAST_LIMIT ? bytes : LEAST_LIMIT;
}

static void put_cluster(const struct draft *draft, struct weft_json_writer *writer)
{
    const struct weft_cli *cli = draft->cli;
    const struct weft_json_value *at =
        draft->cluster ? weft_json_first(weft_json_root(draft->cluster)) : NULL;
    const int32_t cores = weft_cores();
    char limit[WEFT_UNITS_TEXT_BYTES];
    weft_json_key(writer, "cluster");
    weft_json_begin_object(writer);
    for (; at != NULL; at = weft_json_next(at)) {
        const bool is_given =
            (cli->ranks > 0 && strcmp(weft_json_name(at), "ranks") == 0) ||
            (cli->memory_limit && strcmp(weft_json_name(at), "memory_limit") == 0);
        if (is_given) continue;
        weft_json_key(writer, weft_json_name(at));
        weft_json_add_value(writer, at);
    }
    const int64_t ranks = cli->ranks > 0 ? cli->ranks : cores < USUAL_RANKS ? cores : USUAL_RANKS;
    if (draft->is_here)
        weft_json_put_string(writer, "$comment",
                             "This machine: processes on its cores. Without device figures or a "
                             "profile, weft measures it first. memory_limit is of each rank.");
    if (draft->is_here || cli->ranks > 0) weft_json_put_integer(writer, "ranks", ranks);
    if (cli->memory_limit) weft_json_put_string(writer, "memory_limit", cli->memory_limit);
    if (draft->is_here && !cli->memory_limit) {
        weft_units_write_bytes_shortly(choose_limit(ranks), limit);
        weft_json_put_string(writer, "memory_limit", limit);
    }
    weft_json_end_object(writer);
}

static void put_train(const struct draft *draft, struct weft_json_writer *writer)
{
    const int64_t usual = draft->is_here ? USUAL_TOKENS : MOST_TOKENS;
    const int64_t tokens =
        draft->positions > 0 && draft->positions < usual ? draft->positions : usual;
    weft_json_key(writer, "train");
    weft_json_begin_object(writer);
    weft_json_put_string(writer, "$comment",
                         "micro_batch: samples of a rank at a time, of seq_len tokens. data: a "
                         "text is read as bytes; weft data pack makes token files.");
    weft_json_put_integer(writer, "steps", 100);
    weft_json_put_integer(writer, "micro_batch", draft->is_here ? 4 : 1);
    weft_json_put_integer(writer, "seq_len", tokens);
    weft_json_put_string(writer, "data", draft->data);
    if (!draft->is_here) {
        weft_json_key(writer, "precision");
        weft_json_begin_object(writer);
        weft_json_flat(writer);
        weft_json_put_string(writer, "compute", "bf16");
        weft_json_end_object(writer);
    }
    weft_json_key(writer, "optimizer");
    weft_json_begin_object(writer);
    weft_json_flat(writer);
    weft_json_put_string(writer, "type", "adamw");
    weft_json_put_number(writer, "lr", 1e-3);
    weft_json_end_object(writer);
    weft_json_put_number(writer, "clip_norm", 1);
    weft_json_end_object(writer);
}

static enum weft_status write_draft(const struct draft *draft, struct weft_text *out,
                                    struct weft_error *err)
{
    struct weft_json_writer writer;
    weft_json_writer_init(&writer, out, 2);
    weft_json_begin_object(&writer);
    weft_json_put_string(
        &writer, "$comment",
        "Written by `weft init`. `weft help keys` lists every key, and `weft check "
        "FILE` names all errors at once.");
    weft_json_put_integer(&writer, "version", 1);
    weft_json_key(&writer, "model");
    if (draft->layers != NULL) {
        weft_json_add_value(&writer, weft_json_root(draft->layers));
    } else {
        char *path = realpath(weft_text_chars(&draft->model), NULL);
        weft_json_add_string(&writer, path != NULL ? path : weft_text_chars(&draft->model));
        free(path);
    }
    put_cluster(draft, &writer);
    put_train(draft, &writer);
    weft_json_key(&writer, "plan");
    weft_json_begin_object(&writer);
    weft_json_put_string(
        &writer, "$comment",
        "recompute: none, and if nothing fits, auto. `weft best FILE` compares all "
        "ways to use the memory.");
    weft_json_put_string(&writer, "recompute", "if-needed");
    weft_json_put_number(&writer, "gap", 0.001);
    weft_json_end_object(&writer);
    weft_json_end_object(&writer);
    weft_text_add(out, "\n");
    return weft_text_ok(out) ? WEFT_OK : weft_fail_memory(err, "a config");
}

/* Checks the config as `weft check` does, and one of this machine as `weft train` does. */
static enum weft_status check_draft(const struct draft *draft, const struct weft_text *text,
                                    struct weft_error *err)
{
    const struct weft_config_input input = {.bytes = weft_text_chars(text),
                                            .length = text->length,
                                            .source = draft->file,
                                            .directory = "",
                                            .kinds = draft->cli->kinds};
    struct weft_config *config = NULL;
    WEFT_TRY(weft_config_load(&input, &config, err));
    const enum weft_status status = draft->is_here ? weft_train_check(config, err) : WEFT_OK;
    weft_config_destroy(config);
    return status;
}

static enum weft_status tell_next(const struct draft *draft, struct weft_error *err)
{
    const struct weft_cli *cli = draft->cli;
    struct weft_text out;
    weft_cli_report_init(cli, NULL, &out);
    weft_text_addf(&out, "%s: written\n", draft->file);
    weft_text_addf(&out, "next: weft check %s\n      weft best %s\n", draft->file, draft->file);
    if (draft->is_here)
        weft_text_addf(&out, "      weft train %s\n", draft->file);
    else
        weft_text_addf(&out, "      weft plan %s -o plan.json\n", draft->file);
    struct weft_cli line = *cli;
    line.output = NULL;
    enum weft_status status = weft_cli_emit_text(&line, &out, err);
    weft_text_finish(&out);
    return status;
}

static enum weft_status make_config(struct draft *draft, struct weft_error *err)
{
    struct weft_text text;
    WEFT_TRY(check_file(draft->file, err));
    WEFT_TRY(find_model(draft, err));
    WEFT_TRY(find_cluster(draft, err));
    weft_text_init(&text);
    enum weft_status status = write_draft(draft, &text, err);
    if (status == WEFT_OK) status = check_draft(draft, &text, err);
    if (status == WEFT_OK)
        status = weft_file_write(draft->file, weft_text_chars(&text), text.length, err);
    weft_text_finish(&text);
    return status == WEFT_OK ? tell_next(draft, err) : status;
}

static enum weft_status run_init(const struct weft_cli *cli, struct weft_error *err)
{
    struct draft draft = {.cli = cli};
    char *data = NULL;
    if (cli->list) return list_shipped(cli, err);
    if (cli->output && cli->n_operands > 0)
        return weft_fail(err, WEFT_E_USAGE, "-o %s: is the file %s too; give one of them",
                         cli->output, cli->operands[0]);
    draft.file = cli->output ? cli->output : cli->n_operands > 0 ? cli->operands[0] : usual_file;
    weft_text_init(&draft.model);
    enum weft_status status = find_data(cli, &data, err);
    draft.data = data;
    if (status == WEFT_OK) status = make_config(&draft, err);
    free(data);
    weft_json_destroy(draft.layers);
    weft_json_destroy(draft.cluster);
    weft_text_finish(&draft.model);
    return status;
}

const struct weft_command weft_command_init = {
    .name = "init",
    .usage = "[FILE]",
    .summary = "writes a config to begin with, for a text of your own",
    .details =
        "Writes FILE (run.json unless given), which trains here at once: a byte-level GPT, or the\n"
        "model of --model or --hf, on the text of --data, with -n ranks and --memory-limit for\n"
        "each. --cluster NAME writes it for those machines instead. Nothing is written over, and\n"
        "nothing is written that `weft check` refuses. --list names the configs, models and\n"
        "clusters that come with the program.",
    .flags = "--data --model --hf --cluster --ranks --memory-limit --list",
    .least_operands = 0,
    .most_operands = 1,
    .run = run_init,
};
