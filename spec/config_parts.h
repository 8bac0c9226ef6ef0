/* The steps between the bytes of a config and the config, one file each: load (files and
 * overrides), layers (the "layers" array). For the files of this folder alone. */
#ifndef WEFT_SPEC_CONFIG_PARTS_H
#define WEFT_SPEC_CONFIG_PARTS_H

#include "base/json/json.h"
#include "spec/config.h"
#include "spec/field.h"
#include "spec/kind.h"

/* A JSON object and where it stands, for findings: ("run.json", "$.model") or ("gpt2.json", "$").
 */
struct weft_section {
    const char *source, *path;
    const struct weft_json_value *root; /* with overrides; NULL: there is no object and no path */
    struct weft_json *written;          /* the file as it is; NULL: it is the run's */
    struct weft_json *edited;           /* with overrides; NULL: there are none */
};

struct weft_sections {
    struct weft_section run, model, cluster;
};

/* Parses, reads the files of model and cluster, applies the overrides. Strings go to the pool;
 * the caller calls weft_sections_finish whatever the status. Errors as weft_config_read. */
WEFT_MUST_USE enum weft_status weft_sections_load(const struct weft_config_input *input,
                                                  struct weft_pool *pool,
                                                  struct weft_sections *sections,
                                                  struct weft_error *err);
void weft_sections_finish(struct weft_sections *sections);

/* What the keys of tiers say that does not go together (config_tiers.c). */
void weft_config_check_tiers(const struct weft_section *run, const struct weft_section *cluster,
                             const struct weft_config *config, struct weft_findings *findings);

/* `path` as seen from `directory` ("" or "." is the working directory). NULL when memory runs
 * out; owned by the pool. */
WEFT_MUST_USE char *weft_path_join(struct weft_pool *pool, const char *directory, const char *path);
/* The same, and never relative, so that it means the same when written into another directory. */
WEFT_MUST_USE char *weft_path_absolute(struct weft_pool *pool, const char *directory,
                                       const char *path);

/* One override, "train.optimizer.lr=1e-3", split; owned by the pool. */
enum { WEFT_OVERRIDE_SEGMENTS = 12 };
struct weft_override {
    const char *text; /* as given, for messages */
    const char *segments[WEFT_OVERRIDE_SEGMENTS];
    int n_segments;
    const char *value;
};

/* Splits and checks that the field tables, or one of the kinds (may be NULL), have such a key.
 * WEFT_E_USAGE. */
WEFT_MUST_USE enum weft_status weft_override_parse(const char *text, const struct weft_kinds *kinds,
                                                   struct weft_pool *pool,
                                                   struct weft_override *out,
                                                   struct weft_error *err);
/* Gives a copy of the document with the value set at segments[from...]. */
WEFT_MUST_USE enum weft_status weft_override_apply(const struct weft_override *override, int from,
                                                   const struct weft_json *document,
                                                   struct weft_json **out, struct weft_error *err);

/* Decodes the model section into *layers (in the pool), repeated and with ties resolved. What is
 * wrong is added to the findings; then *layers may be incomplete and must not be used. */
void weft_layers_decode(const struct weft_section *section, const struct weft_kinds *kinds,
                        struct weft_pool *pool, struct weft_layer **layers, int32_t *n_layers,
                        struct weft_findings *findings);

#endif
