#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/train/data.h"

enum { SAMPLES = 3, SEQ = 5 };

static const char *const text_run =
    "{\"version\": 1, \"model\": {\"layers\": ["
    "{\"name\": \"wte\", \"type\": \"embedding\", \"vocab\": 256, \"positions\": 8, \"hidden\": 8},"
    "{\"name\": \"head\", \"type\": \"lm_head\", \"vocab\": 256, \"hidden\": 8}]},"
    "\"cluster\": {\"ranks\": 1}, \"train\": {\"steps\": 3, \"micro_batch\": 3, \"seq_len\": 5, "
    "\"seed\": 1}}";

static const char *const number_run =
    "{\"version\": 1, \"model\": {\"layers\": ["
    "{\"name\": \"fc\", \"type\": \"linear\", \"hidden\": 6, \"outputs\": 7},"
    "{\"name\": \"out\", \"type\": \"classifier\", \"hidden\": 7, \"classes\": 10}]},"
    "\"cluster\": {\"ranks\": 1}, \"train\": {\"steps\": 3, \"micro_batch\": 3, \"seq_len\": 1, "
    "\"seed\": 1}}";

static struct weft_config *parse(const char *run, const char *override)
{
    struct weft_error err = {0};
    struct weft_config *config;
    const char *overrides[] = {override};
    enum weft_status status = weft_config_parse(run, strlen(run), "run", ".", overrides,
                                                override == NULL ? 0 : 1, &config, &err);
    cr_assert_eq(status, WEFT_OK, "%s", err.text);
    return config;
}

/* A file whose byte i is i modulo 251, so that a sample tells its place. */
static const char *write_file(int64_t bytes)
{
    static char path[] = "/tmp/weft-data-XXXXXX";
    strcpy(path, "/tmp/weft-data-XXXXXX");
    int fd = mkstemp(path);
    cr_assert_geq(fd, 0);
    for (int64_t i = 0; i < bytes; i++) {
        unsigned char byte = (unsigned char)(i % 251);
        cr_assert_eq(write(fd, &byte, 1), 1);
    }
    close(fd);
    return path;
}

static struct weft_data *open_data(const char *path, const struct weft_config *config)
{
    struct weft_error err = {0};
    struct weft_data *data;
    cr_assert_eq(weft_data_open(path, config, &data, &err), WEFT_OK, "%s", err.text);
    return data;
}

Test(data, targets_are_the_next_bytes)
{
    struct weft_config *config = parse(text_run, NULL);
    const char *path = write_file(200);
    struct weft_data *data = open_data(path, config);
    int32_t input[SAMPLES * SEQ], targets[SAMPLES * SEQ];
    bool differ = false;
    for (int64_t step = 1; step <= 20; step++) {
        weft_data_fill(data, step, 0, 1, input, targets);
        for (int i = 0; i < SAMPLES * SEQ; i++) {
            cr_assert_eq(targets[i], input[i] + 1);
            cr_assert_lt(targets[i], 200);
            if (i % SEQ > 0) cr_assert_eq(input[i], targets[i - 1]);
        }
        differ |= input[0] != input[SEQ];
    }
    cr_assert(differ, "samples are drawn, not repeated");
    weft_data_close(data);
    unlink(path);
    weft_config_destroy(config);
}

Test(data, samples_do_not_depend_on_how_ranks_share_them)
{
    struct weft_config *three = parse(text_run, NULL);
    struct weft_config *one = parse(text_run, "train.micro_batch=1");
    const char *path = write_file(5000);
    struct weft_data *whole = open_data(path, three), *share = open_data(path, one);
    int32_t input[SAMPLES * SEQ], targets[SAMPLES * SEQ], part[SEQ], part_targets[SEQ];
    for (int64_t step = 1; step <= 5; step++) {
        weft_data_fill(whole, step, 0, 1, input, targets);
        for (int64_t rank = 0; rank < SAMPLES; rank++) {
            weft_data_fill(share, step, rank, SAMPLES, part, part_targets);
            cr_assert_arr_eq(part, input + rank * SEQ, sizeof part);
            cr_assert_arr_eq(part_targets, targets + rank * SEQ, sizeof part);
        }
    }
    weft_data_close(whole);
    weft_data_close(share);
    unlink(path);
    weft_config_destroy(three);
    weft_config_destroy(one);
}

Test(data, shortest_file_has_one_sample)
{
    struct weft_config *config = parse(text_run, NULL);
    const char *path = write_file(SEQ + 1);
    struct weft_data *data = open_data(path, config);
    int32_t input[SAMPLES * SEQ], targets[SAMPLES * SEQ];
    weft_data_fill(data, 1, 0, 1, input, targets);
    for (int i = 0; i < SAMPLES * SEQ; i++)
        cr_assert_eq(input[i], i % SEQ);
    weft_data_close(data);
    unlink(path);
    weft_config_destroy(config);
}

Test(data, numbers_and_classes)
{
    struct weft_config *config = parse(number_run, NULL);
    const char *path = write_file(250);
    struct weft_data *data = open_data(path, config);
    float input[SAMPLES * 6];
    int32_t targets[SAMPLES];
    weft_data_fill(data, 1, 0, 1, input, targets);
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

static void refused(const char *path, const struct weft_config *config, enum weft_status status,
                    const char *part)
{
    struct weft_error err = {0};
    struct weft_data *data = NULL;
    cr_assert_eq(weft_data_open(path, config, &data, &err), status, "%s", err.text);
    cr_assert_not_null(strstr(err.text, part), "\"%s\" is not in: %s", part, err.text);
    cr_assert_null(data);
}

Test(data, refuses_what_cannot_be_trained_on)
{
    struct weft_config *config = parse(text_run, NULL);
    const char *path = write_file(SEQ);
    refused(path, config, WEFT_E_DATA, "has 5 bytes, but one sample takes 6");
    unlink(path);
    refused("/nowhere/text", config, WEFT_E_NO_INPUT, "/nowhere/text: no such file");
    refused("/dev/null", config, WEFT_E_DATA, "not a plain file");
    refused("/tmp", config, WEFT_E_DATA, "not a plain file");
    config->model->layers[0].vocab = 255;
    refused("/tmp", config, WEFT_E_DATA, "layer wte has a vocabulary of 255");
    weft_config_destroy(config);
    weft_data_close(NULL);
}
