#define _GNU_SOURCE /* dladdr */
#include "runtime/device/cuda/doctor.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"

static void tell_version(struct weft_text *out, const char *what, int version)
{
    weft_text_addf(out, "%s %d.%d", what, version / 1000, version % 1000 / 10);
}

static void tell_libraries(struct weft_text *out)
{
    int driver = 0, runtime = 0;
    Dl_info info;
    if (cudaDriverGetVersion(&driver) == cudaSuccess) {
        weft_text_add(out, "; ");
        tell_version(out, "driver for CUDA", driver);
    }
    if (cudaRuntimeGetVersion(&runtime) == cudaSuccess) {
        weft_text_add(out, ", ");
        tell_version(out, "libcudart", runtime);
    }
    cudaError_t (*const function)(int *) = cudaRuntimeGetVersion;
    const void *address;
    memcpy(&address, &function, sizeof address);
    if (dladdr(address, &info) != 0 && info.dli_fname != NULL)
        weft_text_addf(out, " of %s", info.dli_fname);
}

static void tell_memory(struct weft_text *out)
{
    size_t free_bytes = 0, total_bytes = 0;
    char shown_free[WEFT_UNITS_TEXT_BYTES], shown_total[WEFT_UNITS_TEXT_BYTES];
    if (cudaMemGetInfo(&free_bytes, &total_bytes) != cudaSuccess) return;
    weft_text_addf(out, "; %s free of %s", weft_units_show_bytes((int64_t)free_bytes, shown_free),
                   weft_units_show_bytes((int64_t)total_bytes, shown_total));
}

static void tell_hindrances(const struct cudaDeviceProp *gpu, struct weft_text *out)
{
    const char *blocking = getenv("CUDA_LAUNCH_BLOCKING");
    if (blocking != NULL && strcmp(blocking, "1") == 0)
        weft_text_add(out, "; CUDA_LAUNCH_BLOCKING=1 lets nothing overlap: unset it");
    if (!gpu->ECCEnabled) weft_text_add(out, "; without ECC");
}

void weft_cuda_describe(const struct weft_device *device, struct weft_text *out)
{
    const struct weft_cuda_gpu *gpu = (const struct weft_cuda_gpu *)device;
    struct cudaDeviceProp properties;
    int n = 0;
    if (weft_cuda_enter(gpu) != cudaSuccess || cudaGetDeviceCount(&n) != cudaSuccess ||
        cudaGetDeviceProperties(&properties, gpu->ordinal) != cudaSuccess)
        return;
    weft_text_addf(out, "GPU %d of %d, %s, compute capability %d.%d", gpu->ordinal, n,
                   properties.name, properties.major, properties.minor);
    tell_memory(out);
    tell_libraries(out);
    tell_hindrances(&properties, out);
    weft_text_add(out, "; Weft has never run on a GPU yet, its kernels and this device were "
                       "emulated");
}
