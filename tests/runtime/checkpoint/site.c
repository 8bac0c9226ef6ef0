/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/runtime/checkpoint/site.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "tests/runtime/comm/ranks.h"

/* Every file has several chunks, and most pieces lie in two. */
enum { RUN_ELEMENTS = 37, CHUNK_BYTES = 700 };

static const char run_text[] =
    "{\"version\":1,\"model\":{\"layers\":["
    "{\"name\":\"wte\",\"type\":\"embedding\",\"vocab\":32,\"positions\":8,\"hidden\":16},"
    "{\"name\":\"ln\",\"type\":\"layer_norm\",\"hidden\":16,\"frozen\":true},"
    "{\"name\":\"head\",\"type\":\"lm_head\",\"vocab\":32,\"hidden\":16}]},"
    "\"cluster\":{\"ranks\":2},\"train\":{\"micro_batch\":2,\"seq_len\":8}}";

void site_open(struct site *site)
{
    struct weft_error err = {0};
    *site = (struct site){0};
    CHECK(weft_config_parse(run_text, strlen(run_text), "run", ".", NULL, 0, &site->config, &err) ==
              WEFT_OK,
          "%s", err.text);
    CHECK(weft_layout_create(site->config->model, (1u << WEFT_STATE_COUNT) - 1, 1, CHUNK_BYTES,
                             &site->layout, &err) == WEFT_OK,
          "%s", err.text);
    CHECK(weft_manifest_settings(site->config, &site->config->pool, &site->settings, &err) ==
              WEFT_OK,
          "%s", err.text);
}

void site_close(struct site *site)
{
    weft_layout_destroy(site->layout);
    weft_config_destroy(site->config);
}

float site_value(int64_t step, int32_t tensor, enum weft_state state, int64_t element)
{
    uint64_t stream = (uint64_t)tensor * WEFT_STATE_COUNT + (uint64_t)state;
    return (float)weft_rng_uniform((uint64_t)step, stream, (uint64_t)element);
}

static void rewind_source(void *context)
{
    struct site_source *source = context;
    source->tensor = source->state = 0;
    source->run = source->rank;
}

static bool next_piece(void *context, struct weft_save_piece *out)
{
    struct site_source *source = context;
    const struct weft_model *model = source->site->config->model;
    for (; source->tensor < model->n_tensors; source->tensor++, source->state = 0) {
        for (; source->state < WEFT_STATE_COUNT; source->state++, source->run = source->rank) {
            enum weft_state state = (enum weft_state)source->state;
            int32_t file = 0;
            int64_t first = source->run * RUN_ELEMENTS;
            int64_t left = weft_state_elements(&model->tensors[source->tensor], state) - first;
            if (left <= 0 ||
                weft_layout_find(source->site->layout, source->tensor, state, &file) == NULL)
                continue;
            int64_t count = left < RUN_ELEMENTS ? left : RUN_ELEMENTS;
            for (int64_t i = 0; i < count; i++)
                source->values[i] = site_value(source->step, source->tensor, state, first + i);
            bool dies = source->dead != 0 && state == source->dead_state;
            if (dies && source->tensor == 0) source->values[0] = source->dead;
            *out = (struct weft_save_piece){source->tensor, state, first, count, source->dtype};
            source->run += source->ranks;
            return true;
        }
    }
    return false;
}

static enum weft_status read_piece(void *context, int64_t from, int64_t n, float *out,
                                   struct weft_error *err)
{
    const struct site_source *source = context;
    (void)err;
    memcpy(out, source->values + from, (size_t)n * sizeof *out);
    return WEFT_OK;
}

struct weft_save_source site_pieces(struct site_source *source)
{
    return (struct weft_save_source){source, rewind_source, next_piece, read_piece};
}

struct weft_progress site_progress(int64_t step)
{
    return (struct weft_progress){.step = step,
                                  .updates = step,
                                  .tokens = 32 * step,
                                  .samples = 4 * step,
                                  .loss_scale = 1,
                                  .data = {1, 2}};
}

static bool same_tensor(const struct site *site, const struct weft_checkpoint *checkpoint,
                        int32_t tensor, enum weft_state state)
{
    int64_t n = weft_state_elements(&site->config->model->tensors[tensor], state);
    int32_t file = 0;
    if (weft_layout_find(site->layout, tensor, state, &file) == NULL) return true;
    float *values = calloc((size_t)n, sizeof *values);
    CHECK(values != NULL, "no memory");
    bool same = weft_checkpoint_read(checkpoint, site->layout, tensor, state, 0, n, values, NULL) ==
                WEFT_OK;
    for (int64_t i = 0; same && i < n; i++)
        same = values[i] == site_value(checkpoint->manifest->progress.step, tensor, state, i);
    free(values);
    return same;
}

bool site_holds(const struct site *site, const struct weft_checkpoint *checkpoint)
{
    bool same = weft_checkpoint_matches(checkpoint, site->layout, NULL) == WEFT_OK;
    for (int32_t t = 0; t < site->config->model->n_tensors; t++) {
        for (int s = 0; s < WEFT_STATE_COUNT; s++)
            same = same && same_tensor(site, checkpoint, t, (enum weft_state)s);
    }
    return same;
}

void site_make_directory(char out[64])
{
    strcpy(out, "/tmp/weft-checkpoint-XXXXXX");
    CHECK(mkdtemp(out) != NULL, "no directory");
}

void site_remove_directory(const char *path)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", path);
    CHECK(system(command) == 0, "%s cannot be removed", path);
}
