/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/comm/mpi/rounds.h"

#include <string.h>

#include "base/clock.h"

/* Steps under way at once: small messages need more of them to fill a link. */
enum { MOST_UNDER_WAY_BYTES = 8 << 20, MOST_DEPTH = 32, ALIGN_BYTES = 8 };

/* One step of one chunk: a send and a receive. */
struct step {
    const struct weft_mpi_flow *flow;
    int64_t position; /* of the chunk */
    int32_t from, to; /* peers, in the flow's group */
    struct weft_mpi_request send, receive;
    bool is_sent, is_received;
    bool is_early; /* of the first steps, which wait for no other step */
};

struct exchange {
    const struct weft_mpi_rounds *rounds;
    const struct weft_mpi_flow *flows;
    int32_t n_flows;
    int64_t now_ns; /* at the latest poll */
    /* The next step to issue. */
    int32_t flow, turn;
    int64_t position;
    /* Steps under way, in order, in a ring. */
    struct step steps[MOST_DEPTH];
    uint32_t first, end;
    /* Missing parts of the staged flow's chunks; chunk n is in word n modulo staged_chunks. */
    int32_t missing[MOST_DEPTH];
    int64_t consumed;
};

int32_t weft_mpi_rounds_depth(int64_t message_bytes)
{
    const int64_t depth = MOST_UNDER_WAY_BYTES / message_bytes;
    return depth < MOST_DEPTH ? (int32_t)depth : MOST_DEPTH;
}

/* Chunks that staging memory holds at once: enough steps for the depth, and at least two. */
static int32_t chunks_of(int32_t ranks, int64_t message_bytes)
{
    const int32_t chunks = (weft_mpi_rounds_depth(message_bytes) + ranks - 2) / (ranks - 1);
    return chunks > 2 ? chunks : 2;
}

int64_t weft_mpi_staged_chunk_bytes(int32_t ranks, int64_t message_bytes)
{
    const int64_t slots = (int64_t)chunks_of(ranks, message_bytes) * (ranks - 1);
    const int64_t bytes = WEFT_MPI_STAGING_BYTES / slots / ALIGN_BYTES * ALIGN_BYTES;
    return bytes > message_bytes ? message_bytes : bytes;
}

static int32_t staged_chunks(const struct exchange *x)
{
    return chunks_of(x->rounds->group.ranks, x->rounds->message_bytes);
}

static int64_t staged_bytes(const struct exchange *x)
{
    return weft_mpi_staged_chunk_bytes(x->rounds->group.ranks, x->rounds->message_bytes);
}

static const struct weft_mpi_group *group_of(const struct exchange *x,
                                             const struct weft_mpi_flow *flow)
{
    return flow->group != NULL ? flow->group : &x->rounds->group;
}

static bool is_staged(const struct weft_mpi_flow *flow)
{
    return flow->receive == NULL;
}

static int64_t chunk_bytes(const struct exchange *x, const struct weft_mpi_flow *flow)
{
    return is_staged(flow) ? staged_bytes(x) : x->rounds->message_bytes;
}

static int64_t bytes_at(const struct exchange *x, const struct weft_mpi_flow *flow,
                        int64_t position)
{
    const int64_t chunk = chunk_bytes(x, flow), left = flow->bytes - position * chunk;
    return left < chunk ? left : chunk;
}

/* Place of the peer's part of a chunk, `turn` steps away. */
static unsigned char *slot_at(const struct exchange *x, int64_t position, int32_t turn)
{
    const int64_t chunk = position % staged_chunks(x);
    const int64_t slot = chunk * (x->rounds->group.ranks - 1) + turn - 1;
    return x->rounds->staging + slot * staged_bytes(x);
}

static bool is_at_end(const struct exchange *x)
{
    return x->flow == x->n_flows;
}

/* Passes flows without bytes or peers. */
static void settle_cursor(struct exchange *x)
{
    while (x->flow < x->n_flows &&
           (group_of(x, &x->flows[x->flow])->ranks == 1 ||
            x->position * chunk_bytes(x, &x->flows[x->flow]) >= x->flows[x->flow].bytes)) {
        x->flow++;
        x->position = 0;
    }
}

static void advance_cursor(struct exchange *x)
{
    x->turn++;
    if (x->turn < group_of(x, &x->flows[x->flow])->ranks) return;
    x->turn = 1;
    x->position++;
    settle_cursor(x);
}

static bool sends_to(const struct weft_mpi_group *group, const struct weft_mpi_flow *flow,
                     int32_t peer)
{
    if (flow->way == WEFT_MPI_TO_OWNER) return peer == flow->owner;
    return flow->way == WEFT_MPI_ALL_PAIRS || group->rank == flow->owner;
}

static bool receives_from(const struct weft_mpi_group *group, const struct weft_mpi_flow *flow,
                          int32_t peer)
{
    if (flow->way == WEFT_MPI_FROM_OWNER) return peer == flow->owner;
    return flow->way == WEFT_MPI_ALL_PAIRS || group->rank == flow->owner;
}

/* A staged chunk needs a free place. */
static bool may_issue(const struct exchange *x)
{
    if (is_at_end(x) ||
        (int32_t)(x->end - x->first) == weft_mpi_rounds_depth(x->rounds->message_bytes))
        return false;
    const struct weft_mpi_flow *flow = &x->flows[x->flow];
    const bool sums = flow->way != WEFT_MPI_TO_OWNER || group_of(x, flow)->rank == flow->owner;
    return !is_staged(flow) || !sums || x->position - x->consumed < staged_chunks(x);
}

static int32_t rank_of_all(const struct weft_mpi_group *group, int32_t rank)
{
    return group->first + rank * (1 + group->gap);
}

/* Number of the flow's rank in the rounds' group. */
static int32_t rank_of_rounds(const struct exchange *x, const struct weft_mpi_flow *flow,
                              int32_t rank)
{
    const struct weft_mpi_group *group = &x->rounds->group;
    return (rank_of_all(group_of(x, flow), rank) - group->first) / (1 + group->gap);
}

static enum weft_status issue_step(struct exchange *x, struct weft_error *err)
{
    const struct weft_mpi_flow *flow = &x->flows[x->flow];
    const int64_t at = x->position * chunk_bytes(x, flow), bytes = bytes_at(x, flow, x->position);
    const struct weft_mpi_group *group = group_of(x, flow);
    const int32_t to = (group->rank + x->turn) % group->ranks;
    const int32_t from = (group->rank - x->turn + group->ranks) % group->ranks;
    unsigned char *place = is_staged(flow) ? slot_at(x, x->position, x->turn)
                                           : flow->receive + from * flow->receive_stride + at;
    const bool sends = sends_to(group, flow, to), receives = receives_from(group, flow, from);
    if (!sends && !receives) return WEFT_OK;
    struct step *step = &x->steps[x->end % MOST_DEPTH];
    *step = (struct step){.flow = flow,
                          .position = x->position,
                          .from = from,
                          .to = to,
                          .is_sent = !sends,
                          .is_received = !receives,
                          .is_early =
                              (int32_t)x->end < weft_mpi_rounds_depth(x->rounds->message_bytes)};
    if (is_staged(flow) && x->turn == 1)
        x->missing[x->position % staged_chunks(x)] = group->ranks - 1;
    x->end++;
    const struct weft_mpi_rounds *rounds = x->rounds;
    const int32_t tag = rounds->tags + (int32_t)flow->tag;
    if (receives && rounds->meter != NULL)
        weft_comm_meter_owe(rounds->meter, rank_of_rounds(x, flow, from), x->now_ns);
    if (receives)
        WEFT_TRY(weft_mpi_receive(rounds->mpi, place, bytes, rank_of_all(group, from), tag,
                                  &step->receive, err));
    if (!sends) return WEFT_OK;
    return weft_mpi_send(rounds->mpi, flow->send + to * flow->send_stride + at, bytes,
                         rank_of_all(group, to), tag, &step->send, err);
}

static void consume_chunk(struct exchange *x, const struct weft_mpi_flow *flow)
{
    const int64_t at = x->consumed * chunk_bytes(x, flow);
    const struct weft_mpi_group *group = &x->rounds->group;
    const unsigned char **operands = x->rounds->operands;
    operands[group->rank] = flow->send + group->rank * flow->send_stride + at;
    for (int32_t turn = 1; turn < group->ranks; turn++)
        operands[(group->rank - turn + group->ranks) % group->ranks] =
            slot_at(x, x->consumed, turn);
    flow->consume(flow->context, at, bytes_at(x, flow, x->consumed), operands);
    x->consumed++;
}

static void meter_part(const struct exchange *x, const struct step *step)
{
    if (x->rounds->meter == NULL) return;
    weft_comm_meter_take(x->rounds->meter, rank_of_rounds(x, step->flow, step->from),
                         bytes_at(x, step->flow, step->position), step->is_early,
                         weft_clock_now_ns());
}

/* Chunks before the first step under way are whole, but for the chunk of that step. */
static void receive_part(struct exchange *x, const struct step *step)
{
    const int32_t chunks = staged_chunks(x);
    if (!is_staged(step->flow)) return;
    x->missing[step->position % chunks]--;
    const int64_t all =
        (step->flow->bytes + chunk_bytes(x, step->flow) - 1) / chunk_bytes(x, step->flow);
    const int64_t issued = x->flow < x->n_flows && &x->flows[x->flow] == step->flow
                               ? x->position + (x->turn > 1)
                               : all;
    while (x->consumed < issued && x->missing[x->consumed % chunks] == 0)
        consume_chunk(x, step->flow);
}

/* Sets *moved if something was done. */
static enum weft_status test_step(struct exchange *x, struct step *step, bool *moved,
                                  struct weft_error *err)
{
    if (!step->is_received) {
        WEFT_TRY(weft_mpi_test(x->rounds->mpi, &step->receive, &step->is_received, err));
        *moved = *moved || step->is_received;
        if (step->is_received) {
            meter_part(x, step);
            receive_part(x, step);
        }
    }
    if (!step->is_sent) {
        WEFT_TRY(weft_mpi_test(x->rounds->mpi, &step->send, &step->is_sent, err));
        *moved = *moved || step->is_sent;
    }
    return WEFT_OK;
}

static enum weft_status poll_steps(struct exchange *x, bool *moved, struct weft_error *err)
{
    for (uint32_t i = x->first; i != x->end; i++)
        WEFT_TRY(test_step(x, &x->steps[i % MOST_DEPTH], moved, err));
    while (x->first != x->end && x->steps[x->first % MOST_DEPTH].is_sent &&
           x->steps[x->first % MOST_DEPTH].is_received)
        x->first++;
    while (may_issue(x)) {
        WEFT_TRY(issue_step(x, err));
        advance_cursor(x);
        *moved = true;
    }
    return WEFT_OK;
}

/* Nothing has moved, so a step is under way. */
static int32_t oldest_peer(const struct exchange *x)
{
    const struct step *step = &x->steps[x->first % MOST_DEPTH];
    return rank_of_rounds(x, step->flow, step->is_received ? step->to : step->from);
}

static void drop_steps(struct exchange *x)
{
    for (uint32_t i = x->first; i != x->end; i++) {
        weft_mpi_drop(x->rounds->mpi, &x->steps[i % MOST_DEPTH].receive);
        weft_mpi_drop(x->rounds->mpi, &x->steps[i % MOST_DEPTH].send);
    }
}

enum weft_status weft_mpi_exchange_flows(const struct weft_mpi_rounds *rounds,
                                         const struct weft_mpi_flow *flows, int32_t n_flows,
                                         struct weft_error *err)
{
    struct exchange x = {
        .rounds = rounds,
        .flows = flows,
        .n_flows = n_flows,
        .turn = 1,
    };
    if (rounds->group.ranks == 1) {
        for (int32_t i = 0; i < n_flows; i++) {
            rounds->operands[0] = flows[i].send;
            if (is_staged(&flows[i]) && flows[i].bytes > 0)
                flows[i].consume(flows[i].context, 0, flows[i].bytes, rounds->operands);
        }
        return WEFT_OK;
    }
    enum weft_status status = WEFT_OK;
    int64_t moved_ns = x.now_ns = weft_clock_now_ns();
    settle_cursor(&x);
    if (rounds->meter != NULL)
        weft_comm_meter_begin(rounds->meter, flows[0].tag == WEFT_MPI_HEADER, moved_ns);
    while (status == WEFT_OK && (!is_at_end(&x) || x.first != x.end)) {
        bool moved = false;
        status = poll_steps(&x, &moved, err);
        if (status != WEFT_OK) break;
        x.now_ns = weft_clock_now_ns();
        if (moved)
            moved_ns = x.now_ns;
        else
            status = rounds->idle(rounds->context, x.now_ns - moved_ns, oldest_peer(&x), err);
    }
    if (status == WEFT_OK && rounds->meter != NULL) weft_comm_meter_end(rounds->meter, x.now_ns);
    if (status != WEFT_OK) drop_steps(&x);
    return status;
}
