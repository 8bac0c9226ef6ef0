/* SPDX-License-Identifier: Apache-2.0 */
/* NVIDIA's management library, part of the driver, for one GPU. It is opened on demand and
 * optional. In containers it often reports no processes. The functions are declared here, so the
 * build does not need its header. */
#ifndef WEFT_RUNTIME_DEVICE_CUDA_NVML_H
#define WEFT_RUNTIME_DEVICE_CUDA_NVML_H

#include <stdbool.h>
#include <stdint.h>

/* Types and codes as in nvml.h. Code 0 is success. */
struct nvmlDevice_st;
struct weft_nvml_process {
    unsigned pid;
    unsigned long long bytes; /* of GPU memory, or WEFT_NVML_UNKNOWN */
    unsigned gpu_instance, compute_instance;
};
#define WEFT_NVML_UNKNOWN (~0ULL)
enum { WEFT_NVML_INSUFFICIENT_SIZE = 7, WEFT_NVML_UNCORRECTED = 1, WEFT_NVML_SINCE_RESET = 0 };
enum weft_nvml_mode {
    WEFT_NVML_SHARED,
    WEFT_NVML_EXCLUSIVE_THREAD,
    WEFT_NVML_PROHIBITED,
    WEFT_NVML_EXCLUSIVE_PROCESS
};
/* Function name, parameters. */
#define WEFT_NVML_FUNCTIONS(X)                                                                     \
    X(nvmlInit_v2, (void))                                                                         \
    X(nvmlShutdown, (void))                                                                        \
    X(nvmlSystemGetDriverVersion, (char *text, unsigned bytes))                                    \
    X(nvmlDeviceGetHandleByUUID, (const char *uuid, struct nvmlDevice_st **out))                   \
    X(nvmlDeviceGetComputeRunningProcesses_v3,                                                     \
      (struct nvmlDevice_st * gpu, unsigned *n, struct weft_nvml_process *out))                    \
    X(nvmlDeviceGetComputeMode, (struct nvmlDevice_st * gpu, unsigned *mode))                      \
    X(nvmlDeviceGetEccMode, (struct nvmlDevice_st * gpu, unsigned *now, unsigned *pending))        \
    X(nvmlDeviceGetTotalEccErrors,                                                                 \
      (struct nvmlDevice_st * gpu, unsigned kind, unsigned counter, unsigned long long *n))        \
    X(nvmlDeviceGetMigMode, (struct nvmlDevice_st * gpu, unsigned *now, unsigned *pending))        \
    X(nvmlDeviceGetCurrentClocksThrottleReasons,                                                   \
      (struct nvmlDevice_st * gpu, unsigned long long *reasons))

struct weft_nvml {
#define WEFT_NVML_MEMBER(name, parameters) int(*name) parameters;
    WEFT_NVML_FUNCTIONS(WEFT_NVML_MEMBER)
#undef WEFT_NVML_MEMBER
    void *library; /* NULL: not open */
    struct nvmlDevice_st *gpu;
};

/* Opens the library for the GPU with this UUID. Returns false without library, driver or GPU. A MIG
 * part is not a GPU here. Functions missing in an older library are NULL. */
bool weft_nvml_open(const unsigned char uuid[16], struct weft_nvml *out);
void weft_nvml_close(struct weft_nvml *nvml); /* accepts a closed one */

/* GPU bytes held by this process, or -1 if unknown. *n_processes counts processes on the GPU, or is
 * -1. */
int64_t weft_nvml_own_bytes(const struct weft_nvml *nvml, int *n_processes);

#endif
