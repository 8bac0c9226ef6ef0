/* One program, two executors: under the virtual clock a trace equals the simulator's, record by
 * record, and the bytes live in every slot are the same three ways (the plan's rows, the lifetimes,
 * what the executor counts). Every planner, every shipped config that trains here. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/planners/table.h"
#include "scheduler/schedule.h"
#include "tests/effort.h"
#include "tests/runtime/exec/job.h"

enum { STEPS = 2, MOST_PARAMETERS = 2000000 };

static const char *step_name(const struct job *job, int32_t i, char *out, size_t bytes)
{
    const struct weft_instruction *at = &job->program->instructions[i];
    snprintf(out, bytes, "instruction %d (%s in slot %s)", i, weft_op_name(at->op),
             job->stages.problem->slot_names[at->slot]);
    return out;
}

static int execute(int32_t rank, const struct ranks *ranks, void *argument)
{
    const struct job *job = argument;
    const struct weft_program *program = job->program;
    struct weft_trace *simulated;
    struct job_rank r;
    char name[128];
    job_rank_open(&r, job, rank, ranks, WEFT_CLOCK_VIRTUAL, true);
    OK(weft_simulate(program, &simulated, &err));
    size_t n_rows = (size_t)program->n_slots * WEFT_CATEGORY_COUNT;
    int64_t *rows = calloc(n_rows, sizeof *rows);
    CHECK(rows != NULL, "out of memory");
    weft_plan_rows(job->plan, rows);
    for (int64_t step = 1; step <= STEPS; step++) {
        job_rank_step(&r, step);
        /* The first of rotated periods has nothing carried over from one before. */
        bool whole = step > 1 || !program->period.rotated;
        for (int32_t i = 0; whole && i < program->n_instructions; i++) {
            struct weft_record a = simulated->records[i], b = r.trace->records[i];
            CHECK(a.start_ns == b.start_ns && a.end_ns == b.end_ns,
                  "step %lld, %s: %lld to %lld ns, simulated %lld to %lld", (long long)step,
                  step_name(job, i, name, sizeof name), (long long)b.start_ns, (long long)b.end_ns,
                  (long long)a.start_ns, (long long)a.end_ns);
        }
        for (size_t i = 0; i < n_rows; i++) {
            size_t slot = i / WEFT_CATEGORY_COUNT;
            CHECK(rows[i] == simulated->live_bytes[i] && rows[i] == r.trace->live_bytes[i],
                  "step %lld, slot %s, %s: %lld bytes by the plan, %lld by lifetimes, %lld live",
                  (long long)step, job->stages.problem->slot_names[slot],
                  weft_category_key((enum weft_category)(i % WEFT_CATEGORY_COUNT)),
                  (long long)rows[i], (long long)simulated->live_bytes[i],
                  (long long)r.trace->live_bytes[i]);
        }
    }
    OK(weft_exec_settle(r.exec, &err));
    free(rows);
    weft_trace_destroy(simulated);
    job_rank_close(&r);
    return 0;
}

/* Half of the six variants: all ranks, both kinds of blocks. */
static bool is_of_first_half(int32_t variant)
{
    return variant == 0 || variant == 3 || variant == 4;
}

/* The other half is for the next. */
static bool takes(int32_t planner, int32_t variant)
{
    return is_of_first_half(variant) == (planner % 2 == 0);
}

static void check_config(const char *path, const char *override, int32_t config, int32_t *checked)
{
    /* As shipped, where small layers share units, and with every layer a unit of three blocks;
     * without contention and with. */
    for (int32_t variant = 0; variant < 6; variant++) {
        if (!TEST_CASES(true, is_of_first_half(variant))) continue;
        int32_t ranks = 1 + variant / 2;
        char set_ranks[64];
        snprintf(set_ranks, sizeof set_ranks, "cluster.ranks=%d", ranks);
        const char *overrides[] = {
            set_ranks,
            "cluster.emulate=false",
            variant % 3 == 0 ? "cluster.contention.compute=0" : "cluster.contention.compute=0.23",
            variant % 3 == 1 ? "cluster.contention.channel=0.4" : "cluster.contention.channel=0",
            variant % 2 == 0 ? "plan.fuse=true" : "plan.blocks=3",
            override,
            NULL};
        struct job job;
        job_open(&job, path, overrides);
        for (const struct weft_planner *p = weft_planners(); p->name != NULL; p++) {
            /* Planners take turns, published rules longer ones. */
            int32_t planner = (int32_t)(p - weft_planners());
            if (p->literal ? planner % 6 != variant : !takes(planner + config, variant)) continue;
            if (!job_plan_planner(&job, p->name)) continue;
            CHECK(ranks_run(ranks, execute, &job) == 0, "%s, %d ranks, %s", path, ranks, p->name);
            ++*checked;
        }
        for (int32_t seed = 2 * variant; seed < 2 * variant + 2; seed++) {
            job_plan_random(&job, (uint64_t)seed);
            CHECK(ranks_run(ranks, execute, &job) == 0, "%s, %d ranks, random plan %d", path, ranks,
                  seed);
            ++*checked;
        }
        job_close(&job);
    }
}

/* Small enough to train here, with text to train on. */
static bool trains(const char *path)
{
    struct weft_config *config;
    struct weft_error why = {0};
    OK(weft_config_read(path, NULL, 0, &config, &err));
    bool yes = config->train.data != NULL && config->model->parameters <= MOST_PARAMETERS &&
               weft_model_trains(config->model, config->train.seq_len, &why) == WEFT_OK;
    weft_config_destroy(config);
    return yes;
}

RANKS_TEST(virtual_clock)
{
    const char *directory = "configs/runs";
    DIR *runs = opendir(directory);
    CHECK(runs != NULL, "%s: run this in the source root", directory);
    int32_t configs = 0, checked = 0;
    for (const struct dirent *entry; (entry = readdir(runs)) != NULL;) {
        char path[512];
        if (strstr(entry->d_name, ".json") == NULL) continue;
        snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
        if (!trains(path)) continue;
        check_config(path, NULL, configs, &checked);
        configs++;
    }
    closedir(runs);
    check_config("configs/runs/gpt-odd.json", "train.optimizer.type=lamb", configs, &checked);
    CHECK(configs >= 3 && checked >= 50, "only %d configs and %d plans", configs, checked);
    printf("%d plans of %d configs: traces equal the simulator's\n", checked, configs);
    return 0;
}
