#include "runtime/train/data.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/rng.h"

enum { BYTE_VALUES = 256 };

struct weft_data {
    const unsigned char *bytes;
    int64_t length;
    int64_t sample_bytes; /* that the model reads; the one behind it is a target too */
    int64_t seq_len, samples;
    int64_t classes; /* of a classifier; 0 = every position has the next byte as its target */
    bool tokens;     /* the model begins with an embedding */
    uint64_t seed;
};

static enum weft_status check_vocabulary(const struct weft_model *model, struct weft_error *err)
{
    const struct weft_layer *ends[] = {&model->layers[0], &model->layers[model->n_layers - 1]};
    for (int i = 0; i < 2; i++) {
        bool speaks = ends[i]->type == WEFT_LAYER_EMBEDDING || ends[i]->type == WEFT_LAYER_LM_HEAD;
        if (speaks && ends[i]->vocab < BYTE_VALUES) {
            return weft_fail(err, WEFT_E_DATA,
                             "layer %s has a vocabulary of %" PRId64
                             ", but text is read as bytes: set vocab to 256 or more",
                             ends[i]->name, ends[i]->vocab);
        }
    }
    return WEFT_OK;
}

static enum weft_status fail_file(struct weft_error *err, const char *path, int error)
{
    if (error == ENOENT || error == ENOTDIR) {
        return weft_fail(err, WEFT_E_NO_INPUT,
                         "%s: no such file. train.data must be the path of a text to train on",
                         path);
    }
    enum weft_status status = error == EACCES ? WEFT_E_PERMISSION : WEFT_E_IO;
    return weft_fail(err, status, "%s: cannot read the training data: %s", path, strerror(error));
}

static enum weft_status map_file(struct weft_data *data, const char *path, struct weft_error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return fail_file(err, path, errno);
    struct stat status;
    enum weft_status result = WEFT_OK;
    if (fstat(fd, &status) != 0) {
        result = fail_file(err, path, errno);
    } else if (!S_ISREG(status.st_mode)) {
        result = weft_fail(err, WEFT_E_DATA,
                           "%s is not a plain file: training data are mapped, so write them to one",
                           path);
    } else if (status.st_size < data->sample_bytes + 1) {
        result = weft_fail(err, WEFT_E_DATA,
                           "%s has %" PRId64 " bytes, but one sample takes %" PRId64
                           " (the sequence and the byte behind it): use a longer text or a "
                           "smaller train.seq_len",
                           path, (int64_t)status.st_size, data->sample_bytes + 1);
    } else {
        data->length = status.st_size;
        void *mapped = mmap(NULL, (size_t)data->length, PROT_READ, MAP_SHARED, fd, 0);
        if (mapped == MAP_FAILED) {
            result = fail_file(err, path, errno);
        } else {
            data->bytes = mapped;
        }
    }
    close(fd);
    return result;
}

enum weft_status weft_data_open(const char *path, const struct weft_config *config,
                                struct weft_data **out, struct weft_error *err)
{
    const struct weft_model *model = config->model;
    const struct weft_layer *last = &model->layers[model->n_layers - 1];
    WEFT_TRY(check_vocabulary(model, err));
    struct weft_data *data = calloc(1, sizeof *data);
    if (data == NULL) return weft_fail_memory(err, "training data");
    data->tokens = model->layers[0].type == WEFT_LAYER_EMBEDDING;
    data->seq_len = config->train.seq_len;
    data->samples = config->train.micro_batch;
    data->sample_bytes = data->seq_len * (data->tokens ? 1 : model->layers[0].hidden);
    data->classes = last->type == WEFT_LAYER_CLASSIFIER ? last->outputs : 0;
    data->seed = (uint64_t)config->train.seed;
    enum weft_status status = map_file(data, path, err);
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
    if (data->bytes != NULL) munmap((void *)data->bytes, (size_t)data->length);
    free(data);
}

static const unsigned char *find_sample(const struct weft_data *data, int64_t step, int64_t sample)
{
    uint64_t stream = weft_hash_string("data") + (uint64_t)step;
    uint64_t places = (uint64_t)(data->length - data->sample_bytes);
    return data->bytes + weft_rng_below(data->seed, stream, (uint64_t)sample, places);
}

void weft_data_fill(const struct weft_data *data, int64_t step, int64_t rank, int64_t ranks,
                    void *input, int32_t *targets)
{
    (void)ranks;
    for (int64_t s = 0; s < data->samples; s++) {
        const unsigned char *bytes = find_sample(data, step, rank * data->samples + s);
        if (data->tokens) {
            int32_t *tokens = (int32_t *)input + s * data->sample_bytes;
            for (int64_t i = 0; i < data->sample_bytes; i++)
                tokens[i] = bytes[i];
        } else {
            float *numbers = (float *)input + s * data->sample_bytes;
            for (int64_t i = 0; i < data->sample_bytes; i++)
                numbers[i] = (float)bytes[i] / 127.5f - 1.0f;
        }
        if (data->classes > 0) {
            targets[s] = (int32_t)(bytes[data->sample_bytes] % data->classes);
            continue;
        }
        int64_t width = data->sample_bytes / data->seq_len;
        for (int64_t i = 0; i < data->seq_len; i++)
            targets[s * data->seq_len + i] = bytes[(i + 1) * width];
    }
}
