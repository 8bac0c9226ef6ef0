/* A module is a part of Weft that is opened on demand, because few machines have the libraries that
 * it needs. It is a shared library, weft_NAME.so, with the tables of functions of the device
 * NAME. */
#ifndef WEFT_RUNTIME_DEVICE_MODULE_H
#define WEFT_RUNTIME_DEVICE_MODULE_H

#include <stdbool.h>

#include "base/status.h"
#include "base/text.h"

/* True if a module has the device's tables. */
bool weft_module_has(const char *device);
/* Finds the module's table weft_KIND_DEVICE, valid until the program ends. The file is
 * WEFT_CUDA_MODULE's, or next to the program, or in the install folder. WEFT_E_ENVIRONMENT if there
 * is no file, if a library is missing, or if the version differs. */
WEFT_MUST_USE enum weft_status weft_module_find(const char *kind, const char *device,
                                                const void **out, struct weft_error *err);
/* Appends all names of devices, as `"cpu", "cuda"`, those of modules last. */
void weft_module_add_names(struct weft_text *out);

#endif
