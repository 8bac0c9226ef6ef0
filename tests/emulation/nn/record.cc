/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/emulation/nn/common.h"

#include "runtime/nn/cuda/kernels/record.h"
#include "runtime/nn/record.h"

static void a_scale_is_rounded_once(void)
{
    emu_buffer<double> scale("scale", EMU_READ, 1);
    emu_buffer<float> to("to", EMU_WRITE, 2);
    scale[0] = 65536.1;
    weft_cuda_scale(1.0 / 3, scale.data, to.data, NULL);
    weft_cuda_scale(1.0 / 3, NULL, to.data + 1, NULL);
    emu_expect(to[0] == (float)(1.0 / 3 * 65536.1) && to[1] == (float)(1.0 / 3), "%g and %g",
               (double)to[0], (double)to[1]);
}

static void what_was_not_finite_before_is_nobodys(void)
{
    emu_buffer<uint64_t> bins("bins", EMU_READ, WEFT_NORM_WORDS), before("before", EMU_READ, 2),
        bad("bad", EMU_BOTH, 1);
    memset(bins.data, 0, bins.bytes());
    bins[WEFT_NORM_WORDS - 1] = before[1] = 5;
    before[0] = bad[0] = 0;
    weft_cuda_norm_bad(bins.data, before.data, bad.data, NULL);
    emu_expect(bad[0] == 0, "nothing came");
    bins[WEFT_NORM_WORDS - 2] = 1;
    weft_cuda_norm_bad(bins.data, before.data, bad.data, NULL);
    emu_expect(bad[0] == 1, "a number that is not finite");
}

static void losses_become_the_cpus_words(void)
{
    for (double loss : {0.0, 0.7, 10.82, 1e6 + 0.25, 0x1p45, -0x1p-60, 0x1p46, (double)NAN}) {
        emu_buffer<double> from("loss", EMU_READ, 1);
        emu_buffer<uint64_t> words("words", EMU_BOTH, WEFT_NN_LOSS_WORDS);
        uint64_t wanted[WEFT_NN_LOSS_WORDS] = {0, 0, 0};
        memset(words.data, 0, words.bytes());
        from[0] = loss;
        weft_cuda_record_loss(from.data, NULL, words.data, NULL);
        record_loss(loss, NULL, wanted);
        emu_same_bits("words", WEFT_NN_LOSS_WORDS, words.data, wanted);
    }
}

static int64_t found(uint32_t flag, double loss, int64_t first, uint32_t *stop)
{
    emu_buffer<uint32_t> flags("flag", EMU_READ, 1), stops("stop", EMU_BOTH, 1);
    emu_buffer<double> losses("loss", EMU_READ, 1);
    emu_buffer<int64_t> firsts("first", EMU_BOTH, 1);
    flags[0] = flag;
    losses[0] = loss;
    firsts[0] = first;
    stops[0] = 0;
    const struct weft_cuda_finding finding = {flags.data, losses.data, 42, firsts.data, stops.data};
    weft_cuda_find(&finding, NULL);
    *stop = stops[0];
    return firsts[0];
}

static void a_finding_is_the_first(void)
{
    uint32_t stop;
    emu_expect(found(0, 1, INT64_MAX, &stop) == INT64_MAX && stop == 0, "nothing is found");
    emu_expect(found(1, 1, INT64_MAX, &stop) == 42 && stop == 1, "a number");
    emu_expect(found(0, NAN, INT64_MAX, &stop) == 42 && stop == 1, "a loss");
    emu_expect(found(0, 0x1p46, INT64_MAX, &stop) == 42, "a loss that is too large");
    emu_expect(found(1, 1, 7, &stop) == 7 && stop == 1, "the first stays");
}

static uint64_t mixed(const unsigned char *bytes, int64_t n, uint64_t word)
{
    emu_buffer<unsigned char> from("from", EMU_READ, n);
    emu_buffer<uint64_t> sums("sums", EMU_BOTH, 2), to("to", EMU_BOTH, 1);
    memcpy(from.data, bytes, (size_t)n);
    sums[0] = sums[1] = 0;
    to[0] = word;
    weft_cuda_hash_add(sums.data, 0, 0, (const float *)from.data, n / 4, NULL);
    weft_cuda_mix(sums.data, from.data, n, to.data, NULL);
    return to[0];
}

/* Every bit of every byte changes the result, and so do the number of bytes and the previous
 * word. */
static void every_bit_is_mixed_in(void)
{
    unsigned char bytes[23] = {0};
    for (int64_t n : {4, 7, 22}) {
        const uint64_t whole = mixed(bytes, n, 1);
        emu_expect(mixed(bytes, n + 1, 1) != whole && mixed(bytes, n, 2) != whole, "the rest");
        emu_expect(mixed(bytes, n, 1) == whole, "the same again");
        for (int64_t bit = 0; bit < 8 * n; bit += 5) {
            bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
            emu_expect(mixed(bytes, n, 1) != whole, "bit %lld of %lld bytes", (long long)bit,
                       (long long)n);
            bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        }
    }
}

static void trust_is_the_cpus(void)
{
    struct weft_optimizer lamb = {};
    lamb.type = WEFT_LAMB;
    for (int i = 0; i < 40; i++) {
        float x[5], y[5];
        uint64_t bins_x[WEFT_NORM_WORDS] = {0}, bins_y[WEFT_NORM_WORDS] = {0};
        emu_buffer<uint64_t> a("parameters", EMU_READ, WEFT_NORM_PACKED_WORDS),
            b("steps", EMU_READ, WEFT_NORM_PACKED_WORDS);
        emu_buffer<float> trust("trust", EMU_WRITE, 1);
        for (int j = 0; j < 5; j++) {
            x[j] = (float)ldexp(emu_normal(), i * 5 - 100);
            y[j] = i == 3 ? 0 : (float)ldexp(emu_normal(), 60 - i * 3);
        }
        if (i == 5) x[2] = INFINITY;
        weft_norm_add(bins_x, x, 5);
        weft_norm_add(bins_y, y, 5);
        weft_norm_pack(bins_x, a.data);
        weft_norm_pack(bins_y, b.data);
        const float wanted = weft_lamb_trust(&lamb, true, a.data, b.data);
        weft_cuda_lamb_trust(a.data, b.data, trust.data, NULL);
        emu_same_bits("trust", 1, trust.data, &wanted);
    }
}

int main(int argc, char **argv)
{
    emu_begin(argc, argv);
    emu_case("a scale is rounded once", a_scale_is_rounded_once);
    emu_case("what was not finite before is nobody's", what_was_not_finite_before_is_nobodys);
    emu_case("losses become the CPU's words", losses_become_the_cpus_words);
    emu_case("a finding is the first", a_finding_is_the_first);
    emu_case("every bit is mixed in", every_bit_is_mixed_in);
    emu_case("trust: the CPU's", trust_is_the_cpus);
    return emu_end({"once<scale_op>", "once<bad_op>", "once<loss_op>", "once<find_op>",
                    "once<mix_op>", "once<trust_op>"});
}
