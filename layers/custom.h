/* A custom layer is anything, by its figures, a sample of seq_len tokens: 0 parameters
 * [parameters] when there are any (planning only). */
#ifndef WEFT_LAYERS_CUSTOM_H
#define WEFT_LAYERS_CUSTOM_H

enum {
    WEFT_CUSTOM_FORWARD_FLOPS, /* number */
    WEFT_CUSTOM_BACKWARD_FLOPS,
    WEFT_CUSTOM_PARAMETERS, /* integer, as what follows, in bytes */
    WEFT_CUSTOM_OUTPUT,
    WEFT_CUSTOM_SAVED,
    WEFT_CUSTOM_TEMPORARY
};

#endif
