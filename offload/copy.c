/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* prctl */
#include "offload/copy.h"

#include <stdlib.h>
#include <sys/prctl.h>

#include "base/clock.h"
#include "base/units.h"
#include "offload/copy_bytes.h"
#include "offload/service.h"

struct copy_request {
    int64_t bytes;
    int32_t n_to, n_from; /* spans after this struct, destinations first */
};

struct weft_copier {
    struct weft_copier_options options;
    int64_t link_free_ns[WEFT_COPY_DIRECTIONS]; /* each is used by its direction's thread only */
    struct weft_service *service;
};

static const char *const directions[WEFT_COPY_DIRECTIONS] = {"down", "up"};

int64_t weft_copy_link_ns(const struct weft_copy_link *link, int64_t bytes)
{
    return link->alpha_ns + (int64_t)((double)bytes / link->bytes_per_s * 1e9 + 0.5);
}

static enum weft_status serve_copy(void *context, int32_t lane, void *request,
                                   struct weft_error *err)
{
    (void)err;
    struct weft_copier *copier = context;
    const struct copy_request *r = request;
    const struct weft_copy_link *link = &copier->options.links[lane];
    const struct weft_memory_span *to = (const struct weft_memory_span *)(r + 1);
    const int64_t begun_ns = link->emulated ? weft_clock_now_ns() : 0;
    weft_copy_spans(weft_copy_way_for(r->bytes), to, to + r->n_to, r->n_from);
    if (!link->emulated) return WEFT_OK;
    int64_t *free_ns = &copier->link_free_ns[lane];
    if (*free_ns < begun_ns) *free_ns = begun_ns;
    *free_ns += weft_copy_link_ns(link, r->bytes);
    prctl(PR_SET_TIMERSLACK, 1UL); /* for this thread: its sleeps must end on time */
    weft_clock_sleep_until_ns(*free_ns);
    return WEFT_OK;
}

static enum weft_status hang_copy(void *context, int32_t lane, const void *request,
                                  struct weft_error *err)
{
    const struct weft_copier *copier = context;
    const struct copy_request *r = request;
    char bytes[WEFT_UNITS_TEXT_BYTES], waited[WEFT_UNITS_TEXT_BYTES];
    return weft_fail(err, WEFT_E_HANG, "a copy %s of %s has not ended in %s", directions[lane],
                     weft_units_show_bytes(r->bytes, bytes),
                     weft_units_show_ns(copier->options.timeout_ns, waited));
}

static enum weft_status check_copier(const struct weft_copier_options *o, struct weft_error *err)
{
    for (int i = 0; i < WEFT_COPY_DIRECTIONS; i++) {
        const struct weft_copy_link *link = &o->links[i];
        if (!link->emulated || (link->alpha_ns >= 0 && link->bytes_per_s > 0)) continue;
        return weft_fail(err, WEFT_E_INTERNAL, "an emulated link %s of %lld ns and %g bytes/s",
                         directions[i], (long long)link->alpha_ns, link->bytes_per_s);
    }
    if (o->spans >= 1) return WEFT_OK;
    return weft_fail(err, WEFT_E_INTERNAL, "a copier of %d spans", (int)o->spans);
}

enum weft_status weft_copier_create(const struct weft_copier_options *options,
                                    struct weft_copier **out, struct weft_error *err)
{
    WEFT_TRY(check_copier(options, err));
    struct weft_copier *copier = calloc(1, sizeof *copier);
    if (copier == NULL) return weft_fail_memory(err, "a copier");
    copier->options = *options;
    const struct weft_service_options service = {
        .name = "weft-copy",
        .lanes = WEFT_COPY_DIRECTIONS,
        .threads = 1,
        .requests = options->requests,
        .request_bytes = sizeof(struct copy_request) +
                         2 * (size_t)options->spans * sizeof(struct weft_memory_span),
        .timeout_ns = options->timeout_ns,
        .context = copier,
        .serve = serve_copy,
        .hang = hang_copy,
        .release = free,
    };
    enum weft_status status = weft_service_create(&service, &copier->service, err);
    if (status != WEFT_OK)
        free(copier);
    else
        *out = copier;
    return status;
}

void weft_copier_destroy(struct weft_copier *copier)
{
    if (copier != NULL) weft_service_destroy(copier->service);
}

enum weft_status weft_copier_submit(struct weft_copier *copier, enum weft_copy_direction direction,
                                    const struct weft_memory_span *to, int32_t n_to,
                                    const struct weft_memory_span *from, int32_t n_from,
                                    int64_t *ticket, struct weft_error *err)
{
    const struct copy_request request = {weft_span_bytes(from, n_from), n_to, n_from};
    const int32_t most = copier->options.spans;
    if (n_to < 0 || n_to > most || n_from < 0 || n_from > most ||
        weft_span_bytes(to, n_to) != request.bytes)
        return weft_fail(err, WEFT_E_INTERNAL,
                         "a copy %s of %lld bytes in %d spans to %lld in %d, at most %d",
                         directions[direction], (long long)request.bytes, (int)n_from,
                         (long long)weft_span_bytes(to, n_to), (int)n_to, (int)most);
    const struct weft_service_part parts[] = {
        {&request, sizeof request},
        {to, (size_t)n_to * sizeof *to},
        {from, (size_t)n_from * sizeof *from},
    };
    return weft_service_submit(copier->service, (int32_t)direction, parts, 3, ticket, err);
}

enum weft_status weft_copier_wait(struct weft_copier *copier, enum weft_copy_direction direction,
                                  int64_t ticket, struct weft_error *err)
{
    return weft_service_wait(copier->service, (int32_t)direction, ticket, err);
}

bool weft_copier_is_done(struct weft_copier *copier, enum weft_copy_direction direction,
                         int64_t ticket)
{
    return weft_service_is_done(copier->service, (int32_t)direction, ticket);
}
