/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* for realpath */
#include "cli/job/shipped.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "spec/field.h"

enum { PATH_BYTES = 4096, MOST_NAMES = 256, NAME_BYTES = 64 };
static const char suffix_text[] = ".json";

/* Folder and name of each kind. */
static const struct {
    const char *folder, *what;
} kinds[] = {[WEFT_SHIPPED_RUNS] = {"runs", "config"},
             [WEFT_SHIPPED_MODELS] = {"models", "model"},
             [WEFT_SHIPPED_CLUSTERS] = {"clusters", "cluster"}};

/* Names of a folder's files. */
struct listing {
    char names[MOST_NAMES][NAME_BYTES];
    const char *sorted[MOST_NAMES];
    size_t n;
};

static bool has_suffix(const char *path)
{
    const size_t length = strlen(path), end = sizeof suffix_text - 1;
    return length > end && strcmp(path + length - end, suffix_text) == 0;
}

/* Sets `out` to the folder FOLDER/runs, models or clusters; false if there is none. */
static bool resolve_folder(const char *folder, enum weft_shipped kind, char out[PATH_BYTES])
{
    char place[3 * PATH_BYTES];
    snprintf(place, sizeof place, "%s/%s", folder, kinds[kind].folder);
    char *real = realpath(place, NULL);
    const bool found = real != NULL && strlen(real) < PATH_BYTES;
    if (found) snprintf(out, PATH_BYTES, "%s", real);
    free(real);
    return found;
}

/* Finds the folder of shipped files, in $WEFT_CONFIGS or relative to the program; false if there
 * is none. */
static bool find_folder(enum weft_shipped kind, char out[PATH_BYTES])
{
    static const char *const places[] = {"../share/weft/configs", "../../configs"};
    const char *named = getenv("WEFT_CONFIGS");
    char self[PATH_BYTES];
    if (named != NULL && *named != '\0') return resolve_folder(named, kind, out);
    const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n <= 0) return false;
    self[n] = '\0';
    char *slash = strrchr(self, '/');
    if (slash == NULL) return false;
    *slash = '\0';
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        char place[2 * PATH_BYTES];
        snprintf(place, sizeof place, "%s/%s", self, places[i]);
        if (resolve_folder(place, kind, out)) return true;
    }
    return false;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void list_names(const char *folder, struct listing *listing)
{
    DIR *directory = opendir(folder);
    const struct dirent *entry;
    listing->n = 0;
    while (directory != NULL && (entry = readdir(directory)) != NULL && listing->n < MOST_NAMES) {
        const size_t length = strlen(entry->d_name);
        if (!has_suffix(entry->d_name) || length >= NAME_BYTES) continue;
        char *name = listing->names[listing->n];
        snprintf(name, NAME_BYTES, "%.*s", (int)(length - sizeof suffix_text + 1), entry->d_name);
        listing->sorted[listing->n++] = name;
    }
    if (directory != NULL) closedir(directory);
    qsort(listing->sorted, listing->n, sizeof *listing->sorted, compare_names);
}

static void add_names(const struct listing *listing, struct weft_text *out)
{
    for (size_t i = 0; i < listing->n; i++)
        weft_text_addf(out, "%s%s", i > 0 ? ", " : "", listing->sorted[i]);
}

static enum weft_status refuse_name(enum weft_shipped kind, const char *name, const char *folder,
                                    struct weft_error *err)
{
    const char *what = kinds[kind].what;
    struct listing *listing = calloc(1, sizeof *listing);
    struct weft_text names;
    if (listing == NULL) return weft_fail_memory(err, "a list of configs");
    weft_text_init(&names);
    if (folder != NULL) list_names(folder, listing);
    add_names(listing, &names);
    const char *near = weft_field_nearest(name, listing->sorted, listing->n);
    enum weft_status status;
    if (listing->n == 0)
        status = weft_fail(err, WEFT_E_NO_INPUT,
                           "cannot read %s: there is no such file, and no %s is shipped with "
                           "this program",
                           name, what);
    else
        status = weft_fail(err, WEFT_E_NO_INPUT,
                           "cannot read %s: there is no such file, and no shipped %s of that "
                           "name%s%s%s; there are: %s",
                           name, what, near ? "; did you mean " : "", near ? near : "",
                           near ? "?" : "", weft_text_chars(&names));
    weft_text_finish(&names);
    free(listing);
    return status;
}

void weft_shipped_list(enum weft_shipped kind, struct weft_text *out)
{
    char folder[PATH_BYTES];
    struct listing *listing = calloc(1, sizeof *listing);
    if (listing == NULL) {
        out->failed = true;
        return;
    }
    if (find_folder(kind, folder)) list_names(folder, listing);
    add_names(listing, out);
    free(listing);
}

/* Refuses a path that has no model or cluster, with the nearest file of its folder. */
static enum weft_status refuse_path(enum weft_shipped kind, const char *path, bool is_folder,
                                    struct weft_error *err)
{
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
    struct listing *listing = calloc(1, sizeof *listing);
    struct weft_text folder, near;
    if (listing == NULL) return weft_fail_memory(err, "a list of files");
    weft_text_init(&folder);
    weft_text_init(&near);
    weft_text_append(&folder, path, is_folder ? strlen(path) : (size_t)(name - path));
    if (is_folder && name[0] != '\0') weft_text_add(&folder, "/");
    list_names(folder.length > 0 ? weft_text_chars(&folder) : ".", listing);
    char wanted[NAME_BYTES];
    snprintf(wanted, sizeof wanted, "%.*s",
             (int)(has_suffix(name) ? strlen(name) - strlen(suffix_text) : strlen(name)), name);
    const char *found =
        weft_field_nearest(is_folder ? "config" : wanted, listing->sorted, listing->n);
    if (found == NULL && kind == WEFT_SHIPPED_CLUSTERS && is_folder && listing->n > 0)
        found = listing->sorted[0];
    if (found != NULL)
        weft_text_addf(&near, "; did you mean %s%s%s?", weft_text_chars(&folder), found,
                       suffix_text);
    enum weft_status status;
    if (!is_folder)
        status = weft_fail(err, WEFT_E_NO_INPUT, "cannot read %s: there is no such file%s", path,
                           weft_text_chars(&near));
    else if (kind == WEFT_SHIPPED_MODELS)
        status = weft_fail(err, WEFT_E_NO_INPUT,
                           "cannot read %sconfig.json: there is no such file, and a folder of "
                           "Hugging Face has one%s",
                           weft_text_chars(&folder), weft_text_chars(&near));
    else
        status =
            weft_fail(err, WEFT_E_NO_INPUT, "cannot read %s: it is a folder, and a %s is a file%s",
                      path, kinds[kind].what, weft_text_chars(&near));
    weft_text_finish(&folder);
    weft_text_finish(&near);
    free(listing);
    return status;
}

/* A model's folder has a config.json. A run's config is told where it is read. */
static enum weft_status check_path(enum weft_shipped kind, const char *path, struct weft_error *err)
{
    struct stat about;
    char config[PATH_BYTES + 16];
    if (kind == WEFT_SHIPPED_RUNS || strcmp(path, "-") == 0 || *path == '\0' ||
        strlen(path) >= PATH_BYTES)
        return WEFT_OK;
    if (stat(path, &about) != 0)
        return errno == ENOENT ? refuse_path(kind, path, false, err) : WEFT_OK;
    if (!S_ISDIR(about.st_mode)) return WEFT_OK;
    snprintf(config, sizeof config, "%s/config.json", path);
    if (kind == WEFT_SHIPPED_MODELS && access(config, F_OK) == 0) return WEFT_OK;
    return refuse_path(kind, path, true, err);
}

enum weft_status weft_shipped_find(enum weft_shipped kind, const char *path, struct weft_text *out,
                                   struct weft_error *err)
{
    char folder[PATH_BYTES], shipped[2 * PATH_BYTES];
    const bool is_path = strchr(path, '/') != NULL || has_suffix(path) || strcmp(path, "-") == 0 ||
                         *path == '\0' || strlen(path) >= NAME_BYTES;
    if (is_path || access(path, F_OK) == 0) {
        WEFT_TRY(check_path(kind, path, err));
        weft_text_add(out, path);
        return WEFT_OK;
    }
    const bool any = find_folder(kind, folder);
    if (any) {
        snprintf(shipped, sizeof shipped, "%s/%s%s", folder, path, suffix_text);
        if (access(shipped, F_OK) == 0) {
            weft_text_add(out, shipped);
            return WEFT_OK;
        }
    }
    return refuse_name(kind, path, any ? folder : NULL, err);
}
