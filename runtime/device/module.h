/* SPDX-License-Identifier: Apache-2.0 */
/* A module is a part of Weft that is opened on demand, because few machines have the libraries that
 * it needs. It is a shared library, weft_NAME.so, with the tables of functions of the device
 * NAME. */
#ifndef WEFT_RUNTIME_DEVICE_MODULE_H
#define WEFT_RUNTIME_DEVICE_MODULE_H

#include <stdbool.h>

#include "base/status.h"
#include "base/text.h"

/* True if a module has the tables of a device of that name. */
bool weft_module_has(const char *device);
/* Finds the table weft_KIND_NAME of the module NAME ("cuda", "openmpi", "mpich"), valid until the
 * program ends. The file is the one that WEFT_CUDA_MODULE, WEFT_OPENMPI_MODULE or WEFT_MPICH_MODULE
 * names, or weft_NAME.so next to the program, in the build folder, or in the install folder.
 * WEFT_E_ENVIRONMENT if there is no file, if a library is missing, or if the version differs. */
WEFT_MUST_USE enum weft_status weft_module_find(const char *kind, const char *name,
                                                const void **out, struct weft_error *err);
/* Appends all names of devices, as `"cpu", "cuda"`, those of modules last. */
void weft_module_add_names(struct weft_text *out);

#endif
