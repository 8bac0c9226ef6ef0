/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/comm/nccl/library.h"

#include <nccl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

_Static_assert(WEFT_NCCL_ID_BYTES == NCCL_UNIQUE_ID_BYTES, "an id is NCCL's");

enum { NAP_NS = 20000 };

struct weft_nccl_link {
    struct weft_nccl_link_options options;
    ncclComm_t comm;          /* NULL once aborted */
    struct weft_error broken; /* the first failure */
};

/* Codes */

static enum weft_status status_of(ncclResult_t code)
{
    switch (code) {
    case ncclSuccess:
    case ncclInProgress:
        return WEFT_OK;
    case ncclUnhandledCudaError:
    case ncclSystemError:
        return WEFT_E_ENVIRONMENT;
    case ncclRemoteError:
        return WEFT_E_LOST;
    case ncclInternalError:
    case ncclInvalidArgument:
    case ncclInvalidUsage:
    case ncclNumResults:
        return WEFT_E_INTERNAL;
    }
    return WEFT_E_INTERNAL;
}

static enum weft_status fail_code(ncclResult_t code, ncclComm_t comm, const char *what,
                                  struct weft_error *err)
{
    const char *last = ncclGetLastError(comm);
    const bool says = last != NULL && last[0] != '\0';
    return weft_fail(err, status_of(code), "NCCL, %s: %s (%d)%s%s", what, ncclGetErrorString(code),
                     (int)code, says ? ", " : "", says ? last : "");
}

const char *weft_nccl_version(char out[WEFT_NCCL_VERSION_BYTES])
{
    int version = 0;
    if (ncclGetVersion(&version) != ncclSuccess) version = 0;
    snprintf(out, WEFT_NCCL_VERSION_BYTES, "%d.%d.%d", version / 10000, version / 100 % 100,
             version % 100);
    return out;
}

enum weft_status weft_nccl_make_id(struct weft_nccl_id *out, struct weft_error *err)
{
    ncclUniqueId id;
    const ncclResult_t code = ncclGetUniqueId(&id);
    if (code != ncclSuccess) return fail_code(code, NULL, "an id for ranks to meet", err);
    memcpy(out->bytes, id.internal, sizeof out->bytes);
    return WEFT_OK;
}

/* Waiting */

static enum weft_status fail_again(const struct weft_nccl_link *link, struct weft_error *err)
{
    return weft_fail(err, link->broken.status, "%s", link->broken.text);
}

static enum weft_status give_up(struct weft_nccl_link *link, struct weft_error *err)
{
    /* ncclCommDestroy would wait for work that may never end, so failures abort. */
    if (link->comm != NULL) ncclCommAbort(link->comm);
    link->comm = NULL;
    return fail_again(link, err);
}

void weft_nccl_link_abort(struct weft_nccl_link *link, enum weft_status status, const char *why)
{
    if (link->broken.status == WEFT_OK) weft_fail(&link->broken, status, "%s", why);
    give_up(link, NULL);
}

enum weft_status weft_nccl_link_look(struct weft_nccl_link *link, struct weft_error *err)
{
    ncclResult_t state = ncclSuccess;
    if (link->comm == NULL) return fail_again(link, err);
    const ncclResult_t code = ncclCommGetAsyncError(link->comm, &state);
    if (code == ncclSuccess && status_of(state) == WEFT_OK) return WEFT_OK;
    fail_code(code == ncclSuccess ? state : code, link->comm, "work under way", &link->broken);
    return give_up(link, err);
}

/* Polls until the operation of `code` is done. */
static enum weft_status await_link(struct weft_nccl_link *link, ncclResult_t code, const char *what,
                                   struct weft_error *err)
{
    const struct weft_nccl_link_options *o = &link->options;
    const int64_t end_ns = weft_clock_now_ns() + o->timeout_ns;
    ncclResult_t state = code;
    while (status_of(code) == WEFT_OK) {
        code = ncclCommGetAsyncError(link->comm, &state);
        if (code == ncclSuccess) code = state;
        if (code != ncclInProgress) break;
        if (o->given != NULL && atomic_load(o->given) != 0) {
            weft_fail(&link->broken, WEFT_E_LOST, "rank %d has given up in NCCL, %s", o->rank,
                      what);
            return give_up(link, err);
        }
        if (weft_clock_now_ns() >= end_ns) {
            weft_fail(&link->broken, WEFT_E_HANG,
                      "rank %d waited %lld s in NCCL, %s. If ranks are only slow, a longer "
                      "cluster.timeout helps",
                      o->rank, (long long)(o->timeout_ns / 1000000000), what);
            return give_up(link, err);
        }
        weft_clock_sleep_until_ns(weft_clock_now_ns() + NAP_NS);
    }
    if (code == ncclSuccess) return WEFT_OK;
    fail_code(code, link->comm, what, &link->broken);
    return give_up(link, err);
}

/* Beginning and ending */

enum weft_status weft_nccl_link_open(const struct weft_nccl_link_options *options,
                                     const struct weft_nccl_id *id, struct weft_nccl_link **out,
                                     struct weft_error *err)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    ncclUniqueId unique;
    memcpy(unique.internal, id->bytes, sizeof unique.internal);
    struct weft_nccl_link *link = calloc(1, sizeof *link);
    if (link == NULL) return weft_fail_memory(err, "a link of NCCL");
    link->options = *options;
    const ncclResult_t code =
        ncclCommInitRankConfig(&link->comm, options->ranks, unique, options->rank, &config);
    enum weft_status status;
    if (link->comm == NULL) {
        status = fail_code(code == ncclSuccess ? ncclInternalError : code, NULL,
                           "ranks coming together", err);
    } else {
        status = await_link(link, code, "ranks coming together", err);
    }
    if (status != WEFT_OK) {
        free(link);
        return status;
    }
    *out = link;
    return WEFT_OK;
}

enum weft_status weft_nccl_link_close(struct weft_nccl_link *link, struct weft_error *err)
{
    if (link == NULL) return WEFT_OK;
    enum weft_status status = link->broken.status;
    if (link->comm != NULL) {
        status = await_link(link, ncclCommFinalize(link->comm), "ranks parting", err);
        if (status == WEFT_OK) {
            const ncclResult_t code = ncclCommDestroy(link->comm);
            if (code != ncclSuccess) status = fail_code(code, NULL, "ranks parting", err);
        }
    } else if (status != WEFT_OK) {
        fail_again(link, err);
    }
    free(link);
    return status;
}

/* Work */

static ncclDataType_t type_of(enum weft_dtype dtype)
{
    switch (dtype) {
    case WEFT_BF16:
        return ncclBfloat16;
    case WEFT_F16:
        return ncclFloat16;
    case WEFT_F32:
    case WEFT_DTYPE_COUNT:
        break;
    }
    return ncclFloat32;
}

static unsigned char *address_of(const struct weft_nccl_memory *memory,
                                 const struct weft_nccl_pieces *pieces, int32_t member,
                                 int32_t piece)
{
    unsigned char *base = pieces->at.is_scratch ? memory->scratch : memory->arena;
    return base + pieces->at.offset + member * pieces->stride + piece * pieces->skip;
}

/* Sends and receives pieces of all other members. This rank's own piece stays in place. */
static ncclResult_t send_pieces(const struct weft_nccl_link *link,
                                const struct weft_nccl_step *step,
                                const struct weft_nccl_memory *memory, struct CUstream_st *stream)
{
    const ncclDataType_t type = type_of(step->dtype);
    const size_t n = (size_t)step->elements;
    ncclResult_t code = ncclSuccess;
    for (int32_t i = 1; i < step->members && code == ncclSuccess; i++) {
        const int32_t to = (step->self + i) % step->members,
                      from = (step->self + step->members - i) % step->members;
        for (int32_t p = 0; p < step->pieces && code == ncclSuccess; p++) {
            code =
                ncclSend(address_of(memory, &step->from, to, p), n, type, to, link->comm, stream);
            if (code != ncclSuccess) break;
            code =
                ncclRecv(address_of(memory, &step->to, from, p), n, type, from, link->comm, stream);
        }
    }
    return code;
}

#if NCCL_VERSION_CODE >= 22800
/* NULL in a library older than the header. */
extern __typeof__(ncclAlltoAll) ncclAlltoAll __attribute__((weak));
#endif

static ncclResult_t exchange_pieces(const struct weft_nccl_link *link,
                                    const struct weft_nccl_step *step,
                                    const struct weft_nccl_memory *memory,
                                    struct CUstream_st *stream)
{
#if NCCL_VERSION_CODE >= 22800
    if (ncclAlltoAll != NULL && weft_nccl_is_dense(step)) {
        return ncclAlltoAll(address_of(memory, &step->from, 0, 0),
                            address_of(memory, &step->to, 0, 0), (size_t)step->elements,
                            type_of(step->dtype), link->comm, stream);
    }
#endif
    return send_pieces(link, step, memory, stream);
}

static ncclResult_t carry_flag(const struct weft_nccl_link *link,
                               const struct weft_nccl_memory *memory, struct CUstream_st *stream)
{
    if (memory->flag == NULL) return ncclSuccess;
    return ncclAllReduce(memory->flag, memory->greatest, 1, ncclUint32, ncclMax, link->comm,
                         stream);
}

/* Ends the group, after an error too. Returns the first error. */
static ncclResult_t end_group(ncclResult_t code)
{
    const ncclResult_t end = ncclGroupEnd();
    return code == ncclSuccess || code == ncclInProgress ? end : code;
}

static ncclResult_t exchange_and_carry(const struct weft_nccl_link *link,
                                       const struct weft_nccl_step *step,
                                       const struct weft_nccl_memory *memory,
                                       struct CUstream_st *stream)
{
    ncclResult_t code = ncclGroupStart();
    if (code != ncclSuccess) return code;
    code = exchange_pieces(link, step, memory, stream);
    if (code == ncclSuccess) code = carry_flag(link, memory, stream);
    return end_group(code);
}

enum weft_status weft_nccl_issue(struct weft_nccl_link *link, const struct weft_nccl_step *step,
                                 const struct weft_nccl_memory *memory, struct CUstream_st *stream,
                                 struct weft_error *err)
{
    if (link->comm == NULL) return fail_again(link, err);
    if (step->kind == WEFT_NCCL_EXCHANGE)
        return await_link(link, exchange_and_carry(link, step, memory, stream), "an exchange", err);
    return await_link(link,
                      ncclAllGather(address_of(memory, &step->from, 0, 0),
                                    address_of(memory, &step->to, 0, 0), (size_t)step->elements,
                                    type_of(step->dtype), link->comm, stream),
                      "an AllGather", err);
}

static ncclResult_t agree_and_carry(const struct weft_nccl_link *link,
                                    const struct weft_nccl_agreement *agreement,
                                    const struct weft_nccl_memory *memory,
                                    struct CUstream_st *stream)
{
    ncclResult_t code = ncclGroupStart();
    if (code != ncclSuccess) return code;
    code =
        ncclAllReduce(memory->arena + agreement->from_offset, memory->arena + agreement->to_offset,
                      (size_t)agreement->words, ncclUint64, ncclSum, link->comm, stream);
    if (code == ncclSuccess) code = carry_flag(link, memory, stream);
    return end_group(code);
}

enum weft_status weft_nccl_agree(struct weft_nccl_link *link,
                                 const struct weft_nccl_agreement *agreement,
                                 const struct weft_nccl_memory *memory, struct CUstream_st *stream,
                                 struct weft_error *err)
{
    if (link->comm == NULL) return fail_again(link, err);
    return await_link(link, agree_and_carry(link, agreement, memory, stream), "an agreement", err);
}
