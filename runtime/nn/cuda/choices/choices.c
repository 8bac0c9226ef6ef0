/* SPDX-License-Identifier: Apache-2.0 */
/* Choices as a text, which rank 0 makes and all ranks use. The first line is the library's title.
 * Each product has a line such as
 *
 *     bf16 f32 tn 768 3072 8192 bias+gelu library 00a1...
 *
 * with the dtypes of operands and of c, the transpositions of a and b, m, n, k, the finish ("-":
 * none), the way, and the library's algorithm in hexadecimal ("-": none). The finish ends with
 * "a:47" or "c:47" if rows of a or c have 47 elements between them. Ways of attention follow
 * (attention_choices.h). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "runtime/nn/cuda/choices/attention_choices.h"
#include "runtime/nn/cuda/choices/proof.h"
#include "runtime/nn/cuda/choices/step_products.h"

static const char *const way_names[WEFT_CUDA_WAY_COUNT] = {"library", "both", "own"};

/* Lists */

struct choices {
    struct weft_cuda_choice *all;
    int32_t n;
};

static enum weft_status add_choice(struct choices *choices, const struct weft_cuda_choice *choice,
                                   struct weft_error *err)
{
    if (weft_cuda_find_choice(choices->all, choices->n, &choice->key) != NULL) return WEFT_OK;
    struct weft_cuda_choice *all =
        realloc(choices->all, ((size_t)choices->n + 1) * sizeof *choices->all);
    if (all == NULL) return weft_fail_memory(err, "choices of products");
    choices->all = all;
    all[choices->n++] = *choice;
    return WEFT_OK;
}

static enum weft_status add_key(void *context, const struct weft_cuda_key *key,
                                struct weft_error *err)
{
    struct weft_cuda_part parts[WEFT_CUDA_MOST_PARTS];
    const int n = weft_cuda_parts(key, parts);
    for (int i = 0; i < n; i++) {
        const struct weft_cuda_choice choice = {.key = parts[i].key, .way = WEFT_CUDA_BY_OWN};
        WEFT_TRY(add_choice(context, &choice, err));
    }
    return WEFT_OK;
}

static enum weft_status list_products(const struct weft_layer *layers, int32_t n_layers,
                                      const struct weft_batch *batch, struct choices *out,
                                      struct weft_error *err)
{
    for (int32_t l = 0; l < n_layers; l++)
        WEFT_TRY(weft_cuda_step_products(&layers[l], batch, add_key, out, err));
    return WEFT_OK;
}

/* Text */

static void show_choice(const struct weft_cuda_choice *choice, struct weft_text *out)
{
    weft_cuda_key_show(&choice->key, out);
    weft_text_addf(out, " %s ", way_names[choice->way]);
    for (int i = 0; i < WEFT_CUDA_ALGORITHM_WORDS && choice->way != WEFT_CUDA_BY_OWN; i++) {
        weft_text_addf(out, "%016" PRIx64, choice->algorithm.words[i]);
    }
    weft_text_add(out, choice->way == WEFT_CUDA_BY_OWN ? "-\n" : "\n");
}

static bool read_dtype(const char *name, enum weft_dtype *out)
{
    for (int i = 0; i < WEFT_DTYPE_COUNT; i++) {
        *out = (enum weft_dtype)i;
        if (strcmp(weft_dtype_name(*out), name) == 0) return true;
    }
    return false;
}

static bool is_size(int64_t size)
{
    return size > 0 && size < INT64_C(1) << 40;
}

static bool read_gap(const char *name, int64_t *out)
{
    int end = 0;
    return sscanf(name + 2, "%" SCNd64 "%n", out, &end) == 1 && name[2 + end] == '\0' &&
           is_size(*out);
}

/* Reads the finish and the gaps. */
static bool read_finish(char *names, struct weft_cuda_key *out)
{
    out->finish = 0;
    if (strcmp(names, "-") == 0) return true;
    for (char *rest = NULL, *name = strtok_r(names, "+", &rest); name != NULL;
         name = strtok_r(NULL, "+", &rest)) {
        int i = 0;
        if (strncmp(name, "a:", 2) == 0 || strncmp(name, "c:", 2) == 0) {
            if (!read_gap(name, name[0] == 'a' ? &out->a_gap : &out->c_gap)) return false;
            continue;
        }
        while (i < WEFT_CUDA_FINISHES && strcmp(weft_cuda_finish_names[i], name) != 0) {
            i++;
        }
        if (i == WEFT_CUDA_FINISHES) return false;
        out->finish |= 1u << i;
    }
    return true;
}

static bool read_way(const char *name, enum weft_cuda_way *out)
{
    for (int i = 0; i < WEFT_CUDA_WAY_COUNT; i++) {
        *out = (enum weft_cuda_way)i;
        if (strcmp(way_names[i], name) == 0) return true;
    }
    return false;
}

static bool read_algorithm(const char *digits, struct weft_cuda_choice *choice)
{
    enum { DIGITS = 16 };
    if (choice->way == WEFT_CUDA_BY_OWN) return strcmp(digits, "-") == 0;
    if (strlen(digits) != (size_t)DIGITS * WEFT_CUDA_ALGORITHM_WORDS ||
        strspn(digits, "0123456789abcdef") != strlen(digits))
        return false;
    for (int i = 0; i < WEFT_CUDA_ALGORITHM_WORDS; i++) {
        char word[DIGITS + 1] = "";
        memcpy(word, digits + (ptrdiff_t)i * DIGITS, DIGITS);
        choice->algorithm.words[i] = strtoull(word, NULL, 16);
    }
    return true;
}

static bool read_choice(const char *line, struct weft_cuda_choice *out)
{
    char dtype[8], c_dtype[8], turned[3], finish[64], way[16], digits[136];
    struct weft_cuda_key *key = &out->key;
    int end = 0;
    *out = (struct weft_cuda_choice){0};
    if (sscanf(line, "%7s %7s %2[nt] %" SCNd64 " %" SCNd64 " %" SCNd64 " %63s %15s %135s%n", dtype,
               c_dtype, turned, &key->m, &key->n, &key->k, finish, way, digits, &end) != 9)
        return false;
    key->transpose_a = turned[0] == 't';
    key->transpose_b = turned[1] == 't';
    return line[end] == '\0' && strlen(turned) == 2 && is_size(key->m) && is_size(key->n) &&
           is_size(key->k) && read_dtype(dtype, &key->dtype) &&
           read_dtype(c_dtype, &key->c_dtype) && read_finish(finish, key) &&
           read_way(way, &out->way) && read_algorithm(digits, out);
}

/* Reads the lines after the first, in place. */
static enum weft_status read_lines(char *lines, struct choices *out, struct weft_error *err)
{
    for (char *rest = NULL, *line = strtok_r(lines, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        struct weft_cuda_choice choice;
        if (!read_choice(line, &choice)) {
            return weft_fail(err, WEFT_E_DATA, "this is no choice of a product: \"%.200s\"", line);
        }
        WEFT_TRY(add_choice(out, &choice, err));
    }
    return WEFT_OK;
}

/* Reads a text of this library, known by its title. For another library's text *other is true and
 * nothing is read. */
static enum weft_status read_choices(const struct weft_nn_cuda *cuda, const char *text,
                                     struct choices *out, bool *other, struct weft_error *err)
{
    const char *title = cuda->ops->title(cuda->library);
    const size_t length = strcspn(text, "\n");
    *other = length != strlen(title) || strncmp(text, title, length) != 0;
    if (*other || text[length] == '\0') return WEFT_OK;
    char *lines = strdup(text + length + 1);
    if (lines == NULL) return weft_fail_memory(err, "choices of products");
    const enum weft_status status = read_lines(lines, out, err);
    free(lines);
    return status;
}

/* Choosing */

/* The request to the library. In BY_BOTH it leaves GELU out. */
static struct weft_cuda_request asked_of_library(const struct weft_cuda_choice *choice)
{
    struct weft_cuda_key key = choice->key;
    if (choice->way == WEFT_CUDA_BY_BOTH)
        key.finish &= ~(unsigned)(WEFT_CUDA_GELU | WEFT_CUDA_SLOPE);
    return weft_cuda_request_of(&key);
}

static const char *refusal_of(const struct weft_nn_cuda *cuda,
                              const struct weft_cuda_choice *choice)
{
    if (choice->way == WEFT_CUDA_BY_OWN) return NULL;
    const struct weft_cuda_request asked = asked_of_library(choice);
    return cuda->ops->refuses(cuda->library, &asked, &choice->algorithm);
}

/* Checks a choice. Faults go to `warnings`, a line each, because a module may not log. */
static bool is_right(const struct weft_nn_cuda *cuda, const struct weft_cuda_choice *choice,
                     struct weft_text *warnings)
{
    struct weft_error why = {0};
    if (refusal_of(cuda, choice) != NULL) return false;
    if (weft_cuda_prove(cuda, choice, &why) == WEFT_OK) return true;
    weft_text_addf(warnings, "%s\n", why.text);
    return false;
}

/* Takes the library's first correct algorithm. */
static bool choose_way(const struct weft_nn_cuda *cuda, enum weft_cuda_way way,
                       struct weft_cuda_choice *choice, struct weft_text *warnings)
{
    struct weft_cuda_algorithm candidates[WEFT_CUDA_MOST_CANDIDATES];
    choice->way = way;
    const struct weft_cuda_request asked = asked_of_library(choice);
    const int n = cuda->ops->candidates(cuda->library, &asked, candidates);
    for (int i = 0; i < n; i++) {
        choice->algorithm = candidates[i];
        if (is_right(cuda, choice, warnings)) return true;
    }
    choice->way = WEFT_CUDA_BY_OWN;
    return false;
}

static void choose_product(const struct weft_nn_cuda *cuda, const struct choices *before,
                           struct weft_cuda_choice *choice, struct weft_text *warnings)
{
    const struct weft_cuda_choice *earlier =
        weft_cuda_find_choice(before->all, before->n, &choice->key);
    const bool gelu = (choice->key.finish & (WEFT_CUDA_GELU | WEFT_CUDA_SLOPE)) != 0;
    if (earlier != NULL && is_right(cuda, earlier, warnings)) {
        *choice = *earlier;
        return;
    }
    if (!choose_way(cuda, WEFT_CUDA_BY_LIBRARY, choice, warnings) && gelu)
        (void)choose_way(cuda, WEFT_CUDA_BY_BOTH, choice, warnings);
}

static void tell_own(const struct weft_nn_cuda *cuda, const struct choices *choices,
                     struct weft_text *warnings)
{
    int32_t own = 0;
    for (int32_t i = 0; i < choices->n; i++) {
        own += choices->all[i].way == WEFT_CUDA_BY_OWN;
    }
    if (own == 0) return;
    weft_text_addf(warnings,
                   "%s has no way that is right for %d of %d products, and Weft's own are slower\n",
                   cuda->ops->title(cuda->library), own, choices->n);
}

static enum weft_status read_earlier(const struct weft_nn_cuda *cuda, const char *earlier,
                                     struct choices *out, struct weft_text *warnings,
                                     struct weft_error *err)
{
    bool other = false;
    if (*earlier == '\0') return WEFT_OK;
    WEFT_TRY(read_choices(cuda, earlier, out, &other, err));
    if (!other) return WEFT_OK;
    weft_text_addf(warnings,
                   "products were computed by %.*s, and are by %s: the same to rounding, not the "
                   "same bits\n",
                   (int)strcspn(earlier, "\n"), earlier, cuda->ops->title(cuda->library));
    return WEFT_OK;
}

static enum weft_status choose_products(struct weft_nn_cuda *cuda, const struct weft_layer *layers,
                                        int32_t n_layers, const struct weft_batch *batch,
                                        const char *earlier, struct weft_text *out,
                                        struct weft_text *warnings, struct weft_error *err)
{
    struct choices choices = {0}, before = {0};
    if (cuda->library == NULL) return WEFT_OK;
    enum weft_status status =
        weft_nn_cuda_reserve(cuda, cuda->ops->workspace_bytes(cuda->library), err);
    if (status == WEFT_OK) status = list_products(layers, n_layers, batch, &choices, err);
    if (status == WEFT_OK) status = read_earlier(cuda, earlier, &before, warnings, err);
    if (status == WEFT_OK) weft_text_addf(out, "%s\n", cuda->ops->title(cuda->library));
    for (int32_t i = 0; i < choices.n && status == WEFT_OK; i++) {
        choose_product(cuda, &before, &choices.all[i], warnings);
        show_choice(&choices.all[i], out);
    }
    if (status == WEFT_OK) tell_own(cuda, &choices, warnings);
    free(before.all);
    free(cuda->proved);
    cuda->proved = choices.all;
    cuda->n_proved = status == WEFT_OK ? choices.n : 0;
    return status;
}

/* Allocates a copy of the text before the part on attention. */
static enum weft_status products_of_text(const char *text, char **out, struct weft_error *err)
{
    const char *whole = text != NULL ? text : "";
    *out = strndup(whole, (size_t)(weft_cuda_attention_part(whole) - whole));
    return *out == NULL ? weft_fail_memory(err, "choices of products") : WEFT_OK;
}

enum weft_status weft_nn_cuda_choose(struct weft_nn *nn, const struct weft_layer *layers,
                                     int32_t n_layers, const struct weft_batch *batch,
                                     const char *earlier, struct weft_text *out,
                                     struct weft_text *warnings, struct weft_error *err)
{
    struct weft_nn_cuda *cuda = weft_nn_cuda_of(nn);
    char *products = NULL;
    WEFT_TRY(products_of_text(earlier, &products, err));
    enum weft_status status =
        choose_products(cuda, layers, n_layers, batch, products, out, warnings, err);
    free(products);
    if (status == WEFT_OK && weft_cuda_attention_chooses(cuda))
        status =
            weft_cuda_attention_choose(cuda, layers, n_layers, batch, earlier, out, warnings, err);
    if (status == WEFT_OK && !weft_text_ok(out))
        status = weft_fail_memory(err, "choices of products");
    return status;
}

/* Binding */

/* Rank 0 proved the library's ways as it chose them. */
static bool was_proved(const struct weft_nn_cuda *cuda, const struct weft_cuda_choice *choice)
{
    const struct weft_cuda_choice *own =
        weft_cuda_find_choice(cuda->proved, cuda->n_proved, &choice->key);
    return choice->way != WEFT_CUDA_BY_OWN && own != NULL && own->way == choice->way &&
           memcmp(&own->algorithm, &choice->algorithm, sizeof own->algorithm) == 0;
}

static enum weft_status check_choice(const struct weft_nn_cuda *cuda,
                                     const struct weft_cuda_choice *choice, struct weft_error *err)
{
    const char *why = refusal_of(cuda, choice);
    if (why == NULL) return was_proved(cuda, choice) ? WEFT_OK : weft_cuda_prove(cuda, choice, err);
    struct weft_text text;
    weft_text_init(&text);
    weft_cuda_key_show(&choice->key, &text);
    weft_fail(err, WEFT_E_DISAGREE,
              "%s cannot compute a product in the way that rank 0 chose: %s (%s). All ranks need "
              "the same GPU and library; WEFT_GEMM=own goes without the library",
              cuda->ops->title(cuda->library), why, weft_text_chars(&text));
    weft_text_finish(&text);
    return WEFT_E_DISAGREE;
}

static enum weft_status take_choices(struct weft_nn_cuda *cuda, const char *text,
                                     struct choices *out, struct weft_error *err)
{
    bool other = false;
    WEFT_TRY(read_choices(cuda, text, out, &other, err));
    if (other) {
        return weft_fail(err, WEFT_E_DISAGREE,
                         "rank 0's products are by %.*s, and this rank has %s: all ranks need the "
                         "same GPU and library",
                         (int)strcspn(text, "\n"), text, cuda->ops->title(cuda->library));
    }
    for (int32_t i = 0; i < out->n; i++) {
        WEFT_TRY(check_choice(cuda, &out->all[i], err));
    }
    return WEFT_OK;
}

static enum weft_status bind_products(struct weft_nn_cuda *cuda, const char *text,
                                      struct weft_error *err)
{
    struct choices choices = {0};
    char *products = NULL;
    if (cuda->library == NULL) return WEFT_OK;
    WEFT_TRY(weft_nn_cuda_reserve(cuda, cuda->ops->workspace_bytes(cuda->library), err));
    WEFT_TRY(products_of_text(text, &products, err));
    const enum weft_status status = take_choices(cuda, products, &choices, err);
    free(products);
    if (status != WEFT_OK) {
        free(choices.all);
        return status;
    }
    free(cuda->choices);
    cuda->choices = choices.all;
    cuda->n_choices = choices.n;
    return WEFT_OK;
}

enum weft_status weft_nn_cuda_bind(struct weft_nn *nn, const struct weft_layer *layers,
                                   int32_t n_layers, const struct weft_batch *batch,
                                   const char *text, struct weft_error *err)
{
    struct weft_nn_cuda *cuda = weft_nn_cuda_of(nn);
    (void)layers, (void)n_layers, (void)batch;
    if (!weft_nn_cuda_has_choices(nn)) return WEFT_OK;
    if (weft_cuda_attention_chooses(cuda))
        WEFT_TRY(weft_cuda_attention_bind(cuda, weft_cuda_attention_part(text), err));
    char *kept = *text != '\0' ? strdup(text) : NULL;
    if (kept == NULL && *text != '\0') return weft_fail_memory(err, "choices of products");
    const enum weft_status status = bind_products(cuda, text, err);
    if (status != WEFT_OK) {
        free(kept);
        return status;
    }
    free(cuda->choices_text);
    cuda->choices_text = kept;
    return WEFT_OK;
}

bool weft_nn_cuda_has_choices(const struct weft_nn *nn)
{
    const struct weft_nn_cuda *cuda = (const struct weft_nn_cuda *)(const void *)nn;
    return cuda->library != NULL || weft_cuda_attention_chooses(cuda);
}

const char *weft_nn_cuda_choices(const struct weft_nn *nn)
{
    return ((const struct weft_nn_cuda *)(const void *)nn)->choices_text;
}
