/* SPDX-License-Identifier: Apache-2.0 */
/* Times of the other tiers: copies to and from the host, updates on the host's cores, reads and
 * writes of a disk, all with every local rank at work. */
#ifndef WEFT_SPEC_PROFILE_TIERS_H
#define WEFT_SPEC_PROFILE_TIERS_H

#include <stdbool.h>
#include <stdint.h>

#include "spec/profile/curve.h"
#include "spec/tiers.h"

/* A `_beside` figure is the share of the speed while the other direction works, at most
 * WEFT_RATE_ONE (base/lanes.h). */
struct weft_profile_host {
    bool given;
    struct weft_curve down, up; /* of a single block, by bytes */
    int64_t down_beside, up_beside;
    int64_t threads;            /* for updates */
    int64_t update_bytes_per_s; /* read and written, without copies; 0: not known */
    int64_t updates_beside;     /* while copies go both ways */
};

struct weft_profile_disk {
    bool given;
    const char *path;              /* the measured path, without links; or the config's */
    const char *file_system;       /* "ext4"; NULL: not known */
    struct weft_curve read, write; /* of a single block, by bytes, `threads` at a time */
    int64_t read_beside, write_beside;
    enum weft_duplex duplex;
    bool verified; /* times include checksums */
    /* The least values within 5 % of the best: bytes of a block, concurrent requests in each
     * direction, and seats of a ring that keep these busy. 0: not known. */
    int64_t block_bytes, threads, seats;
};

struct weft_profile_tiers {
    struct weft_profile_host host;
    struct weft_profile_disk disk;
};

struct weft_config;

/* A figure that a config lacks, such as "cluster.host.up.bandwidth", and the part that needs it. */
struct weft_profile_lack {
    const char *figure, *part;
};
enum { WEFT_PROFILE_LACKS = 5 };

/* The tiers of a profile for this config. Each comes from the measured one (may be NULL) or from
 * the config's figures; a tier that nothing may move to is left out. Lists the lacks of both. `out`
 * shares memory with both. WEFT_E_DATA when another disk was measured. */
WEFT_MUST_USE enum weft_status weft_profile_take_tiers(
    const struct weft_config *config, const struct weft_profile_tiers *measured,
    struct weft_pool *pool, struct weft_profile_tiers *out,
    struct weft_profile_lack lacks[WEFT_PROFILE_LACKS], int32_t *n_lacks, struct weft_error *err);

extern const struct weft_key_table weft_profile_host_keys, weft_profile_disk_keys;

/* Reads the optional members "host" and "disk" of a profile's file. */
WEFT_MUST_USE enum weft_status weft_profile_read_tiers(const struct weft_json_value *root,
                                                       const char *source, struct weft_pool *pool,
                                                       struct weft_profile_tiers *out,
                                                       struct weft_error *err);

#endif
