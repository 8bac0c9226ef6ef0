/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of tiers: cluster.host, cluster.disk and plan.offload; and the targets of plan.for. */
#include <stdio.h>
#include <string.h>

#include "spec/config_parts.h"
#include "spec/config_tables.h"
#include "spec/target.h"
#include "spec/ways.h"

#define AT(type, member) offsetof(struct type, member)
#define ROWS(array)      (array), sizeof(array) / sizeof *(array)

#define LARGE      9007199254740992.0 /* 2^53: a double holds every integer up to it */
#define HOUR_NS    3600e9
#define LEAST_RATE 1.0
#define MOST_RATE  1e18

enum { PATH_BYTES = 64 };

static const char *const duplexes[] = {"half", "full", NULL};
const char *const weft_location_names[] = {"device", "host", "disk", NULL};
const char *const weft_keep_names[] = {"device", "host", "disk", "host-update"};
static const char *const activation_locations[] = {"device", "host", NULL};

const char *const weft_target_names[] = {
    "weft", "fsdp2", "fsdp2-default", "fsdp2-blocking", "fsdp2-default-blocking", NULL};

#define FSDP2_RULES                                                                                \
    .is_foreign = true, .recomputes = true, .policies = "sdp,fsdp", .whole_layers = true,          \
    .updates_first = true, .regathers = true, .in_order = true, .flat_buffers = true,              \
    .drains = true

const struct weft_target weft_targets[] = {
    [WEFT_FOR_WEFT] = {.name = "weft",
                       .title = "Weft",
                       .offloads = true,
                       .recomputes = true,
                       .recomputes_parts = true},
    [WEFT_FOR_FSDP2] = {.name = "fsdp2",
                        .title = "PyTorch's FSDP2",
                        FSDP2_RULES,
                        .finalizes = true,
                        .runs_ahead = true,
                        .blocking = WEFT_FOR_FSDP2_BLOCKING},
    [WEFT_FOR_FSDP2_DEFAULT] = {.name = "fsdp2-default",
                                .title = "PyTorch's FSDP2 with its own gathers",
                                FSDP2_RULES,
                                .gathers_all = true,
                                .runs_ahead = true,
                                .blocking = WEFT_FOR_FSDP2_DEFAULT_BLOCKING},
    [WEFT_FOR_FSDP2_BLOCKING] = {.name = "fsdp2-blocking",
                                 .title = "PyTorch's FSDP2 on a host that waits",
                                 FSDP2_RULES,
                                 .finalizes = true,
                                 .blocking = WEFT_FOR_FSDP2_BLOCKING},
    [WEFT_FOR_FSDP2_DEFAULT_BLOCKING] =
        {.name = "fsdp2-default-blocking",
         .title = "PyTorch's FSDP2 with its own gathers, on a host that waits",
         FSDP2_RULES,
         .gathers_all = true,
         .blocking = WEFT_FOR_FSDP2_DEFAULT_BLOCKING},
};

static const struct weft_field lane_fields[] = {
    {"alpha", WEFT_FIELD_TIME, AT(weft_link, alpha_ns), "\"0s\"", 0, HOUR_NS, NULL, NULL,
     "time of an empty block"},
    {"bandwidth", WEFT_FIELD_RATE, AT(weft_link, bytes_per_s), "null", LEAST_RATE, MOST_RATE, NULL,
     NULL, "bytes of a rank in a second; left out: from a measured profile"},
};
static const struct weft_field_table lane_table = {
    "down, up, read, write", "A block of B bytes takes alpha + B / bandwidth.", ROWS(lane_fields)};

static const struct weft_field host_fields[] = {
    {"memory_limit", WEFT_FIELD_BYTES, AT(weft_host_spec, memory_limit_bytes), NULL, 0, LARGE, NULL,
     NULL, "bytes of one rank on the host, the ring of a disk included"},
    {"down", WEFT_FIELD_OBJECT, AT(weft_host_spec, down), "{}", 0, 0, NULL, &lane_table,
     "copies from the device to the host"},
    {"up", WEFT_FIELD_OBJECT, AT(weft_host_spec, up), "{}", 0, 0, NULL, &lane_table,
     "copies from the host to the device"},
    {"update", WEFT_FIELD_RATE, AT(weft_host_spec, update_bytes_per_s), "null", LEAST_RATE,
     MOST_RATE, NULL, NULL, "bytes that updates on the host's cores read and write in a second"},
    {"threads", WEFT_FIELD_INTEGER, AT(weft_host_spec, threads), "0", 0, 1024, NULL, NULL,
     "threads of updates on the host; 0: the rank's cores without those of compute and copies"},
};
const struct weft_field_table weft_host_table = {
    "host",
    "The host's memory as a tier, for plans that do not fit within `memory_limit`. Optimizer state "
    "and master may be there: copied up before a unit's update and down after it, or updated on "
    "the host (for a GPU only if plan.offload.update names it). Saved activations may be there "
    "between forward and backward. "
    "16-bit parameters may be there, if plan.offload.parameters says so. "
    "Limits and rates are of one rank with all ranks of its node at work. For a GPU it is pinned "
    "before the first step.",
    ROWS(host_fields)};

static const struct weft_field disk_fields[] = {
    {"path", WEFT_FIELD_STRING, AT(weft_disk_spec, path), NULL, 0, 0, NULL, NULL,
     "path of a directory on a local disk"},
    {"limit", WEFT_FIELD_BYTES, AT(weft_disk_spec, limit_bytes), "null", 1, LARGE, NULL, NULL,
     "bytes of one rank on the disk; needed if state may be there"},
    {"read", WEFT_FIELD_OBJECT, AT(weft_disk_spec, read), "{}", 0, 0, NULL, &lane_table,
     "reads, without writes"},
    {"write", WEFT_FIELD_OBJECT, AT(weft_disk_spec, write), "{}", 0, 0, NULL, &lane_table,
     "writes, without reads"},
    {"duplex", WEFT_FIELD_CHOICE, AT(weft_disk_spec, duplex), "\"half\"", 0, 0, duplexes, NULL,
     "half: reads and writes take turns; full: they do not slow each other"},
    {"verify", WEFT_FIELD_BOOL, AT(weft_disk_spec, verify), "true", 0, 0, NULL, NULL,
     "a checksum of every block, kept in memory"},
    {"endurance", WEFT_FIELD_BYTES, AT(weft_disk_spec, endurance_bytes), "null", 1, LARGE, NULL,
     NULL, "bytes that may be written in the disk's life, for example \"600TB\""},
};
const struct weft_field_table weft_disk_table = {
    "disk",
    "A disk as a tier, for plans that do not fit within `memory_limit`. Optimizer state and master "
    "may be there, in a file without a name: read before a unit's update and written after it. "
    "Only CPU ranks train with it.",
    ROWS(disk_fields)};

static const struct weft_field offload_fields[] = {
    {"state", WEFT_FIELD_CHOICES, AT(weft_offload_spec, state), "null", 0, 0, weft_location_names,
     NULL, "tiers that may hold optimizer state and master parameters; left out: all tiers"},
    {"activations", WEFT_FIELD_CHOICES, AT(weft_offload_spec, activations), "null", 0, 0,
     activation_locations, NULL, "tiers that may hold saved activations; left out: all tiers"},
    {"inputs", WEFT_FIELD_CHOICES, AT(weft_offload_spec, inputs), "null", 0, 0,
     activation_locations, NULL,
     "tiers that may hold inputs of layers between forward and backward; left out: device"},
    {"parameters", WEFT_FIELD_CHOICES, AT(weft_offload_spec, parameters), "null", 0, 0,
     activation_locations, NULL,
     "tiers that may hold 16-bit parameters of sdp, fsdp and nodes units, which a rank copies up "
     "before each gather; with the host, device is named too; left out: device"},
    {"update", WEFT_FIELD_CHOICES, AT(weft_offload_spec, update), "null", 0, 0,
     activation_locations, NULL,
     "place of the update of state on the host: device, with copies of state, or host, with copies "
     "of gradients and parameters; left out: both"},
    {"block_size", WEFT_FIELD_BYTES, AT(weft_offload_spec, block_bytes), "null", 1, LARGE, NULL,
     NULL,
     "smallest block of state and saved activations that are copied to the host and back, at most "
     "16 blocks each; left out: the size that reaches block_efficiency on the slower link, at "
     "least 64KiB, or one block each if that is faster"},
};
const struct weft_field_table weft_offload_table = {
    "offload", "Which tiers of the cluster a plan may use.", ROWS(offload_fields)};

/* A bit for each existing tier. */
static int locations_of(const struct weft_cluster *cluster)
{
    return 1 << WEFT_LOCATION_DEVICE | (cluster->host.given ? 1 << WEFT_LOCATION_HOST : 0) |
           (cluster->disk.given ? 1 << WEFT_LOCATION_DISK : 0);
}

const struct weft_target *weft_config_target(const struct weft_config *config)
{
    return &weft_targets[config->plan.target];
}

int weft_config_state_locations(const struct weft_config *config)
{
    const int locations = locations_of(&config->cluster);
    return config->plan.offload.state == 0 ? locations : config->plan.offload.state & locations;
}

/* Updates on the host have not run under a GPU yet, but over doubles of CUDA's libraries alone. */
static bool updates_on_host_unasked(const struct weft_config *config)
{
    return config->cluster.device.type != WEFT_DEVICE_CUDA;
}

int weft_config_state_keeps(const struct weft_config *config)
{
    const int locations = weft_config_state_locations(config), on_host = 1 << WEFT_LOCATION_HOST;
    const int update = config->plan.offload.update;
    const bool asked = update == 0 ? updates_on_host_unasked(config) : (update & on_host) != 0;
    const bool there = (locations & on_host) != 0 && asked;
    const bool device = update == 0 || (update & 1 << WEFT_LOCATION_DEVICE) != 0;
    return (device ? locations : locations & ~on_host) | (there ? 1 << WEFT_KEEP_HOST_UPDATE : 0);
}

bool weft_config_moves_state(const struct weft_config *config)
{
    return (weft_config_state_locations(config) & ~(1 << WEFT_LOCATION_DEVICE)) != 0;
}

int weft_config_activation_locations(const struct weft_config *config)
{
    const int locations =
        locations_of(&config->cluster) & (1 << WEFT_LOCATION_HOST | 1 << WEFT_LOCATION_DEVICE);
    const int allowed = config->plan.offload.activations;
    return allowed == 0 ? locations : allowed & locations;
}

bool weft_config_moves_activations(const struct weft_config *config)
{
    return (weft_config_activation_locations(config) & ~(1 << WEFT_LOCATION_DEVICE)) != 0;
}

int weft_config_input_locations(const struct weft_config *config)
{
    const int locations = config->plan.offload.inputs & locations_of(&config->cluster);
    return locations == 0 ? 1 << WEFT_LOCATION_DEVICE : locations;
}

bool weft_config_moves_inputs(const struct weft_config *config)
{
    return (weft_config_input_locations(config) & ~(1 << WEFT_LOCATION_DEVICE)) != 0;
}

bool weft_config_moves_layers(const struct weft_config *config)
{
    return weft_config_moves_activations(config) || weft_config_moves_inputs(config);
}

int weft_config_parameter_locations(const struct weft_config *config)
{
    const int device = 1 << WEFT_LOCATION_DEVICE;
    if (config->train.precision.compute == WEFT_F32) return device;
    return device | (config->plan.offload.parameters & locations_of(&config->cluster));
}

bool weft_config_moves_parameters(const struct weft_config *config)
{
    return (weft_config_parameter_locations(config) & ~(1 << WEFT_LOCATION_DEVICE)) != 0;
}

bool weft_config_uses_host(const struct weft_config *config)
{
    return weft_config_moves_layers(config) || weft_config_moves_parameters(config) ||
           (weft_config_state_locations(config) & 1 << WEFT_LOCATION_HOST) != 0;
}

bool weft_config_uses_disk(const struct weft_config *config)
{
    return (weft_config_state_locations(config) & 1 << WEFT_LOCATION_DISK) != 0;
}

static void check_locations(const struct weft_config *config, const char *source, const char *key,
                            int locations, struct weft_findings *findings)
{
    const int missing = locations & ~locations_of(&config->cluster);
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "$.plan.offload.%s", key);
    for (int location = 0; location < WEFT_LOCATION_COUNT; location++) {
        if ((missing & 1 << location) == 0) continue;
        weft_findings_add(findings, source, path,
                          "names \"%s\", and the cluster has none: give cluster.%s, or leave it "
                          "out here",
                          weft_location_names[location], weft_location_names[location]);
    }
}

static void check_emulated(const struct weft_section *section, const struct weft_link *link,
                           const char *key, struct weft_findings *findings)
{
    char path[PATH_BYTES];
    if (link->bytes_per_s > 0) return;
    snprintf(path, sizeof path, "%s.host.%s", section->path, key);
    weft_findings_add(findings, section->source, path,
                      "there is no link to emulate; give bandwidth, or leave cluster.emulate out");
}

/* Adds a finding for what a plan for the target would leave out. */
static void check_target(const struct weft_config *config, const char *source,
                         struct weft_findings *findings)
{
    const struct weft_target *target = weft_config_target(config);
    const char *recompute = config->plan.recompute;
    if (!target->offloads && (weft_config_moves_state(config) || weft_config_moves_layers(config) ||
                              weft_config_moves_parameters(config)))
        weft_findings_add(findings, source, "$.plan.for",
                          "is \"%s\", and plans for %s offload nothing: set plan.offload to "
                          "{\"state\": [\"device\"], \"activations\": [\"device\"]}",
                          target->name, target->title);
    if (!target->recomputes_parts && recompute != NULL &&
        strcmp(recompute, weft_recompute_names[WEFT_RECOMPUTE_SELECTIVE]) == 0)
        weft_findings_add(findings, source, "$.plan.for",
                          "is \"%s\", and plans for %s recompute whole layers: set plan.recompute "
                          "to \"auto\" or \"whole\"",
                          target->name, target->title);
    if (target->is_foreign && weft_config_means(config))
        weft_findings_add(findings, source, "$.plan.for",
                          "is \"%s\", and adam_mini with one second moment a tensor is Weft's: set "
                          "plan.for to \"weft\", or train.optimizer.type to \"adamw\"",
                          target->name);
}

/* Adds findings for parameters that cannot be on the host. */
static void check_parameters(const struct weft_config *config, const char *source,
                             struct weft_findings *findings)
{
    const char *key = "$.plan.offload.parameters";
    const int locations = config->plan.offload.parameters;
    if (locations == 0) return;
    if ((locations & 1 << WEFT_LOCATION_DEVICE) == 0)
        weft_findings_add(
            findings, source, key,
            "leaves out \"device\", where dp and zero1 keep their parameters and every "
            "unit computes: set it to [\"device\", \"host\"]");
    if ((locations & 1 << WEFT_LOCATION_HOST) == 0) return;
    if (config->train.precision.compute == WEFT_F32)
        weft_findings_add(findings, source, key,
                          "names \"host\", and with f32 the parameters are the master, which is "
                          "state: set train.precision.compute to \"bf16\", or allow "
                          "plan.offload.state");
    if (weft_optimizer_row(config->train.optimizer.type)->agrees)
        weft_findings_add(
            findings, source, key,
            "names \"host\", and an update of lamb is in two parts, which ranks agree "
            "on: use another optimizer, or leave it out");
}

/* Adds findings for checkpoints in host memory. */
static void check_kept(const struct weft_config *config, const char *source,
                       struct weft_findings *findings)
{
    const char *key = "$.train.checkpoint.host";
    const long long every = config->train.checkpoint.host, steps = config->train.steps;
    if (every == 0) return;
    if (every >= steps)
        weft_findings_add(findings, source, key,
                          "is %lld, and a run of %lld steps has none after such a step: give fewer "
                          "than train.steps, or 0 to keep none",
                          every, steps);
    if (!config->cluster.host.given)
        weft_findings_add(findings, source, key,
                          "keeps checkpoints in the host's memory, and the cluster has none: give "
                          "cluster.host.memory_limit, or set it to 0");
    if (config->plan.target != WEFT_FOR_WEFT)
        weft_findings_add(findings, source, key,
                          "is kept by `weft train` alone, and plan.for is \"%s\": set it to 0",
                          weft_config_target(config)->name);
}

void weft_config_check_tiers(const struct weft_section *run, const struct weft_section *cluster,
                             const struct weft_config *config, struct weft_findings *findings)
{
    const struct weft_cluster *c = &config->cluster;
    const struct weft_offload_spec *offload = &config->plan.offload;
    char path[PATH_BYTES];
    check_locations(config, run->source, "state", offload->state, findings);
    check_locations(config, run->source, "activations", offload->activations, findings);
    check_locations(config, run->source, "inputs", offload->inputs, findings);
    check_locations(config, run->source, "parameters", offload->parameters, findings);
    check_locations(config, run->source, "update", offload->update, findings);
    check_parameters(config, run->source, findings);
    check_kept(config, run->source, findings);
    check_target(config, run->source, findings);
    if (c->host.given && c->emulate_link) {
        check_emulated(cluster, &c->host.down, "down", findings);
        check_emulated(cluster, &c->host.up, "up", findings);
    }
    if (c->disk.limit_bytes == 0 && weft_config_uses_disk(config)) {
        snprintf(path, sizeof path, "%s.disk", cluster->path);
        weft_findings_add(findings, cluster->source, path,
                          "state may be on the disk, and it has no limit: give \"limit\", such as "
                          "\"2TB\", or leave \"disk\" out of plan.offload.state");
    }
    if (weft_optimizer_row(config->train.optimizer.type)->agrees && weft_config_moves_state(config))
        weft_findings_add(findings, run->source, "$.train.optimizer.type",
                          "lamb scales a tensor's step by lengths of all of it, which ranks agree "
                          "on between two parts of an update, so its state stays on the device: "
                          "set plan.offload.state to [\"device\"]");
}
