/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the executor's cost per instruction. One rank runs a chain of layers that compute almost
 * nothing (one sample of 16 numbers), so nearly all of the time is the executor's. The limit is 2
 * us per instruction on one stream. Prints one line of JSON. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "problem/stages.h"
#include "runtime/exec/exec.h"
#include "scheduler/schedule.h"

enum { LAYERS = 200, WIDTH = 16, STEPS = 300 };

struct bench {
    struct weft_config *config;
    struct weft_profile *profile;
    struct weft_stages stages;
    struct weft_plan *plan;
    struct weft_program *program;
    struct weft_device *device;
    struct weft_comm *comm;
    struct weft_nn *nn;
    struct weft_arena *arena;
    struct weft_exec *exec;
    struct weft_trace *trace;
};

static enum weft_status make_config(struct bench *b, struct weft_error *err)
{
    struct weft_text text;
    weft_text_init(&text);
    weft_text_addf(
        &text,
        "{\"version\": 1, \"model\": {\"layers\": ["
        "{\"name\": \"in\", \"type\": \"linear\", \"hidden\": %d, \"outputs\": %d},"
        "{\"name\": \"r.{i}\", \"type\": \"relu\", \"repeat\": %d, \"hidden\": %d},"
        "{\"name\": \"out\", \"type\": \"classifier\", \"hidden\": %d, \"classes\": 2}]},",
        WIDTH, WIDTH, LAYERS, WIDTH, WIDTH);
    weft_text_add(&text,
                  "\"cluster\": {\"ranks\": 1, \"device\": {\"flops\": {\"f32\": \"100G\"}, "
                  "\"memory_bandwidth\": \"10GB/s\"}},"
                  "\"train\": {\"steps\": 1, \"micro_batch\": 1, \"seq_len\": 1, \"seed\": 1}}");
    enum weft_status status = weft_config_parse(weft_text_chars(&text), text.length, "bench", ".",
                                                NULL, 0, &b->config, err);
    weft_text_finish(&text);
    return status;
}

static enum weft_status make_program(struct bench *b, struct weft_error *err)
{
    WEFT_TRY(make_config(b, err));
    WEFT_TRY(weft_profile_analytic(b->config, &b->profile, err));
    WEFT_TRY(weft_stages_create(b->config, b->profile, &b->stages, err));
    struct weft_lower_inputs inputs = {.model = b->config->model,
                                       .shards = b->stages.shards,
                                       .period = b->stages.period,
                                       .weigh = {.batch = weft_config_batch(b->config),
                                                 .n_moments = weft_config_moments(b->config)},
                                       .page_bytes = WEFT_PAGE_LEAST_BYTES};
    struct weft_schedule_options options = {.planner = "all-dp"};
    return weft_schedule(b->stages.problem, &inputs, &options, &b->plan, &b->program, err);
}

static enum weft_status open_rank(struct bench *b, struct weft_error *err)
{
    struct weft_comm_options comm = {.rank = 0, .ranks = 1, .local = {.control_fd = -1}};
    struct weft_nn_options nn = {.threads = 1, .gemm = "auto"};
    WEFT_TRY(weft_device_open("cpu", WEFT_CLOCK_WALL, &b->device, err));
    WEFT_TRY(weft_nn_open("cpu", &nn, &b->nn, err));
    WEFT_TRY(weft_comm_open("local", &comm, &b->comm, err));
    WEFT_TRY(weft_exec_map_arena(b->comm, b->program, false, &b->arena, err));
    struct weft_exec_options options = {
        .config = b->config,
        .shards = b->stages.shards,
        .plan = b->plan,
        .program = b->program,
        .device = b->device,
        .comm = b->comm,
        .nn = b->nn,
        .arena = b->arena,
    };
    WEFT_TRY(weft_exec_create(&options, &b->exec, err));
    WEFT_TRY(weft_trace_create(b->program, "wall clock", &b->trace, err));
    return weft_exec_initialise(b->exec, 1, err);
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static enum weft_status run(struct bench *b, struct weft_error *err)
{
    float input[WIDTH] = {1, -1, 0.5f};
    int32_t target = 1;
    int64_t step_ns[STEPS], whole_ns[STEPS];
    for (int64_t i = 0; i < STEPS; i++) {
        struct weft_step_inputs inputs = {.input = input, .targets = &target, .step = i + 1};
        struct weft_step_result result;
        struct weft_trace_summary summary;
        int64_t start_ns = weft_clock_now_ns();
        WEFT_TRY(weft_exec_step(b->exec, &inputs, &result, b->trace, err));
        whole_ns[i] = weft_clock_now_ns() - start_ns;
        weft_trace_summarise(b->program, b->trace, &summary);
        step_ns[i] = summary.step_ns;
    }
    qsort(step_ns, STEPS, sizeof *step_ns, compare);
    qsort(whole_ns, STEPS, sizeof *whole_ns, compare);
    double n = b->program->n_instructions;
    printf("{\"figure\": \"executor\", \"instructions\": %d, \"us_an_instruction\": %.3f, "
           "\"us_with_issue_and_synchronise\": %.3f}\n",
           b->program->n_instructions, (double)step_ns[STEPS / 2] / n / 1e3,
           (double)whole_ns[STEPS / 2] / n / 1e3);
    return WEFT_OK;
}

static void close_bench(struct bench *b)
{
    weft_exec_destroy(b->exec);
    weft_trace_destroy(b->trace);
    if (b->arena != NULL) weft_comm_unmap_arena(b->comm);
    if (b->comm != NULL) weft_comm_close(b->comm);
    if (b->nn != NULL) weft_nn_close(b->nn);
    weft_device_close(b->device);
    weft_program_destroy(b->program);
    weft_plan_destroy(b->plan);
    weft_stages_finish(&b->stages);
    weft_profile_destroy(b->profile);
    weft_config_destroy(b->config);
}

int main(void)
{
    struct bench bench = {0};
    struct weft_error err = {0};
    enum weft_status status = make_program(&bench, &err);
    if (status == WEFT_OK) status = open_rank(&bench, &err);
    if (status == WEFT_OK) status = run(&bench, &err);
    if (status != WEFT_OK) fprintf(stderr, "%s\n", err.text);
    close_bench(&bench);
    return weft_status_exit_code(status);
}
