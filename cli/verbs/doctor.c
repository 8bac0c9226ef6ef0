/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* for memfd_create */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/command.h"
#include "cli/facts.h"
#include "cli/job/alike.h"
#include "cli/process/solver.h"
#include "offload/disk.h"
#include "report/answer.h"
#include "runtime/comm/mpi/calls.h"
#include "runtime/device/device.h"
#include "runtime/device/module.h"
#include "runtime/launch/launch.h"
#include "runtime/launch/rendezvous.h"
#include "runtime/nn/nn.h"
#include "spec/profile/profile.h"

enum { WHAT, STATE, TEXT, N_COLUMNS };

struct checkup {
    struct weft_answer answer;
    struct weft_rows *rows;
    int32_t missing;
};

enum verdict { HAS, LACKS, OFF };

static void note_finding(struct checkup *checkup, const char *what, enum verdict verdict,
                         const char *text)
{
    static const char *const words[] = {"ok", "missing", "off"};
    weft_rows_begin(checkup->rows, what);
    weft_rows_word(checkup->rows, WHAT, what);
    weft_rows_word(checkup->rows, STATE, words[verdict]);
    weft_rows_word(checkup->rows, TEXT, text);
    checkup->missing += verdict == LACKS;
}

static void tell_facts(struct checkup *checkup)
{
    for (const struct weft_fact *fact = weft_facts; fact->name; fact++) {
        struct weft_text text;
        weft_text_init(&text);
        fact->tell(&text);
        weft_answer_say(&checkup->answer, NULL, "%-13s  %s\n", fact->name, weft_text_chars(&text));
        weft_answer_open(&checkup->answer, fact->name);
        weft_answer_word(&checkup->answer, "text", weft_text_chars(&text));
        weft_answer_close(&checkup->answer);
        weft_text_finish(&text);
    }
    weft_answer_say(&checkup->answer, NULL, "\n");
}

static void look_at_solver(struct checkup *checkup)
{
    char path[4096], version[128], text[sizeof path + sizeof version + 64];
    if (!weft_solver_find(path, sizeof path)) {
        note_finding(
            checkup, "solver", LACKS,
            "no weft-solve: build with GLPK (libglpk-dev); the ilp planner then only has its "
            "heuristic");
        return;
    }
    bool answers = weft_solver_version(path, version, sizeof version);
    snprintf(text, sizeof text, answers ? "%s, %s" : "%s is not weft-solve, or does not run%s",
             path, answers ? version : "");
    note_finding(checkup, "solver", answers ? HAS : LACKS, text);
}

static void look_at_kernels(struct checkup *checkup)
{
    struct weft_nn_options options = {.threads = 1, .gemm = "auto"};
    struct weft_error err = {0};
    struct weft_nn *nn = NULL;
    bool open = weft_nn_open("cpu", &options, &nn, &err) == WEFT_OK;
    note_finding(checkup, "kernels", open ? HAS : LACKS, open ? weft_nn_describe(nn) : err.text);
    if (open) {
        struct weft_text bits;
        weft_text_init(&bits);
        weft_nn_add_bits(nn, &bits);
        note_finding(checkup, "bits", HAS, weft_text_chars(&bits));
        weft_text_finish(&bits);
    }
    weft_nn_close(nn);
}

/* Reports the GPU. It is optional, so a missing part is no failure. */
static void look_at_gpu(struct checkup *checkup)
{
    struct weft_device *device = NULL;
    struct weft_error err = {0};
    struct weft_text text;
    weft_text_init(&text);
    const bool open = weft_device_open("cuda", WEFT_CLOCK_WALL, &device, &err) == WEFT_OK;
    if (open) weft_device_describe(device, &text);
    note_finding(checkup, "cuda", open ? HAS : OFF, open ? weft_text_chars(&text) : err.text);
    weft_device_close(device);
    weft_text_finish(&text);
}

static void look_at_proc(struct checkup *checkup)
{
    struct weft_error err = {0};
    const bool there = weft_rendezvous_need_proc(&err) == WEFT_OK;
    note_finding(checkup, "proc", there ? HAS : LACKS,
                 there ? "/proc tells of processes" : err.text);
}

static void look_at_shared_memory(struct checkup *checkup)
{
    enum { PROBE_BYTES = 1 << 20 };
    int fd = memfd_create("weft-doctor", 0);
    void *bytes = MAP_FAILED;
    if (fd >= 0 && ftruncate(fd, PROBE_BYTES) == 0)
        bytes = mmap(NULL, PROBE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    bool works = bytes != MAP_FAILED;
    if (works) munmap(bytes, PROBE_BYTES);
    if (fd >= 0) close(fd);
    note_finding(checkup, "shared_memory", works ? HAS : LACKS,
                 works
                     ? "local ranks can share an arena"
                     : "local ranks share memory files (memfd_create), and none can be made here");
}

static void look_at_text(struct checkup *checkup)
{
    static const char text[] = "/usr/share/common-licenses/GPL-3";
    bool there = access(text, R_OK) == 0;
    note_finding(checkup, "demo_text", there ? HAS : LACKS,
                 there
                     ? text
                     : "the demo trains on the licence texts of base-files: install base-files, or "
                       "use `weft train` with your own train.data");
}

/* Makes a file in the directory and removes it at once. */
static void look_at_disk(struct checkup *checkup, const char *directory)
{
    char text[512], line[WEFT_ERROR_TEXT_BYTES + sizeof text];
    struct weft_error err = {0};
    struct weft_disk disk;
    if (weft_disk_open(&weft_disk_calls, directory, true, &disk, &err) != WEFT_OK) {
        note_finding(checkup, "disk", LACKS, err.text);
        return;
    }
    weft_disk_close(&disk);
    weft_disk_describe(&disk.facts, text, sizeof text);
    snprintf(line, sizeof line, "%.4000s: %s", directory, text);
    note_finding(checkup, "disk", HAS, line);
}

/* Modules of MPI libraries that open, and the one that the launcher around this process needs. */
static void look_at_mpi(struct checkup *checkup)
{
    static const char *const libraries[] = {"openmpi", "mpich"};
    struct weft_stranger launcher;
    struct weft_text found;
    weft_text_init(&found);
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
        const void *calls = NULL;
        struct weft_error unsaid = {0};
        char version[WEFT_MPI_TEXT_BYTES];
        if (weft_module_find("mpi", libraries[i], &calls, &unsaid) != WEFT_OK) continue;
        ((const struct weft_mpi_calls *)calls)->version(version);
        weft_text_addf(&found, "%s%s", found.length > 0 ? "; " : "", version);
    }
    const bool is_there = found.length > 0;
    if (!is_there) weft_text_add(&found, "no module of an MPI library (docs/hosts.md)");
    if (weft_rendezvous_find_stranger(&launcher) && launcher.library != NULL)
        weft_text_addf(&found, "; this launcher needs %s", launcher.library);
    note_finding(checkup, "mpi", is_there ? HAS : OFF, weft_text_chars(&found));
    weft_text_finish(&found);
}

/* Appends the lines of a text as one. */
static void join_lines(const char *lines, struct weft_text *out)
{
    for (size_t n = strcspn(lines, "\n"); n > 0; n = strcspn(lines, "\n")) {
        weft_text_add(out, out->length > 0 ? "; " : "");
        weft_text_append(out, lines, n);
        lines += n + (lines[n] == '\n');
    }
}

static enum weft_status note_network(struct checkup *checkup,
                                     const struct weft_profile_network *network,
                                     struct weft_error *err)
{
    struct weft_network_verdict verdict;
    struct weft_pool pool = {0};
    struct weft_text lines, text;
    weft_text_init(&lines);
    weft_text_init(&text);
    const enum weft_status status = weft_network_judge(network, &pool, &verdict, err);
    if (status == WEFT_OK) {
        weft_network_show_slow(network, &verdict, &lines);
        join_lines(weft_text_chars(&lines), &text);
        if (network->n_hosts == 0) weft_text_add(&text, "the profile is of one host");
        if (network->n_hosts > 0 && verdict.n_slow == 0)
            weft_text_addf(&text, "%d hosts, and no slow link or host", network->n_hosts);
        note_finding(checkup, "network", network->n_hosts > 0 && verdict.n_slow == 0 ? HAS : OFF,
                     weft_text_chars(&text));
    }
    weft_text_finish(&text);
    weft_text_finish(&lines);
    weft_pool_finish(&pool);
    return status;
}

/* Slow links and hosts of a measured profile. Weft needs none of them, so they are no failure. */
static enum weft_status look_at_network(struct checkup *checkup, const char *path,
                                        struct weft_error *err)
{
    const int64_t most_bytes = INT64_C(1) << 28;
    struct weft_profile *profile = NULL;
    char *bytes = NULL;
    size_t length = 0;
    WEFT_TRY(weft_file_read(path, most_bytes, &bytes, &length, err));
    enum weft_status status = weft_profile_parse(bytes, length, path, &profile, err);
    if (status == WEFT_OK) status = note_network(checkup, &profile->network, err);
    free(bytes);
    weft_profile_destroy(profile);
    return status;
}

static void note_alike(void *context, const char *what, enum weft_alike_kind kind, const char *text)
{
    static const enum verdict verdicts[] = {
        [WEFT_ALIKE_FINE] = HAS, [WEFT_ALIKE_DIFFERS] = OFF, [WEFT_ALIKE_HARMS] = LACKS};
    note_finding(context, what, verdicts[kind], text);
}

/* All ranks that an MPI launcher has started compare their hosts. */
static void look_at_hosts(struct checkup *checkup)
{
    struct weft_error err = {0};
    if (weft_hosts_are_ours() && weft_alike_tell(note_alike, checkup, &err) != WEFT_OK)
        note_finding(checkup, "hosts", LACKS, err.text);
}

static enum weft_status check_up(const struct weft_cli *cli, struct weft_error *err)
{
    struct checkup checkup = {0};
    static const struct weft_column columns[N_COLUMNS] = {
        [WHAT] = {NULL, "", 'l', WEFT_FIGURE_WORD, 0},
        [STATE] = {"state", "", 'l', WEFT_FIGURE_WORD, 0},
        [TEXT] = {"text", "", 'w', WEFT_FIGURE_WORD, 0}};
    tell_facts(&checkup);
    checkup.rows = weft_answer_table(&checkup.answer, NULL, columns, N_COLUMNS);
    look_at_solver(&checkup);
    look_at_kernels(&checkup);
    look_at_proc(&checkup);
    look_at_shared_memory(&checkup);
    look_at_text(&checkup);
    if (cli->disk) look_at_disk(&checkup, cli->disk);
    look_at_gpu(&checkup);
    look_at_mpi(&checkup);
    look_at_hosts(&checkup);
    enum weft_status status = WEFT_OK;
    if (cli->profile) status = look_at_network(&checkup, cli->profile, err);
    if (status == WEFT_OK) status = weft_cli_emit_answer(cli, &checkup.answer, err);
    if (status == WEFT_OK && checkup.missing > 0)
        status = weft_fail(err, WEFT_E_ENVIRONMENT, "%d of the things that weft needs %s missing",
                           checkup.missing, checkup.missing == 1 ? "is" : "are");
    weft_answer_finish(&checkup.answer);
    return status;
}

static enum weft_status run_doctor(const struct weft_cli *cli, struct weft_error *err)
{
    struct weft_stranger launcher;
    const bool has_ranks = weft_rendezvous_find_stranger(&launcher) && launcher.library != NULL;
    return has_ranks ? weft_hosts_run(cli, check_up, weft_alike_work, err) : check_up(cli, err);
}

const struct weft_command weft_command_doctor = {
    .name = "doctor",
    .usage = "",
    .summary = "what this machine has; exit 1 when something is missing",
    .details =
        "What to paste into a bug report: the program's version, commit, compiler and libraries; "
        "the machine's cores, load, memory, limits, cgroup and /dev/shm; the launcher and the "
        "variables around this process. Then looks for the solver, the matrix products, /proc, "
        "shared memory and the demo's text, and says what each missing one would cost. `bits` "
        "names the products, the attention and the instructions that the bits of a run on this "
        "CPU depend on; every manifest has them, and a replay compares them first. Last a GPU: "
        "what of driver, toolkit and module is missing for one, or what there is. With --disk DIR "
        "the file system there, direct input and output (O_DIRECT), alignment and free space. "
        "With --profile FILE the slow links and slow hosts that `weft profile` found on several "
        "hosts.\n"
        "\n"
        "Under an MPI launcher (`mpirun -n 4 weft doctor`) rank 0 looks at its host, and all "
        "ranks compare version, commit, libraries, machine, clocks and the working directory. "
        "Each difference is named with its ranks.",
    .flags = "--disk --profile",
    .serves_hosts = true,
    .run = run_doctor,
};
