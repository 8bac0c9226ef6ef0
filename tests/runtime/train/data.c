/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/data.h"

#include "tests/runtime/train/run_text.h"

static const char *const number_run =
    "{\"version\": 1, \"model\": {\"layers\": ["
    "{\"name\": \"fc\", \"type\": \"linear\", \"hidden\": 6, \"outputs\": 7},"
    "{\"name\": \"out\", \"type\": \"classifier\", \"hidden\": 7, \"classes\": 10}]},"
    "\"cluster\": {\"ranks\": 1}, \"train\": {\"steps\": 3, \"micro_batch\": 3, \"seq_len\": 1, "
    "\"seed\": 1}}";

static struct weft_data *open_part(const struct weft_config *config, enum weft_data_part part)
{
    struct weft_error err = {0};
    struct weft_data *data;
    cr_assert_eq(weft_data_open(config, part, &data, &err), WEFT_OK, "%s", err.text);
    return data;
}

static void fill(struct weft_data *data, int64_t step, int64_t first, int64_t count, void *input,
                 int32_t *targets)
{
    struct weft_error err = {0};
    cr_assert_eq(weft_data_fill(data, step, first, count, input, targets, &err), WEFT_OK, "%s",
                 err.text);
}

Test(data, targets_are_the_next_bytes)
{
    char path[32];
    struct weft_config *config = parse_run(text_run, write_text(path, 200), NULL);
    struct weft_data *data = open_part(config, WEFT_DATA_TRAINING);
    int32_t input[SAMPLES * SEQ], targets[SAMPLES * SEQ];
    bool differ = false;
    for (int64_t step = 1; step <= 20; step++) {
        fill(data, step, 0, SAMPLES, input, targets);
        for (int i = 0; i < SAMPLES * SEQ; i++) {
            cr_assert_eq(targets[i], input[i] + 1);
            cr_assert_leq(targets[i], 200);
            if (i % SEQ > 0) cr_assert_eq(input[i], targets[i - 1]);
        }
        differ |= input[0] != input[SEQ];
    }
    cr_assert(differ, "samples are drawn, not repeated");
    cr_assert(weft_data_is_text(data));
    weft_data_close(data);
    unlink(path);
    weft_config_destroy(config);
}

Test(data, tokens_of_a_token_file)
{
    char path[32];
    struct weft_config *config =
        parse_run(text_run, write_tokens(path, 700, 700), "model.layers.0.vocab=1000");
    config->model->layers[1].vocab = 700;
    struct weft_data *data = open_part(config, WEFT_DATA_TRAINING);
    struct weft_error err = {0};
    int32_t input[SAMPLES * SEQ], targets[SAMPLES * SEQ], most = 0;
    for (int64_t step = 1; step <= 100; step++) {
        fill(data, step, 0, SAMPLES, input, targets);
        for (int i = 0; i < SAMPLES * SEQ; i++) {
            cr_assert_eq(targets[i], input[i] + 1);
            if (targets[i] > most) most = targets[i];
        }
    }
    cr_assert_gt(most, 256);
    cr_assert_not(weft_data_is_text(data));
    cr_assert_eq(weft_data_check(data, &err), WEFT_OK, "%s", err.text);
    weft_data_close(data);
    unlink(path);
    weft_config_destroy(config);
}

Test(data, samples_do_not_depend_on_who_reads_them)
{
    char path[32];
    struct weft_config *config = parse_run(text_run, write_text(path, 5000), NULL);
    struct weft_data *whole = open_part(config, WEFT_DATA_TRAINING);
    struct weft_data *share = open_part(config, WEFT_DATA_TRAINING);
    int32_t input[SAMPLES * SEQ], targets[SAMPLES * SEQ], part[SEQ], part_targets[SEQ];
    for (int64_t step = 1; step <= 5; step++) {
        fill(whole, step, 0, SAMPLES, input, targets);
        for (int64_t sample = 0; sample < SAMPLES; sample++) {
            fill(share, step, sample, 1, part, part_targets);
            cr_assert_arr_eq(part, input + sample * SEQ, sizeof part);
            cr_assert_arr_eq(part_targets, targets + sample * SEQ, sizeof part);
        }
    }
    weft_data_close(whole);
    weft_data_close(share);
    unlink(path);
    weft_config_destroy(config);
}

Test(data, held_out_bytes_are_not_trained_on)
{
    char path[32];
    struct weft_config *config = parse_run(text_run, write_text(path, 200),
                                           "train.validation={\"share\": 0.25, \"samples\": 24}");
    struct weft_data *data = open_part(config, WEFT_DATA_TRAINING);
    struct weft_data *held = open_part(config, WEFT_DATA_HELD_OUT);
    int32_t input[SAMPLES * SEQ], targets[SAMPLES * SEQ];
    cr_assert(weft_data_has_held_out(config));
    for (int64_t step = 1; step <= 50; step++) {
        fill(data, step, 0, SAMPLES, input, targets);
        for (int i = 0; i < SAMPLES * SEQ; i++)
            cr_assert_lt(targets[i], TEXT_BYTE(150));
    }
    for (int64_t first = 0; first < 8 * SAMPLES; first += SAMPLES) {
        fill(held, 1, first, SAMPLES, input, targets);
        for (int i = 0; i < SAMPLES * SEQ; i++)
            cr_assert(input[i] >= TEXT_BYTE(150) && targets[i] == input[i] + 1 &&
                      targets[i] <= TEXT_BYTE(199));
        if (first == 0) cr_assert_eq(input[0], TEXT_BYTE(150));
    }
    cr_assert_eq(targets[SAMPLES * SEQ - 1], TEXT_BYTE(199), "evaluation comes to the end");
    weft_data_close(data);
    weft_data_close(held);
    unlink(path);
    weft_config_destroy(config);
}

/* Token i of three files is i, in all; with one token less for training than before, and with one
 * more, both parts reach their first and their last token, and no further. */
Test(data, shares_of_several_files_never_overlap)
{
    enum { TOKENS = 600, FEW = 3 };
    static const int64_t cuts[FEW + 1] = {0, 211, 212, TOKENS};
    static const double shares[] = {0.0101, 0.25, 0.5, 0.6449, 0.645, 0.6467, 0.65, 0.9};
    char directory[] = "/tmp/weft-data-XXXXXX", path[64], pattern[64];
    cr_assert_not_null(mkdtemp(directory));
    for (int f = 0; f < FEW; f++) {
        unsigned char bytes[1024 + 2 * TOKENS] = {0x88, 0xd8, 0x34, 0x01, 1};
        int64_t n = cuts[f + 1] - cuts[f];
        bytes[8] = (unsigned char)(n & 255);
        bytes[9] = (unsigned char)(n >> 8);
        for (int64_t i = 0; i < n; i++) {
            bytes[1024 + 2 * i] = (unsigned char)((cuts[f] + i) & 255);
            bytes[1025 + 2 * i] = (unsigned char)((cuts[f] + i) >> 8);
        }
        snprintf(path, sizeof path, "%s/shard_%d", directory, f);
        FILE *file = fopen(path, "wb");
        cr_assert_not_null(file);
        cr_assert_eq(fwrite(bytes, 1, (size_t)(1024 + 2 * n), file), (size_t)(1024 + 2 * n));
        cr_assert_eq(fclose(file), 0);
    }
    snprintf(pattern, sizeof pattern, "%s/shard_*", directory);
    struct weft_config *config = parse_run(text_run, pattern, "model.layers.0.vocab=1000");
    config->model->layers[1].vocab = 1000;
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        config->train.validation.share = shares[i];
        struct weft_data *data = open_part(config, WEFT_DATA_TRAINING);
        struct weft_data *held = open_part(config, WEFT_DATA_HELD_OUT);
        struct weft_error err = {0};
        int32_t input[SAMPLES * SEQ], targets[SAMPLES * SEQ], least = TOKENS, most = 0, last = 0;
        for (int64_t step = 1; step <= 3000; step++) {
            fill(data, step, 0, SAMPLES, input, targets);
            for (int s = 0; s < SAMPLES; s++)
                if (targets[s * SEQ + SEQ - 1] > most) most = targets[s * SEQ + SEQ - 1];
        }
        for (int64_t first = 0; first < config->train.validation.samples; first++) {
            fill(held, 0, first, 1, input, targets);
            if (input[0] < least) least = input[0];
            last = targets[SEQ - 1];
        }
        int32_t cut = TOKENS - (int32_t)(TOKENS * shares[i]);
        cr_assert_eq(most, cut - 1, "%d is the last of training, not %d", most, cut - 1);
        cr_assert_eq(least, cut, "%d is the first that is held out, not %d", least, cut);
        cr_assert_eq(last, TOKENS - 1);
        cr_assert_eq(weft_data_apart(data, held, &err), WEFT_OK, "%s", err.text);
        weft_data_close(data);
        weft_data_close(held);
    }
    for (int f = 0; f < FEW; f++) {
        snprintf(path, sizeof path, "%s/shard_%d", directory, f);
        unlink(path);
    }
    cr_assert_eq(rmdir(directory), 0);
    weft_config_destroy(config);
}

Test(data, shortest_file_has_one_sample)
{
    char path[32];
    struct weft_config *config = parse_run(text_run, write_text(path, SEQ + 1), NULL);
    struct weft_data *data = open_part(config, WEFT_DATA_TRAINING);
    int32_t input[SAMPLES * SEQ], targets[SAMPLES * SEQ];
    fill(data, 1, 0, SAMPLES, input, targets);
    for (int i = 0; i < SAMPLES * SEQ; i++)
        cr_assert_eq(input[i], TEXT_BYTE(i % SEQ));
    weft_data_close(data);
    unlink(path);
    weft_config_destroy(config);
}

Test(data, numbers_and_classes)
{
    char path[32];
    struct weft_config *config = parse_run(number_run, write_text(path, 250), NULL);
    struct weft_data *data = open_part(config, WEFT_DATA_TRAINING);
    float input[SAMPLES * 6];
    int32_t targets[SAMPLES];
    fill(data, 1, 0, SAMPLES, input, targets);
    for (int s = 0; s < SAMPLES; s++) {
        int first = (int)((input[6 * s] + 1) * 127.5f + 0.5f);
        for (int i = 0; i < 6; i++)
            cr_assert_float_eq(input[6 * s + i], (float)(first + i) / 127.5f - 1, 1e-6);
        cr_assert_eq(targets[s], (first + 6) % 10);
    }
    weft_data_close(data);
    unlink(path);
    weft_config_destroy(config);
}

static void check_padding(const int32_t *input, const int32_t *targets)
{
    int n = 0;
    for (int i = 0; i < SAMPLES * SEQ; i++) {
        const bool left_out = targets[i] == WEFT_LEFT_OUT;
        cr_assert_eq(left_out, input[i] + 1 == 9);
        n += left_out;
        if (!left_out) cr_assert_eq(targets[i], input[i] + 1);
    }
    cr_assert_eq(weft_data_count(targets, SAMPLES * SEQ), SAMPLES * SEQ - n);
}

Test(data, padding_has_no_loss)
{
    char path[32];
    struct weft_config *config =
        parse_run(text_run, write_text(path, 20), "train.padding={\"token\":9}");
    struct weft_data *data = open_part(config, WEFT_DATA_TRAINING);
    int32_t input[SAMPLES * SEQ], targets[SAMPLES * SEQ];
    cr_assert(weft_data_leaves_out(config));
    for (int64_t step = 1; step <= 20; step++) {
        fill(data, step, 0, SAMPLES, input, targets);
        check_padding(input, targets);
    }
    weft_data_close(data);
    unlink(path);
    weft_config_destroy(config);
}

/* Chosen tokens are the targets, whoever reads their sample; the others are as they were. */
Test(data, masked_tokens_are_predicted)
{
    enum { STEPS = 200, N = SAMPLES * SEQ };
    char path[32];
    struct weft_config *plain = parse_run(text_run, write_text(path, 200), NULL);
    struct weft_config *config =
        parse_run(text_run, path, "train.masked={\"token\":255,\"share\":0.4}");
    struct weft_data *whole = open_part(plain, WEFT_DATA_TRAINING);
    struct weft_data *data = open_part(config, WEFT_DATA_TRAINING);
    int32_t tokens[N], next[N], input[N], targets[N], alone[SEQ], of_alone[SEQ];
    int chosen = 0, masked = 0, kept = 0;
    for (int64_t step = 1; step <= STEPS; step++) {
        fill(whole, step, 0, SAMPLES, tokens, next);
        fill(data, step, 0, SAMPLES, input, targets);
        for (int i = 0; i < N; i++) {
            const bool is_chosen = targets[i] != WEFT_LEFT_OUT;
            cr_assert_eq(is_chosen ? targets[i] : input[i], tokens[i]);
            chosen += is_chosen;
            masked += is_chosen && input[i] == 255;
            kept += is_chosen && input[i] == tokens[i];
        }
        fill(data, step, 1, 1, alone, of_alone);
        cr_assert_eq(memcmp(alone, input + SEQ, sizeof alone), 0);
        cr_assert_eq(memcmp(of_alone, targets + SEQ, sizeof of_alone), 0);
    }
    cr_assert(abs(chosen - N * STEPS * 2 / 5) < N * STEPS / 20, "%d chosen", chosen);
    cr_assert(abs(masked - chosen * 8 / 10) < chosen / 20, "%d of %d masked", masked, chosen);
    cr_assert(abs(kept - chosen / 10) < chosen / 20, "%d of %d kept", kept, chosen);
    weft_data_close(data);
    weft_data_close(whole);
    unlink(path);
    weft_config_destroy(config);
    weft_config_destroy(plain);
}

static const char encoder_run[] =
    "{\"version\": 1, \"model\": {\"layers\": ["
    "{\"name\": \"wte\", \"type\": \"embedding\", \"vocab\": 256, \"positions\": 8, \"hidden\": 8},"
    "{\"name\": \"h\", \"type\": \"encoder_block\", \"hidden\": 8, \"heads\": 2, \"ffn\": 8},"
    "{\"name\": \"head\", \"type\": \"lm_head\", \"vocab\": 256, \"hidden\": 8}]},"
    "\"cluster\": {\"ranks\": 1}, \"train\": {\"steps\": 3, \"micro_batch\": 3, \"seq_len\": 5, "
    "\"seed\": 1}}";

/* Attention would leave out a token that padding replaced, unless no layer leaves out padding. */
Test(data, no_token_becomes_hidden_padding)
{
    enum { STEPS = 4000, N = SAMPLES * SEQ, PADDING = 'e' };
    static const struct {
        const char *run;
        bool hidden, shows;
    } cases[] = {{encoder_run, true, false}, {encoder_run, false, true}, {text_run, true, true}};
    char path[32];
    write_text(path, 200);
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        int32_t input[N], targets[N];
        int shown = 0;
        struct weft_config *config =
            parse_run(cases[c].run, path, "train.masked={\"token\":255,\"share\":1}");
        config->train.padding = (struct weft_padding){true, PADDING, cases[c].hidden};
        struct weft_data *data = open_part(config, WEFT_DATA_TRAINING);
        for (int64_t step = 1; step <= STEPS; step++) {
            fill(data, step, 0, SAMPLES, input, targets);
            for (int i = 0; i < N; i++)
                shown += input[i] == PADDING && targets[i] != WEFT_LEFT_OUT;
        }
        cr_assert_eq(shown > 0, cases[c].shows, "%zu", c);
        weft_data_close(data);
        weft_config_destroy(config);
    }
    unlink(path);
}

static void refused_data(struct weft_config *config, const char *path, enum weft_data_part part,
                         enum weft_status status, const char *text)
{
    struct weft_error err = {0};
    struct weft_data *data = NULL;
    config->train.data = path;
    cr_assert_eq(weft_data_open(config, part, &data, &err), status, "%s", err.text);
    cr_assert_not_null(strstr(err.text, text), "\"%s\" is not in: %s", text, err.text);
    cr_assert_null(data);
}

Test(data, refuses_what_cannot_be_trained_on)
{
    char path[32];
    struct weft_config *config = parse_run(text_run, "x", NULL);
    struct weft_config *numbers = parse_run(number_run, "x", NULL);
    refused_data(config, write_text(path, SEQ), WEFT_DATA_TRAINING, WEFT_E_DATA,
                 "has 5 bytes, but one sample takes 6");
    unlink(path);
    refused_data(config, "/nowhere/text", WEFT_DATA_TRAINING, WEFT_E_NO_INPUT,
                 "/nowhere/text: no such file. train.data must");
    refused_data(config, "/dev/null", WEFT_DATA_TRAINING, WEFT_E_DATA, "not a plain file");
    refused_data(config, "/tmp", WEFT_DATA_TRAINING, WEFT_E_DATA, "/tmp is a folder: ");
    refused_data(config, write_tokens(path, 5, 5), WEFT_DATA_TRAINING, WEFT_E_DATA,
                 "has 5 tokens, but one sample takes 6");
    unlink(path);
    refused_data(numbers, write_tokens(path, 50, 50), WEFT_DATA_TRAINING, WEFT_E_DATA,
                 "layer fc reads numbers");
    unlink(path);
    config->train.validation.share = 0.1;
    refused_data(config, write_text(path, 50), WEFT_DATA_HELD_OUT, WEFT_E_DATA,
                 "has 5 bytes held out, but one sample takes 6");
    config->model->layers[0].vocab = 255;
    refused_data(config, path, WEFT_DATA_TRAINING, WEFT_E_DATA, "a vocabulary of 255");
    unlink(path);
    weft_config_destroy(config);
    weft_config_destroy(numbers);
    weft_data_close(NULL);
}
