/* SPDX-License-Identifier: Apache-2.0 */
/* Records and decisions of a step, each a few words. */
#include "runtime/nn/cuda/kernels/record.h"

#include "runtime/nn/cuda/kernels/access.h"
#include "runtime/nn/exact.h"
#include "runtime/nn/record.h"

/* Runs an operation in one thread, with `words` words of shared memory. */
template <typename Op> __global__ void __launch_bounds__(1) once(Op op)
{
    op.run(shared_memory<uint64_t>());
}

template <typename Op> static int launch_once(Op op, int words, cudaStream_t stream)
{
    return launch(once<Op>, {dim3(1), dim3(1), (size_t)words * sizeof(uint64_t)}, stream, op);
}

struct scale_op {
    double by;
    const double *scale;
    float *to;

    GPU void run(uint64_t *) const
    {
        *to = (float)(scale != NULL ? by * *scale : by);
    }
};

int weft_cuda_scale(double by, const double *scale, float *to, struct CUstream_st *stream)
{
    return launch_once(scale_op{by, scale, to}, 0, stream);
}

struct bad_op {
    const uint64_t *bins, *before;
    uint64_t *bad;

    GPU void run(uint64_t *) const
    {
        const uint64_t *last = bins + WEFT_NORM_WORDS - 2;
        if (last[0] != before[0] || last[1] != before[1]) *bad = 1;
    }
};

int weft_cuda_norm_bad(const uint64_t *bins, const uint64_t *before, uint64_t *bad,
                       struct CUstream_st *stream)
{
    return launch_once(bad_op{bins, before, bad}, 0, stream);
}

struct loss_op {
    const double *loss;
    const uint64_t *before;
    uint64_t *words;

    GPU void run(uint64_t *) const
    {
        record_loss(*loss, before, words);
    }
};

int weft_cuda_record_loss(const double *loss, const uint64_t *before, uint64_t *words,
                          struct CUstream_st *stream)
{
    return launch_once(loss_op{loss, before, words}, 0, stream);
}

struct find_op {
    struct weft_cuda_finding f;

    GPU void run(uint64_t *) const
    {
        const bool lost = f.loss != NULL && !(fabs(*f.loss) < WEFT_NN_LOSS_MOST);
        if (*f.flag == 0 && !lost) return;
        if (*f.first == INT64_MAX) *f.first = f.place;
        if (f.stop != NULL) *f.stop = 1;
    }
};

int weft_cuda_find(const struct weft_cuda_finding *finding, struct CUstream_st *stream)
{
    return launch_once(find_op{*finding}, 0, stream);
}

struct mix_op {
    const uint64_t *sums;
    const unsigned char *rest; /* after the last whole word */
    int64_t bytes;
    uint64_t *word;

    GPU void run(uint64_t *) const
    {
        uint64_t left = 0;
        for (int64_t i = 0; i < bytes % 4; i++) {
            left = left << 8 | rest[i];
        }
        const uint64_t low = sums[1] ^ hash_mix(left << 32 ^ (uint64_t)bytes);
        *word = (*word ^ low) * UINT64_C(0x9e3779b97f4a7c15) + sums[0];
    }
};

int weft_cuda_mix(const uint64_t *sums, const void *from, int64_t bytes, uint64_t *word,
                  struct CUstream_st *stream)
{
    const unsigned char *rest = (const unsigned char *)from + bytes / 4 * 4;
    return launch_once(mix_op{sums, rest, bytes, word}, 0, stream);
}

struct trust_op {
    const uint64_t *parameters, *steps;
    float *trust;

    GPU void run(uint64_t *limbs) const
    {
        const bool finite =
            parameters[WEFT_NORM_PACKED_WORDS - 1] == 0 && steps[WEFT_NORM_PACKED_WORDS - 1] == 0;
        const double of_parameters = unpacked_root(parameters, limbs);
        const double of_steps = unpacked_root(steps, limbs);
        const bool known = finite && of_parameters > 0 && of_steps > 0;
        *trust = known ? (float)(of_parameters / of_steps) : 1.0f;
    }
};

int weft_cuda_lamb_trust(const uint64_t *parameters, const uint64_t *steps, float *trust,
                         struct CUstream_st *stream)
{
    return launch_once(trust_op{parameters, steps, trust}, EXACT_LIMBS, stream);
}
