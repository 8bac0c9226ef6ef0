/* From a config's bytes to its sections: files read, overrides applied, nothing decoded. */
#include <string.h>
#include <unistd.h>

#include "spec/config_parts.h"

char *weft_path_join(struct weft_pool *pool, const char *directory, const char *path)
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
    char *joined = weft_path_join(pool, directory, path);
    if (joined == NULL || joined[0] == '/') return joined;
    /* Where the working directory has no name, the relative path is all there is. */
    if (getcwd(working, sizeof working) == NULL) return joined;
    return weft_path_join(pool, working, joined);
}

/* A member of the run as a document of its own, from the file that it names or from itself. */
static enum weft_status load_section(const struct weft_config_input *input, const char *name,
                                     const struct weft_json *run, struct weft_pool *pool,
                                     struct weft_section *out, struct weft_error *err)
{
    const struct weft_json_value *value = weft_json_member(weft_json_root(run), name);
    const char *file;
    out->source = input->source;
    out->path = weft_pool_format(pool, "$.%s", name);
    if (out->path == NULL) return weft_fail_memory(err, "a config");
    if (weft_json_string(value, &file)) {
        struct weft_error error = {0};
        char *path = weft_path_join(pool, input->directory, file);
        if (path == NULL) return weft_fail_memory(err, "a config");
        enum weft_status status = weft_json_read(path, &out->document, &error);
        if (status != WEFT_OK) {
            return weft_fail(err, status, "%s: %s: %s", input->source, out->path, error.text);
        }
        out->source = path;
        out->path = "$";
        return WEFT_OK;
    }
    if (value == NULL || weft_json_kind(value) != WEFT_JSON_OBJECT) return WEFT_OK;
    struct weft_text text;
    struct weft_json_writer writer;
    weft_text_init(&text);
    weft_json_writer_init(&writer, &text, 0);
    weft_json_add_value(&writer, value);
    enum weft_status status = weft_text_ok(&text)
                                  ? weft_json_parse(weft_text_chars(&text), text.length,
                                                    input->source, &out->document, err)
                                  : weft_fail_memory(err, "a config");
    weft_text_finish(&text);
    return status;
}

/* The section that the override's path leads into; NULL for the run itself. */
static struct weft_section *section_of(const struct weft_override *override,
                                       struct weft_sections *sections)
{
    if (override->n_segments < 2) return NULL;
    if (strcmp(override->segments[0], "model") == 0) return &sections->model;
    if (strcmp(override->segments[0], "cluster") == 0) return &sections->cluster;
    return NULL;
}

static enum weft_status apply(const struct weft_override *overrides, int32_t n, bool inside,
                              struct weft_sections *sections, struct weft_error *err)
{
    for (int32_t i = 0; i < n; i++) {
        struct weft_section *section = section_of(&overrides[i], sections);
        if ((section != NULL) != inside) continue;
        if (section == NULL) {
            WEFT_TRY(weft_override_apply(&overrides[i], 0, &sections->run.document, err));
        } else if (section->document != NULL) {
            WEFT_TRY(weft_override_apply(&overrides[i], 1, &section->document, err));
        }
        /* A section that is neither object nor path will be a finding; nothing can be set in it. */
    }
    return WEFT_OK;
}

enum weft_status weft_sections_load(const struct weft_config_input *input, struct weft_pool *pool,
                                    struct weft_sections *sections, struct weft_error *err)
{
    *sections = (struct weft_sections){.run = {NULL, input->source, "$"}};
    int32_t n = input->n_overrides;
    struct weft_override *overrides = weft_pool_array(pool, (size_t)n, sizeof *overrides);
    if (overrides == NULL) return weft_fail_memory(err, "overrides");
    for (int32_t i = 0; i < n; i++) {
        WEFT_TRY(weft_override_parse(input->overrides[i], input->kinds, pool, &overrides[i], err));
    }
    WEFT_TRY(
        weft_json_parse(input->bytes, input->length, input->source, &sections->run.document, err));
    if (weft_json_kind(weft_json_root(sections->run.document)) != WEFT_JSON_OBJECT) return WEFT_OK;
    WEFT_TRY(apply(overrides, n, false, sections, err));
    WEFT_TRY(load_section(input, "model", sections->run.document, pool, &sections->model, err));
    WEFT_TRY(load_section(input, "cluster", sections->run.document, pool, &sections->cluster, err));
    return apply(overrides, n, true, sections, err);
}

void weft_sections_finish(struct weft_sections *sections)
{
    weft_json_destroy(sections->run.document);
    weft_json_destroy(sections->model.document);
    weft_json_destroy(sections->cluster.document);
    *sections = (struct weft_sections){0};
}
