/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "cli/command.h"
#include "report/answer.h"
#include "runtime/train/corpora.h"
#include "runtime/train/corpus_kind.h"
#include "text/token_file.h"
#include "text/tokenizer.h"

enum {
    MOST_FILE_BYTES = 1 << 30,
    BYTE_VALUES = 256,
    NEWLINE = 10,
    PIECE_TOKENS = 65536,
    LABEL_WORDS = 4
};

/* Packing */

struct packing {
    const struct weft_cli *cli;
    struct weft_tokenizer *tokenizer; /* NULL: tokens are bytes */
    struct weft_token_file *file;
    struct weft_tokens tokens; /* of one document */
    int64_t documents, bytes;
};

/* Tokens of a document's bytes, which end with a line's end. */
static enum weft_status add_bytes(struct packing *p, const char *text, size_t length,
                                  struct weft_error *err)
{
    for (size_t i = 0; i < length; i++)
        WEFT_TRY(weft_tokens_add(&p->tokens, (unsigned char)text[i], err));
    return text[length - 1] == NEWLINE ? WEFT_OK : weft_tokens_add(&p->tokens, NEWLINE, err);
}

/* Tokens of a document, after the token that separates documents, if the tokenizer has one. */
static enum weft_status add_encoded(struct packing *p, const char *source, const char *text,
                                    size_t length, struct weft_error *err)
{
    const int32_t end = weft_tokenizer_end(p->tokenizer);
    if (end >= 0) WEFT_TRY(weft_tokens_add(&p->tokens, end, err));
    return weft_tokenizer_encode(p->tokenizer, text, length, source, p->cli->nfc, &p->tokens, err);
}

static enum weft_status add_document(struct packing *p, const char *source, const char *text,
                                     size_t length, struct weft_error *err)
{
    if (length == 0) return WEFT_OK;
    p->tokens.n = 0;
    p->documents++;
    p->bytes += (int64_t)length;
    WEFT_TRY(p->tokenizer == NULL ? add_bytes(p, text, length, err)
                                  : add_encoded(p, source, text, length, err));
    return weft_token_file_add(p->file, p->tokens.all, p->tokens.n, err);
}

/* A line's JSON object, with the text in one member. */
static enum weft_status add_record(struct packing *p, const char *source, const char *line,
                                   size_t length, struct weft_error *err)
{
    struct weft_json *document = NULL;
    const char *text = NULL;
    WEFT_TRY(weft_json_parse(line, length, source, &document, err));
    enum weft_status status =
        weft_json_need_string(weft_json_root(document), source, p->cli->field, &text, err);
    if (status == WEFT_OK) status = add_document(p, source, text, strlen(text), err);
    weft_json_destroy(document);
    return status;
}

static enum weft_status add_records(struct packing *p, const char *path, const char *bytes,
                                    size_t length, struct weft_error *err)
{
    struct weft_text source;
    enum weft_status status = WEFT_OK;
    int64_t number = 0;
    weft_text_init(&source);
    for (const char *at = bytes, *end = bytes + length; at < end && status == WEFT_OK;) {
        const char *newline = memchr(at, '\n', (size_t)(end - at)), *stop = newline ? newline : end;
        number++;
        source.length = 0;
        weft_text_addf(&source, "%s, record on line %" PRId64, path, number);
        if (strspn(at, " \t\r") < (size_t)(stop - at))
            status = add_record(p, weft_text_chars(&source), at, (size_t)(stop - at), err);
        at = stop + 1;
    }
    weft_text_finish(&source);
    return status;
}

static bool has_end(const char *path, const char *end)
{
    const size_t length = strlen(path), tail = strlen(end);
    return length > tail && strcmp(path + length - tail, end) == 0;
}

/* Checks a plain file before all of it is read. *known: it was one. */
static enum weft_status check_plain(const char *path, bool *known, struct weft_error *err)
{
    unsigned char *head = NULL;
    struct stat about;
    enum weft_status status = WEFT_OK;
    *known = stat(path, &about) == 0 && S_ISREG(about.st_mode);
    FILE *file = *known ? fopen(path, "rbe") : NULL;
    *known = file != NULL;
    if (file == NULL) return WEFT_OK;
    head = malloc(WEFT_CORPUS_PIECE_BYTES);
    if (head == NULL) status = weft_fail_memory(err, path);
    if (status == WEFT_OK)
        status = weft_corpus_check_unpacked(path, head,
                                            fread(head, 1, WEFT_CORPUS_PIECE_BYTES, file), err);
    free(head);
    fclose(file);
    return status;
}

/* Reads a file that may be a text: the caller frees *bytes. */
static enum weft_status read_unpacked(const char *path, char **bytes, size_t *length,
                                      struct weft_error *err)
{
    const bool is_input = strcmp(path, "-") == 0;
    bool known = false;
    if (!is_input) WEFT_TRY(check_plain(path, &known, err));
    WEFT_TRY(weft_file_read(path, MOST_FILE_BYTES, bytes, length, err));
    if (known) return WEFT_OK;
    const enum weft_status status = weft_corpus_check_unpacked(
        is_input ? "standard input" : path, (const unsigned char *)*bytes, *length, err);
    if (status != WEFT_OK) free(*bytes);
    return status;
}

static enum weft_status add_file(struct packing *p, const char *path, struct weft_error *err)
{
    static const char *const of_records[] = {".jsonl", ".ndjson", ".json"};
    char *bytes = NULL;
    size_t length = 0;
    for (size_t i = 0; i < sizeof of_records / sizeof *of_records; i++)
        if (p->cli->field == NULL && has_end(path, of_records[i]))
            return weft_fail(err, WEFT_E_USAGE,
                             "%s: is JSON by its name: give --field NAME for the member with the "
                             "text, such as --field text",
                             path);
    WEFT_TRY(read_unpacked(path, &bytes, &length, err));
    const enum weft_status status = p->cli->field != NULL
                                        ? add_records(p, path, bytes, length, err)
                                        : add_document(p, path, bytes, length, err);
    free(bytes);
    return status;
}

static enum weft_status report_packing(const struct packing *p, struct weft_error *err)
{
    const int64_t tokens = weft_token_file_count(p->file);
    struct weft_answer answer = {0};
    weft_answer_word(&answer, "file", p->cli->output);
    weft_answer_integer(&answer, "documents", p->documents);
    weft_answer_integer(&answer, "bytes", p->bytes);
    weft_answer_integer(&answer, "tokens", tokens);
    weft_answer_say(
        &answer, NULL, "%s: %" PRId64 " tokens of %" PRId64 " documents, %.2f bytes each\n",
        p->cli->output, tokens, p->documents, tokens > 0 ? (double)p->bytes / (double)tokens : 0.0);
    return weft_cli_print_answer(p->cli, &answer, err);
}

static enum weft_status pack_files(struct packing *p, struct weft_error *err)
{
    const struct weft_cli *cli = p->cli;
    if (cli->n_operands < 2 || cli->output == NULL || strcmp(cli->output, "-") == 0)
        return weft_fail(err, WEFT_E_USAGE,
                         "data pack: give the files to pack, and -o FILE for the token file");
    if (cli->tokenizer != NULL) WEFT_TRY(weft_tokenizer_read(cli->tokenizer, &p->tokenizer, err));
    WEFT_TRY(weft_token_file_create(
        cli->output, p->tokenizer != NULL ? weft_tokenizer_size(p->tokenizer) : BYTE_VALUES,
        &p->file, err));
    for (int32_t i = 1; i < cli->n_operands; i++)
        WEFT_TRY(add_file(p, cli->operands[i], err));
    if (p->documents == 0)
        return weft_fail(err, WEFT_E_DATA, "%s: would be empty, because no input has text",
                         cli->output);
    WEFT_TRY(weft_token_file_finish(p->file, err));
    return report_packing(p, err);
}

static enum weft_status run_pack(const struct weft_cli *cli, struct weft_error *err)
{
    struct packing packing = {.cli = cli};
    const enum weft_status status = pack_files(&packing, err);
    weft_token_file_destroy(packing.file);
    weft_tokenizer_destroy(packing.tokenizer);
    free(packing.tokens.all);
    return status;
}

/* Facts of a file */

/* The largest token. Reads all of them. */
static enum weft_status find_largest(struct weft_corpora *corpora, int32_t *out,
                                     struct weft_error *err)
{
    int32_t *piece = malloc(PIECE_TOKENS * sizeof *piece);
    enum weft_status status = piece != NULL ? WEFT_OK : weft_fail_memory(err, "tokens");
    *out = -1;
    for (int64_t at = 0; at < corpora->tokens && status == WEFT_OK; at += PIECE_TOKENS) {
        const int64_t left = corpora->tokens - at, n = left < PIECE_TOKENS ? left : PIECE_TOKENS;
        status = weft_corpora_read(corpora, at, n, piece, err);
        for (int64_t i = 0; i < n && status == WEFT_OK; i++)
            if (piece[i] > *out) *out = piece[i];
    }
    free(piece);
    return status;
}

/* `at` is the first word of the sample. */
static enum weft_status fail_label(const struct weft_corpora *corpora, int64_t at, int label,
                                   struct weft_error *err)
{
    const char *path = weft_corpora_locate(corpora, &at);
    return weft_fail(err, WEFT_E_DATA,
                     "%s: sample %" PRId64 " (from 0) has label %d: labels are from 0 on", path,
                     at / weft_sample_file_words(&corpora->samples), label);
}

/* The largest label. Reads all of them. */
static enum weft_status find_largest_label(struct weft_corpora *corpora, int32_t *out,
                                           struct weft_error *err)
{
    const struct weft_sample_file *form = &corpora->samples;
    const int64_t words = weft_sample_file_words(form), label = weft_sample_file_label_words(form);
    int32_t piece[LABEL_WORDS];
    *out = -1;
    for (int64_t i = 0; i < form->n; i++) {
        WEFT_TRY(weft_corpora_read(corpora, (i + 1) * words - label, label, piece, err));
        const int32_t of = weft_sample_file_label(form, piece);
        if (of < 0) return fail_label(corpora, i * words, (int)of, err);
        if (of > *out) *out = of;
    }
    return WEFT_OK;
}

static enum weft_status fail_token(const struct weft_corpora *corpora, int64_t at, int64_t number,
                                   int token, struct weft_error *err)
{
    const char *path = weft_corpora_locate(corpora, &at);
    return weft_fail(err, WEFT_E_DATA,
                     "%s: token %" PRId64 " of sample %" PRId64
                     " (from 0) is %d: tokens are from 0 on",
                     path, number, at / weft_sample_file_words(&corpora->samples), token);
}

/* The largest token of samples of tokens. Reads all of them. */
static enum weft_status find_largest_of_samples(struct weft_corpora *corpora, int32_t *out,
                                                struct weft_error *err)
{
    const struct weft_sample_file *form = &corpora->samples;
    const int64_t words = weft_sample_file_words(form);
    int32_t *sample = malloc((size_t)words * sizeof *sample);
    enum weft_status status = sample != NULL ? WEFT_OK : weft_fail_memory(err, "a sample");
    *out = -1;
    for (int64_t i = 0; i < form->n && status == WEFT_OK; i++) {
        status = weft_corpora_read(corpora, i * words, words, sample, err);
        for (int64_t j = 0; j < form->rows && status == WEFT_OK; j++) {
            if (sample[j] > *out) *out = sample[j];
            if (sample[j] < 0) status = fail_token(corpora, i * words, j, (int)sample[j], err);
        }
    }
    free(sample);
    return status;
}

static enum weft_status emit_token_samples(const struct weft_cli *cli, struct weft_corpora *corpora,
                                           int32_t label, struct weft_error *err)
{
    const struct weft_sample_file *form = &corpora->samples;
    struct weft_answer answer = {0};
    int32_t token;
    WEFT_TRY(find_largest_of_samples(corpora, &token, err));
    weft_answer_word(&answer, "path", corpora->path);
    weft_answer_word(&answer, "form", "token_samples");
    weft_answer_integer(&answer, "files", corpora->n);
    weft_answer_integer(&answer, "samples", form->n);
    weft_answer_integer(&answer, "tokens", form->rows);
    weft_answer_integer(&answer, "least_vocab", (int64_t)token + 1);
    weft_answer_integer(&answer, "least_classes", (int64_t)label + 1);
    weft_answer_say(&answer, NULL,
                    "%s: %" PRId64 " samples of %" PRId64
                    " tokens in %d files; the largest token is %d, so vocab must be at least "
                    "%" PRId64 "; the largest label is %d, so classes must be at least %" PRId64
                    "\n",
                    corpora->path, form->n, form->rows, (int)corpora->n, (int)token,
                    (int64_t)token + 1, (int)label, (int64_t)label + 1);
    return weft_cli_emit_answer(cli, &answer, err);
}

static enum weft_status emit_sample_facts(const struct weft_cli *cli,
                                          const struct weft_corpora *corpora, int32_t largest,
                                          struct weft_error *err)
{
    const struct weft_sample_file *form = &corpora->samples;
    struct weft_answer answer = {0};
    weft_answer_word(&answer, "path", corpora->path);
    weft_answer_word(&answer, "form", "samples");
    weft_answer_integer(&answer, "files", corpora->n);
    weft_answer_integer(&answer, "samples", form->n);
    weft_answer_integer(&answer, "rows", form->rows);
    weft_answer_integer(&answer, "numbers", form->width);
    weft_answer_integer(&answer, "number_bits", 8 * form->number_bytes);
    weft_answer_integer(&answer, "least_classes", (int64_t)largest + 1);
    weft_answer_say(&answer, NULL,
                    "%s: %" PRId64 " samples of %" PRId64 " rows of %" PRId64
                    " numbers of %d bits in %d files; the largest label is %d, so classes must be "
                    "at least %" PRId64 "\n",
                    corpora->path, form->n, form->rows, form->width, 8 * (int)form->number_bytes,
                    (int)corpora->n, (int)largest, (int64_t)largest + 1);
    return weft_cli_emit_answer(cli, &answer, err);
}

static enum weft_status emit_facts(const struct weft_cli *cli, const struct weft_corpora *corpora,
                                   int32_t largest, struct weft_error *err)
{
    const int bits = 8 * corpora->all[0].token_bytes;
    struct weft_answer answer = {0};
    weft_answer_word(&answer, "path", corpora->path);
    weft_answer_word(&answer, "form", corpora->text ? "text" : "tokens");
    weft_answer_integer(&answer, "files", corpora->n);
    weft_answer_integer(&answer, "token_bits", bits);
    weft_answer_integer(&answer, "tokens", corpora->tokens);
    weft_answer_integer(&answer, "least_vocab", largest + 1);
    weft_answer_say(&answer, NULL,
                    "%s: %s, %" PRId64 " tokens of %d bits in %d files; the largest token is %d, "
                    "so vocab must be at least %d\n",
                    corpora->path, corpora->text ? "text, read as bytes" : "token file",
                    corpora->tokens, bits, (int)corpora->n, largest, largest + 1);
    return weft_cli_emit_answer(cli, &answer, err);
}

static enum weft_status run_info(const struct weft_cli *cli, struct weft_error *err)
{
    struct weft_corpora corpora;
    int32_t largest = -1;
    if (cli->n_operands != 2)
        return weft_fail(err, WEFT_E_USAGE, "data info: give one file, or one pattern in quotes");
    WEFT_TRY(
        weft_corpora_open(cli->operands[1], "data info", WEFT_DATA_AUTO, INT64_MAX, &corpora, err));
    const bool samples = corpora.samples.n > 0;
    enum weft_status status = samples ? find_largest_label(&corpora, &largest, err)
                                      : find_largest(&corpora, &largest, err);
    if (status == WEFT_OK)
        status = corpora.samples.tokens ? emit_token_samples(cli, &corpora, largest, err)
                 : samples              ? emit_sample_facts(cli, &corpora, largest, err)
                                        : emit_facts(cli, &corpora, largest, err);
    weft_corpora_close(&corpora);
    return status;
}

static enum weft_status run_data(const struct weft_cli *cli, struct weft_error *err)
{
    const char *work = cli->operands[0];
    if (strcmp(work, "pack") == 0) return run_pack(cli, err);
    if (strcmp(work, "info") == 0) return run_info(cli, err);
    return weft_fail(err, WEFT_E_USAGE, "data %s: there are pack IN... -o FILE, and info FILE",
                     work);
}

const struct weft_command weft_command_data = {
    .name = "data",
    .usage = "pack|info FILE...",
    .summary = "packs texts into a token file to train on, or tells of one",
    .details =
        "pack writes the tokens of all files to -o FILE. A file is a document; with --field NAME "
        "it has JSON records, one a line, with a document in each. --tokenizer names a "
        "tokenizer.json of Hugging Face with byte-pair encoding, as of GPT-2, Llama 3 or Qwen. "
        "Its token <|endoftext|> or <|end_of_text|> precedes each document. Without a tokenizer "
        "tokens are bytes, and a document ends with a line's end. info counts the tokens of a "
        "file, and tells the vocabulary that they need, or the samples of a file of samples and "
        "the classes.",
    .flags = "--tokenizer --field --nfc",
    .least_operands = 1,
    .most_operands = WEFT_CLI_OPERANDS,
    .run = run_data,
};
