/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/folder.h"

#include <glob.h>
#include <string.h>

enum { MOST_LEVELS = 4, MOST_LOOKED_AT = 256 };

/* The suffix of a file's name with its dot; "" without one. */
static const char *suffix_of(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
    const char *dot = strrchr(name, '.');
    return dot != NULL && dot != name ? dot : "";
}

/* The path is from glob with GLOB_MARK. */
static bool is_folder(const char *path)
{
    return path[strlen(path) - 1] == '/';
}

static size_t count_suffix(const glob_t *found, const char *suffix)
{
    size_t n = 0;
    for (size_t i = 0; i < found->gl_pathc; i++)
        n += !is_folder(found->gl_pathv[i]) && strcmp(suffix_of(found->gl_pathv[i]), suffix) == 0;
    return n;
}

/* The suffix that most files have. Files without one need a pattern that matches all paths, so they
 * count only if all are such files. NULL if no suffix will do. */
static const char *find_suffix(const glob_t *found)
{
    const char *usual = NULL;
    size_t most = 0;
    for (size_t i = 0; i < found->gl_pathc && i < MOST_LOOKED_AT; i++) {
        const char *suffix = suffix_of(found->gl_pathv[i]);
        if (is_folder(found->gl_pathv[i])) continue;
        if (usual != NULL && strcmp(usual, suffix) == 0) continue;
        const size_t n = count_suffix(found, suffix);
        if (n <= most || (suffix[0] == '\0' && n < found->gl_pathc)) continue;
        usual = suffix;
        most = n;
    }
    return usual;
}

/* Appends a path as a pattern that matches itself alone. */
static void add_literal(const char *path, struct weft_text *out)
{
    for (; *path != '\0'; path++) {
        if (strchr("*?[\\", *path) != NULL) weft_text_add(out, "\\");
        weft_text_append(out, path, 1);
    }
}

bool weft_folder_pattern(const char *folder, struct weft_text *out)
{
    struct weft_text pattern;
    size_t length = strlen(folder);
    bool found_one = false;
    weft_text_init(&pattern);
    add_literal(folder, &pattern);
    for (int level = 0; level < MOST_LEVELS && !found_one; level++) {
        glob_t found;
        const bool has_slash = level == 0 && length > 0 && folder[length - 1] == '/';
        weft_text_add(&pattern, has_slash ? "*" : "/*");
        if (!weft_text_ok(&pattern) ||
            glob(weft_text_chars(&pattern), GLOB_MARK, NULL, &found) != 0)
            break;
        const char *suffix = find_suffix(&found);
        found_one = suffix != NULL;
        if (found_one) {
            weft_text_add(out, weft_text_chars(&pattern));
            add_literal(suffix, out);
        }
        globfree(&found);
    }
    weft_text_finish(&pattern);
    return found_one;
}
