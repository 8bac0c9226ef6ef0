/* SPDX-License-Identifier: Apache-2.0 */
#include "spec/profile/curve.h"

#include <math.h>
#include <stddef.h>

static const char curve_text[] = "Times by size, linear between two points.";
const struct weft_key_table weft_curve_bytes_keys = WEFT_KEY_TABLE_OPEN(
    curve_text,
    WEFT_KEY_ARRAY(WEFT_KEY_UNREAD, WEFT_KEY_INT64, "bytes", weft_curve, x, n, NULL,
                   "of a block or a collective, increasing"),
    WEFT_KEY_ARRAY(WEFT_KEY_UNREAD, WEFT_KEY_INT64, "ns", weft_curve, ns, n, NULL, "of each"));

const struct weft_key_table weft_curve_elements_keys = WEFT_KEY_TABLE_OPEN(
    curve_text,
    WEFT_KEY_ARRAY(WEFT_KEY_UNREAD, WEFT_KEY_INT64, "elements", weft_curve, x, n, NULL,
                   "of one rank, increasing"),
    WEFT_KEY_ARRAY(WEFT_KEY_UNREAD, WEFT_KEY_INT64, "ns", weft_curve, ns, n, NULL, "of each"));

/* The right end of the segment that gives the value at x, at or after the first point. */
static int32_t find_segment(const struct weft_curve *curve, int64_t x)
{
    int32_t low = 1, high = curve->n - 1;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (curve->x[middle] >= x) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

int64_t weft_curve_at(const struct weft_curve *curve, int64_t x)
{
    const double most_ns = 4e18;
    if (curve->n == 0) return 0;
    if (curve->n == 1 || x <= curve->x[0]) return curve->ns[0] > 0 ? curve->ns[0] : 0;
    int32_t right = find_segment(curve, x);
    double x0 = (double)curve->x[right - 1], x1 = (double)curve->x[right];
    double y0 = (double)curve->ns[right - 1], y1 = (double)curve->ns[right];
    double y = y0 + (y1 - y0) * (((double)x - x0) / (x1 - x0));
    if (y <= 0) return 0;
    return y < most_ns ? (int64_t)floor(y + 0.5) : (int64_t)most_ns;
}

int64_t weft_curve_efficient(const struct weft_curve *curve, double efficiency)
{
    double best = 0; /* bytes a ns */
    for (int32_t i = 0; i < curve->n; i++) {
        if (curve->ns[i] <= 0) return 0;
        double rate = (double)curve->x[i] / (double)curve->ns[i];
        if (rate > best) best = rate;
    }
    double wanted = efficiency * best;
    if (wanted <= 0) return 0;
    int32_t reached = 0;
    while (reached + 1 < curve->n &&
           (double)curve->x[reached] / (double)curve->ns[reached] < wanted) {
        reached++;
    }
    /* Solves x / ns(x) = wanted on the segment that ends at `reached`; before the first point ns is
     * constant. */
    double x0 = 0, y0 = (double)curve->ns[0], slope = 0;
    if (reached > 0) {
        x0 = (double)curve->x[reached - 1];
        y0 = (double)curve->ns[reached - 1];
        slope = ((double)curve->ns[reached] - y0) / ((double)curve->x[reached] - x0);
    }
    double x = wanted * (y0 - slope * x0) / (1 - wanted * slope);
    double most = (double)curve->x[reached];
    if (!(x > x0) || x > most) x = most;
    int64_t bytes = (int64_t)ceil(x);
    return bytes < 1 ? 1 : bytes;
}

/* Reads a curve's list of numbers in [0, 2^53]; those of x increase. */
static enum weft_status read_numbers(const struct weft_json_value *array, const char *where,
                                     const char *name, bool increasing, struct weft_pool *pool,
                                     const int64_t **out, int32_t *n, struct weft_error *err)
{
    enum { MOST_POINTS = 65536 };
    size_t count = weft_json_count(array), i = 0;
    if (count == 0 || count > MOST_POINTS) {
        return weft_fail(err, WEFT_E_DATA, "%s: %s has %zu points; must have 1 to %d", where, name,
                         count, MOST_POINTS);
    }
    int64_t *numbers = weft_pool_array(pool, count, sizeof *numbers);
    if (numbers == NULL) return weft_fail_memory(err, "a profile");
    for (const struct weft_json_value *value = weft_json_first(array); value != NULL;
         value = weft_json_next(value), i++) {
        if (!weft_json_integer(value, &numbers[i]) || numbers[i] < 0) {
            return weft_fail(err, WEFT_E_DATA, "%s: %s[%zu] is no integer from 0 to 2^53", where,
                             name, i);
        }
        if (increasing && i > 0 && numbers[i] <= numbers[i - 1]) {
            return weft_fail(err, WEFT_E_DATA, "%s: %s[%zu] is not more than the one before it",
                             where, name, i);
        }
    }
    *out = numbers;
    *n = (int32_t)count;
    return WEFT_OK;
}

enum weft_status weft_curve_read(const struct weft_json_value *object, const char *source,
                                 const char *name, const char *x_name, struct weft_pool *pool,
                                 struct weft_curve *out, struct weft_error *err)
{
    const struct weft_json_value *curve = weft_json_member(object, name), *x, *ns;
    struct weft_curve read = {0};
    int32_t n_ns = 0;
    if (curve == NULL) return WEFT_OK;
    char *where = weft_pool_format(pool, "%s: %s", source, name);
    if (where == NULL) return weft_fail_memory(err, "a profile");
    WEFT_TRY(weft_json_need(curve, where, x_name, WEFT_JSON_ARRAY, &x, err));
    WEFT_TRY(weft_json_need(curve, where, "ns", WEFT_JSON_ARRAY, &ns, err));
    WEFT_TRY(read_numbers(x, where, x_name, true, pool, &read.x, &read.n, err));
    WEFT_TRY(read_numbers(ns, where, "ns", false, pool, &read.ns, &n_ns, err));
    if (n_ns != read.n) {
        return weft_fail(err, WEFT_E_DATA, "%s: %d %s but %d ns; must be as many", where, read.n,
                         x_name, n_ns);
    }
    *out = read;
    return WEFT_OK;
}
