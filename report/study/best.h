/* SPDX-License-Identifier: Apache-2.0 */
/* The best plan of a config under one limit, next to the best plan of each combination of policy,
 * recomputation and offloading that a user would try by hand. */
#ifndef WEFT_REPORT_STUDY_BEST_H
#define WEFT_REPORT_STUDY_BEST_H

#include <stdbool.h>
#include <stdint.h>

#include "plan/plan.h"
#include "report/answer.h"

/* Why a row has a plan, or none. */
enum weft_best_mark {
    WEFT_BEST_OPEN,        /* not planned yet */
    WEFT_BEST_FITS,        /* it has a plan */
    WEFT_BEST_ABOVE,       /* no plan fits the limit */
    WEFT_BEST_NO_TIMES,    /* the profile has no times of it */
    WEFT_BEST_NOT_ALLOWED, /* the config excludes it */
    WEFT_BEST_MARKS
};

enum { WEFT_BEST_WAYS_BYTES = 192 };

/* Settings of the joint plan other than the config's. */
enum {
    WEFT_BEST_BY_STEP,
    WEFT_BEST_BY_LAYER,
    WEFT_BEST_IN_FORWARD,
    WEFT_BEST_IN_BACKWARD,
    WEFT_BEST_OTHERS
};

struct weft_best_other {
    const char *key, *value;    /* of plan: "micro_step_order", "layer" */
    const char *label, *member; /* of its row in text and in JSON: "by layer", "by_layer" */
};
extern const struct weft_best_other weft_best_others[WEFT_BEST_OTHERS];

/* One combination with its best plan, or its absence. */
struct weft_best_row {
    const char *policy, *recompute, *offload; /* "sdp", "none", "state"; "auto" of the joint plan */
    const struct weft_best_other *other; /* setting of a joint plan; NULL: all are the config's */
    const char *price; /* the promise that `other` gives up. The row is the best only if no row
                          without a price fits. NULL: none */
    enum weft_best_mark mark;
    const char *reason;              /* of a row without a plan */
    int64_t least_bytes;             /* with ABOVE: the least limit, without pages; 0: not known */
    char ways[WEFT_BEST_WAYS_BYTES]; /* the plan's choices, as in the answer */
    int64_t micro_batch;             /* samples of a rank and micro-step */
    int32_t micro_steps;
    int32_t layers;     /* that micro-steps take turns by; 0: one after the other */
    const char *reduce; /* cadence: "step" */
    int64_t step_ns, total_bytes;
    struct weft_plan_claim claim; /* of this combination */
    int64_t rows_bound_ns;        /* no plan of it is faster in any pages; 0: none */
};

struct weft_best {
    const char *config, *times; /* its path, and the source of the profile */
    int64_t ranks, limit_bytes; /* limit_bytes 0: none */
    int64_t samples, seq_len;   /* of a step of all ranks */
    int32_t n_rows;             /* at least n_hand + 1 */
    int32_t n_hand;             /* combinations by hand; the joint plan follows them, then the joint
                                   plans with other settings */
    const char *update_in_refused; /* why there is no row with updates in backward; NULL: none */
    struct weft_best_row *rows;
};

/* Takes the figures of a plan. `micro_batch` counts if the plan does not name one. */
void weft_best_take(struct weft_best_row *row, const struct weft_plan *plan, int64_t micro_batch);

/* The row with the fastest plan; of equally fast ones the one with less memory, then the first
 * by hand; NULL if none fits. Rows with a price follow all others. */
const struct weft_best_row *weft_best_fastest(const struct weft_best *best);

/* "fits", "above the limit" ... */
const char *weft_best_mark_name(enum weft_best_mark mark);

/* One line: the fastest plan, its gain over the best by hand, and the bound, or if no row fits, the
 * least limit of all rows. Then the table of all rows, and the verdict. */
void weft_best_report(const struct weft_best *best, struct weft_answer *answer);

#endif
