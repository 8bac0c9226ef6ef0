#include "scheduler/planners/table.h"

#include <stdio.h>
#include <string.h>

#include "scheduler/planners/ahead.h"
#include "scheduler/planners/bucket.h"
#include "scheduler/planners/bytescheduler.h"
#include "scheduler/planners/deepcompile.h"
#include "scheduler/planners/deepspeed.h"
#include "scheduler/planners/plain.h"
#include "scheduler/planners/planners.h"
#include "spec/field.h"

#define PLANNER_LITERAL(identifier, name, literal, text) name,

static const struct weft_planner planners[] = {
#define ROW(identifier, name, literal, text) {name, text, literal, weft_planner_##identifier},
    WEFT_PLANNER_MAP(ROW)
#undef ROW
        {NULL, NULL, false, NULL},
};

const struct weft_planner *weft_planners(void)
{
    return planners;
}

bool weft_planner_is_rule(const struct weft_planner *planner)
{
    return planner->decide != weft_planner_ilp && planner->decide != weft_planner_greedy;
}

int weft_planner_homes(const struct weft_planner *planner)
{
    static const struct {
        const char *planner;
        int homes;
    } all[] = {
        {"zero-infinity", 1 << WEFT_HOME_DISK},
        {"offload-stream", 1 << WEFT_HOME_HOST},
        {"offload-greedy", 1 << WEFT_HOME_HOST | 1 << WEFT_HOME_DISK},
        {"deepcompile-offload", 1 << WEFT_HOME_HOST},
        {"zero-offload", 1 << WEFT_HOME_HOST},
        {"twin-flow", 1 << WEFT_HOME_HOST},
        {"fsdp2-cpu-offload", 1 << WEFT_HOME_HOST},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (strcmp(all[i].planner, planner->name) == 0) return all[i].homes;
    return 0;
}

bool weft_planner_uses(const struct weft_planner *planner, enum weft_home home)
{
    return !weft_planner_is_rule(planner) || planner->decide == weft_planner_two_stage ||
           planner->decide == weft_planner_random || home == WEFT_HOME_DEVICE ||
           (weft_planner_homes(planner) >> home & 1) != 0;
}

bool weft_planner_is_rule_for(const struct weft_planner *planner,
                              const struct weft_problem *problem)
{
    const int homes = weft_planner_homes(planner);
    bool has = homes == 0;
    for (int32_t t = 1; t < problem->n_tiers; t++)
        has |= (homes >> problem->tiers[t].kind & 1) != 0;
    return weft_planner_is_rule(planner) && has;
}

const struct weft_setting *weft_planner_settings(const struct weft_planner *planner)
{
    static const struct {
        const char *planner;
        const struct weft_setting *settings;
    } all[] = {
        {"ddp", weft_bucket_settings},
        {"zero1", weft_bucket_settings},
        {"fairscale", weft_bucket_settings},
        {"fsdp2", weft_fsdp2_settings},
        {"fsdp2-mix", weft_ahead_settings},
        {"deepspeed", weft_deepspeed_settings},
        {"zero-infinity", weft_deepspeed_settings},
        {"offload-stream", weft_ahead_settings},
        {"deepcompile", weft_deepcompile_settings},
        {"deepcompile-offload", weft_deepcompile_offload_settings},
        {"zero-offload", weft_zero_offload_settings},
        {"twin-flow", weft_twin_flow_settings},
        {"fsdp2-cpu-offload", weft_ahead_settings},
        {"bytescheduler", weft_bytescheduler_settings},
        {"dear", weft_bucket_settings},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (strcmp(all[i].planner, planner->name) == 0) return all[i].settings;
    return NULL;
}

static const struct weft_setting *find_setting(const struct weft_setting *settings,
                                               const char *name)
{
    for (; settings && settings->name; settings++)
        if (strcmp(settings->name, name) == 0) return settings;
    return NULL;
}

const struct weft_planner *weft_planner_find(const char *name, const struct weft_setting **setting)
{
    size_t length = strcspn(name, ":");
    for (const struct weft_planner *planner = planners; planner->name; planner++) {
        const struct weft_setting *found = NULL;
        if (strlen(planner->name) != length || memcmp(planner->name, name, length) != 0) continue;
        if (name[length] != '\0') {
            found = find_setting(weft_planner_settings(planner), name + length + 1);
            if (!found) return NULL;
        }
        if (setting) *setting = found;
        return planner;
    }
    return NULL;
}

/* A name that is a policy's, or near that of a planner; else all there are. */
static enum weft_status refuse_planner(const char *name, struct weft_error *err)
{
    const char *names[] = {WEFT_PLANNER_MAP(PLANNER_LITERAL)};
    enum weft_policy policy;
    if (weft_policy_read(name, &policy))
        return weft_fail(err, WEFT_E_USAGE,
                         "no planner \"%s\": it is a policy. Planner all-%s gives it to every "
                         "unit; plan.policies says which ones ilp may choose from (--set "
                         "plan.policies=%s)",
                         name, weft_policy_name(policy), weft_policy_name(policy));
    const char *near = weft_field_nearest(name, names, sizeof names / sizeof *names);
    if (near)
        return weft_fail(err, WEFT_E_USAGE,
                         "no planner \"%s\"; did you mean %s? `weft help plan` tells of all", name,
                         near);
    return weft_fail(err, WEFT_E_USAGE, "no planner \"%s\"; there are " WEFT_PLANNER_NAMES, name);
}

enum weft_status weft_planner_need(const char *name, struct weft_error *err)
{
    char meant[64], settings[512] = "";
    if (weft_planner_find(name, NULL)) return WEFT_OK;
    snprintf(meant, sizeof meant, "%.*s", (int)strcspn(name, ":"), name);
    const struct weft_planner *planner = weft_planner_find(meant, NULL);
    if (!planner) return refuse_planner(meant, err);
    const struct weft_setting *setting = weft_planner_settings(planner);
    if (!setting)
        return weft_fail(err, WEFT_E_USAGE, "planner %s has no settings; write \"%s\"", meant,
                         meant);
    for (; setting->name; setting++) {
        size_t length = strlen(settings);
        snprintf(settings + length, sizeof settings - length, " %s", setting->name);
    }
    return weft_fail(err, WEFT_E_USAGE, "planner %s has no setting \"%s\"; there are%s", meant,
                     name + strlen(meant) + 1, settings);
}
