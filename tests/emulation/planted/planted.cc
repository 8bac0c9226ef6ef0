/* SPDX-License-Identifier: Apache-2.0 */
/* Only its own check finds each planted mistake, and none finds the kernel without the mistake.
 * Without watched kernels only the emulator's own checks run. */
#include <cstdio>

extern "C" {
#include "base/hash.h"
}

#include "tests/emulation/planted/planted.h"

static const struct planted *now_planted;
static bool found_check[EMU_CHECK_COUNT];

static bool of_emulator(enum emu_check check)
{
    return check < EMU_BOUNDS;
}

static void is_found(void)
{
    emu_enable(1u << now_planted->check);
    now_planted->run(true);
    emu_enable(UINT32_MAX);
    bool found = false;
    for (const struct emu_finding &finding : emu_take_findings()) {
        found = found || finding.check == now_planted->check;
        emu_expect(finding.check == now_planted->check, "another check: %s", finding.text.c_str());
    }
    emu_expect(found, "check %s finds nothing", emu_check_name(now_planted->check));
    found_check[now_planted->check] = found_check[now_planted->check] || found;
}

static void is_clean_without(void)
{
    now_planted->run(false);
}

static void run_planted(const struct planted *list, int n)
{
    for (int i = 0; i < n; i++) {
        if (!emu_watched() && !of_emulator(list[i].check)) continue;
        now_planted = &list[i];
        emu_case(list[i].name, is_found);
        emu_case((std::string("nothing is found where nothing ") + list[i].name).c_str(),
                 is_clean_without);
    }
}

static void every_check_has_found_something(void)
{
    for (int check = 0; check < EMU_CHECK_COUNT; check++) {
        if (!emu_watched() && !of_emulator((enum emu_check)check)) continue;
        emu_expect(found_check[check], "no planted mistake for %s",
                   emu_check_name((enum emu_check)check));
    }
}

static void shared_memory_begins_as_nan(void)
{
    emu_enable(0);
    planted_adds_up_unwritten_shared_memory(true);
    emu_enable(UINT32_MAX);
}

static void guards_show_what_was_written_beside_an_operand(void)
{
    emu_buffer<float> x("x", EMU_SCRATCH, 3, 1);
    emu_expect(emu_guards_hold(x.data), "guards hold when nothing was written");
    const float was = x[3];
    x[3] = 1;
    emu_expect(!emu_guards_hold(x.data), "one number behind the operand");
    x[3] = was;
    x[-1] = 1;
    emu_expect(!emu_guards_hold(x.data), "one number in front of it");
    x[-1] = was;
}

/* A GPU makes 0x7fffffff of inf - inf, and x86 makes 0xffc00000. */
__global__ static void planted_makes_nans(uint32_t f32, uint16_t half, float *x, uint16_t *y,
                                          uint32_t *words)
{
    words[threadIdx.x] = f32;
    memcpy(x + threadIdx.x, &f32, sizeof(f32));
    y[threadIdx.x] = half;
}

static void all_nans_are_equal(void)
{
    enum { N = 4, BYTES = 2 * N };
    emu_buffer<float> x("x", EMU_BOTH, N), y("y", EMU_BOTH, N);
    emu_buffer<uint16_t> a("a", EMU_BOTH, N, 0, EMU_BF16), b("b", EMU_BOTH, N, 0, EMU_BF16);
    emu_buffer<uint32_t> v("v", EMU_BOTH, N), w("w", EMU_BOTH, N);
    planted_launch(planted_makes_nans, 1, N, 0, NULL, 0x7fffffffu, (uint16_t)0x7fff, x.data, a.data,
                   v.data);
    planted_launch(planted_makes_nans, 1, N, 0, NULL, 0xffc00000u, (uint16_t)0xffc0, y.data, b.data,
                   w.data);
    const auto same_hash = [](const void *one, const void *other) {
        return weft_hash_equal(emu_hash(one), emu_hash(other));
    };
    emu_same_bits("fp32", N, x.data, y.data);
    emu_expect(same_hash(x.data, y.data) && same_hash(a.data, b.data), "their hashes");
    emu_expect(emu_type_at(b.data + 1) == EMU_BF16 &&
                   emu_same_elements(EMU_BF16, BYTES, a.data, b.data) &&
                   emu_type_at(b.data + N) == EMU_BYTES,
               "bf16");
    emu_expect(!same_hash(v.data, w.data) && !emu_same_elements(EMU_BYTES, BYTES, v.data, w.data),
               "words are no numbers");
    x[2] = INFINITY;
    emu_expect(!same_hash(x.data, y.data) && !emu_same_elements(EMU_F32, 4, &x[2], &y[2]) &&
                   !emu_same_elements(EMU_F32, 4, &y[2], &x[2]),
               "infinity is a number");
}

int main(int argc, char **argv)
{
    emu_begin(argc, argv);
    run_planted(planted_launches, planted_launches_count);
    run_planted(planted_memory, planted_memory_count);
    run_planted(planted_threads, planted_threads_count);
    run_planted(planted_traffic, planted_traffic_count);
    emu_case("shared memory begins as NaN", shared_memory_begins_as_nan);
    emu_case("NaNs of a GPU and of a CPU are equal", all_nans_are_equal);
    emu_case("guards show what was written beside an operand",
             guards_show_what_was_written_beside_an_operand);
    emu_case("every check has found something", every_check_has_found_something);
    return emu_end({"planted_fill", "planted_leave"});
}
