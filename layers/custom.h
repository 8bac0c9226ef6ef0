/* SPDX-License-Identifier: Apache-2.0 */
/* A custom layer is described by its figures alone, each for one sample of seq_len tokens. Tensor 0
 * is parameters [parameters], if there are any. Planning only. */
#ifndef WEFT_LAYERS_CUSTOM_H
#define WEFT_LAYERS_CUSTOM_H

enum {
    WEFT_CUSTOM_FORWARD_FLOPS, /* number */
    WEFT_CUSTOM_BACKWARD_FLOPS,
    WEFT_CUSTOM_PARAMETERS, /* integer */
    WEFT_CUSTOM_FROZEN,     /* integer; the next keys are bytes */
    WEFT_CUSTOM_OUTPUT,
    WEFT_CUSTOM_SAVED,
    WEFT_CUSTOM_TEMPORARY,
    WEFT_CUSTOM_FREED,
    WEFT_CUSTOM_KEPT,
    WEFT_CUSTOM_RESTORED,
    WEFT_CUSTOM_FREES_INPUT,  /* flag */
    WEFT_CUSTOM_READS_OUTPUT, /* flag */
    WEFT_CUSTOM_TABLE,        /* flag */
    WEFT_CUSTOM_CHECKPOINTS,  /* flag */
    WEFT_CUSTOM_HOST_SYNC     /* flag */
};

#endif
