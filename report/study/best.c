/* SPDX-License-Identifier: Apache-2.0 */
#include "report/study/best.h"

#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "report/study/first_line.h"

/* A gain is told from here on. */
static const double LEAST_GAIN = 0.001;

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
    row->layers = problem->period.layers;
    row->reduce = weft_cadence_name(weft_period_cadence(&problem->period));
    row->step_ns = plan->prediction.step_ns;
    row->total_bytes = plan->prediction.total_bytes;
    row->claim = weft_plan_claim_of(plan);
    row->rows_bound_ns = weft_plan_least_bound_ns(plan);
}

const struct weft_best_other weft_best_others[WEFT_BEST_OTHERS] = {
    [WEFT_BEST_BY_STEP] = {"micro_step_order", "step", "by step", "by_step"},
    [WEFT_BEST_BY_LAYER] = {"micro_step_order", "layer", "by layer", "by_layer"},
    [WEFT_BEST_IN_FORWARD] = {"update_in", "forward", "in forward", "in_forward"},
    [WEFT_BEST_IN_BACKWARD] = {"update_in", "backward", "in backward", "in_backward"},
};

/* The row's own value of a key of plan; NULL: the config's. */
static const char *value_of(const struct weft_best_row *row, const char *key)
{
    return row->other != NULL && strcmp(row->other->key, key) == 0 ? row->other->value : NULL;
}

/* Whether a row's plan is faster than another's, or as fast in less memory. Of two plans, one
 * without a price is better. */
static bool is_better(const struct weft_best_row *row, const struct weft_best_row *other)
{
    if ((row->price != NULL) != (other->price != NULL)) return row->price == NULL;
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

static const struct weft_best_row *joint_of(const struct weft_best *best)
{
    return &best->rows[best->n_hand];
}

/* (step - bound) / bound; negative without a bound. */
static double gap_of(const struct weft_best_row *row)
{
    const int64_t bound_ns = row->claim.bound_ns;
    return bound_ns <= 0 ? -1 : (double)(row->step_ns - bound_ns) / (double)bound_ns;
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

enum {
    POLICY,
    ORDER,
    UPDATE_IN,
    RECOMPUTE,
    OFFLOAD,
    FITS,
    STATE,
    LEAST,
    CHOICES,
    MICRO_BATCH,
    MICRO_STEPS,
    REDUCE
};
enum { LAYERS = REDUCE + 1, STEP, TOKENS, TOTAL, BOUND, GAP, PRICE, REASON, N_COLUMNS };

static const struct weft_column columns[N_COLUMNS] = {
    [POLICY] = {"policy", "policy", 'l', WEFT_FIGURE_WORD, 0},
    [ORDER] = {"order", NULL, 'l', WEFT_FIGURE_WORD, 0},
    [UPDATE_IN] = {"update_in", NULL, 'l', WEFT_FIGURE_WORD, 0},
    [RECOMPUTE] = {"recompute", "recompute", 'l', WEFT_FIGURE_WORD, 0},
    [OFFLOAD] = {"offload", "offload", 'l', WEFT_FIGURE_WORD, 0},
    [FITS] = {"fits", NULL, 'l', WEFT_FIGURE_BOOL, 0},
    [STATE] = {"state", NULL, 'l', WEFT_FIGURE_WORD, 0},
    [LEAST] = {"least_bytes", NULL, 'r', WEFT_FIGURE_BYTES, 0},
    [CHOICES] = {"choices", NULL, 'l', WEFT_FIGURE_WORD, 0},
    [MICRO_BATCH] = {"micro_batch", "split", 'r', WEFT_FIGURE_INTEGER, 0},
    [MICRO_STEPS] = {"micro_steps", NULL, 'r', WEFT_FIGURE_INTEGER, 0},
    [REDUCE] = {"reduce", NULL, 'l', WEFT_FIGURE_WORD, 0},
    [LAYERS] = {"layers", NULL, 'r', WEFT_FIGURE_INTEGER, 0},
    [STEP] = {"step_ns", "step", 'r', WEFT_FIGURE_NS, 0},
    [TOKENS] = {"tokens_per_s", "tokens/s", 'r', WEFT_FIGURE_SHORT, 0},
    [TOTAL] = {"total_bytes", "memory", 'r', WEFT_FIGURE_BYTES, 0},
    [BOUND] = {"bound_ns", NULL, 'r', WEFT_FIGURE_NS, 0},
    [GAP] = {"gap", "gap", 'r', WEFT_FIGURE_PERCENT, 0},
    [PRICE] = {"price", NULL, 'l', WEFT_FIGURE_WORD, 0},
    [REASON] = {"reason", NULL, 'l', WEFT_FIGURE_WORD, 0},
};

/* The memory of a row without a plan: what its least limit lacks, or the reason. */
static void add_lack(struct weft_rows *rows, const struct weft_best *best,
                     const struct weft_best_row *row)
{
    char text[WEFT_UNITS_TEXT_BYTES];
    const int64_t lacking = row->least_bytes - best->limit_bytes;
    if (row->mark != WEFT_BEST_ABOVE)
        weft_rows_show(rows, TOTAL, WEFT_PAINT_NONE, "%s", weft_best_mark_name(row->mark));
    else if (row->least_bytes > 0 && lacking > 0)
        weft_rows_show(rows, TOTAL, WEFT_PAINT_BAD, "+%s", weft_units_show_bytes(lacking, text));
    else
        weft_rows_show(rows, TOTAL, WEFT_PAINT_BAD, "none found");
    weft_rows_word(rows, REASON, row->reason);
}

static void add_row(struct weft_rows *rows, const struct weft_best *best,
                    const struct weft_best_row *row, const char *name)
{
    weft_rows_begin(rows, name);
    weft_rows_word(rows, POLICY, row->policy);
    weft_rows_word(rows, ORDER, value_of(row, "micro_step_order"));
    weft_rows_word(rows, UPDATE_IN, value_of(row, "update_in"));
    if (row->other != NULL) weft_rows_show(rows, POLICY, WEFT_PAINT_NONE, "%s", row->other->label);
    weft_rows_word(rows, PRICE, row->price);
    weft_rows_word(rows, RECOMPUTE, row->recompute);
    weft_rows_word(rows, OFFLOAD, row->offload);
    weft_rows_integer(rows, FITS, row->mark == WEFT_BEST_FITS);
    weft_rows_word(rows, STATE, weft_best_mark_name(row->mark));
    if (row->least_bytes > 0) weft_rows_integer(rows, LEAST, row->least_bytes);
    if (row->mark != WEFT_BEST_FITS) {
        add_lack(rows, best, row);
        return;
    }
    weft_rows_word(rows, CHOICES, row->ways);
    weft_rows_integer(rows, MICRO_BATCH, row->micro_batch);
    weft_rows_show(rows, MICRO_BATCH, WEFT_PAINT_NONE, "%lld x %d%s", (long long)row->micro_batch,
                   row->micro_steps,
                   row->layers > 0 && value_of(row, "micro_step_order") == NULL ? " by layer" : "");
    if (row->layers > 0) weft_rows_integer(rows, LAYERS, row->layers);
    weft_rows_integer(rows, MICRO_STEPS, row->micro_steps);
    weft_rows_word(rows, REDUCE, row->reduce);
    weft_rows_integer(rows, STEP, row->step_ns);
    weft_rows_real(rows, TOKENS, tokens_per_s(best, row));
    weft_rows_integer(rows, TOTAL, row->total_bytes);
    weft_rows_integer(rows, BOUND, row->claim.bound_ns);
    if (row->claim.bound_ns > 0) weft_rows_real(rows, GAP, gap_of(row));
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

/* Adds ", update_in backward" for a row with another setting than the config's. */
static void add_setting(const struct weft_best_row *row, struct weft_text *out)
{
    if (row->other != NULL) weft_text_addf(out, ", %s %s", row->other->key, row->other->value);
}

static void answer_nothing(const struct weft_best *best, struct weft_text *out)
{
    char limit[WEFT_UNITS_TEXT_BYTES], least[WEFT_UNITS_TEXT_BYTES];
    const struct weft_best_row *leanest = find_leanest(best);
    if (leanest == NULL) {
        weft_text_add(out, "no combination has a plan");
    } else {
        weft_text_addf(out,
                       "nothing fits %s: the least limit is %s, with policy %s, recompute %s, "
                       "offload %s",
                       weft_units_show_bytes(best->limit_bytes, limit),
                       weft_units_show_bytes(leanest->least_bytes, least), leanest->policy,
                       leanest->recompute, leanest->offload);
        add_setting(leanest, out);
    }
    weft_text_add(out, "\n");
}

/* Names the setting of the fastest row with a price, if that is faster than the best row. */
static void add_dearer(const struct weft_best *best, const struct weft_best_row *fastest,
                       struct weft_text *out)
{
    char step[WEFT_UNITS_TEXT_BYTES];
    const struct weft_best_row *found = NULL;
    for (int32_t i = 0; i < best->n_rows && fastest->price == NULL; i++) {
        const struct weft_best_row *row = &best->rows[i];
        if (row->mark == WEFT_BEST_FITS && row->price != NULL &&
            (double)fastest->step_ns >= (1 + LEAST_GAIN) * (double)row->step_ns &&
            (found == NULL || is_better(row, found)))
            found = row;
    }
    if (found != NULL)
        weft_text_addf(out, "; %s with plan.%s=%s, at a price",
                       weft_units_show_ns(found->step_ns, step), found->other->key,
                       found->other->value);
}

static void add_answer(const struct weft_best *best, struct weft_text *out)
{
    const struct weft_best_row *joint = joint_of(best), *fastest = weft_best_fastest(best);
    const struct weft_best_row *hand = find_fastest(best, best->n_hand);
    if (fastest == NULL) {
        answer_nothing(best, out);
        return;
    }
    weft_text_add(out, fastest->ways);
    add_setting(fastest, out);
    weft_text_add(out, ": ");
    weft_answer_step(fastest->step_ns, tokens_per_s(best, fastest), fastest->total_bytes, out);
    const bool by_hand = fastest < joint;
    if (!by_hand && hand != NULL &&
        (double)hand->step_ns >= (1 + LEAST_GAIN) * (double)fastest->step_ns)
        weft_text_addf(out, "; %.1f %% faster than the best by hand",
                       100.0 * ((double)hand->step_ns / (double)fastest->step_ns - 1));
    /* Plans of all rows by hand are plans of the joint one, in any pages. */
    const struct weft_plan_claim claim =
        by_hand ? (struct weft_plan_claim){.bound_ns = joint->rows_bound_ns} : fastest->claim;
    if (claim.bound_ns > 0) weft_text_add(out, "; ");
    weft_answer_bound(fastest->step_ns, claim, out);
    if (fastest->price != NULL) weft_text_addf(out, "; %s", fastest->price);
    add_dearer(best, fastest, out);
    weft_text_add(out, "\n");
}

/* Compares the joint plan with the best one by hand. */
static void add_verdict(const struct weft_best *best, struct weft_text *out)
{
    const struct weft_best_row *joint = joint_of(best);
    const struct weft_best_row *hand = find_fastest(best, best->n_hand);
    const struct weft_best_row *fastest = weft_best_fastest(best);
    const bool joint_fits = joint->mark == WEFT_BEST_FITS;
    if (!joint_fits && hand == NULL && fastest != NULL) {
        weft_text_addf(out, "only plans with plan.%s=%s fit the limit\n", fastest->other->key,
                       fastest->other->value);
    } else if (!joint_fits && hand == NULL) {
        weft_text_add(out, "no combination has a plan within the limit\n");
    } else if (hand == NULL) {
        weft_text_add(out, "only the joint plan fits the limit\n");
    } else if (joint_fits && joint->step_ns == hand->step_ns) {
        weft_text_addf(out,
                       "the best by hand (%s, recompute %s, offload %s) is as fast as the joint "
                       "plan%s\n",
                       hand->policy, hand->recompute, hand->offload,
                       is_better(hand, joint)   ? " and takes less memory"
                       : is_better(joint, hand) ? ", which takes less memory"
                                                : "");
    } else if (!joint_fits || joint->step_ns > hand->step_ns) {
        weft_text_addf(out,
                       "the best plan is by hand: %s, recompute %s, offload %s. The search for the "
                       "joint plan ended before it: give it a larger --work-limit\n",
                       hand->policy, hand->recompute, hand->offload);
    } else {
        const double gain = (double)hand->step_ns / (double)joint->step_ns - 1;
        weft_text_addf(
            out,
            "the joint plan has %s%.1f %% more tokens/s than the best by hand (%s, recompute %s, "
            "offload %s)\n",
            gain < LEAST_GAIN ? "less than " : "", 100.0 * (gain < LEAST_GAIN ? LEAST_GAIN : gain),
            hand->policy, hand->recompute, hand->offload);
    }
}

/* Compares the joint plan with one that has another setting. A faster one with a price is not the
 * best by itself, so its setting and its price are named. */
static void say_other(const struct weft_best_row *row, const struct weft_best_row *joint,
                      struct weft_answer *answer)
{
    char step[WEFT_UNITS_TEXT_BYTES];
    const struct weft_best_other *other = row->other;
    weft_answer_say(answer, NULL, "%s %s: ", other->key, other->value);
    if (row->mark != WEFT_BEST_FITS) {
        weft_answer_say(answer, NULL, "%s: %s\n", weft_best_mark_name(row->mark), row->reason);
        return;
    }
    weft_answer_say(answer, NULL, "the joint plan takes %s",
                    weft_units_show_ns(row->step_ns, step));
    if (joint->mark != WEFT_BEST_FITS) {
        weft_answer_say(answer, NULL, "; the row joint has no plan\n");
        return;
    }
    const double gain = (double)joint->step_ns / (double)row->step_ns - 1;
    if (gain > -LEAST_GAIN && gain < LEAST_GAIN) {
        weft_answer_say(answer, NULL, ", as fast as the row joint\n");
        return;
    }
    weft_answer_say(answer, NULL, ", %.1f %% %s tokens/s than the row joint",
                    100.0 * (gain < 0 ? -gain : gain), gain < 0 ? "fewer" : "more");
    if (row->price != NULL && gain > 0)
        weft_answer_say(answer, NULL, "; --set plan.%s=%s has a price: %s", other->key,
                        other->value, row->price);
    weft_answer_say(answer, NULL, "\n");
}

/* Tells the reason of the first row with a mark. */
static void say_reason(const struct weft_best *best, enum weft_best_mark mark,
                       struct weft_answer *answer)
{
    const struct weft_best_row *row = best->rows, *end = row + best->n_rows;
    while (row < end && row->mark != mark)
        row++;
    if (row < end)
        weft_answer_say(answer, NULL, "%s: %s, recompute %s, offload %s: %s\n",
                        weft_best_mark_name(mark), row->policy, row->recompute, row->offload,
                        row->reason);
}

/* The line above the table, and the facts in it. */
static void add_facts(struct weft_answer *answer, const struct weft_best *best)
{
    char limit[WEFT_UNITS_TEXT_BYTES];
    weft_answer_integer(answer, "ranks", best->ranks);
    weft_answer_word(answer, "times", best->times);
    if (best->limit_bytes > 0) weft_answer_integer(answer, "memory_limit_bytes", best->limit_bytes);
    weft_answer_integer(answer, "samples", best->samples);
    weft_answer_integer(answer, "seq_len", best->seq_len);
    weft_answer_say(answer, NULL,
                    "best plans of %s, %lld ranks, times %s, %lld samples a step, %s%s\n",
                    best->config, (long long)best->ranks, best->times, (long long)best->samples,
                    best->limit_bytes > 0 ? "limit " : "no memory limit",
                    best->limit_bytes > 0 ? weft_units_show_bytes(best->limit_bytes, limit) : "");
}

/* The member of a row in JSON; NULL: it is an element of the table. */
static const char *name_of(const struct weft_best *best, int32_t i)
{
    const struct weft_best_other *other = best->rows[i].other;
    if (i < best->n_hand) return NULL;
    return other == NULL ? "joint" : other->member;
}

void weft_best_report(const struct weft_best *best, struct weft_answer *answer)
{
    const struct weft_best_row *fastest = weft_best_fastest(best);
    struct weft_text text;
    weft_text_init(&text);
    weft_answer_word(answer, "config", best->config);
    add_answer(best, &text);
    weft_answer_say(answer, "answer", "%s", weft_text_chars(&text));
    add_facts(answer, best);
    struct weft_rows *rows = weft_answer_table(answer, "combinations", columns, N_COLUMNS);
    if (rows != NULL) rows->indent = 2;
    for (int32_t i = 0; i < best->n_rows; i++)
        add_row(rows, best, &best->rows[i], name_of(best, i));
    if (fastest != NULL) {
        add_row(rows, best, fastest, "best");
        weft_rows_hide(rows);
    }
    weft_answer_say(answer, NULL,
                    "split: samples of a rank x micro-steps; memory: of a rank, or with + what "
                    "the row's least limit lacks, or why it has no plan; gap: to a step time "
                    "that no planned variant of the row beats\n");
    say_reason(best, WEFT_BEST_NO_TIMES, answer);
    say_reason(best, WEFT_BEST_NOT_ALLOWED, answer);
    weft_text_finish(&text);
    weft_text_init(&text);
    add_verdict(best, &text);
    weft_answer_say(answer, NULL, "%s", weft_text_chars(&text));
    weft_text_finish(&text);
    for (int32_t i = best->n_hand + 1; i < best->n_rows; i++)
        say_other(&best->rows[i], joint_of(best), answer);
    if (best->update_in_refused != NULL) {
        weft_answer_word(answer, "update_in_refused", best->update_in_refused);
        weft_answer_say(answer, NULL, "update_in backward: not allowed: %s\n",
                        best->update_in_refused);
    }
}
