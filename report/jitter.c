/* SPDX-License-Identifier: Apache-2.0 */
#include "report/jitter.h"

#include "base/units.h"

void weft_report_jitter(const struct weft_plan *plan, const struct weft_jitter_report *report,
                        struct weft_answer *out)
{
    char mean[WEFT_UNITS_TEXT_BYTES], median[WEFT_UNITS_TEXT_BYTES];
    char p99[WEFT_UNITS_TEXT_BYTES], longest[WEFT_UNITS_TEXT_BYTES];
    const struct weft_jitter_steps *steps = &report->steps;
    const double plain_ns = (double)plan->prediction.step_ns;
    const bool any = plain_ns > 0;
    weft_answer_say(out, NULL,
                    "jitter    compute of %lld ranks varies by %g of its mean, %lld steps: mean %s "
                    "(%+.1f %%), median %s, p99 %s, longest %s\n",
                    (long long)plan->problem->ranks, report->factors.cv, (long long)report->n_steps,
                    weft_units_show_ns(steps->mean_ns, mean),
                    any ? 100 * ((double)steps->mean_ns / plain_ns - 1) : 0.0,
                    weft_units_show_ns(steps->median_ns, median),
                    weft_units_show_ns(steps->p99_ns, p99),
                    weft_units_show_ns(steps->longest_ns, longest));
    weft_answer_say(
        out, NULL, "          a rank's compute waits %.1f %% of a step; without jitter %.1f %%\n",
        100 * steps->waiting, any ? 100 * (double)plan->prediction.exposed_ns / plain_ns : 0.0);
    weft_answer_open(out, "jitter");
    weft_answer_real(out, "cv", report->factors.cv);
    weft_answer_integer(out, "seed", (int64_t)report->factors.seed);
    weft_answer_integer(out, "steps", report->n_steps);
    weft_answer_integer(out, "mean_ns", report->steps.mean_ns);
    weft_answer_integer(out, "median_ns", report->steps.median_ns);
    weft_answer_integer(out, "p99_ns", report->steps.p99_ns);
    weft_answer_integer(out, "longest_ns", report->steps.longest_ns);
    weft_answer_real(out, "waiting", report->steps.waiting);
    weft_answer_close(out);
}
