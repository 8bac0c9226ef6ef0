/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/nn/cuda/choices/multiply.h"

#include <inttypes.h>

#include "base/text.h"

const char *const weft_cuda_finish_names[WEFT_CUDA_FINISHES] = {"bias", "residual", "gelu", "slope",
                                                                "times"};

/* Keys */

struct weft_cuda_key weft_cuda_key_of(const struct weft_product *p, bool timed)
{
    const struct weft_product_finish *f = &p->finish;
    const unsigned finish =
        (f->bias != NULL ? WEFT_CUDA_BIAS : 0) | (f->residual != NULL ? WEFT_CUDA_RESIDUAL : 0) |
        (f->gelu != NULL ? WEFT_CUDA_GELU : 0) | (f->gelu_input != NULL ? WEFT_CUDA_SLOPE : 0) |
        (timed ? WEFT_CUDA_TIMES : 0);
    return (struct weft_cuda_key){.dtype = p->dtype,
                                  .c_dtype = p->c_dtype,
                                  .transpose_a = p->transpose_a,
                                  .transpose_b = p->transpose_b,
                                  .finish = finish,
                                  .m = p->m,
                                  .n = p->n,
                                  .k = p->k,
                                  .a_gap = p->a_stride - (p->transpose_a ? p->m : p->k),
                                  .c_gap = p->c_stride - p->n};
}

static bool is_same(const struct weft_cuda_key *a, const struct weft_cuda_key *b)
{
    return a->dtype == b->dtype && a->c_dtype == b->c_dtype && a->transpose_a == b->transpose_a &&
           a->transpose_b == b->transpose_b && a->finish == b->finish && a->m == b->m &&
           a->n == b->n && a->k == b->k && a->a_gap == b->a_gap && a->c_gap == b->c_gap;
}

/* Operands are not read. Their addresses only show the alignment. */
struct weft_cuda_request weft_cuda_request_of(const struct weft_cuda_key *key)
{
    void *somewhere = (void *)(uintptr_t)WEFT_CUDA_OPERAND_ALIGNMENT;
    struct weft_cuda_request asked = {.product =
                                          weft_product_dense(key->transpose_a, key->transpose_b,
                                                             key->m, key->n, key->k, key->dtype)};
    struct weft_product *p = &asked.product;
    p->c_dtype = key->c_dtype;
    p->a_stride += key->a_gap;
    p->c_stride += key->c_gap;
    p->a = p->b = p->c = somewhere;
    if ((key->finish & WEFT_CUDA_BIAS) != 0) p->finish.bias = somewhere;
    if ((key->finish & WEFT_CUDA_RESIDUAL) != 0) p->finish.residual = somewhere;
    if ((key->finish & WEFT_CUDA_GELU) != 0) p->finish.gelu = somewhere;
    if ((key->finish & WEFT_CUDA_SLOPE) != 0) p->finish.gelu_input = somewhere;
    if ((key->finish & WEFT_CUDA_TIMES) != 0) asked.times = somewhere;
    return asked;
}

void weft_cuda_key_show(const struct weft_cuda_key *key, struct weft_text *out)
{
    weft_text_addf(out, "%s %s %c%c %" PRId64 " %" PRId64 " %" PRId64 " ",
                   weft_dtype_name(key->dtype), weft_dtype_name(key->c_dtype),
                   key->transpose_a ? 't' : 'n', key->transpose_b ? 't' : 'n', key->m, key->n,
                   key->k);
    const char *before = "";
    for (int i = 0; i < WEFT_CUDA_FINISHES; i++) {
        if ((key->finish >> i & 1) == 0) continue;
        weft_text_addf(out, "%s%s", before, weft_cuda_finish_names[i]);
        before = "+";
    }
    if (key->a_gap > 0) weft_text_addf(out, "%sa:%" PRId64, before, key->a_gap);
    if (key->a_gap > 0) before = "+";
    if (key->c_gap > 0) weft_text_addf(out, "%sc:%" PRId64, before, key->c_gap);
    if (key->finish == 0 && key->a_gap == 0 && key->c_gap == 0) weft_text_add(out, "-");
}

/* Parts */

enum { PART_WIDTH = 128, FAST_BYTES = 16 };

/* The size along the rows that have gaps: columns, rows or terms. */
static int64_t *gapped_size(struct weft_cuda_key *key)
{
    if (key->c_gap > 0) return &key->n;
    return key->transpose_a ? &key->m : &key->k;
}

static int64_t *gap_of(struct weft_cuda_key *key)
{
    return key->c_gap > 0 ? &key->c_gap : &key->a_gap;
}

/* A second part of k adds to the first, so a bias would be added twice. */
static bool may_part(const struct weft_cuda_key *key, int64_t size)
{
    const unsigned allowed = WEFT_CUDA_TIMES | (key->c_gap > 0 ? WEFT_CUDA_BIAS : 0);
    return (key->a_gap > 0) != (key->c_gap > 0) && (key->finish & ~allowed) == 0 &&
           size > PART_WIDTH && size * weft_dtype_bytes(key->dtype) % FAST_BYTES != 0;
}

int weft_cuda_parts(const struct weft_cuda_key *key,
                    struct weft_cuda_part out[WEFT_CUDA_MOST_PARTS])
{
    out[0] = out[1] = (struct weft_cuda_part){.key = *key};
    const int64_t size = *gapped_size(&out[0].key), rest = size % PART_WIDTH;
    if (!may_part(key, size)) return 1;
    *gapped_size(&out[0].key) = out[1].from = size - rest;
    *gap_of(&out[0].key) += rest;
    *gapped_size(&out[1].key) = rest;
    *gap_of(&out[1].key) += size - rest;
    return 2;
}

static const void *read_from(const void *matrix, int64_t elements, enum weft_dtype dtype)
{
    return (const char *)matrix + elements * weft_dtype_bytes(dtype);
}

/* The operands of a part. */
static struct weft_product cut_product(const struct weft_product *whole,
                                       const struct weft_cuda_part *part)
{
    struct weft_product p = *whole;
    const int64_t from = part->from;
    char *c = p.c;
    p.m = part->key.m;
    p.n = part->key.n;
    p.k = part->key.k;
    if (p.n != whole->n) {
        p.b = read_from(p.b, from * (p.transpose_b ? p.b_stride : 1), p.dtype);
        p.c = c + from * weft_dtype_bytes(p.c_dtype);
        if (p.finish.bias != NULL) p.finish.bias = read_from(p.finish.bias, from, p.c_dtype);
    } else if (p.m != whole->m) {
        p.a = read_from(p.a, from * (p.transpose_a ? 1 : p.a_stride), p.dtype);
        p.c = c + from * p.c_stride * weft_dtype_bytes(p.c_dtype);
    } else if (p.k != whole->k) {
        p.a = read_from(p.a, from * (p.transpose_a ? p.a_stride : 1), p.dtype);
        p.b = read_from(p.b, from * (p.transpose_b ? 1 : p.b_stride), p.dtype);
        p.accumulate = p.accumulate || from > 0;
    }
    return p;
}

/* Running */

/* The library leaves out GELU and its slope, and kernels after it do them. */
static int run_both(const struct weft_nn_cuda *cuda, const struct weft_cuda_choice *choice,
                    const struct weft_cuda_request *asked, struct CUstream_st *on)
{
    const struct weft_product *p = &asked->product;
    struct weft_cuda_request less = *asked;
    less.product.finish.gelu = NULL;
    less.product.finish.gelu_input = NULL;
    const int code = cuda->ops->run(cuda->library, &less, &choice->algorithm, cuda->workspace, on);
    if (code != 0) return code;
    if (p->finish.gelu_input != NULL) {
        return weft_cuda_gelu_backward(p->c_dtype, p->m * p->n, p->finish.gelu_input, p->c, p->c,
                                       on);
    }
    return weft_cuda_gelu(p->c_dtype, p->m * p->n, p->c, p->finish.gelu, on);
}

int weft_cuda_run_choice(const struct weft_nn_cuda *cuda, const struct weft_cuda_choice *choice,
                         const struct weft_cuda_request *asked, struct CUstream_st *on)
{
    switch (choice->way) {
    case WEFT_CUDA_BY_LIBRARY:
        return cuda->ops->run(cuda->library, asked, &choice->algorithm, cuda->workspace, on);
    case WEFT_CUDA_BY_BOTH:
        return run_both(cuda, choice, asked, on);
    case WEFT_CUDA_BY_OWN:
    case WEFT_CUDA_WAY_COUNT:
        break;
    }
    return weft_cuda_product(&asked->product, NULL, asked->times, on);
}

const struct weft_cuda_choice *weft_cuda_find_choice(const struct weft_cuda_choice *choices,
                                                     int32_t n, const struct weft_cuda_key *key)
{
    for (int32_t i = 0; i < n; i++) {
        if (is_same(&choices[i].key, key)) return &choices[i];
    }
    return NULL;
}

int weft_cuda_multiply(const struct weft_nn_cuda *cuda, const struct weft_product *product,
                       const float *times, struct CUstream_st *on)
{
    if (cuda->library == NULL || !weft_cuda_has_dense_b(product))
        return weft_cuda_product(product, NULL, times, on);
    const struct weft_cuda_key key = weft_cuda_key_of(product, times != NULL);
    struct weft_cuda_part parts[WEFT_CUDA_MOST_PARTS];
    const int n = weft_cuda_parts(&key, parts);
    int code = 0;
    for (int i = 0; i < n && code == 0; i++) {
        const struct weft_cuda_request asked = {cut_product(product, &parts[i]), times};
        const struct weft_cuda_choice *choice =
            weft_cuda_find_choice(cuda->choices, cuda->n_choices, &parts[i].key);
        code =
            choice != NULL ? weft_cuda_run_choice(cuda, choice, &asked, on) : WEFT_CUDA_NOT_BOUND;
    }
    return code;
}
