#include "tests/emulation/runs/machine.h"

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

/* All bits set is a NaN of every type. */
static int allocate(int64_t bytes, void **out)
{
    const size_t whole = ((size_t)bytes + 255) / 256 * 256;
    *out = aligned_alloc(256, whole);
    if (*out == NULL) return 2; /* cudaErrorMemoryAllocation */
    memset(*out, 0xff, whole);
    return 0;
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
    .release = free,
    .share = allocate,
    .unshare = free,
    .send = send,
    .explain = explain,
};

extern const struct weft_nn_backend weft_nn_backend_emulated;

/* Who asks for a library of the CPU's gets the GPU's own products. */
static enum weft_status open_emulated(const struct weft_nn_options *options, struct weft_nn **out,
                                      struct weft_error *err)
{
    struct weft_nn_options own = *options;
    if (strcmp(own.gemm, "plain") != 0) own.gemm = "own";
    emu_machine_begin();
    return weft_nn_cuda_open(&weft_nn_backend_emulated, &emulated, &own, out, err);
}

/* Stands for the device "cpu" where it is linked in place of the CPU's. */
const struct weft_nn_backend weft_nn_backend_emulated = {
    .name = "cpu",
    .open = open_emulated,
    WEFT_NN_CUDA_FUNCTIONS,
};
