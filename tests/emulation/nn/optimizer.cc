/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/emulation/nn/common.h"

/* State of n elements for kernels, and a copy for the CPU. */
struct state {
    emu_buffer<float> parameters, moment1, moment2;
    elements gradients, copy;
    emu_buffer<struct weft_cuda_step> step;
    std::vector<float> cpu_parameters, cpu_moment1, cpu_moment2;
    std::vector<unsigned char> cpu_copy;
    struct weft_optimizer optimizer;
    bool copies;

    state(int64_t n, enum weft_dtype dtype, enum weft_dtype copy_dtype, bool copies_them,
          int64_t shift, int64_t apart)
        : parameters("parameters", EMU_BOTH, n, shift),
          moment1("moment1", EMU_BOTH, n, shift + apart), moment2("moment2", EMU_BOTH, n, shift),
          gradients("gradients", EMU_READ, dtype, n, shift),
          copy("copy", copies_them ? EMU_WRITE : EMU_SCRATCH, copy_dtype, n, shift),
          step("step", EMU_READ, 1), copies(copies_them)
    {
        for (int64_t i = 0; i < n; i++) {
            parameters[i] = (float)emu_normal();
            moment1[i] = (float)(0.1 * emu_normal());
            moment2[i] = (float)(0.1 * emu_uniform());
        }
        gradients.fill_normal(1);
        cpu_parameters.assign(parameters.data, parameters.data + n);
        cpu_moment1.assign(moment1.data, moment1.data + n);
        cpu_moment2.assign(moment2.data, moment2.data + n);
        cpu_copy.resize(copy.bytes());
        memset(&step[0], 0, sizeof(step[0]));
        set_scalars();
    }

    void set_scalars(void)
    {
        struct weft_adamw adamw = {};
        adamw.lr = 1e-3f;
        adamw.eps = 1e-8f;
        adamw.clip = 0.37f;
        weft_adamw_at(&adamw, 0.9, 0.999, 7);
        const struct weft_sgd sgd = {0.05f, 0.9f, 0, 0.37f};
        optimizer = weft_optimizer();
        optimizer.adamw = step[0].adamw = adamw;
        optimizer.sgd = step[0].sgd = sgd;
        optimizer.decay = 0.1f;
    }

    struct weft_update on_gpu(void) const
    {
        return {parameters.data, gradients.data, gradients.dtype,
                moment1.data,    moment2.data,   copies ? copy.data : NULL,
                copy.dtype,      parameters.n};
    }
    struct weft_update on_cpu(void)
    {
        return {cpu_parameters.data(),
                gradients.data,
                gradients.dtype,
                cpu_moment1.data(),
                cpu_moment2.data(),
                copies ? cpu_copy.data() : NULL,
                copy.dtype,
                parameters.n};
    }
    void expect_same(const char *what) const
    {
        const std::string name = what;
        same_bytes(name + ", parameters", parameters.data, cpu_parameters.data(), parameters.n * 4);
        same_bytes(name + ", moment 1", moment1.data, cpu_moment1.data(), moment1.n * 4);
        same_bytes(name + ", moment 2", moment2.data, cpu_moment2.data(), moment2.n * 4);
        if (copies) same_bytes(name + ", copy", copy.data, cpu_copy.data(), copy.n);
    }
};

/* Sizes, dtypes, with or without a copy, equal or different starts. */
template <typename F> static void for_states(F fn)
{
    for (int64_t n : some_sizes()) {
        for (enum weft_dtype dtype : all_dtypes) {
            for (int64_t shift : some_shifts()) {
                for (int64_t apart : {0, 1}) {
                    const bool copies = (shift + apart) % 2 == 0;
                    const enum weft_dtype to =
                        dtype == WEFT_F32 ? all_dtypes[(n + shift) % 3] : dtype;
                    struct state s(n, dtype, to, copies, shift, apart);
                    fn(&s);
                }
            }
        }
    }
}

static void adamw_is_the_cpus(void)
{
    for_states([](struct state *s) {
        const struct weft_update on_gpu = s->on_gpu(), on_cpu = s->on_cpu();
        s->optimizer.type = WEFT_ADAMW;
        emu_expect(weft_cuda_update(WEFT_ADAMW, s->step.data, 0.1f, &on_gpu, NULL) == 0,
                   "launched");
        weft_optimizer_update(&s->optimizer, true, &on_cpu);
        s->expect_same("adamw");
    });
}

static void sgd_is_the_cpus(void)
{
    for_states([](struct state *s) {
        struct weft_update on_gpu = s->on_gpu(), on_cpu = s->on_cpu();
        s->optimizer.type = WEFT_SGD;
        if (s->parameters.n % 2 == 0) on_gpu.moment1 = on_cpu.moment1 = NULL;
        on_gpu.moment2 = on_cpu.moment2 = NULL;
        weft_cuda_update(WEFT_SGD, s->step.data, 0.1f, &on_gpu, NULL);
        weft_optimizer_update(&s->optimizer, true, &on_cpu);
        s->expect_same("sgd");
    });
}

static void lion_is_the_cpus(void)
{
    for_states([](struct state *s) {
        struct weft_update on_gpu = s->on_gpu(), on_cpu = s->on_cpu();
        s->optimizer.type = WEFT_LION;
        on_gpu.moment2 = on_cpu.moment2 = NULL;
        emu_expect(weft_cuda_update(WEFT_LION, s->step.data, 0.1f, &on_gpu, NULL) == 0, "launched");
        weft_optimizer_update(&s->optimizer, true, &on_cpu);
        s->expect_same("lion");
    });
}

static void lamb_is_the_cpus(void)
{
    for_states([](struct state *s) {
        const struct weft_update on_gpu = s->on_gpu(), on_cpu = s->on_cpu();
        emu_buffer<uint64_t> bins("bins", EMU_BOTH, WEFT_NORM_WORDS);
        emu_buffer<float> trust("trust", EMU_BOTH, 1);
        struct weft_lamb_bins cpu_bins = {};
        uint64_t is[WEFT_NORM_PACKED_WORDS], wanted[WEFT_NORM_PACKED_WORDS];
        memset(bins.data, 0, bins.bytes());
        trust[0] = 0.61f;
        s->optimizer.type = WEFT_LAMB;
        weft_cuda_lamb_moments(s->step.data, &on_gpu, NULL);
        weft_cuda_lamb_squares(s->step.data, 0.1f, &on_gpu, bins.data, NULL);
        weft_cuda_lamb_apply(s->step.data, 0.1f, trust.data, &on_gpu, NULL);
        weft_lamb_moments(&s->optimizer, &on_cpu);
        weft_lamb_add(&s->optimizer, true, &on_cpu, &cpu_bins);
        weft_lamb_apply(&s->optimizer, true, trust[0], &on_cpu);
        s->expect_same("lamb");
        weft_norm_pack(bins.data, is);
        weft_norm_pack(cpu_bins.steps, wanted);
        emu_same_bits("squares of the steps", WEFT_NORM_PACKED_WORDS, is, wanted);
    });
}

static void lamb_without_trust_is_adamw(void)
{
    struct state s(1000, WEFT_F32, WEFT_F32, false, 0, 0);
    const struct weft_update on_gpu = s.on_gpu(), on_cpu = s.on_cpu();
    s.optimizer.type = WEFT_LAMB;
    weft_cuda_lamb_moments(s.step.data, &on_gpu, NULL);
    weft_cuda_lamb_apply(s.step.data, 0.1f, NULL, &on_gpu, NULL);
    weft_lamb_moments(&s.optimizer, &on_cpu);
    weft_lamb_apply(&s.optimizer, true, 1, &on_cpu);
    s.expect_same("lamb");
}

static void a_step_that_stops_changes_nothing(void)
{
    struct state s(1003, WEFT_BF16, WEFT_BF16, false, 0, 0);
    const struct weft_update update = s.on_gpu();
    s.step[0].stop = 1;
    weft_cuda_update(WEFT_ADAMW, s.step.data, 0.1f, &update, NULL);
    weft_cuda_update(WEFT_SGD, s.step.data, 0.1f, &update, NULL);
    weft_cuda_lamb_moments(s.step.data, &update, NULL);
    weft_cuda_lamb_apply(s.step.data, 0.1f, NULL, &update, NULL);
    s.expect_same("stopped");
}

/* An update cut into pieces, as ranks' slices are, gives the same bits. */
static void pieces_make_the_whole(void)
{
    struct state s(2053, WEFT_F32, WEFT_F32, false, 0, 0);
    const struct weft_update on_cpu = s.on_cpu();
    s.optimizer.type = WEFT_ADAMW;
    for (int64_t at = 0, n; at < 2053; at += n) {
        struct weft_update part = s.on_gpu();
        n = std::min<int64_t>(1 + emu_below(700), 2053 - at);
        part.parameters += at;
        part.gradients = (const float *)part.gradients + at;
        part.moment1 += at;
        part.moment2 += at;
        part.n = n;
        weft_cuda_update(WEFT_ADAMW, s.step.data, 0.1f, &part, NULL);
    }
    weft_optimizer_update(&s.optimizer, true, &on_cpu);
    s.expect_same("pieces");
}

static void a_copy_of_another_dtype_is_refused(void)
{
    struct state s(100, WEFT_BF16, WEFT_F16, false, 0, 0);
    struct weft_update update = s.on_gpu();
    update.copy = s.copy.data;
    emu_expect(weft_cuda_update(WEFT_ADAMW, s.step.data, 0.1f, &update, NULL) != 0,
               "f16 beside bf16");
    s.expect_same("refused");
}

static void moves_no_byte_too_many(void)
{
    struct state s(4096, WEFT_F32, WEFT_BF16, true, 0, 0);
    const struct weft_update update = s.on_gpu();
    emu_watch_limit({1.001, 0, 1.05});
    weft_cuda_update(WEFT_ADAMW, s.step.data, 0.1f, &update, NULL);
    weft_cuda_update(WEFT_SGD, s.step.data, 0.1f, &update, NULL);
    emu_watch_limit({});
}

int main(int argc, char **argv)
{
    emu_begin(argc, argv);
    emu_case("adamw: the CPU's bits", adamw_is_the_cpus);
    emu_case("sgd: the CPU's bits", sgd_is_the_cpus);
    emu_case("lamb: the CPU's bits", lamb_is_the_cpus);
    emu_case("lamb without trust", lamb_without_trust_is_adamw);
    emu_case("a step that stops changes nothing", a_step_that_stops_changes_nothing);
    emu_case("a copy of another dtype is refused", a_copy_of_another_dtype_is_refused);
    emu_case("pieces make the whole", pieces_make_the_whole);
    emu_case("no byte too many", moves_no_byte_too_many);
    emu_case("lion: the CPU's bits", lion_is_the_cpus);
    return emu_end({"each<update_op<bf16, bf16, adamw_of_elements, 2> >",
                    "each<update_op<f16, f16, sgd_of_elements, 1> >",
                    "each<update_op<float, float, sgd_of_elements, 0> >",
                    "each<lamb_moments_op<f16> >", "each<lamb_apply_op<bf16> >",
                    "squares<lamb_steps>"});
}
