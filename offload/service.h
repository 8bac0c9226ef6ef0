/* A service does requests by threads of its own. It has lanes; the requests of a lane begin in the
 * order in which they were submitted, and end in any order when the lane has several threads. The
 * first request that fails ends the service: what is queued behind it is dropped, and whoever waits
 * or submits is told that failure.
 *
 * Functions may be called from any thread, but for weft_service_destroy, which is the last call. */
#ifndef WEFT_OFFLOAD_SERVICE_H
#define WEFT_OFFLOAD_SERVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

struct weft_service;

enum { WEFT_SERVICE_LANES = 4, WEFT_SERVICE_THREADS = 256 }; /* the most; threads of one lane */

/* Functions get `context` and the request as it was submitted. */
struct weft_service_options {
    const char *name;     /* of its threads, as the system shows them: 15 characters */
    int32_t lanes;        /* at least 1 */
    int32_t threads;      /* of each lane, at least 1 */
    int32_t requests;     /* of each lane that may be queued or under way, at least 1 */
    size_t request_bytes; /* the most that a request has */
    int64_t timeout_ns;   /* a request that takes longer is hung; 0: none is */
    void *context;
    enum weft_status (*serve)(void *context, int32_t lane, void *request, struct weft_error *err);
    /* Says which request is hung, as WEFT_E_HANG. */
    enum weft_status (*hang)(void *context, int32_t lane, const void *request,
                             struct weft_error *err);
    /* Frees the context: the service's last call. NULL: there is nothing to free. */
    void (*release)(void *context);
};

/* A part of a request. */
struct weft_service_part {
    const void *at;
    size_t bytes;
};

/* WEFT_E_SYSTEM when threads or memory are missing, WEFT_E_INTERNAL of counts below 1 or above the
 * most; then the context is still the caller's. */
WEFT_MUST_USE enum weft_status weft_service_create(const struct weft_service_options *options,
                                                   struct weft_service **out,
                                                   struct weft_error *err);

/* Drops what is queued, waits for what is under way, ends the threads and releases the context.
 * Threads with a hung request are left behind, and the last of them releases: the memory of a hung
 * request must stay as long as the process. Accepts NULL. */
void weft_service_destroy(struct weft_service *service);

/* Queues a request, whose bytes are those of the parts one behind the other, and writes its ticket,
 * from 0 on for each lane. Waits while the lane has no room. The failure of the service, or
 * WEFT_E_HANG. */
WEFT_MUST_USE enum weft_status weft_service_submit(struct weft_service *service, int32_t lane,
                                                   const struct weft_service_part *parts,
                                                   int32_t n_parts, int64_t *ticket,
                                                   struct weft_error *err);

/* Waits until the request has ended. The failure of the service, whichever request's it is;
 * WEFT_E_HANG names the lane's request that is hung. */
WEFT_MUST_USE enum weft_status weft_service_wait(struct weft_service *service, int32_t lane,
                                                 int64_t ticket, struct weft_error *err);

/* Whether the request has ended well. False for all of a service that has failed. */
bool weft_service_is_done(struct weft_service *service, int32_t lane, int64_t ticket);

#endif
