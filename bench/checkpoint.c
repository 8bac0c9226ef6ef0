/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the rate of saves as a share of the disk's rate. One rank saves a model's state;
 * between two saves, the bench writes a plain file of as many bytes to the same directory, in
 * one stream, and syncs it.
 *
 * Usage: checkpoint CONFIG DIRECTORY [ROUNDS]. DIRECTORY must not exist. Prints one line of
 * JSON. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/rng.h"
#include "base/text.h"
#include "runtime/checkpoint/directory.h"
#include "runtime/checkpoint/save.h"
#include "spec/config.h"
#include "spec/config_batch.h"

enum { MOST_ROUNDS = 99, WRITE_BYTES = 8 << 20 };

struct bench {
    const char *directory;
    struct weft_config *config;
    struct weft_layout *layout;
    struct weft_comm *comm;
    struct weft_saver *saver;
    float *values; /* all tensors and states, concatenated */
    int64_t bytes;
    int32_t file, entry; /* of the next piece */
    int64_t at, next;    /* elements of `values`: first of the last piece, and of the next one */
};

static void rewind_pieces(void *context)
{
    struct bench *b = context;
    b->file = b->entry = 0;
    b->at = b->next = 0;
}

/* Gives one piece per tensor. */
static bool next_piece(void *context, struct weft_save_piece *out)
{
    struct bench *b = context;
    while (b->file < WEFT_CHECKPOINT_FILES && b->entry == b->layout->files[b->file].n_entries) {
        b->file++;
        b->entry = 0;
    }
    if (b->file == WEFT_CHECKPOINT_FILES) return false;
    const struct weft_layout_entry *entry = &b->layout->files[b->file].entries[b->entry++];
    int64_t count = entry->bytes / (int64_t)sizeof(float);
    *out = (struct weft_save_piece){entry->tensor, entry->state, 0, count, WEFT_F32};
    b->at = b->next;
    b->next += count;
    return true;
}

static enum weft_status read_piece(void *context, int64_t from, int64_t n, float *out,
                                   struct weft_error *err)
{
    const struct bench *b = context;
    (void)err;
    memcpy(out, b->values + b->at + from, (size_t)n * sizeof *out);
    return WEFT_OK;
}

static enum weft_status open_bench(struct bench *b, const char *config, struct weft_error *err)
{
    WEFT_TRY(weft_config_read(config, NULL, 0, &b->config, err));
    WEFT_TRY(weft_layout_create(b->config->model, weft_config_states(b->config),
                                weft_config_nodes(b->config), WEFT_CHECKPOINT_CHUNK_BYTES,
                                &b->layout, err));
    for (int f = 0; f < WEFT_CHECKPOINT_FILES; f++)
        b->bytes += b->layout->files[f].bytes;
    b->values = malloc((size_t)b->bytes);
    if (b->values == NULL) return weft_fail_memory(err, "the state");
    for (int64_t i = 0; i < b->bytes / (int64_t)sizeof(float); i++)
        b->values[i] = (float)weft_rng_uniform(1, 0, (uint64_t)i);
    struct weft_comm_options options = {.ranks = 1, .local = {.control_fd = -1}};
    WEFT_TRY(weft_comm_open("local", &options, &b->comm, err));
    struct weft_saver_options saving = {
        .layout = b->layout,
        .comm = b->comm,
        .sink = &weft_sink_system,
        .directory = b->directory,
        .keep = 2,
        .precious = -1,
        .settings = "{}",
        .kernels = "none",
    };
    return weft_saver_create(&saving, &b->saver, err);
}

static void close_bench(struct bench *b)
{
    weft_saver_destroy(b->saver);
    weft_comm_close(b->comm);
    weft_layout_destroy(b->layout);
    weft_config_destroy(b->config);
    free(b->values);
}

static enum weft_status write_plain(const struct bench *b, const char *path, struct weft_error *err)
{
    int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
    if (fd < 0) return weft_fail(err, WEFT_E_CREATE, "%s: %s", path, strerror(errno));
    const char *bytes = (const char *)b->values;
    int error = 0;
    for (int64_t at = 0; at < b->bytes && error == 0;) {
        int64_t left = b->bytes - at;
        ssize_t n = write(fd, bytes + at, (size_t)(left < WRITE_BYTES ? left : WRITE_BYTES));
        error = n < 0 ? errno : 0;
        at += n < 0 ? 0 : n;
    }
    if (error == 0 && fsync(fd) != 0) error = errno;
    close(fd);
    return error == 0 ? WEFT_OK : weft_fail(err, WEFT_E_IO, "%s: %s", path, strerror(error));
}

static enum weft_status time_plain(const struct bench *b, int64_t *ns, struct weft_error *err)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/plain", b->directory);
    int64_t begin_ns = weft_clock_now_ns();
    WEFT_TRY(write_plain(b, path, err));
    *ns = weft_clock_now_ns() - begin_ns;
    unlink(path);
    return WEFT_OK;
}

/* Times one save. The removal of the older checkpoint is not timed: it does not depend on the
 * disk's rate. */
static enum weft_status time_save(struct bench *b, int64_t step, int64_t *ns,
                                  struct weft_error *err)
{
    const struct weft_save_source source = {b, rewind_pieces, next_piece, read_piece};
    const struct weft_progress progress = {.step = step, .loss_scale = 1};
    int64_t begin_ns = weft_clock_now_ns();
    WEFT_TRY(weft_saver_save(b->saver, &progress, &source, err));
    *ns = weft_clock_now_ns() - begin_ns;
    struct weft_text path;
    weft_text_init(&path);
    weft_checkpoint_path(b->directory, step, &path);
    weft_checkpoint_remove(&weft_sink_system, weft_text_chars(&path));
    weft_text_finish(&path);
    return WEFT_OK;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int64_t n)
{
    qsort(values, (size_t)n, sizeof *values, compare);
    return (values[(n - 1) / 2] + values[n / 2]) / 2;
}

static enum weft_status run(struct bench *b, int64_t rounds, struct weft_error *err)
{
    double plain[MOST_ROUNDS], save[MOST_ROUNDS], share[MOST_ROUNDS];
    int64_t plain_ns, save_ns;
    for (int64_t r = -1; r < rounds; r++) { /* round -1 is not counted */
        WEFT_TRY(time_plain(b, &plain_ns, err));
        WEFT_TRY(time_save(b, r + 2, &save_ns, err));
        if (r < 0) continue;
        plain[r] = (double)b->bytes / (double)plain_ns;
        save[r] = (double)b->bytes / (double)save_ns;
        share[r] = save[r] / plain[r];
    }
    double middle = median(share, rounds); /* `median` sorts the values */
    printf("{\"bytes\": %lld, \"rounds\": %lld, \"plain_gb_per_s\": %.3f, \"save_gb_per_s\": %.3f, "
           "\"share\": %.3f, \"least_share\": %.3f, \"most_share\": %.3f}\n",
           (long long)b->bytes, (long long)rounds, median(plain, rounds), median(save, rounds),
           middle, share[0], share[rounds - 1]);
    return WEFT_OK;
}

int main(int argc, char **argv)
{
    struct weft_error err = {0};
    int64_t rounds = argc > 3 ? atoll(argv[3]) : 5;
    if (argc < 3 || rounds < 1 || rounds > MOST_ROUNDS || access(argv[2], F_OK) == 0) {
        fprintf(stderr, "usage: checkpoint CONFIG DIRECTORY [ROUNDS], and no such directory yet\n");
        return 64;
    }
    struct bench b = {.directory = argv[2]};
    enum weft_status status = open_bench(&b, argv[1], &err);
    if (status == WEFT_OK) status = run(&b, rounds, &err);
    close_bench(&b);
    rmdir(argv[2]);
    if (status != WEFT_OK) fprintf(stderr, "checkpoint: %s\n", err.text);
    return weft_status_exit_code(status);
}
