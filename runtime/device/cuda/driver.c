/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/device/cuda/driver.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

static const char library_name[] = "libcuda.so.1";

static const struct function {
    const char *name;
    size_t at; /* in struct weft_cuda_driver */
} functions[] = {
    {"cuMemGetAllocationGranularity", offsetof(struct weft_cuda_driver, granularity)},
    {"cuMemAddressReserve", offsetof(struct weft_cuda_driver, reserve)},
    {"cuMemAddressFree", offsetof(struct weft_cuda_driver, give_back)},
    {"cuMemCreate", offsetof(struct weft_cuda_driver, create)},
    {"cuMemRelease", offsetof(struct weft_cuda_driver, release)},
    {"cuMemMap", offsetof(struct weft_cuda_driver, map)},
    {"cuMemUnmap", offsetof(struct weft_cuda_driver, unmap)},
    {"cuMemSetAccess", offsetof(struct weft_cuda_driver, set_access)},
    {"cuStreamWriteValue32_v2", offsetof(struct weft_cuda_driver, write_word)},
    {"cuStreamWaitValue32_v2", offsetof(struct weft_cuda_driver, wait_word)},
};
enum { FUNCTIONS = sizeof functions / sizeof functions[0] };

enum weft_status weft_cuda_driver_open(struct weft_cuda_driver *out, struct weft_error *err)
{
    struct weft_cuda_driver driver = {.library = dlopen(library_name, RTLD_NOW | RTLD_LOCAL)};
    if (driver.library == NULL) {
        return weft_fail(err, WEFT_E_ENVIRONMENT,
                         "%s cannot be opened: %s. It comes with NVIDIA's driver (docs/gpu.md; in "
                         "a container, start it with its GPUs)",
                         library_name, dlerror());
    }
    for (int i = 0; i < FUNCTIONS; i++) {
        void *function = dlsym(driver.library, functions[i].name);
        if (function == NULL) {
            weft_cuda_driver_close(&driver);
            return weft_fail(err, WEFT_E_ENVIRONMENT,
                             "%s has no %s: the driver is too old (docs/gpu.md)", library_name,
                             functions[i].name);
        }
        memcpy((char *)&driver + functions[i].at, &function, sizeof function);
    }
    *out = driver;
    return WEFT_OK;
}

void weft_cuda_driver_close(struct weft_cuda_driver *driver)
{
    if (driver->library != NULL) dlclose(driver->library);
    driver->library = NULL;
}
