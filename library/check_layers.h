/* Checks of supplied layers: is a backward the derivative of its forward, and do both write what
 * they must and nothing else? In f32, on random numbers, without other ranks. */
#ifndef WEFT_LIBRARY_CHECK_LAYERS_H
#define WEFT_LIBRARY_CHECK_LAYERS_H

#include "base/status.h"
#include "spec/config.h"

/* Every layer of a supplied kind, layers that are alike once: see weft_check_layers in
 * include/weft.h for what is done and said. */
WEFT_MUST_USE enum weft_status weft_config_check_layers(const struct weft_config *config,
                                                        struct weft_error *err);

#endif
