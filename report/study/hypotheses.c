/* SPDX-License-Identifier: Apache-2.0 */
#include "report/study/hypotheses.h"

/* Steps are equal within this share: simulated, measured. */
static const double matters[] = {5e-4, WEFT_SWEEP_DRIFT};

/* Steps along a line by increasing memory; limits without a plan are left out, except of the third
 * hypothesis. There a division without a plan is slower than any other. */
struct line {
    enum weft_clock_of_case clock;
    int32_t n;
    int64_t steps[WEFT_CASE_CURVES];
    int32_t from[WEFT_CASE_CURVES], to[WEFT_CASE_CURVES]; /* limits of policies and of the sum */
};

static bool is_longer(const struct line *line, int64_t a, int64_t b)
{
    return (double)a > (double)b * (1 + matters[line->clock]);
}

static void add_step(const struct weft_case *one, int32_t from, int32_t to, bool keeps,
                     struct line *line)
{
    const struct weft_sweep_point *point = weft_case_division(one, from, to);
    const int64_t step_ns = weft_case_step(point, line->clock);
    if (step_ns == 0 && !keeps) return;
    line->from[line->n] = from;
    line->to[line->n] = to;
    line->steps[line->n++] = step_ns > 0 ? step_ns : INT64_MAX;
}

static void follow_line(const struct weft_case *one, enum weft_clock_of_case clock, int hypothesis,
                        int32_t number, struct line *line)
{
    line->clock = clock;
    line->n = 0;
    if (hypothesis == 0)
        for (int32_t to = number; to < one->n_limits; to++)
            add_step(one, number, to, false, line);
    if (hypothesis == 1)
        for (int32_t from = 0; from + number < one->n_limits; from++)
            add_step(one, from, from + number, false, line);
    if (hypothesis == 2)
        for (int32_t from = 0; from <= number; from++)
            add_step(one, from, number, true, line);
}

/* Finds a step that is longer than one with less memory; -1: none. */
static int32_t find_rise(const struct line *line)
{
    int64_t least = INT64_MAX;
    for (int32_t i = 0; i < line->n; i++) {
        if (least < INT64_MAX && is_longer(line, line->steps[i], least)) return i;
        if (line->steps[i] < least) least = line->steps[i];
    }
    return -1;
}

static int32_t find_fastest(const struct line *line)
{
    int32_t best = 0;
    for (int32_t i = 1; i < line->n; i++)
        if (line->steps[i] < line->steps[best]) best = i;
    return best;
}

static enum weft_verdict judge_falling(const struct line *line, bool may_saturate)
{
    if (line->n < 3) return WEFT_VERDICT_NONE;
    if (find_rise(line) >= 0) return WEFT_VERDICT_REFUTED;
    const int64_t first = line->steps[0], last = line->steps[line->n - 1];
    const int64_t middle = line->steps[line->n / 2];
    if (!is_longer(line, first, last)) return WEFT_VERDICT_EQUAL;
    return may_saturate && middle - last <= (first - middle) / 2 ? WEFT_VERDICT_SATURATES
                                                                 : WEFT_VERDICT_HOLDS;
}

static enum weft_verdict judge_between(const struct line *line)
{
    if (line->n < 3) return WEFT_VERDICT_NONE;
    const int32_t best = find_fastest(line);
    const int64_t least = line->steps[best];
    const int64_t ends[] = {line->steps[0], line->steps[line->n - 1]};
    bool equal = true;
    if (least == INT64_MAX) return WEFT_VERDICT_NONE;
    for (int32_t i = 0; i < line->n; i++)
        equal = equal && !is_longer(line, line->steps[i], least);
    if (equal) return WEFT_VERDICT_EQUAL;
    return is_longer(line, ends[0], least) && is_longer(line, ends[1], least)
               ? WEFT_VERDICT_HOLDS
               : WEFT_VERDICT_REFUTED;
}

static enum weft_verdict judge_line(int hypothesis, const struct line *line)
{
    return hypothesis == 2 ? judge_between(line) : judge_falling(line, hypothesis == 0);
}

enum weft_verdict weft_hypothesis_judge(const struct weft_case *one, enum weft_clock_of_case clock,
                                        int hypothesis, int32_t number)
{
    struct line line;
    follow_line(one, clock, hypothesis, number, &line);
    return judge_line(hypothesis, &line);
}

/* Numbers of all lines: first of the first two hypotheses, and of the third. */
static int32_t first_line_of(int hypothesis)
{
    return hypothesis == 2 ? 2 : 0;
}

static int32_t last_line_of(const struct weft_case *one, int hypothesis)
{
    return hypothesis == 2 ? one->n_limits - 1 : one->n_limits - 3;
}

static const char *const hypothesis_texts[WEFT_HYPOTHESES] = {
    "more memory for scheduling shortens the step and saturates",
    "less memory for policies lengthens the step",
    "the best division lies in between",
};

/* Tells of a line with the memory of two of its points. */
static void say_steps(const struct weft_case *one, const struct line *line, int32_t a, int32_t b,
                      struct weft_answer *answer)
{
    char bytes[4][WEFT_UNITS_TEXT_BYTES], ns[2][WEFT_UNITS_TEXT_BYTES];
    const int32_t at[] = {a, b};
    for (int k = 0; k < 2; k++) {
        const struct weft_sweep_point *point =
            weft_case_division(one, line->from[at[k]], line->to[at[k]]);
        weft_units_show_bytes(point->policy_limit_bytes, bytes[2 * k]);
        weft_units_show_bytes(point->limit_bytes, bytes[2 * k + 1]);
        weft_units_show_ns(weft_case_step(point, line->clock), ns[k]);
    }
    weft_answer_say(answer, NULL,
                    "    %s x%s: %s with %s of %s for policies, %s with %s of %s (+%.2f %%)\n",
                    one->model, one->network, ns[0], bytes[0], bytes[1], ns[1], bytes[2], bytes[3],
                    100 * ((double)line->steps[b] / (double)line->steps[a] - 1));
}

/* Names the lines that decide: those that refute the first two, and those where the third holds. */
static void say_lines(const struct weft_cases *cases, enum weft_clock_of_case clock, int hypothesis,
                      struct weft_answer *answer)
{
    for (int32_t k = 0; k < cases->n; k++) {
        const struct weft_case *one = &cases->cases[k];
        for (int32_t number = first_line_of(hypothesis); number <= last_line_of(one, hypothesis);
             number++) {
            struct line line;
            follow_line(one, clock, hypothesis, number, &line);
            const enum weft_verdict verdict = judge_line(hypothesis, &line);
            const int32_t best = find_fastest(&line), rise = find_rise(&line);
            if (hypothesis < 2 && verdict == WEFT_VERDICT_REFUTED) {
                int32_t before = 0;
                for (int32_t i = 1; i < rise; i++)
                    if (line.steps[i] < line.steps[before]) before = i;
                say_steps(one, &line, before, rise, answer);
            }
            if (hypothesis == 2 && verdict == WEFT_VERDICT_HOLDS &&
                line.steps[line.n - 1] < INT64_MAX)
                say_steps(one, &line, best, line.n - 1, answer);
        }
    }
}

enum { MODEL, NETWORK, NUMBER, HOLDS, SATURATES, EQUAL, REFUTED, N_COLUMNS };

static void count_lines(const struct weft_case *one, enum weft_clock_of_case clock, int hypothesis,
                        int32_t counts[WEFT_VERDICTS])
{
    for (int32_t number = first_line_of(hypothesis); number <= last_line_of(one, hypothesis);
         number++)
        counts[weft_hypothesis_judge(one, clock, hypothesis, number)]++;
}

static void put_counts(const struct weft_case *one, enum weft_clock_of_case clock, int hypothesis,
                       struct weft_rows *rows)
{
    int32_t counts[WEFT_VERDICTS] = {0};
    count_lines(one, clock, hypothesis, counts);
    weft_rows_begin(rows, NULL);
    weft_rows_word(rows, MODEL, one->model);
    weft_rows_word(rows, NETWORK, one->network);
    weft_rows_integer(rows, NUMBER, hypothesis + 1);
    weft_rows_integer(rows, HOLDS, counts[WEFT_VERDICT_HOLDS] + counts[WEFT_VERDICT_SATURATES]);
    if (hypothesis == 0) weft_rows_integer(rows, SATURATES, counts[WEFT_VERDICT_SATURATES]);
    weft_rows_integer(rows, EQUAL, counts[WEFT_VERDICT_EQUAL]);
    weft_rows_integer(rows, REFUTED, counts[WEFT_VERDICT_REFUTED]);
}

static void say_hypothesis(const struct weft_cases *cases, enum weft_clock_of_case clock,
                           int hypothesis, struct weft_answer *answer)
{
    int32_t counts[WEFT_VERDICTS] = {0};
    for (int32_t k = 0; k < cases->n; k++)
        count_lines(&cases->cases[k], clock, hypothesis, counts);
    const int32_t holds = counts[WEFT_VERDICT_HOLDS] + counts[WEFT_VERDICT_SATURATES];
    const int32_t equal = counts[WEFT_VERDICT_EQUAL], refuted = counts[WEFT_VERDICT_REFUTED];
    if (holds + equal + refuted == 0) return;
    weft_answer_say(answer, NULL, "hypothesis %d%s: %s\n", hypothesis + 1,
                    clock == WEFT_CASE_MEASURED ? ", measured" : "", hypothesis_texts[hypothesis]);
    weft_answer_say(answer, NULL, "  holds on %d of %d lines", (int)holds,
                    (int)(holds + equal + refuted));
    if (hypothesis == 0)
        weft_answer_say(answer, NULL, " and saturates on %d of these",
                        (int)counts[WEFT_VERDICT_SATURATES]);
    weft_answer_say(answer, NULL, ", makes no difference on %d, is refuted on %d%s\n", (int)equal,
                    (int)refuted,
                    hypothesis == 2 ? holds > 0 ? "; next to all memory for policies:" : ""
                    : refuted > 0   ? ":"
                                    : "");
    say_lines(cases, clock, hypothesis, answer);
}

static bool has_case(const struct weft_cases *cases, enum weft_clock_of_case clock)
{
    bool any = clock == WEFT_CASE_SIMULATED;
    for (int32_t k = 0; k < cases->n; k++)
        any |= cases->cases[k].measured;
    return any;
}

void weft_hypotheses_report(const struct weft_cases *cases, enum weft_clock_of_case clock,
                            struct weft_answer *answer)
{
    const bool measured = clock == WEFT_CASE_MEASURED;
    if (!has_case(cases, clock)) return;
    const struct weft_column columns[N_COLUMNS] = {
        [MODEL] = {"model", "model", 'l', WEFT_FIGURE_WORD, 0},
        [NETWORK] = {"network", "network", 'r', WEFT_FIGURE_WORD, 0},
        [NUMBER] = {"hypothesis", "hypothesis", 'r', WEFT_FIGURE_INTEGER, 0},
        [HOLDS] = {"holds", "holds", 'r', WEFT_FIGURE_INTEGER, 0},
        [SATURATES] = {"saturates", "saturates", 'r', WEFT_FIGURE_INTEGER, 0},
        [EQUAL] = {"equal", "no difference", 'r', WEFT_FIGURE_INTEGER, 0},
        [REFUTED] = {"refuted", "refuted", 'r', WEFT_FIGURE_INTEGER, 0}};
    struct weft_rows *rows = weft_answer_table(
        answer, measured ? "hypotheses_measured" : "hypotheses", columns, N_COLUMNS);
    weft_rows_title(rows, "lines of divisions between policies and scheduling%s",
                    measured ? ", measured steps" : "");
    for (int32_t k = 0; k < cases->n; k++)
        for (int h = 0; h < WEFT_HYPOTHESES; h++)
            put_counts(&cases->cases[k], clock, h, rows);
    for (int h = 0; h < WEFT_HYPOTHESES; h++)
        say_hypothesis(cases, clock, h, answer);
}
