/* A module is a part of Weft that is opened on demand, because it needs libraries that few machines
 * have: the program runs without it. It is a shared library, weft_NAME.so, with the tables of
 * functions of the device of that name. */
#ifndef WEFT_RUNTIME_DEVICE_MODULE_H
#define WEFT_RUNTIME_DEVICE_MODULE_H

#include <stdbool.h>

#include "base/status.h"
#include "base/text.h"

/* True: the device's tables are in a module. */
bool weft_module_has(const char *device);
/* The module's table `weft_KIND_DEVICE`, which stays for as long as the program runs. The file is
 * that of WEFT_CUDA_MODULE, or beside the program, or where it was installed. WEFT_E_ENVIRONMENT
 * when there is no file, it needs a library that is not there, or it is of another version. */
WEFT_MUST_USE enum weft_status weft_module_find(const char *kind, const char *device,
                                                const void **out, struct weft_error *err);
/* `"cpu", "strict", "cuda"`: all devices by name, those of modules last. */
void weft_module_add_names(struct weft_text *out);

#endif
