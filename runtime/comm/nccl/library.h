/* A link is one communicator of NCCL, and this the one file that knows NCCL. Links do not block:
 * NCCL puts the work of a group on its stream by a thread of its own, so whoever issues asks until
 * that is done before anything else is put behind it; and so when a link begins and ends. All
 * functions are of the one thread that issues. From its first failure on a link is aborted and
 * every call of it gives that failure again. */
#ifndef WEFT_RUNTIME_COMM_NCCL_LIBRARY_H
#define WEFT_RUNTIME_COMM_NCCL_LIBRARY_H

#include <stdatomic.h>

#include "base/status.h"
#include "runtime/comm/nccl/exchange.h"

struct CUstream_st; /* CUDA's stream */
struct weft_nccl_link;

/* What ranks must have in common to find each other: rank 0 makes it and gives it to all. */
enum { WEFT_NCCL_ID_BYTES = 128 };
struct weft_nccl_id {
    char bytes[WEFT_NCCL_ID_BYTES];
};

struct weft_nccl_link_options {
    int32_t rank, ranks;
    int64_t timeout_ns;            /* of each wait */
    const _Atomic uint32_t *given; /* not 0: somebody has given up. It is looked at while waiting */
};

/* "2.28.9" of the library that was loaded. */
enum { WEFT_NCCL_VERSION_BYTES = 32 };
const char *weft_nccl_version(char out[WEFT_NCCL_VERSION_BYTES]);

/* WEFT_E_ENVIRONMENT with what NCCL says. */
WEFT_MUST_USE enum weft_status weft_nccl_make_id(struct weft_nccl_id *out, struct weft_error *err);

/* Every rank, with its GPU set. WEFT_E_LOST when somebody has given up or a peer is gone,
 * WEFT_E_HANG after the time, WEFT_E_ENVIRONMENT for what NCCL says of machine and GPU,
 * WEFT_E_INTERNAL of our calls; the same from all below. */
WEFT_MUST_USE enum weft_status weft_nccl_link_open(const struct weft_nccl_link_options *options,
                                                   const struct weft_nccl_id *id,
                                                   struct weft_nccl_link **out,
                                                   struct weft_error *err);
/* Ends it with all others; after a failure frees it alone. */
WEFT_MUST_USE enum weft_status weft_nccl_link_close(struct weft_nccl_link *link,
                                                    struct weft_error *err);
/* Looks whether NCCL has found an error in what is under way: WEFT_OK, or the link is aborted. */
WEFT_MUST_USE enum weft_status weft_nccl_link_look(struct weft_nccl_link *link,
                                                   struct weft_error *err);
/* Gives up, for a reason that NCCL does not know: work on the GPU ends. */
void weft_nccl_link_abort(struct weft_nccl_link *link, enum weft_status status, const char *why);

/* The addresses of byte 0 of arena and scratch. */
struct weft_nccl_memory {
    unsigned char *arena, *scratch;
    const uint32_t *flag; /* goes along with an EXCHANGE and an agreement; NULL: none */
    uint32_t *greatest;   /* gets the greatest flag of all ranks */
};
/* Puts an EXCHANGE or a GATHER on the stream, as one group. */
WEFT_MUST_USE enum weft_status weft_nccl_issue(struct weft_nccl_link *link,
                                               const struct weft_nccl_step *step,
                                               const struct weft_nccl_memory *memory,
                                               struct CUstream_st *stream, struct weft_error *err);
/* The sum over ranks of `words` uint64, wrapping, from one offset of the arena to another. */
struct weft_nccl_agreement {
    int64_t from_offset, to_offset, words;
};
WEFT_MUST_USE enum weft_status weft_nccl_agree(struct weft_nccl_link *link,
                                               const struct weft_nccl_agreement *agreement,
                                               const struct weft_nccl_memory *memory,
                                               struct CUstream_st *stream, struct weft_error *err);

#endif
