/* SPDX-License-Identifier: Apache-2.0 */
/* The key plan.recompute: levels of recomputation that layers may have. */
#ifndef WEFT_SPEC_CONFIG_RECOMPUTE_H
#define WEFT_SPEC_CONFIG_RECOMPUTE_H

#include "spec/config.h"

/* "if-needed", its default, for a target that recomputes: layers recompute if nothing fits without
 * that. */
bool weft_config_recomputes_if_needed(const struct weft_config *config);

/* Fills the levels of recomputation that each layer can have, with none: plan.recompute "auto". */
void weft_config_restorable(const struct weft_config *config, uint8_t *levels); /* [n_layers] */

#endif
