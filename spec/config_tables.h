/* The field tables of everything that a person writes: the run and its sections, and for every
 * layer type which of the layer keys it has. For the files of this folder alone. */
#ifndef WEFT_SPEC_CONFIG_TABLES_H
#define WEFT_SPEC_CONFIG_TABLES_H

#include <stdint.h>

#include "spec/config.h"
#include "spec/field.h"
#include "spec/model.h"

/* The top level of a config; model and cluster are sections. */
struct weft_run {
    int64_t version;
    struct weft_train train;
    struct weft_plan_options plan;
};

/* One entry of "layers", before it is repeated and its tie is found. */
struct weft_layer_entry {
    struct weft_layer layer;
    int type;        /* enum weft_layer_type */
    int64_t repeat;  /* copies; "{i}" in the name counts them from 0 */
    const char *tie; /* name of the embedding layer, or NULL */
    int64_t classes; /* of a classifier */
};

extern const struct weft_field_table weft_run_table;
extern const struct weft_field_table weft_model_table;
extern const struct weft_field_table weft_layer_table;
extern const struct weft_field_table weft_cluster_table;
extern const struct weft_field_table weft_train_table;
extern const struct weft_field_table weft_plan_table;

enum { WEFT_LAYER_KEYS = 8 };

/* The keys of one layer type beside name, type, repeat and frozen; NULL-terminated. */
struct weft_layer_keys {
    const char *required[WEFT_LAYER_KEYS];
    const char *optional[WEFT_LAYER_KEYS];
    const char *text; /* what the layer is, one line */
};

extern const struct weft_layer_keys weft_layer_type_keys[WEFT_LAYER_TYPE_COUNT];

/* Those that every type has; NULL-terminated. */
extern const char *const weft_layer_common_keys[];

#endif
