/* SPDX-License-Identifier: Apache-2.0 */
#include "memory_model/vault.h"

#include <string.h>

#include "base/checked.h"
#include "spec/config_batch.h"

/* Bytes of a header that do not depend on an entry: length, braces, and the rounding. */
enum { HEADER_BYTES = 8 + 2 + WEFT_VAULT_PAGE_BYTES };
/* Bytes of an entry: suffix of state and node, keys, dtype, two offsets, brackets and commas. */
enum { ENTRY_BYTES = 160, DIGITS = 21 };
/* Bytes of a manifest: settings and what bits depend on; a layer's keys; a chunk's CRC. */
enum { MANIFEST_BYTES = 64 << 10, LAYER_BYTES = 1 << 10, CRC_BYTES = 12 };
#define CHUNK_BYTES (INT64_C(8) << 20)

/* Adds a * b; INT64_MAX stays. */
static void add_product(int64_t *sum, int64_t a, int64_t b)
{
    int64_t product;
    if (!weft_checked_mul(a, b, &product) || !weft_checked_add(*sum, product, sum))
        *sum = INT64_MAX;
}

static int64_t in_pages(int64_t bytes)
{
    int64_t rounded = INT64_MAX;
    return weft_checked_round_up(bytes, WEFT_VAULT_PAGE_BYTES, &rounded) ? rounded : INT64_MAX;
}

/* Bytes of a name in JSON. */
static int64_t name_bytes(const char *name)
{
    enum { ESCAPED = 6 };
    int64_t n = 0;
    for (const unsigned char *at = (const unsigned char *)name; *at != '\0'; at++)
        n += *at < 0x20 || *at > 0x7e || *at == '"' || *at == '\\' ? ESCAPED : 1;
    return n;
}

/* States of a tensor in the file, on all nodes. */
static int64_t count_states(const struct weft_config *config, const struct weft_tensor *tensor,
                            bool parameters)
{
    int64_t n = 0;
    const uint32_t states = weft_config_states(config);
    if (parameters) return 1;
    for (int s = WEFT_STATE_PARAMETER + 1; s < WEFT_STATE_COUNT; s++)
        n += s != WEFT_STATE_MEAN2 && tensor->trainable && (states >> s & 1u) != 0;
    const int64_t nodes = weft_config_nodes(config);
    return nodes == 1 ? n : nodes * (n + 1);
}

int64_t weft_vault_tensors_bytes(const struct weft_config *config, bool parameters)
{
    const struct weft_model *model = config->model;
    int64_t bytes = HEADER_BYTES;
    for (int32_t t = 0; t < model->n_tensors; t++) {
        const struct weft_tensor *tensor = &model->tensors[t];
        const int64_t n = count_states(config, tensor, parameters);
        int64_t one = ENTRY_BYTES + name_bytes(tensor->name) + (int64_t)DIGITS * tensor->n_dims;
        if (!parameters && weft_config_means(config) && tensor->trainable)
            add_product(&bytes, weft_config_nodes(config), one + (int64_t)sizeof(float));
        add_product(&one, tensor->elements, (int64_t)sizeof(float));
        add_product(&bytes, n, one);
    }
    return in_pages(bytes);
}

int64_t weft_vault_manifest_bytes(const struct weft_config *config)
{
    int64_t bytes = MANIFEST_BYTES;
    add_product(&bytes, config->model->n_layers, LAYER_BYTES);
    for (int parameters = 0; parameters < 2; parameters++)
        add_product(&bytes, weft_vault_tensors_bytes(config, parameters) / CHUNK_BYTES + 1,
                    CRC_BYTES);
    return in_pages(bytes);
}

int64_t weft_config_kept_bytes(const struct weft_config *config)
{
    const int64_t ranks = config->cluster.ranks;
    int64_t bytes = 0;
    if (config->train.checkpoint.host == 0) return 0;
    add_product(&bytes, WEFT_VAULT_GENERATIONS, weft_vault_tensors_bytes(config, true));
    add_product(&bytes, WEFT_VAULT_GENERATIONS, weft_vault_tensors_bytes(config, false));
    add_product(&bytes, WEFT_VAULT_GENERATIONS, weft_vault_manifest_bytes(config));
    return in_pages(bytes / ranks + (bytes % ranks != 0));
}
