/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/measure/flow.h"

#include "base/clock.h"

static bool has_free_seat(const struct measure_flow *flow)
{
    return flow->blocks < flow->seats ||
           flow->is_done(flow->context, flow->tickets[flow->blocks % flow->seats]);
}

/* Submits the next block once its seat is free. */
static enum weft_status go_on(struct measure_flow *flow, struct weft_error *err)
{
    const int32_t seat = (int32_t)(flow->blocks % flow->seats);
    int64_t *ticket = &flow->tickets[seat];
    if (flow->blocks >= flow->seats) WEFT_TRY(flow->wait(flow->context, *ticket, err));
    return flow->submit(flow->context, flow->blocks++, seat, ticket, err);
}

static enum weft_status drain_flow(struct measure_flow *flow, int64_t begun_ns,
                                   struct weft_error *err)
{
    const int64_t queued = flow->blocks < flow->seats ? flow->blocks : flow->seats;
    for (int64_t i = flow->blocks - queued; i < flow->blocks; i++)
        WEFT_TRY(flow->wait(flow->context, flow->tickets[i % flow->seats], err));
    flow->took_ns = weft_clock_now_ns() - begun_ns;
    return WEFT_OK;
}

static bool all_have_enough(struct measure_flow *const *flows, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        if (flows[i]->blocks < flows[i]->least) return false;
    return true;
}

enum weft_status weft_measure_flows(struct measure_flow *const *flows, int32_t n, int64_t window_ns,
                                    struct weft_error *err)
{
    const int64_t begun_ns = weft_clock_now_ns();
    for (int32_t i = 0; i < n; i++)
        flows[i]->blocks = 0;
    int32_t turn = 0;
    while (weft_clock_now_ns() - begun_ns < window_ns || !all_have_enough(flows, n)) {
        /* Takes the next flow with a free seat; if there is none, the next flow waits. */
        int32_t tried = 0;
        while (tried < n && !has_free_seat(flows[(turn + tried) % n]))
            tried++;
        struct measure_flow *next = flows[(turn + tried) % n];
        turn = (turn + tried + 1) % n;
        WEFT_TRY(go_on(next, err));
    }
    for (int32_t i = 0; i < n; i++)
        WEFT_TRY(drain_flow(flows[i], begun_ns, err));
    return WEFT_OK;
}

int64_t weft_measure_block_ns(const struct measure_flow *flow)
{
    const int64_t ns = flow->took_ns / (flow->blocks > 0 ? flow->blocks : 1);
    return ns > 0 ? ns : 1;
}
