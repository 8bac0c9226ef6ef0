/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the tiers that a config may use besides device memory, on all local ranks at once: the
 * host's memory and cores, and a disk. */
#ifndef WEFT_RUNTIME_MEASURE_TIERS_H
#define WEFT_RUNTIME_MEASURE_TIERS_H

#include "base/pool.h"
#include "runtime/measure/flow.h"
#include "runtime/measure/parts.h"

/* A block that takes longer is the largest to be timed. */
#define MEASURE_SLOW_NS (INT64_C(200) * 1000000)

/* Measure the tiers; every rank must make each call. A tier that the config does not allow is left
 * unchanged. WEFT_E_DATA if a limit is too small to measure. */
WEFT_MUST_USE enum weft_status weft_measure_tiers(const struct weft_measure_options *options,
                                                  struct weft_profile *out, struct weft_error *err);
WEFT_MUST_USE enum weft_status weft_measure_host(const struct weft_measure_options *options,
                                                 struct weft_pool *pool,
                                                 struct weft_profile_host *out,
                                                 struct weft_error *err);
/* Copies of a device that copies by itself. The rate of updates stays 0, not known. */
WEFT_MUST_USE enum weft_status weft_measure_device_copies(
    const struct weft_measure_options *options, struct weft_pool *pool,
    struct weft_profile_host *out, struct weft_error *err);
WEFT_MUST_USE enum weft_status weft_measure_disk(const struct weft_measure_options *options,
                                                 struct weft_pool *pool,
                                                 struct weft_profile_disk *out,
                                                 struct weft_error *err);

/* WEFT_E_DATA if the host tier has less than `least_bytes`. */
WEFT_MUST_USE enum weft_status weft_measure_check_host(const struct weft_config *config,
                                                       int64_t least_bytes, struct weft_error *err);

/* Runs the flows together on all ranks at once. block_ns[i] is the time of a block of flow i on the
 * slowest rank. */
WEFT_MUST_USE enum weft_status weft_measure_together(const struct weft_measure_options *options,
                                                     struct measure_flow *const *flows, int32_t n,
                                                     int64_t *block_ns, struct weft_error *err);

/* Decides the duplex from the shares of reads and writes while both run. */
enum weft_duplex weft_measure_duplex(int64_t read_beside, int64_t write_beside);

/* Speed while others run, as a share of the speed alone, from the times of a block. */
int64_t weft_measure_share(int64_t alone_ns, int64_t beside_ns);

#endif
