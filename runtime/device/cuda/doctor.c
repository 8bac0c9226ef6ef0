/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* dladdr */
#include "runtime/device/cuda/doctor.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/units.h"

static void tell_version(struct weft_text *out, const char *what, int version)
{
    weft_text_addf(out, "%s %d.%d", what, version / 1000, version % 1000 / 10);
}

static void add_file_of(const void *address, struct weft_text *out)
{
    Dl_info info;
    if (dladdr(address, &info) != 0 && info.dli_fname != NULL)
        weft_text_addf(out, " of %s", info.dli_fname);
}

static void tell_libraries(struct weft_text *out)
{
    int driver = 0, runtime = 0;
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
    add_file_of(address, out);
}

static void tell_memory(struct weft_text *out)
{
    size_t free_bytes = 0, total_bytes = 0;
    char shown_free[WEFT_UNITS_TEXT_BYTES], shown_total[WEFT_UNITS_TEXT_BYTES];
    if (cudaMemGetInfo(&free_bytes, &total_bytes) != cudaSuccess) return;
    weft_text_addf(out, "; %s free of %s", weft_units_show_bytes((int64_t)free_bytes, shown_free),
                   weft_units_show_bytes((int64_t)total_bytes, shown_total));
}

/* Reports NCCL if the module is linked with it. It looks the symbol up by name in the module. */
static void tell_nccl(struct weft_text *out)
{
    static const char mark;
    Dl_info info;
    int (*version_of)(int *) = NULL;
    int version = 0;
    void *module =
        dladdr(&mark, &info) != 0 ? dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD) : NULL;
    void *address = module != NULL ? dlsym(module, "ncclGetVersion") : NULL;
    memcpy(&version_of, &address, sizeof version_of);
    if (version_of == NULL || version_of(&version) != 0) {
        weft_text_add(out, "; without NCCL: one GPU a run");
    } else {
        weft_text_addf(out, "; NCCL %d.%d.%d", version / 10000, version / 100 % 100, version % 100);
        add_file_of(address, out);
    }
    if (module != NULL) dlclose(module);
}

/* Reports limits of the system that NCCL needs: processes share memory through /dev/shm, and pin
 * it. The host tier is pinned too. */
static void tell_limits(struct weft_text *out)
{
    const int64_t wanted_bytes = INT64_C(1) << 30;
    struct statvfs shm;
    struct rlimit locked;
    char shown[WEFT_UNITS_TEXT_BYTES];
    const int64_t bytes =
        statvfs("/dev/shm", &shm) == 0 ? (int64_t)shm.f_blocks * (int64_t)shm.f_frsize : 0;
    if (bytes < wanted_bytes) {
        weft_text_addf(out, "; /dev/shm has %s, and NCCL wants 1 GiB (docker run --shm-size 1g)",
                       weft_units_show_bytes(bytes, shown));
    }
    if (getrlimit(RLIMIT_MEMLOCK, &locked) == 0 && locked.rlim_cur != RLIM_INFINITY) {
        weft_text_addf(out,
                       "; %s may be locked, and NCCL and cluster.host want no limit (ulimit -l "
                       "unlimited, docker run --ulimit memlock=-1)",
                       weft_units_show_bytes((int64_t)locked.rlim_cur, shown));
    }
}

static void tell_peers(int ordinal, int n, struct weft_text *out)
{
    for (int other = 0; other < n; other++) {
        int can = 0;
        if (other == ordinal || cudaDeviceCanAccessPeer(&can, ordinal, other) != cudaSuccess)
            continue;
        weft_text_addf(out, "; GPU %d's memory can%s be reached from here", other,
                       can ? "" : "not");
    }
}

static void tell_ecc(const struct weft_nvml *nvml, struct weft_text *out)
{
    unsigned now = 0, pending = 0;
    unsigned long long errors = 0;
    if (nvml->nvmlDeviceGetEccMode == NULL || nvml->nvmlDeviceGetTotalEccErrors == NULL ||
        nvml->nvmlDeviceGetEccMode(nvml->gpu, &now, &pending) != 0 || now == 0 ||
        nvml->nvmlDeviceGetTotalEccErrors(nvml->gpu, WEFT_NVML_UNCORRECTED, WEFT_NVML_SINCE_RESET,
                                          &errors) != 0)
        return;
    weft_text_addf(out, "; %llu errors that ECC could not correct", errors);
    if (errors > 0) weft_text_add(out, ": what is computed may be wrong, reset or replace it");
}

static void tell_mode(const struct weft_nvml *nvml, struct weft_text *out)
{
    unsigned mode = WEFT_NVML_SHARED;
    if (nvml->nvmlDeviceGetComputeMode == NULL ||
        nvml->nvmlDeviceGetComputeMode(nvml->gpu, &mode) != 0)
        return;
    if (mode == WEFT_NVML_PROHIBITED) {
        weft_text_add(out, "; compute mode prohibited: nothing may run (nvidia-smi -c DEFAULT)");
    } else if (mode != WEFT_NVML_SHARED) {
        weft_text_add(out, "; compute mode exclusive: one process at a time");
    }
}

static void tell_slow_clocks(const struct weft_nvml *nvml, struct weft_text *out)
{
    enum { HEAT = 0x20 | 0x40, POWER = 0x4 | 0x80 }; /* nvmlClocksThrottleReason* */
    unsigned long long reasons = 0;
    if (nvml->nvmlDeviceGetCurrentClocksThrottleReasons == NULL ||
        nvml->nvmlDeviceGetCurrentClocksThrottleReasons(nvml->gpu, &reasons) != 0)
        return;
    if ((reasons & HEAT) != 0) weft_text_add(out, "; its clocks are slow now, for it is hot");
    if ((reasons & POWER) != 0) weft_text_add(out, "; its clocks are slow now, for want of power");
}

static void tell_managed(const struct weft_nvml *nvml, struct weft_text *out)
{
    char driver[96];
    unsigned mig = 0, pending = 0;
    if (nvml == NULL) {
        weft_text_add(out, "; without NVML (libnvidia-ml.so.1): what other processes hold, compute "
                           "mode and errors are not known");
        return;
    }
    if (nvml->nvmlSystemGetDriverVersion != NULL &&
        nvml->nvmlSystemGetDriverVersion(driver, sizeof driver) == 0)
        weft_text_addf(out, "; driver %s", driver);
    tell_mode(nvml, out);
    tell_ecc(nvml, out);
    tell_slow_clocks(nvml, out);
    if (nvml->nvmlDeviceGetMigMode != NULL &&
        nvml->nvmlDeviceGetMigMode(nvml->gpu, &mig, &pending) == 0 && mig != 0)
        weft_text_add(out, "; MIG divides it: one rank alone can use a part");
}

/* MPS, a daemon that lets processes share the GPU, keeps its pipes in this folder. */
static void tell_mps(struct weft_text *out)
{
    const char *pipes = getenv("CUDA_MPS_PIPE_DIRECTORY");
    const bool named = pipes != NULL && pipes[0] != '\0';
    if (access(named ? pipes : "/tmp/nvidia-mps", F_OK) == 0)
        weft_text_add(out, "; MPS is there: memory and errors may be other processes', too");
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
    struct weft_cuda_gpu *gpu = (struct weft_cuda_gpu *)(uintptr_t)device;
    struct cudaDeviceProp properties;
    int n = 0;
    if (weft_cuda_enter(gpu) != cudaSuccess || cudaGetDeviceCount(&n) != cudaSuccess ||
        cudaGetDeviceProperties(&properties, gpu->ordinal) != cudaSuccess)
        return;
    weft_text_addf(out, "GPU %d of %d, %s, compute capability %d.%d", gpu->ordinal, n,
                   properties.name, properties.major, properties.minor);
    tell_memory(out);
    tell_libraries(out);
    tell_nccl(out);
    tell_managed(weft_cuda_nvml(gpu), out);
    tell_hindrances(&properties, out);
    tell_mps(out);
    tell_limits(out);
    tell_peers(gpu->ordinal, n, out);
    weft_text_add(out, "; Weft has run on single GPUs: an H100 80GB (driver 580, CUDA 13.0, NCCL "
                       "2.28.3), by one rank and by two, and an H200; never on several GPUs");
}
