/* SPDX-License-Identifier: Apache-2.0 */
/* The config's tiers: their figures, and the state and activations that each may hold. */
#ifndef WEFT_SPEC_TIERS_H
#define WEFT_SPEC_TIERS_H

#include <stdbool.h>
#include <stdint.h>

struct weft_link {
    int64_t alpha_ns;
    double bytes_per_s; /* that a rank sends; 0: not given */
};

/* Whole checkpoints in host memory (train.checkpoint.host). */
enum { WEFT_VAULT_GENERATIONS = 2 };

/* Location: a kind of memory; a tier is one of them. */
enum weft_location {
    WEFT_LOCATION_DEVICE,
    WEFT_LOCATION_HOST,
    WEFT_LOCATION_DISK,
    WEFT_LOCATION_COUNT
};
extern const char *const weft_location_names[WEFT_LOCATION_COUNT + 1]; /* NULL at the end */

/* The way to keep a unit's state: its location, and the place of the update. Ways with the update
 * on the device have their location's number. */
enum weft_keep {
    WEFT_KEEP_DEVICE,
    WEFT_KEEP_HOST,
    WEFT_KEEP_DISK,
    WEFT_KEEP_HOST_UPDATE, /* on the host, and updated there */
    WEFT_KEEP_COUNT
};
/* "device", "host", "disk", "host-update": suffixes of a policy in a strategy's name. */
extern const char *const weft_keep_names[WEFT_KEEP_COUNT];

static inline enum weft_location weft_keep_location(enum weft_keep keep)
{
    return keep == WEFT_KEEP_HOST_UPDATE ? WEFT_LOCATION_HOST : (enum weft_location)keep;
}

/* Limits and rates of one rank, with all ranks of its node at work. */
struct weft_host_spec {
    bool given; /* must be first; false: no such tier */
    int64_t memory_limit_bytes;
    struct weft_link down, up;
    double update_bytes_per_s; /* 0: not given */
    int64_t threads;           /* 0: the rank's cores without those for compute and copies */
};

enum weft_duplex { WEFT_DUPLEX_HALF, WEFT_DUPLEX_FULL, WEFT_DUPLEX_COUNT };

struct weft_disk_spec {
    bool given;          /* must be first */
    const char *path;    /* directory, resolved against the config's */
    int64_t limit_bytes; /* 0: not given */
    struct weft_link read, write;
    int duplex;              /* enum weft_duplex */
    bool verify;             /* checksums */
    int64_t endurance_bytes; /* bytes that may be written in its life; 0: not given */
};

/* A bit for each enum weft_location; 0: not given, so every tier of the cluster. Parameters and
 * inputs of layers are on the host only if the config says so. */
struct weft_offload_spec {
    bool given; /* must be first */
    int state, activations;
    int inputs;          /* 0: only the device */
    int parameters;      /* 0: only the device */
    int update;          /* place of the update of state on the host: device, host */
    int64_t block_bytes; /* of copies to the host and back; 0: left out */
};

struct weft_config;

/* Locations that state may have: a bit for each enum weft_location. */
int weft_config_state_locations(const struct weft_config *config);
/* Ways to keep state there: a bit for each enum weft_keep. */
int weft_config_state_keeps(const struct weft_config *config);
/* Locations that saved activations may have: a bit for each enum weft_location. */
int weft_config_activation_locations(const struct weft_config *config);
/* Locations that inputs of layers may have: a bit for each enum weft_location. */
int weft_config_input_locations(const struct weft_config *config);
/* Locations that 16-bit parameters of sdp, fsdp and nodes units may have, a bit for each.
 * Without plan.offload.parameters, and if the device computes in f32, only the device. */
int weft_config_parameter_locations(const struct weft_config *config);
/* True if state, saved activations, inputs of layers, or parameters may be offloaded. */
bool weft_config_moves_state(const struct weft_config *config);
bool weft_config_moves_activations(const struct weft_config *config);
bool weft_config_moves_inputs(const struct weft_config *config);
bool weft_config_moves_parameters(const struct weft_config *config);
/* True if anything of a layer may be: its saved activations or its input. */
bool weft_config_moves_layers(const struct weft_config *config);
/* True if the host's memory, or the disk, may hold anything. */
bool weft_config_uses_host(const struct weft_config *config);
bool weft_config_uses_disk(const struct weft_config *config);

#endif
