/* SPDX-License-Identifier: Apache-2.0 */
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

/* A module, and what its messages say. */
struct row {
    const char *name, *variable; /* the variable names the file */
    const char *absent;          /* why there may be none, and what would work */
    const char *needs;           /* libraries without which it cannot be opened */
};

static const struct row rows[] = {
    {"cuda", "WEFT_CUDA_MODULE",
     "the device \"cuda\" is a module of its own: build Weft with -Dgpu=enabled where CUDA's "
     "toolkit is (docs/gpu.md), or train with cluster.device.type \"cpu\"",
     "the libraries of CUDA's toolkit that it was built with, on the loader's path (ldconfig, or "
     "LD_LIBRARY_PATH; docs/gpu.md)"},
    {"openmpi", "WEFT_OPENMPI_MODULE",
     "Open MPI is reached through a module of its own: build Weft with -Dmpi=enabled where Open "
     "MPI's headers are (docs/hosts.md), or use the launcher of another library",
     "Open MPI's libraries, on the loader's path (docs/hosts.md)"},
    {"mpich", "WEFT_MPICH_MODULE",
     "MPICH is reached through a module of its own: build Weft with -Dmpi=enabled where MPICH's "
     "headers are (docs/hosts.md), or use the launcher of another library",
     "MPICH's libraries, on the loader's path (docs/hosts.md)"},
};
enum { ROWS = sizeof rows / sizeof rows[0] };

static const struct row *find_row(const char *name)
{
    for (int i = 0; i < ROWS; i++) {
        if (strcmp(rows[i].name, name) == 0) return &rows[i];
    }
    return NULL;
}

/* The file FOLDER/weft_NAME.so next to the program, or in the build folder's runtime/. */
static bool beside_program(const char *name, char path[PATH_MAX])
{
    static const char *const folders[] = {"", "/../runtime"};
    char program[PATH_MAX];
    if (!weft_proc_program(program, sizeof program)) return false;
    char *last = strrchr(program, '/');
    if (last == NULL) return false;
    *last = '\0';
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        const int written = snprintf(path, PATH_MAX, "%s%s/weft_%s.so", program, folders[i], name);
        if (written > 0 && written < PATH_MAX && access(path, R_OK) == 0) return true;
    }
    return false;
}

static enum weft_status find_file(const struct row *row, char path[PATH_MAX],
                                  struct weft_error *err)
{
    const char *named = getenv(row->variable);
    if (named != NULL && *named != '\0') {
        snprintf(path, PATH_MAX, "%s", named);
    } else if (!beside_program(row->name, path)) {
        snprintf(path, PATH_MAX, "%s/weft_%s.so", WEFT_MODULE_FOLDER, row->name);
    }
    if (access(path, R_OK) == 0) return WEFT_OK;
    return weft_fail(err, WEFT_E_ENVIRONMENT, "there is no %s: %s", path, row->absent);
}

/* Reports dlerror's text. */
static enum weft_status fail_to_open(const struct row *row, const char *path,
                                     struct weft_error *err)
{
    const char *why = dlerror();
    return weft_fail(err, WEFT_E_ENVIRONMENT, "%s cannot be opened: %s. It needs %s", path,
                     why != NULL ? why : "for no reason that the loader gives", row->needs);
}

enum weft_status weft_module_find(const char *kind, const char *name, const void **out,
                                  struct weft_error *err)
{
    char path[PATH_MAX], symbol[64];
    const struct row *row = find_row(name);
    if (row == NULL) return weft_fail(err, WEFT_E_INTERNAL, "no module is named \"%s\"", name);
    WEFT_TRY(find_file(row, path, err));
    void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (module == NULL) return fail_to_open(row, path, err);
    const char *const *version = dlsym(module, "weft_module_version");
    if (version == NULL || strcmp(*version, WEFT_MODULE_VERSION) != 0) {
        return weft_fail(err, WEFT_E_ENVIRONMENT,
                         "%s is of version %s, and this program of %s: install both together", path,
                         version != NULL ? *version : "none", WEFT_MODULE_VERSION);
    }
    snprintf(symbol, sizeof symbol, "weft_%s_%s", kind, name);
    *out = dlsym(module, symbol);
    if (*out != NULL) return WEFT_OK;
    return weft_fail(err, WEFT_E_ENVIRONMENT, "%s has no %s: it is not whole", path, symbol);
}
