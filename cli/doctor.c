#define _GNU_SOURCE /* memfd_create */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/json.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/solver.h"
#include "cli/terminal.h"
#include "report/table.h"
#include "runtime/nn/nn.h"

struct checkup {
    struct weft_table table;
    struct weft_json_writer writer;
    int32_t missing;
};

enum verdict { HAS, LACKS, OFF };

static void note(struct checkup *checkup, const char *what, enum verdict verdict, const char *text)
{
    static const char *const words[] = {"ok", "missing", "off"};
    weft_table_cell(&checkup->table, "%s", what);
    weft_table_cell(&checkup->table, "%s", words[verdict]);
    weft_table_cell(&checkup->table, "%s", text);
    weft_json_key(&checkup->writer, what);
    weft_json_begin_object(&checkup->writer);
    weft_json_put_string(&checkup->writer, "state", words[verdict]);
    weft_json_put_string(&checkup->writer, "text", text);
    weft_json_end_object(&checkup->writer);
    checkup->missing += verdict == LACKS;
}

static void look_at_machine(struct checkup *checkup)
{
    char text[256], shown[WEFT_UNITS_TEXT_BYTES];
    struct utsname name;
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    uname(&name);
    snprintf(text, sizeof text, "%s %s, %ld cores, %s", name.sysname, name.machine, cores,
             weft_units_show_bytes((int64_t)pages * page, shown));
    note(checkup, "machine", HAS, text);
}

static void look_at_solver(struct checkup *checkup)
{
    char path[4096];
    const char *found = weft_solver_find(path, sizeof path);
    note(checkup, "solver", found ? HAS : LACKS,
         found ? found
               : "no weft-solve: build with GLPK (libglpk-dev); the ilp planner then only "
                 "has its heuristic");
}

static void look_at_kernels(struct checkup *checkup)
{
    struct weft_nn_options options = {.threads = 1, .gemm = "auto"};
    struct weft_error err = {0};
    struct weft_nn *nn = NULL;
    bool open = weft_nn_open("cpu", &options, &nn, &err) == WEFT_OK;
    note(checkup, "kernels", open ? HAS : LACKS, open ? weft_nn_describe(nn) : err.text);
    weft_nn_close(nn);
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
    note(checkup, "shared_memory", works ? HAS : LACKS,
         works ? "local ranks can share an arena"
               : "local ranks share memory files (memfd_create), and none can be made here");
}

static void look_at_text(struct checkup *checkup)
{
    static const char text[] = "/usr/share/common-licenses/GPL-3";
    bool there = access(text, R_OK) == 0;
    note(checkup, "demo_text", there ? HAS : LACKS,
         there ? text
               : "the demo trains on the licence texts of base-files: install base-files, or "
                 "use `weft train` with your own train.data");
}

static enum weft_status run(const struct weft_cli *cli, struct weft_error *err)
{
    struct checkup checkup = {0};
    struct weft_text out, json;
    weft_cli_report_init(cli, cli->output, &out);
    weft_text_init(&json);
    weft_table_init(&checkup.table, "llw");
    weft_json_writer_init(&checkup.writer, &json, 2);
    weft_json_begin_object(&checkup.writer);
    look_at_machine(&checkup);
    look_at_solver(&checkup);
    look_at_kernels(&checkup);
    look_at_shared_memory(&checkup);
    look_at_text(&checkup);
    note(&checkup, "cuda", OFF, "this build has no CUDA device");
    note(&checkup, "mpi", OFF, "this build has no MPI communicator");
    weft_json_end_object(&checkup.writer);
    weft_text_add(&json, "\n");
    weft_table_render(&checkup.table, 0, &out);
    enum weft_status status = weft_cli_emit(cli, cli->json ? &json : &out, err);
    if (status == WEFT_OK && checkup.missing > 0)
        status = weft_fail(err, WEFT_E_ENVIRONMENT, "%d of the things that weft needs %s missing",
                           checkup.missing, checkup.missing == 1 ? "is" : "are");
    weft_table_finish(&checkup.table);
    weft_text_finish(&out);
    weft_text_finish(&json);
    return status;
}

const struct weft_command weft_command_doctor = {
    .name = "doctor",
    .usage = "",
    .summary = "what this machine has; exit 1 when something is missing",
    .details = "Looks for the solver, the matrix products, shared memory and the demo's text, and\n"
               "says what each missing one would cost.",
    .run = run,
};
