/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include "tests/runtime/exec/job.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/rng.h"
#include "offload/disk.h"
#include "problem/stages.h"
#include "program/predict.h"
#include "runtime/exec/parts.h"
#include "runtime/train/data.h"
#include "runtime/train/schedule.h"
#include "scheduler/schedule.h"
#include "tests/runtime/exec/pages.h"

void job_open(struct job *job, const char *path, const char *const *overrides)
{
    struct weft_config_input input = {.source = path, .overrides = overrides};
    while (overrides != NULL && overrides[input.n_overrides] != NULL)
        input.n_overrides++;
    job_open_input(job, &input);
}

void job_open_input(struct job *job, const struct weft_config_input *input)
{
    *job = (struct job){0};
    OK(weft_config_load(input, &job->config, &err));
    OK(weft_profile_analytic(job->config, &job->profile, &err));
    OK(weft_stages_create(job->config, job->profile, &job->stages, &err));
    job->inputs = (struct weft_lower_inputs){
        .model = job->config->model,
        .shards = job->stages.shards,
        .period = job->stages.period,
        .weigh = weft_stages_weigh_options(job->config, job->profile, &job->stages.variant),
        .page_bytes = WEFT_PAGE_LEAST_BYTES,
    };
}

static void drop_plan(struct job *job)
{
    if (job->program != NULL) job_page_as_planned(job);
    weft_program_destroy(job->program);
    weft_plan_destroy(job->plan);
    job->program = NULL;
    job->plan = NULL;
}

void job_close(struct job *job)
{
    drop_plan(job);
    weft_stages_finish(&job->stages);
    weft_profile_destroy(job->profile);
    weft_config_destroy(job->config);
}

void job_page(struct job *job, int64_t page_bytes, int tables, bool shared)
{
    const uint64_t seed = (uint64_t)page_bytes + 7 * (uint64_t)job->program->arena_bytes;
    job_page_as_planned(job);
    job->planned = job->program->paging;
    job->program->paging = pages_make(job->program, page_bytes, tables, shared, seed);
}

void job_page_in_line(struct job *job)
{
    job_page_as_planned(job);
    job->planned = job->program->paging;
    job->program->paging = pages_make_in_line(job->program);
}

void job_page_as_planned(struct job *job)
{
    if (job->planned == NULL) return;
    weft_paging_destroy(job->program->paging);
    job->program->paging = job->planned;
    job->planned = NULL;
}

static void page_as_told(struct job *job)
{
    const char *bytes = getenv("WEFT_TEST_PAGE");
    if (bytes != NULL) job_page(job, strtoll(bytes, NULL, 10), WEFT_PAGE_TABLES, true);
}

/* The unit's strategy of the policy, or where it has none of sdp. */
static int32_t strategy_of(const struct weft_problem_decision *unit, enum weft_policy policy)
{
    if (unit->is_of_layer) return 0;
    int32_t strategy = weft_decision_of_policy(unit, policy);
    return strategy >= 0 ? strategy : weft_decision_of_policy(unit, WEFT_POLICY_SDP);
}

/* A block, its slot, and the slot of its position in the channel. At equal slots a block comes
 * after its predecessors in a chain. */
struct block {
    int32_t at, depth, order;
    struct weft_move move;
};

static int compare(const void *a, const void *b)
{
    const struct block *x = a, *y = b;
    if (x->at != y->at) return x->at - y->at;
    return x->depth != y->depth ? x->depth - y->depth : x->order - y->order;
}

/* Chooses a block's slot and position. Gathers launch at or before the position and reductions are
 * due after it, so every order by position can be met. The position is at least `least`, its
 * predecessor's. */
typedef struct block choose_fn(const struct weft_item *item, int32_t index, int32_t least,
                               void *context);

/* Chooses all blocks of the items, [first block of item + block]; items with predecessors last. */
static void choose_blocks(const struct job *job, const int32_t *strategies, const int32_t *first,
                          choose_fn *choose, void *context, struct block *blocks)
{
    const struct weft_problem *problem = job->stages.problem;
    for (int32_t depth = 0, most = 0; depth <= most; depth++) {
        for (int32_t i = 0; i < problem->n_items; i++) {
            const int32_t own = weft_problem_depth(problem, i), after = problem->items[i].after;
            most = own > most ? own : most;
            if (own != depth || !weft_problem_needs(problem, strategies, i)) continue;
            for (int32_t b = 0; b < problem->items[i].item.n_blocks; b++) {
                struct block *block = &blocks[first[i] + b];
                const int32_t least = after < 0 ? 0 : blocks[first[after] + b].at;
                *block = choose(&problem->items[i].item, first[i] + b, least, context);
                block->depth = depth;
                block->order = first[i] + b;
                block->move.item = i;
            }
        }
    }
}

static void make_plan(struct job *job, const int32_t *strategies, choose_fn *choose, void *context)
{
    const struct weft_problem *problem = job->stages.problem;
    int32_t n = 0, most = weft_problem_count_blocks(problem);
    int32_t *first = calloc((size_t)problem->n_items + 1, sizeof *first);
    struct block *blocks = calloc((size_t)most + 1, sizeof *blocks);
    struct weft_move *moves = calloc((size_t)most + 1, sizeof *moves);
    CHECK(first != NULL && blocks != NULL && moves != NULL, "out of memory");
    for (int32_t i = 0; i < problem->n_items; i++)
        first[i + 1] = first[i] + problem->items[i].item.n_blocks;
    choose_blocks(job, strategies, first, choose, context, blocks);
    for (int32_t i = 0; i < problem->n_items; i++)
        for (int32_t k = first[i]; k < first[i + 1]; k++)
            if (weft_problem_needs(problem, strategies, i)) blocks[n++] = blocks[k];
    qsort(blocks, (size_t)n, sizeof *blocks, compare);
    for (int32_t i = 0; i < n; i++)
        moves[i] = blocks[i].move;
    drop_plan(job);
    OK(weft_plan_create(problem, "by hand", strategies, moves, n, &job->plan, &err));
    OK(weft_plan_predict(job->plan, &err));
    OK(weft_program_lower(job->plan, &job->inputs, &job->program, &err));
    OK(weft_program_verify(job->program, INT64_MAX, &err));
    page_as_told(job);
    free(moves);
    free(blocks);
    free(first);
}

static struct block choose_end(const struct weft_item *item, int32_t index, int32_t least,
                               void *context)
{
    bool lean = *(bool *)context, gathers = item->acquires;
    (void)index;
    int32_t early = gathers ? item->last : item->first;
    int32_t late = gathers ? item->first : item->last;
    return (struct block){.at = early > least ? early : least,
                          .move = {.slot = lean ? early : late}};
}

void job_plan_policy(struct job *job, enum weft_policy policy, bool lean)
{
    const struct weft_problem *problem = job->stages.problem;
    int32_t *strategies = calloc((size_t)problem->n_decisions, sizeof *strategies);
    CHECK(strategies != NULL, "out of memory");
    for (int32_t u = 0; u < problem->n_decisions; u++)
        strategies[u] = strategy_of(&problem->decisions[u], policy);
    make_plan(job, strategies, choose_end, &lean);
    free(strategies);
}

static int32_t draw(uint64_t seed, uint64_t counter, int32_t first, int32_t last)
{
    return first + (int32_t)weft_rng_below(seed, 7, counter, (uint64_t)(last - first) + 1);
}

static struct block choose_random(const struct weft_item *item, int32_t index, int32_t least,
                                  void *context)
{
    uint64_t seed = *(uint64_t *)context, counter = 2 * (uint64_t)index;
    if (item->acquires) {
        const int32_t first = item->first > least ? item->first : least;
        int32_t at =
            draw(seed, counter, first, item->last + item->may_block); /* after it: blocking */
        int32_t slot = at > item->last ? at : draw(seed, counter + 1, item->first, at);
        return (struct block){.at = at, .move = {.slot = slot}};
    }
    int32_t at = draw(seed, counter, item->first > least ? item->first : least, item->last);
    int32_t slot = draw(seed, counter + 1, at, item->last);
    return (struct block){.at = at, .move = {.slot = slot, .launch = seed % 2 == 0 ? at : 0}};
}

void job_plan_random(struct job *job, uint64_t seed)
{
    const struct weft_problem *problem = job->stages.problem;
    int32_t *strategies = calloc((size_t)problem->n_decisions, sizeof *strategies);
    CHECK(strategies != NULL, "out of memory");
    for (int32_t u = 0; u < problem->n_decisions; u++) {
        const struct weft_problem_decision *unit = &problem->decisions[u];
        enum weft_policy policy =
            (enum weft_policy)weft_rng_below(seed, 8, (uint64_t)u, WEFT_POLICY_COUNT);
        strategies[u] = strategy_of(unit, policy);
        if (strategies[u] < 0) strategies[u] = 0; /* the config leaves the policy out */
        policy = unit->strategies[strategies[u]].policy;
        /* One of the locations that it may have. */
        uint64_t n_locations = 0;
        for (int32_t k = 0; k < unit->n_strategies; k++)
            if (unit->strategies[k].policy == policy &&
                weft_rng_below(seed, 9, (uint64_t)(u * unit->n_strategies + k), ++n_locations) == 0)
                strategies[u] = k;
    }
    make_plan(job, strategies, choose_random, &seed);
    free(strategies);
}

bool job_plan_planner(struct job *job, const char *planner)
{
    struct weft_work work = {0};
    struct weft_schedule_options options = {
        .planner = planner, .seed = 1, .budget = weft_budget_of(&work, 5000000000), .gap = 0.01};
    struct weft_error err = {0};
    drop_plan(job);
    enum weft_status status =
        weft_schedule(job->stages.problem, &job->inputs, &options, &job->plan, &job->program, &err);
    CHECK(status == WEFT_OK || status == WEFT_E_INFEASIBLE || status == WEFT_E_DATA, "%s: %s",
          planner, err.text);
    if (status == WEFT_OK) page_as_told(job);
    return status == WEFT_OK;
}

const char *job_device(void)
{
    const char *named = getenv("WEFT_TEST_DEVICE");
    return named != NULL ? named : "cpu";
}

const char *job_comm(void)
{
    const char *named = getenv("WEFT_TEST_COMM");
    return named != NULL ? named : "local";
}

const char *job_disk(void)
{
    struct weft_error unsaid = {0};
    struct weft_disk disk;
    if (weft_disk_open(&weft_disk_calls, ".", true, &disk, &unsaid) != WEFT_OK) return "/var/tmp";
    weft_disk_close(&disk);
    return ".";
}

void job_open_kernels(const struct job *job, struct weft_nn **nn)
{
    const struct weft_nn_options options = {
        .threads = 1,
        .compute = (enum weft_dtype)job->config->train.precision.compute,
        .gemm = "onednn",
    };
    OK(weft_nn_open(job_device(), &options, nn, &err));
}

void job_rank_load(struct job_rank *r)
{
    const struct job *job = r->job;
    OK(weft_exec_map_arena(r->comm, job->program, r->poison, &r->arena, &err));
    struct weft_exec_options exec = {
        .config = job->config,
        .shards = job->stages.shards,
        .plan = job->plan,
        .program = job->program,
        .device = r->device,
        .comm = r->comm,
        .nn = r->nn,
        .arena = r->arena,
        .poison = r->poison,
        .failpoint = &job->failpoint,
    };
    OK(weft_exec_create(&exec, &r->exec, &err));
    OK(weft_exec_initialise(r->exec, (uint64_t)job->config->train.seed, &err));
    OK(weft_trace_create(job->program, "test", &r->trace, &err));
}

void job_rank_unload(struct job_rank *r)
{
    weft_exec_destroy(r->exec);
    weft_trace_destroy(r->trace);
    weft_comm_unmap_arena(r->comm);
}

void job_rank_open(struct job_rank *r, const struct job *job, int32_t rank,
                   const struct ranks *ranks, enum weft_clock clock, bool poison)
{
    struct weft_batch batch = weft_config_batch(job->config);
    struct weft_comm_options options = ranks_options(rank, ranks);
    *r = (struct job_rank){.job = job, .rank = rank, .poison = poison};
    options.ranks_per_node = (int32_t)job->config->cluster.ranks_per_node;
    options.device = job_device();
    OK(weft_device_open(job_device(), clock, &r->device, &err));
    job_open_kernels(job, &r->nn);
    OK(weft_comm_open(job_comm(), &options, &r->comm, &err));
    OK(weft_data_open(job->config, WEFT_DATA_TRAINING, &r->data, &err));
    size_t n_micro = (size_t)job->config->train.grad_accum;
    r->input = calloc(n_micro, (size_t)weft_model_host_input_bytes(job->config->model, &batch));
    r->targets = calloc(n_micro, (size_t)weft_model_target_bytes(job->config->model, &batch));
    CHECK(r->input != NULL && r->targets != NULL, "out of memory");
    job_rank_load(r);
}

struct weft_step_result job_rank_step(struct job_rank *r, int64_t step)
{
    const struct weft_train *train = &r->job->config->train;
    struct weft_step_result result;
    struct weft_step_inputs inputs = {.input = r->input,
                                      .targets = r->targets,
                                      .step = step,
                                      .lr = weft_train_lr(train, step),
                                      .rows = r->rows};
    const struct weft_data_share share =
        weft_data_share_of(r->job->config, r->rank, r->job->program->period.group);
    OK(weft_data_fill_share(r->data, step, &share, r->input, r->targets, &err));
    do {
        OK(weft_exec_step(r->exec, &inputs, &result, r->trace, &err));
        CHECK(result.finite || !result.skipped, "an attempt that is skipped is no failure");
    } while (result.skipped);
    return result;
}

void job_rank_close(struct job_rank *r)
{
    job_rank_unload(r);
    weft_comm_close(r->comm);
    weft_nn_close(r->nn);
    weft_device_close(r->device);
    weft_data_close(r->data);
    free(r->input);
    free(r->targets);
}

struct weft_hash job_rank_end(struct job_rank *r)
{
    struct weft_hash fingerprint;
    OK(weft_exec_settle(r->exec, &err));
    OK(weft_exec_fingerprint(r->exec, &fingerprint, &err));
    job_rank_close(r);
    return fingerprint;
}

unsigned char *job_rank_buffer(const struct job_rank *r, int32_t buffer)
{
    return weft_arena_memory(r->arena) + r->exec->places.offsets[0][buffer];
}

void job_check_touched(const struct job *job, int64_t touched_bytes, const char *what)
{
    const struct weft_paging *paging = job->program->paging;
    const int64_t bytes = paging->n_pages * paging->page_bytes;
    CHECK(touched_bytes == bytes, "%s: %lld bytes of %lld were touched", what,
          (long long)touched_bytes, (long long)bytes);
}

void *job_shared(size_t bytes)
{
    void *shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED, "mmap");
    return shared;
}
