/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/links.h"

#include <stdlib.h>

static int compare_values(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int64_t lower_median(int64_t *values, int32_t n)
{
    if (n == 0) return 0;
    qsort(values, (size_t)n, sizeof *values, compare_values);
    return values[(n - 1) / 2];
}

/* At least 1, so that 0 is no time. */
static int64_t ps_of_byte(int64_t ns, int64_t bytes)
{
    const double ps = 1e3 * (double)ns / (double)bytes;
    return ps < 1 ? 1 : ps > 1e15 ? INT64_C(1000000000000000) : (int64_t)ps;
}

void weft_links_sum(const struct weft_comm_traffic *traffic, int64_t moving_ns, int32_t rank,
                    int32_t ranks, int32_t per_node, int64_t *scratch, struct weft_link_sums *out)
{
    int32_t n = 0;
    int64_t slowest_ps = 0;
    *out = (struct weft_link_sums){.moving_ns = moving_ns, .peer = -1};
    for (int32_t p = 0; p < ranks; p++) {
        if (p / per_node == rank / per_node || traffic[p].bytes < WEFT_LINK_LEAST_BYTES) continue;
        const int64_t ps = ps_of_byte(traffic[p].ns, traffic[p].bytes);
        scratch[n++] = ps;
        if (ps <= slowest_ps) continue;
        slowest_ps = ps;
        out->peer = p;
        out->ns = traffic[p].ns;
        out->bytes = traffic[p].bytes;
    }
    out->usual_ps = lower_median(scratch, n);
}

static double times_usual(const struct weft_link_sums *sums, int64_t usual_ps)
{
    return sums->peer < 0 || usual_ps == 0
               ? 0
               : (double)ps_of_byte(sums->ns, sums->bytes) / (double)usual_ps;
}

/* Time beyond the usual one of the slowest peer's bytes. */
static double lost_ns(const struct weft_link_sums *sums, int64_t usual_ps)
{
    return (double)sums->ns - 1e-3 * (double)usual_ps * (double)sums->bytes;
}

/* Whether the slowest peer is slow, and costs much of the window. */
static bool has_slow_peer(const struct weft_link_sums *sums, int64_t usual_ps, int64_t window_ns)
{
    return times_usual(sums, usual_ps) > WEFT_LINK_TIMES &&
           lost_ns(sums, usual_ps) * WEFT_LINK_SHARE >= (double)window_ns;
}

/* Other nodes that have a slow peer on this node. */
static int32_t count_accusers(const struct weft_link_sums *all, int32_t ranks, int32_t per_node,
                              int32_t node, int64_t usual_ps, int64_t window_ns)
{
    int32_t accusers = 0;
    for (int32_t first = 0; first < ranks; first += per_node) {
        bool accuses = false;
        for (int32_t r = first; r < first + per_node; r++)
            accuses = accuses || (all[r].peer >= 0 && all[r].peer / per_node == node &&
                                  has_slow_peer(&all[r], usual_ps, window_ns));
        accusers += accuses;
    }
    return accusers;
}

static struct weft_link_finding judge_all(const struct weft_link_sums *all, int32_t ranks,
                                          int64_t window_ns, int64_t planned_ns)
{
    int64_t moving_ns = 0;
    for (int32_t r = 0; r < ranks; r++)
        if (all[r].moving_ns > moving_ns) moving_ns = all[r].moving_ns;
    if (planned_ns <= 0 || moving_ns / WEFT_LINK_TIMES <= planned_ns ||
        moving_ns < window_ns / WEFT_LINK_SHARE)
        return (struct weft_link_finding){WEFT_LINK_FINE, -1, -1, 0, 0};
    return (struct weft_link_finding){WEFT_LINK_OF_ALL, -1, -1,
                                      (double)(moving_ns - planned_ns) / (double)window_ns,
                                      (double)moving_ns / (double)planned_ns};
}

struct weft_link_finding weft_links_judge(const struct weft_link_sums *all, int32_t ranks,
                                          int32_t per_node, int64_t window_ns, int64_t planned_ns,
                                          int64_t *scratch)
{
    const int32_t nodes = ranks / per_node;
    int32_t n = 0, worst = -1;
    for (int32_t r = 0; r < ranks; r++)
        if (all[r].usual_ps > 0) scratch[n++] = all[r].usual_ps;
    const int64_t usual_ps = lower_median(scratch, n);
    for (int32_t r = 0; r < ranks; r++) {
        if (!has_slow_peer(&all[r], usual_ps, window_ns)) continue;
        if (worst < 0 || lost_ns(&all[r], usual_ps) > lost_ns(&all[worst], usual_ps)) worst = r;
    }
    if (worst < 0) return judge_all(all, ranks, window_ns, planned_ns);
    const int32_t from = all[worst].peer / per_node, to = worst / per_node;
    const double share = lost_ns(&all[worst], usual_ps) / (double)window_ns;
    if (nodes > 2 &&
        2 * count_accusers(all, ranks, per_node, from, usual_ps, window_ns) > nodes - 1)
        return (struct weft_link_finding){WEFT_LINK_OF_HOST, -1, from, share, 0};
    if (nodes > 2 && all[worst].usual_ps > WEFT_LINK_TIMES * usual_ps)
        return (struct weft_link_finding){WEFT_LINK_OF_HOST, -1, to, share, 0};
    return (struct weft_link_finding){WEFT_LINK_OF_PAIR, from < to ? from : to,
                                      from < to ? to : from, share, 0};
}

bool weft_links_agree(const struct weft_link_finding *a, const struct weft_link_finding *b)
{
    return a->fault == b->fault && a->from == b->from && a->to == b->to;
}
