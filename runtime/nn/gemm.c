#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "runtime/nn/gemm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/units.h"
#include "runtime/nn/gemm_emulation.h"

/* A way to multiply: a library, and whether 16 bits are emulated even where it has them. */
struct way {
    const char *name, *title;
    const struct weft_gemm_library *library;
    bool emulates;
};

struct weft_gemm {
    const struct way *way; /* NULL: closed */
    void *state;
    enum weft_dtype dtype;
    struct weft_gemm_emulation *emulation; /* NULL where the dtype is not emulated */
    char description[320];
};

/* In order of preference: a later one must be faster by PREFERENCE, so that noise does not choose
 * another one, and with it other bits, from one run to the next. A CPU may have instructions for
 * bf16 that are slower than those for fp32. */
static const struct way ways[] = {
#if WEFT_HAVE_ONEDNN
    {"onednn", "oneDNN", &weft_gemm_onednn, false},
    {"onednn-emulated", "oneDNN emulating", &weft_gemm_onednn, true},
#endif
#if WEFT_HAVE_OPENBLAS
    {"openblas", "OpenBLAS", &weft_gemm_openblas, false},
#endif
};
enum { N_WAYS = sizeof(ways) / sizeof(ways[0]) };

static const double PREFERENCE = 1.15;

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
    if (product->m == 0 || product->n == 0) return WEFT_OK;
    if (product->k == 0) {
        const int64_t element_bytes = weft_dtype_bytes(product->c_dtype);
        for (int64_t i = 0; i < product->m && !product->accumulate; i++) {
            memset((char *)product->c + i * product->c_stride * element_bytes, 0,
                   (size_t)(product->n * element_bytes));
        }
        return WEFT_OK;
    }
    if (product->dtype == WEFT_F32 && product->c_dtype == WEFT_F32) {
        return gemm->way->library->run(gemm->state, product, err);
    }
    if (product->dtype != gemm->dtype || product->dtype == WEFT_F32 ||
        (product->c_dtype != WEFT_F32 && product->c_dtype != product->dtype)) {
        return weft_fail(err, WEFT_E_INTERNAL, "a product of %s into %s: %s was opened for %s",
                         weft_dtype_name(product->dtype), weft_dtype_name(product->c_dtype),
                         gemm->way->library->title, weft_dtype_name(gemm->dtype));
    }
    if (!gemm->emulation) return gemm->way->library->run(gemm->state, product, err);
    return weft_gemm_emulate(gemm->emulation, gemm->way->library, gemm->state, product, err);
}

/* Rate of the kinds of product that layers are made of, in flops a second, at a size that makes
 * every library pack and block. */
static enum weft_status measure(const struct weft_gemm *gemm, double *flops_per_s,
                                struct weft_error *err)
{
    enum { M = 384, N = 320, K = 448, RUNS = 3 };
    static const bool transposed[3][2] = {{false, true}, {false, false}, {true, false}};
    unsigned char *numbers = calloc((size_t)(M * K + K * N + M * N), sizeof(float));
    const int64_t size = weft_dtype_bytes(gemm->dtype);
    if (!numbers) return weft_fail_memory(err, "the matrices that measure GEMM libraries");

    enum weft_status status = WEFT_OK;
    double total_ns = 0;
    for (int kind = 0; kind < 3; kind++) {
        const bool ta = transposed[kind][0], tb = transposed[kind][1];
        const struct weft_product product = {.transpose_a = ta,
                                             .transpose_b = tb,
                                             .dtype = gemm->dtype,
                                             .c_dtype = gemm->dtype,
                                             .m = M,
                                             .n = N,
                                             .k = K,
                                             .a = numbers,
                                             .a_stride = ta ? M : K,
                                             .b = numbers + M * K * size,
                                             .b_stride = tb ? K : N,
                                             .alpha = 1,
                                             .c = numbers + (M * K + K * N) * size,
                                             .c_stride = N};
        int64_t best_ns = INT64_MAX;
        for (int run = 0; run < RUNS; run++) {
            const int64_t start_ns = weft_clock_now_ns();
            WEFT_TRY_GOTO(done, weft_gemm_run(gemm, &product, err));
            const int64_t ns = weft_clock_now_ns() - start_ns;
            if (ns < best_ns) best_ns = ns;
        }
        total_ns += (double)best_ns;
    }
    *flops_per_s = 3 * 2.0 * M * N * K / (total_ns > 0 ? total_ns : 1) * 1e9;
done:
    free(numbers);
    return status;
}

static void describe(struct weft_gemm *gemm, const char *reason)
{
    char version[64];
    gemm->way->library->version(gemm->state, version, sizeof(version));
    const char *how = gemm->dtype == WEFT_F32 ? "" : gemm->emulation ? " emulated" : " native";
    snprintf(gemm->description, sizeof(gemm->description), "%s %s (%s)%s%s%s",
             gemm->way->library->title, version, reason, *how ? ", " : "",
             *how ? weft_dtype_name(gemm->dtype) : "", how);
}

static bool is_native(const struct weft_gemm *gemm)
{
    const struct weft_gemm_library *library = gemm->way->library;
    if (gemm->dtype == WEFT_F32) return true;
    return !gemm->way->emulates && library->has && library->has(gemm->state, gemm->dtype);
}

static enum weft_status open_way(const struct way *way, int32_t threads, struct weft_gemm *gemm,
                                 struct weft_error *err)
{
    gemm->state = NULL;
    WEFT_TRY(way->library->open(threads, &gemm->state, err));
    gemm->way = way;
    if (is_native(gemm)) return WEFT_OK;
    return weft_gemm_emulation_open(gemm->dtype, &gemm->emulation, err);
}

static void close_way(struct weft_gemm *gemm)
{
    if (gemm->way) gemm->way->library->close(gemm->state);
    weft_gemm_emulation_close(gemm->emulation);
    gemm->way = NULL;
    gemm->state = NULL;
    gemm->emulation = NULL;
}

/* Opens and measures every way, keeps the best. One that cannot be opened or measured is only
 * named, unless none can be. */
static enum weft_status choose(int32_t threads, struct weft_gemm *gemm, struct weft_error *err)
{
    double best = 0;
    char losers[160] = "", reason[224];
    size_t used = 0;
    struct weft_error first = {0};

    for (size_t i = 0; i < N_WAYS; i++) {
        /* To emulate is a way of its own only where there is another. */
        if (ways[i].emulates && (gemm->dtype == WEFT_F32 || gemm->emulation)) continue;
        struct weft_gemm candidate = {.dtype = gemm->dtype};
        struct weft_error reported = {0};
        double rate = 0;
        if (open_way(&ways[i], threads, &candidate, &reported) != WEFT_OK ||
            measure(&candidate, &rate, &reported) != WEFT_OK) {
            if (first.status == WEFT_OK) first = reported;
            close_way(&candidate);
            used += (size_t)snprintf(losers + used, sizeof(losers) - used, "; %s not usable",
                                     ways[i].title);
        } else {
            const bool wins = gemm->way == NULL || rate > best * PREFERENCE;
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
    if (!gemm->way) return weft_fail(err, first.status, "%s", first.text);
    snprintf(reason, sizeof(reason), "%.0f GFLOP/s%s", best * 1e-9, losers);
    describe(gemm, reason);
    return WEFT_OK;
}

/* Without address space one library asks for its buffers for ever and the other ends the process,
 * so look first whether there is enough. */
static enum weft_status check_address_space(int32_t threads, struct weft_error *err)
{
    static const int64_t libraries_bytes = INT64_C(128) << 20, thread_bytes = INT64_C(132) << 20;
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return WEFT_OK;
    int64_t bytes = libraries_bytes + threads * thread_bytes;
    void *probe =
        mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (probe != MAP_FAILED) {
        munmap(probe, (size_t)bytes);
        return WEFT_OK;
    }
    char want[WEFT_UNITS_TEXT_BYTES], most[WEFT_UNITS_TEXT_BYTES];
    return weft_fail(err, WEFT_E_SYSTEM,
                     "matrix products need %s of address space more, for libraries and buffers, "
                     "and it is limited to %s in all (RLIMIT_AS): raise it (ulimit -v)",
                     weft_units_show_bytes(bytes, want),
                     weft_units_show_bytes((int64_t)limit.rlim_cur, most));
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
        const bool known = strcmp(name, "onednn") == 0 || strcmp(name, "openblas") == 0;
        return weft_fail(err, known ? WEFT_E_ENVIRONMENT : WEFT_E_USAGE,
                         "%s GEMM library \"%s\"; there are \"auto\", %s",
                         known ? "this build has no" : "there is no", name, built);
    }
    WEFT_TRY(check_address_space(threads, err));
    struct weft_gemm *gemm = calloc(1, sizeof(*gemm));
    if (!gemm) return weft_fail_memory(err, "a GEMM library");
    gemm->dtype = dtype;
    const enum weft_status status =
        automatic ? choose(threads, gemm, err) : open_way(way, threads, gemm, err);
    if (status != WEFT_OK) {
        weft_gemm_close(gemm);
        return status;
    }
    if (!automatic) describe(gemm, "asked for");
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
