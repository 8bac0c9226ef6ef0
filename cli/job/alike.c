/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/job/alike.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/facts.h"
#include "runtime/checkpoint/shared.h"
#include "runtime/comm/comm.h"
#include "runtime/comm/host.h"

enum { MOST_FACTS = 6, VALUE_BYTES = 600, OTHERS = 4, NS_PER_S = 1000000000 };

/* Facts that ranks compare. Another program or library may give other bits. */
static const struct {
    const char *name, *finding;
    enum weft_alike_kind kind;
} compared[MOST_FACTS] = {
    {"version", "hosts_version", WEFT_ALIKE_HARMS},
    {"commit", "hosts_commit", WEFT_ALIKE_HARMS},
    {"compiler", "hosts_compiler", WEFT_ALIKE_DIFFERS},
    {"libraries", "hosts_libraries", WEFT_ALIKE_HARMS},
    {"machine", "hosts_machine", WEFT_ALIKE_DIFFERS},
    {"cores", "hosts_cores", WEFT_ALIKE_DIFFERS},
};

/* A rank's message to all. */
struct portrait {
    char host[WEFT_HOST_NAME_BYTES];
    char values[MOST_FACTS][VALUE_BYTES];
};
_Static_assert(sizeof(struct portrait) <= WEFT_COMM_EXCHANGE_BYTES, "a portrait is one exchange");

/* Rank 0's findings, in the order of telling. */
static struct {
    int32_t n;
    struct finding {
        const char *what;
        enum weft_alike_kind kind;
        struct weft_text text;
    } at[MOST_FACTS + OTHERS];
} findings;

/* The text is empty, and the caller fills it. */
static struct weft_text *add_finding(const char *what, enum weft_alike_kind kind)
{
    struct finding *finding = &findings.at[findings.n++];
    finding->what = what;
    finding->kind = kind;
    weft_text_init(&finding->text);
    return &finding->text;
}

static void draw_portrait(struct portrait *out)
{
    memset(out, 0, sizeof *out);
    weft_host_name(out->host);
    for (const struct weft_fact *fact = weft_facts; fact->name != NULL; fact++)
        for (int i = 0; i < MOST_FACTS; i++) {
            struct weft_text text;
            if (strcmp(fact->name, compared[i].name) != 0) continue;
            weft_text_init(&text);
            fact->tell(&text);
            snprintf(out->values[i], VALUE_BYTES, "%s", weft_text_chars(&text));
            weft_text_finish(&text);
        }
}

/* Appends "0 to 3, 6". */
static void add_ranks(const bool *is_in, int32_t ranks, struct weft_text *out)
{
    const char *before = "";
    for (int32_t r = 0; r < ranks; r++) {
        const int32_t first = r;
        if (!is_in[r]) continue;
        while (r + 1 < ranks && is_in[r + 1])
            r++;
        weft_text_addf(out, first == r ? "%s%d" : "%s%d to %d", before, (int)first, (int)r);
        before = ", ";
    }
}

/* A part of a portrait: a fact, or the host's name. */
enum { HOST = -1 };
static const char *part_of(const struct portrait *portrait, int part)
{
    return part == HOST ? portrait->host : portrait->values[part];
}

/* Appends each value that some rank has, with its ranks. Returns the number of values. */
static int32_t add_values(const struct portrait *all, int32_t ranks, int part,
                          struct weft_text *out)
{
    bool *is_in = calloc((size_t)ranks, sizeof *is_in);
    int32_t n = 0;
    for (int32_t first = 0; is_in != NULL && first < ranks; first++) {
        bool is_new = true;
        for (int32_t r = 0; r < ranks; r++) {
            is_in[r] = strcmp(part_of(&all[r], part), part_of(&all[first], part)) == 0;
            if (is_in[r] && r < first) is_new = false;
        }
        if (!is_new) continue;
        weft_text_addf(out, "%s%s (rank ", n++ > 0 ? "; " : "", part_of(&all[first], part));
        add_ranks(is_in, ranks, out);
        weft_text_add(out, ")");
    }
    free(is_in);
    return n;
}

static void compare_portraits(const struct portrait *all, int32_t ranks)
{
    struct weft_text alike, differing;
    weft_text_init(&alike);
    add_values(all, ranks, HOST, add_finding("hosts", WEFT_ALIKE_FINE));
    for (int i = 0; i < MOST_FACTS; i++) {
        weft_text_init(&differing);
        if (add_values(all, ranks, i, &differing) > 1)
            weft_text_add(add_finding(compared[i].finding, compared[i].kind),
                          weft_text_chars(&differing));
        else
            weft_text_addf(&alike, "%s%s", alike.length > 0 ? ", " : "", compared[i].name);
        weft_text_finish(&differing);
    }
    if (alike.length > 0)
        weft_text_addf(add_finding("hosts_alike", WEFT_ALIKE_FINE), "%s: as on rank 0",
                       weft_text_chars(&alike));
    weft_text_finish(&alike);
}

static int64_t wall_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

/* Ranks read their clocks after a barrier, and of a few rounds the closest counts. */
static enum weft_status compare_clocks(struct weft_comm *comm, int64_t *all, int64_t *apart_ns,
                                       struct weft_error *err)
{
    enum { ROUNDS = 5 };
    const int32_t ranks = weft_comm_ranks(comm);
    for (int i = 0; i < ROUNDS; i++) {
        WEFT_TRY(weft_comm_exchange(comm, NULL, 0, NULL, err));
        const int64_t own_ns = wall_ns();
        WEFT_TRY(weft_comm_exchange(comm, &own_ns, sizeof own_ns, all, err));
        for (int32_t r = 0; r < ranks; r++) {
            const int64_t ns = all[r] - all[0];
            if (i == 0 || llabs(ns) < llabs(apart_ns[r])) apart_ns[r] = ns;
        }
    }
    return WEFT_OK;
}

static void judge_clocks(const struct portrait *all, const int64_t *apart_ns, int32_t ranks)
{
    static const int64_t apart_most_ns = NS_PER_S;
    int64_t most_ns = 0;
    struct weft_text late;
    weft_text_init(&late);
    for (int32_t r = 0; r < ranks; r++) {
        if (llabs(apart_ns[r]) > most_ns) most_ns = llabs(apart_ns[r]);
        if (llabs(apart_ns[r]) > apart_most_ns)
            weft_text_addf(&late, "%srank %d (host %s) is %.1f s %s", late.length > 0 ? ", " : "",
                           (int)r, all[r].host, (double)llabs(apart_ns[r]) / NS_PER_S,
                           apart_ns[r] > 0 ? "ahead" : "late");
    }
    if (late.length > 0)
        weft_text_addf(add_finding("hosts_clocks", WEFT_ALIKE_DIFFERS),
                       "%s of rank 0's clock: run one time service on all hosts",
                       weft_text_chars(&late));
    else
        weft_text_addf(add_finding("hosts_clocks", WEFT_ALIKE_FINE), "at most %.1f ms apart",
                       (double)most_ns / 1e6);
    weft_text_finish(&late);
}

/* A directory of rank 0 alone is no failure: a run without checkpoints needs none. */
static enum weft_status compare_directories(struct weft_comm *comm, struct weft_error *err)
{
    char directory[2048];
    struct weft_error why = {.status = WEFT_OK};
    if (getcwd(directory, sizeof directory) == NULL) snprintf(directory, sizeof directory, ".");
    const enum weft_status status = weft_checkpoint_prove_shared(comm, directory, &why);
    if (weft_comm_rank(comm) != 0) return WEFT_OK; /* rank 0 tells */
    if (status == WEFT_OK)
        weft_text_addf(add_finding("hosts_shared", WEFT_ALIKE_FINE), "all ranks see %s", directory);
    else if (status != WEFT_E_LOST && status != WEFT_E_HANG)
        weft_text_add(add_finding("hosts_shared", WEFT_ALIKE_DIFFERS), why.text);
    else
        return weft_fail(err, status, "%s", why.text);
    return WEFT_OK;
}

static enum weft_status compare_ranks(struct weft_comm *comm, struct weft_error *err)
{
    const int32_t ranks = weft_comm_ranks(comm);
    struct portrait *own = calloc((size_t)ranks + 1, sizeof *own), *all = own + 1;
    int64_t *clocks = calloc(2 * (size_t)ranks, sizeof *clocks);
    enum weft_status status =
        own != NULL && clocks != NULL ? WEFT_OK : weft_fail_memory(err, "the hosts' facts");
    if (status == WEFT_OK) {
        draw_portrait(own);
        status = weft_comm_exchange(comm, own, sizeof *own, all, err);
    }
    if (status == WEFT_OK) status = compare_clocks(comm, clocks, clocks + ranks, err);
    if (status == WEFT_OK) {
        compare_portraits(all, ranks);
        judge_clocks(all, clocks + ranks, ranks);
        status = compare_directories(comm, err);
    }
    free(clocks);
    free(own);
    return status;
}

enum weft_status weft_alike_work(const struct weft_cli *cli, struct weft_json *description,
                                 const struct weft_rendezvous *meeting, struct weft_error *err)
{
    static const int64_t timeout_ns = INT64_C(60) * NS_PER_S;
    const struct weft_comm_options options = {.rank = meeting->rank,
                                              .ranks = meeting->ranks,
                                              .timeout_ns = timeout_ns,
                                              .local = {.control_fd = -1},
                                              .mpi = meeting->mpi};
    struct weft_comm *comm = NULL;
    (void)cli;
    weft_json_destroy(description);
    WEFT_TRY(weft_comm_open("mpi", &options, &comm, err));
    const enum weft_status status = compare_ranks(comm, err);
    weft_comm_close(comm);
    return status;
}

enum weft_status weft_alike_tell(weft_alike_note_fn *note, void *context, struct weft_error *err)
{
    struct weft_text description;
    weft_text_init(&description);
    weft_text_add(&description, "{}");
    const enum weft_status status = weft_hosts_run_job(&description, err);
    weft_text_finish(&description);
    for (int32_t i = 0; i < findings.n; i++) {
        struct finding *finding = &findings.at[i];
        if (status == WEFT_OK)
            note(context, finding->what, finding->kind, weft_text_chars(&finding->text));
        weft_text_finish(&finding->text);
    }
    findings.n = 0;
    return status;
}
