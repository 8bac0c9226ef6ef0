/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks with the same path for one directory, and ranks with another directory under that path. */
#define _GNU_SOURCE /* mkdtemp */
#include "runtime/checkpoint/shared.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/runtime/comm/ranks.h"

enum { RANKS = 3, NAME_BYTES = 64 };

static const char path[] = "run/checkpoints"; /* as all ranks name it */

struct site {
    char root[NAME_BYTES];
    int32_t offloaded; /* the rank on another file system; -1: none */
    bool is_denied;    /* rank 0 cannot make the directory */
};

static void stand_in(const struct site *site, int32_t rank)
{
    char own[2 * NAME_BYTES];
    snprintf(own, sizeof own, "%s/%s", site->root, rank == site->offloaded ? "other" : "shared");
    CHECK(chdir(own) == 0, "%s", own);
}

static int run_proof(int32_t rank, const struct ranks *ranks, void *argument)
{
    const struct site *site = argument;
    const struct weft_comm_options options = ranks_options(rank, ranks);
    struct weft_error err = {.status = WEFT_OK};
    struct weft_comm *comm;
    stand_in(site, rank);
    CHECK(weft_comm_open("local", &options, &comm, &err) == WEFT_OK, "%s", err.text);
    const char *directory = site->is_denied ? "/dev/null/checkpoints" : path;
    const enum weft_status status = weft_checkpoint_prove_shared(comm, directory, &err);
    if (site->is_denied) {
        CHECK(status == (rank == 0 ? WEFT_E_CREATE : WEFT_E_LOST), "%s", err.text);
    } else if (site->offloaded < 0) {
        CHECK(status == WEFT_OK, "%s", err.text);
    } else {
        char text[NAME_BYTES];
        snprintf(text, sizeof text, "for rank %d (host ", (int)site->offloaded);
        CHECK(status == WEFT_E_IO && strstr(err.text, text) != NULL, "%s", err.text);
    }
    weft_comm_close(comm);
    return 0;
}

static int files_in(const char *root, const char *name)
{
    char directory[3 * NAME_BYTES];
    int n = 0;
    snprintf(directory, sizeof directory, "%s/%s/%s", root, name, path);
    DIR *stream = opendir(directory);
    for (struct dirent *entry; stream != NULL && (entry = readdir(stream)) != NULL;)
        n += entry->d_name[0] != '.';
    if (stream != NULL) closedir(stream);
    return n;
}

static void make_site(struct site *site)
{
    char directory[2 * NAME_BYTES];
    snprintf(site->root, sizeof site->root, "/tmp/weft-shared-XXXXXX");
    CHECK(mkdtemp(site->root) != NULL, "mkdtemp");
    for (int i = 0; i < 2; i++) {
        snprintf(directory, sizeof directory, "%s/%s", site->root, i == 0 ? "shared" : "other");
        CHECK(mkdir(directory, 0700) == 0, "%s", directory);
    }
}

static void remove_site(const struct site *site)
{
    static const char *const below[] = {"/shared/run/checkpoints", "/shared/run", "/shared",
                                        "/other", ""};
    char directory[2 * NAME_BYTES];
    for (size_t i = 0; i < sizeof below / sizeof below[0]; i++) {
        snprintf(directory, sizeof directory, "%s%s", site->root, below[i]);
        CHECK(rmdir(directory) == 0 || i < 2, "%s is not empty", directory);
    }
}

RANKS_TEST(shared)
{
    const struct site cases[] = {{.offloaded = -1},
                                 {.offloaded = 2},
                                 {.offloaded = 1},
                                 {.offloaded = -1, .is_denied = true}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct site site = cases[i];
        make_site(&site);
        CHECK(ranks_run(RANKS, run_proof, &site) == 0, "case %zu", i);
        CHECK(files_in(site.root, "shared") == 0, "case %zu leaves a file", i);
        remove_site(&site);
    }
    return 0;
}
