/* SPDX-License-Identifier: Apache-2.0 */
/* A meter tells how long bytes of each peer were under way, and how long collectives move. A wait
 * for a peer that still computes is no transfer. The first message of a peer in an exchange, as a
 * rule the call's header, shows that it has come. Messages are timed once all peers have come:
 * until then a peer may wait with its own for a third one. The header tells when it was sent, on
 * the sender's clock: a wait for a header that was sent already is the link's. Clocks of two hosts
 * differ by the least difference between sending and coming that was seen lately. One thread
 * counts, and any thread may read. */
#ifndef WEFT_RUNTIME_COMM_METER_H
#define WEFT_RUNTIME_COMM_METER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Headers after which an old least difference is forgotten: clocks drift. */
enum { WEFT_COMM_METER_HEADERS = 256 };

struct weft_comm_meter_peer {
    _Atomic int64_t bytes, ns; /* that were timed since the last reading */
    int64_t since_ns;          /* the peer's latest message, or the first that it then owes */
    int64_t came_ns;           /* its first message in this exchange */
    int64_t least_ns, older_least_ns; /* differences between coming and sending */
    int32_t headers;                  /* in least_ns */
    int32_t owed;                     /* messages under way from the peer */
    bool has_come;                    /* in this exchange */
};

struct weft_comm_meter {
    int32_t ranks;
    struct weft_comm_meter_peer *peers; /* [ranks] */
    _Atomic int64_t moving_ns;          /* in exchanges, after all peers had come */
    int64_t began_ns;                   /* this exchange */
    int64_t met_ns;                     /* in this exchange; valid if missing is 0 */
    int32_t missing;                    /* peers that have not come */
};

/* Takes memory; false if there is none. weft_comm_meter_close accepts a meter of zeros. */
bool weft_comm_meter_open(struct weft_comm_meter *meter, int32_t ranks);
void weft_comm_meter_close(struct weft_comm_meter *meter);

/* An exchange begins. Without a header all ranks are in the same call already, so it moves from now
 * on. */
void weft_comm_meter_begin(struct weft_comm_meter *meter, bool has_header, int64_t now_ns);
/* A message of the peer is under way. */
void weft_comm_meter_owe(struct weft_comm_meter *meter, int32_t peer, int64_t now_ns);
/* It has come. An early message is one that the peer sends without a wait for another. */
void weft_comm_meter_take(struct weft_comm_meter *meter, int32_t peer, int64_t bytes, bool is_early,
                          int64_t now_ns);
void weft_comm_meter_end(struct weft_comm_meter *meter, int64_t now_ns);
/* After an exchange with headers: the peer's was sent at that time of its clock. */
void weft_comm_meter_hear(struct weft_comm_meter *meter, int32_t peer, int64_t sent_ns);

#endif
