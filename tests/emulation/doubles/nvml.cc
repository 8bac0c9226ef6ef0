/* SPDX-License-Identifier: Apache-2.0 */
/* A double of NVIDIA's management library, for the GPU of libcudart's double.
 *
 * WEFT_DOUBLE_NVML changes it, as words with commas between:
 * "absent"     no driver
 * "hidden"     lists no processes, as in a container
 * "shared"     another process has 1 GiB
 * "exclusive"  compute mode
 * "ecc"        on, with 3 uncorrected errors
 * "hot"        clocks are slow
 * "mig"        MIG is on
 *
 * This process holds WEFT_DOUBLE_NVML_BYTES in addition to its allocations. */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

#include "tests/emulation/doubles/double.h"

extern "C" {
#include "runtime/device/cuda/nvml.h"
}

enum { NOT_SUPPORTED = 3, NOT_FOUND = 6, DRIVER_NOT_LOADED = 9, OTHER_PID = 1 };

static bool is(const char *word)
{
    const char *text = getenv("WEFT_DOUBLE_NVML");
    const char *at = text != NULL ? strstr(text, word) : NULL;
    return at != NULL;
}

extern "C" {

int nvmlInit_v2(void);
int nvmlShutdown(void);
int nvmlSystemGetDriverVersion(char *text, unsigned bytes);
int nvmlDeviceGetHandleByUUID(const char *uuid, struct nvmlDevice_st **out);
int nvmlDeviceGetComputeRunningProcesses_v3(struct nvmlDevice_st *gpu, unsigned *n,
                                            struct weft_nvml_process *out);
int nvmlDeviceGetComputeMode(struct nvmlDevice_st *gpu, unsigned *mode);
int nvmlDeviceGetEccMode(struct nvmlDevice_st *gpu, unsigned *now, unsigned *pending);
int nvmlDeviceGetTotalEccErrors(struct nvmlDevice_st *gpu, unsigned kind, unsigned counter,
                                unsigned long long *n);
int nvmlDeviceGetMigMode(struct nvmlDevice_st *gpu, unsigned *now, unsigned *pending);
int nvmlDeviceGetCurrentClocksThrottleReasons(struct nvmlDevice_st *gpu,
                                              unsigned long long *reasons);

int nvmlInit_v2(void)
{
    return is("absent") ? DRIVER_NOT_LOADED : 0;
}

int nvmlShutdown(void)
{
    return 0;
}

int nvmlSystemGetDriverVersion(char *text, unsigned bytes)
{
    snprintf(text, bytes, "580.0.double");
    return 0;
}

/* The first byte of a GPU's UUID is its number plus 1; the others are 0. */
int nvmlDeviceGetHandleByUUID(const char *uuid, struct nvmlDevice_st **out)
{
    static char gpu;
    unsigned first = 0;
    char rest[64] = "";
    if (sscanf(uuid, "GPU-%2x%63s", &first, rest) != 2 || first == 0 ||
        strcmp(rest, "000000-0000-0000-0000-000000000000") != 0)
        return NOT_FOUND;
    *out = (struct nvmlDevice_st *)&gpu;
    return 0;
}

int nvmlDeviceGetComputeRunningProcesses_v3(struct nvmlDevice_st *gpu, unsigned *n,
                                            struct weft_nvml_process *out)
{
    (void)gpu;
    const char *more = getenv("WEFT_DOUBLE_NVML_BYTES");
    const unsigned needed = is("hidden") ? 0 : is("shared") ? 2 : 1;
    if (*n < needed) {
        *n = needed;
        return WEFT_NVML_INSUFFICIENT_SIZE;
    }
    *n = needed;
    if (needed > 1) out[0] = {OTHER_PID, 1ULL << 30, 0, 0};
    if (needed > 0) {
        out[needed - 1] = {
            (unsigned)getpid(),
            double_memory_device_bytes() + (more != NULL ? strtoull(more, NULL, 10) : 0), 0, 0};
    }
    return 0;
}

int nvmlDeviceGetComputeMode(struct nvmlDevice_st *gpu, unsigned *mode)
{
    (void)gpu;
    *mode = is("exclusive") ? WEFT_NVML_EXCLUSIVE_PROCESS : WEFT_NVML_SHARED;
    return 0;
}

int nvmlDeviceGetEccMode(struct nvmlDevice_st *gpu, unsigned *now, unsigned *pending)
{
    (void)gpu;
    *now = *pending = is("ecc") ? 1 : 0;
    return 0;
}

int nvmlDeviceGetTotalEccErrors(struct nvmlDevice_st *gpu, unsigned kind, unsigned counter,
                                unsigned long long *n)
{
    (void)gpu;
    if (!is("ecc")) return NOT_SUPPORTED;
    *n = kind == WEFT_NVML_UNCORRECTED && counter == WEFT_NVML_SINCE_RESET ? 3 : 0;
    return 0;
}

int nvmlDeviceGetMigMode(struct nvmlDevice_st *gpu, unsigned *now, unsigned *pending)
{
    (void)gpu;
    *now = *pending = is("mig") ? 1 : 0;
    return 0;
}

int nvmlDeviceGetCurrentClocksThrottleReasons(struct nvmlDevice_st *gpu,
                                              unsigned long long *reasons)
{
    (void)gpu;
    *reasons = is("hot") ? 0x40 : 0;
    return 0;
}

} /* extern "C" */
