/* SPDX-License-Identifier: Apache-2.0 */
/* A sweep is many plans of one config: of each planner within each memory limit. A split keeps one
 * limit and chooses policies within a part of it. A grid plans by one planner within each memory
 * limit of the device and of the host. Its reports are an answer, a picture in the terminal and an
 * SVG. */
#ifndef WEFT_REPORT_STUDY_SWEEP_H
#define WEFT_REPORT_STUDY_SWEEP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "base/units.h"
#include "report/answer.h"
#include "report/study/way_shares.h"
#include "spec/config.h"

/* One plan, or its absence. */
struct weft_sweep_point {
    int64_t limit_bytes;
    int64_t policy_limit_bytes; /* of a split: policies were chosen within; otherwise 0 */
    int64_t host_limit_bytes;   /* of a grid: of the host's memory; otherwise 0 */
    bool fits;                  /* false: the planner has no plan within the limit */
    int64_t step_ns, exposed_ns, compute_ns, channel_ns, total_bytes; /* predicted */
    int64_t bound_ns;                                                 /* proven; 0 = none */
    struct weft_way_shares shares;                            /* of the plan; all 0: not known */
    int64_t measured_ns, measured_exposed_ns, measured_bytes; /* 0: not run */
    int64_t measured_spread_ns;  /* of several runs: the longest step less the shortest */
    int64_t measured_channel_ns; /* communication of the run with the median step */
};

/* Points of one planner by increasing x; in a grid, of one limit of the host's memory. */
struct weft_sweep_curve {
    const char *planner;
    int32_t n_points;
    struct weft_sweep_point *points;
};

struct weft_sweep {
    const char *config;  /* its path */
    const char *title;   /* of the SVG, by weft_sweep_title */
    int64_t least_bytes; /* least memory of any plan, per rank; 0: not known */
    const char *times;   /* source of the profile */
    int64_t ranks;
    bool emulated; /* of measured steps: an emulated link */
    bool split;    /* x is policy_limit_bytes; a curve of one point is the joint plan */
    bool grid;     /* one curve per host limit, increasing; all have the same x */
    int32_t n_curves;
    struct weft_sweep_curve *curves;
};

/* Name of a curve: its planner, or in a grid its limit of the host's memory, in `text`. */
const char *weft_sweep_name(const struct weft_sweep *sweep, int32_t curve,
                            char text[WEFT_UNITS_TEXT_BYTES]);

/* Memory at which a point is drawn and listed. */
int64_t weft_sweep_x(const struct weft_sweep *sweep, const struct weft_sweep_point *point);

/* The highest bound of any planner for plans within the point's limits. A bound for larger limits
 * holds for smaller ones. 0 = none. */
int64_t weft_sweep_bound(const struct weft_sweep *sweep, const struct weft_sweep_point *point);

/* (step - bound) / bound of a point that fits; negative without a bound. */
double weft_sweep_gap(const struct weft_sweep *sweep, const struct weft_sweep_point *point);

/* A measured point drifts if its repeated steps differ by more than this share. */
static const double WEFT_SWEEP_DRIFT = 0.02;
bool weft_sweep_drifts(const struct weft_sweep_point *point);

/* Points of a planner that have a plan. */
int32_t weft_sweep_count_fits(const struct weft_sweep_curve *curve);

/* Adds a series of points for each curve, "curves", which CSV has too. A column is without a value
 * where no plan fits or none was measured. "times" is the source of predicted times, "link" that of
 * measured ones. Text has a table with one row per planner and one column per x. The bound, the
 * first planner's gap and the shares of its strategies follow, then one line with the planners
 * without any plan. A grid has one row per host limit, and then one row each with its gaps. */
void weft_sweep_report(const struct weft_sweep *sweep, struct weft_answer *answer);
/* The points alone. */
void weft_sweep_put_points(const struct weft_sweep *sweep, struct weft_answer *answer);
/* Adds data attributes of an SVG element: planner, limits, and the value of one more column of the
 * CSV, under the names of the CSV with "-" in place of "_". */
void weft_sweep_add_data(const struct weft_sweep *sweep, int32_t curve,
                         const struct weft_sweep_point *point, const char *name,
                         struct weft_text *out);
/* Draws a picture of letters, or with `unicode` of marks, `columns` wide (at least 24). Nothing if
 * no point fits. */
void weft_sweep_chart(const struct weft_sweep *sweep, int32_t columns, bool unicode,
                      struct weft_text *out);
/* The lines of a figure's title: model, parameters and ranks; batch; link; source of the times and
 * version of the program. */
void weft_sweep_title(const struct weft_config *config, const char *times, const char *version,
                      struct weft_text *out);
/* A self-contained SVG document in tenths of a millimetre of a column of 85 mm, drawn twice as
 * wide. A planner is a staircase with its name at the end, since a plan holds from its limit up. A
 * grid has a staircase for each host limit. The part without plans is shaded. The bound is a dotted
 * line where it differs from the best plan. Each mark has its figures as data attributes, under
 * their names in the CSV. */
void weft_sweep_svg(const struct weft_sweep *sweep, struct weft_text *out);

/* The range of a picture. Predicted steps of many times the least lie above it, so that the others
 * can be told apart. The range of a grid, which has one planner, has all of its points. */
struct weft_sweep_axes {
    int64_t left, right; /* bytes */
    int64_t low, high;   /* ns */
    bool cut;            /* some predicted steps exceed high, and are drawn there */
};
/* With `measured` the picture has measured steps too. False if no point fits. */
bool weft_sweep_axes(const struct weft_sweep *sweep, bool measured, struct weft_sweep_axes *out);

#endif
