/* SPDX-License-Identifier: Apache-2.0 */
/* A link is a communicator of NCCL, and library.c is the only file that knows NCCL. Links do not
 * block: a thread of NCCL adds a group's work to the stream. So each function polls until that is
 * done, before anything is added after it; opening and closing a link work the same way. Only the
 * issuing thread may call these functions. The first failure aborts a link, and every later call
 * returns that failure. */
#ifndef WEFT_RUNTIME_COMM_NCCL_LIBRARY_H
#define WEFT_RUNTIME_COMM_NCCL_LIBRARY_H

#include <stdatomic.h>

#include "base/status.h"
#include "runtime/comm/nccl/exchange.h"

struct CUstream_st; /* CUDA's stream */
struct weft_nccl_link;

/* The id of a group of ranks. Rank 0 makes it and shares it. */
enum { WEFT_NCCL_ID_BYTES = 128 };
struct weft_nccl_id {
    char bytes[WEFT_NCCL_ID_BYTES];
};

struct weft_nccl_link_options {
    int32_t rank, ranks;
    int64_t timeout_ns;            /* of each wait */
    const _Atomic uint32_t *given; /* not 0: a rank has given up; read while waiting */
};

/* Version of the loaded library, as "2.28.9". */
enum { WEFT_NCCL_VERSION_BYTES = 32 };
const char *weft_nccl_version(char out[WEFT_NCCL_VERSION_BYTES]);

/* WEFT_E_ENVIRONMENT with NCCL's text. */
WEFT_MUST_USE enum weft_status weft_nccl_make_id(struct weft_nccl_id *out, struct weft_error *err);

/* Opens a link. Every rank must call it, with its GPU current. WEFT_E_LOST if a rank has given up
 * or a peer is gone, WEFT_E_HANG after the timeout, WEFT_E_ENVIRONMENT for faults of machine or
 * GPU, WEFT_E_INTERNAL for faults of Weft's calls. All functions below give the same errors. */
WEFT_MUST_USE enum weft_status weft_nccl_link_open(const struct weft_nccl_link_options *options,
                                                   const struct weft_nccl_id *id,
                                                   struct weft_nccl_link **out,
                                                   struct weft_error *err);
/* Closes a link together with all ranks. After a failure it only frees. Accepts NULL. */
WEFT_MUST_USE enum weft_status weft_nccl_link_close(struct weft_nccl_link *link,
                                                    struct weft_error *err);
/* Checks pending work. Returns WEFT_OK, or aborts the link if NCCL has found an error. */
WEFT_MUST_USE enum weft_status weft_nccl_link_look(struct weft_nccl_link *link,
                                                   struct weft_error *err);
/* Aborts for a reason that NCCL does not know. Its work on the GPU ends. */
void weft_nccl_link_abort(struct weft_nccl_link *link, enum weft_status status, const char *why);

/* Addresses of byte 0 of arena and scratch. */
struct weft_nccl_memory {
    unsigned char *arena, *scratch;
    const uint32_t *flag; /* carried with an EXCHANGE or agreement; NULL: none */
    uint32_t *greatest;   /* gets the largest flag of all ranks */
};
/* Adds an EXCHANGE or a GATHER to the stream, as one group. */
WEFT_MUST_USE enum weft_status weft_nccl_issue(struct weft_nccl_link *link,
                                               const struct weft_nccl_step *step,
                                               const struct weft_nccl_memory *memory,
                                               struct CUstream_st *stream, struct weft_error *err);
/* A sum of `words` uint64 over ranks, wrapping, between two offsets of the arena. */
struct weft_nccl_agreement {
    int64_t from_offset, to_offset, words;
};
WEFT_MUST_USE enum weft_status weft_nccl_agree(struct weft_nccl_link *link,
                                               const struct weft_nccl_agreement *agreement,
                                               const struct weft_nccl_memory *memory,
                                               struct CUstream_st *stream, struct weft_error *err);

#endif
