/* SPDX-License-Identifier: Apache-2.0 */
/* The field tables of a run and its sections. Private to this folder. */
#ifndef WEFT_SPEC_CONFIG_TABLES_H
#define WEFT_SPEC_CONFIG_TABLES_H

#include <stdint.h>

#include "spec/config.h"
#include "spec/field.h"

/* The top level of a config; model and cluster are sections. */
struct weft_run {
    int64_t version;
    struct weft_train train;
    struct weft_plan_options plan;
};

extern const struct weft_field_table weft_run_table;
extern const struct weft_field_table weft_model_table;
/* Keys of every layer; spec/layer_table.h adds those of its kind. */
extern const struct weft_field_table weft_layer_table;
extern const struct weft_field_table weft_cluster_table;
extern const struct weft_field_table weft_train_table;
extern const struct weft_field_table weft_plan_table;
/* In config_tiers.c. */
extern const struct weft_field_table weft_host_table, weft_disk_table, weft_offload_table;

#endif
