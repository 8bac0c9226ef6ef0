#include "runtime/train/evaluation.h"

#include <stdlib.h>

#include "base/clock.h"

struct weft_evaluation {
    const struct weft_config *config;
    struct weft_comm *comm;
    struct weft_data *data;
    void *input;
    int32_t *targets;
    double *losses; /* [ranks] */
};

static enum weft_status fill(struct weft_evaluation *e, struct weft_error *err)
{
    struct weft_batch batch = weft_config_batch(e->config);
    e->input = malloc((size_t)weft_model_host_input_bytes(e->config->model, &batch));
    e->targets = malloc((size_t)weft_model_target_bytes(e->config->model, &batch));
    e->losses = calloc((size_t)weft_comm_ranks(e->comm), sizeof *e->losses);
    if (e->input == NULL || e->targets == NULL || e->losses == NULL)
        return weft_fail_memory(err, "an evaluation");
    return weft_data_open(e->config, WEFT_DATA_HELD_OUT, &e->data, err);
}

enum weft_status weft_evaluation_create(const struct weft_config *config, struct weft_comm *comm,
                                        struct weft_evaluation **out, struct weft_error *err)
{
    struct weft_evaluation *e = calloc(1, sizeof *e);
    if (e == NULL) return weft_fail_memory(err, "an evaluation");
    e->config = config;
    e->comm = comm;
    enum weft_status status = fill(e, err);
    if (status != WEFT_OK) {
        weft_evaluation_destroy(e);
        return status;
    }
    *out = e;
    return WEFT_OK;
}

void weft_evaluation_destroy(struct weft_evaluation *e)
{
    if (e == NULL) return;
    weft_data_close(e->data);
    free(e->losses);
    free(e->targets);
    free(e->input);
    free(e);
}

bool weft_evaluation_is_due(const struct weft_train *train, int64_t step)
{
    return step % train->validation.every == 0 || step == train->steps;
}

/* Sum over this rank's samples. Sample b of a micro-step lies ranks x micro_batch behind the one
 * of the micro-step before, so that the set is the same however it is shared. */
static enum weft_status sum_losses(const struct weft_evaluation *e, struct weft_exec *exec,
                                   double *sum, struct weft_error *err)
{
    const struct weft_train *train = &e->config->train;
    int64_t ranks = weft_comm_ranks(e->comm), rank = weft_comm_rank(e->comm);
    *sum = 0;
    for (int64_t b = 0; b < train->validation.batches; b++) {
        double loss = 0;
        int64_t first = (b * ranks + rank) * train->micro_batch;
        WEFT_TRY(weft_data_fill(e->data, 0, first, train->micro_batch, e->input, e->targets, err));
        WEFT_TRY(weft_exec_evaluate(exec, e->input, e->targets, &loss, err));
        *sum += loss;
    }
    return WEFT_OK;
}

enum weft_status weft_evaluation_run(struct weft_evaluation *e, struct weft_exec *exec,
                                     int64_t step, struct weft_evaluation_line *out,
                                     struct weft_error *err)
{
    const struct weft_model *model = e->config->model;
    const struct weft_train *train = &e->config->train;
    bool classes = weft_model_tells_classes(model);
    int64_t start_ns = weft_clock_now_ns();
    double mine = 0, sum = 0;
    WEFT_TRY(weft_exec_settle(exec, err));
    WEFT_TRY(sum_losses(e, exec, &mine, err));
    WEFT_TRY(weft_comm_exchange(e->comm, &mine, sizeof mine, e->losses, err));
    for (int32_t r = 0; r < weft_comm_ranks(e->comm); r++)
        sum += e->losses[r];
    int64_t samples = train->validation.batches * train->micro_batch * weft_comm_ranks(e->comm);
    *out = (struct weft_evaluation_line){
        .step = step,
        .samples = samples,
        .loss = sum / (double)(samples * (classes ? 1 : train->seq_len)),
        .of = classes                      ? WEFT_LOSS_OF_SAMPLE
              : weft_data_is_text(e->data) ? WEFT_LOSS_OF_BYTE
                                           : WEFT_LOSS_OF_TOKEN,
        .ns = weft_clock_now_ns() - start_ns,
    };
    return WEFT_OK;
}
