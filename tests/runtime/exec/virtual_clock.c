/* SPDX-License-Identifier: Apache-2.0 */
/* Traces equal the simulator's: every planner, every shipped config that trains here. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "scheduler/planners/table.h"
#include "scheduler/schedule.h"
#include "tests/effort.h"
#include "tests/runtime/exec/same_trace.h"

enum { MOST_PARAMETERS = 2000000 };

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
    /* The shipped units, with small layers together, and one unit a layer with three blocks; each
     * with and without contention. */
    for (int32_t variant = 0; variant < 6; variant++) {
        if (!TEST_CASES_OF(true, is_of_first_half(variant), is_of_first_half(variant))) continue;
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
            if (p->solves) continue; /* there is no solver */
            if (p->literal ? planner % 6 != variant : !takes(planner + config, variant)) continue;
            if (!job_plan_planner(&job, p->name)) continue;
            CHECK(ranks_run(ranks, same_trace, &job) == 0, "%s, %d ranks, %s", path, ranks,
                  p->name);
            ++*checked;
        }
        for (int32_t seed = 2 * variant; seed < 2 * variant + 2; seed++) {
            job_plan_random(&job, (uint64_t)seed);
            CHECK(ranks_run(ranks, same_trace, &job) == 0, "%s, %d ranks, random plan %d", path,
                  ranks, seed);
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
    bool yes =
        config->train.data != NULL && config->model->parameters <= MOST_PARAMETERS &&
        weft_model_trains(config->model, config->train.seq_len, WEFT_DEVICE_CPU, &why) == WEFT_OK;
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
    CHECK(configs >= 3 && checked >= TEST_CASES_OF(50, 25, 25), "only %d configs and %d plans",
          configs, checked);
    printf("%d plans of %d configs: traces equal the simulator's\n", checked, configs);
    return 0;
}
