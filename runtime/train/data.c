/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/data.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "runtime/train/corpora.h"

struct weft_data {
    struct weft_corpora corpora;
    enum weft_data_part part;
    bool shares;           /* the held-out part is in the training data's files */
    int64_t first, length; /* the part, in tokens of the corpora */
    int64_t sample_tokens; /* read by the model; the next one is a target too */
    int64_t seq_len;
    int64_t of;      /* held-out samples of one evaluation */
    int64_t classes; /* of a classifier; 0: the target is the next token */
    bool tokens;     /* the model begins with an embedding */
    int64_t record;  /* words of a sample with its label; 0: samples begin at any token */
    uint64_t seed;
    struct weft_padding padding;
    struct weft_masking masked;
    int64_t vocab;       /* of the embedding */
    int64_t least_vocab; /* of the layers that have one */
    int32_t *sample;     /* [read_tokens], scratch */
    int64_t read_tokens; /* of a sample, with its targets */
};

/* The least vocabulary among the layers that have one. */
static int64_t least_vocab(const struct weft_model *model)
{
    const struct weft_layer *ends[] = {&model->layers[0], &model->layers[model->n_layers - 1]};
    int64_t least = INT64_MAX;
    for (int i = 0; i < 2; i++) {
        if (ends[i]->vocab > 0 && ends[i]->vocab < least) least = ends[i]->vocab;
    }
    return least;
}

bool weft_data_has_held_out(const struct weft_config *config)
{
    return config->train.validation.data != NULL || config->train.validation.share > 0;
}

bool weft_data_leaves_out(const struct weft_config *config)
{
    return !weft_model_tells_classes(config->model) &&
           (config->train.padding.given || config->train.masked.given);
}

int64_t weft_data_count(const int32_t *targets, int64_t n)
{
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++)
        count += targets[i] != WEFT_LEFT_OUT && targets[i] != WEFT_NO_TARGET;
    return count;
}

/* Sets the part's range of tokens in the corpora. */
static enum weft_status take_part(struct weft_data *data, const struct weft_train *train,
                                  struct weft_error *err)
{
    int64_t held = 0;
    if (train->validation.data == NULL)
        held = (int64_t)((double)data->corpora.tokens * train->validation.share);
    if (data->record > 0) held -= held % data->record;
    data->shares = data->part == WEFT_DATA_HELD_OUT && train->validation.data == NULL;
    data->first = data->shares ? data->corpora.tokens - held : 0;
    data->length = data->shares                       ? held
                   : data->part == WEFT_DATA_TRAINING ? data->corpora.tokens - held
                                                      : data->corpora.tokens;
    if (data->length >= data->read_tokens) return WEFT_OK;
    if (data->record > 0)
        return weft_fail(err, WEFT_E_DATA,
                         "%s has %" PRId64 " samples, and train.validation.share leaves none %s: "
                         "use more samples, or another share",
                         data->corpora.path, data->corpora.samples.n,
                         data->shares ? "to hold out" : "to train on");
    return weft_fail(err, WEFT_E_DATA,
                     "%s has %" PRId64 " %s%s, but one sample takes %" PRId64
                     " (the sequence and the token after it): use a longer file%s or a smaller "
                     "train.seq_len",
                     data->corpora.path, data->length, data->corpora.text ? "bytes" : "tokens",
                     held == 0      ? ""
                     : data->shares ? " held out"
                                    : " that are not held out",
                     data->sample_tokens + 1, held == 0 ? "" : ", another train.validation.share");
}

/* Compares the sizes of a file's samples with the model's. */
static enum weft_status check_samples(const struct weft_data *data, const struct weft_model *model,
                                      struct weft_error *err)
{
    const struct weft_sample_file *form = &data->corpora.samples;
    const struct weft_layer *first = &model->layers[0];
    if (form->tokens && !data->tokens)
        return weft_fail(err, WEFT_E_DATA,
                         "%s is a file of samples of tokens, and layer %s reads numbers: give "
                         "samples of numbers, or begin the model with an embedding",
                         data->corpora.path, first->name);
    if (data->tokens && !form->tokens)
        return weft_fail(err, WEFT_E_DATA,
                         "%s is a file of samples of numbers, and layer %s reads tokens: give a "
                         "text or a token file, or begin the model with a linear layer",
                         data->corpora.path, first->name);
    if (form->tokens && data->classes == 0 && !data->masked.given)
        return weft_fail(err, WEFT_E_DATA,
                         "%s is a file of samples of tokens, and layer %s predicts next tokens: "
                         "give train.masked, end the model with a classifier, or give a token file",
                         data->corpora.path, model->layers[model->n_layers - 1].name);
    if (form->tokens && form->rows != data->seq_len)
        return weft_fail(err, WEFT_E_DATA,
                         "%s has samples of %" PRId64 " tokens, and train.seq_len is %" PRId64
                         ": set train.seq_len to the former",
                         data->corpora.path, form->rows, data->seq_len);
    if (form->tokens) return WEFT_OK;
    if (data->classes == 0)
        return weft_fail(err, WEFT_E_DATA,
                         "%s is a file of samples, which have a label each, and layer %s predicts "
                         "tokens: end the model with a classifier",
                         data->corpora.path, model->layers[model->n_layers - 1].name);
    if (form->rows == data->seq_len && form->width == first->hidden) return WEFT_OK;
    return weft_fail(err, WEFT_E_DATA,
                     "%s has samples of %" PRId64 " rows of %" PRId64
                     " numbers, and the model reads train.seq_len rows, %" PRId64 ", of %" PRId64
                     ": write such samples, with a first row for the class token if the model has "
                     "one",
                     data->corpora.path, form->rows, form->width, data->seq_len, first->hidden);
}

static enum weft_status fill_data(struct weft_data *data, const struct weft_config *config,
                                  struct weft_error *err)
{
    const struct weft_model *model = config->model;
    const struct weft_train *train = &config->train;
    const struct weft_layer *last = &model->layers[model->n_layers - 1];
    const struct weft_batch batch = weft_config_batch(config);
    bool other = data->part == WEFT_DATA_HELD_OUT && train->validation.data != NULL;
    data->tokens = weft_model_reads_tokens(model);
    data->seq_len = train->seq_len;
    data->sample_tokens = train->seq_len * (data->tokens ? 1 : model->layers[0].hidden);
    data->classes = weft_model_tells_classes(model) ? last->outputs : 0;
    data->seed = (uint64_t)train->seed;
    data->padding = train->padding;
    data->padding.hidden = weft_model_hides_padding(model, &batch);
    data->masked = train->masked;
    data->vocab = model->layers[0].vocab;
    data->least_vocab = least_vocab(model);
    data->of = train->validation.samples;
    WEFT_TRY(weft_corpora_open(
        other ? train->validation.data : train->data,
        other ? "train.validation.data" : "train.data",
        (enum weft_data_format)(other ? train->validation.data_format : train->data_format),
        data->least_vocab, &data->corpora, err));
    data->read_tokens = data->sample_tokens + 1;
    if (data->corpora.samples.n > 0) {
        WEFT_TRY(check_samples(data, model, err));
        data->record = data->read_tokens = weft_sample_file_words(&data->corpora.samples);
    } else if (!data->tokens && !data->corpora.text) {
        return weft_fail(err, WEFT_E_DATA,
                         "%s is a token file, and layer %s reads numbers: give a file of samples "
                         "or a text, or begin the model with an embedding",
                         data->corpora.path, model->layers[0].name);
    }
    WEFT_TRY(take_part(data, train, err));
    data->sample = malloc((size_t)data->read_tokens * sizeof *data->sample);
    return data->sample != NULL ? WEFT_OK : weft_fail_memory(err, "a sample");
}

enum weft_status weft_data_open(const struct weft_config *config, enum weft_data_part part,
                                struct weft_data **out, struct weft_error *err)
{
    struct weft_data *data = calloc(1, sizeof *data);
    if (data == NULL) return weft_fail_memory(err, "the data");
    data->part = part;
    enum weft_status status = fill_data(data, config, err);
    if (status != WEFT_OK) {
        weft_data_close(data);
        return status;
    }
    *out = data;
    return WEFT_OK;
}

void weft_data_close(struct weft_data *data)
{
    if (data == NULL) return;
    weft_corpora_close(&data->corpora);
    free(data->sample);
    free(data);
}

int64_t weft_data_place(const struct weft_data *data, int64_t step, int64_t sample)
{
    const int64_t unit = data->record > 0 ? data->record : 1;
    uint64_t places = (uint64_t)((data->length - data->read_tokens) / unit + 1);
    if (data->part == WEFT_DATA_TRAINING) {
        uint64_t stream = weft_hash_string("data") + (uint64_t)step;
        return data->first +
               unit * (int64_t)weft_rng_below(data->seed, stream, (uint64_t)sample, places);
    }
    double share = data->of > 1 ? (double)sample / (double)(data->of - 1) : 0;
    return data->first + unit * (int64_t)(share * (double)(places - 1));
}

static bool is_padding(const struct weft_data *data, int32_t token)
{
    return data->padding.given && token == data->padding.token;
}

/* A token of the vocabulary, but no padding that attention would leave out. */
static int32_t random_token(const struct weft_data *data, uint64_t stream, uint64_t place)
{
    const bool skips = data->padding.given && data->padding.hidden;
    const uint64_t n = (uint64_t)data->vocab - (skips && data->vocab > 1 ? 1 : 0);
    const int32_t drawn = (int32_t)weft_rng_below(data->seed, stream, place, n);
    return skips && drawn >= data->padding.token ? drawn + 1 : drawn;
}

/* Replaces tokens of a sample, and makes the chosen ones its targets: a function of the seed, the
 * step, the sample and the place. */
static void mask_tokens(const struct weft_data *data, int64_t step, int64_t sample, int32_t *input,
                        int32_t *targets)
{
    const char *name = data->part == WEFT_DATA_TRAINING ? "mask" : "heldmask";
    const uint64_t stream = weft_hash_string(name) + (uint64_t)step;
    const double share = data->masked.share;
    for (int64_t i = 0; i < data->seq_len; i++) {
        const uint64_t place = 2 * ((uint64_t)sample * (uint64_t)data->seq_len + (uint64_t)i);
        const double drawn = weft_rng_uniform(data->seed, stream, place);
        const bool chosen = drawn < share && !is_padding(data, input[i]);
        targets[i] = chosen ? input[i] : WEFT_LEFT_OUT;
        if (chosen && drawn < 0.8 * share)
            input[i] = (int32_t)data->masked.token;
        else if (chosen && drawn < 0.9 * share)
            input[i] = random_token(data, stream, place + 1);
    }
}

/* Decodes a sample of numbers. `place` is its first word, for messages. */
static enum weft_status fill_numbers(const struct weft_data *data, int64_t place, float *input,
                                     int32_t *target, struct weft_error *err)
{
    const struct weft_corpora *corpora = &data->corpora;
    const int64_t wrong = weft_sample_file_decode(&corpora->samples, data->sample, input, target);
    const char *path = weft_corpora_locate(corpora, &place);
    if (wrong < 0) return WEFT_OK;
    return weft_fail(err, WEFT_E_DATA,
                     "%s: number %" PRId64 " of sample %" PRId64
                     " (from 0) is not finite: write the file again without such numbers",
                     path, wrong, place / data->record);
}

/* The same of a sample of tokens. A masked one has its own tokens as targets. */
static enum weft_status fill_tokens(const struct weft_data *data, int64_t place, int32_t *input,
                                    int32_t *target, struct weft_error *err)
{
    const struct weft_corpora *corpora = &data->corpora;
    const char *path = weft_corpora_locate(corpora, &place);
    for (int64_t i = 0; i < data->seq_len; i++)
        if (data->sample[i] < 0 || data->sample[i] >= data->least_vocab)
            return weft_fail(err, WEFT_E_DATA,
                             "%s: token %" PRId64 " of sample %" PRId64
                             " (from 0) is %d, and the model has a vocabulary of %" PRId64
                             ": write the file again with its tokens",
                             path, i, place / data->record, (int)data->sample[i],
                             data->least_vocab);
    memcpy(input, data->sample, (size_t)data->seq_len * sizeof *input);
    if (!data->masked.given)
        *target = weft_sample_file_label(&corpora->samples, data->sample + data->seq_len);
    return WEFT_OK;
}

/* Decodes sample `sample` of a step from a file of samples. `place` is its first word. */
static enum weft_status fill_record(const struct weft_data *data, int64_t step, int64_t sample,
                                    int64_t place, void *input, int32_t *targets,
                                    struct weft_error *err)
{
    const struct weft_corpora *corpora = &data->corpora;
    WEFT_TRY(data->tokens ? fill_tokens(data, place, input, targets, err)
                          : fill_numbers(data, place, input, targets, err));
    if (data->masked.given) {
        mask_tokens(data, step, sample, input, targets);
        return WEFT_OK;
    }
    if (*targets >= 0 && *targets < data->classes) return WEFT_OK;
    const char *path = weft_corpora_locate(corpora, &place);
    return weft_fail(err, WEFT_E_DATA,
                     "%s: sample %" PRId64 " (from 0) has label %d, and the model has %" PRId64
                     " classes: labels are from 0 on, below the classes of the last layer",
                     path, place / data->record, (int)*targets, data->classes);
}

static void fill_sample(const struct weft_data *data, int64_t step, int64_t sample, void *input,
                        int32_t *targets)
{
    const int32_t *tokens = data->sample;
    if (data->tokens) {
        memcpy(input, tokens, (size_t)data->sample_tokens * sizeof *tokens);
    } else {
        float *numbers = input;
        for (int64_t i = 0; i < data->sample_tokens; i++)
            numbers[i] = (float)tokens[i] / 127.5f - 1.0f;
    }
    if (data->classes > 0) {
        *targets = (int32_t)(tokens[data->sample_tokens] % data->classes);
        return;
    }
    int64_t width = data->sample_tokens / data->seq_len;
    if (data->masked.given) {
        mask_tokens(data, step, sample, input, targets);
        return;
    }
    for (int64_t i = 0; i < data->seq_len; i++) {
        const int32_t target = tokens[(i + 1) * width];
        targets[i] = is_padding(data, target) ? WEFT_LEFT_OUT : target;
    }
}

struct weft_data_share weft_data_share_of(const struct weft_config *config, int32_t rank,
                                          int32_t group)
{
    const struct weft_train *train = &config->train;
    const int64_t count = group * train->micro_batch;
    const bool idle = rank >= config->cluster.ranks - train->idle;
    return (struct weft_data_share){.first = rank * count,
                                    .count = count,
                                    .rounds = train->grad_accum / group - idle,
                                    .stride = config->cluster.ranks * count};
}

enum weft_status weft_data_fill_share(struct weft_data *data, int64_t step,
                                      const struct weft_data_share *share, void *input,
                                      int32_t *targets, struct weft_error *err)
{
    int64_t input_bytes = data->sample_tokens * 4; /* int32 or float */
    int64_t n_targets = data->classes > 0 ? 1 : data->seq_len;
    for (int64_t s = 0; s < share->rounds * share->count; s++) {
        const int64_t sample = share->first + s / share->count * share->stride + s % share->count;
        const int64_t place = weft_data_place(data, step, sample);
        void *to = (char *)input + s * input_bytes;
        WEFT_TRY(weft_corpora_read(&data->corpora, place, data->read_tokens, data->sample, err));
        const int64_t of_step = data->part == WEFT_DATA_TRAINING ? step : 0;
        int32_t *to_targets = targets + s * n_targets;
        if (data->record > 0)
            WEFT_TRY(fill_record(data, of_step, sample, place, to, to_targets, err));
        else
            fill_sample(data, of_step, sample, to, to_targets);
    }
    return WEFT_OK;
}

enum weft_status weft_data_fill(struct weft_data *data, int64_t step, int64_t first, int64_t count,
                                void *input, int32_t *targets, struct weft_error *err)
{
    const struct weft_data_share share = {first, count > 0 ? count : 1, count > 0, 0};
    return weft_data_fill_share(data, step, &share, input, targets, err);
}

bool weft_data_is_text(const struct weft_data *data)
{
    return data->corpora.text;
}

/* Decodes samples at even distances. `input` and `targets` have room for one. */
static enum weft_status check_records(struct weft_data *data, void *input, int32_t *targets,
                                      struct weft_error *err)
{
    enum { CHECKED = 256 };
    const int64_t all = data->corpora.samples.n, n = all < CHECKED ? all : CHECKED;
    for (int64_t i = 0; i < n; i++) {
        const int64_t place = data->record * (n == all ? i : i * (all - 1) / (n - 1));
        WEFT_TRY(weft_corpora_read(&data->corpora, place, data->record, data->sample, err));
        WEFT_TRY(fill_record(data, 0, 0, place, input, targets, err));
    }
    return WEFT_OK;
}

enum weft_status weft_data_check(struct weft_data *data, struct weft_error *err)
{
    if (data->record == 0) return weft_corpora_check(&data->corpora, err);
    void *input = malloc((size_t)data->sample_tokens * sizeof(int32_t)); /* or floats */
    int32_t *targets = malloc((size_t)data->seq_len * sizeof *targets);
    const enum weft_status status = input != NULL && targets != NULL
                                        ? check_records(data, input, targets, err)
                                        : weft_fail_memory(err, "a sample");
    free(targets);
    free(input);
    return status;
}

static const char *form_of(const struct weft_data *data)
{
    return data->record > 0     ? "of samples with labels"
           : data->corpora.text ? "a text"
                                : "a token file";
}

/* Bytes of a text and samples give a classifier other classes. */
static enum weft_status check_forms(const struct weft_data *training,
                                    const struct weft_data *held_out, struct weft_error *err)
{
    if ((training->record > 0) == (held_out->record > 0)) return WEFT_OK;
    return weft_fail(err, WEFT_E_DATA, "%s of %s is %s, and %s of %s is %s: give files of one form",
                     held_out->corpora.path, held_out->corpora.key, form_of(held_out),
                     training->corpora.path, training->corpora.key, form_of(training));
}

enum weft_status weft_data_apart(const struct weft_data *training, const struct weft_data *held_out,
                                 struct weft_error *err)
{
    WEFT_TRY(check_forms(training, held_out, err));
    const struct weft_corpora_part trained = {&training->corpora, training->first,
                                              training->first + training->length};
    /* A share is in the corpora of the training data. */
    const struct weft_corpora *of = held_out->shares ? &training->corpora : &held_out->corpora;
    const struct weft_corpora_part held = {of, held_out->first, held_out->first + held_out->length};
    return weft_corpora_apart(&trained, &held, err);
}

enum weft_status weft_data_hash(struct weft_data *data, struct weft_hash *out,
                                struct weft_error *err)
{
    struct weft_hash whole;
    WEFT_TRY(weft_corpora_hash(&data->corpora, &whole, err));
    const uint64_t part[] = {whole.high, whole.low, (uint64_t)data->first, (uint64_t)data->length};
    bool all = data->first == 0 && data->length == data->corpora.tokens;
    *out = all ? whole : weft_hash_bytes(part, sizeof part);
    return WEFT_OK;
}
