/* SPDX-License-Identifier: Apache-2.0 */
/* A category names the purpose of bytes of memory. */
#ifndef WEFT_MEMORY_MODEL_CATEGORY_H
#define WEFT_MEMORY_MODEL_CATEGORY_H

#include <stdbool.h>

/* The order of every listing. */
#define WEFT_CATEGORY_MAP(X)                                                                       \
    X(SHARDED_PARAMETERS, "sharded_parameters", "sharded parameters")                              \
    X(GATHERED_PARAMETERS, "gathered_parameters", "gathered parameters")                           \
    X(SHARDED_GRADIENTS, "sharded_gradients", "sharded gradients")                                 \
    X(FULL_GRADIENTS, "full_gradients", "full gradients")                                          \
    X(OPTIMIZER_STATE, "optimizer_state", "optimizer state")                                       \
    X(ACTIVATIONS, "activations", "activations")                                                   \
    X(COMMUNICATION, "communication", "communication")                                             \
    X(TEMPORARY, "temporary", "temporary")                                                         \
    X(STAGING, "staging", "staging")                                                               \
    X(BASE, "base", "base")                                                                        \
    X(CHECKPOINTS, "checkpoints", "checkpoints")

enum weft_category {
#define WEFT_CATEGORY_ENUMERATOR(name, key, text) WEFT_CATEGORY_##name,
    WEFT_CATEGORY_MAP(WEFT_CATEGORY_ENUMERATOR)
#undef WEFT_CATEGORY_ENUMERATOR
        WEFT_CATEGORY_COUNT
};
/* The categories before this one are of the device's memory, and of other tiers. Checkpoints are in
 * host memory alone. */
enum { WEFT_CATEGORY_OF_DEVICE = WEFT_CATEGORY_CHECKPOINTS };
const char *weft_category_key(enum weft_category category);
const char *weft_category_text(enum weft_category category);
bool weft_category_read(const char *key, enum weft_category *out);

/* True for device memory outside the arena: base and a ring. */
static inline bool weft_category_is_outside(enum weft_category category)
{
    return category == WEFT_CATEGORY_BASE || category == WEFT_CATEGORY_STAGING;
}

#endif
