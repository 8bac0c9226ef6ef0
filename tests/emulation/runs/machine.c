/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/emulation/runs/machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/nn/cuda/cuda.h"

struct issued {
    weft_cuda_work_fn *work;
    unsigned char argument[WEFT_TASK_BYTES - sizeof(weft_cuda_work_fn *)];
};

static enum weft_status run_issued(struct weft_stream *stream, const void *argument,
                                   struct weft_error *err)
{
    const struct issued *issued = argument;
    const enum weft_status status =
        issued->work(stream, (struct CUstream_st *)(void *)stream, issued->argument, err);
    if (emu_machine_findings() > 0) abort();
    return status;
}

static void issue(struct weft_stream *stream, weft_cuda_work_fn *work, const void *argument,
                  size_t bytes)
{
    struct issued issued = {.work = work};
    if (bytes > sizeof issued.argument) abort();
    memcpy(issued.argument, argument, bytes);
    weft_stream_push(stream, run_issued, &issued, sizeof issued);
}

/* New memory is NaN in every type. Its size comes before it, and a guard after it. */
enum { PLACE_BYTES = 256, GUARD_BYTES = 256, GUARD = 0xa5 };

static int allocate(int64_t bytes, void **out)
{
    const size_t whole = PLACE_BYTES + ((size_t)bytes + 255) / 256 * 256 + GUARD_BYTES;
    unsigned char *memory = aligned_alloc(PLACE_BYTES, whole);
    if (memory == NULL) return 2; /* cudaErrorMemoryAllocation */
    memcpy(memory, &bytes, sizeof bytes);
    memset(memory + PLACE_BYTES, 0xff, (size_t)bytes);
    memset(memory + PLACE_BYTES + bytes, GUARD, GUARD_BYTES);
    *out = memory + PLACE_BYTES;
    return 0;
}

static void release(void *memory)
{
    unsigned char *from = (unsigned char *)memory - PLACE_BYTES;
    int64_t bytes;
    memcpy(&bytes, from, sizeof bytes);
    for (int i = 0; i < GUARD_BYTES; i++) {
        if (from[PLACE_BYTES + bytes + i] == GUARD) continue;
        fprintf(stderr, "emulation: byte %d behind a workspace of %lld was written\n", i,
                (long long)bytes);
        abort();
    }
    free(from);
}

static int send(struct weft_stream *stream, struct CUstream_st *on, void *to, const void *host,
                int64_t bytes)
{
    (void)stream;
    (void)on;
    memcpy(to, host, (size_t)bytes);
    return 0;
}

static const char *explain(int code)
{
    return code == 2 ? "out of memory" : "refused";
}

static const struct weft_cuda_machine emulated = {
    .name = "emulated",
    .issue = issue,
    .allocate = allocate,
    .release = release,
    .share = allocate,
    .unshare = release,
    .send = send,
    .explain = explain,
};

extern const struct weft_nn_backend weft_nn_backend_emulated;

/* Requests for a CPU library get the GPU's own products. */
static enum weft_status open_emulated(const struct weft_nn_options *options, struct weft_nn **out,
                                      struct weft_error *err)
{
    struct weft_nn_options own = *options;
    if (strcmp(own.gemm, "plain") != 0) own.gemm = "own";
    emu_machine_begin();
    return weft_nn_cuda_open(&weft_nn_backend_emulated, &emulated, &own, out, err);
}

/* Linked in place of the CPU's back end, under the name "cpu". */
const struct weft_nn_backend weft_nn_backend_emulated = {
    .name = "cpu",
    .open = open_emulated,
    WEFT_NN_CUDA_FUNCTIONS,
};
