/* SPDX-License-Identifier: Apache-2.0 */
/* A layer that leaves its buffers, or reads dead bytes, is reported with the buffer. The fault
 * handler does it at guards and closed pages; the margin does it if the buffer does not end at
 * one. */
#define _GNU_SOURCE /* siginfo_t */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "layers/supplied.h"
#include "tests/runtime/exec/job.h"

enum {
    STEPS = 3,
    BAD_STEP = 2,
    HIDDEN = 64,
    SAVED_BYTES = 2 * 4096 + WEFT_ARENA_ALIGN_BYTES,
    WEIGHTS = 2048
};

/* Buffers that the layer leaves in its second step. */
enum stray { NOWHERE, OUTPUT, SAVED, INPUT_GRADIENT, GRADIENT, STALE, SYSTEM };

/* Each rank is a process with one of these. */
static struct {
    enum stray stray;
    int64_t saved_bytes;
    int64_t steps;                      /* begun */
    const volatile unsigned char *kept; /* temporary of a step before */
    const struct weft_exec *exec;
    struct weft_error *told; /* shared */
} state = {.saved_bytes = SAVED_BYTES};

static bool strays_to(enum stray stray)
{
    return state.steps == BAD_STEP && state.stray == stray;
}

static enum weft_status stray_shape(void *context, const struct weft_layer_facts *facts,
                                    struct weft_layer_shape *out, struct weft_error *error)
{
    (void)context;
    (void)error;
    out->outputs = facts->hidden;
    out->n_tensors = 1;
    out->tensors[0] = (struct weft_layer_tensor){"weight", WEIGHTS, 0, WEFT_INIT_ONE, 0, false};
    return WEFT_OK;
}

static enum weft_status stray_needs(void *context, const struct weft_layer_facts *facts,
                                    struct weft_layer_needs *out, struct weft_error *error)
{
    (void)context;
    (void)facts;
    (void)error;
    out->saved_bytes = state.saved_bytes;
    out->backward_temporary_bytes = 2 * 4096;
    out->forward_flops = out->backward_flops = 1;
    return WEFT_OK;
}

static enum weft_status stray_forward(void *context, const struct weft_layer_call *call,
                                      struct weft_error *error)
{
    const size_t bytes = (size_t)(call->rows * call->outputs) * sizeof(float);
    (void)context;
    (void)error;
    state.steps++;
    memcpy(call->output, call->input, bytes);
    memset(call->saved, 1, (size_t)state.saved_bytes);
    if (strays_to(OUTPUT)) ((volatile unsigned char *)call->output)[bytes] = 1;
    if (strays_to(SAVED)) ((volatile unsigned char *)call->saved)[state.saved_bytes] = 1;
    if (strays_to(STALE)) (void)*state.kept;
    if (strays_to(SYSTEM)) *(volatile unsigned char *)sysconf(_SC_PAGESIZE) = 1;
    return WEFT_OK;
}

static enum weft_status stray_backward(void *context, const struct weft_layer_call *call,
                                       struct weft_error *error)
{
    const size_t bytes = (size_t)(call->rows * call->outputs) * sizeof(float);
    (void)context;
    (void)error;
    state.kept = call->temporary;
    memset(call->temporary, 1, 2 * 4096);
    memset(call->gradients[0], 0, WEIGHTS * sizeof(float));
    memcpy(call->input_gradient, call->output_gradient, bytes);
    if (strays_to(INPUT_GRADIENT)) ((volatile unsigned char *)call->input_gradient)[bytes] = 1;
    if (strays_to(GRADIENT)) ((volatile float *)call->gradients[0])[WEIGHTS] = 1;
    return WEFT_OK;
}

static const struct weft_layer_kind stray_kind = {.type = "stray",
                                                  .dtypes = 1u << WEFT_F32,
                                                  .shape = stray_shape,
                                                  .needs = stray_needs,
                                                  .forward = stray_forward,
                                                  .backward = stray_backward};

static const char config_text[] =
    "{\"version\":1,\"model\":{\"layers\":["
    "{\"name\":\"wte\",\"type\":\"embedding\",\"vocab\":256,\"hidden\":64},"
    "{\"name\":\"up\",\"type\":\"linear\",\"hidden\":64,\"outputs\":64},"
    "{\"name\":\"act\",\"type\":\"stray\",\"hidden\":64},"
    "{\"name\":\"head\",\"type\":\"lm_head\",\"vocab\":256,\"hidden\":64}]},"
    "\"cluster\":{\"ranks\":1,\"device\":{\"flops\":{\"f32\":\"50G\"},"
    "\"memory_bandwidth\":\"10GB/s\"},\"link\":{\"intra\":{\"alpha\":\"20us\","
    "\"bandwidth\":\"1GB/s\"}}},\"plan\":{\"fuse\":false,\"blocks\":1},"
    "\"train\":{\"steps\":4,\"micro_batch\":2,\"seq_len\":32,"
    "\"data\":\"/usr/share/common-licenses/GPL-3\","
    "\"optimizer\":{\"type\":\"adamw\",\"lr\":1e-2}}}";

static void meet_fault(int signal_number, siginfo_t *info, void *context)
{
    (void)context;
    if (weft_exec_tell_trespass(state.exec, info->si_addr, signal_number == SIGBUS, state.told))
        _exit(state.told->exit_code);
    signal(signal_number, SIG_DFL);
}

static int train(int32_t rank, const struct ranks *ranks, void *argument)
{
    struct sigaction action = {.sa_sigaction = meet_fault, .sa_flags = SA_SIGINFO};
    struct weft_step_result result;
    struct job_rank r;
    job_rank_open(&r, argument, rank, ranks, WEFT_CLOCK_WALL, true);
    state.exec = r.exec;
    sigaction(SIGSEGV, &action, NULL);
    for (int64_t step = 1; step <= STEPS && state.told->status == WEFT_OK; step++) {
        const struct weft_step_inputs inputs = {
            .input = r.input, .targets = r.targets, .step = step};
        OK(weft_data_fill(r.data, step, 0, 2, r.input, r.targets, &err));
        if (weft_exec_step(r.exec, &inputs, &result, NULL, state.told) != WEFT_OK) break;
    }
    job_rank_close(&r);
    return state.told->exit_code;
}

/* How one rank ends, as wait(2) says, when the layer strays there. */
static int outcome_of(struct job *job, enum stray stray)
{
    struct ranks ranks;
    state.stray = stray;
    *state.told = (struct weft_error){0};
    ranks_start(&ranks, 1, train, job);
    ranks_wait(&ranks);
    return ranks.outcomes[0];
}

static void expect_told(struct job *job, enum stray stray, const char *says)
{
    const int outcome = outcome_of(job, stray);
    CHECK(WIFEXITED(outcome) && WEXITSTATUS(outcome) == weft_status_exit_code(WEFT_E_INTERNAL),
          "%s: outcome %d", says, outcome);
    CHECK(state.told->status == WEFT_E_INTERNAL, "%s: %d", says, (int)state.told->status);
    CHECK(strstr(state.told->text, says) != NULL, "%s, not \"%s\"", state.told->text, says);
}

/* The same by failpoints, on layers of Weft's own. */
static void expect_of_failpoint(struct job *job, const char *failpoint, const char *says)
{
    OK(weft_failpoint_parse(failpoint, &job->failpoint, &err));
    expect_told(job, NOWHERE, says);
    OK(weft_failpoint_parse(NULL, &job->failpoint, &err));
}

static void open_job(struct job *job, int64_t saved_bytes)
{
    static struct weft_pool pool;
    static const struct weft_kind *kinds[1];
    static struct weft_kinds known = {.kinds = kinds, .n = 1};
    const struct weft_config_input input = {.bytes = config_text,
                                            .length = sizeof config_text - 1,
                                            .source = "the test",
                                            .directory = "/",
                                            .kinds = &known};
    state.saved_bytes = saved_bytes;
    if (kinds[0] == NULL) kinds[0] = weft_supplied_wrap(&stray_kind, &pool);
    CHECK(kinds[0] != NULL, "out of memory");
    job_open_input(job, &input);
    job_plan_policy(job, WEFT_POLICY_FSDP, true);
    job_page_as_planned(job);
}

RANKS_TEST(trespass)
{
    struct job job;
    state.told = job_shared(sizeof *state.told);
    open_job(&job, SAVED_BYTES);
    CHECK(outcome_of(&job, NOWHERE) == 0, "%s", state.told->text);
    expect_told(&job, OUTPUT,
                "step 2: forward of layer act touched byte 1 after the output of layer act");
    expect_told(&job, SAVED, "forward of layer act touched byte 1 after the saved of layer act");
    expect_told(&job, INPUT_GRADIENT, "byte 1 after the output_gradient of layer up");
    expect_told(&job, GRADIENT,
                "backward of layer act touched byte 1 after the gradient of unit act");
    expect_told(&job, STALE,
                "forward of layer act touched byte 0 of the backward_temporary of layer act, which "
                "was dead");
    expect_of_failpoint(&job, "forward:at=1:step=3:do=overrun",
                        "step 3: forward of layer up touched byte 1 after the output of layer up");
    expect_of_failpoint(&job, "update:at=1:step=2:do=stale",
                        "step 2: update of unit up touched byte 0 of the ");
    /* A fault outside the arena is left to the system. */
    const int outcome = outcome_of(&job, SYSTEM);
    CHECK(WIFSIGNALED(outcome) && WTERMSIG(outcome) == SIGSEGV, "outcome %d", outcome);
    job_close(&job);
    open_job(&job, SAVED_BYTES + 1);
    CHECK(outcome_of(&job, NOWHERE) == 0, "%s", state.told->text);
    expect_told(&job, SAVED, "step 2: bytes next to the saved of layer act were written");
    job_close(&job);
    return 0;
}
