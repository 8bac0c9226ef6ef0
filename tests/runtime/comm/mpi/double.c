/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/runtime/comm/mpi/double.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/rng.h"
#include "tests/runtime/comm/ranks.h"

enum { PORTION_BYTES = 40000, TRUNCATED = 15, LOST = 16 };

struct frame {
    int32_t tag;
    uint32_t bytes;
};

/* A request, or a message that nobody has asked for yet. */
struct op {
    struct op *next;
    struct frame frame;
    unsigned char *memory; /* of the request, or owned */
    size_t moved;          /* of frame and memory */
    bool owned, is_done, is_dropped, is_short;
};

struct peer {
    int socket;
    int64_t sent;                           /* bytes of messages */
    struct op *sends, *receives, *messages; /* in order */
    struct op *coming;                      /* the one whose bytes are read; or NULL */
    struct frame frame;
    size_t frame_bytes; /* read of the frame */
};

static struct {
    int32_t rank, ranks;
    struct peer peers[ROOM_RANKS];
    uint64_t turn;
} own;

static uint64_t draw_below(uint64_t most)
{
    return weft_rng_below(UINT64_C(4711) + (uint64_t)own.rank, own.turn++, 1, most);
}

static void append_op(struct op **list, struct op *op)
{
    while (*list != NULL)
        list = &(*list)->next;
    *list = op;
}

static void remove_op(struct op **list, const struct op *op)
{
    while (*list != NULL && *list != op)
        list = &(*list)->next;
    if (*list != NULL) *list = op->next;
}

static size_t portion_of(size_t left)
{
    const size_t most = (size_t)draw_below(PORTION_BYTES) + 1;
    return left < most ? left : most;
}

static bool move_sends(struct peer *peer)
{
    struct op *op = peer->sends;
    if (op == NULL || draw_below(4) == 0) return true;
    const size_t head = sizeof op->frame;
    const bool in_head = op->moved < head;
    const unsigned char *from =
        in_head ? (const unsigned char *)&op->frame + op->moved : op->memory + (op->moved - head);
    const size_t left = (in_head ? head : head + op->frame.bytes) - op->moved;
    if (left > 0) {
        const ssize_t n = send(peer->socket, from, portion_of(left), MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
        op->moved += (size_t)n;
    }
    if (op->moved < head + op->frame.bytes) return true;
    peer->sends = op->next;
    op->is_done = true;
    if (op->is_dropped) free(op);
    return true;
}

/* Finds the place of the next message: a receive that waits for it, or memory of its own. */
static void place_message(struct peer *peer)
{
    struct op *op = peer->receives;
    while (op != NULL && op->frame.tag != peer->frame.tag)
        op = op->next;
    if (op == NULL) {
        op = calloc(1, sizeof *op);
        CHECK(op != NULL, "memory");
        op->memory = malloc(peer->frame.bytes + 1);
        op->owned = true;
        append_op(&peer->messages, op);
    } else {
        remove_op(&peer->receives, op);
        op->is_short = op->frame.bytes < peer->frame.bytes;
        if (op->is_short || op->is_dropped) { /* its bytes must not overwrite others */
            op->memory = malloc(peer->frame.bytes + 1);
            op->owned = true;
        }
    }
    CHECK(op->memory != NULL || peer->frame.bytes == 0, "memory");
    op->next = op->owned ? op->next : NULL;
    op->frame = peer->frame;
    op->moved = 0;
    peer->coming = op;
}

static bool move_receives(struct peer *peer)
{
    ssize_t n;
    if (draw_below(4) == 0) return true;
    if (peer->coming == NULL) {
        n = recv(peer->socket, (unsigned char *)&peer->frame + peer->frame_bytes,
                 sizeof peer->frame - peer->frame_bytes, MSG_DONTWAIT);
        if (n <= 0) return n < 0 && errno != ECONNRESET;
        peer->frame_bytes += (size_t)n;
        if (peer->frame_bytes < sizeof peer->frame) return true;
        peer->frame_bytes = 0;
        place_message(peer);
    }
    struct op *op = peer->coming;
    if (op->moved < op->frame.bytes) {
        n = recv(peer->socket, op->memory + op->moved, portion_of(op->frame.bytes - op->moved),
                 MSG_DONTWAIT);
        if (n <= 0) return n < 0 && errno != ECONNRESET;
        op->moved += (size_t)n;
    }
    if (op->moved < op->frame.bytes) return true;
    peer->coming = NULL;
    op->is_done = true;
    if (op->is_dropped) free(op);
    return true;
}

/* A peer that is gone is no error: MPI libraries differ in that. */
static void progress_all(void)
{
    for (int32_t i = 0; i < own.ranks; i++) {
        if (i == own.rank) continue;
        for (int n = 0; n < 3; n++) {
            if (!move_sends(&own.peers[i])) break;
            if (!move_receives(&own.peers[i])) break;
        }
    }
}

static int double_start(int32_t *rank, int32_t *ranks, bool *threads)
{
    *rank = own.rank;
    *ranks = own.ranks;
    *threads = true;
    return 0;
}

static int double_finish(void)
{
    return 0;
}

static int double_send(const void *from, size_t bytes, int32_t to, int32_t tag,
                       struct weft_mpi_request *out)
{
    struct op *op = calloc(1, sizeof *op);
    CHECK(op != NULL && to != own.rank && to >= 0 && to < own.ranks, "a send to %d", to);
    CHECK(bytes <= WEFT_MPI_MESSAGE_BYTES, "%zu bytes are too many", bytes);
    op->frame = (struct frame){tag, (uint32_t)bytes};
    op->memory = (unsigned char *)from;
    append_op(&own.peers[to].sends, op);
    own.peers[to].sent += (int64_t)bytes;
    out->library = (uint64_t)(uintptr_t)op;
    progress_all();
    return 0;
}

static int double_receive(void *to, size_t bytes, int32_t from, int32_t tag,
                          struct weft_mpi_request *out)
{
    struct peer *peer = &own.peers[from];
    struct op *message = peer->messages, *op = calloc(1, sizeof *op);
    CHECK(op != NULL && from != own.rank && from >= 0 && from < own.ranks, "from %d", from);
    while (message != NULL && message->frame.tag != tag)
        message = message->next;
    out->library = (uint64_t)(uintptr_t)op;
    op->frame = (struct frame){tag, (uint32_t)bytes};
    op->memory = to;
    if (message == NULL) {
        append_op(&peer->receives, op);
        return 0;
    }
    while (!message->is_done)
        progress_all();
    remove_op(&peer->messages, message);
    op->is_done = true;
    op->is_short = message->frame.bytes > bytes;
    if (!op->is_short && message->frame.bytes > 0)
        memcpy(to, message->memory, message->frame.bytes);
    free(message->memory);
    free(message);
    return 0;
}

static int double_test(struct weft_mpi_request *request, bool *done)
{
    struct op *op = (struct op *)(uintptr_t)request->library;
    progress_all();
    *done = op == NULL || op->is_done;
    if (op == NULL || !op->is_done) return 0;
    const bool is_short = op->is_short;
    request->library = 0;
    if (op->owned) free(op->memory);
    free(op);
    return is_short ? TRUNCATED : 0;
}

/* A request whose bytes are moving already goes on in memory of its own. */
static void double_drop(struct weft_mpi_request *request)
{
    struct op *op = (struct op *)(uintptr_t)request->library;
    request->library = 0;
    if (op == NULL) return;
    for (int32_t i = 0; i < own.ranks; i++) {
        struct peer *peer = &own.peers[i];
        const bool is_coming = peer->coming == op, is_going = peer->sends == op && op->moved > 0;
        remove_op(&peer->receives, op);
        if (!is_going) remove_op(&peer->sends, op);
        if (!is_coming && !is_going) continue;
        unsigned char *copy = malloc(op->frame.bytes + 1);
        CHECK(copy != NULL, "memory");
        if (is_going) memcpy(copy, op->memory, op->frame.bytes);
        op->memory = copy; /* leaks, at the end of a test that fails */
        op->is_dropped = true;
        return;
    }
    free(op);
}

static int double_look(int32_t tag, int32_t *rank)
{
    progress_all();
    *rank = -1;
    for (int32_t i = 0; i < own.ranks && *rank < 0; i++) {
        for (const struct op *op = own.peers[i].messages; op != NULL; op = op->next)
            if (op->is_done && op->frame.tag == tag) *rank = i;
    }
    return 0;
}

static void double_explain(int code, char text[WEFT_MPI_TEXT_BYTES])
{
    snprintf(text, WEFT_MPI_TEXT_BYTES, "code %d%s", code,
             code == TRUNCATED ? ", message truncated" : "");
}

static void double_version(char text[WEFT_MPI_TEXT_BYTES])
{
    snprintf(text, WEFT_MPI_TEXT_BYTES, "a double of MPI");
}

struct weft_mpi_calls mpi_double_calls = {
    .start = double_start,
    .finish = double_finish,
    .send = double_send,
    .receive = double_receive,
    .test = double_test,
    .drop = double_drop,
    .look = double_look,
    .round_bytes = WEFT_MPI_MESSAGE_BYTES,
    .explain = double_explain,
    .version = double_version,
};

int64_t mpi_double_sent(int32_t to)
{
    return own.peers[to].sent;
}

struct weft_mpi *mpi_double_start(int32_t rank, int32_t ranks, const int *sockets)
{
    const struct weft_mpi_options options = {.launcher = "the test"};
    struct weft_error err = {.status = WEFT_OK};
    struct weft_mpi *mpi = NULL;
    own.rank = rank;
    own.ranks = ranks;
    for (int32_t i = 0; i < ranks; i++)
        own.peers[i].socket = sockets[i];
    CHECK(weft_mpi_start_over(&mpi_double_calls, &options, &mpi, &err) == WEFT_OK, "%s", err.text);
    return mpi;
}
