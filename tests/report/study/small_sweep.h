/* SPDX-License-Identifier: Apache-2.0 */
/* The sweeps that the tests of their pictures look at: `best` under three limits, `slow` that does
 * not fit the first and is off the scale in the second; and a grid of a planner without any of the
 * host's memory, which does not fit the first limit either, and with some. */
#ifndef WEFT_TESTS_REPORT_STUDY_SMALL_SWEEP_H
#define WEFT_TESTS_REPORT_STUDY_SMALL_SWEEP_H

#include <criterion/criterion.h>
#include <string.h>

#include "report/study/sweep.h"

struct small_sweep {
    struct weft_sweep_point best[3], slow[3];
    struct weft_sweep_curve curves[2];
    struct weft_sweep sweep;
};

static inline void make_small_sweep(struct small_sweep *out)
{
    enum { KIB = 1024, US = 1000 };
    *out = (struct small_sweep){
        .best = {{.limit_bytes = 1 * KIB,
                  .fits = true,
                  .step_ns = 300 * US,
                  .exposed_ns = 30 * US,
                  .compute_ns = 270 * US,
                  .channel_ns = 100 * US,
                  .total_bytes = 1000,
                  .bound_ns = 150 * US},
                 {.limit_bytes = 2 * KIB, .fits = true, .step_ns = 220 * US, .bound_ns = 200 * US},
                 {.limit_bytes = 3 * KIB, .fits = true, .step_ns = 200 * US, .bound_ns = 200 * US}},
        .slow = {{.limit_bytes = 1 * KIB},
                 {.limit_bytes = 2 * KIB, .fits = true, .step_ns = 900 * US},
                 {.limit_bytes = 3 * KIB, .fits = true, .step_ns = 400 * US}},
    };
    out->curves[0] = (struct weft_sweep_curve){"best", 3, out->best};
    out->curves[1] = (struct weft_sweep_curve){"slow", 3, out->slow};
    out->sweep = (struct weft_sweep){.config = "a<b.json",
                                     .title = "a<b, 4 ranks\ntimes analytic; weft 0.2.0",
                                     .least_bytes = KIB,
                                     .times = "analytic",
                                     .ranks = 4,
                                     .n_curves = 2,
                                     .curves = out->curves};
}

struct small_grid {
    struct weft_sweep_point none[3], some[3];
    struct weft_sweep_curve curves[2];
    struct weft_sweep sweep;
};

static inline void make_small_grid(struct small_grid *out)
{
    enum { KIB = 1024, US = 1000 };
    *out = (struct small_grid){
        .none = {{.limit_bytes = 1 * KIB},
                 {.limit_bytes = 2 * KIB, .fits = true, .step_ns = 300 * US, .bound_ns = 250 * US},
                 {.limit_bytes = 3 * KIB, .fits = true, .step_ns = 200 * US, .bound_ns = 200 * US}},
        .some = {{.limit_bytes = 1 * KIB, .fits = true, .step_ns = 400 * US, .bound_ns = 380 * US},
                 {.limit_bytes = 2 * KIB, .fits = true, .step_ns = 220 * US, .bound_ns = 150 * US},
                 {.limit_bytes = 3 * KIB, .fits = true, .step_ns = 200 * US, .bound_ns = 190 * US}},
    };
    for (int i = 0; i < 3; i++)
        out->some[i].host_limit_bytes = 4 * KIB;
    out->curves[0] = (struct weft_sweep_curve){"ilp", 3, out->none};
    out->curves[1] = (struct weft_sweep_curve){"ilp", 3, out->some};
    out->sweep = (struct weft_sweep){.config = "a<b.json",
                                     .title = "a<b, 4 ranks\ntimes analytic; weft 0.2.0",
                                     .least_bytes = KIB,
                                     .times = "analytic",
                                     .ranks = 4,
                                     .grid = true,
                                     .n_curves = 2,
                                     .curves = out->curves};
}

static inline void expect_text(struct weft_text *text, const char *expected)
{
    cr_assert(weft_text_ok(text));
    cr_assert_str_eq(weft_text_chars(text), expected, "got:\n%s", weft_text_chars(text));
    weft_text_finish(text);
}

#endif
