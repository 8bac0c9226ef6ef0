/* Initial values of parameters, each a function of (seed, tensor's name, element). The host makes
 * them for every back end, so they are the same. */
#ifndef WEFT_RUNTIME_NN_INITIAL_H
#define WEFT_RUNTIME_NN_INITIAL_H

#include "runtime/nn/units.h"

/* Writes to `out` [initial->n] in host memory; initial->to is ignored. */
void weft_nn_initial_values(const struct weft_nn_initial *initial, float *out);

#endif
