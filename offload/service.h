/* SPDX-License-Identifier: Apache-2.0 */
/* A service executes requests on its own threads. It has lanes. The requests of a lane begin in
 * order of submission, and end in any order if the lane has several threads. The first failed
 * request ends the service. Queued requests are dropped, and every call that waits or submits
 * returns that failure.
 *
 * All functions except weft_service_destroy may be called from any thread; that one is the last
 * call. */
#ifndef WEFT_OFFLOAD_SERVICE_H
#define WEFT_OFFLOAD_SERVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

struct weft_service;

/* Most lanes of a service, and most threads of a lane. */
enum { WEFT_SERVICE_LANES = 4, WEFT_SERVICE_THREADS = 256 };

/* The functions get `context` and the request as submitted. */
struct weft_service_options {
    const char *name;     /* of its threads in the system; 15 characters */
    int32_t lanes;        /* at least 1 */
    int32_t threads;      /* per lane, at least 1 */
    int32_t requests;     /* per lane, queued or under way; at least 1 */
    size_t request_bytes; /* of the largest request */
    int64_t timeout_ns;   /* limit of one request, then it hangs; 0: none */
    void *context;
    enum weft_status (*serve)(void *context, int32_t lane, void *request, struct weft_error *err);
    /* Names the request that hangs. Returns WEFT_E_HANG. */
    enum weft_status (*hang)(void *context, int32_t lane, const void *request,
                             struct weft_error *err);
    /* Frees the context, as the service's last call. NULL: nothing to free. */
    void (*release)(void *context);
};

/* A part of a request. */
struct weft_service_part {
    const void *at;
    size_t bytes;
};

/* Starts the threads. WEFT_E_SYSTEM if threads or memory are short, WEFT_E_INTERNAL if a count is
 * out of range. On failure the context stays the caller's. */
WEFT_MUST_USE enum weft_status weft_service_create(const struct weft_service_options *options,
                                                   struct weft_service **out,
                                                   struct weft_error *err);

/* Drops queued requests, waits for requests under way, ends the threads and releases the context.
 * If a request hangs, its threads go on and the last one releases. The memory of a request that
 * hangs must stay as long as the process. Accepts NULL. */
void weft_service_destroy(struct weft_service *service);

/* Queues a request with the bytes of all parts in order, and writes its ticket: 0, 1, ... by lane.
 * Waits while the lane is full. Returns the service's failure, or WEFT_E_HANG. */
WEFT_MUST_USE enum weft_status weft_service_submit(struct weft_service *service, int32_t lane,
                                                   const struct weft_service_part *parts,
                                                   int32_t n_parts, int64_t *ticket,
                                                   struct weft_error *err);

/* Waits until the request has ended. Returns the service's failure, even if another request caused
 * it. WEFT_E_HANG names the request of the lane that hangs. */
WEFT_MUST_USE enum weft_status weft_service_wait(struct weft_service *service, int32_t lane,
                                                 int64_t ticket, struct weft_error *err);

/* Whether the request has ended well. Always false after a failure of the service. */
bool weft_service_is_done(struct weft_service *service, int32_t lane, int64_t ticket);

#endif
