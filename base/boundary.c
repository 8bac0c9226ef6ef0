/* SPDX-License-Identifier: Apache-2.0 */
#include "base/boundary.h"

#include <stdbool.h>

enum { MOST_GROWTH = 16, LEAST_GROWTH_PART = 32, LINES_A_HALVING = 3 };

struct point {
    int64_t value, need;
};

/* `yes` and `before` are within the limit (value 0: none known); `no` is not. */
struct bracket {
    struct point before, yes, no;
    bool has_no; /* false: no value is known to be too large, and no.value is `most` + 1 */
    int32_t n_lines;
};

/* The integer below the point where the line through two points reaches the limit. */
static int64_t reach_limit(struct point a, struct point b, int64_t limit, int64_t most)
{
    double slope = ((double)b.need - (double)a.need) / (double)(b.value - a.value);
    double value = (double)a.value + ((double)limit - (double)a.need) / slope;
    return slope > 0 && value < (double)most ? (int64_t)value : most;
}

static int64_t clamp_value(int64_t value, int64_t least, int64_t most)
{
    value = value < least ? least : value;
    return value > most ? most : value;
}

/* Guesses the first value above the limit, by the line through the last two points. With one point,
 * doubles it. */
static int64_t guess_beyond(const struct bracket *at, int64_t limit)
{
    int64_t yes = at->yes.value, most = at->no.value - 1;
    int64_t farthest = yes < most / MOST_GROWTH ? yes * MOST_GROWTH : most;
    if (at->before.value == 0) return yes < most / 2 ? yes * 2 : most;
    int64_t guess = reach_limit(at->before, at->yes, limit, most);
    return clamp_value(guess < most ? guess + 1 : most, yes + 1 + yes / LEAST_GROWTH_PART,
                       farthest);
}

/* Guesses by the line, and at times by halving, for needs that are not linear. */
static int64_t guess_within(struct bracket *at, int64_t limit)
{
    int64_t yes = at->yes.value, no = at->no.value;
    if (at->no.need == INT64_MAX || ++at->n_lines % LINES_A_HALVING == 0)
        return yes + (no - yes) / 2;
    return clamp_value(reach_limit(at->yes, at->no, limit, no), yes + 1, no - 1);
}

static enum weft_status ask_need(const struct weft_boundary *boundary, int64_t value,
                                 struct bracket *at, struct weft_error *err)
{
    struct point point = {value, 0};
    WEFT_TRY(boundary->ask(boundary->context, value, &point.need, err));
    if (point.need > boundary->limit) {
        at->no = point;
        at->has_no = true;
    } else {
        at->before = at->yes;
        at->yes = point;
    }
    return WEFT_OK;
}

enum weft_status weft_boundary_find(const struct weft_boundary *boundary, int64_t *value,
                                    struct weft_error *err)
{
    struct bracket at = {.no = {.value = boundary->most + 1}};
    int64_t limit = boundary->limit;
    WEFT_TRY(ask_need(boundary, boundary->guess, &at, err));
    if (at.yes.value == 0 && boundary->guess > 1) WEFT_TRY(ask_need(boundary, 1, &at, err));
    while (at.yes.value > 0 && at.no.value - at.yes.value > 1) {
        int64_t next = at.has_no ? guess_within(&at, limit) : guess_beyond(&at, limit);
        WEFT_TRY(ask_need(boundary, next, &at, err));
    }
    *value = at.yes.value;
    return WEFT_OK;
}
