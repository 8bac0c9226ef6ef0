/* SPDX-License-Identifier: Apache-2.0 */
/* The device of each rank: its back end in runtime/, and its figures for the analytic profile. */
#ifndef WEFT_SPEC_DEVICE_H
#define WEFT_SPEC_DEVICE_H

enum weft_device_type {
    WEFT_DEVICE_CPU,
    WEFT_DEVICE_CUDA, /* a module: runtime/device/module.h */
    WEFT_DEVICE_COUNT
};
/* Its name in runtime/device: "cpu" or "cuda". */
const char *weft_device_name(enum weft_device_type type);

struct weft_device_spec {
    int type; /* enum weft_device_type */
    struct {
        double f32, bf16, f16; /* peak flops a second by dtype; 0: not given */
    } flops;
    double memory_bytes_per_s; /* 0: not given */
    double efficiency;         /* share of the peak that layers reach; default 0.5 */
};

#endif
