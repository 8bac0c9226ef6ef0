/* SPDX-License-Identifier: Apache-2.0 */
/* Times of messages by hand, with a clock in numbers. */
#include "runtime/comm/meter.h"

#include "runtime/comm/comm.h"
#include "tests/runtime/comm/ranks.h"

enum { HEADER = 48 };

static void check_peer(const struct weft_comm_meter *meter, int32_t peer, int64_t bytes, int64_t ns)
{
    const int64_t got_bytes = meter->peers[peer].bytes, got_ns = meter->peers[peer].ns;
    CHECK(got_bytes == bytes && got_ns == ns, "peer %d: %lld bytes in %lld ns", peer,
          (long long)got_bytes, (long long)got_ns);
}

/* Rank 0 of three. Peer 1 comes at 100, and peer 2, which computes, at 5000. */
static void one_call(struct weft_comm_meter *meter)
{
    weft_comm_meter_begin(meter, true, 50);
    for (int32_t peer = 1; peer <= 2; peer++) {
        weft_comm_meter_owe(meter, peer, 50); /* its header, and its data */
        weft_comm_meter_owe(meter, peer, 50);
    }
    weft_comm_meter_owe(meter, 1, 50);
    weft_comm_meter_owe(meter, 1, 50);
    weft_comm_meter_take(meter, 1, HEADER, true, 100);
    weft_comm_meter_take(meter, 1, 1000, true, 300);
    weft_comm_meter_take(meter, 1, 1000, false, 900); /* it may have waited for peer 2 */
    weft_comm_meter_take(meter, 2, HEADER, true, 5000);
    weft_comm_meter_take(meter, 1, 1000, false, 5400); /* from 5000 on */
    weft_comm_meter_take(meter, 2, 1000, true, 7000);
    weft_comm_meter_end(meter, 7100);
}

static void check_calls(void)
{
    struct weft_comm_meter meter = {0};
    CHECK(weft_comm_meter_open(&meter, 3), "no memory");
    one_call(&meter);
    check_peer(&meter, 1, 2000, 600);
    check_peer(&meter, 2, 1000, 2000);
    CHECK(meter.moving_ns == 2100, "since the last peer has come: %lld",
          (long long)meter.moving_ns);
    one_call(&meter);
    check_peer(&meter, 1, 4000, 1200);
    check_peer(&meter, 2, 2000, 4000);
    CHECK(meter.moving_ns == 4200, "%lld", (long long)meter.moving_ns);
    weft_comm_meter_close(&meter);
}

/* A message that is owed later is timed from then, or from the one before it. */
static void check_chunks(void)
{
    struct weft_comm_meter meter = {0};
    CHECK(weft_comm_meter_open(&meter, 2), "no memory");
    weft_comm_meter_begin(&meter, false, 0);
    weft_comm_meter_owe(&meter, 1, 0);
    weft_comm_meter_take(&meter, 1, 10, true, 100); /* shows that it is there */
    weft_comm_meter_owe(&meter, 1, 400);
    weft_comm_meter_owe(&meter, 1, 400);
    weft_comm_meter_take(&meter, 1, 10, false, 450);
    weft_comm_meter_take(&meter, 1, 10, false, 520);
    weft_comm_meter_end(&meter, 530);
    check_peer(&meter, 1, 20, 120);
    CHECK(meter.moving_ns == 530, "all ranks are in the call: %lld", (long long)meter.moving_ns);
    weft_comm_meter_close(&meter);
    weft_comm_meter_close(&meter);
}

/* The peer's clock is 10000 ahead, and its headers need 20 at least. Calls are (sent, began, came).
 */
static void hear_call(struct weft_comm_meter *meter, int64_t sent_ns, int64_t began_ns,
                      int64_t came_ns)
{
    weft_comm_meter_begin(meter, true, began_ns);
    weft_comm_meter_owe(meter, 1, began_ns);
    weft_comm_meter_take(meter, 1, HEADER, true, came_ns);
    weft_comm_meter_end(meter, came_ns);
    weft_comm_meter_hear(meter, 1, sent_ns + 10000);
}

static void check_headers(void)
{
    struct weft_comm_meter meter = {0};
    CHECK(weft_comm_meter_open(&meter, 2), "no memory");
    hear_call(&meter, 1000, 100, 1020); /* the peer was late, and the link idle */
    check_peer(&meter, 1, 0, 0);
    hear_call(&meter, 2000, 1500, 2520); /* 500 in a queue */
    check_peer(&meter, 1, 0, 500);
    CHECK(meter.moving_ns == 500, "%lld", (long long)meter.moving_ns);
    hear_call(&meter, 3000, 9000, 9000); /* this rank was late */
    check_peer(&meter, 1, 0, 500);
    hear_call(&meter, 9000, 9500, 9700); /* waited for from 9500 on */
    check_peer(&meter, 1, 0, 700);
    weft_comm_meter_close(&meter);
}

/* The peer's clock loses 100 against this one: after 2 x 256 headers that is known. */
static void check_drift(void)
{
    struct weft_comm_meter meter = {0};
    CHECK(weft_comm_meter_open(&meter, 2), "no memory");
    hear_call(&meter, 1000, 0, 1020);
    for (int i = 0; i < 2 * WEFT_COMM_METER_HEADERS; i++)
        hear_call(&meter, 2000, 0, 2120);
    const int64_t known = meter.peers[1].ns;
    CHECK(known >= 100 * WEFT_COMM_METER_HEADERS, "%lld", (long long)known);
    hear_call(&meter, 3000, 0, 3120);
    check_peer(&meter, 1, 0, known);
    weft_comm_meter_close(&meter);
}

/* Local ranks are not measured. */
static int read_local(int32_t rank, const struct ranks *ranks, void *argument)
{
    struct weft_comm_options options = ranks_options(rank, ranks);
    struct weft_comm_traffic traffic[2] = {{1, 2}, {3, 4}};
    struct weft_comm *comm = NULL;
    struct weft_error err = {0};
    int64_t moving_ns = 5;
    (void)argument;
    CHECK(weft_comm_open("local", &options, &comm, &err) == WEFT_OK, "%s", err.text);
    weft_comm_take_traffic(comm, traffic, &moving_ns);
    CHECK(moving_ns == 0 && traffic[1].bytes == 0 && traffic[1].ns == 0, "nothing is measured");
    weft_comm_close(comm);
    return 0;
}

RANKS_TEST(meter)
{
    check_calls();
    check_chunks();
    check_headers();
    check_drift();
    CHECK(ranks_run(2, read_local, NULL) == 0, "local ranks");
    return 0;
}
