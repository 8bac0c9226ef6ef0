#include "report/study/best.h"

#include <stdio.h>

#include "base/units.h"
#include "report/study/answer.h"
#include "report/table.h"

void weft_best_take(struct weft_best_row *row, const struct weft_plan *plan, int64_t micro_batch)
{
    const struct weft_problem *problem = plan->problem;
    struct weft_text ways;
    weft_text_init(&ways);
    weft_answer_ways(plan, &ways);
    snprintf(row->ways, sizeof row->ways, "%s", weft_text_chars(&ways));
    weft_text_finish(&ways);
    row->mark = WEFT_BEST_FITS;
    row->micro_batch = problem->micro_batch > 0 ? problem->micro_batch : micro_batch;
    row->micro_steps = problem->period.n_micro;
    row->reduce = weft_cadence_name(weft_period_cadence(&problem->period));
    row->step_ns = plan->prediction.step_ns;
    row->total_bytes = plan->prediction.total_bytes;
    row->bound_ns = weft_plan_least_bound_ns(plan);
}

/* Whether a row's plan is faster than another's, or as fast in less memory. */
static bool is_better(const struct weft_best_row *row, const struct weft_best_row *other)
{
    if (row->step_ns != other->step_ns) return row->step_ns < other->step_ns;
    return row->total_bytes < other->total_bytes;
}

/* The best of the rows [0, n); NULL if none fits. */
static const struct weft_best_row *find_fastest(const struct weft_best *best, int32_t n)
{
    const struct weft_best_row *found = NULL;
    for (int32_t i = 0; i < n; i++) {
        const struct weft_best_row *row = &best->rows[i];
        if (row->mark == WEFT_BEST_FITS && (found == NULL || is_better(row, found))) found = row;
    }
    return found;
}

const struct weft_best_row *weft_best_fastest(const struct weft_best *best)
{
    return find_fastest(best, best->n_rows);
}

static double tokens_per_s(const struct weft_best *best, const struct weft_best_row *row)
{
    return row->step_ns == 0
               ? 0
               : (double)best->samples * (double)best->seq_len * 1e9 / (double)row->step_ns;
}

/* (step - bound) / bound; negative without a bound. */
static double gap_of(const struct weft_best_row *row)
{
    return row->bound_ns <= 0 ? -1 : (double)(row->step_ns - row->bound_ns) / (double)row->bound_ns;
}

const char *weft_best_mark_name(enum weft_best_mark mark)
{
    static const char *const names[WEFT_BEST_MARKS] = {
        [WEFT_BEST_OPEN] = "not planned",        [WEFT_BEST_FITS] = "fits",
        [WEFT_BEST_ABOVE] = "above the limit",   [WEFT_BEST_NO_TIMES] = "no times",
        [WEFT_BEST_NOT_ALLOWED] = "not allowed",
    };
    return names[mark];
}

/* The memory of a row without a plan: what its least limit lacks, or the reason. */
static void add_lack(struct weft_table *table, const struct weft_best *best,
                     const struct weft_best_row *row)
{
    char text[WEFT_UNITS_TEXT_BYTES];
    const int64_t lacking = row->least_bytes - best->limit_bytes;
    if (row->mark == WEFT_BEST_ABOVE && row->least_bytes > 0 && lacking > 0)
        weft_table_cell_painted(table, WEFT_PAINT_BAD, "+%s", weft_units_show_bytes(lacking, text));
    else if (row->mark == WEFT_BEST_ABOVE)
        weft_table_cell_painted(table, WEFT_PAINT_BAD, "no pages");
    else
        weft_table_cell(table, "%s", weft_best_mark_name(row->mark));
}

static void add_row(struct weft_table *table, const struct weft_best *best,
                    const struct weft_best_row *row)
{
    char text[WEFT_UNITS_TEXT_BYTES];
    const double gap = gap_of(row);
    weft_table_cell(table, "%s", row->policy);
    weft_table_cell(table, "%s", row->recompute);
    weft_table_cell(table, "%s", row->offload);
    if (row->mark != WEFT_BEST_FITS) {
        for (int i = 0; i < 3; i++)
            weft_table_cell(table, "-");
        add_lack(table, best, row);
        weft_table_cell(table, "-");
        return;
    }
    weft_table_cell(table, "%lld x %d", (long long)row->micro_batch, row->micro_steps);
    weft_table_cell(table, "%s", weft_units_show_ns(row->step_ns, text));
    weft_table_cell(table, "%s", weft_answer_count(tokens_per_s(best, row), text));
    weft_table_cell(table, "%s", weft_units_show_bytes(row->total_bytes, text));
    if (gap < 0)
        weft_table_cell(table, "-");
    else
        weft_table_cell(table, "%.2f %%", 100 * gap);
}

/* The row that needs the least memory; NULL if none is known. */
static const struct weft_best_row *find_leanest(const struct weft_best *best)
{
    const struct weft_best_row *found = NULL;
    for (int32_t i = 0; i < best->n_rows; i++) {
        const struct weft_best_row *row = &best->rows[i];
        if (row->least_bytes > 0 && (found == NULL || row->least_bytes < found->least_bytes))
            found = row;
    }
    return found;
}

static void answer_nothing(const struct weft_best *best, struct weft_text *out)
{
    char limit[WEFT_UNITS_TEXT_BYTES], least[WEFT_UNITS_TEXT_BYTES];
    const struct weft_best_row *leanest = find_leanest(best);
    if (leanest == NULL)
        weft_text_add(out, "no combination has a plan");
    else
        weft_text_addf(out,
                       "nothing fits %s: the least limit is %s, with policy %s, recompute %s, "
                       "offload %s",
                       weft_units_show_bytes(best->limit_bytes, limit),
                       weft_units_show_bytes(leanest->least_bytes, least), leanest->policy,
                       leanest->recompute, leanest->offload);
    weft_text_add(out, "\n");
}

void weft_best_answer(const struct weft_best *best, struct weft_text *out)
{
    const struct weft_best_row *joint = &best->rows[best->n_rows - 1];
    const struct weft_best_row *fastest = weft_best_fastest(best);
    const struct weft_best_row *hand = find_fastest(best, best->n_rows - 1);
    if (fastest == NULL) {
        answer_nothing(best, out);
        return;
    }
    weft_text_addf(out, "%s: ", fastest->ways);
    weft_answer_step(fastest->step_ns, tokens_per_s(best, fastest), fastest->total_bytes, out);
    if (fastest == joint && hand != NULL && hand->step_ns > joint->step_ns)
        weft_text_addf(out, "; %.1f %% faster than the best by hand",
                       100.0 * ((double)hand->step_ns / (double)joint->step_ns - 1));
    /* Plans of all rows are plans of the joint one. */
    if (joint->bound_ns > 0) weft_text_add(out, "; ");
    weft_answer_bound(fastest->step_ns, joint->bound_ns, out);
    weft_text_add(out, "\n");
}

/* Compares the joint plan with the best one by hand. */
static void add_verdict(const struct weft_best *best, struct weft_text *out)
{
    const struct weft_best_row *joint = &best->rows[best->n_rows - 1];
    const struct weft_best_row *hand = find_fastest(best, best->n_rows - 1);
    const bool joint_fits = joint->mark == WEFT_BEST_FITS;
    if (!joint_fits && hand == NULL) {
        weft_text_add(out, "no combination has a plan within the limit\n");
    } else if (hand == NULL) {
        weft_text_add(out, "only the joint plan fits the limit\n");
    } else if (joint_fits && joint->step_ns == hand->step_ns && is_better(hand, joint)) {
        weft_text_addf(out,
                       "the best by hand (%s, recompute %s, offload %s) is as fast as the joint "
                       "plan and takes less memory\n",
                       hand->policy, hand->recompute, hand->offload);
    } else if (!joint_fits || joint->step_ns > hand->step_ns) {
        weft_text_addf(out,
                       "the best plan is by hand: %s, recompute %s, offload %s. The search for the "
                       "joint plan ended before it: give it a larger --work-limit\n",
                       hand->policy, hand->recompute, hand->offload);
    } else {
        weft_text_addf(
            out,
            "the joint plan has %.1f %% more tokens/s than the best by hand (%s, recompute %s, "
            "offload %s)\n",
            100.0 * ((double)hand->step_ns / (double)joint->step_ns - 1), hand->policy,
            hand->recompute, hand->offload);
    }
}

void weft_best_table(const struct weft_best *best, struct weft_text *out)
{
    static const char *const heads[] = {"policy", "recompute", "offload", "split",
                                        "step",   "tokens/s",  "memory",  "gap"};
    struct weft_table table;
    char limit[WEFT_UNITS_TEXT_BYTES];
    weft_best_answer(best, out);
    weft_text_addf(out, "best plans of %s, %lld ranks, times %s, %lld samples a step, ",
                   best->config, (long long)best->ranks, best->times, (long long)best->samples);
    if (best->limit_bytes > 0)
        weft_text_addf(out, "limit %s\n", weft_units_show_bytes(best->limit_bytes, limit));
    else
        weft_text_add(out, "no memory limit\n");
    weft_table_init(&table, "lllrrrrr");
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        weft_table_cell(&table, "%s", heads[i]);
    for (int32_t i = 0; i < best->n_rows; i++)
        add_row(&table, best, &best->rows[i]);
    weft_table_render(&table, 2, out);
    weft_table_finish(&table);
    weft_text_add(out, "split: samples of a rank x micro-steps; memory: of a rank, or with + what "
                       "the row's least limit lacks, or why it has no plan; gap: to a step time "
                       "that no planned variant of the row beats\n");
    add_verdict(best, out);
}

static void put_row(const struct weft_best *best, const struct weft_best_row *row,
                    struct weft_json_writer *writer)
{
    weft_json_begin_object(writer);
    weft_json_put_string(writer, "policy", row->policy);
    weft_json_put_string(writer, "recompute", row->recompute);
    weft_json_put_string(writer, "offload", row->offload);
    weft_json_put_bool(writer, "fits", row->mark == WEFT_BEST_FITS);
    weft_json_put_string(writer, "state", weft_best_mark_name(row->mark));
    if (row->least_bytes > 0) weft_json_put_integer(writer, "least_bytes", row->least_bytes);
    if (row->mark == WEFT_BEST_FITS) {
        weft_json_put_string(writer, "choices", row->ways);
        weft_json_put_integer(writer, "micro_batch", row->micro_batch);
        weft_json_put_integer(writer, "micro_steps", row->micro_steps);
        weft_json_put_string(writer, "reduce", row->reduce);
        weft_json_put_integer(writer, "step_ns", row->step_ns);
        weft_json_put_number(writer, "tokens_per_s", tokens_per_s(best, row));
        weft_json_put_integer(writer, "total_bytes", row->total_bytes);
        weft_json_put_integer(writer, "bound_ns", row->bound_ns);
        if (row->bound_ns > 0) weft_json_put_number(writer, "gap", gap_of(row));
    } else if (row->reason != NULL) {
        weft_json_put_string(writer, "reason", row->reason);
    }
    weft_json_end_object(writer);
}

void weft_best_json(const struct weft_best *best, struct weft_json_writer *writer)
{
    const struct weft_best_row *fastest = weft_best_fastest(best);
    struct weft_text answer;
    weft_text_init(&answer);
    weft_best_answer(best, &answer);
    weft_json_begin_object(writer);
    weft_json_put_string(writer, "config", best->config);
    weft_json_put_string(writer, "answer", weft_text_chars(&answer));
    weft_text_finish(&answer);
    weft_json_put_integer(writer, "ranks", best->ranks);
    weft_json_put_string(writer, "times", best->times);
    if (best->limit_bytes > 0)
        weft_json_put_integer(writer, "memory_limit_bytes", best->limit_bytes);
    weft_json_put_integer(writer, "samples", best->samples);
    weft_json_put_integer(writer, "seq_len", best->seq_len);
    weft_json_key(writer, "combinations");
    weft_json_begin_array(writer);
    for (int32_t i = 0; i < best->n_rows - 1; i++)
        put_row(best, &best->rows[i], writer);
    weft_json_end_array(writer);
    weft_json_key(writer, "joint");
    put_row(best, &best->rows[best->n_rows - 1], writer);
    if (fastest != NULL) {
        weft_json_key(writer, "best");
        put_row(best, fastest, writer);
    }
    weft_json_end_object(writer);
}
