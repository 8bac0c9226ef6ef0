/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/nn/cpu/gemm/gemm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/machine/mappings.h"
#include "base/units.h"
#include "runtime/nn/cpu/gemm/check.h"
#include "runtime/nn/cpu/gemm/multiplier.h"

enum { MOST_LINKS = 6 };

/* A way to multiply: a list of multipliers that ends with oneDNN or "plain"; without oneDNN with
 * "plain". The emulation is
 * inserted before the last one: always, or if it lacks products of 16 bits. */
enum emulation { NOT_EMULATED, EMULATED_IF_NEEDED, EMULATED };
struct way {
    const char *name, *title;
    enum emulation emulation;
    const struct weft_multiplier *list[MOST_LINKS - 1]; /* up to the first NULL */
};

struct weft_gemm {
    const struct way *way; /* NULL: closed */
    enum weft_dtype dtype;
    bool emulated;
    int n_links;
    struct weft_multiplier_link links[MOST_LINKS + 1];
    char description[320];
};

#define TRIANGLE &weft_multiplier_triangle
#define FINISH   &weft_multiplier_finish
#if WEFT_HAVE_ONEDNN
#define LIBRARY       &weft_multiplier_onednn
#define LIBRARY_TITLE "oneDNN"
#else
#define LIBRARY       &weft_multiplier_plain
#define LIBRARY_TITLE "plain products"
#endif

/* In order of preference. A later way must be faster by PREFERENCE. So noise does not change the
 * way, and with it the bits, between runs. A CPU's bf16 instructions may be slower than its fp32
 * ones. */
static const struct way ways[] = {
#if WEFT_HAVE_AMX
    {"amx",
     "AMX tiles beside " LIBRARY_TITLE,
     NOT_EMULATED,
     {&weft_multiplier_amx, TRIANGLE, FINISH, LIBRARY}},
    {"amx-bf16x3",
     "AMX tiles (f32 as bf16x3) beside " LIBRARY_TITLE,
     NOT_EMULATED,
     {&weft_multiplier_amx_in_parts, TRIANGLE, FINISH, LIBRARY}},
#endif
#if WEFT_HAVE_X86_LEVELS
    {"avx512",
     "AVX-512 beside " LIBRARY_TITLE,
     NOT_EMULATED,
     {TRIANGLE, &weft_multiplier_avx512, FINISH, LIBRARY}},
#endif
#if WEFT_HAVE_ONEDNN
    {"onednn", "oneDNN", EMULATED_IF_NEEDED, {TRIANGLE, FINISH, LIBRARY}},
    {"onednn-emulated", "oneDNN emulating", EMULATED, {TRIANGLE, FINISH, LIBRARY}},
#endif
    {"plain", "plain products", NOT_EMULATED, {TRIANGLE, FINISH, &weft_multiplier_plain}},
};
enum { N_WAYS = sizeof(ways) / sizeof(ways[0]) };

static const double PREFERENCE = 1.3;

static void list_ways(char *text, size_t bytes)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < N_WAYS && used < bytes; i++) {
        used +=
            (size_t)snprintf(text + used, bytes - used, "%s\"%s\"", i ? ", " : "", ways[i].name);
    }
}

enum weft_status weft_gemm_run(const struct weft_gemm *gemm, const struct weft_product *product,
                               struct weft_error *err)
{
    const bool f32 = product->dtype == WEFT_F32;
    if (product->m == 0 || product->n == 0) return WEFT_OK;
    if (product->k == 0) {
        const int64_t element_bytes = weft_dtype_bytes(product->c_dtype);
        for (int64_t i = 0; i < product->m && !product->accumulate; i++) {
            memset((char *)product->c + i * product->c_stride * element_bytes, 0,
                   (size_t)(product->n * element_bytes));
        }
        return WEFT_OK;
    }
    if ((!f32 && product->dtype != gemm->dtype) ||
        (product->c_dtype != WEFT_F32 && product->c_dtype != product->dtype)) {
        return weft_fail(err, WEFT_E_INTERNAL, "a product of %s into %s: %s was opened for %s",
                         weft_dtype_name(product->dtype), weft_dtype_name(product->c_dtype),
                         gemm->way->title, weft_dtype_name(gemm->dtype));
    }
    return weft_multiply(gemm->links, product, err);
}

/* Writes the least time of a kind of product. Each run uses other memory, as in a layer: cold
 * caches make half of the difference between libraries. */
static enum weft_status measure_kind(const struct weft_gemm *gemm, struct weft_product *product,
                                     unsigned char *numbers, int64_t runs, int64_t *least_ns,
                                     struct weft_error *err)
{
    const int64_t size = weft_dtype_bytes(gemm->dtype);
    const int64_t m = product->m, n = product->n, k = product->k;
    *least_ns = INT64_MAX;
    for (int64_t run = 0; run < runs; run++) {
        product->a = numbers;
        product->b = numbers + m * k * size;
        product->c = numbers + (m * k + k * n) * size;
        numbers += (m * k + k * n + m * n) * size;
        const int64_t start_ns = weft_clock_thread_ns();
        WEFT_TRY(weft_gemm_run(gemm, product, err));
        const int64_t ns = weft_clock_thread_ns() - start_ns;
        if (ns < *least_ns) *least_ns = ns;
    }
    return WEFT_OK;
}

/* Measures the rate of layers' products (forward, by input, by weight), in flops per second of one
 * thread's own time. The sizes make every library pack and block. Products of 16 bits may be ten
 * times as fast, and are five times as large. `gemm` was opened for one thread. Other load on the
 * machine does not count then. With threads that wait for each other, on two busy cores, one choice
 * in ten differed. */
static enum weft_status measure_rate(const struct weft_gemm *gemm, double *flops_per_s,
                                     struct weft_error *err)
{
    enum { RUNS = 3 };
    const bool narrow = gemm->dtype != WEFT_F32;
    const int64_t rows = narrow ? 1024 : 512, outputs = narrow ? 640 : 320,
                  inputs = narrow ? 448 : 384;
    const size_t elements = (size_t)(rows * inputs + inputs * outputs + rows * outputs);
    const size_t bytes = RUNS * elements * (size_t)weft_dtype_bytes(gemm->dtype);
    struct weft_product kinds[] = {
        weft_product_dense(false, true, rows, outputs, inputs, gemm->dtype),
        weft_product_dense(false, false, rows, inputs, outputs, gemm->dtype),
        weft_product_dense(true, false, outputs, inputs, rows, gemm->dtype),
    };
    unsigned char *numbers = malloc(bytes);
    if (!numbers) return weft_fail_memory(err, "the matrices that measure GEMM libraries");
    memset(numbers, 0, bytes);

    enum weft_status status = WEFT_OK;
    double total_ns = 0;
    for (int i = 0; i < 3; i++) {
        int64_t least_ns = 0;
        WEFT_TRY_GOTO(done, measure_kind(gemm, &kinds[i], numbers, RUNS, &least_ns, err));
        total_ns += (double)least_ns;
    }
    *flops_per_s =
        3 * 2.0 * (double)(rows * outputs * inputs) / (total_ns > 0 ? total_ns : 1) * 1e9;
done:
    free(numbers);
    return status;
}

static void describe_gemm(struct weft_gemm *gemm, const char *reason)
{
    const struct weft_multiplier_link *library = &gemm->links[gemm->n_links - 1];
    char version[64];
    library->multiplier->version(library->state, version, sizeof(version));
    const char *how = gemm->dtype == WEFT_F32 ? "" : gemm->emulated ? " emulated" : " native";
    snprintf(gemm->description, sizeof(gemm->description), "%s %s (%s)%s%s%s", gemm->way->title,
             version, reason, *how ? ", " : "", *how ? weft_dtype_name(gemm->dtype) : "", how);
}

/* Dtypes of all multipliers of a way. */
static uint32_t dtypes_of(const struct way *way)
{
    uint32_t dtypes = WEFT_EVERY_DTYPE;
    for (int i = 0; way->list[i] != NULL; i++) {
        dtypes &= way->list[i]->dtypes;
    }
    return dtypes;
}

/* True if "auto" tries the way for this dtype: "plain" only without oneDNN. A way that always
 * emulates is for 16 bits only. */
static bool is_for(const struct way *way, enum weft_dtype dtype)
{
    const bool narrow = way->emulation == EMULATED;
    return (!WEFT_HAVE_ONEDNN || way->list[2] != &weft_multiplier_plain) &&
           (dtypes_of(way) >> dtype & 1u) != 0 && !(narrow && dtype == WEFT_F32);
}

static enum weft_status add_link(const struct weft_multiplier *multiplier, int32_t threads,
                                 struct weft_gemm *gemm, struct weft_error *err)
{
    struct weft_multiplier_link link = {.multiplier = multiplier};
    if (multiplier->open != NULL)
        WEFT_TRY(multiplier->open(threads, gemm->dtype, &link.state, err));
    gemm->links[gemm->n_links++] = link;
    return WEFT_OK;
}

/* True if the library itself has products of the dtype. */
static bool library_can(const struct weft_multiplier_link *library, enum weft_dtype dtype)
{
    const struct weft_product probe = {.dtype = dtype, .c_dtype = dtype};
    return library->multiplier->covers(library->state, &probe);
}

static enum weft_status add_emulation(int32_t threads, struct weft_gemm *gemm,
                                      struct weft_error *err)
{
    const struct weft_multiplier_link library = gemm->links[gemm->n_links - 1];
    WEFT_TRY(add_link(&weft_multiplier_emulation, threads, gemm, err));
    gemm->links[gemm->n_links - 2] = gemm->links[gemm->n_links - 1];
    gemm->links[gemm->n_links - 1] = library;
    gemm->emulated = true;
    return WEFT_OK;
}

static enum weft_status open_way(const struct way *way, int32_t threads, struct weft_gemm *gemm,
                                 struct weft_error *err)
{
    const uint32_t dtypes = dtypes_of(way);
    if ((dtypes >> gemm->dtype & 1u) == 0) {
        return weft_fail(err, WEFT_E_USAGE, "the GEMM library \"%s\" is for %s, not for %s",
                         way->name, weft_dtype_name(dtypes >> WEFT_F32 & 1u ? WEFT_F32 : WEFT_BF16),
                         weft_dtype_name(gemm->dtype));
    }
    gemm->way = way;
    for (int i = 0; way->list[i] != NULL; i++) {
        WEFT_TRY(add_link(way->list[i], threads, gemm, err));
    }
    const bool needed = !library_can(&gemm->links[gemm->n_links - 1], gemm->dtype);
    if (way->emulation == EMULATED || (way->emulation == EMULATED_IF_NEEDED && needed))
        return add_emulation(threads, gemm, err);
    return WEFT_OK;
}

static void close_way(struct weft_gemm *gemm)
{
    for (int i = 0; i < gemm->n_links; i++) {
        const struct weft_multiplier_link *link = &gemm->links[i];
        if (link->multiplier->close != NULL) link->multiplier->close(link->state);
    }
    *gemm = (struct weft_gemm){.dtype = gemm->dtype};
}

static enum weft_status run_way(const void *gemm, const struct weft_product *product,
                                struct weft_error *err)
{
    return weft_gemm_run(gemm, product, err);
}

/* Checks products in f32 and in the dtype of the gemm. */
static enum weft_status check_way(const struct weft_gemm *gemm, struct weft_error *err)
{
    WEFT_TRY(weft_gemm_check(gemm->way->title, run_way, gemm, WEFT_F32, err));
    if (gemm->dtype == WEFT_F32) return WEFT_OK;
    return weft_gemm_check(gemm->way->title, run_way, gemm, gemm->dtype, err);
}

/* Opens, checks and measures a way. It stays open for one thread. A missing library is normal, but
 * wrong products are worth a warning. */
static enum weft_status try_way(const struct way *way, int32_t threads, struct weft_gemm *gemm,
                                double *rate, struct weft_error *err)
{
    WEFT_TRY(open_way(way, threads, gemm, err));
    if (check_way(gemm, err) != WEFT_OK) {
        weft_log(WEFT_LOG_WARNING, "%s is not used: %s", way->title, err->text);
        return err->status;
    }
    if (threads > 1) {
        close_way(gemm);
        WEFT_TRY(open_way(way, 1, gemm, err));
    }
    return measure_rate(gemm, rate, err);
}

/* True if the candidate is faster than the best one by PREFERENCE, also when both are measured
 * again. Other load only makes a measurement slower, so each keeps its highest rate. */
static bool is_preferred(const struct weft_gemm *best, double *best_rate,
                         const struct weft_gemm *candidate, double *rate)
{
    enum { AGAIN = 3 };
    struct weft_error unsaid = {0};
    if (best->way == NULL) return true;
    for (int i = 0; i < AGAIN; i++) {
        double again = 0;
        if (*rate <= *best_rate * PREFERENCE) return false;
        if (measure_rate(best, &again, &unsaid) == WEFT_OK && again > *best_rate)
            *best_rate = again;
        if (measure_rate(candidate, &again, &unsaid) == WEFT_OK && again > *rate) *rate = again;
    }
    return *rate > *best_rate * PREFERENCE;
}

/* Tries every way and keeps the best. Ways that cannot be opened or measured are listed. It fails
 * only if none works, with the reason of the last way, which every machine should have. */
static enum weft_status choose_way(int32_t threads, struct weft_gemm *gemm, struct weft_error *err)
{
    double best = 0;
    char losers[160] = "", reason[224];
    size_t used = 0;
    struct weft_error last = {0};

    for (size_t i = 0; i < N_WAYS; i++) {
        /* Skip a way that emulates anyway if the best one does too. */
        if (!is_for(&ways[i], gemm->dtype)) continue;
        if (ways[i].emulation == EMULATED && gemm->emulated) continue;
        struct weft_gemm candidate = {.dtype = gemm->dtype};
        struct weft_error reported = {0};
        double rate = 0;
        if (try_way(&ways[i], threads, &candidate, &rate, &reported) != WEFT_OK) {
            last = reported;
            close_way(&candidate);
            used += (size_t)snprintf(losers + used, sizeof(losers) - used, "; %s not usable",
                                     ways[i].title);
        } else {
            const bool wins = is_preferred(gemm, &best, &candidate, &rate);
            struct weft_gemm loser = wins ? *gemm : candidate;
            const double loser_rate = wins ? best : rate;
            if (wins) {
                *gemm = candidate;
                best = rate;
            }
            if (loser.way) {
                used += (size_t)snprintf(losers + used, sizeof(losers) - used, "; %s %.0f",
                                         loser.way->title, loser_rate * 1e-9);
            }
            close_way(&loser);
        }
        if (used >= sizeof(losers)) used = sizeof(losers) - 1;
    }
    if (!gemm->way) return weft_fail(err, last.status, "%s", last.text);
    if (threads > 1) {
        const struct way *way = gemm->way;
        close_way(gemm);
        WEFT_TRY(open_way(way, threads, gemm, err));
    }
    snprintf(reason, sizeof(reason), "%.0f GFLOP/s a thread%s", best * 1e-9, losers);
    describe_gemm(gemm, reason);
    return WEFT_OK;
}

/* OpenMP ends the process if it cannot start a thread. So this checks first that the limits of the
 * process leave enough for stacks and buffers. */
static enum weft_status check_room(int32_t threads, struct weft_error *err)
{
    enum { POOLS = 2 }; /* OpenMP has threads of their own for each thread that calls it */
    static const int64_t mapped_bytes = INT64_C(84) << 20;  /* of libraries' files */
    static const int64_t data_bytes = INT64_C(32) << 20;    /* of libraries, besides buffers */
    static const int64_t buffer_bytes = INT64_C(128) << 20; /* of a thread, the largest */
    const int64_t thread_bytes = buffer_bytes + POOLS * weft_thread_stack_bytes();
    const int64_t bytes = data_bytes + threads * thread_bytes;
    char want[WEFT_UNITS_TEXT_BYTES], limit[WEFT_REFUSAL_BYTES];
    if (!weft_map_refuses(bytes, mapped_bytes, limit, sizeof limit)) return WEFT_OK;
    return weft_fail(err, WEFT_E_SYSTEM, "matrix products need %s more for buffers, and %s",
                     weft_units_show_bytes(bytes, want), limit);
}

/* True for names that other builds may have. */
static bool is_known(const char *name)
{
    static const char *const names[] = {"amx", "amx-bf16x3", "avx512", "onednn", "onednn-emulated"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        if (strcmp(names[i], name) == 0) return true;
    }
    return false;
}

enum weft_status weft_gemm_open(const char *name, int32_t threads, enum weft_dtype dtype,
                                struct weft_gemm **out, struct weft_error *err)
{
    char built[96];
    list_ways(built, sizeof(built));
    if (threads < 1) {
        return weft_fail(err, WEFT_E_USAGE, "compute threads must be at least 1, not %d",
                         (int)threads);
    }
    const struct way *way = NULL;
    for (size_t i = 0; i < N_WAYS; i++) {
        if (strcmp(ways[i].name, name) == 0) way = &ways[i];
    }
    const bool automatic = strcmp(name, "auto") == 0;
    if (!way && !automatic) {
        const bool known = is_known(name);
        return weft_fail(err, known ? WEFT_E_ENVIRONMENT : WEFT_E_USAGE,
                         "%s GEMM library \"%s\"; there are \"auto\", %s",
                         known ? "this build has no" : "there is no", name, built);
    }
    WEFT_TRY(check_room(threads, err));
#ifndef _OPENMP
    if (threads > 1)
        weft_log(WEFT_LOG_WARNING, "products take one thread, not %d: this build has no OpenMP",
                 (int)threads);
#endif
    struct weft_gemm *gemm = calloc(1, sizeof(*gemm));
    if (!gemm) return weft_fail_memory(err, "a GEMM library");
    gemm->dtype = dtype;
    enum weft_status status =
        automatic ? choose_way(threads, gemm, err) : open_way(way, threads, gemm, err);
    if (status == WEFT_OK && !automatic) status = check_way(gemm, err);
    if (status != WEFT_OK) {
        weft_gemm_close(gemm);
        return status;
    }
    if (!automatic) describe_gemm(gemm, "asked for");
    *out = gemm;
    return WEFT_OK;
}

void weft_gemm_close(struct weft_gemm *gemm)
{
    if (!gemm) return;
    close_way(gemm);
    free(gemm);
}

const char *weft_gemm_name(const struct weft_gemm *gemm)
{
    return gemm->way->name;
}

const char *weft_gemm_describe(const struct weft_gemm *gemm)
{
    return gemm->description;
}

void weft_gemm_add_bits(const struct weft_gemm *gemm, struct weft_text *out)
{
    const struct weft_multiplier_link *library = &gemm->links[gemm->n_links - 1];
    char version[64];
    weft_text_addf(out, "products: %s", gemm->way->name);
    if (library->multiplier->instructions == NULL) return;
    library->multiplier->version(library->state, version, sizeof(version));
    weft_text_addf(out, ", %s %s, %s", library->multiplier->title, version,
                   library->multiplier->instructions());
}

void weft_gemm_add_libraries(struct weft_text *out)
{
#if WEFT_HAVE_ONEDNN
    char version[64];
    weft_multiplier_onednn.version(NULL, version, sizeof(version));
    weft_text_addf(out, ", %s %s", weft_multiplier_onednn.title, version);
#else
    weft_text_add(out, ", no oneDNN");
#endif
}
