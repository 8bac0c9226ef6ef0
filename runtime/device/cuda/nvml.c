/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/device/cuda/nvml.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { UUID_TEXT = 48, MOST_PROCESSES = 64 };

/* "GPU-01020304-0506-0708-090a-0b0c0d0e0f10" */
static void show_uuid(const unsigned char uuid[16], char out[UUID_TEXT])
{
    int at = snprintf(out, UUID_TEXT, "GPU-");
    for (int i = 0; i < 16; i++) {
        const bool dash = i == 4 || i == 6 || i == 8 || i == 10;
        at += snprintf(out + at, (size_t)(UUID_TEXT - at), "%s%02x", dash ? "-" : "", uuid[i]);
    }
}

static void find_function(void *library, const char *name, void *function, size_t bytes)
{
    void *address = dlsym(library, name);
    memcpy(function, &address, bytes);
}

bool weft_nvml_open(const unsigned char uuid[16], struct weft_nvml *out)
{
    char text[UUID_TEXT];
    struct weft_nvml nvml = {0};
    nvml.library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (nvml.library == NULL) return false;
#define FIND(name, parameters)                                                                     \
    find_function(nvml.library, #name, (void *)&nvml.name, sizeof nvml.name);
    WEFT_NVML_FUNCTIONS(FIND)
#undef FIND
    show_uuid(uuid, text);
    const bool usable = nvml.nvmlInit_v2 != NULL && nvml.nvmlShutdown != NULL &&
                        nvml.nvmlDeviceGetHandleByUUID != NULL && nvml.nvmlInit_v2() == 0;
    if (usable && nvml.nvmlDeviceGetHandleByUUID(text, &nvml.gpu) == 0) {
        *out = nvml;
        return true;
    }
    if (usable) nvml.nvmlShutdown();
    dlclose(nvml.library);
    return false;
}

void weft_nvml_close(struct weft_nvml *nvml)
{
    if (nvml->library == NULL) return;
    nvml->nvmlShutdown();
    dlclose(nvml->library);
    *nvml = (struct weft_nvml){0};
}

int64_t weft_nvml_own_bytes(const struct weft_nvml *nvml, int *n_processes)
{
    struct weft_nvml_process all[MOST_PROCESSES];
    unsigned n = MOST_PROCESSES;
    *n_processes = -1;
    if (nvml->library == NULL || nvml->nvmlDeviceGetComputeRunningProcesses_v3 == NULL) return -1;
    const int code = nvml->nvmlDeviceGetComputeRunningProcesses_v3(nvml->gpu, &n, all);
    if (code == WEFT_NVML_INSUFFICIENT_SIZE) *n_processes = (int)n;
    if (code != 0) return -1;
    *n_processes = (int)n;
    for (unsigned i = 0; i < n && i < MOST_PROCESSES; i++) {
        if (all[i].pid != (unsigned)getpid() || all[i].bytes == WEFT_NVML_UNKNOWN) continue;
        return (int64_t)all[i].bytes;
    }
    return -1;
}
