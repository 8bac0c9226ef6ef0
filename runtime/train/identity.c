/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* dladdr */
#include "runtime/train/identity.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/failpoint.h"
#include "base/text.h"
#include "runtime/train/bits.h"

enum part { PROGRAM, CONFIG, PLAN, LIBRARY, PARTS };

static const struct {
    const char *what, *fix;
} texts[PARTS] = {
    [PROGRAM] = {"another build of the program or of libweft",
                 "Start all ranks from one program file, with one libweft"},
    [CONFIG] = {"another config", "Give every rank the same config"},
    [PLAN] = {"another plan", "Give every rank the same plan file and config"},
    [LIBRARY] = {"another library of matrix products, or other threads or settings of it",
                 "Give every rank the same library and the same environment"},
};

enum { BITS_BYTES = 512 };
struct identity {
    struct weft_hash parts[PARTS];
    char bits[BITS_BYTES]; /* weft_nn_add_bits; a longer text is cut, on all ranks alike */
};

/* Extends a hash by a file's bytes, piece by piece: a rank's memory counts from here on. A file
 * that cannot be read adds nothing, on all ranks alike. */
static struct weft_hash hash_file(const char *path, struct weft_hash hash)
{
    unsigned char buffer[sizeof(struct weft_hash) + 16384];
    FILE *file = fopen(path, "rbe");
    size_t length = 1;
    while (file != NULL && length > 0) {
        memcpy(buffer, &hash, sizeof hash);
        length = fread(buffer + sizeof hash, 1, sizeof buffer - sizeof hash, file);
        hash = weft_hash_bytes(buffer, sizeof hash + length);
    }
    if (file != NULL) fclose(file);
    return hash;
}

/* Hashes the program's file, and the shared library that holds this code. */
static struct weft_hash hash_program(void)
{
    static const char here;
    struct weft_hash hash = hash_file("/proc/self/exe", (struct weft_hash){0});
    Dl_info info;
    if (dladdr(&here, &info) != 0 && info.dli_fname != NULL) hash = hash_file(info.dli_fname, hash);
    return hash;
}

static struct weft_hash hash_config(const struct weft_config *config)
{
    struct weft_text text;
    weft_text_init(&text);
    weft_config_write(config, &text);
    struct weft_hash hash = weft_hash_bytes(weft_text_chars(&text), text.length);
    weft_text_finish(&text);
    return hash;
}

/* Hashes settings outside the config that change a product's bits. */
static struct weft_hash hash_library(const struct weft_nn *nn)
{
    static const char *const names[] = {"OMP_NUM_THREADS",      "DNNL_MAX_CPU_ISA",
                                        "ONEDNN_MAX_CPU_ISA",   "DNNL_CPU_ISA_HINTS",
                                        "ONEDNN_CPU_ISA_HINTS", "WEFT_KERNELS"};
    struct weft_text text;
    weft_text_init(&text);
    const char *choices = weft_nn_choices(nn);
    weft_text_addf(&text, "%s\n%s\n", weft_nn_gemm_name(nn), choices != NULL ? choices : "");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);
        weft_text_addf(&text, "%s=%s\n", names[i], value != NULL ? value : "");
    }
    struct weft_hash hash = weft_hash_bytes(weft_text_chars(&text), text.length);
    weft_text_finish(&text);
    return hash;
}

static enum weft_status compare_part(const struct identity *all, int32_t n, int part,
                                     struct weft_error *err)
{
    enum weft_status status = WEFT_OK;
    struct weft_text ranks;
    int32_t first = 0;
    weft_text_init(&ranks);
    for (int32_t r = 1; r < n; r++) {
        if (weft_hash_equal(all[r].parts[part], all[0].parts[part])) continue;
        if (first == 0) first = r;
        weft_text_addf(&ranks, "%s%d", ranks.length > 0 ? ", " : "", r);
    }
    if (ranks.length > 0) {
        const struct weft_error why = {.status = WEFT_E_DISAGREE, .of_rank = first + 1};
        status = weft_fail_again(err, &why, "rank %s: %s than rank 0. %s", weft_text_chars(&ranks),
                                 texts[part].what, texts[part].fix);
    }
    weft_text_finish(&ranks);
    return status;
}

/* Hosts of one library may choose other instructions. */
static enum weft_status compare_bits(const struct identity *all, int32_t n, struct weft_error *err)
{
    enum weft_status status = WEFT_OK;
    struct weft_text how;
    weft_text_init(&how);
    for (int32_t r = 1; r < n && status == WEFT_OK; r++) {
        const struct weft_error why = {.status = WEFT_E_DISAGREE, .of_rank = r + 1};
        if (weft_bits_compare(all[0].bits, all[r].bits, " on rank 0, and ", " there", &how))
            continue;
        status = weft_fail_again(err, &why,
                                 "rank %d: computes other bits than rank 0: %s. Start all ranks on "
                                 "processors of one kind, or set WEFT_KERNELS and DNNL_MAX_CPU_ISA "
                                 "to instructions that all have, or WEFT_GEMM=plain",
                                 (int)r, weft_text_chars(&how));
    }
    weft_text_finish(&how);
    return status;
}

/* Names that bits depend on. Failpoint: another instruction set. */
static void name_bits(const struct weft_train_options *options, char out[BITS_BYTES])
{
    struct weft_text text;
    const bool other = weft_failpoint_at(options->failpoint, "bits", weft_comm_rank(options->comm),
                                         0) != WEFT_FAILURE_NONE;
    weft_text_init(&text);
    weft_nn_add_bits(options->nn, &text);
    snprintf(out, BITS_BYTES, "%.*s%s", BITS_BYTES - 16, weft_text_chars(&text),
             other ? ", other" : "");
    weft_text_finish(&text);
}

enum weft_status weft_identity_compare(const struct weft_train_options *options,
                                       struct weft_error *err)
{
    int32_t rank = weft_comm_rank(options->comm), ranks = weft_comm_ranks(options->comm);
    struct weft_hash program = hash_program();
    if (options->failpoint != NULL &&
        weft_failpoint_at(options->failpoint, "program", rank, 0) != WEFT_FAILURE_NONE)
        program = weft_hash_bytes(&program, sizeof program);
    struct identity mine = {.parts = {
                                [PROGRAM] = program,
                                [CONFIG] = hash_config(options->config),
                                [PLAN] = weft_plan_hash(options->plan),
                                [LIBRARY] = hash_library(options->nn),
                            }};
    name_bits(options, mine.bits);
    struct identity *all = calloc((size_t)ranks, sizeof *all);
    if (all == NULL) return weft_fail_memory(err, "the ranks' identities");
    enum weft_status status = weft_comm_exchange(options->comm, &mine, sizeof mine, all, err);
    for (int part = 0; part < PARTS && status == WEFT_OK; part++)
        status = compare_part(all, ranks, part, err);
    if (status == WEFT_OK) status = compare_bits(all, ranks, err);
    free(all);
    return status;
}
