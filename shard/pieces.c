/* SPDX-License-Identifier: Apache-2.0 */
#include "shard/shard.h"

bool weft_piece_next(const struct weft_shards *shards, const struct weft_model *model, int32_t unit,
                     int64_t rank, struct weft_piece_cursor *cursor, struct weft_piece *out)
{
    const struct weft_unit *u = &shards->units[unit];
    int64_t block_elements = shards->ranks * u->slice_elements;
    for (; cursor->block < u->n_blocks; cursor->block++) {
        int64_t begin = cursor->block * block_elements;
        int64_t end = begin + block_elements;
        int64_t owned_begin = 0; /* the block's first element in the buffer that `rank` keeps */
        if (rank >= 0) {
            begin += rank * u->slice_elements;
            end = begin + u->slice_elements;
            owned_begin = begin - cursor->block * u->slice_elements;
        }
        if (cursor->element < begin) cursor->element = begin;
        for (; cursor->tensor < u->n_tensors; cursor->tensor++) {
            int64_t tensor_begin = u->offsets[cursor->tensor];
            int64_t tensor_end = tensor_begin + model->tensors[u->tensors[cursor->tensor]].elements;
            if (tensor_end > cursor->element) break;
        }
        if (cursor->tensor == u->n_tensors) return false;
        int32_t tensor = u->tensors[cursor->tensor];
        int64_t tensor_begin = u->offsets[cursor->tensor];
        int64_t tensor_end = tensor_begin + model->tensors[tensor].elements;
        int64_t piece_begin = tensor_begin > cursor->element ? tensor_begin : cursor->element;
        if (piece_begin >= end) continue;
        int64_t piece_end = tensor_end < end ? tensor_end : end;
        *out = (struct weft_piece){.tensor = tensor,
                                   .tensor_begin = piece_begin - tensor_begin,
                                   .unit_begin = piece_begin,
                                   .shard_begin = piece_begin - owned_begin,
                                   .count = piece_end - piece_begin};
        cursor->element = piece_end;
        return true;
    }
    return false;
}
