/* A session is the way from a config to a plan: find its profile, make the stages, and get a plan
 * (made, or read from a file and checked against the config). */
#ifndef WEFT_LIBRARY_SESSION_H
#define WEFT_LIBRARY_SESSION_H

#include "base/watch.h"
#include "base/work.h"
#include "plan/plan.h"
#include "problem/stages.h"
#include "program/program.h"
#include "scheduler/solver/mip.h"
#include "spec/config.h"
#include "spec/profile/profile.h"

struct weft_session {
    struct weft_config *config; /* set by whoever opens the session; owned */
    struct weft_solver solver;  /* likewise; {0}: the planner's own ascent is all there is */
    struct weft_watch *watch;   /* likewise; or NULL */
    bool draft;                 /* likewise; plans have no bound and no certificate */
    struct weft_profile *profile;
    struct weft_stages stages;
    struct weft_lower_inputs inputs;
    struct weft_plan *plan;
    struct weft_program *program; /* of the plan */
    struct weft_plan *start;      /* owned; a plan to start planning from, or NULL */
};

/* True when the config has neither a profile nor figures of the device, or a profile of other ranks
 * and no figures of the links: there are no times to plan with until the machine is measured. */
bool weft_session_must_measure(const struct weft_session *session);

/* Replaces a profile that was measured for that by the one to stage: where the config names one,
 * that with the measured collectives and base. On failure there is none. */
WEFT_MUST_USE enum weft_status weft_session_complete(const struct weft_session *session,
                                                     struct weft_profile **profile,
                                                     struct weft_error *err);

/* With a config: profile and stages. With `profile` not NULL that one is taken (and owned) instead
 * of the config's. */
WEFT_MUST_USE enum weft_status weft_session_stage(struct weft_session *session,
                                                  struct weft_profile *profile,
                                                  struct weft_error *err);

/* The same for who asks for memory alone: see weft_profile_resolve_for_memory. */
WEFT_MUST_USE enum weft_status weft_session_stage_for_memory(struct weft_session *session,
                                                             struct weft_text *missing,
                                                             struct weft_error *err);

/* After stage: the stages of another period; the session has no plan then. */
WEFT_MUST_USE enum weft_status weft_session_stage_period(struct weft_session *session,
                                                         const struct weft_period_rule *rule,
                                                         struct weft_error *err);
/* After stage: the stages of that of the config's periods whose plans can hold least, before
 * pages are given out. */
WEFT_MUST_USE enum weft_status weft_session_stage_leanest(struct weft_session *session,
                                                          struct weft_error *err);

/* Warns when something beside the work decided where planning ended: the alarm, or a solver that
 * was lost. */
void weft_session_tell_disturbance(const struct weft_work *work, int64_t time_limit_ns);

/* Reads a plan to start from: of this model at any limit. WEFT_E_DATA when it has other units. */
WEFT_MUST_USE enum weft_status weft_session_start(struct weft_session *session, const char *path,
                                                  struct weft_error *err);

/* After stage: the plan of `planner` (NULL: the config's), its program, verified. */
WEFT_MUST_USE enum weft_status weft_session_plan(struct weft_session *session, const char *planner,
                                                 struct weft_error *err);

/* After stage: a plan from a file; refused when it is not this config's. Its program, verified. The
 * plan's memory limit takes the place of the config's, which is told, unless an override gave that:
 * then it is refused with both. */
WEFT_MUST_USE enum weft_status weft_session_load(struct weft_session *session, const char *path,
                                                 struct weft_error *err);

/* The same from bytes that `source` names. */
WEFT_MUST_USE enum weft_status weft_session_take(struct weft_session *session, const char *bytes,
                                                 size_t length, const char *source,
                                                 struct weft_error *err);

/* After load or take: WEFT_OK when the other periods that the plan proves something of are this
 * config's; else WEFT_E_DATA with the first differences. */
WEFT_MUST_USE enum weft_status weft_session_check_others(const struct weft_session *session,
                                                         struct weft_error *err);

/* Forgets plan and program, so that another can be made. */
void weft_session_drop_plan(struct weft_session *session);
/* Accepts {0} and half-open ones. */
void weft_session_close(struct weft_session *session);

#endif
