/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/machine/cores.h"
#include "base/machine/proc.h"
#include "runtime/launch/options.h"
#include "runtime/launch/rendezvous.h"

/* Variables of other launchers. The first complete pair with more than one rank decides. Flux and
 * jsrun come first, because they also set variables of the MPI launchers under them. In a Slurm
 * allocation a plain shell has the job's numbers too. The step's own count is the number of running
 * tasks, and a batch script has no step. */
static const struct {
    const char *rank, *ranks, *launcher;
    const char *with, *without; /* must be set; must not be set; or NULL */
    const char *library;        /* module of its MPI library, or NULL: none is known */
    const char *cure;           /* as in weft_stranger */
} strangers[] = {
    {"RANK", "WORLD_SIZE", "torchrun", NULL, NULL, NULL, NULL},
    {"FLUX_TASK_RANK", "FLUX_JOB_SIZE", "Flux", NULL, NULL, NULL, NULL},
    {"JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE", "jsrun", NULL, NULL, NULL, NULL},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "Open MPI", NULL, NULL, "openmpi", NULL},
    {"PMI_RANK", "PMI_SIZE", "an MPI launcher (PMI)", NULL, NULL, "mpich", NULL},
    {"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MVAPICH2", NULL, NULL, NULL, NULL},
    {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "srun", "PMIX_RANK", NULL, "openmpi", NULL},
    {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "srun", NULL, NULL, NULL,
     "--mpi=pmix with Open MPI, --mpi=pmi2 with MPICH"},
    {"SLURM_PROCID", "SLURM_NTASKS", "srun", "SLURM_STEP_ID", "SLURM_STEP_NUM_TASKS", NULL, NULL},
};
enum { STRANGERS = sizeof strangers / sizeof strangers[0] };

/* Reads the number at the start of `text`, up to a comma or the end. *rest is the text after the
 * comma. */
static bool read_number(const char *text, int32_t most, int32_t *out, const char **rest)
{
    if (text == NULL || *text < '0' || *text > '9') return false;
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno != 0 || value > most || (*end != '\0' && *end != ',')) return false;
    *out = (int32_t)value;
    *rest = *end == ',' ? end + 1 : end;
    return true;
}

static bool read_variable(const char *name, int32_t most, int32_t *out)
{
    const char *rest, *text = getenv(name);
    return read_number(text, most, out, &rest) && strchr(text, ',') == NULL;
}

/* Checks that the descriptor is open, and closes it in children of this rank. */
static bool take_fd(int fd)
{
    return fd > STDERR_FILENO && fcntl(fd, F_SETFD, FD_CLOEXEC) == 0;
}

bool weft_rendezvous_find_stranger(struct weft_stranger *out)
{
    for (int i = 0; i < STRANGERS; i++) {
        int32_t rank, ranks;
        if (strangers[i].with != NULL && getenv(strangers[i].with) == NULL) continue;
        if (strangers[i].without != NULL && getenv(strangers[i].without) != NULL) continue;
        if (!read_variable(strangers[i].rank, INT32_MAX, &rank) ||
            !read_variable(strangers[i].ranks, INT32_MAX, &ranks) || ranks <= 1)
            continue;
        *out = (struct weft_stranger){.launcher = strangers[i].launcher,
                                      .rank_name = strangers[i].rank,
                                      .ranks_name = strangers[i].ranks,
                                      .rank = rank,
                                      .ranks = ranks,
                                      .library = strangers[i].library,
                                      .cure = strangers[i].cure};
        return true;
    }
    return false;
}

enum weft_status weft_rendezvous_refuse_strangers(struct weft_error *err)
{
    struct weft_stranger found;
    if (!weft_rendezvous_find_stranger(&found)) return WEFT_OK;
    if (found.cure != NULL)
        return weft_fail(err, WEFT_E_ENVIRONMENT,
                         "%s started %d tasks without MPI, of which this is task %d: for ranks of "
                         "`weft train` and `weft profile` give %s %s (docs/hosts.md); for local "
                         "ranks, which Weft starts itself, start one task with `-n %d`",
                         found.launcher, found.ranks, found.rank, found.launcher, found.cure,
                         found.ranks);
    return weft_fail(
        err, WEFT_E_ENVIRONMENT,
        "this looks like rank %d of %d of %s (%s and %s are set), but here Weft runs "
        "only local ranks, which it starts itself: start one process without these "
        "variables, `env -u %s -u %s weft ... -n %d`. For ranks of several hosts start "
        "`weft train` or `weft profile` once, with `env -u %s -u %s mpirun -n %d` "
        "(docs/hosts.md)",
        found.rank, found.ranks, found.launcher, found.rank_name, found.ranks_name, found.rank_name,
        found.ranks_name, found.ranks, found.rank_name, found.ranks_name, found.ranks);
}

static enum weft_status fail_hosts(const struct weft_rendezvous *meeting, int64_t ranks_per_node,
                                   int32_t first, struct weft_error *err)
{
    const int32_t n = meeting->hosts[meeting->ranks - 1] + 1;
    if (ranks_per_node == 0)
        return weft_fail(err, WEFT_E_DISAGREE,
                         "rank %d is on another host than rank 0, and cluster.ranks_per_node is 0, "
                         "which means one node: give --set cluster.ranks_per_node=N with the ranks "
                         "of a host",
                         first);
    return weft_fail(err, WEFT_E_DISAGREE,
                     "rank %d is on host %d of %d, and with cluster.ranks_per_node %lld a host has "
                     "that many consecutive ranks: start the ranks host by host (Open MPI: "
                     "--map-by ppr:%lld:node; MPICH: -ppn %lld; srun: --ntasks-per-node=%lld), or "
                     "change the config",
                     first, meeting->hosts[first], n, (long long)ranks_per_node,
                     (long long)ranks_per_node, (long long)ranks_per_node,
                     (long long)ranks_per_node);
}

enum weft_status weft_rendezvous_check_hosts(const struct weft_rendezvous *meeting,
                                             int64_t ranks_per_node, struct weft_error *err)
{
    for (int32_t i = 0; meeting->hosts != NULL && i < meeting->ranks; i++) {
        const int64_t expected = ranks_per_node > 0 ? i / ranks_per_node : 0;
        if (meeting->hosts[i] != expected) return fail_hosts(meeting, ranks_per_node, i, err);
    }
    return WEFT_OK;
}

bool weft_rendezvous_has_hosts(const struct weft_rendezvous *meeting)
{
    for (int32_t i = 1; meeting->hosts != NULL && i < meeting->ranks; i++)
        if (meeting->hosts[i] != meeting->hosts[0]) return true;
    return false;
}

enum weft_status weft_rendezvous_need_proc(struct weft_error *err)
{
    char lacking[64];
    if (weft_proc_look("/proc", lacking, sizeof lacking)) return WEFT_OK;
    return weft_fail(err, WEFT_E_ENVIRONMENT,
                     "%s cannot be read (%s): processes that Weft starts find their program and "
                     "files in /proc, and count their memory there. Mount it: mount -t proc proc "
                     "/proc; in a chroot, mount --bind /proc DIR/proc. Plans need none",
                     lacking, strerror(errno));
}

static enum weft_status fail_variable(const char *name, struct weft_error *err)
{
    const char *value = getenv(name);
    return weft_fail(err, WEFT_E_DATA,
                     "the environment of this rank is damaged: %s is %s%s%s. Ranks are started by "
                     "weft itself; if nothing else set it, unset " WEFT_CONTROL_FD_NAME,
                     name, value != NULL ? "\"" : "", value != NULL ? value : "not set",
                     value != NULL ? "\"" : "");
}

static enum weft_status read_arena_fds(struct weft_rendezvous *r, struct weft_error *err)
{
    const char *text = getenv(WEFT_ARENA_FDS_NAME);
    r->arena_fds = malloc((size_t)r->ranks * sizeof *r->arena_fds);
    if (r->arena_fds == NULL) return weft_fail_memory(err, "a rank's descriptors");
    for (int32_t i = 0; i < r->ranks; i++)
        r->arena_fds[i] = -1;
    for (int32_t i = 0; i < r->ranks; i++) {
        int32_t fd;
        if (!read_number(text, INT32_MAX, &fd, &text) || !take_fd(fd))
            return fail_variable(WEFT_ARENA_FDS_NAME, err);
        r->arena_fds[i] = fd;
    }
    return *text == '\0' ? WEFT_OK : fail_variable(WEFT_ARENA_FDS_NAME, err);
}

static enum weft_status read_launch(struct weft_rendezvous *r, struct weft_error *err)
{
    int32_t fd, ranks, rank;
    if (!read_variable(WEFT_WORLD_SIZE_NAME, WEFT_LAUNCH_MOST_RANKS, &ranks) || ranks < 1)
        return fail_variable(WEFT_WORLD_SIZE_NAME, err);
    if (!read_variable(WEFT_RANK_NAME, ranks - 1, &rank)) return fail_variable(WEFT_RANK_NAME, err);
    if (!read_variable(WEFT_CONTROL_FD_NAME, INT32_MAX, &fd) || !take_fd(fd))
        return fail_variable(WEFT_CONTROL_FD_NAME, err);
    r->rank = rank;
    r->ranks = ranks;
    r->control_fd = fd;
    return read_arena_fds(r, err);
}

enum weft_status weft_rendezvous_from_environment(struct weft_rendezvous *out,
                                                  struct weft_error *err)
{
    struct weft_rendezvous r = {.ranks = 1, .control_fd = -1};
    enum weft_status status = getenv(WEFT_CONTROL_FD_NAME) != NULL
                                  ? read_launch(&r, err)
                                  : weft_rendezvous_refuse_strangers(err);
    if (status != WEFT_OK) {
        weft_rendezvous_finish(&r);
        return status;
    }
    *out = r;
    return WEFT_OK;
}

void weft_rendezvous_finish(struct weft_rendezvous *r)
{
    if (r->control_fd > STDERR_FILENO) close(r->control_fd);
    for (int32_t i = 0; r->arena_fds != NULL && i < r->ranks; i++) {
        if (r->arena_fds[i] > STDERR_FILENO) close(r->arena_fds[i]);
    }
    free(r->arena_fds);
    free(r->hosts);
    *r = (struct weft_rendezvous){.control_fd = -1};
}

int32_t weft_rendezvous_threads(const struct weft_rendezvous *rendezvous, int64_t asked)
{
    if (asked > 0) return asked < INT32_MAX ? (int32_t)asked : INT32_MAX;
    if (rendezvous->mpi != NULL) return rendezvous->cores;
    const int32_t threads = rendezvous->ranks > 0 ? weft_cores() / rendezvous->ranks : 1;
    return threads > 0 ? threads : 1;
}
