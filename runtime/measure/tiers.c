/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/measure/tiers.h"

#include "base/units.h"

enum { MOST_FLOWS = 64, ROUNDS = 50 };
#define ROUND_NS (INT64_C(1) * 1000000)

enum weft_status weft_measure_together(const struct weft_measure_options *options,
                                       struct measure_flow *const *flows, int32_t n,
                                       int64_t *block_ns, struct weft_error *err)
{
    const int64_t rounds = options->rounds > 0 ? options->rounds : ROUNDS;
    WEFT_TRY(weft_comm_exchange(options->comm, NULL, 0, NULL, err));
    WEFT_TRY(weft_measure_flows(flows, n, rounds * ROUND_NS, err));
    for (int32_t i = 0; i < n; i++)
        block_ns[i] = weft_measure_block_ns(flows[i]);
    return weft_measure_most(options->comm, block_ns, n, err);
}

int64_t weft_measure_share(int64_t alone_ns, int64_t beside_ns)
{
    if (beside_ns <= alone_ns) return WEFT_RATE_ONE;
    const double share = WEFT_RATE_ONE * ((double)alone_ns / (double)beside_ns);
    return share < 1 ? 1 : (int64_t)share;
}

enum weft_status weft_measure_check_host(const struct weft_config *config, int64_t least_bytes,
                                         struct weft_error *err)
{
    const int64_t limit = config->cluster.host.memory_limit_bytes;
    char shown[WEFT_UNITS_TEXT_BYTES], least[WEFT_UNITS_TEXT_BYTES];
    if (limit >= least_bytes) return WEFT_OK;
    return weft_fail(err, WEFT_E_DATA,
                     "cluster.host.memory_limit of %s is too small to measure in: give %s or more",
                     weft_units_show_bytes(limit, shown),
                     weft_units_show_bytes(least_bytes, least));
}

enum weft_status weft_measure_tiers(const struct weft_measure_options *options,
                                    struct weft_profile *out, struct weft_error *err)
{
    const struct weft_config *config = options->config;
    const bool cpu = config->cluster.device.type == WEFT_DEVICE_CPU;
    if (weft_config_uses_host(config))
        WEFT_TRY((cpu ? weft_measure_host : weft_measure_device_copies)(options, &out->pool,
                                                                        &out->tiers.host, err));
    if (!weft_config_uses_disk(config)) return WEFT_OK;
    return weft_measure_disk(options, &out->pool, &out->tiers.disk, err);
}
