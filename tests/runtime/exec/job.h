/* SPDX-License-Identifier: Apache-2.0 */
/* A job for tests: a shipped config with overrides, a plan made in some way, and the rank's side of
 * it. The parent process makes config, plan and program; ranks inherit them by fork, before there
 * is any thread. A failure ends the process with a message. */
#ifndef WEFT_TESTS_RUNTIME_EXEC_JOB_H
#define WEFT_TESTS_RUNTIME_EXEC_JOB_H

#include <stdbool.h>

#include "plan/plan.h"
#include "problem/stages.h"
#include "program/trace.h"
#include "runtime/exec/exec.h"
#include "runtime/train/data.h"
#include "tests/runtime/comm/ranks.h"

struct job {
    struct weft_config *config;
    struct weft_profile *profile;
    struct weft_stages stages;
    struct weft_lower_inputs inputs;
    struct weft_plan *plan;
    struct weft_program *program;
    struct weft_paging *planned;     /* the program's own while another replaces it, or NULL */
    struct weft_failpoint failpoint; /* none, unless a test sets it */
};

/* `path` from the source root, which tests are run in; overrides end with NULL. Analytic profile.
 */
void job_open(struct job *job, const char *path, const char *const *overrides);
/* The same for input that may have supplied layers. */
void job_open_input(struct job *job, const struct weft_config_input *input);
void job_close(struct job *job);

/* Gives every unit the policy, or sdp if it does not have it. With `lean`, gathers are as late and
 * reductions as early as possible; otherwise the reverse. */
void job_plan_policy(struct job *job, enum weft_policy policy, bool lean);
/* Policies and placements at random. */
void job_plan_random(struct job *job, uint64_t seed);
/* By a planner of the scheduler, without a solver; false when nothing fits. */
bool job_plan_planner(struct job *job, const char *planner);

/* The program has another paging from now on: pages at random (pages.h). Where WEFT_TEST_PAGE says
 * of how many bytes, every program is paged so when it is made, in two tables. */
void job_page(struct job *job, int64_t page_bytes, int tables, bool shared);
/* The same, but each page at one address alone (pages_make_in_line): for ThreadSanitizer, which
 * knows memory by its address. */
void job_page_in_line(struct job *job);
/* And its own again. */
void job_page_as_planned(struct job *job);

/* The device and the communicator of the ranks: "cpu" and "local", unless WEFT_TEST_DEVICE and
 * WEFT_TEST_COMM name others. */
const char *job_device(void);
const char *job_comm(void);
/* A directory for cluster.disk.path: this one, or if it is in memory /var/tmp. */
const char *job_disk(void);
/* Opens one fixed library, not the fastest at the moment: another would give other bits. */
void job_open_kernels(const struct job *job, struct weft_nn **nn);

/* Objects that a rank trains with. */
struct job_rank {
    const struct job *job;
    int32_t rank;
    bool poison;
    struct weft_device *device;
    struct weft_comm *comm;
    struct weft_nn *nn;
    struct weft_arena *arena;
    struct weft_exec *exec;
    struct weft_trace *trace;
    struct weft_data *data;
    void *input;
    int32_t *targets;
    int64_t rows; /* of weft_step_inputs; 0 after open */
};

void job_rank_open(struct job_rank *r, const struct job *job, int32_t rank,
                   const struct ranks *ranks, enum weft_clock clock, bool poison);
/* One step on the job's data. */
struct weft_step_result job_rank_step(struct job_rank *r, int64_t step);
void job_rank_close(struct job_rank *r);
/* Settles and closes. Returns the fingerprint of all parameters. */
struct weft_hash job_rank_end(struct job_rank *r);
/* Between open and close, all ranks alike: after unload the job, which every process has a copy of,
 * may be given another plan, which load takes. */
void job_rank_unload(struct job_rank *r);
void job_rank_load(struct job_rank *r);

/* Address of a buffer in this process, in a first period. */
unsigned char *job_rank_buffer(const struct job_rank *r, int32_t buffer);
/* CHECKs that every page of the arena was touched. */
void job_check_touched(const struct job *job, int64_t touched_bytes, const char *what);

/* Memory that all ranks and the parent see, for results. */
void *job_shared(size_t bytes);

/* CHECKs that a call succeeds, with the error's text. */
#define OK(call)                                                                                   \
    do {                                                                                           \
        struct weft_error err = {0}; /* for the call */                                            \
        enum weft_status status_ = (call);                                                         \
        CHECK(status_ == WEFT_OK, "%s", err.text);                                                 \
    } while (0)

#endif
