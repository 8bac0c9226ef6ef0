/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes of blocks next to the usual one, which config and profile give. */
#ifndef WEFT_SPEC_BLOCK_SCALE_H
#define WEFT_SPEC_BLOCK_SCALE_H

enum weft_block_scale {
    WEFT_BLOCKS_USUAL,
    WEFT_BLOCKS_HALF,
    WEFT_BLOCKS_TWICE,
    WEFT_BLOCKS_WHOLE, /* a unit is one block */
    WEFT_BLOCKS_AUTO,  /* the fastest of these; no size of its own */
    WEFT_BLOCK_SCALE_COUNT
};

#endif
