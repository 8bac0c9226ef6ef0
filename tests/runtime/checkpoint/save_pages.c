/* SPDX-License-Identifier: Apache-2.0 */
/* Hosts of a shared file system (shared_system.h) save again and again. A save that all ranks call
 * done is whole on the server, and nothing else has a checkpoint's name. WEFT_SHARED_SEEDS=10000
 * gives the number of runs; a check of the check writes as on one host. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "runtime/checkpoint/directory.h"
#include "runtime/checkpoint/save.h"
#include "runtime/checkpoint/save_parts.h"
#include "tests/runtime/checkpoint/shared_system.h"
#include "tests/runtime/checkpoint/site.h"
#include "tests/runtime/comm/ranks.h"

enum { RANKS = 3, STEPS = 4, SEEDS = 300, SEEDS_OF_CHECK = 20 };

struct totals {
    int32_t saved, failed, torn, late, lost, faults;
};

struct scene {
    struct site site;
    char root[64];
    int32_t seeds;
    bool as_one_host;
    int results; /* of a pipe: totals of each rank */
};

static bool is_whole(const struct scene *scene, const char *directory, int64_t step)
{
    struct weft_text path;
    struct weft_checkpoint *checkpoint = NULL;
    weft_text_init(&path);
    weft_checkpoint_path(directory, step, &path);
    const bool whole = weft_checkpoint_open(weft_text_chars(&path), &checkpoint, NULL) == WEFT_OK &&
                       weft_checkpoint_verify(checkpoint, 0, 1, NULL) == WEFT_OK &&
                       site_holds(&scene->site, checkpoint);
    weft_checkpoint_close(checkpoint);
    weft_text_finish(&path);
    return whole;
}

/* Rank 0 after a save, with `saved` steps before: all that is shown is whole. */
static void look_at(const struct scene *scene, const char *directory, int32_t seed, int64_t latest,
                    struct totals *totals)
{
    int64_t *steps = NULL;
    int32_t n = 0;
    bool is_there = latest == 0;
    CHECK(weft_checkpoint_scan(directory, &steps, &n, NULL) == WEFT_OK, "no listing");
    for (int32_t i = 0; i < n; i++) {
        const bool whole = is_whole(scene, directory, steps[i]);
        CHECK(whole || scene->as_one_host, "seed %d: step %d is torn", (int)seed, (int)steps[i]);
        totals->torn += !whole;
        is_there = is_there || steps[i] == latest;
    }
    CHECK(is_there, "seed %d: step %d was saved and is gone", (int)seed, (int)latest);
    free(steps);
}

static void run_seed(const struct scene *scene, int32_t seed, struct weft_comm *comm,
                     struct totals *totals)
{
    const int32_t rank = weft_comm_rank(comm);
    const struct shared_host_options of_host = {.seed = (uint64_t)(seed * RANKS + rank),
                                                .makes_names = rank == 0,
                                                .only_pages = scene->as_one_host};
    struct shared_host *host = shared_host_open(&of_host);
    struct weft_sink sink = shared_host_sink(host);
    struct weft_error err = {.status = WEFT_OK};
    struct weft_saver *saver = NULL;
    char directory[128];
    snprintf(directory, sizeof directory, "%s/%d", scene->root, (int)seed);
    const struct weft_saver_options options = {
        .layout = scene->site.layout,
        .comm = comm,
        .page_bytes = scene->as_one_host ? 0 : SHARED_PAGE_BYTES,
        .sink = &sink,
        .directory = directory,
        .keep = 2,
        .precious = -1,
        .settings = scene->site.settings,
        .kernels = "none",
    };
    CHECK(weft_saver_create(&options, &saver, &err) == WEFT_OK, "%s", err.text);
    CHECK(weft_comm_exchange(comm, NULL, 0, NULL, &err) == WEFT_OK, "%s", err.text);
    int64_t latest = 0;
    for (int64_t step = 1; step <= STEPS; step++) {
        struct site_source source = {
            .site = &scene->site, .step = step, .rank = rank, .ranks = RANKS};
        const struct weft_save_source pieces = site_pieces(&source);
        const struct weft_progress progress = site_progress(step);
        err = (struct weft_error){.status = WEFT_OK};
        enum weft_status status = step % 2 == 0 ? weft_saver_save(saver, &progress, &pieces, &err)
                                                : weft_saver_begin(saver, &progress, &pieces, &err);
        if (status == WEFT_OK) status = weft_saver_catch_up(saver, true, &err);
        CHECK(status == WEFT_OK || status == WEFT_E_IO, "seed %d: %s", (int)seed, err.text);
        if (status == WEFT_OK) latest = step;
        totals->saved += status == WEFT_OK;
        totals->failed += status != WEFT_OK;
        if (rank == 0) look_at(scene, directory, seed, latest, totals);
    }
    weft_saver_destroy(saver);
    const struct shared_counts counts = shared_host_counts(host);
    totals->late += counts.late;
    totals->lost += counts.lost;
    totals->faults += counts.failed;
    shared_host_close(host);
    CHECK(weft_comm_exchange(comm, NULL, 0, NULL, &err) == WEFT_OK, "%s", err.text);
    if (rank == 0) site_remove_directory(directory);
}

static int run_hosts(int32_t rank, const struct ranks *ranks, void *argument)
{
    const struct scene *scene = argument;
    const struct weft_comm_options options = ranks_options(rank, ranks);
    struct weft_error err = {.status = WEFT_OK};
    struct weft_comm *comm = NULL;
    struct totals totals = {0};
    CHECK(weft_comm_open("local", &options, &comm, &err) == WEFT_OK, "%s", err.text);
    for (int32_t seed = 0; seed < scene->seeds; seed++)
        run_seed(scene, seed, comm, &totals);
    weft_comm_close(comm);
    CHECK(write(scene->results, &totals, sizeof totals) == (ssize_t)sizeof totals, "a pipe");
    return 0;
}

/* Sums over ranks, but saves of one. */
static struct totals run_scene(struct scene *scene)
{
    struct totals sum = {0}, one;
    int ends[2];
    CHECK(pipe(ends) == 0, "a pipe");
    scene->results = ends[1];
    CHECK(ranks_run(RANKS, run_hosts, scene) == 0, "a rank failed");
    for (int32_t r = 0; r < RANKS; r++) {
        CHECK(read(ends[0], &one, sizeof one) == (ssize_t)sizeof one, "a pipe");
        sum.saved = one.saved;
        sum.failed = one.failed;
        sum.torn += one.torn;
        sum.late += one.late;
        sum.lost += one.lost;
        sum.faults += one.faults;
    }
    close(ends[0]);
    close(ends[1]);
    return sum;
}

/* Writes of rank 1, in order; files are numbers. */
struct writes {
    int32_t n;
    struct put {
        int32_t file;
        int64_t offset, length;
    } at[8];
};

static int note_write(void *context, int fd, const void *bytes, size_t length, int64_t offset,
                      size_t *written)
{
    struct writes *writes = context;
    (void)bytes;
    CHECK(writes->n < 8, "too many writes");
    writes->at[writes->n++] = (struct put){fd, offset, (int64_t)length};
    *written = length;
    return 0;
}

/* CHECKs the pages that rank 1 writes of these bytes. It must keep the rest for rank 0. */
static void check_puts(const struct put *puts, int32_t n, const struct put *right, int32_t n_right)
{
    enum { LENGTH = 5 * SHARED_PAGE_BYTES + 8 };
    static struct weft_saver saver;
    static const unsigned char bytes[LENGTH];
    struct writes writes = {0};
    const struct weft_sink sink = {.context = &writes, .write = note_write};
    struct weft_layout layout = {0};
    int64_t left = 0;
    memset(&saver, 0, sizeof saver);
    for (int f = 0; f < WEFT_CHECKPOINT_FILES; f++) {
        layout.files[f].bytes = LENGTH;
        saver.fds[f] = f;
    }
    saver.options = (struct weft_saver_options){
        .layout = &layout, .sink = &sink, .page_bytes = SHARED_PAGE_BYTES};
    saver.rank = 1;
    for (int32_t i = 0; i < n; i++) {
        left += puts[i].length;
        CHECK(weft_save_put(&saver, puts[i].file, bytes, puts[i].length, puts[i].offset) == 0,
              "a put fails");
    }
    CHECK(weft_save_end_page(&saver) == 0, "the last page fails");
    CHECK(writes.n == n_right, "%d writes, not %d", writes.n, n_right);
    for (int32_t i = 0; i < n_right; i++) {
        left -= right[i].length;
        const struct put *put = &writes.at[i];
        CHECK(put->file == right[i].file && put->offset == right[i].offset &&
                  put->length == right[i].length,
              "write %d: %d bytes of file %d at %d", i, (int)put->length, put->file,
              (int)put->offset);
    }
    CHECK((int64_t)saver.pages.n >= left && (left > 0) == (saver.pages.n > 0),
          "%d bytes are kept, not %d", (int)saver.pages.n, (int)left);
    free(saver.pages.parts);
}

#define CHECK_PUTS(puts, right)                                                                    \
    check_puts(puts, sizeof(puts) / sizeof *(puts), right, sizeof(right) / sizeof *(right))

static void check_pages(void)
{
    enum { PAGE = SHARED_PAGE_BYTES, END = 5 * PAGE + 8 };
    /* A page begins in one file and ends in another. */
    static const struct put two_files[] = {{0, 0, PAGE + 8}, {1, PAGE + 8, PAGE - 8}},
                            first[] = {{0, 0, PAGE}};
    CHECK_PUTS(two_files, first);
    /* Parts: the begin of a page, its end, and the file's end from within a page. */
    static const struct put parts[] = {{0, 2 * PAGE, 8}, {0, PAGE + 8, PAGE - 8}, {1, END - 4, 4}};
    check_puts(parts, 3, NULL, 0);
    /* A page of two puts, and the file's last, which is shorter. */
    static const struct put whole[] = {{0, 0, 8}, {0, 8, PAGE - 8}, {1, 5 * PAGE, 8}},
                            pages[] = {{0, 0, PAGE}, {1, 5 * PAGE, 8}};
    CHECK_PUTS(whole, pages);
    /* Whole pages of one put are one write. */
    static const struct put long_put[] = {{1, PAGE - 8, 3 * PAGE}}, inner[] = {{1, PAGE, 2 * PAGE}};
    CHECK_PUTS(long_put, inner);
}

RANKS_TEST(save_pages)
{
    check_pages();
    const char *wanted = getenv("WEFT_SHARED_SEEDS");
    struct scene scene = {.seeds = wanted != NULL ? atoi(wanted) : SEEDS};
    site_open(&scene.site);
    site_make_directory(scene.root);
    const struct totals found = run_scene(&scene);
    printf(
        "%d runs: %d saved, %d failed, %d torn; %d late names, %d lost replies, %d failed calls\n",
        scene.seeds, found.saved, found.failed, found.torn, found.late, found.lost, found.faults);
    CHECK(found.saved > 3 * found.failed && found.failed > 0, "faults are too many or too few");
    CHECK(found.late > 0 && found.lost > 0 && found.faults > 0, "nothing was injected");
    scene.as_one_host = true;
    scene.seeds = SEEDS_OF_CHECK;
    const struct totals check = run_scene(&scene);
    printf("as on one host: %d of %d are torn\n", check.torn, check.saved);
    CHECK(check.torn > 0, "the check finds nothing");
    site_remove_directory(scene.root);
    site_close(&scene.site);
    return 0;
}
