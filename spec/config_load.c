/* SPDX-License-Identifier: Apache-2.0 */
/* Turns a config's bytes into sections: reads files and applies overrides, without decoding. */
#include <string.h>
#include <unistd.h>

#include "spec/config_parts.h"

/* `path` relative to `directory` ("" or ".": the working directory). The pool owns it; NULL without
 * memory. */
static char *join_path(struct weft_pool *pool, const char *directory, const char *path)
{
    while (strncmp(path, "./", 2) == 0)
        path += 2;
    if (path[0] == '/' || directory == NULL || directory[0] == '\0' ||
        strcmp(directory, ".") == 0) {
        return weft_pool_string(pool, path);
    }
    const char *slash = directory[strlen(directory) - 1] == '/' ? "" : "/";
    return weft_pool_format(pool, "%s%s%s", directory, slash, path);
}

char *weft_path_absolute(struct weft_pool *pool, const char *directory, const char *path)
{
    enum { PATH_BYTES = 4096 };
    char working[PATH_BYTES];
    char *joined = join_path(pool, directory, path);
    if (joined == NULL || joined[0] == '/') return joined;
    /* If the working directory has no name, the relative path remains. */
    if (getcwd(working, sizeof working) == NULL) return joined;
    return join_path(pool, working, joined);
}

/* The path of a section's file. A model's may be a folder of Hugging Face. NULL without memory. */
static char *find_file(struct weft_pool *pool, const char *directory, const char *name,
                       const char *file)
{
    struct weft_text text;
    char *path = join_path(pool, directory, file);
    if (path == NULL || strcmp(name, "model") != 0) return path;
    weft_text_init(&text);
    weft_hub_model_path(path, &text);
    path = weft_text_ok(&text) ? weft_pool_string(pool, weft_text_chars(&text)) : NULL;
    weft_text_finish(&text);
    return path;
}

/* Finds the section's object: in a file that the run names, or in the run. */
static enum weft_status load_section(const struct weft_config_input *input, const char *name,
                                     const struct weft_section *run, struct weft_pool *pool,
                                     struct weft_section *out, struct weft_error *err)
{
    const struct weft_json_value *value = weft_json_member(run->root, name);
    const char *file;
    out->source = input->source;
    out->path = weft_pool_format(pool, "$.%s", name);
    if (out->path == NULL) return weft_fail_memory(err, "a config");
    if (!weft_json_string(value, &file)) return WEFT_OK;
    struct weft_error error = {0};
    char *path = find_file(pool, input->directory, name, file);
    if (path == NULL) return weft_fail_memory(err, "a config");
    enum weft_status status = weft_json_read(path, &out->written, &error);
    if (status != WEFT_OK)
        return weft_fail(err, status, "%s: %s: %s", input->source, out->path, error.text);
    out->source = path;
    out->path = "$";
    if (strcmp(name, "model") == 0 && weft_hub_model_is(weft_json_root(out->written)))
        return weft_hub_model_convert(path, out->written, pool, &out->hub, err);
    return WEFT_OK;
}

static const struct weft_json *document_of(const struct weft_section *section)
{
    if (section->edited != NULL) return section->edited;
    return section->hub.section != NULL ? section->hub.section : section->written;
}

static enum weft_status apply_one(const struct weft_override *override, int from,
                                  struct weft_section *section, struct weft_error *err)
{
    struct weft_json *edited = NULL;
    WEFT_TRY(weft_override_apply(override, from, document_of(section), &edited, err));
    weft_json_destroy(section->edited);
    section->edited = edited;
    return WEFT_OK;
}

/* The section of the override's path; NULL: the run itself. */
static struct weft_section *section_of(const struct weft_override *override,
                                       struct weft_sections *sections)
{
    if (override->n_segments < 2) return NULL;
    if (strcmp(override->segments[0], "model") == 0) return &sections->model;
    if (strcmp(override->segments[0], "cluster") == 0) return &sections->cluster;
    return NULL;
}

static bool is_object_in(const struct weft_section *run, const char *name)
{
    const struct weft_json_value *value = weft_json_member(weft_json_root(document_of(run)), name);
    return value != NULL && weft_json_kind(value) == WEFT_JSON_OBJECT;
}

static void find_root(const struct weft_sections *sections, const char *name,
                      struct weft_section *section)
{
    const struct weft_section *run = &sections->run;
    if (section->written != NULL)
        section->root = weft_json_root(document_of(section));
    else if (is_object_in(run, name))
        section->root = weft_json_member(weft_json_root(document_of(run)), name);
}

static enum weft_status apply_overrides(const struct weft_config_input *input,
                                        const struct weft_override *overrides, bool inside,
                                        struct weft_pool *pool, struct weft_sections *sections,
                                        struct weft_error *err)
{
    for (int32_t i = 0; i < input->n_overrides; i++) {
        struct weft_section *section = section_of(&overrides[i], sections);
        if ((section != NULL) != inside) continue;
        struct weft_section model = sections->model;
        find_root(sections, "model", &model);
        WEFT_TRY(weft_override_check(&overrides[i], model.root, input->kinds, pool, err));
        if (section != NULL && section->written != NULL)
            WEFT_TRY(apply_one(&overrides[i], 1, section, err));
        else if (section == NULL || is_object_in(&sections->run, overrides[i].segments[0]))
            WEFT_TRY(apply_one(&overrides[i], 0, &sections->run, err));
        /* A section that is neither object nor path becomes a finding; nothing can be set in it. */
    }
    return WEFT_OK;
}

enum weft_status weft_sections_load(const struct weft_config_input *input, struct weft_pool *pool,
                                    struct weft_sections *sections, struct weft_error *err)
{
    struct weft_section *run = &sections->run;
    *sections = (struct weft_sections){.run = {.source = input->source, .path = "$"}};
    int32_t n = input->n_overrides;
    struct weft_override *overrides = weft_pool_array(pool, (size_t)n, sizeof *overrides);
    if (overrides == NULL) return weft_fail_memory(err, "overrides");
    for (int32_t i = 0; i < n; i++) {
        WEFT_TRY(weft_override_parse(input->overrides[i], input->kinds, pool, &overrides[i], err));
    }
    WEFT_TRY(weft_json_parse(input->bytes, input->length, input->source, &run->written, err));
    run->root = weft_json_root(run->written);
    if (weft_json_kind(run->root) != WEFT_JSON_OBJECT) return WEFT_OK;
    WEFT_TRY(apply_overrides(input, overrides, false, pool, sections, err));
    run->root = weft_json_root(document_of(run));
    WEFT_TRY(load_section(input, "model", run, pool, &sections->model, err));
    WEFT_TRY(load_section(input, "cluster", run, pool, &sections->cluster, err));
    WEFT_TRY(apply_overrides(input, overrides, true, pool, sections, err));
    run->root = weft_json_root(document_of(run));
    find_root(sections, "model", &sections->model);
    find_root(sections, "cluster", &sections->cluster);
    return WEFT_OK;
}

void weft_sections_finish(struct weft_sections *sections)
{
    struct weft_section *const all[] = {&sections->run, &sections->model, &sections->cluster};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        weft_json_destroy(all[i]->written);
        weft_json_destroy(all[i]->edited);
        weft_json_destroy(all[i]->hub.section);
    }
    *sections = (struct weft_sections){0};
}
