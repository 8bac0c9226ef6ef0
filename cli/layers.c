/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* for realpath */
#include "cli/layers.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "include/weft.h"
#include "layers/supplied.h"

/* Finds the absolute path. The loader would search for a path without a slash, and ranks may have
 * another working directory. */
static enum weft_status find_file(const char *path, char absolute[PATH_MAX], struct weft_error *err)
{
    struct stat about;
    if (realpath(path, absolute) == NULL || stat(absolute, &about) != 0)
        return weft_fail(err, errno == EACCES ? WEFT_E_PERMISSION : WEFT_E_NO_INPUT,
                         "--layers %s: %s. Give the path of a shared object, relative to the "
                         "working directory",
                         path, strerror(errno));
    if (!S_ISREG(about.st_mode))
        return weft_fail(err, WEFT_E_DATA, "--layers %s: not a file, so not a shared object", path);
    if (access(absolute, R_OK) == 0) return WEFT_OK;
    return weft_fail(err, WEFT_E_PERMISSION, "--layers %s: %s", path, strerror(errno));
}

/* Fails with the loader's message, without the path at its start. */
static enum weft_status fail_to_load(const char *path, const char *absolute, struct weft_error *err)
{
    const char *why = dlerror();
    const size_t length = strlen(absolute);
    if (why == NULL) why = "the loader gives no reason";
    if (strncmp(why, absolute, length) == 0 && strncmp(why + length, ": ", 2) == 0)
        why += length + 2;
    return weft_fail(err, WEFT_E_DATA,
                     "--layers %s cannot be loaded: %s. Build it with `cc -shared -fPIC`, and link "
                     "all that it calls (docs/library.md)",
                     path, why);
}

static enum weft_status add_kind(struct weft_layer_files *files, const char *path,
                                 const struct weft_layer_kind *kind, struct weft_error *err)
{
    struct weft_error why = {0};
    if (files->known.n == WEFT_LAYER_FILE_KINDS)
        return weft_fail(err, WEFT_E_USAGE, "--layers %s: more than %d layer kinds in all", path,
                         WEFT_LAYER_FILE_KINDS);
    if (kind == NULL)
        return weft_fail(err, WEFT_E_DATA, "--layers %s: a kind in weft_layers is NULL", path);
    if (weft_supplied_check(kind, &files->known, &why) != WEFT_OK)
        return weft_fail(err, WEFT_E_DATA, "--layers %s: %s", path, why.text);
    const struct weft_kind *wrapped = weft_supplied_wrap(kind, &files->pool);
    if (wrapped == NULL) return weft_fail_memory(err, "a layer kind");
    files->kinds[files->known.n++] = wrapped;
    return WEFT_OK;
}

static enum weft_status add_kinds(struct weft_layer_files *files, const char *path, void *handle,
                                  struct weft_error *err)
{
    const struct weft_layers *layers = dlsym(handle, "weft_layers");
    if (layers == NULL)
        return weft_fail(err, WEFT_E_DATA,
                         "--layers %s exports no weft_layers: define `const struct weft_layers "
                         "weft_layers` in it, which weft.h declares",
                         path);
    if (layers->abi != WEFT_LAYERS_ABI)
        return weft_fail(err, WEFT_E_DATA,
                         "--layers %s is built for version %d of the layers' interface, and this "
                         "program has version %d: build it again with this program's weft.h",
                         path, (int)layers->abi, WEFT_LAYERS_ABI);
    if (layers->n < 1 || layers->kinds == NULL)
        return weft_fail(err, WEFT_E_DATA, "--layers %s: its weft_layers has no kinds", path);
    for (int32_t i = 0; i < layers->n; i++)
        WEFT_TRY(add_kind(files, path, layers->kinds[i], err));
    return WEFT_OK;
}

enum weft_status weft_layer_files_open(struct weft_layer_files *files, const char *path,
                                       struct weft_error *err)
{
    char absolute[PATH_MAX];
    const int32_t at = files->known.n_files;
    if (at == WEFT_CLI_LAYERS)
        return weft_fail(err, WEFT_E_USAGE, "--layers: at most %d times", WEFT_CLI_LAYERS);
    WEFT_TRY(find_file(path, absolute, err));
    files->paths[at] = weft_pool_format(&files->pool, "%s", absolute);
    if (files->paths[at] == NULL) return weft_fail_memory(err, "--layers");
    files->handles[at] = dlopen(absolute, RTLD_NOW | RTLD_LOCAL);
    if (files->handles[at] == NULL) return fail_to_load(path, absolute, err);
    files->known.kinds = files->kinds;
    files->known.files = files->paths;
    files->known.n_files = at + 1;
    return add_kinds(files, path, files->handles[at], err);
}

void weft_layer_files_close(struct weft_layer_files *files)
{
    for (int32_t i = 0; i < files->known.n_files; i++)
        dlclose(files->handles[i]);
    weft_pool_finish(&files->pool);
    *files = (struct weft_layer_files){0};
}
