/* NVIDIA's management library, which comes with the driver: what it says of one GPU. It is opened
 * on demand and never needed; in containers it often tells nothing of processes. Its functions are
 * declared here, so that its header is not needed either. */
#ifndef WEFT_RUNTIME_DEVICE_CUDA_NVML_H
#define WEFT_RUNTIME_DEVICE_CUDA_NVML_H

#include <stdbool.h>
#include <stdint.h>

/* NVML's own, as nvml.h has them. Codes are 0 for success. */
struct nvmlDevice_st;
struct weft_nvml_process {
    unsigned pid;
    unsigned long long bytes; /* of the GPU, or WEFT_NVML_UNKNOWN */
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
/* name, result's parameters */
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
    void *library; /* NULL: it is not open */
    struct nvmlDevice_st *gpu;
};

/* False where there is no library, no driver, or no such GPU (a part of one, by MIG, is none). The
 * library may be older than some functions, which are then NULL. */
bool weft_nvml_open(const unsigned char uuid[16], struct weft_nvml *out);
void weft_nvml_close(struct weft_nvml *nvml); /* accepts what is not open */

/* Bytes of the GPU that this process holds; -1: not told. *n_processes on the GPU, or -1. */
int64_t weft_nvml_own_bytes(const struct weft_nvml *nvml, int *n_processes);

#endif
