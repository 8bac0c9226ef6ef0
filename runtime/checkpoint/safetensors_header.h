/* The JSON header of a safetensors file, read by its own fixed grammar: no tree is built, nothing
 * recurses, numbers are exact. Private to safetensors.c. */
#ifndef WEFT_RUNTIME_CHECKPOINT_SAFETENSORS_HEADER_H
#define WEFT_RUNTIME_CHECKPOINT_SAFETENSORS_HEADER_H

#include "runtime/checkpoint/safetensors.h"

/* Reads `length` bytes of header into out->tensors (begin relative to the data, in the header's
 * order) and out->metadata, whose path is set. Checks everything that one entry alone can be wrong
 * in. WEFT_E_DATA naming path, byte and tensor; WEFT_E_SYSTEM. */
WEFT_MUST_USE enum weft_status weft_safetensors_header(const char *bytes, size_t length,
                                                       struct weft_safetensors *out,
                                                       struct weft_error *err);

#endif
