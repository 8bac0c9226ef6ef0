/* SPDX-License-Identifier: Apache-2.0 */
#include "library/machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/machine/cores.h"
#include "base/shown.h"
#include "problem/variants.h"
#include "program/predict.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/measure/measure.h"
#include "spec/config_batch.h"

enum { NAME_BYTES = 32 };

/* NULL if the variable is unset or empty. */
static const char *named_in(const char *variable)
{
    const char *named = getenv(variable);
    return named != NULL && *named != '\0' ? named : NULL;
}

static const char *library_from_environment(void)
{
    return named_in("WEFT_GEMM");
}

bool weft_machine_is_plain(void)
{
    const char *named = library_from_environment();
    return named != NULL && strcmp(named, "plain") == 0;
}

static const char *device_of(const struct weft_config *config)
{
    return weft_device_name((enum weft_device_type)config->cluster.device.type);
}

static enum weft_status open_library(const struct weft_machine *machine,
                                     const struct weft_config *config, const char *name,
                                     struct weft_nn **out, struct weft_error *err)
{
    const struct weft_nn_options options = {.threads = machine->threads,
                                            .compute =
                                                (enum weft_dtype)config->train.precision.compute,
                                            .gemm = name,
                                            .attention = named_in("WEFT_ATTENTION")};
    return weft_nn_open(device_of(config), &options, out, err);
}

/* Each library gives its own sums. WEFT_GEMM chooses one, for runs with comparable bits. Otherwise
 * rank 0 measures and takes the faster. All ranks use rank 0's. */
static enum weft_status open_kernels(const struct weft_rendezvous *meeting,
                                     const struct weft_config *config, struct weft_machine *machine,
                                     struct weft_error *err)
{
    char mine[NAME_BYTES] = "", *all = calloc((size_t)meeting->ranks, NAME_BYTES);
    if (!all) return weft_fail_memory(err, "the names of the ranks' libraries");
    const char *named = library_from_environment();
    enum weft_status status = WEFT_OK;
    if (meeting->rank == 0) {
        status = open_library(machine, config, named ? named : "auto", &machine->nn, err);
        if (status == WEFT_OK) snprintf(mine, NAME_BYTES, "%s", weft_nn_gemm_name(machine->nn));
    }
    if (status == WEFT_OK) status = weft_comm_exchange(machine->comm, mine, NAME_BYTES, all, err);
    if (status == WEFT_OK && meeting->rank != 0)
        status = open_library(machine, config, all, &machine->nn, err);
    free(all);
    return status;
}

/* Opens the library of that name. NULL if the machine has it already. NULL too if this build or
 * machine lacks it; then *err tells why. */
static struct weft_nn *open_other(const struct weft_machine *machine,
                                  const struct weft_config *config, const char *name,
                                  struct weft_error *err)
{
    struct weft_nn *nn = NULL;
    if (strcmp(name, weft_nn_gemm_name(machine->nn)) == 0 || strcmp(name, "auto") == 0 ||
        open_library(machine, config, name, &nn, err) != WEFT_OK)
        return NULL;
    return nn;
}

/* Rank 0: opens the checkpoint's library, and adds its choices of products. Its reader reports a
 * bad checkpoint later. */
static struct weft_nn *open_saved(const struct weft_machine *machine,
                                  const struct weft_config *config, const char *resume,
                                  struct weft_text *products)
{
    struct weft_checkpoint *checkpoint = NULL;
    struct weft_error unsaid = {0};
    struct weft_nn *nn = NULL;
    if (weft_checkpoint_open(resume, &checkpoint, &unsaid) != WEFT_OK) return NULL;
    if (library_from_environment() == NULL)
        nn = open_other(machine, config, checkpoint->manifest->kernels, &unsaid);
    if (checkpoint->manifest->products != NULL)
        weft_text_add(products, checkpoint->manifest->products);
    weft_checkpoint_close(checkpoint);
    return nn;
}

/* Rank 0: opens the profile's library. */
static struct weft_nn *open_measured(const struct weft_machine *machine,
                                     const struct weft_config *config,
                                     const struct weft_profile *profile)
{
    struct weft_error why = {0};
    char name[WEFT_SHOWN_BYTES];
    if (profile->kernels == NULL || library_from_environment() != NULL) return NULL;
    struct weft_nn *nn = open_other(machine, config, profile->kernels, &why);
    if (why.status != WEFT_OK)
        weft_log(WEFT_LOG_WARNING,
                 "the profile was measured with %s, and the run goes on with %s, so times and "
                 "memory are not those that were planned with: %s",
                 weft_shown(profile->kernels, name), weft_nn_gemm_name(machine->nn), why.text);
    return nn;
}

/* The channel's thread may spin only on a core that no computing thread of this host needs. */
static bool has_spare_cores(const struct weft_rendezvous *meeting,
                            const struct weft_cluster *cluster)
{
    const int64_t threads = weft_rendezvous_threads(meeting, cluster->threads);
    return threads + 1 <= meeting->cores;
}

/* A launcher of MPI ranks may have bound them already. */
static enum weft_status bind_rank(const struct weft_rendezvous *meeting,
                                  const struct weft_cluster *cluster, struct weft_machine *out,
                                  struct weft_error *err)
{
    if (meeting->mpi == NULL)
        return weft_bind(meeting->rank, meeting->ranks, cluster->threads, &out->binding, err);
    if (meeting->sharers < meeting->machine_ranks) return WEFT_OK;
    return weft_bind(meeting->sharer, meeting->sharers, cluster->threads, &out->binding, err);
}

/* Local ranks read one another's memory, but not a GPU's. */
static const char *communicator_of(const struct weft_rendezvous *meeting,
                                   const struct weft_cluster *cluster)
{
    if (cluster->device.type == WEFT_DEVICE_CUDA) return "cuda";
    return meeting->mpi != NULL ? "mpi" : "local";
}

/* Streams that share a queue of a GPU block one another, and with these ways to keep state a stream
 * waits for the host. So each gets a queue of its own, unless the user has set another number. CUDA
 * reads the variable when it opens the GPU. */
static void give_streams_queues(const struct weft_config *config)
{
    const int ways = 1 << WEFT_KEEP_HOST_UPDATE | 1 << WEFT_KEEP_DISK;
    if (config->cluster.device.type == WEFT_DEVICE_CUDA &&
        (weft_config_state_keeps(config) & ways) != 0)
        (void)setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
}

enum weft_status weft_machine_open(const struct weft_rendezvous *meeting,
                                   const struct weft_config *config, bool virtual_clock,
                                   struct weft_machine *out, struct weft_error *err)
{
    const struct weft_cluster *cluster = &config->cluster;
    if (meeting->ranks != cluster->ranks)
        return weft_fail(err, WEFT_E_DISAGREE,
                         "rank %d: %d ranks were started, the config says %lld", meeting->rank,
                         meeting->ranks, (long long)cluster->ranks);
    WEFT_TRY(weft_rendezvous_need_proc(err)); /* memory is counted in /proc */
    WEFT_TRY(weft_rendezvous_check_hosts(meeting, cluster->ranks_per_node, err));
    struct weft_comm_options comm = {
        .rank = meeting->rank,
        .ranks = meeting->ranks,
        .ranks_per_node = (int32_t)cluster->ranks_per_node,
        .device = device_of(config),
        .timeout_ns = weft_cluster_timeout_ns(cluster),
        .local = {.control_fd = meeting->control_fd,
                  .arena_fds = meeting->arena_fds,
                  .emulate = cluster->emulate_link,
                  .alpha_ns = cluster->link.intra.alpha_ns,
                  .bytes_per_s = cluster->link.intra.bytes_per_s,
                  .own_cores =
                      meeting->mpi != NULL ? has_spare_cores(meeting, cluster) : cluster->bind},
        .mpi = meeting->mpi,
    };
    enum weft_clock clock = virtual_clock ? WEFT_CLOCK_VIRTUAL : WEFT_CLOCK_WALL;
    out->threads = weft_rendezvous_threads(meeting, cluster->threads);
    /* Binds after the count of all ranks' cores and before any thread starts. */
    if (cluster->bind) WEFT_TRY(bind_rank(meeting, cluster, out, err));
    give_streams_queues(config);
    WEFT_TRY(weft_device_open(device_of(config), clock, &out->device, err));
    WEFT_TRY(weft_comm_open(communicator_of(meeting, cluster), &comm, &out->comm, err));
    return open_kernels(meeting, config, out, err);
}

enum weft_status weft_machine_check_measuring(const struct weft_config *config, bool contention,
                                              struct weft_error *err)
{
    const struct weft_cluster *cluster = &config->cluster;
    if (!contention && (cluster->contention.compute > 0 || cluster->contention.channel > 0)) {
        return weft_fail(err, WEFT_E_DATA,
                         "%s: cluster.contention is for times from the device's figures, and "
                         "measured ones hold what it says: leave it out, or name in "
                         "cluster.profile what `weft profile --contention` measures",
                         config->source);
    }
    uint32_t policies;
    return weft_variants_policies(config, &policies, err);
}

/* Header of rank 0's bytes. */
struct announcement {
    int64_t length;
    enum weft_status status;
};

/* Sends rank 0's `bytes` to all ranks, in pieces of one exchange. */
static enum weft_status share_bytes(const struct weft_machine *machine, char *bytes, int64_t length,
                                    struct weft_error *err)
{
    enum { PIECE_BYTES = 4096 };
    char mine[PIECE_BYTES] = {0};
    bool first = weft_comm_rank(machine->comm) == 0;
    char *all = calloc((size_t)weft_comm_ranks(machine->comm), PIECE_BYTES);
    if (!all) return weft_fail_memory(err, "what ranks share");
    enum weft_status status = WEFT_OK;
    for (int64_t at = 0; at < length && status == WEFT_OK; at += PIECE_BYTES) {
        size_t n = (size_t)(length - at < PIECE_BYTES ? length - at : PIECE_BYTES);
        if (first) memcpy(mine, bytes + at, n);
        status = weft_comm_exchange(machine->comm, mine, n, all, err);
        if (!first && status == WEFT_OK) memcpy(bytes + at, all, n);
    }
    free(all);
    return status;
}

static enum weft_status share_announcement(const struct weft_machine *machine,
                                           struct announcement *out, struct weft_error *err)
{
    size_t ranks = (size_t)weft_comm_ranks(machine->comm);
    struct announcement *all = calloc(ranks, sizeof *all);
    if (!all) return weft_fail_memory(err, "what ranks share");
    enum weft_status status = weft_comm_exchange(machine->comm, out, sizeof *out, all, err);
    if (status == WEFT_OK) *out = all[0];
    free(all);
    return status;
}

/* The other ranks receive the text, or the message of a failure. */
static enum weft_status receive_text(const struct weft_machine *machine, struct weft_text *text,
                                     struct weft_error *err)
{
    struct announcement said = {0};
    WEFT_TRY(share_announcement(machine, &said, err));
    char *bytes = malloc((size_t)said.length + 1);
    if (!bytes) return weft_fail_memory(err, "what ranks share");
    enum weft_status status = share_bytes(machine, bytes, said.length, err);
    bytes[said.length] = '\0';
    if (status == WEFT_OK && said.status == WEFT_OK)
        weft_text_append(text, bytes, (size_t)said.length);
    else if (status == WEFT_OK)
        status = weft_fail_of_rank(err, said.status, 0, bytes);
    free(bytes);
    if (status == WEFT_OK && !weft_text_ok(text)) return weft_fail_memory(err, "what ranks share");
    return status;
}

enum weft_status weft_machine_share(const struct weft_machine *machine, struct weft_text *text,
                                    enum weft_status status, struct weft_error *err)
{
    struct weft_error shared = {0};
    if (status == WEFT_OK && !weft_text_ok(text))
        status = weft_fail_memory(err, "what ranks share");
    if (weft_comm_ranks(machine->comm) == 1) return status;
    if (weft_comm_rank(machine->comm) != 0) return receive_text(machine, text, err);
    /* Rank 0's own failure matters more than a failure to share it. */
    const char *bytes = status == WEFT_OK ? weft_text_chars(text) : err->text;
    struct announcement said = {(int64_t)strlen(bytes), status};
    enum weft_status sent = share_announcement(machine, &said, &shared);
    if (sent == WEFT_OK)
        sent = share_bytes(machine, (char *)bytes, (int64_t)strlen(bytes), &shared);
    if (status != WEFT_OK || sent == WEFT_OK) return status;
    return weft_fail(err, sent, "%s", shared.text);
}

/* A rank's status and message, cut to one exchange. */
struct outcome {
    enum weft_status status;
    char text[WEFT_COMM_EXCHANGE_BYTES - sizeof(enum weft_status)];
};

/* All ranks fail with the first rank that failed. */
static enum weft_status agree_on_status(const struct weft_machine *machine, enum weft_status status,
                                        struct weft_error *err)
{
    const int32_t ranks = weft_comm_ranks(machine->comm), own = weft_comm_rank(machine->comm);
    struct outcome *all = calloc((size_t)ranks + 1, sizeof *all), *mine = all + ranks;
    struct weft_error unheard = {0};
    if (!all) return weft_fail_memory(err, "what ranks share");
    mine->status = status;
    if (status != WEFT_OK)
        snprintf(mine->text, sizeof mine->text, "%.*s", (int)sizeof mine->text - 1, err->text);
    const enum weft_status sent =
        weft_comm_exchange(machine->comm, mine, sizeof *mine, all, &unheard);
    int32_t first = 0;
    while (sent == WEFT_OK && first < ranks && all[first].status == WEFT_OK) {
        first++;
    }
    if (status == WEFT_OK && sent != WEFT_OK)
        status = weft_fail(err, sent, "%s", unheard.text);
    else if (status == WEFT_OK && sent == WEFT_OK && first < ranks && first != own)
        status = weft_fail_of_rank(err, all[first].status, first, all[first].text);
    free(all);
    return status;
}

static void warn_of_lines(const struct weft_text *lines)
{
    for (const char *line = weft_text_chars(lines); *line != '\0';) {
        const size_t length = strcspn(line, "\n");
        weft_log(WEFT_LOG_WARNING, "%.*s", (int)length, line);
        line += length + (line[length] != '\0');
    }
}

/* All ranks take rank 0's algorithms of products. */
static enum weft_status bind_products(const struct weft_machine *machine,
                                      const struct weft_config *config, const char *earlier,
                                      struct weft_error *err)
{
    const struct weft_batch batch = weft_config_batch(config);
    const struct weft_model *model = config->model;
    struct weft_text choices;
    enum weft_status status = WEFT_OK;
    if (!weft_nn_has_choices(machine->nn)) return WEFT_OK;
    weft_text_init(&choices);
    if (weft_comm_rank(machine->comm) == 0) {
        struct weft_text warnings;
        weft_text_init(&warnings);
        status = weft_nn_choose(machine->nn, model->layers, model->n_layers, &batch, earlier,
                                &choices, &warnings, err);
        warn_of_lines(&warnings);
        weft_text_finish(&warnings);
    }
    status = weft_machine_share(machine, &choices, status, err);
    if (status == WEFT_OK) {
        status = weft_nn_bind(machine->nn, model->layers, model->n_layers, &batch,
                              weft_text_chars(&choices), err);
        status = agree_on_status(machine, status, err);
    }
    weft_text_finish(&choices);
    return status;
}

/* Measures one split of the batch. `known` has choices of products to keep, and curves; or NULL. */
static enum weft_status measure_split(const struct weft_machine *machine,
                                      const struct weft_config *config,
                                      const struct weft_profile *known, bool contention,
                                      int32_t rounds, struct weft_watch *watch,
                                      struct weft_profile **out, struct weft_error *err)
{
    const struct weft_measure_options options = {
        .config = config,
        .device = machine->device,
        .comm = machine->comm,
        .nn = machine->nn,
        .threads = machine->threads,
        .contention = contention,
        .rounds = rounds,
        .watch = watch,
        .known = known,
    };
    WEFT_TRY(bind_products(machine, config, known == NULL ? NULL : known->products, err));
    return weft_measure(&options, out, err);
}

/* Measures one more split, and joins it with the profile so far, which is NULL before the first
 * one. */
static enum weft_status add_split(const struct weft_machine *machine,
                                  const struct weft_config *config,
                                  const struct weft_profile *known, bool contention, int32_t rounds,
                                  struct weft_watch *watch, struct weft_profile **profile,
                                  struct weft_error *err)
{
    struct weft_profile *measured = NULL;
    const struct weft_profile *earlier = *profile == NULL ? known : *profile;
    WEFT_TRY(measure_split(machine, config, earlier, contention, rounds, watch, &measured, err));
    return weft_profile_add(profile, measured, err);
}

enum weft_status weft_machine_measure(const struct weft_machine *machine,
                                      const struct weft_config *config, bool contention,
                                      int32_t rounds, const struct weft_profile *known,
                                      struct weft_watch *watch, struct weft_profile **out,
                                      struct weft_error *err)
{
    struct weft_profile *profile = NULL;
    int64_t splits[WEFT_MOST_SPLITS];
    const int32_t n = weft_config_splits(config, splits);
    WEFT_TRY(weft_machine_check_measuring(config, contention, err));
    for (int32_t i = 0; i < n; i++) {
        struct weft_config split = *config;
        weft_config_settle(&split, splits[i]);
        split.train.asked.micro_batch = splits[i];
        const enum weft_status status =
            add_split(machine, &split, known, contention, rounds, watch, &profile, err);
        if (status == WEFT_OK) continue;
        weft_profile_destroy(profile);
        return status;
    }
    *out = profile;
    return WEFT_OK;
}

/* All ranks change to the library that rank 0 opened; NULL: no change. */
static enum weft_status change_library(const struct weft_rendezvous *meeting,
                                       const struct weft_config *config, struct weft_nn *nn,
                                       struct weft_machine *machine, struct weft_error *err)
{
    char mine[NAME_BYTES] = "", *all = calloc((size_t)meeting->ranks, NAME_BYTES);
    enum weft_status status = WEFT_OK;
    if (!all) status = weft_fail_memory(err, "the names of the ranks' libraries");
    if (nn != NULL) snprintf(mine, NAME_BYTES, "%s", weft_nn_gemm_name(nn));
    if (status == WEFT_OK) status = weft_comm_exchange(machine->comm, mine, NAME_BYTES, all, err);
    if (status == WEFT_OK && meeting->rank != 0 && all[0] != '\0')
        status = open_library(machine, config, all, &nn, err);
    if (nn != NULL) {
        weft_nn_close(machine->nn);
        machine->nn = nn;
    }
    free(all);
    return status;
}

/* The launcher compares CPUs, and cannot name a GPU without opening it. */
static void tell_hardware(const struct weft_machine *machine, const struct weft_config *config,
                          const struct weft_profile *profile)
{
    const char *ours = weft_device_hardware(machine->device);
    const char *path = config->cluster.profile;
    char theirs[WEFT_SHOWN_BYTES];
    if (!weft_profile_origin_differs(&profile->origin, ours, 0)) return;
    weft_log(WEFT_LOG_WARNING,
             "%s: times measured on %s, and this GPU is %s: steps will take another time. Measure "
             "with `weft profile`",
             path != NULL ? path : "the run's profile", weft_shown(profile->origin.machine, theirs),
             ours);
}

enum weft_status weft_machine_go_on(const struct weft_rendezvous *meeting,
                                    const struct weft_config *config,
                                    const struct weft_profile *profile, const char *resume,
                                    struct weft_machine *machine, struct weft_error *err)
{
    struct weft_nn *nn = NULL;
    struct weft_text earlier;
    weft_text_init(&earlier);
    if (meeting->rank == 0) tell_hardware(machine, config, profile);
    if (meeting->rank == 0 && resume != NULL) {
        nn = open_saved(machine, config, resume, &earlier);
    } else if (meeting->rank == 0) {
        nn = open_measured(machine, config, profile);
        if (profile->products != NULL) weft_text_add(&earlier, profile->products);
    }
    enum weft_status status = change_library(meeting, config, nn, machine, err);
    if (status == WEFT_OK) status = bind_products(machine, config, weft_text_chars(&earlier), err);
    weft_text_finish(&earlier);
    return status;
}

enum weft_status weft_machine_expect(const struct weft_machine *machine,
                                     const struct weft_config *config,
                                     const struct weft_profile *profile,
                                     const struct weft_plan *plan, struct weft_error *err)
{
    int64_t longest_ns = 0;
    if (config->cluster.timeout_ns == 0 && profile->origin.machine != NULL)
        WEFT_TRY(weft_plan_longest_wait(plan, &longest_ns, err));
    weft_comm_expect(machine->comm, longest_ns);
    return WEFT_OK;
}

void weft_machine_give_up(const struct weft_machine *machine)
{
    if (machine->comm != NULL) weft_comm_cancel(machine->comm);
}

void weft_machine_close(struct weft_machine *machine)
{
    weft_comm_close(machine->comm);
    weft_nn_close(machine->nn);
    weft_device_close(machine->device);
    weft_unbind(&machine->binding);
    *machine = (struct weft_machine){0};
}
