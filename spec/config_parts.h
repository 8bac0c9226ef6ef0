/* SPDX-License-Identifier: Apache-2.0 */
/* Steps from the bytes of a config to the config, one file each: load (files and overrides) and
 * layers (the "layers" array). Private to this folder. */
#ifndef WEFT_SPEC_CONFIG_PARTS_H
#define WEFT_SPEC_CONFIG_PARTS_H

#include "base/json/json.h"
#include "spec/config.h"
#include "spec/field.h"
#include "spec/hub_model.h"
#include "spec/kind.h"

/* A JSON object with its place, for findings: ("run.json", "$.model") or ("gpt2.json", "$"). */
struct weft_section {
    const char *source, *path;
    const struct weft_json_value *root; /* with overrides; NULL: neither object nor path */
    struct weft_json *written; /* the file without overrides; NULL: it is in the run's file */
    struct weft_json *edited;  /* with overrides; NULL: none */
    struct weft_hub_model hub; /* of a converted file: hub.section is the section, and `written`
                                  what the user wrote */
};

struct weft_sections {
    struct weft_section run, model, cluster;
};

/* Parses, reads the files of model and cluster, and applies the overrides. The pool owns strings.
 * Call weft_sections_finish for any status. Fails like weft_config_read. */
WEFT_MUST_USE enum weft_status weft_sections_load(const struct weft_config_input *input,
                                                  struct weft_pool *pool,
                                                  struct weft_sections *sections,
                                                  struct weft_error *err);
void weft_sections_finish(struct weft_sections *sections);

/* Adds findings for contradictory keys of tiers (config_tiers.c). */
void weft_config_check_tiers(const struct weft_section *run, const struct weft_section *cluster,
                             const struct weft_config *config, struct weft_findings *findings);

/* Finds the split of the batch, for a config with its cluster (config_batch.c). */
void weft_config_take_batch(struct weft_config *config, struct weft_findings *findings);

/* Hashes the plan's inputs (config.h) into config->hash. */
WEFT_MUST_USE enum weft_status weft_config_hash_inputs(struct weft_config *config,
                                                       struct weft_error *err);

/* Fills config->recomputes from plan.recompute, for a config with its model (config_recompute.c).
 */
void weft_config_take_recompute(struct weft_config *config, struct weft_findings *findings);

/* `path` relative to `directory` ("" or ".": the working directory), as an absolute path, which may
 * be written into another directory. The pool owns it; NULL without memory. */
WEFT_MUST_USE char *weft_path_absolute(struct weft_pool *pool, const char *directory,
                                       const char *path);

/* One override, "train.optimizer.lr=1e-3", in parts. The pool owns the strings. */
enum { WEFT_OVERRIDE_SEGMENTS = 12 };
struct weft_override {
    const char *text; /* as given, for messages */
    const char *segments[WEFT_OVERRIDE_SEGMENTS];
    int n_segments;
    int unknown; /* segment that no type of layers has as a key; 0: none */
    const char *value;
};

/* Splits an override, and checks that the field tables or one of the kinds (may be NULL) have its
 * key. WEFT_E_USAGE otherwise; but an unknown key of a layer may be that of a kind of the model. */
WEFT_MUST_USE enum weft_status weft_override_parse(const char *text, const struct weft_kinds *kinds,
                                                   struct weft_pool *pool,
                                                   struct weft_override *out,
                                                   struct weft_error *err);
/* Checks an unknown key of a layer: a kind of the model (may be NULL) must have it. */
WEFT_MUST_USE enum weft_status weft_override_check(const struct weft_override *override,
                                                   const struct weft_json_value *model,
                                                   const struct weft_kinds *kinds,
                                                   struct weft_pool *pool, struct weft_error *err);
/* Copies the document with the value set at segments[from...]. */
WEFT_MUST_USE enum weft_status weft_override_apply(const struct weft_override *override, int from,
                                                   const struct weft_json *document,
                                                   struct weft_json **out, struct weft_error *err);

/* Writes "kinds" into the open object of a model, if a layer has a kind of the config's own. */
void weft_kinds_encode(const struct weft_model *model, struct weft_json_writer *writer);

/* Decodes the model section into *layers in the pool, repeated and with ties resolved. Faults
 * become findings; then *layers may be incomplete and must not be used. */
void weft_layers_decode(const struct weft_section *section, const struct weft_kinds *kinds,
                        struct weft_pool *pool, struct weft_layer **layers, int32_t *n_layers,
                        struct weft_findings *findings);

#endif
