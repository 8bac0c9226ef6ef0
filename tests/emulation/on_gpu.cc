/* SPDX-License-Identifier: Apache-2.0 */
/* Runs cases on a real GPU with nvcc's kernels. Operands are pinned memory, with one address for
 * GPU and host. The program is linked with --wrap, so launches pass here: each goes to our stream
 * and is awaited, because a case reads its results at once. Tests run it over the doubles. */
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include <cuda_runtime_api.h>

#include "tests/emulation/cases.h"

enum { ENVIRONMENT = 1, HANG = 80, WAIT_S = 60, NAP_US = 5 };

static cudaStream_t stream;
static int n_launches;
static struct cudaDeviceProp gpu;

static void give_up(int exit_code, const char *what, cudaError_t code)
{
    printf("Bail out! %s: %s (%s, %d)\n", what, cudaGetErrorString(code), cudaGetErrorName(code),
           (int)code);
    fflush(stdout);
    _Exit(exit_code);
}

void emu_runner_open(void)
{
    int n = 0;
    cudaError_t code = cudaGetDeviceCount(&n);
    if (code == cudaSuccess) code = cudaSetDevice(0);
    if (code == cudaSuccess) code = cudaGetDeviceProperties(&gpu, 0);
    if (code == cudaSuccess) code = cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, 0);
    if (code != cudaSuccess) give_up(ENVIRONMENT, "there is no GPU to run on", code);
    printf("# on %s, compute capability %d.%d\n", gpu.name, gpu.major, gpu.minor);
}

/* The allocation has more than the requested alignment. */
void *emu_runner_allocate(size_t alignment, size_t bytes)
{
    void *memory = NULL;
    (void)alignment;
    const cudaError_t code =
        cudaHostAlloc(&memory, bytes, cudaHostAllocMapped | cudaHostAllocPortable);
    if (code != cudaSuccess) give_up(ENVIRONMENT, "no pinned memory", code);
    return memory;
}

void emu_runner_free(void *memory)
{
    (void)cudaFreeHost(memory);
}

/* After a failed kernel the process can launch no other. */
static cudaError_t await_launch(cudaError_t code)
{
    const auto since = std::chrono::steady_clock::now();
    n_launches++;
    if (code != cudaSuccess) return code;
    while ((code = cudaStreamQuery(stream)) == cudaErrorNotReady) {
        if (std::chrono::steady_clock::now() - since > std::chrono::seconds(WAIT_S))
            give_up(HANG, "a kernel did not end within 60 s", code);
        std::this_thread::sleep_for(std::chrono::microseconds(NAP_US));
    }
    if (code != cudaSuccess) give_up(1, "a kernel failed", code);
    return code;
}

extern "C" {

cudaError_t __real_cudaLaunchKernel(const void *kernel, dim3 grid, dim3 block, void **arguments,
                                    size_t shared_bytes, cudaStream_t on);
cudaError_t __wrap_cudaLaunchKernel(const void *kernel, dim3 grid, dim3 block, void **arguments,
                                    size_t shared_bytes, cudaStream_t on);
cudaError_t __wrap_cudaLaunchKernel(const void *kernel, dim3 grid, dim3 block, void **arguments,
                                    size_t shared_bytes, cudaStream_t on)
{
    (void)on;
    return await_launch(
        __real_cudaLaunchKernel(kernel, grid, block, arguments, shared_bytes, stream));
}

} /* extern "C" */

static void attempt(const char *name, emu_case_fn *fn, bool has_bits)
{
    emu_attempt_begin(name, 0, has_bits);
    fn();
    emu_attempt_end(has_bits && emu_given()->bits != NULL ? "stored bits" : "numbers alone");
}

void emu_case(const char *name, emu_case_fn *fn)
{
    attempt(name, fn, true);
}

void emu_case_without_bits(const char *name, emu_case_fn *fn)
{
    attempt(name, fn, false);
}

void emu_runner_close(std::initializer_list<const char *> kernels)
{
    (void)kernels; /* only the emulator knows names */
    emu_told(n_launches > 0, "kernels were launched");
    (void)cudaStreamDestroy(stream);
}

std::string emu_runner_counts(void)
{
    return std::to_string(n_launches) + " launches on " + gpu.name;
}
