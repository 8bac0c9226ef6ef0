/* SPDX-License-Identifier: Apache-2.0 */
/* A save leaves the CRC of every chunk, and no file if there is no room. */
#include "runtime/checkpoint/save.h"
#include "runtime/checkpoint/origin.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/checkpoint/directory.h"
#include "tests/runtime/checkpoint/site.h"
#include "tests/runtime/comm/ranks.h"

enum { RANKS = 3, STEP = 4, MOST_PARTS = 5 };
enum { MANIFEST_BYTES = 16384 }; /* more than one has */

struct dead_case {
    enum weft_dtype dtype;
    enum weft_state state;
    float value;
    enum weft_status wanted;
    const char *says;
};

struct scene {
    struct site site;
    char root[64];
    int64_t room_bytes;      /* that the disk says it has; 0: it is asked */
    bool fails;              /* rank 1 cannot write, and rank 2 cannot read its source */
    int64_t damaged;         /* from this step on the written bytes are damaged; 0: none */
    int64_t first, last;     /* steps that are saved */
    int64_t writing;         /* likewise: under way */
    enum weft_status wanted; /* of the save */
    struct dead_case dead;   /* of the last rank */
    bool in_background;
    int64_t most_steps; /* checkpoints that the disk has room for, as it says */
    int64_t quota;      /* likewise, but met in the writing */
    bool spoilt;        /* the newest one is damaged before the last is saved */
};

static int give_room(void *context, const char *path, int64_t *bytes, int64_t *block_bytes)
{
    const struct scene *scene = context;
    (void)path;
    *bytes = scene->room_bytes;
    *block_bytes = 1;
    return 0;
}

static int fail_to_write(void *context, int fd, const void *bytes, size_t length, int64_t offset,
                         size_t *written)
{
    (void)context, (void)fd, (void)bytes, (void)length, (void)offset, (void)written;
    return EIO;
}

static enum weft_status fail_to_read(void *context, int64_t from, int64_t n, float *out,
                                     struct weft_error *err)
{
    (void)context, (void)from, (void)n, (void)out;
    return weft_fail(err, WEFT_E_INTERNAL, "nothing can be read");
}

/* The first byte of data, which no header has. */
static int damage(void *context, int fd, const void *bytes, size_t length, int64_t offset,
                  size_t *written)
{
    const struct scene *scene = context;
    char changed = *(const char *)bytes;
    int64_t begin = scene->site.layout->files[0].header_bytes;
    if (scene->damaged == 0 || scene->writing < scene->damaged || offset != begin)
        return weft_sink_system.write(NULL, fd, bytes, length, offset, written);
    changed ^= 1;
    return weft_sink_system.write(NULL, fd, &changed, 1, offset, written);
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
    if (scene->fails && rank == 1) sink.write = fail_to_write;
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
    if (scene->fails && rank == 2) pieces.read = fail_to_read;
    struct weft_progress progress = site_progress(STEP);
    enum weft_status status = weft_saver_save(saver, &progress, &pieces, &err);
    CHECK(status == scene->wanted, "status %d: %s", (int)status, err.text);
    const char *why = scene->fails ? "rank 1: cannot write " : " left: make room";
    CHECK(status == WEFT_OK || strstr(err.text, why) != NULL, "%s", err.text);
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

/* One byte less than the tensors is too little; tensors with a manifest fit. */
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
    scene->room_bytes = bytes_of(scene) + MANIFEST_BYTES;
    save(scene, 1);
    scene->room_bytes = 0;
}

/* One rank saves steps, and goes on from step 1. */
static int save_many(int32_t rank, const struct ranks *ranks, void *argument)
{
    struct scene *scene = argument;
    struct weft_error err = {0};
    struct weft_comm_options comm_options = ranks_options(rank, ranks);
    struct weft_comm *comm = NULL;
    struct weft_saver *saver = NULL;
    struct weft_sink sink = weft_sink_system;
    sink.context = scene;
    sink.write = damage;
    CHECK(weft_comm_open("local", &comm_options, &comm, &err) == WEFT_OK, "%s", err.text);
    const struct weft_saver_options options = {.layout = scene->site.layout,
                                               .comm = comm,
                                               .sink = &sink,
                                               .directory = scene->root,
                                               .keep = 2,
                                               .precious = 1,
                                               .settings = scene->site.settings,
                                               .kernels = "none"};
    CHECK(weft_saver_create(&options, &saver, &err) == WEFT_OK, "%s", err.text);
    for (scene->writing = scene->first; scene->writing <= scene->last; scene->writing++) {
        struct site_source source = {
            .site = &scene->site, .step = scene->writing, .rank = rank, .ranks = ranks->n};
        struct weft_save_source pieces = site_pieces(&source);
        struct weft_progress progress = site_progress(scene->writing);
        CHECK(weft_saver_save(saver, &progress, &pieces, &err) == WEFT_OK, "%s", err.text);
    }
    weft_saver_destroy(saver);
    weft_comm_close(comm);
    return 0;
}

static void expect_steps(const struct scene *scene, int32_t n, const int64_t *wanted)
{
    int64_t *steps = NULL;
    int32_t found = 0;
    CHECK(weft_checkpoint_scan(scene->root, &steps, &found, NULL) == WEFT_OK && found == n,
          "%d steps, not %d", found, n);
    for (int32_t i = 0; i < n; i++)
        CHECK(steps[i] == wanted[i], "step %d, not %d", (int)steps[i], (int)wanted[i]);
    free(steps);
}

/* The checkpoint that a run resumed from stays until a newer one was read back and is right. */
static void test_precious(struct scene *scene)
{
    enum { LAST = 5 };
    for (int64_t damaged = 2; damaged <= 3; damaged++) {
        scene->damaged = 0;
        scene->first = scene->last = 1;
        CHECK(ranks_run(1, save_many, scene) == 0, "a rank failed");
        scene->damaged = damaged;
        scene->first = 2;
        scene->last = LAST;
        CHECK(ranks_run(1, save_many, scene) == 0, "a rank failed");
        expect_steps(scene, damaged == 2 ? 3 : 2,
                     damaged == 2 ? (int64_t[]){1, LAST - 1, LAST} : (int64_t[]){LAST - 1, LAST});
        for (int step = 1; step <= LAST; step++) {
            char path[128];
            snprintf(path, sizeof path, "%s/step-%d", scene->root, step);
            weft_checkpoint_remove(&weft_sink_system, path);
        }
    }
    scene->damaged = 0;
}

/* A directory has the checkpoint of its own step. */
static void test_renamed(struct scene *scene)
{
    char from[128], to[128];
    struct weft_checkpoint *checkpoint = NULL;
    struct weft_error err = {0};
    save(scene, 1);
    snprintf(from, sizeof from, "%s/step-%d", scene->root, STEP);
    for (int step = STEP - 1; step <= STEP + 1; step += 2) {
        snprintf(to, sizeof to, "%s/step-%d", scene->root, step);
        CHECK(rename(from, to) == 0, "%s", to);
        err.status = WEFT_OK;
        CHECK(weft_checkpoint_open(to, &checkpoint, &err) == WEFT_E_DATA, "step %d", step);
        CHECK(strstr(err.text, "is of step 4, not of its directory's") != NULL, "%s", err.text);
        snprintf(from, sizeof from, "%s", to);
    }
    weft_checkpoint_remove(&weft_sink_system, from);
}

/* The first of several ranks that fail is named, on all. */
static void test_failures(struct scene *scene)
{
    scene->wanted = WEFT_E_IO;
    scene->fails = true;
    save(scene, RANKS);
    scene->wanted = WEFT_OK;
    scene->fails = false;
}

static int save_dead(int32_t rank, const struct ranks *ranks, void *argument)
{
    struct scene *scene = argument;
    struct weft_error err = {0};
    struct weft_comm_options comm_options = ranks_options(rank, ranks);
    struct weft_comm *comm = NULL;
    struct weft_saver *saver = NULL;
    CHECK(weft_comm_open("local", &comm_options, &comm, &err) == WEFT_OK, "%s", err.text);
    const struct weft_saver_options options = {.layout = scene->site.layout,
                                               .comm = comm,
                                               .sink = &weft_sink_system,
                                               .directory = scene->root,
                                               .keep = 2,
                                               .precious = -1,
                                               .settings = scene->site.settings,
                                               .kernels = "none"};
    CHECK(weft_saver_create(&options, &saver, &err) == WEFT_OK, "%s", err.text);
    for (int64_t step = STEP; step <= STEP + 1; step++) {
        struct site_source source = {
            .site = &scene->site, .step = step, .rank = rank, .ranks = ranks->n};
        struct weft_save_source pieces = site_pieces(&source);
        struct weft_progress progress = site_progress(step);
        bool dies = step > STEP;
        source.dtype = scene->dead.dtype;
        source.dead_state = scene->dead.state;
        source.dead = dies && rank == ranks->n - 1 ? scene->dead.value : 0;
        enum weft_status status = scene->in_background
                                      ? weft_saver_begin(saver, &progress, &pieces, &err)
                                      : weft_saver_save(saver, &progress, &pieces, &err);
        if (status == WEFT_OK) status = weft_saver_catch_up(saver, true, &err);
        CHECK(status == (dies ? scene->dead.wanted : WEFT_OK), "status %d: %s", (int)status,
              err.text);
        CHECK(status == WEFT_OK || strstr(err.text, scene->dead.says) != NULL, "%s", err.text);
    }
    weft_saver_destroy(saver);
    weft_comm_close(comm);
    return 0;
}

/* All ranks refuse a dead model that one of them has, and the checkpoint before it stays alone. */
static void test_dead(struct scene *scene)
{
    static const enum weft_state parameter = WEFT_STATE_PARAMETER, moment = WEFT_STATE_MOMENT1;
    const struct dead_case cases[] = {
        {WEFT_F32, parameter, NAN, WEFT_E_NUMERIC, "rank 2: the model is dead: element "},
        {WEFT_F32, parameter, -INFINITY, WEFT_E_NUMERIC, " is -inf"},
        {WEFT_F32, parameter, 3.4028234e38f, WEFT_OK, ""},
        {WEFT_BF16, parameter, 3.4e38f, WEFT_E_NUMERIC, "infinite in bf16"},
        {WEFT_F16, parameter, -65520, WEFT_E_NUMERIC, " is -65520, which is infinite in f16"},
        {WEFT_F16, parameter, 65519, WEFT_OK, ""},
        {WEFT_F16, moment, INFINITY, WEFT_OK, ""},
    };
    for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
        char path[128];
        scene->dead = cases[i / 2];
        scene->in_background = i % 2 != 0;
        CHECK(ranks_run(RANKS, save_dead, scene) == 0, "case %d", (int)i / 2);
        bool saved = scene->dead.wanted == WEFT_OK;
        expect_steps(scene, saved ? 2 : 1, (int64_t[]){STEP, STEP + 1});
        snprintf(path, sizeof path, "%s/step-%d.tmp-2", scene->root, STEP + 1);
        CHECK(access(path, F_OK) != 0, "%s is left", path);
        for (int step = STEP; step <= STEP + (saved ? 1 : 0); step++) {
            snprintf(path, sizeof path, "%s/step-%d", scene->root, step);
            weft_checkpoint_remove(&weft_sink_system, path);
        }
    }
}

static void flip(const char *path, int64_t byte)
{
    FILE *file = fopen(path, "r+b");
    CHECK(file != NULL && fseek(file, (long)byte, SEEK_SET) == 0, "%s", path);
    int value = fgetc(file);
    CHECK(fseek(file, (long)byte, SEEK_SET) == 0 && fputc(value ^ 1, file) != EOF, "%s", path);
    fclose(file);
}

static int32_t count_steps(const char *directory)
{
    int64_t *steps = NULL;
    int32_t n = 0;
    CHECK(weft_checkpoint_scan(directory, &steps, &n, NULL) == WEFT_OK, "no listing");
    free(steps);
    return n;
}

/* Once all places are taken, a byte less than the next tensors. */
static int give_places(void *context, const char *path, int64_t *bytes, int64_t *block_bytes)
{
    const struct scene *scene = context;
    (void)path;
    bool has_place = scene->most_steps == 0 || count_steps(scene->root) < scene->most_steps;
    *bytes = has_place ? bytes_of(scene) + MANIFEST_BYTES : bytes_of(scene) - 1;
    *block_bytes = 1;
    return 0;
}

static int meet_quota(void *context, int fd, const void *bytes, size_t length, int64_t offset,
                      size_t *written)
{
    const struct scene *scene = context;
    if (scene->quota > 0 && count_steps(scene->root) >= scene->quota) return EDQUOT;
    return weft_sink_system.write(NULL, fd, bytes, length, offset, written);
}

static void spoil(const struct scene *scene, int64_t step)
{
    char path[192];
    snprintf(path, sizeof path, "%s/step-%d/%s", scene->root, (int)step,
             scene->site.layout->files[0].name);
    flip(path, scene->site.layout->files[0].bytes - 1);
}

static int save_in_little_room(int32_t rank, const struct ranks *ranks, void *argument)
{
    struct scene *scene = argument;
    struct weft_error err = {0};
    struct weft_comm_options comm_options = ranks_options(rank, ranks);
    struct weft_comm *comm = NULL;
    struct weft_saver *saver = NULL;
    struct weft_sink sink = weft_sink_system;
    sink.context = scene;
    sink.free_bytes = give_places;
    sink.write = meet_quota;
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
    for (int64_t step = 1; step <= STEP; step++) {
        struct site_source source = {
            .site = &scene->site, .step = step, .rank = rank, .ranks = ranks->n};
        struct weft_save_source pieces = site_pieces(&source);
        struct weft_progress progress = site_progress(step);
        if (step == STEP && scene->spoilt && rank == 0) spoil(scene, STEP - 1);
        enum weft_status status = scene->in_background
                                      ? weft_saver_begin(saver, &progress, &pieces, &err)
                                      : weft_saver_save(saver, &progress, &pieces, &err);
        if (status == WEFT_OK) status = weft_saver_catch_up(saver, true, &err);
        bool fails = step == STEP && scene->wanted != WEFT_OK;
        CHECK(status == (fails ? scene->wanted : WEFT_OK), "status %d: %s", (int)status, err.text);
    }
    weft_saver_destroy(saver);
    weft_comm_close(comm);
    return 0;
}

/* With room for two, the older one goes first; it stays if the newer one is not complete. */
static void test_little_room(struct scene *scene)
{
    for (int i = 0; i < 8; i++) {
        scene->in_background = i % 2 != 0;
        scene->spoilt = i / 2 % 2 != 0;
        scene->most_steps = i < 4 ? 2 : 0;
        scene->quota = i < 4 ? 0 : 2;
        scene->wanted = scene->spoilt ? WEFT_E_IO : WEFT_OK;
        CHECK(ranks_run(RANKS, save_in_little_room, scene) == 0, "case %d", i);
        int64_t first = scene->spoilt ? STEP - 2 : STEP - 1;
        expect_steps(scene, 2, (int64_t[]){first, first + 1});
        for (int64_t step = first; step <= first + 1; step++) {
            char path[128];
            snprintf(path, sizeof path, "%s/step-%d", scene->root, (int)step);
            weft_checkpoint_remove(&weft_sink_system, path);
        }
    }
    scene->most_steps = scene->quota = 0;
    scene->wanted = WEFT_OK;
}

/* Only the part that has the chunk finds it damaged. */
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

/* The ranks of a run that begins with these parameters share their verification too. */
static void look_from(const struct weft_origin_file *from, int32_t f, int64_t chunk)
{
    for (int64_t parts = 1; parts <= MOST_PARTS; parts++)
        for (int64_t part = 0; part < parts; part++) {
            struct weft_error err = {0};
            const bool finds = f == 0 && chunk % parts == part;
            CHECK(weft_origin_verify(from, part, parts, &err) == (finds ? WEFT_E_DATA : WEFT_OK),
                  "file %d, chunk %d, part %d of %d: %s", (int)f, (int)chunk, (int)part, (int)parts,
                  err.text);
        }
}

static void test_every_chunk(struct scene *scene)
{
    char path[128], file[192];
    struct weft_checkpoint *checkpoint = NULL;
    struct weft_origin_file *from = NULL;
    struct weft_error err = {0};
    snprintf(path, sizeof path, "%s/step-%d", scene->root, STEP);
    save(scene, RANKS);
    CHECK(weft_checkpoint_open(path, &checkpoint, &err) == WEFT_OK, "%s", err.text);
    CHECK(site_holds(&scene->site, checkpoint), "it holds something else");
    CHECK(weft_origin_open(path, scene->site.config->model, &from, &err) == WEFT_OK, "%s",
          err.text);
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
                look_from(from, f, c);
                flip(file, end == 0 ? begin : last);
            }
        }
    }
    CHECK(weft_checkpoint_verify(checkpoint, 0, 1, &err) == WEFT_OK, "%s", err.text);
    weft_origin_close(from);
    weft_checkpoint_close(checkpoint);
    weft_checkpoint_remove(&weft_sink_system, path);
}

RANKS_TEST(save)
{
    struct scene scene = {.wanted = WEFT_OK};
    site_open(&scene.site);
    site_make_directory(scene.root);
    test_every_chunk(&scene);
    test_failures(&scene);
    test_dead(&scene);
    test_precious(&scene);
    test_renamed(&scene);
    test_little_room(&scene);
    test_room(&scene);
    site_remove_directory(scene.root);
    site_close(&scene.site);
    return 0;
}
