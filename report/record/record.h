/* SPDX-License-Identifier: Apache-2.0 */
/* A record is one input of a report: a plan, the directory of a run, or the JSON of a sweep or of
 * `weft best`. A run that goes on, or that was killed, has a record too: files that it lacks leave
 * their part empty, and `lacks` says why. */
#ifndef WEFT_REPORT_RECORD_RECORD_H
#define WEFT_REPORT_RECORD_RECORD_H

#include "base/json/json.h"
#include "base/pool.h"
#include "plan/plan.h"
#include "report/study/sweep.h"
#include "spec/profile/profile.h"

enum weft_source_kind {
    WEFT_SOURCE_PLAN,
    WEFT_SOURCE_RUN,
    WEFT_SOURCE_SWEEP,
    WEFT_SOURCE_BEST,
    WEFT_SOURCE_KINDS
};

/* A line of a step. Numbers that the line lacks are NAN. */
struct weft_record_step {
    int64_t step;
    double loss, norm, lr, tokens_per_s, held_bytes;
    double step_ns, exposed_ns, overlapped_ns, data_wait_ns, predicted_step_ns;
};

struct weft_record_validation {
    int64_t step;
    double loss;
};

struct weft_record_metrics {
    int64_t n_steps, n_validations, n_saves;
    struct weft_record_step *steps; /* in the file's order; a repeated step counts once, the last */
    struct weft_record_validation *validations;
    double save_ns;   /* time in which training stood still for checkpoints */
    int64_t n_torn;   /* lines that are no JSON */
    bool is_emulated; /* times depend on an emulated link */
};

/* An event of a lane. `op` is the first word of `name`, such as "backward". */
struct weft_record_event {
    const char *op, *name; /* "backward", "h.3" */
    int32_t lane;
    int64_t from_ns, to_ns;
    bool exposed; /* a wait of compute for a lane */
};

/* Bytes that were live from a time on. */
struct weft_record_live {
    int64_t ns, bytes;
};

/* A rank in the shown step. */
struct weft_record_rank {
    int64_t rank;
    int64_t *busy_ns;   /* by lane, without waits */
    int64_t exposed_ns; /* compute waits for other lanes */
};

struct weft_record_trace {
    const char *source; /* "wall clock, emulated link" */
    int32_t n_lanes;
    const char **lanes; /* names */
    int32_t n_events, n_lives;
    struct weft_record_event *events; /* in order, per lane without overlap */
    struct weft_record_live *lives;
    int64_t step_ns, step; /* the shown step's time and number */
    int32_t n_ranks;       /* of a prediction 0 */
    struct weft_record_rank *ranks;
};

/* One combination of `weft best`. The policy of a joint plan with another setting is the label of
 * that: "in backward". */
struct weft_record_choice {
    const char *policy, *recompute, *offload, *state, *choices;
    bool fits, is_joint;
    double step_ns, tokens_per_s, total_bytes, bound_ns, least_bytes; /* NAN: none */
};

struct weft_record_best {
    const char *answer, *config, *times;
    int64_t ranks, limit_bytes; /* limit_bytes 0: none */
    int32_t n_choices;
    struct weft_record_choice *choices;
};

/* A host of a run that has ended. */
struct weft_record_host {
    const char *name;
    int64_t ranks, cores;
    double others_cores, stolen_cores; /* NAN: not known */
};

/* Means of the steps of a rank of a run that has ended. */
struct weft_record_seat {
    int32_t rank, host; /* host: by its place in the list */
    double compute_ns, exposed_ns, data_wait_ns;
};

/* By result.json. Without hosts there are no ranks. */
struct weft_record_hosts {
    int32_t n_hosts, n_ranks;
    struct weft_record_host *hosts;
    struct weft_record_seat *ranks;
};

struct weft_source {
    struct weft_pool pool;
    enum weft_source_kind kind;
    const char *path, *name; /* as given; its last part */
    struct weft_plan *plan;  /* PLAN and RUN; NULL: lacking */
    struct weft_record_metrics metrics;
    struct weft_record_trace *trace; /* NULL: lacking */
    struct weft_json *config;        /* RUN/config.json; NULL: lacking */
    char *config_text;               /* the same file; owned */
    struct weft_json *result;        /* RUN/result.json; NULL: the run has not ended */
    struct weft_record_hosts hosts;  /* RUN */
    struct weft_profile *profile;    /* RUN/profile.json; NULL: lacking */
    struct weft_sweep *sweep;        /* SWEEP */
    struct weft_record_best *best;   /* BEST */
    const char *lacks_plan, *lacks_trace, *lacks_steps; /* why; NULL: it lacks nothing */
    const char
        *damaged_result; /* why its result.json cannot be read; NULL: it can, or is missing */
};

/* Reads `path`. `trace` is a run's or a plan's trace; NULL: RUN/trace.json, if it is there.
 * WEFT_E_NO_INPUT for no such path, WEFT_E_DATA for a file of another kind. Finish it also after a
 * failure. */
WEFT_MUST_USE enum weft_status weft_source_read(const char *path, const char *trace,
                                                struct weft_source *out, struct weft_error *err);
void weft_source_finish(struct weft_source *record);

/* Parts of the reader. The pool of the record owns their results. */
WEFT_MUST_USE enum weft_status weft_record_read_metrics(const char *path,
                                                        struct weft_source *record,
                                                        struct weft_error *err);
WEFT_MUST_USE enum weft_status weft_record_read_trace(const char *path, struct weft_source *record,
                                                      struct weft_error *err);
/* Reads the hosts of a result. A list of another form is left out, whole. */
WEFT_MUST_USE enum weft_status weft_record_read_hosts(const struct weft_json_value *result,
                                                      struct weft_source *record,
                                                      struct weft_error *err);
WEFT_MUST_USE enum weft_status weft_record_read_sweep(const struct weft_json_value *root,
                                                      const char *path, struct weft_source *record,
                                                      struct weft_error *err);
WEFT_MUST_USE enum weft_status weft_record_read_best(const struct weft_json_value *root,
                                                     const char *path, struct weft_source *record,
                                                     struct weft_error *err);

/* A member's number, NAN without; its integer, 0 without; its string, "" without, copied. */
double weft_record_number(const struct weft_json_value *object, const char *name);
int64_t weft_record_integer(const struct weft_json_value *object, const char *name);
const char *weft_record_word(struct weft_source *record, const struct weft_json_value *object,
                             const char *name);

#endif
