#define _GNU_SOURCE /* for memfd_create */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/log.h"
#include "base/units.h"
#include "cli/process/children.h"
#include "cli/verbs/sweep.h"
#include "spec/kind.h"

enum { MOST_ARGUMENTS = 2 * WEFT_CLI_OVERRIDES + 2 * WEFT_CLI_LAYERS + 32, MOST_TEXTS = 8 };
enum task_state { WAITING, RUNNING, DONE };

struct task {
    int32_t curve, point;
    enum task_state state;
};

struct run {
    const struct weft_cli *cli;
    const char *profile;
    const char *start;           /* plan file that the next child starts from, or NULL */
    struct weft_hash start_hash; /* of that plan */
    struct weft_kept *kept;
    struct weft_sweep *sweep;
    struct weft_text **plans; /* [n_curves]; NULL for a curve whose plans are not stored */
    struct task *tasks;
    int32_t n_tasks, n_done;
    struct weft_child children[WEFT_CHILDREN_MOST];
    int32_t working_on[WEFT_CHILDREN_MOST]; /* task of each child */
};

static struct weft_sweep_point *point_of(const struct run *run, const struct task *task)
{
    return &run->sweep->curves[task->curve].points[task->point];
}

/* A command line and the texts made for it. */
struct arguments {
    int n, n_texts;
    const char *argv[MOST_ARGUMENTS];
    char texts[MOST_TEXTS][128];
};

static void add_argument(struct arguments *to, const char *argument)
{
    to->argv[to->n++] = argument;
}

static void add_text(struct arguments *to, const char *format, ...) WEFT_PRINTF(2, 3);
static void add_text(struct arguments *to, const char *format, ...)
{
    va_list values;
    char *text = to->texts[to->n_texts++];
    va_start(values, format);
    vsnprintf(text, sizeof to->texts[0], format, values);
    va_end(values);
    add_argument(to, text);
}

/* Hashes the task's inputs, except those that all tasks share. */
static struct weft_hash key_of(const struct run *run, const struct task *task)
{
    const struct weft_sweep_point *point = point_of(run, task);
    char hash[WEFT_HASH_TEXT_BYTES];
    return weft_kept_key(run->kept, "plan %s within %lld, %lld, %lld from %s",
                         run->sweep->curves[task->curve].planner, (long long)point->limit_bytes,
                         (long long)point->host_limit_bytes, (long long)point->policy_limit_bytes,
                         run->start ? weft_hash_show(run->start_hash, hash) : "none");
}

static enum weft_status start(struct run *run, int32_t child, int32_t index, struct weft_error *err)
{
    struct task *task = &run->tasks[index];
    const struct weft_sweep_point *point = point_of(run, task);
    struct arguments to = {.argv = {"weft", "plan", run->cli->operands[0], "--output=-", "--quiet"},
                           .n = 5};
    for (int32_t i = 0; i < run->cli->n_overrides; i++) {
        add_argument(&to, "--set");
        add_argument(&to, run->cli->overrides[i]);
    }
    for (int32_t i = 0; run->cli->kinds != NULL && i < run->cli->kinds->n_files; i++) {
        add_argument(&to, "--layers");
        add_argument(&to, run->cli->kinds->files[i]);
    }
    add_text(&to, "--memory-limit=%lldB", (long long)point->limit_bytes);
    add_text(&to, "--planner=%s", run->sweep->curves[task->curve].planner);
    if (run->sweep->grid)
        add_text(&to, "--set=cluster.host.memory_limit=%lldB", (long long)point->host_limit_bytes);
    if (run->cli->ranks > 0) add_text(&to, "--ranks=%lld", (long long)run->cli->ranks);
    if (run->cli->profile && !run->profile) {
        add_argument(&to, "--profile");
        add_argument(&to, run->cli->profile);
    }
    if (run->profile) add_text(&to, "--set=cluster.profile=%s", run->profile);
    if (point->policy_limit_bytes > 0)
        add_text(&to, "--set=plan.policy_limit=%lldB", (long long)point->policy_limit_bytes);
    if (run->start) add_text(&to, "--start=%s", run->start);
    add_argument(&to, NULL);
    WEFT_TRY(weft_child_start(&run->children[child], to.argv, err));
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
    if (point->fits && plan->prediction.step_ns >= point->step_ns) {
        weft_plan_destroy(plan);
        return WEFT_OK;
    }
    point->fits = true;
    point->step_ns = plan->prediction.step_ns;
    point->exposed_ns = plan->prediction.exposed_ns;
    point->compute_ns = plan->prediction.compute_ns;
    point->channel_ns = plan->prediction.channel_ns;
    point->total_bytes = plan->prediction.total_bytes;
    /* If the config leaves the period open, other periods may beat this one's bound. */
    point->bound_ns = weft_plan_least_bound_ns(plan);
    weft_plan_destroy(plan);
    if (run->plans[task->curve]) {
        weft_text_finish(&run->plans[task->curve][task->point]);
        run->plans[task->curve][task->point] = child->said;
        child->said = (struct weft_text){0};
    }
    return WEFT_OK;
}

/* Keeps a plan, or the fact that there is none. Other exit codes may differ the next time. */
static void keep(const struct run *run, const struct task *task, const struct weft_child *child)
{
    const enum weft_status status = weft_status_of_exit_code(child->exit_code);
    if (child->exit_code == 0)
        weft_kept_add(run->kept, key_of(run, task), 0, &child->said);
    else if (status == WEFT_E_DATA || status == WEFT_E_INFEASIBLE)
        weft_kept_add(run->kept, key_of(run, task), child->exit_code, &child->noted);
}

/* Fills the task's point from the child's output, and finishes the child. */
static enum weft_status judge(struct run *run, struct task *task, struct weft_child *child,
                              struct weft_error *err)
{
    const char *planner = run->sweep->curves[task->curve].planner;
    char bytes[WEFT_UNITS_TEXT_BYTES];
    enum weft_status status = weft_status_of_exit_code(child->exit_code);
    if (child->exit_code == 0) {
        status = read_plan(run, task, child, err);
    } else if (status == WEFT_E_DATA) { /* the config is valid, so the rule does not apply */
        if (task->point == 0) weft_log(WEFT_LOG_INFO, "sweep: %s", weft_child_error(child));
        status = WEFT_OK;
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
    return WEFT_OK;
}

static enum weft_status take(struct run *run, int32_t index, struct weft_error *err)
{
    struct weft_child *child = &run->children[index];
    struct task *task = &run->tasks[run->working_on[index]];
    keep(run, task, child);
    return judge(run, task, child, err);
}

/* *found: an earlier, stopped sweep did the task. */
static enum weft_status take_kept(struct run *run, struct task *task, bool *found,
                                  struct weft_error *err)
{
    struct weft_child child = {0};
    struct weft_text text;
    weft_text_init(&text);
    weft_text_init(&child.said);
    weft_text_init(&child.noted);
    *found = weft_kept_find(run->kept, key_of(run, task), &child.exit_code, &text);
    if (*found) *(child.exit_code == 0 ? &child.said : &child.noted) = text;
    return *found ? judge(run, task, &child, err) : WEFT_OK;
}

static int32_t next_task(const struct run *run)
{
    for (int32_t i = 0; i < run->n_tasks; i++)
        if (run->tasks[i].state == WAITING) return i;
    return -1;
}

static enum weft_status plan_all(struct run *run, int32_t jobs, struct weft_error *err)
{
    for (int32_t i = 0; i < run->n_tasks; i++) {
        bool found;
        WEFT_TRY(take_kept(run, &run->tasks[i], &found, err));
        run->n_done += found;
    }
    if (run->n_done > 0)
        weft_log(WEFT_LOG_INFO, "sweep: %d of %d plans were made before it was stopped",
                 run->n_done, run->n_tasks);
    weft_watch_begin(run->cli->watch, "sweep");
    weft_watch_count(run->cli->watch, "plan", run->n_done, run->n_tasks);
    while (run->n_done < run->n_tasks) {
        int32_t ended, next;
        for (int32_t c = 0; c < jobs; c++) {
            if (run->children[c].pid > 0 || (next = next_task(run)) < 0) continue;
            WEFT_TRY(start(run, c, next, err));
        }
        WEFT_TRY(weft_children_wait(run->children, jobs, &ended, run->cli->watch, err));
        WEFT_TRY(take(run, ended, err));
        weft_watch_count(run->cli->watch, "plan", ++run->n_done, run->n_tasks);
    }
    return WEFT_OK;
}

static enum weft_status plan_from(struct run *run, int32_t index, const struct weft_text *plan,
                                  struct weft_error *err)
{
    char path[64];
    int32_t ended;
    bool found;
    run->start = "";
    run->start_hash = weft_hash_bytes(weft_text_chars(plan), plan->length);
    enum weft_status status = take_kept(run, &run->tasks[index], &found, err);
    run->start = NULL;
    if (status != WEFT_OK || found) return status;
    int fd = memfd_create("plan", MFD_CLOEXEC);
    size_t written = 0;
    while (fd >= 0 && written < plan->length) {
        ssize_t n = write(fd, weft_text_chars(plan) + written, plan->length - written);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;
        written += (size_t)n;
    }
    if (fd < 0 || written < plan->length)
        status = weft_fail(err, WEFT_E_SYSTEM, "a memory file for a plan: %s", strerror(errno));
    snprintf(path, sizeof path, "/proc/%ld/fd/%d", (long)getpid(), fd);
    run->start = path;
    if (status == WEFT_OK) status = start(run, 0, index, err);
    if (status == WEFT_OK)
        status = weft_children_wait(run->children, 1, &ended, run->cli->watch, err);
    if (status == WEFT_OK) status = take(run, ended, err);
    run->start = NULL;
    if (fd >= 0) close(fd);
    return status;
}

static bool takes_starts(const struct run *run, int32_t curve)
{
    return strcmp(run->sweep->curves[curve].planner, "ilp") == 0;
}

/* Returns the neighbour with the next smaller limit, of the device or in a grid of the host, that
 * has the faster plan; NULL if neither has one. */
static const struct task *find_before(const struct run *run, int32_t index)
{
    const struct task *task = &run->tasks[index], *best = NULL;
    const int32_t row = run->sweep->curves[task->curve].n_points; /* equal for all curves of a
                                                                   * grid */
    const struct task *before[] = {task->point > 0 ? task - 1 : NULL,
                                   run->sweep->grid && task->curve > 0 ? task - row : NULL};
    for (int i = 0; i < 2; i++) {
        if (!before[i] || !point_of(run, before[i])->fits) continue;
        if (!best || point_of(run, before[i])->step_ns < point_of(run, best)->step_ns)
            best = before[i];
    }
    return best;
}

/* A plan that fits some limits fits all larger ones. So a point without a plan as fast as its
 * neighbours' is replanned from theirs, from the least limits up. The order does not depend on
 * `jobs`. */
static enum weft_status plan_again(struct run *run, struct weft_error *err)
{
    for (int32_t i = 1; i < run->n_tasks; i++) {
        if (!takes_starts(run, run->tasks[i].curve)) continue;
        const struct task *before = find_before(run, i);
        const struct weft_sweep_point *here = point_of(run, &run->tasks[i]);
        if (!before || (here->fits && here->step_ns <= point_of(run, before)->step_ns)) continue;
        WEFT_TRY(plan_from(run, i, &run->plans[before->curve][before->point], err));
    }
    return WEFT_OK;
}

/* Makes room for plans of curves that start from them, if the caller stores none. */
static enum weft_status keep_plans(struct run *run, struct weft_text **plans,
                                   struct weft_error *err)
{
    run->plans = plans;
    for (int32_t c = 0; c < run->sweep->n_curves; c++) {
        if (!takes_starts(run, c)) continue;
        plans[c] = calloc((size_t)run->sweep->curves[c].n_points, sizeof *plans[c]);
        if (!plans[c]) return weft_fail_memory(err, "a sweep");
    }
    return WEFT_OK;
}

static void drop_plans(const struct run *run, struct weft_text **plans)
{
    for (int32_t c = 0; c < run->sweep->n_curves; c++) {
        for (int32_t i = 0; plans[c] && i < run->sweep->curves[c].n_points; i++)
            weft_text_finish(&plans[c][i]);
        free(plans[c]);
    }
}

enum weft_status weft_sweep_plan(const struct weft_cli *cli, const char *profile, int32_t jobs,
                                 struct weft_kept *kept, struct weft_sweep *sweep,
                                 struct weft_text **plans, struct weft_error *err)
{
    struct run run = {.cli = cli, .profile = profile, .kept = kept, .sweep = sweep, .plans = plans};
    struct weft_text *own[WEFT_SWEEP_CURVES] = {NULL};
    for (int32_t c = 0; c < sweep->n_curves; c++)
        run.n_tasks += sweep->curves[c].n_points;
    run.tasks = calloc((size_t)run.n_tasks + 1, sizeof *run.tasks);
    if (!run.tasks) return weft_fail_memory(err, "a sweep");
    int32_t n = 0;
    for (int32_t c = 0; c < sweep->n_curves; c++)
        for (int32_t i = 0; i < sweep->curves[c].n_points; i++)
            run.tasks[n++] = (struct task){.curve = c, .point = i};
    weft_children_begin();
    enum weft_status status = plans ? WEFT_OK : keep_plans(&run, own, err);
    if (status == WEFT_OK) status = plan_all(&run, jobs, err);
    if (status == WEFT_OK) status = plan_again(&run, err);
    for (int32_t c = 0; c < jobs; c++)
        weft_child_finish(&run.children[c]);
    weft_children_end();
    weft_watch_end(cli->watch);
    drop_plans(&run, own);
    free(run.tasks);
    return status;
}
