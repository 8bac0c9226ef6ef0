/* SPDX-License-Identifier: Apache-2.0 */
/* An embedding looks up tokens. Tensors: 0 tokens [vocab, hidden]; 1 positions [positions, hidden],
 * added if the layer has any. Backward reads the tokens, unless the layer is frozen. */
#ifndef WEFT_LAYERS_EMBEDDING_H
#define WEFT_LAYERS_EMBEDDING_H

#include "spec/layer.h"

enum {
    WEFT_EMBEDDING_POSITIONS, /* 0: no table of positions */
    WEFT_EMBEDDING_SCALE      /* a number; 0: 1 */
};

static inline int64_t weft_embedding_positions(const struct weft_layer *layer)
{
    return layer->keys[WEFT_EMBEDDING_POSITIONS].integer;
}

#endif
