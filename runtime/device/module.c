#define _GNU_SOURCE /* dladdr */
#include "runtime/device/module.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/machine/proc.h"
#include "runtime/device/backends.h"

#define NAME(name) #name,
static const char *const built_in[] = {WEFT_DEVICES(NAME)};
static const char *const of_modules[] = {WEFT_MODULES(NAME)};
#undef NAME
enum {
    BUILT_IN = sizeof built_in / sizeof built_in[0],
    OF_MODULES = sizeof of_modules / sizeof of_modules[0]
};

bool weft_module_has(const char *device)
{
    for (int i = 0; i < OF_MODULES; i++) {
        if (strcmp(of_modules[i], device) == 0) return true;
    }
    return false;
}

void weft_module_add_names(struct weft_text *out)
{
    for (int i = 0; i < BUILT_IN; i++) {
        weft_text_addf(out, "%s\"%s\"", i > 0 ? ", " : "", built_in[i]);
    }
    for (int i = 0; i < OF_MODULES; i++) {
        weft_text_addf(out, ", \"%s\"", of_modules[i]);
    }
}

static bool beside_program(const char *device, char path[PATH_MAX])
{
    char program[PATH_MAX];
    if (!weft_proc_program(program, sizeof program)) return false;
    char *last = strrchr(program, '/');
    if (last == NULL) return false;
    *last = '\0';
    const int written = snprintf(path, PATH_MAX, "%s/weft_%s.so", program, device);
    return written > 0 && written < PATH_MAX && access(path, R_OK) == 0;
}

static enum weft_status find_file(const char *device, char path[PATH_MAX], struct weft_error *err)
{
    const char *named = getenv("WEFT_CUDA_MODULE");
    if (named != NULL && *named != '\0') {
        snprintf(path, PATH_MAX, "%s", named);
    } else if (!beside_program(device, path)) {
        snprintf(path, PATH_MAX, "%s/weft_%s.so", WEFT_MODULE_FOLDER, device);
    }
    if (access(path, R_OK) == 0) return WEFT_OK;
    return weft_fail(err, WEFT_E_ENVIRONMENT,
                     "device \"%s\" is a module of its own, and there is none at %s: build Weft "
                     "with -Dgpu=enabled where CUDA's toolkit is (docs/gpu.md), or train with "
                     "cluster.device.type \"cpu\"",
                     device, path);
}

/* Reports dlerror's text. */
static enum weft_status fail_to_open(const char *path, struct weft_error *err)
{
    const char *why = dlerror();
    return weft_fail(err, WEFT_E_ENVIRONMENT,
                     "%s cannot be opened: %s. It needs the libraries of CUDA's toolkit that it "
                     "was built with, on the loader's path (ldconfig, or LD_LIBRARY_PATH; "
                     "docs/gpu.md)",
                     path, why != NULL ? why : "for no reason that the loader gives");
}

enum weft_status weft_module_find(const char *kind, const char *device, const void **out,
                                  struct weft_error *err)
{
    char path[PATH_MAX], symbol[64];
    WEFT_TRY(find_file(device, path, err));
    void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (module == NULL) return fail_to_open(path, err);
    const char *const *version = dlsym(module, "weft_module_version");
    if (version == NULL || strcmp(*version, WEFT_MODULE_VERSION) != 0) {
        return weft_fail(err, WEFT_E_ENVIRONMENT,
                         "%s is of version %s, and this program of %s: install both together", path,
                         version != NULL ? *version : "none", WEFT_MODULE_VERSION);
    }
    snprintf(symbol, sizeof symbol, "weft_%s_%s", kind, device);
    *out = dlsym(module, symbol);
    if (*out != NULL) return WEFT_OK;
    return weft_fail(err, WEFT_E_ENVIRONMENT, "%s has no %s: it is not whole", path, symbol);
}
