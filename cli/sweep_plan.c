#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/units.h"
#include "cli/children.h"
#include "cli/sweep.h"

enum { MOST_ARGUMENTS = 2 * WEFT_CLI_OVERRIDES + 32 };
enum task_state { WAITING, RUNNING, DONE };

struct task {
    int32_t curve, point;
    enum task_state state;
};

struct run {
    const struct weft_cli *cli;
    const char *profile;
    struct weft_sweep *sweep;
    struct weft_text **plans;
    struct task *tasks;
    int32_t n_tasks, n_done;
    struct weft_child children[WEFT_CHILDREN_MOST];
    int32_t working_on[WEFT_CHILDREN_MOST]; /* task */
};

static struct weft_sweep_point *point_of(const struct run *run, const struct task *task)
{
    return &run->sweep->curves[task->curve].points[task->point];
}

static enum weft_status start(struct run *run, int32_t child, int32_t index, struct weft_error *err)
{
    struct task *task = &run->tasks[index];
    const struct weft_sweep_point *point = point_of(run, task);
    const char *planner = run->sweep->curves[task->curve].planner;
    const char *argv[MOST_ARGUMENTS];
    char limit[64], within[64], ranks[32], profile[128], name[128];
    int n = 0;
    argv[n++] = "weft";
    argv[n++] = "plan";
    argv[n++] = run->cli->operands[0];
    argv[n++] = "--output=-";
    argv[n++] = "--quiet";
    for (int32_t i = 0; i < run->cli->n_overrides; i++) {
        argv[n++] = "--set";
        argv[n++] = run->cli->overrides[i];
    }
    snprintf(limit, sizeof limit, "--memory-limit=%lldB", (long long)point->limit_bytes);
    snprintf(name, sizeof name, "--planner=%s", planner);
    argv[n++] = limit;
    argv[n++] = name;
    if (run->cli->ranks > 0) {
        snprintf(ranks, sizeof ranks, "--ranks=%lld", (long long)run->cli->ranks);
        argv[n++] = ranks;
    }
    if (run->profile) {
        snprintf(profile, sizeof profile, "--set=cluster.profile=%s", run->profile);
        argv[n++] = profile;
    }
    if (point->policy_limit_bytes > 0) {
        snprintf(within, sizeof within, "--set=plan.policy_limit=%lldB",
                 (long long)point->policy_limit_bytes);
        argv[n++] = within;
    }
    argv[n] = NULL;
    WEFT_TRY(weft_child_start(&run->children[child], argv, err));
    task->state = RUNNING;
    run->working_on[child] = index;
    return WEFT_OK;
}

static enum weft_status read_plan(struct run *run, struct task *task, struct weft_child *child,
                                  struct weft_error *err)
{
    struct weft_sweep_point *point = point_of(run, task);
    struct weft_plan *plan = NULL;
    if (!weft_text_ok(&child->said)) return weft_fail_memory(err, "a plan");
    WEFT_TRY(weft_plan_parse(weft_text_chars(&child->said), child->said.length,
                             run->sweep->curves[task->curve].planner, &plan, err));
    point->fits = true;
    point->step_ns = plan->prediction.step_ns;
    point->exposed_ns = plan->prediction.exposed_ns;
    point->compute_ns = plan->prediction.compute_ns;
    point->channel_ns = plan->prediction.channel_ns;
    point->total_bytes = plan->prediction.total_bytes;
    /* Where the config leaves its period open, other periods may be faster than this one's bound.
     */
    point->bound_ns = plan->n_variants > 1 ? plan->variants_bound_ns : plan->bound_ns;
    weft_plan_destroy(plan);
    if (run->plans) {
        run->plans[task->curve][task->point] = child->said;
        child->said = (struct weft_text){0};
    }
    return WEFT_OK;
}

/* A line each tenth of the way. */
static void tell_progress(const struct run *run)
{
    int32_t n = run->n_tasks;
    if (n < 10 || run->n_done * 10 / n != (run->n_done - 1) * 10 / n)
        weft_log(WEFT_LOG_INFO, "sweep: %d of %d plans", run->n_done, n);
}

static enum weft_status take(struct run *run, int32_t index, struct weft_error *err)
{
    struct weft_child *child = &run->children[index];
    struct task *task = &run->tasks[run->working_on[index]];
    const char *planner = run->sweep->curves[task->curve].planner;
    char bytes[WEFT_UNITS_TEXT_BYTES];
    enum weft_status status = weft_status_of_exit_code(child->exit_code);
    if (child->exit_code == 0) {
        status = read_plan(run, task, child, err);
    } else if (status != WEFT_E_INFEASIBLE) {
        weft_units_show_bytes(point_of(run, task)->limit_bytes, bytes);
        status = child->exit_code > 128
                     ? weft_fail(err, WEFT_E_INTERNAL,
                                 "planner %s within %s: its process ended by signal %d", planner,
                                 bytes, child->exit_code - 128)
                     : weft_fail(err, status, "planner %s within %s: %s", planner, bytes,
                                 weft_child_error(child));
    } else {
        status = WEFT_OK;
    }
    weft_child_finish(child);
    WEFT_TRY(status);
    task->state = DONE;
    run->n_done++;
    tell_progress(run);
    return WEFT_OK;
}

static int32_t next_task(const struct run *run)
{
    for (int32_t i = 0; i < run->n_tasks; i++)
        if (run->tasks[i].state == WAITING) return i;
    return -1;
}

static enum weft_status plan_all(struct run *run, int32_t jobs, struct weft_error *err)
{
    while (run->n_done < run->n_tasks) {
        int32_t ended, next;
        for (int32_t c = 0; c < jobs; c++) {
            if (run->children[c].pid > 0 || (next = next_task(run)) < 0) continue;
            WEFT_TRY(start(run, c, next, err));
        }
        WEFT_TRY(weft_children_wait(run->children, jobs, &ended, err));
        WEFT_TRY(take(run, ended, err));
    }
    return WEFT_OK;
}

enum weft_status weft_sweep_plan(const struct weft_cli *cli, const char *profile, int32_t jobs,
                                 struct weft_sweep *sweep, struct weft_text **plans,
                                 struct weft_error *err)
{
    struct run run = {.cli = cli, .profile = profile, .sweep = sweep, .plans = plans};
    for (int32_t c = 0; c < sweep->n_curves; c++)
        run.n_tasks += sweep->curves[c].n_points;
    run.tasks = calloc((size_t)run.n_tasks + 1, sizeof *run.tasks);
    if (!run.tasks) return weft_fail_memory(err, "a sweep");
    int32_t n = 0;
    for (int32_t c = 0; c < sweep->n_curves; c++)
        for (int32_t i = 0; i < sweep->curves[c].n_points; i++)
            run.tasks[n++] = (struct task){.curve = c, .point = i};
    weft_children_begin();
    enum weft_status status = plan_all(&run, jobs, err);
    for (int32_t c = 0; c < jobs; c++)
        weft_child_finish(&run.children[c]);
    weft_children_end();
    free(run.tasks);
    return status;
}
