/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors in Hugging Face's files. A family has one row a tensor: its name in the layer, its name
 * in the files, and whether it is transposed there. runtime/checkpoint/hub_map.h joins the rows
 * with a model. */
#ifndef WEFT_SPEC_HUB_TENSORS_H
#define WEFT_SPEC_HUB_TENSORS_H

#include <stdbool.h>

/* The layers of a family: an embedding, blocks, a norm and a head; for masked tokens also token
 * types and a norm before the blocks, and a product, an activation and a norm before the head. For
 * images a product of patches is the embedding, and positions follow (layers.h). Files have the
 * family's prefix on all names except those from the head's on. Base models were saved without it.
 */
enum weft_hub_place {
    WEFT_HUB_IN_EMBEDDING,
    WEFT_HUB_IN_TYPES,
    WEFT_HUB_IN_POSITIONS,
    WEFT_HUB_IN_EMBEDDING_NORM,
    WEFT_HUB_IN_BLOCK,
    WEFT_HUB_IN_NORM,
    WEFT_HUB_IN_HEAD,
    WEFT_HUB_IN_DENSE,
    WEFT_HUB_IN_ACTIVATION,
    WEFT_HUB_IN_HEAD_NORM,
    WEFT_HUB_PLACES
};

enum weft_hub_form {
    WEFT_HUB_AS_IS,
    WEFT_HUB_TRANSPOSED, /* [inputs, outputs] in the files */
    WEFT_HUB_BATCHED,    /* [1, rows, columns] in the files; a vector is [1, 1, columns] */
    WEFT_HUB_PATCHES,    /* [outputs, channels, side, side] in the files; the layer has "patch" */
    WEFT_HUB_LEFT_OUT    /* a parameter of a head that the family's class does not have */
};

struct weft_hub_row {
    enum weft_hub_place place;
    const char *own; /* within its layer: a tensor, otherwise a part of one (spec/kind.h). NULL: a
                        buffer of older files that is no parameter, or LEFT_OUT */
    const char *hub; /* in the files; "{i}" is the number of the block, and NULL ends the rows */
    enum weft_hub_form form;
};
extern const struct weft_hub_row weft_hub_gpt2_rows[], weft_hub_llama_rows[], weft_hub_phi3_rows[],
    weft_hub_olmo2_rows[], weft_hub_gemma_rows[], weft_hub_bert_rows[], weft_hub_vit_rows[];

#endif
