#include "report/jitter.h"

#include "base/units.h"

void weft_report_jitter(const struct weft_plan *plan, const struct weft_jitter_report *report,
                        struct weft_text *out)
{
    char mean[WEFT_UNITS_TEXT_BYTES], median[WEFT_UNITS_TEXT_BYTES];
    char p99[WEFT_UNITS_TEXT_BYTES], longest[WEFT_UNITS_TEXT_BYTES];
    const struct weft_jitter_steps *steps = &report->steps;
    const double plain_ns = (double)plan->prediction.step_ns;
    const bool any = plain_ns > 0;
    weft_text_addf(out,
                   "jitter    compute of %lld ranks varies by %g of its mean, %lld steps: mean %s "
                   "(%+.1f %%), median %s, p99 %s, longest %s\n",
                   (long long)plan->problem->ranks, report->factors.cv, (long long)report->n_steps,
                   weft_units_show_ns(steps->mean_ns, mean),
                   any ? 100 * ((double)steps->mean_ns / plain_ns - 1) : 0.0,
                   weft_units_show_ns(steps->median_ns, median),
                   weft_units_show_ns(steps->p99_ns, p99),
                   weft_units_show_ns(steps->longest_ns, longest));
    weft_text_addf(
        out, "          a rank's compute waits %.1f %% of a step; without jitter %.1f %%\n",
        100 * steps->waiting, any ? 100 * (double)plan->prediction.exposed_ns / plain_ns : 0.0);
}

void weft_report_jitter_json(const struct weft_jitter_report *report,
                             struct weft_json_writer *writer)
{
    weft_json_key(writer, "jitter");
    weft_json_begin_object(writer);
    weft_json_put_number(writer, "cv", report->factors.cv);
    weft_json_put_integer(writer, "seed", (int64_t)report->factors.seed);
    weft_json_put_integer(writer, "steps", report->n_steps);
    weft_json_put_integer(writer, "mean_ns", report->steps.mean_ns);
    weft_json_put_integer(writer, "median_ns", report->steps.median_ns);
    weft_json_put_integer(writer, "p99_ns", report->steps.p99_ns);
    weft_json_put_integer(writer, "longest_ns", report->steps.longest_ns);
    weft_json_put_number(writer, "waiting", report->steps.waiting);
    weft_json_end_object(writer);
}
