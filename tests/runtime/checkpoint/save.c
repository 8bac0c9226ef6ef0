/* What a save leaves to be found: CRCs of every chunk, and nothing where there is no room. */
#include "runtime/checkpoint/save.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/checkpoint/directory.h"
#include "tests/runtime/checkpoint/site.h"
#include "tests/runtime/comm/ranks.h"

enum { RANKS = 3, STEP = 4, MOST_PARTS = 5 };

struct scene {
    struct site site;
    char root[64];
    int64_t room_bytes;      /* that the disk says it has; 0: it is asked */
    enum weft_status wanted; /* of the save */
};

static int give_room(void *context, const char *path, int64_t *bytes)
{
    const struct scene *scene = context;
    (void)path;
    *bytes = scene->room_bytes;
    return 0;
}

static int save_once(int32_t rank, const struct ranks *ranks, void *argument)
{
    struct scene *scene = argument;
    struct weft_error err = {0};
    struct weft_comm_options comm_options = ranks_options(rank, ranks);
    struct weft_comm *comm = NULL;
    struct weft_saver *saver = NULL;
    struct weft_sink sink = weft_sink_system;
    sink.context = scene;
    if (scene->room_bytes > 0) sink.free_bytes = give_room;
    CHECK(weft_comm_open("local", &comm_options, &comm, &err) == WEFT_OK, "%s", err.text);
    const struct weft_saver_options options = {.layout = scene->site.layout,
                                               .comm = comm,
                                               .sink = &sink,
                                               .directory = scene->root,
                                               .keep = 2,
                                               .precious = -1,
                                               .settings = scene->site.settings,
                                               .kernels = "none"};
    CHECK(weft_saver_create(&options, &saver, &err) == WEFT_OK, "%s", err.text);
    struct site_source source = {
        .site = &scene->site, .step = STEP, .rank = rank, .ranks = ranks->n};
    struct weft_save_source pieces = site_pieces(&source);
    struct weft_progress progress = site_progress(STEP);
    enum weft_status status = weft_saver_save(saver, &progress, &pieces, &err);
    CHECK(status == scene->wanted, "status %d: %s", (int)status, err.text);
    if (status != WEFT_OK) CHECK(strstr(err.text, " left: make room") != NULL, "%s", err.text);
    weft_saver_destroy(saver);
    weft_comm_close(comm);
    return 0;
}

static void save(struct scene *scene, int32_t ranks)
{
    CHECK(ranks_run(ranks, save_once, scene) == 0, "a rank failed");
}

static int64_t bytes_of(const struct scene *scene)
{
    int64_t bytes = 0;
    for (int f = 0; f < WEFT_CHECKPOINT_FILES; f++)
        bytes += scene->site.layout->files[f].bytes;
    return bytes;
}

/* A byte less than a checkpoint takes is too little, and the checkpoint is enough. */
static void test_room(struct scene *scene)
{
    int64_t *steps = NULL;
    int32_t n = 0;
    scene->wanted = WEFT_E_IO;
    scene->room_bytes = bytes_of(scene) - 1;
    save(scene, 1);
    CHECK(weft_checkpoint_scan(scene->root, &steps, &n, NULL) == WEFT_OK && n == 0, "%d steps", n);
    free(steps);
    scene->wanted = WEFT_OK;
    scene->room_bytes = bytes_of(scene);
    save(scene, 1);
    scene->room_bytes = 0;
}

static void flip(const char *path, int64_t byte)
{
    FILE *file = fopen(path, "r+b");
    CHECK(file != NULL && fseek(file, (long)byte, SEEK_SET) == 0, "%s", path);
    int value = fgetc(file);
    CHECK(fseek(file, (long)byte, SEEK_SET) == 0 && fputc(value ^ 1, file) != EOF, "%s", path);
    fclose(file);
}

/* Of all parts exactly the one that has the chunk finds it damaged. */
static void look_for(const struct weft_checkpoint *checkpoint, int32_t f, int64_t chunk)
{
    char name[64];
    snprintf(name, sizeof name, "%s: is damaged in chunk %d ", checkpoint->manifest->files[f].name,
             (int)chunk);
    for (int64_t parts = 1; parts <= MOST_PARTS; parts++) {
        for (int64_t part = 0; part < parts; part++) {
            struct weft_error err = {0};
            enum weft_status wanted = chunk % parts == part ? WEFT_E_DATA : WEFT_OK;
            CHECK(weft_checkpoint_verify(checkpoint, part, parts, &err) == wanted,
                  "chunk %d, part %d of %d: %s", (int)chunk, (int)part, (int)parts, err.text);
            CHECK(wanted == WEFT_OK || strstr(err.text, name) != NULL, "%s", err.text);
        }
    }
}

static void test_every_chunk(struct scene *scene)
{
    char path[128], file[192];
    struct weft_checkpoint *checkpoint = NULL;
    struct weft_error err = {0};
    snprintf(path, sizeof path, "%s/step-%d", scene->root, STEP);
    save(scene, RANKS);
    CHECK(weft_checkpoint_open(path, &checkpoint, &err) == WEFT_OK, "%s", err.text);
    CHECK(site_holds(&scene->site, checkpoint), "it holds something else");
    for (int32_t f = 0; f < WEFT_CHECKPOINT_FILES; f++) {
        const struct weft_manifest_file *known = &checkpoint->manifest->files[f];
        snprintf(file, sizeof file, "%s/%s", path, known->name);
        CHECK(known->n_chunks > 2 * MOST_PARTS, "%d chunks", (int)known->n_chunks);
        for (int64_t c = 0; c < known->n_chunks; c++) {
            int64_t begin = c * known->chunk_bytes;
            int64_t last =
                begin + weft_checkpoint_chunk_length(known->bytes, known->chunk_bytes, c) - 1;
            for (int end = 0; end < 2; end++) {
                flip(file, end == 0 ? begin : last);
                look_for(checkpoint, f, c);
                flip(file, end == 0 ? begin : last);
            }
        }
    }
    CHECK(weft_checkpoint_verify(checkpoint, 0, 1, &err) == WEFT_OK, "%s", err.text);
    weft_checkpoint_close(checkpoint);
    weft_checkpoint_remove(&weft_sink_system, path);
}

RANKS_TEST(save)
{
    struct scene scene = {.wanted = WEFT_OK};
    site_open(&scene.site);
    site_make_directory(scene.root);
    test_every_chunk(&scene);
    test_room(&scene);
    site_remove_directory(scene.root);
    site_close(&scene.site);
    return 0;
}
