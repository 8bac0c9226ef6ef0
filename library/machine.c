#include "library/machine.h"

#include <stdio.h>
#include <stdlib.h>

/* Two libraries give two sums. WEFT_GEMM says which one, for runs whose bits are to be compared;
 * otherwise rank 0 measures which is faster. All ranks take rank 0's. */
static enum weft_status open_kernels(const struct weft_rendezvous *meeting,
                                     const struct weft_config *config, struct weft_machine *machine,
                                     struct weft_error *err)
{
    enum { NAME_BYTES = 32 };
    char mine[NAME_BYTES] = "", *all = calloc((size_t)meeting->ranks, NAME_BYTES);
    if (!all) return weft_fail_memory(err, "the names of the ranks' libraries");
    const char *named = getenv("WEFT_GEMM");
    struct weft_nn_options options = {.threads =
                                          weft_rendezvous_threads(meeting, config->cluster.threads),
                                      .compute = (enum weft_dtype)config->train.precision.compute,
                                      .gemm = named ? named : "auto"};
    enum weft_status status = WEFT_OK;
    if (meeting->rank == 0) {
        status = weft_nn_open("cpu", &options, &machine->nn, err);
        if (status == WEFT_OK) snprintf(mine, NAME_BYTES, "%s", weft_nn_gemm_name(machine->nn));
    }
    if (status == WEFT_OK) status = weft_comm_exchange(machine->comm, mine, NAME_BYTES, all, err);
    options.gemm = all;
    if (status == WEFT_OK && meeting->rank != 0)
        status = weft_nn_open("cpu", &options, &machine->nn, err);
    free(all);
    return status;
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
    struct weft_comm_options comm = {
        .rank = meeting->rank,
        .ranks = meeting->ranks,
        .control_fd = meeting->control_fd,
        .arena_fds = meeting->arena_fds,
        .emulate = cluster->emulate_link,
        .alpha_ns = cluster->link.intra.alpha_ns,
        .bytes_per_s = cluster->link.intra.bytes_per_s,
        .timeout_ns = cluster->timeout_ns,
    };
    enum weft_clock clock = virtual_clock ? WEFT_CLOCK_VIRTUAL : WEFT_CLOCK_WALL;
    WEFT_TRY(weft_device_open("cpu", clock, &out->device, err));
    WEFT_TRY(weft_comm_open("local", &comm, &out->comm, err));
    return open_kernels(meeting, config, out, err);
}

void weft_machine_close(struct weft_machine *machine)
{
    weft_comm_close(machine->comm);
    weft_nn_close(machine->nn);
    weft_device_close(machine->device);
    *machine = (struct weft_machine){0};
}
