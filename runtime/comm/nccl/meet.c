/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* gethostname */
#include "runtime/comm/nccl/meet.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/comm/branch.h"
#include "runtime/comm/outcome.h"
#include "runtime/device/cuda/gpu.h"

enum { HOST_BYTES = 64, KIND_BYTES = 192 };

/* Zeroed, because its bytes are compared. */
struct identity {
    char host[HOST_BYTES];
    cudaUUID_t gpu;
    char kind[KIND_BYTES]; /* GPU model */
    char nccl[WEFT_NCCL_VERSION_BYTES];
    int32_t runtime;
};

/* NCCL requires a GPU for each rank of a host, and takes the host's name from NCCL_HOSTID. With
 * WEFT_NCCL_ONE_GPU each rank poses as a host, so bench/gpu/run can use two processes on one
 * GPU. */
static void fill_host(char host[HOST_BYTES], int32_t rank)
{
    enum { RANK_BYTES = 12 };
    if (gethostname(host, HOST_BYTES - 1) != 0) host[0] = '\0';
    if (getenv("WEFT_NCCL_ONE_GPU") == NULL) return;
    host[HOST_BYTES - RANK_BYTES - 1] = '\0';
    snprintf(host + strlen(host), RANK_BYTES, ".%d", rank);
    setenv("NCCL_HOSTID", host, 1);
}

static enum weft_status fill_identity(struct identity *out, int32_t rank, struct weft_error *err)
{
    struct cudaDeviceProp properties;
    int ordinal = 0, runtime = 0;
    cudaError_t code = cudaGetDevice(&ordinal);
    if (code == cudaSuccess) code = cudaGetDeviceProperties(&properties, ordinal);
    if (code == cudaSuccess) code = cudaRuntimeGetVersion(&runtime);
    if (code != cudaSuccess) return weft_cuda_fail(code, "look at the GPU", err);
    fill_host(out->host, rank);
    snprintf(out->kind, sizeof out->kind, "%.128s, compute capability %d.%d", properties.name,
             properties.major, properties.minor);
    out->gpu = properties.uuid;
    out->runtime = runtime;
    weft_nccl_version(out->nccl);
    return WEFT_OK;
}

static bool is_same_gpu(const struct identity *a, const struct identity *b)
{
    return strcmp(a->host, b->host) == 0 && memcmp(&a->gpu, &b->gpu, sizeof a->gpu) == 0;
}

static enum weft_status compare_with_first(const struct identity *all, int32_t rank,
                                           struct weft_error *err)
{
    if (strcmp(all[0].nccl, all[rank].nccl) != 0) {
        return weft_fail(err, WEFT_E_DISAGREE,
                         "rank 0 has NCCL %s and rank %d has %s: all ranks must load the same",
                         all[0].nccl, rank, all[rank].nccl);
    }
    if (all[0].runtime != all[rank].runtime) {
        return weft_fail(err, WEFT_E_DISAGREE,
                         "rank 0 has libcudart %d and rank %d has %d: all ranks must load the same",
                         all[0].runtime, rank, all[rank].runtime);
    }
    if (strcmp(all[0].kind, all[rank].kind) != 0) {
        return weft_fail(err, WEFT_E_DISAGREE,
                         "rank 0 has a GPU of another kind, %s, than rank %d, %s: a plan is for "
                         "GPUs of one kind, which CUDA_VISIBLE_DEVICES chooses",
                         all[0].kind, rank, all[rank].kind);
    }
    return WEFT_OK;
}

static enum weft_status compare_identities(const struct identity *all, int32_t ranks,
                                           struct weft_error *err)
{
    for (int32_t b = 1; b < ranks; b++) {
        WEFT_TRY(compare_with_first(all, b, err));
        for (int32_t a = 0; a < b; a++) {
            if (!is_same_gpu(&all[a], &all[b])) continue;
            return weft_fail(err, WEFT_E_ENVIRONMENT,
                             "ranks %d and %d have one GPU of %s, and NCCL needs one for each: "
                             "start fewer ranks, or let more GPUs be seen (CUDA_VISIBLE_DEVICES)",
                             a, b, all[a].host);
        }
    }
    return WEFT_OK;
}

static enum weft_status share_identities(struct weft_comm *control, struct weft_error *err)
{
    const int32_t ranks = weft_comm_ranks(control);
    struct weft_error own = {.status = WEFT_OK};
    struct identity mine;
    memset(&mine, 0, sizeof mine);
    const enum weft_status filled =
        fill_identity(&mine, weft_comm_rank_of_all(control, weft_comm_rank(control)), &own);
    WEFT_TRY(weft_comm_share_outcome(control, filled, &own, err));
    struct identity *all = calloc((size_t)ranks, sizeof *all);
    if (all == NULL) return weft_fail_memory(err, "what ranks tell each other");
    enum weft_status status = weft_comm_exchange(control, &mine, sizeof mine, all, err);
    if (status == WEFT_OK) status = compare_identities(all, ranks, err);
    free(all);
    return status;
}

/* Shares rank 0's id with all ranks. */
static enum weft_status share_id(struct weft_comm *control, struct weft_nccl_id *id,
                                 struct weft_error *err)
{
    struct weft_error own = {.status = WEFT_OK};
    struct weft_nccl_id *all = calloc((size_t)weft_comm_ranks(control), sizeof *all);
    if (all == NULL) return weft_fail_memory(err, "an id for ranks to meet");
    memset(id, 0, sizeof *id);
    enum weft_status status = WEFT_OK;
    if (weft_comm_rank(control) == 0) status = weft_nccl_make_id(id, &own);
    status = weft_comm_share_outcome(control, status, &own, err);
    if (status == WEFT_OK) status = weft_comm_exchange(control, id, sizeof *id, all, err);
    if (status == WEFT_OK) *id = all[0];
    free(all);
    return status;
}

enum weft_status weft_nccl_meet(struct weft_comm *control,
                                const struct weft_nccl_link_options *options,
                                struct weft_nccl_link **out, struct weft_error *err)
{
    struct weft_nccl_id id;
    WEFT_TRY(share_identities(control, err));
    WEFT_TRY(share_id(control, &id, err));
    return weft_nccl_link_open(options, &id, out, err);
}
