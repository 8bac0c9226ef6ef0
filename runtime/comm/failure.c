/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/comm/failure.h"

#include "base/units.h"
#include "runtime/comm/branch.h"

static int32_t own_rank(const struct weft_comm_failing *failing)
{
    return weft_comm_rank_of_all(failing->comm, failing->comm->rank);
}

static enum weft_status fail_with(const struct weft_comm_failing *failing, enum weft_status status,
                                  struct weft_text *text)
{
    weft_fail(failing->err, status, "%s", weft_text_chars(text));
    weft_text_finish(text);
    return status;
}

void weft_comm_show_call(const struct weft_comm_failing *failing, struct weft_text *out)
{
    weft_text_add(out, weft_comm_call_name((uint32_t)failing->call->kind));
    weft_comm_show_place(failing->comm, out);
    weft_text_addf(out, ", call %u", failing->calls);
}

void weft_comm_show_rank(const struct weft_comm *comm, int32_t rank, int32_t pid,
                         struct weft_text *out)
{
    const char *host = weft_comm_host(comm->trunk != NULL ? comm->trunk : comm, rank);
    weft_text_addf(out, "rank %d", rank);
    if (host[0] != '\0')
        weft_text_addf(out, " (host %s)", host);
    else if (pid > 0)
        weft_text_addf(out, " (process %d)", pid);
}

enum weft_status weft_comm_fail_gone(const struct weft_comm_failing *failing, int32_t rank,
                                     int32_t pid, const char *how, uint32_t calls,
                                     const uint32_t *kinds)
{
    struct weft_text text;
    weft_text_init(&text);
    weft_comm_show_rank(failing->comm, rank, pid, &text);
    weft_text_addf(&text, " %s while rank %d waited for it", how, own_rank(failing));
    if (failing->call != NULL) {
        weft_text_add(&text, " in ");
        weft_comm_show_call(failing, &text);
    }
    if (kinds != NULL) {
        weft_text_add(&text, "; ");
        weft_comm_call_show_recent(calls, kinds, &text);
    }
    weft_text_addf(&text, ". See what rank %d printed last", rank);
    return fail_with(failing, WEFT_E_LOST, &text);
}

enum weft_status weft_comm_fail_cancelled(const struct weft_comm_failing *failing)
{
    struct weft_text text;
    weft_text_init(&text);
    weft_text_addf(&text, "rank %d has given up in ", own_rank(failing));
    weft_comm_show_call(failing, &text);
    return fail_with(failing, WEFT_E_LOST, &text);
}

enum weft_status weft_comm_fail_late(const struct weft_comm_failing *failing, int64_t waited_ns,
                                     const struct weft_text *late)
{
    struct weft_text text;
    char waited[WEFT_UNITS_TEXT_BYTES];
    weft_text_init(&text);
    weft_text_addf(&text, "rank %d waited %s ", own_rank(failing),
                   weft_units_show_ns(waited_ns, waited));
    if (failing->call != NULL) {
        weft_text_add(&text, "in ");
        weft_comm_show_call(failing, &text);
        weft_text_add(&text, ", for ranks that did not come: ");
    }
    weft_text_add(&text, late != NULL ? weft_text_chars(late) : "for it");
    weft_text_add(&text, ". If they are only slow, a longer cluster.timeout helps");
    return fail_with(failing, WEFT_E_HANG, &text);
}

enum weft_status weft_comm_fail_differs(const struct weft_comm_failing *failing, int32_t rank,
                                        const struct weft_comm_call *other)
{
    struct weft_text text;
    weft_text_init(&text);
    weft_text_addf(&text, "call %u", failing->calls);
    weft_comm_show_place(failing->comm, &text);
    weft_text_addf(&text, " differs between ranks: rank %d called ", own_rank(failing));
    weft_comm_call_show(failing->call, &text);
    weft_text_add(&text, " and ");
    weft_comm_show_rank(failing->comm, rank, 0, &text);
    weft_text_add(&text, " ");
    weft_comm_call_show(other, &text);
    weft_text_add(&text, ". All ranks must run the same plan with the same options");
    return fail_with(failing, WEFT_E_DISAGREE, &text);
}
