/* What a config says of memory beside the device's: the tiers of the cluster, and what may be kept
 * in which. */
#ifndef WEFT_SPEC_TIERS_H
#define WEFT_SPEC_TIERS_H

#include <stdbool.h>
#include <stdint.h>

struct weft_link {
    int64_t alpha_ns;
    double bytes_per_s; /* that a rank sends; 0 = not given */
};

/* Where something is kept: a kind of memory, of which a tier is one. */
enum weft_home { WEFT_HOME_DEVICE, WEFT_HOME_HOST, WEFT_HOME_DISK, WEFT_HOME_COUNT };
extern const char *const weft_home_names[WEFT_HOME_COUNT + 1]; /* NULL at the end */

/* How a unit's state is kept: in which home, and whether it is updated there or on the device.
 * Those that are updated on the device have their home's number. */
enum weft_keep {
    WEFT_KEEP_DEVICE,
    WEFT_KEEP_HOST,
    WEFT_KEEP_DISK,
    WEFT_KEEP_HOST_UPDATE, /* on the host, and updated there */
    WEFT_KEEP_COUNT
};
/* "device", "host", "disk", "host-update": behind a policy's name they name a strategy. */
extern const char *const weft_keep_names[WEFT_KEEP_COUNT];

static inline enum weft_home weft_keep_home(enum weft_keep keep)
{
    return keep == WEFT_KEEP_HOST_UPDATE ? WEFT_HOME_HOST : (enum weft_home)keep;
}

/* Limits and rates are of one rank, with all ranks of its node at work at once. */
struct weft_host_spec {
    bool given; /* first: without it there is no such tier */
    int64_t memory_limit_bytes;
    struct weft_link down, up;
    double update_bytes_per_s; /* 0 = not given */
    int64_t threads;           /* 0 = the rank's cores less those of compute and copies */
};

enum weft_duplex { WEFT_DUPLEX_HALF, WEFT_DUPLEX_FULL, WEFT_DUPLEX_COUNT };

struct weft_disk_spec {
    bool given;          /* first */
    const char *path;    /* of a directory, relative to the config's resolved */
    int64_t limit_bytes; /* 0 = not given */
    struct weft_link read, write;
    int duplex;              /* enum weft_duplex */
    bool verify;             /* checksums */
    int64_t endurance_bytes; /* that may be written in its life; 0 = not given */
};

/* A bit for each enum weft_home; 0 = not given: every tier of the cluster. */
struct weft_offload_spec {
    bool given; /* first */
    int state, activations;
    int update; /* where state that is on the host may be updated: device, host */
};

struct weft_config;

/* Where state may be: a bit for each enum weft_home. */
int weft_config_state_homes(const struct weft_config *config);
/* How it may be kept there: a bit for each enum weft_keep. */
int weft_config_state_keeps(const struct weft_config *config);
/* The same as the first of activations. */
int weft_config_activation_homes(const struct weft_config *config);
/* Whether state, or activations, may be kept elsewhere than on the device. */
bool weft_config_moves_state(const struct weft_config *config);
bool weft_config_moves_activations(const struct weft_config *config);
/* Whether anything may be kept in the host's memory, or on the disk. */
bool weft_config_uses_host(const struct weft_config *config);
bool weft_config_uses_disk(const struct weft_config *config);

#endif
