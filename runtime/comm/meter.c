/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/comm/meter.h"

#include <stdlib.h>

bool weft_comm_meter_open(struct weft_comm_meter *meter, int32_t ranks)
{
    meter->ranks = ranks;
    meter->peers = calloc((size_t)ranks, sizeof *meter->peers);
    for (int32_t p = 0; p < ranks && meter->peers != NULL; p++)
        meter->peers[p].least_ns = meter->peers[p].older_least_ns = INT64_MAX;
    return meter->peers != NULL;
}

void weft_comm_meter_close(struct weft_comm_meter *meter)
{
    free(meter->peers);
    meter->peers = NULL;
    meter->ranks = 0;
}

void weft_comm_meter_begin(struct weft_comm_meter *meter, bool has_header, int64_t now_ns)
{
    for (int32_t p = 0; p < meter->ranks; p++) {
        meter->peers[p].owed = 0;
        meter->peers[p].has_come = false;
    }
    meter->missing = has_header ? meter->ranks - 1 : 0;
    meter->began_ns = meter->met_ns = now_ns;
}

void weft_comm_meter_owe(struct weft_comm_meter *meter, int32_t peer, int64_t now_ns)
{
    struct weft_comm_meter_peer *p = &meter->peers[peer];
    if (p->owed++ == 0) p->since_ns = now_ns;
}

void weft_comm_meter_take(struct weft_comm_meter *meter, int32_t peer, int64_t bytes, bool is_early,
                          int64_t now_ns)
{
    struct weft_comm_meter_peer *p = &meter->peers[peer];
    if (p->has_come && (is_early || meter->missing == 0)) {
        const bool since_all = !is_early && meter->met_ns > p->since_ns;
        const int64_t since_ns = since_all ? meter->met_ns : p->since_ns;
        atomic_fetch_add_explicit(&p->bytes, bytes, memory_order_relaxed);
        atomic_fetch_add_explicit(&p->ns, now_ns - since_ns, memory_order_relaxed);
    } else if (!p->has_come && meter->missing > 0) {
        meter->missing--;
        meter->met_ns = now_ns;
    }
    if (!p->has_come) p->came_ns = now_ns;
    p->has_come = true;
    p->since_ns = now_ns;
    p->owed--;
}

void weft_comm_meter_end(struct weft_comm_meter *meter, int64_t now_ns)
{
    if (meter->missing > 0) return;
    atomic_fetch_add_explicit(&meter->moving_ns, now_ns - meter->met_ns, memory_order_relaxed);
}

/* The least difference of this header and the latest ones. */
static int64_t find_least(struct weft_comm_meter_peer *p, int64_t difference_ns)
{
    if (p->headers++ == WEFT_COMM_METER_HEADERS) {
        p->headers = 1;
        p->older_least_ns = p->least_ns;
        p->least_ns = INT64_MAX;
    }
    if (difference_ns < p->least_ns) p->least_ns = difference_ns;
    return p->least_ns < p->older_least_ns ? p->least_ns : p->older_least_ns;
}

void weft_comm_meter_hear(struct weft_comm_meter *meter, int32_t peer, int64_t sent_ns)
{
    struct weft_comm_meter_peer *p = &meter->peers[peer];
    /* When it could have come over an idle link, on this rank's clock. */
    int64_t due_ns = sent_ns + find_least(p, p->came_ns - sent_ns);
    if (due_ns < meter->began_ns) due_ns = meter->began_ns;
    if (p->came_ns <= due_ns) return;
    atomic_fetch_add_explicit(&p->ns, p->came_ns - due_ns, memory_order_relaxed);
    if (p->came_ns == meter->met_ns)
        atomic_fetch_add_explicit(&meter->moving_ns, p->came_ns - due_ns, memory_order_relaxed);
}
