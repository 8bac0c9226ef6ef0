/* Parses the JSON header of a safetensors file by a fixed grammar: no tree, no recursion, exact
 * numbers. Private to safetensors.c. */
#ifndef WEFT_RUNTIME_CHECKPOINT_SAFETENSORS_HEADER_H
#define WEFT_RUNTIME_CHECKPOINT_SAFETENSORS_HEADER_H

#include "runtime/checkpoint/safetensors.h"

/* Parses `length` bytes of header into out->tensors (in order of the header, begin relative to the
 * data) and out->metadata; out->path is set. Checks everything within single entries. WEFT_E_DATA
 * names path, byte and tensor; WEFT_E_SYSTEM. */
WEFT_MUST_USE enum weft_status weft_safetensors_header(const char *bytes, size_t length,
                                                       struct weft_safetensors *out,
                                                       struct weft_error *err);

#endif
