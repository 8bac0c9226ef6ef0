/* SPDX-License-Identifier: Apache-2.0 */
/* The options of measuring. */
#ifndef WEFT_RUNTIME_MEASURE_OPTIONS_H
#define WEFT_RUNTIME_MEASURE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/watch.h"
#include "runtime/comm/comm.h"
#include "runtime/device/device.h"
#include "runtime/nn/nn.h"
#include "spec/config.h"

struct weft_profile;

struct weft_measure_options {
    const struct weft_config *config;
    struct weft_device *device; /* wall clock */
    struct weft_comm *comm;     /* without an arena: measuring maps its own */
    struct weft_nn *nn;
    int32_t threads;          /* of a rank, as given to `nn`; 0: unknown */
    int32_t rounds;           /* medians are taken over rounds; 0: default */
    bool contention;          /* also measure rates of compute and communication while both run */
    struct weft_watch *watch; /* or NULL */
    /* A profile of another micro-batch, measured here: its curves stay, and layers, agreement and
     * base are measured. NULL: all is measured. */
    const struct weft_profile *known;
};

#endif
