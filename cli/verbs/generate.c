/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/generate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json/json.h"
#include "base/machine/cores.h"
#include "base/utf8.h"
#include "base/watch.h"
#include "cli/command.h"
#include "library/run_directory.h"
#include "runtime/train/corpora.h"
#include "text/tokenizer.h"

enum { MOST_TOKENS = 1 << 24, DEFAULT_TOKENS = 256, BYTE_VALUES = 256, NEWLINE = 10 };

struct generation {
    struct weft_config *config;
    char *checkpoint;                 /* owned path */
    bool text;                        /* tokens are bytes */
    bool unread;                      /* the data, which would tell, cannot be read */
    struct weft_tokenizer *tokenizer; /* of a model with other tokens; or NULL */
    struct weft_sampling sampling;
    int64_t wanted;
    int64_t n, n_prompt; /* all tokens, and the prompt's */
    int32_t *tokens;
    struct weft_generator *generator;
    struct weft_watch *watch;
};

static enum weft_status read_count(const char *flag, const char *value, int64_t fallback,
                                   int64_t least, int64_t most, int64_t *out,
                                   struct weft_error *err)
{
    char *end = NULL;
    *out = fallback;
    if (value == NULL) return WEFT_OK;
    long long n = strtoll(value, &end, 10);
    if (*value == '\0' || *end != '\0' || n < least || n > most)
        return weft_fail(err, WEFT_E_USAGE, "%s %s: a number from %lld to %lld", flag, value,
                         (long long)least, (long long)most);
    *out = n;
    return WEFT_OK;
}

static enum weft_status read_flags(const struct weft_cli *cli, struct generation *g,
                                   struct weft_error *err)
{
    char *end = NULL;
    WEFT_TRY(read_count("--tokens", cli->tokens, DEFAULT_TOKENS, 1, MOST_TOKENS, &g->wanted, err));
    WEFT_TRY(read_count("--top-k", cli->top_k, 0, 0, INT32_MAX, &g->sampling.top_k, err));
    g->sampling.temperature = 1;
    if (cli->temperature == NULL) return WEFT_OK;
    double t = strtod(cli->temperature, &end);
    if (*cli->temperature == '\0' || *end != '\0' || !(t >= 0 && t <= 100))
        return weft_fail(err, WEFT_E_USAGE,
                         "--temperature %s: a number from 0 (always the likeliest) to 100",
                         cli->temperature);
    g->sampling.temperature = t;
    return WEFT_OK;
}

/* True if tokens are bytes: the vocabulary has 256, or the training data is text. */
static bool is_text(const struct weft_config *config, bool *unread)
{
    struct weft_corpora corpora;
    struct weft_error ignored = {0};
    if (config->model->layers[0].vocab == BYTE_VALUES) return true;
    enum weft_data_format format = (enum weft_data_format)config->train.data_format;
    if (config->train.data == NULL) return false;
    *unread = weft_corpora_open(config->train.data, "train.data", format, INT64_MAX, &corpora,
                                &ignored) != WEFT_OK;
    if (*unread) return false;
    bool text = corpora.text;
    weft_corpora_close(&corpora);
    return text;
}

/* Reads "15496,995" or "15496 995". */
static enum weft_status read_tokens(const char *prompt, struct generation *g,
                                    struct weft_error *err)
{
    for (const char *at = prompt; *at != '\0';) {
        char *end;
        long token = strtol(at, &end, 10);
        if (end == at || token < 0 || token > INT32_MAX)
            return weft_fail(
                err, WEFT_E_USAGE,
                "--prompt %s: %s, so the prompt is numbers of tokens, such as \"15496,995\", or "
                "text with --tokenizer FILE",
                prompt,
                g->unread ? "train.data cannot be read to see if this model's tokens are bytes"
                          : "this model's tokens are not bytes");
        g->tokens[g->n++] = (int32_t)token;
        at = end + strspn(end, ", ");
    }
    return WEFT_OK;
}

/* Encodes the prompt, and makes room for more tokens. */
static enum weft_status encode_prompt(const struct weft_cli *cli, const char *prompt,
                                      struct generation *g, struct weft_error *err)
{
    struct weft_tokens tokens = {0};
    enum weft_status status = weft_tokenizer_encode(g->tokenizer, prompt, strlen(prompt),
                                                    "--prompt", cli->nfc, &tokens, err);
    if (status == WEFT_OK) {
        g->tokens = calloc(tokens.n + 1 + (size_t)g->wanted, sizeof *g->tokens);
        if (g->tokens == NULL) status = weft_fail_memory(err, "tokens");
    }
    for (size_t i = 0; i < tokens.n && status == WEFT_OK; i++)
        g->tokens[g->n++] = tokens.all[i];
    free(tokens.all);
    const int32_t end = weft_tokenizer_end(g->tokenizer);
    g->n_prompt = g->n;
    if (status == WEFT_OK && g->n == 0) g->tokens[g->n++] = end >= 0 ? end : 0;
    g->sampling.below = weft_tokenizer_size(g->tokenizer);
    return status;
}

static enum weft_status begin_tokens(const struct weft_cli *cli, struct generation *g,
                                     struct weft_error *err)
{
    const char *prompt = cli->prompt != NULL ? cli->prompt : "";
    size_t length = strlen(prompt);
    if (g->tokenizer != NULL) return encode_prompt(cli, prompt, g, err);
    g->tokens = calloc(length + 1 + (size_t)g->wanted, sizeof *g->tokens);
    if (g->tokens == NULL) return weft_fail_memory(err, "tokens");
    if (g->text) {
        g->sampling.below = BYTE_VALUES;
        for (size_t i = 0; i < length; i++)
            g->tokens[g->n++] = (unsigned char)prompt[i];
    } else {
        WEFT_TRY(read_tokens(prompt, g, err));
    }
    g->n_prompt = g->n;
    /* A model needs a first token. Without a prompt it is a line's end. */
    if (g->n == 0) g->tokens[g->n++] = g->text ? NEWLINE : 0;
    return WEFT_OK;
}

static enum weft_status continue_tokens(struct generation *g, struct weft_error *err)
{
    for (int64_t i = 0; i < g->wanted; i++) {
        weft_watch_count(g->watch, "token", i, g->wanted);
        WEFT_TRY(weft_generator_next(g->generator, g->tokens, g->n, &g->sampling, &g->tokens[g->n],
                                     err));
        g->n++;
    }
    return WEFT_OK;
}

/* Appends the tokens from `first` on. */
static void put_text(const struct generation *g, int64_t first, struct weft_text *out)
{
    for (int64_t i = first; i < g->n; i++) {
        char byte = (char)g->tokens[i];
        if (g->tokenizer != NULL)
            (void)weft_tokenizer_decode(g->tokenizer, g->tokens[i], out);
        else if (g->text)
            weft_text_append(out, &byte, 1);
        else
            weft_text_addf(out, "%s%d", i > first ? " " : "", g->tokens[i]);
    }
}

static bool is_utf8(const char *bytes, size_t length)
{
    for (size_t at = 0; at < length;) {
        size_t taken = weft_utf8_sequence((const unsigned char *)bytes + at, length - at);
        if (taken == 0 || bytes[at] == '\0') return false;
        at += taken;
    }
    return true;
}

/* Puts tokens, and the text if it is valid UTF-8. */
static void put_json(const struct generation *g, struct weft_text *out)
{
    int64_t first = g->n - g->wanted;
    struct weft_json_writer writer;
    struct weft_text text;
    weft_text_init(&text);
    put_text(g, first, &text);
    weft_json_writer_init(&writer, out, 2);
    weft_json_begin_object(&writer);
    weft_json_put_string(&writer, "checkpoint", g->checkpoint);
    weft_json_put_integer(&writer, "step", weft_generator_step(g->generator));
    weft_json_put_integer(&writer, "prompt_tokens", g->n_prompt);
    if ((g->text || g->tokenizer != NULL) && is_utf8(weft_text_chars(&text), text.length))
        weft_json_put_string(&writer, "text", weft_text_chars(&text));
    weft_json_key(&writer, "tokens");
    weft_json_begin_array(&writer);
    weft_json_flat(&writer);
    for (int64_t i = first; i < g->n; i++)
        weft_json_add_integer(&writer, g->tokens[i]);
    weft_json_end_array(&writer);
    weft_json_end_object(&writer);
    weft_text_add(out, "\n");
    if (!weft_text_ok(&text)) out->failed = true;
    weft_text_finish(&text);
}

static enum weft_status emit_tokens(const struct weft_cli *cli, const struct generation *g,
                                    struct weft_error *err)
{
    struct weft_text out;
    weft_text_init(&out);
    if (cli->json) {
        put_json(g, &out);
    } else {
        put_text(g, g->n_prompt > 0 ? 0 : g->n - g->wanted, &out);
        weft_text_add(&out, "\n");
    }
    /* A file gets the generated bytes. A terminal would obey control characters. */
    bool bytes = cli->raw || (cli->output && strcmp(cli->output, "-") != 0);
    enum weft_status status =
        bytes ? weft_cli_emit_bytes(cli, &out, err) : weft_cli_emit(cli, &out, err);
    weft_text_finish(&out);
    return status;
}

static enum weft_status take_tokenizer(const struct weft_cli *cli, struct generation *g,
                                       struct weft_error *err)
{
    const int64_t vocab = g->config->model->layers[0].vocab;
    WEFT_TRY(weft_tokenizer_read(cli->tokenizer, &g->tokenizer, err));
    if (weft_tokenizer_size(g->tokenizer) <= vocab) return WEFT_OK;
    return weft_fail(
        err, WEFT_E_DATA,
        "%s: has %d tokens, and the model's vocab is %lld: give the tokenizer that its "
        "data was packed with",
        cli->tokenizer, (int)weft_tokenizer_size(g->tokenizer), (long long)vocab);
}

/* Begins a file of NumPy (format 1.0): the header ends at a multiple of 64 bytes. */
static void put_npy_header(int64_t rows, int64_t columns, struct weft_text *out)
{
    enum { MAGIC = 8, LENGTH = 2, ALIGNED = 64 };
    char keys[3 * ALIGNED];
    const int length = snprintf(keys, sizeof keys,
                                "{'descr': '<f4', 'fortran_order': False, 'shape': (%lld, %lld), }",
                                (long long)rows, (long long)columns);
    const int64_t used = MAGIC + LENGTH + length + 1;
    const int64_t header = (used + ALIGNED - 1) / ALIGNED * ALIGNED - MAGIC - LENGTH;
    const char little[LENGTH] = {(char)(header & 0xff), (char)(header >> 8)};
    weft_text_append(out, "\x93NUMPY\x01\x00", MAGIC);
    weft_text_append(out, little, LENGTH);
    weft_text_addf(out, "%-*s\n", (int)(header - 1), keys);
}

/* Writes the logits of all tokens in f32. */
static enum weft_status write_logits(const struct weft_cli *cli, struct generation *g,
                                     struct weft_error *err)
{
    const struct weft_model *model = g->config->model;
    const int64_t vocab = model->layers[model->n_layers - 1].vocab;
    const int64_t rows = weft_generator_rows(g->generator, g->n);
    float *logits = calloc((size_t)(rows * vocab), sizeof *logits);
    if (logits == NULL) return weft_fail_memory(err, "logits");
    struct weft_text out;
    weft_text_init(&out);
    enum weft_status status = weft_generator_logits(g->generator, g->tokens, g->n, logits, err);
    put_npy_header(rows, vocab, &out);
    weft_text_append(&out, (const char *)logits, (size_t)(rows * vocab) * sizeof *logits);
    free(logits);
    if (status == WEFT_OK && !weft_text_ok(&out)) status = weft_fail_memory(err, "logits");
    if (status == WEFT_OK)
        status = weft_file_write(cli->logits, weft_text_chars(&out), out.length, err);
    weft_text_finish(&out);
    return status;
}

static enum weft_status generate_tokens(const struct weft_cli *cli, struct generation *g,
                                        struct weft_error *err)
{
    char config[WEFT_RUN_FILE_BYTES];
    WEFT_TRY(read_flags(cli, g, err));
    WEFT_TRY(weft_run_find(cli->operands[0], cli->config, config, &g->checkpoint, err));
    WEFT_TRY(weft_config_load(&(struct weft_config_input){.source = config,
                                                          .overrides = cli->overrides,
                                                          .n_overrides = cli->n_overrides,
                                                          .kinds = cli->kinds},
                              &g->config, err));
    WEFT_TRY(weft_generate_check_model(g->config->model, err));
    g->sampling.seed = (uint64_t)g->config->train.seed;
    g->text = is_text(g->config, &g->unread);
    if (cli->tokenizer != NULL) WEFT_TRY(take_tokenizer(cli, g, err));
    WEFT_TRY(begin_tokens(cli, g, err));
    int64_t threads = g->config->cluster.threads;
    WEFT_TRY(weft_generator_create(g->config, g->checkpoint,
                                   threads > 0 ? (int32_t)threads : weft_cores(), &g->generator,
                                   err));
    if (cli->no_cache) weft_generator_forget(g->generator);
    weft_watch_begin(g->watch, "generate");
    enum weft_status status = continue_tokens(g, err);
    weft_watch_end(g->watch);
    WEFT_TRY(status);
    if (cli->logits != NULL) WEFT_TRY(write_logits(cli, g, err));
    return emit_tokens(cli, g, err);
}

static enum weft_status run_generate(const struct weft_cli *cli, struct weft_error *err)
{
    struct generation g = {.watch = cli->watch};
    enum weft_status status = generate_tokens(cli, &g, err);
    weft_generator_destroy(g.generator);
    weft_tokenizer_destroy(g.tokenizer);
    weft_config_destroy(g.config);
    free(g.checkpoint);
    free(g.tokens);
    return status;
}

const struct weft_command weft_command_generate = {
    .name = "generate",
    .usage = "RUN",
    .summary = "continues a text with a trained model",
    .details =
        "RUN is the directory of a run, whose latest checkpoint is taken, or "
        "RUN/checkpoints/step-N. Samples N tokens (256), each from the model's probabilities at "
        "temperature T (1; 0: always the likeliest) among the K likeliest (0: all). The same "
        "checkpoint, prompt, flags and --seed give the same tokens. A model that was trained on a "
        "text writes text; one that was trained on a token file takes and writes numbers of "
        "tokens, or text with --tokenizer FILE. Another config: --config CONFIG. Control "
        "characters and bytes that are no UTF-8 are written as \\u001b and \\xff; --raw and -o "
        "FILE give the bytes. Keys and values of earlier tokens are kept while the text is no "
        "longer than train.seq_len; --no-cache computes every token from all before it, for "
        "comparison. --logits FILE.npy writes an array of NumPy, f32 [tokens, vocab], for prompt "
        "and new tokens, at most the last train.seq_len. Row i has the logits of the token after "
        "token i.",
    .flags = "--prompt --tokens --tokenizer --nfc --temperature --top-k --raw --no-cache --logits "
             "--seed --config --set --layers",
    .least_operands = 1,
    .most_operands = 1,
    .run = run_generate,
};
