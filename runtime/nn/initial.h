/* First values of parameters, each a function of (seed, tensor's name, element): made by the host
 * for every back end, so that they are the same. */
#ifndef WEFT_RUNTIME_NN_INITIAL_H
#define WEFT_RUNTIME_NN_INITIAL_H

#include "runtime/nn/units.h"

/* To `out` [initial->n], which is the host's; initial->to is not looked at. */
void weft_nn_initial_values(const struct weft_nn_initial *initial, float *out);

#endif
