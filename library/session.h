/* SPDX-License-Identifier: Apache-2.0 */
/* A session leads from a config to a plan. It finds the profile, makes the stages, and makes a plan
 * or reads one and checks it against the config. */
#ifndef WEFT_LIBRARY_SESSION_H
#define WEFT_LIBRARY_SESSION_H

#include "base/watch.h"
#include "base/work.h"
#include "plan/plan.h"
#include "problem/stages.h"
#include "program/program.h"
#include "scheduler/solver/lp.h"
#include "spec/config.h"
#include "spec/profile/profile.h"

struct weft_session {
    struct weft_config *config; /* set and owned by the opener of the session */
    struct weft_solver solver;  /* likewise; {0}: planners use dual ascent alone */
    struct weft_watch *watch;   /* likewise; may be NULL */
    bool draft;                 /* likewise; plans get no bound and no certificate */
    bool hint;                  /* likewise; a draft that tells of a change, in little time */
    struct weft_profile *profile;
    struct weft_stages stages;
    struct weft_lower_inputs inputs;
    struct weft_plan *plan;
    struct weft_program *program; /* of the plan; NULL if another runtime runs it */
    struct weft_plan *start;      /* owned; initial plan for planning, or NULL */
};

/* Whether the machine must be measured before planning. That is so without a profile and figures of
 * the device. It is so too with a profile of other ranks and no figures of the links. */
bool weft_session_must_measure(const struct weft_session *session);

/* Replaces the measured *profile by the one to stage. If the config names a profile, that is its
 * profile with the measured collectives and base. On failure *profile is NULL. */
WEFT_MUST_USE enum weft_status weft_session_complete(const struct weft_session *session,
                                                     struct weft_profile **profile,
                                                     struct weft_error *err);

/* Makes profile and stages from the config. A `profile` that is not NULL replaces the config's, and
 * is owned. */
WEFT_MUST_USE enum weft_status weft_session_stage(struct weft_session *session,
                                                  struct weft_profile *profile,
                                                  struct weft_error *err);

/* The same for memory alone; see weft_profile_resolve_for_memory. */
WEFT_MUST_USE enum weft_status weft_session_stage_for_memory(struct weft_session *session,
                                                             struct weft_text *missing,
                                                             struct weft_error *err);

/* After stage: makes the stages of another variant, which settles the split of the config, and
 * drops the plan. */
WEFT_MUST_USE enum weft_status weft_session_stage_variant(struct weft_session *session,
                                                          const struct weft_variant *variant,
                                                          struct weft_error *err);

/* Warns if planning was cut by the alarm or lost its solver, so that another run may differ. */
void weft_session_tell_disturbance(const struct weft_work *work, int64_t time_limit_ns);

/* Adds the alarm to the plan's reason, since it may have cut the search of another variant. */
WEFT_MUST_USE enum weft_status weft_session_note_alarm(const struct weft_work *work,
                                                       struct weft_plan *plan,
                                                       struct weft_error *err);

/* Reads the initial plan, which is for this model at any limit, and stages its variant if the
 * config allows that. ilp plans this variant first and is never slower than the initial plan, if
 * that fits. WEFT_E_DATA if it has other units. */
WEFT_MUST_USE enum weft_status weft_session_start(struct weft_session *session, const char *path,
                                                  struct weft_error *err);

/* After stage: lets layers recompute, and stages a variant anew. WEFT_E_DATA if the times of that
 * are not known; then the session is staged without. */
WEFT_MUST_USE enum weft_status weft_session_open_levels(struct weft_session *session,
                                                        const struct weft_variant *variant,
                                                        struct weft_error *err);

/* The same. If another profile has times of that, *former gets the one before, which the caller
 * owns then; otherwise it stays. */
WEFT_MUST_USE enum weft_status weft_session_renew_levels(struct weft_session *session,
                                                         const struct weft_variant *variant,
                                                         struct weft_profile **former,
                                                         struct weft_error *err);

/* Finds the least device limit over all variants, without pages; INT64_MAX if another tier is too
 * small. The session is staged for the last variant. */
WEFT_MUST_USE enum weft_status weft_session_find_least(struct weft_session *session, int64_t *bytes,
                                                       struct weft_error *err);

/* Whether the config leaves recomputation open (plan.recompute "if-needed") and it is off so
 * far. */
bool weft_session_may_recompute(const struct weft_session *session);

/* weft_session_plan with the levels of recomputation that the config has now. */
WEFT_MUST_USE enum weft_status weft_session_plan_levels(struct weft_session *session,
                                                        const char *planner,
                                                        struct weft_error *err);

/* After stage: makes the plan of `planner` (NULL: the config's) and its program, and verifies it.
 * If no plan of ilp fits and the config leaves recomputation open, layers recompute, which is
 * logged with its cost. */
WEFT_MUST_USE enum weft_status weft_session_plan(struct weft_session *session, const char *planner,
                                                 struct weft_error *err);

/* After stage: reads a plan from a file, makes its program, and verifies it. WEFT_E_DATA if it is
 * not this config's. The plan's memory limit replaces the config's, which is logged. If an override
 * gave another limit, the error names both. */
WEFT_MUST_USE enum weft_status weft_session_load(struct weft_session *session, const char *path,
                                                 struct weft_error *err);

/* The same from memory; `source` names it in messages. */
WEFT_MUST_USE enum weft_status weft_session_take(struct weft_session *session, const char *bytes,
                                                 size_t length, const char *source,
                                                 struct weft_error *err);

/* After load or take: makes the problems of the plan's other periods again. WEFT_OK if the config
 * allows each and its certificate proves its bound. Otherwise WEFT_E_DATA names the period. */
WEFT_MUST_USE enum weft_status weft_session_check_others(const struct weft_session *session,
                                                         const char *source,
                                                         struct weft_error *err);

/* Drops plan and program. */
void weft_session_drop_plan(struct weft_session *session);
/* Accepts {0} and half-open sessions. */
void weft_session_close(struct weft_session *session);

#endif
