#include "runtime/nn/gemm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

struct weft_gemm {
    const struct weft_gemm_library *library;
    void *state;
    char description[320];
};

/* In order of preference: a later one must be faster by PREFERENCE, so that noise does not choose
 * another library, and with it other bits, from one run to the next. */
static const struct weft_gemm_library *const libraries[] = {
#if WEFT_HAVE_ONEDNN
    &weft_gemm_onednn,
#endif
#if WEFT_HAVE_OPENBLAS
    &weft_gemm_openblas,
#endif
};
enum { N_LIBRARIES = sizeof(libraries) / sizeof(libraries[0]) };

static const double PREFERENCE = 1.15;

static void list_libraries(char *text, size_t bytes)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < N_LIBRARIES && used < bytes; i++) {
        used += (size_t)snprintf(text + used, bytes - used, "%s\"%s\"", i ? ", " : "",
                                 libraries[i]->name);
    }
}

enum weft_status weft_gemm_run(const struct weft_gemm *gemm, const struct weft_product *product,
                               struct weft_error *err)
{
    if (product->m == 0 || product->n == 0) return WEFT_OK;
    if (product->k == 0) {
        for (int64_t i = 0; i < product->m && !product->accumulate; i++) {
            memset(product->c + i * product->c_stride, 0, (size_t)product->n * sizeof(float));
        }
        return WEFT_OK;
    }
    return gemm->library->run(gemm->state, product, err);
}

/* Rate of the kinds of product that layers are made of, in flops a second, at a size that makes
 * every library pack and block. */
static enum weft_status measure(const struct weft_gemm *gemm, double *flops_per_s,
                                struct weft_error *err)
{
    enum { M = 384, N = 320, K = 448, RUNS = 3 };
    static const bool transposed[3][2] = {{false, true}, {false, false}, {true, false}};
    float *numbers = calloc((size_t)(M * K + K * N + M * N), sizeof(float));
    if (!numbers) return weft_fail_memory(err, "the matrices that measure GEMM libraries");

    enum weft_status status = WEFT_OK;
    double total_ns = 0;
    for (int kind = 0; kind < 3; kind++) {
        const bool ta = transposed[kind][0], tb = transposed[kind][1];
        const struct weft_product product = {.transpose_a = ta,
                                             .transpose_b = tb,
                                             .m = M,
                                             .n = N,
                                             .k = K,
                                             .a = numbers,
                                             .a_stride = ta ? M : K,
                                             .b = numbers + M * K,
                                             .b_stride = tb ? K : N,
                                             .alpha = 1,
                                             .c = numbers + M * K + K * N,
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
    gemm->library->version(gemm->state, version, sizeof(version));
    snprintf(gemm->description, sizeof(gemm->description), "%s %s (%s)", gemm->library->title,
             version, reason);
}

static enum weft_status open_library(const struct weft_gemm_library *library, int32_t threads,
                                     struct weft_gemm *gemm, struct weft_error *err)
{
    gemm->state = NULL;
    WEFT_TRY(library->open(threads, &gemm->state, err));
    gemm->library = library;
    return WEFT_OK;
}

static void close_library(struct weft_gemm *gemm)
{
    if (gemm->library) gemm->library->close(gemm->state);
    gemm->library = NULL;
    gemm->state = NULL;
}

/* Opens and measures every library, keeps the best. One that cannot be opened or measured is only
 * named, unless none can be. */
static enum weft_status choose(int32_t threads, struct weft_gemm *gemm, struct weft_error *err)
{
    double best = 0;
    char losers[160] = "", reason[224];
    size_t used = 0;
    struct weft_error first = {0};

    for (size_t i = 0; i < N_LIBRARIES; i++) {
        struct weft_gemm candidate = {0};
        struct weft_error reported = {0};
        double rate = 0;
        if (open_library(libraries[i], threads, &candidate, &reported) != WEFT_OK ||
            measure(&candidate, &rate, &reported) != WEFT_OK) {
            if (first.status == WEFT_OK) first = reported;
            close_library(&candidate);
            used += (size_t)snprintf(losers + used, sizeof(losers) - used, "; %s not usable",
                                     libraries[i]->title);
        } else {
            const bool wins = gemm->library == NULL || rate > best * PREFERENCE;
            struct weft_gemm loser = wins ? *gemm : candidate;
            const double loser_rate = wins ? best : rate;
            if (wins) {
                *gemm = candidate;
                best = rate;
            }
            if (loser.library) {
                used += (size_t)snprintf(losers + used, sizeof(losers) - used, "; %s %.0f",
                                         loser.library->title, loser_rate * 1e-9);
            }
            close_library(&loser);
        }
        if (used >= sizeof(losers)) used = sizeof(losers) - 1;
    }
    if (!gemm->library) return weft_fail(err, first.status, "%s", first.text);
    snprintf(reason, sizeof(reason), "%.0f GFLOP/s%s", best * 1e-9, losers);
    describe(gemm, reason);
    return WEFT_OK;
}

enum weft_status weft_gemm_open(const char *name, int32_t threads, struct weft_gemm **out,
                                struct weft_error *err)
{
    char built[64];
    list_libraries(built, sizeof(built));
    if (threads < 1) {
        return weft_fail(err, WEFT_E_USAGE, "compute threads must be at least 1, not %d",
                         (int)threads);
    }
    const struct weft_gemm_library *library = NULL;
    for (size_t i = 0; i < N_LIBRARIES; i++) {
        if (strcmp(libraries[i]->name, name) == 0) library = libraries[i];
    }
    const bool automatic = strcmp(name, "auto") == 0;
    if (!library && !automatic) {
        const bool known = strcmp(name, "onednn") == 0 || strcmp(name, "openblas") == 0;
        return weft_fail(err, known ? WEFT_E_ENVIRONMENT : WEFT_E_USAGE,
                         "%s GEMM library \"%s\"; there are \"auto\", %s",
                         known ? "this build has no" : "there is no", name, built);
    }
    struct weft_gemm *gemm = calloc(1, sizeof(*gemm));
    if (!gemm) return weft_fail_memory(err, "a GEMM library");
    const enum weft_status status =
        automatic ? choose(threads, gemm, err) : open_library(library, threads, gemm, err);
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
    close_library(gemm);
    free(gemm);
}

const char *weft_gemm_name(const struct weft_gemm *gemm)
{
    return gemm->library->name;
}

const char *weft_gemm_describe(const struct weft_gemm *gemm)
{
    return gemm->description;
}
