/* The best plan of a config under one limit, next to the best plan of each combination of policy,
 * recomputation and offloading that a user would try by hand. Reports are a table and JSON. */
#ifndef WEFT_REPORT_STUDY_BEST_H
#define WEFT_REPORT_STUDY_BEST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json/json.h"
#include "base/text.h"
#include "plan/plan.h"

/* One combination with its best plan, or its absence. */
struct weft_best_row {
    const char *policy, *recompute, *offload; /* "sdp", "none", "state"; "auto" of the joint plan */
    bool fits;                                /* false: no plan fits the limit */
    const char *reason;                       /* of a row without a plan */
    int64_t micro_batch;                      /* samples of a rank and micro-step */
    int32_t micro_steps;
    const char *reduce; /* cadence: "step" */
    int64_t step_ns, total_bytes;
    int64_t bound_ns; /* no plan of this combination is faster; 0: none */
};

struct weft_best {
    const char *config, *times; /* its path, and the source of the profile */
    int64_t ranks, limit_bytes; /* limit_bytes 0: none */
    int64_t samples, seq_len;   /* of a step of all ranks */
    int32_t n_rows;             /* at least 1 */
    struct weft_best_row *rows; /* the last one is the joint plan */
};

/* Takes the figures of a plan. `micro_batch` counts if the plan does not name one. */
void weft_best_take(struct weft_best_row *row, const struct weft_plan *plan, int64_t micro_batch);

/* The row with the fastest plan; of equally fast ones the one with less memory, then the first
 * by hand; NULL if none fits. */
const struct weft_best_row *weft_best_fastest(const struct weft_best *best);

void weft_best_table(const struct weft_best *best, struct weft_text *out);
void weft_best_json(const struct weft_best *best, struct weft_json_writer *writer);

#endif
