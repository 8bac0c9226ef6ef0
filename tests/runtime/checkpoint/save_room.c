/* SPDX-License-Identifier: Apache-2.0 */
/* Saves on a disk that is nearly full. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "runtime/checkpoint/directory.h"
#include "tests/runtime/checkpoint/site.h"
#include "tests/runtime/comm/ranks.h"

enum { STEPS = 5, KEEP = 2, BLOCK_BYTES = 128, MOST_INODES = 64 };

/* A disk of `capacity` bytes that counts the blocks of files and directories; a file with several
 * names counts once. */
struct scene {
    struct site site;
    char root[64];
    int64_t capacity;
    bool in_background;
    enum { PLAIN, HARD_LINKS, SYMBOLIC_LINKS } older; /* form of steps 1 and 2 */
    bool fails;                                       /* the last save */
};

struct usage {
    int64_t bytes;
    ino_t seen[MOST_INODES];
    int32_t n;
};

static int64_t blocks_of(int64_t bytes)
{
    return (bytes + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES;
}

static void count_path(struct usage *usage, const char *path)
{
    struct stat about;
    if (lstat(path, &about) != 0) return;
    for (int32_t i = 0; i < usage->n; i++)
        if (usage->seen[i] == about.st_ino) return;
    CHECK(usage->n < MOST_INODES, "too many files");
    usage->seen[usage->n++] = about.st_ino;
    if (S_ISREG(about.st_mode)) usage->bytes += blocks_of(about.st_size);
    if (!S_ISDIR(about.st_mode)) return;
    usage->bytes += BLOCK_BYTES;
    DIR *listing = opendir(path);
    const struct dirent *entry;
    while (listing != NULL && (entry = readdir(listing)) != NULL) {
        char inner[512];
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        CHECK(snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name) < (int)sizeof inner,
              "a long path");
        count_path(usage, inner);
    }
    if (listing != NULL) closedir(listing);
}

static int64_t free_now(const struct scene *scene)
{
    struct usage usage = {0};
    count_path(&usage, scene->root);
    return scene->capacity - usage.bytes;
}

static int give_free(void *context, const char *path, int64_t *bytes, int64_t *block_bytes)
{
    (void)path;
    *bytes = free_now(context);
    *block_bytes = BLOCK_BYTES;
    return 0;
}

static int write_where_free(void *context, int fd, const void *bytes, size_t length, int64_t offset,
                            size_t *written)
{
    struct stat about;
    CHECK(fstat(fd, &about) == 0, "no file");
    int64_t more = blocks_of(offset + (int64_t)length) - blocks_of(about.st_size);
    if (more > 0 && more > free_now(context)) return ENOSPC;
    return weft_sink_system.write(NULL, fd, bytes, length, offset, written);
}

static int reserve_where_free(void *context, int fd, int64_t bytes)
{
    if (blocks_of(bytes) > free_now(context)) return ENOSPC;
    return weft_sink_system.reserve(NULL, fd, bytes);
}

/* Gives the files of steps 1 and 2 second names, or moves the steps and links to them. */
static void link_older(const struct scene *scene)
{
    static const char *const names[] = {"model.safetensors", "optimizer.safetensors",
                                        "manifest.json"};
    for (int step = 1; step <= KEEP && scene->older != PLAIN; step++) {
        char from[128], to[128];
        snprintf(from, sizeof from, "%s/step-%d", scene->root, step);
        snprintf(to, sizeof to, "%s/moved-%d", scene->root, step);
        if (scene->older == SYMBOLIC_LINKS) {
            CHECK(rename(from, to) == 0 && symlink(to, from) == 0, "%s", to);
            continue;
        }
        CHECK(mkdir(to, 0777) == 0, "%s", to);
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            char file[192], second[192];
            snprintf(file, sizeof file, "%s/%s", from, names[i]);
            snprintf(second, sizeof second, "%s/%s", to, names[i]);
            CHECK(link(file, second) == 0, "%s", second);
        }
    }
}

static int save_steps(int32_t rank, const struct ranks *ranks, void *argument)
{
    struct scene *scene = argument;
    struct weft_error err = {0};
    struct weft_comm_options comm_options = ranks_options(rank, ranks);
    struct weft_comm *comm = NULL;
    struct weft_saver *saver = NULL;
    struct weft_sink sink = weft_sink_system;
    sink.context = scene;
    sink.free_bytes = give_free;
    sink.write = write_where_free;
    sink.reserve = reserve_where_free;
    CHECK(weft_comm_open("local", &comm_options, &comm, &err) == WEFT_OK, "%s", err.text);
    const struct weft_saver_options options = {.layout = scene->site.layout,
                                               .comm = comm,
                                               .sink = &sink,
                                               .directory = scene->root,
                                               .keep = KEEP,
                                               .precious = -1,
                                               .settings = scene->site.settings,
                                               .kernels = "none"};
    CHECK(weft_saver_create(&options, &saver, &err) == WEFT_OK, "%s", err.text);
    const int64_t last = scene->older == PLAIN ? STEPS : KEEP + 1;
    for (int64_t step = 1; step <= last; step++) {
        struct site_source source = {
            .site = &scene->site, .step = step, .rank = rank, .ranks = ranks->n};
        struct weft_save_source pieces = site_pieces(&source);
        struct weft_progress progress = site_progress(step);
        if (step == KEEP + 1) link_older(scene);
        enum weft_status status = scene->in_background
                                      ? weft_saver_begin(saver, &progress, &pieces, &err)
                                      : weft_saver_save(saver, &progress, &pieces, &err);
        if (status == WEFT_OK) status = weft_saver_catch_up(saver, false, &err);
        if (status == WEFT_OK) status = weft_saver_catch_up(saver, true, &err);
        bool fails = scene->fails && step == last;
        CHECK(status == (fails ? WEFT_E_IO : WEFT_OK), "capacity %d, step %d: status %d: %s",
              (int)scene->capacity, (int)step, (int)status, err.text);
        CHECK(!fails || strstr(err.text, " left: make room") != NULL, "%s", err.text);
    }
    weft_saver_destroy(saver);
    weft_comm_close(comm);
    return 0;
}

static int32_t count_steps(const char *directory)
{
    int64_t *steps = NULL;
    int32_t n = 0;
    CHECK(weft_checkpoint_scan(directory, &steps, &n, NULL) == WEFT_OK, "no listing");
    free(steps);
    return n;
}

static void run_scene(struct scene *scene)
{
    site_make_directory(scene->root);
    CHECK(ranks_run(1, save_steps, scene) == 0, "capacity %d", (int)scene->capacity);
    CHECK(count_steps(scene->root) == KEEP, "%d steps", (int)count_steps(scene->root));
    site_remove_directory(scene->root);
}

/* Bytes that `KEEP` checkpoints take on the disk. */
static int64_t bytes_kept(struct scene *scene)
{
    scene->capacity = INT64_C(1) << 30;
    site_make_directory(scene->root);
    CHECK(ranks_run(1, save_steps, scene) == 0, "a large disk");
    int64_t bytes = scene->capacity - free_now(scene);
    site_remove_directory(scene->root);
    return bytes;
}

/* Every capacity from two checkpoints and a few blocks up to three serves: the manifest counts. */
static void test_capacities(struct scene *scene)
{
    enum { SPARE_BLOCKS = 8 };
    const int64_t kept = bytes_kept(scene), least = kept + (int64_t)SPARE_BLOCKS * BLOCK_BYTES;
    scene->in_background = true;
    for (scene->capacity = least; scene->capacity < least + kept / KEEP;
         scene->capacity += 5 * BLOCK_BYTES)
        run_scene(scene);
    scene->in_background = false;
    scene->capacity = least;
    run_scene(scene);
}

/* Steps with other names would free nothing, so they stay and the save fails. */
static void test_links(struct scene *scene)
{
    const int64_t kept = bytes_kept(scene);
    scene->fails = true;
    for (int older = HARD_LINKS; older <= SYMBOLIC_LINKS; older++) {
        scene->older = older;
        scene->capacity = kept + kept / KEEP / 2;
        run_scene(scene);
    }
}

RANKS_TEST(save_room)
{
    struct scene scene = {.older = PLAIN};
    site_open(&scene.site);
    test_capacities(&scene);
    test_links(&scene);
    site_close(&scene.site);
    return 0;
}
