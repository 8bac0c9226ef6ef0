/* A sweep is many plans of one config, over planners and over memory: under each memory limit the
 * step time of each planner; or, when it is a split, under one limit the step time by how much of
 * it the policies were chosen within; or, when it is a grid, the step time of one planner under
 * each memory limit of the device and each of the host. It is shown as a table, JSON, CSV, a
 * picture in the terminal and an SVG. */
#ifndef WEFT_REPORT_SWEEP_H
#define WEFT_REPORT_SWEEP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json/json.h"
#include "base/text.h"
#include "base/units.h"

/* One plan, or that there is none. */
struct weft_sweep_point {
    int64_t limit_bytes;
    int64_t policy_limit_bytes; /* of a split: that policies were chosen within; else 0 */
    int64_t host_limit_bytes;   /* of a grid: of the host's memory; else 0 */
    bool fits;                  /* false: this planner has no plan within the limit */
    int64_t step_ns, exposed_ns, compute_ns, channel_ns, total_bytes; /* predicted */
    int64_t bound_ns;                                                 /* proven; 0 = none */
    int64_t measured_ns, measured_exposed_ns, measured_bytes;         /* 0 = was not executed */
};

/* Points of one planner, in a grid of one limit of the host's memory, by increasing x. */
struct weft_sweep_curve {
    const char *planner;
    int32_t n_points;
    struct weft_sweep_point *points;
};

struct weft_sweep {
    const char *config; /* its path */
    const char *times;  /* source of the profile */
    int64_t ranks;
    bool emulated; /* the link that measured steps went over */
    bool split;    /* x is policy_limit_bytes; the curve with one point is the joint plan */
    bool grid;     /* a curve a limit of the host's memory, increasing; all have the same x */
    int32_t n_curves;
    struct weft_sweep_curve *curves;
};

/* What a curve is called: its planner, or in a grid its limit of the host's memory, in `text`. */
const char *weft_sweep_name(const struct weft_sweep *sweep, int32_t curve,
                            char text[WEFT_UNITS_TEXT_BYTES]);

/* What a point is drawn and listed at. */
int64_t weft_sweep_x(const struct weft_sweep *sweep, const struct weft_sweep_point *point);

/* The highest bound that is proven for plans within the point's limits, by any planner: what is
 * proven for larger limits holds for smaller ones. 0 = none. */
int64_t weft_sweep_bound(const struct weft_sweep *sweep, const struct weft_sweep_point *point);

/* (step - bound) / bound of a point that fits; negative without a bound. */
double weft_sweep_gap(const struct weft_sweep *sweep, const struct weft_sweep_point *point);

/* Points of a planner that have a plan. */
int32_t weft_sweep_count_fits(const struct weft_sweep_curve *curve);

/* A row a planner, a column an x; the bound and the first planner's gap below, and one line of the
 * planners that have no plan at any x. A grid has a row a limit of the host's memory, and below
 * them a row each with its gaps. */
void weft_sweep_table(const struct weft_sweep *sweep, struct weft_text *out);
/* A line a point, with a head; cells of what was not measured, or does not fit, are empty. "times"
 * says where predicted ones come from, "link" what measured ones went over. */
void weft_sweep_csv(const struct weft_sweep *sweep, struct weft_text *out);
/* One object. */
void weft_sweep_json(const struct weft_sweep *sweep, struct weft_json_writer *writer);
/* A picture of letters, or with `unicode` of marks, `columns` wide (at least 24). Nothing when no
 * point fits. */
void weft_sweep_chart(const struct weft_sweep *sweep, int32_t columns, bool unicode,
                      struct weft_text *out);
/* A self-contained SVG document: axes, a line a planner, the band between the bound and the first
 * planner's steps, legend. A grid has a line and a band a limit of the host's memory. Each point
 * has its figures as data attributes, under their names in the CSV. */
void weft_sweep_svg(const struct weft_sweep *sweep, struct weft_text *out);

/* What a picture shows: all that is drawn in it lies within, but for predicted steps of many times
 * the least, so that the rest can be told apart. A grid, which is one planner's, shows them all. */
struct weft_sweep_axes {
    int64_t left, right; /* bytes */
    int64_t low, high;   /* ns */
    bool cut;            /* some predicted steps lie above high, and are drawn at it */
};
/* `measured`: the picture has measured steps too. False when no point fits. */
bool weft_sweep_axes(const struct weft_sweep *sweep, bool measured, struct weft_sweep_axes *out);

#endif
