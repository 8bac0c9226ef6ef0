/* SPDX-License-Identifier: Apache-2.0 */
/* A crew makes the plans of a study: each row by a process of `weft plan`, several at a time. Rows
 * that an earlier, stopped study planned are taken from its kept results. */
#ifndef WEFT_CLI_STUDY_CREW_H
#define WEFT_CLI_STUDY_CREW_H

#include "cli/process/children.h"
#include "cli/process/kept.h"
#include "cli/study/place.h"

/* A row without plan (WEFT_E_INFEASIBLE; WEFT_E_DATA: it does not apply), or with one (WEFT_OK). */
struct weft_row_end {
    enum weft_status status;
    const struct weft_text *plan; /* the document; NULL without a plan */
    const char *reason;           /* without a plan */
    enum weft_lack lacks;         /* of the reason */
    int64_t needs_bytes;          /* as of struct weft_error */
};

enum { WEFT_ROW_NAME_BYTES = 160 };

struct weft_crew {
    const struct weft_cli *cli;
    struct weft_kept *kept;
    int32_t jobs;   /* processes at a time */
    int32_t n_rows; /* for progress */
    /* The study, and its functions of a row. */
    void *study;
    /* Fills the arguments, and returns their number. They may refer to the place. */
    int (*arguments)(void *study, int32_t row, struct weft_place *place, const char **argv);
    struct weft_hash (*key)(void *study, int32_t row); /* of all its inputs */
    void (*name)(void *study, int32_t row, char out[WEFT_ROW_NAME_BYTES]);
    /* Takes the end of a row. */
    enum weft_status (*take)(void *study, int32_t row, const struct weft_row_end *end,
                             struct weft_error *err);
    int32_t n_done;
    struct weft_child children[WEFT_CHILDREN_MOST];
    int32_t rows[WEFT_CHILDREN_MOST]; /* of each child */
};

/* Reads --jobs; the default is the number of cores. WEFT_E_USAGE. */
WEFT_MUST_USE enum weft_status weft_crew_read_jobs(const char *text, int32_t *jobs,
                                                   struct weft_error *err);

/* Before the first row, and after the last one. No process is left in any case. After a signal the
 * result is WEFT_E_STOPPED. */
void weft_crew_begin(struct weft_crew *crew);
WEFT_MUST_USE enum weft_status weft_crew_end(struct weft_crew *crew, enum weft_status status,
                                             struct weft_error *err);

/* Plans rows in this order; first come those with kept results. Fails as `take` does, or if a
 * process fails for another reason than its row. */
WEFT_MUST_USE enum weft_status weft_crew_plan(struct weft_crew *crew, const int32_t *rows,
                                              int32_t n, struct weft_error *err);

#endif
