/* Measuring what a config may use beside the device's memory, on all local ranks at once: the
 * host's memory and cores, and a disk. */
#ifndef WEFT_RUNTIME_MEASURE_TIERS_H
#define WEFT_RUNTIME_MEASURE_TIERS_H

#include "base/pool.h"
#include "runtime/measure/flow.h"
#include "runtime/measure/parts.h"

/* A block that takes longer is the largest that is timed. */
#define MEASURE_SLOW_NS (INT64_C(200) * 1000000)

/* All collective. A tier that the config may not use is left as it is. WEFT_E_DATA of a limit that
 * is too small to measure within. */
WEFT_MUST_USE enum weft_status weft_measure_tiers(const struct weft_measure_options *options,
                                                  struct weft_profile *out, struct weft_error *err);
WEFT_MUST_USE enum weft_status weft_measure_host(const struct weft_measure_options *options,
                                                 struct weft_pool *pool,
                                                 struct weft_profile_host *out,
                                                 struct weft_error *err);
WEFT_MUST_USE enum weft_status weft_measure_disk(const struct weft_measure_options *options,
                                                 struct weft_pool *pool,
                                                 struct weft_profile_disk *out,
                                                 struct weft_error *err);

/* Lets the flows go on beside each other on all ranks at once; block_ns[i] becomes what a block of
 * flow i took on the slowest rank. */
WEFT_MUST_USE enum weft_status weft_measure_together(const struct weft_measure_options *options,
                                                     struct measure_flow *const *flows, int32_t n,
                                                     int64_t *block_ns, struct weft_error *err);

/* By the shares of reads and writes beside each other. */
enum weft_duplex weft_measure_duplex(int64_t read_beside, int64_t write_beside);

/* The share of its speed alone that something has when a block takes so long beside others. */
int64_t weft_measure_share(int64_t alone_ns, int64_t beside_ns);

#endif
