/* SPDX-License-Identifier: Apache-2.0 */
/* Power fails at any moment of a run that saves again and again, two saves with a failed sync among
 * them: in none of 10^4 states is a committed checkpoint lost, or a broken one accepted, or one
 * broken that has a committed one's name. The check itself is checked: with syncs that do nothing
 * it must find them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/rng.h"
#include "base/text.h"
#include "runtime/checkpoint/directory.h"
#include "tests/effort.h"
#include "tests/runtime/checkpoint/journal.h"
#include "tests/runtime/checkpoint/site.h"
#include "tests/runtime/comm/ranks.h"

enum {
    RANKS = 3,
    STEPS = 6,
    KEEP = 2,
    STATES = TEST_CASES(10000, 2000),
    CHECK_STATES = 500,
    LITTLE_ROOM_STATES = TEST_CASES(3000, 600),
    MANIFEST_BYTES = 16384 /* more than one has */
};

/* Checkpoints that the disk has room for, and the bytes of a checkpoint's tensors. */
static int32_t most_checkpoints;
static int64_t checkpoint_bytes;

struct scene {
    struct site site;
    struct journal *journal;
    char root[64], state[80];
};

/* Every other step in the background. */
static enum weft_status save(struct weft_saver *saver, int64_t step,
                             const struct weft_save_source *pieces, struct weft_error *err)
{
    struct weft_progress progress = site_progress(step);
    if (step % 2 == 0) return weft_saver_save(saver, &progress, pieces, err);
    WEFT_TRY(weft_saver_begin(saver, &progress, pieces, err));
    CHECK(!weft_saver_is_idle(saver), "nothing is under way");
    WEFT_TRY(weft_saver_catch_up(saver, false, err));
    WEFT_TRY(weft_saver_catch_up(saver, step == 3, err));
    CHECK(weft_saver_is_idle(saver), "the commit is not done");
    return weft_saver_catch_up(saver, true, err);
}

/* Rank 0 fails at two syncs: the one after the rename that commits step 2, and the one before the
 * rest of it would be removed. Each other rank fails once, in steps 4 and 6. */
static const struct journal_faults faults[RANKS] = {{0, 7, 1}, {7, 0, 0}, {11, 0, 0}};

static int give_places(void *context, const char *path, int64_t *bytes, int64_t *block_bytes)
{
    int64_t *steps = NULL;
    int32_t n = 0;
    (void)context;
    CHECK(weft_checkpoint_scan(path, &steps, &n, NULL) == WEFT_OK, "no listing");
    free(steps);
    *bytes = n < most_checkpoints ? checkpoint_bytes + MANIFEST_BYTES : checkpoint_bytes - 1;
    *block_bytes = 1;
    return 0;
}

static int save_all(int32_t rank, const struct ranks *ranks, void *argument)
{
    const struct scene *scene = argument;
    struct weft_error err = {0};
    struct weft_comm_options comm_options = ranks_options(rank, ranks);
    struct weft_comm *comm = NULL;
    struct weft_saver *saver = NULL;
    struct weft_sink sink = journal_sink(scene->journal, faults[rank]);
    sink.free_bytes = give_places;
    CHECK(weft_comm_open("local", &comm_options, &comm, &err) == WEFT_OK, "%s", err.text);
    struct weft_saver_options options = {
        .layout = scene->site.layout,
        .comm = comm,
        .sink = &sink,
        .directory = scene->root,
        .keep = KEEP,
        .precious = -1,
        .settings = scene->site.settings,
        .kernels = "none",
    };
    CHECK(weft_saver_create(&options, &saver, &err) == WEFT_OK, "%s", err.text);
    for (int64_t step = 1; step <= STEPS; step++) {
        struct site_source source = {
            .site = &scene->site, .step = step, .rank = rank, .ranks = RANKS};
        struct weft_save_source pieces = site_pieces(&source);
        CHECK(save(saver, step, &pieces, &err) == WEFT_OK, "%s", err.text);
    }
    weft_saver_destroy(saver);
    weft_comm_close(comm);
    free(sink.context);
    return 0;
}

/* Steps that were committed and not yet removed before the crash. */
static void committed_steps(const struct journal *journal, int32_t length, bool out[STEPS + 1])
{
    bool renamed[STEPS + 1] = {false};
    memset(out, 0, (STEPS + 1) * sizeof *out);
    for (int32_t i = 0; i < length; i++) {
        const struct journal_entry *entry = journal_at(journal, i);
        int64_t step = 0;
        if (entry->kind == JOURNAL_RENAME && weft_checkpoint_step_of(entry->other, &step))
            renamed[step] = true;
        if (entry->kind == JOURNAL_RENAME && weft_checkpoint_step_of(entry->name, &step))
            out[step] = renamed[step] = false;
        if (entry->kind == JOURNAL_SYNC_DIRECTORY && entry->node == JOURNAL_ROOT) {
            for (step = 1; step <= STEPS; step++)
                out[step] = out[step] || renamed[step];
        }
    }
}

static bool is_whole(const struct scene *scene, const char *path, bool *accepted)
{
    struct weft_checkpoint *checkpoint = NULL;
    *accepted = weft_checkpoint_open(path, &checkpoint, NULL) == WEFT_OK &&
                weft_checkpoint_verify(checkpoint, 0, 1, NULL) == WEFT_OK;
    bool whole = *accepted && site_holds(&scene->site, checkpoint);
    weft_checkpoint_close(checkpoint);
    return whole;
}

/* States in which a committed one is lost; a broken one is accepted; a broken one has the name of
 * one that is committed, whether it was or not. */
struct outcome {
    int32_t lost, broken, torn;
};

static void look_at_latest(const struct scene *scene, const bool *committed,
                           struct outcome *outcome)
{
    char *latest = NULL;
    int64_t last = 0, found = 0;
    bool accepted = false;
    for (int64_t step = 1; step <= STEPS; step++)
        last = committed[step] ? step : last;
    CHECK(weft_checkpoint_latest(scene->state, &latest, NULL) == WEFT_OK, "no listing");
    if (latest != NULL) {
        bool whole = is_whole(scene, latest, &accepted);
        CHECK(weft_checkpoint_step_of(latest, &found), "%s is not a step", latest);
        outcome->broken += accepted && !whole;
        outcome->lost += !accepted;
    }
    outcome->lost += found < last;
    free(latest);
}

static void look_at(const struct scene *scene, const struct journal_crash *crash,
                    struct outcome *outcome)
{
    bool committed[STEPS + 1], accepted = false;
    CHECK(mkdir(scene->state, 0700) == 0, "%s is there already", scene->state);
    journal_make_state(scene->journal, crash, scene->state);
    committed_steps(scene->journal, crash->length, committed);
    look_at_latest(scene, committed, outcome);
    weft_checkpoint_clear(&weft_sink_system, scene->state);
    for (int64_t step = 1; step <= STEPS; step++) {
        struct weft_text path;
        weft_text_init(&path);
        weft_checkpoint_path(scene->state, step, &path);
        struct stat about;
        bool shown = stat(weft_text_chars(&path), &about) == 0;
        bool whole = shown && is_whole(scene, weft_text_chars(&path), &accepted);
        outcome->broken += shown && accepted && !whole;
        outcome->torn += shown && !accepted;
        outcome->lost += committed[step] && !(shown && accepted);
        if (shown) weft_checkpoint_remove(&weft_sink_system, weft_text_chars(&path));
        weft_text_finish(&path);
    }
    weft_checkpoint_remove(&weft_sink_system, scene->state);
}

static struct outcome crash_often(const struct scene *scene, int32_t states, bool without_sync,
                                  bool without_sync_dir)
{
    struct outcome outcome = {0};
    uint64_t length = (uint64_t)journal_length(scene->journal);
    for (int32_t s = 0; s < states; s++) {
        struct journal_crash crash = {
            .length = (int32_t)weft_rng_below(11, 0, (uint64_t)s, length + 1),
            .seed = (uint64_t)s,
            .without_sync = without_sync,
            .without_sync_dir = without_sync_dir,
        };
        look_at(scene, &crash, &outcome);
    }
    return outcome;
}

/* With room for as many checkpoints as stay, the oldest goes before a new one is written. */
static void save_and_crash(struct scene *scene, int32_t most, int32_t states)
{
    struct weft_error err = {0};
    most_checkpoints = most;
    CHECK(ranks_run(RANKS, save_all, scene) == 0, "a rank failed");
    int64_t *steps = NULL;
    int32_t n = 0;
    CHECK(weft_checkpoint_scan(scene->root, &steps, &n, &err) == WEFT_OK, "%s", err.text);
    CHECK(n == KEEP && steps[0] == STEPS - 1 && steps[1] == STEPS, "%d checkpoints are left", n);
    free(steps);
    struct outcome outcome = crash_often(scene, states, false, false);
    printf(
        "%d crash states of %d calls: %d lose a committed checkpoint, %d accept a broken one, %d "
        "show one\n",
        states, journal_length(scene->journal), outcome.lost, outcome.broken, outcome.torn);
    CHECK(outcome.lost == 0 && outcome.broken == 0 && outcome.torn == 0, "seeds 0 to %d",
          states - 1);
}

RANKS_TEST(crash)
{
    struct scene scene;
    site_open(&scene.site);
    site_make_directory(scene.root);
    bool in_memory = access("/dev/shm", W_OK | X_OK) == 0; /* states are many small files */
    snprintf(scene.state, sizeof scene.state, "%s%s-state", in_memory ? "/dev/shm" : "/tmp",
             strrchr(scene.root, '/'));
    scene.journal = journal_create(scene.root);
    for (int f = 0; f < WEFT_CHECKPOINT_FILES; f++)
        checkpoint_bytes += scene.site.layout->files[f].bytes;
    save_and_crash(&scene, KEEP, LITTLE_ROOM_STATES);
    site_remove_directory(scene.root);
    site_make_directory(scene.root);
    scene.journal = journal_create(scene.root);
    save_and_crash(&scene, KEEP + 1, STATES);
    struct outcome files = crash_often(&scene, CHECK_STATES, true, false);
    struct outcome directories = crash_often(&scene, CHECK_STATES, false, true);
    printf("of %d without syncs of files %d lose one and %d show a broken one, without those of "
           "directories %d and %d\n",
           CHECK_STATES, files.lost, files.torn, directories.lost, directories.torn);
    CHECK(files.lost > 0 && directories.lost > 0, "the check finds nothing");
    CHECK(files.torn > 0 && directories.torn > 0, "the check finds nothing");
    CHECK(files.broken == 0 && directories.broken == 0, "a broken one was accepted");
    site_remove_directory(scene.root);
    site_close(&scene.site);
    return 0;
}
