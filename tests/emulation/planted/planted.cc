/* Only its own check finds each planted mistake, and none finds the kernel without the mistake.
 * Without watched kernels only the emulator's own checks run. */
#include "tests/emulation/planted/planted.h"

#include <cstdio>

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

int main(int argc, char **argv)
{
    emu_begin(argc, argv);
    run_planted(planted_launches, planted_launches_count);
    run_planted(planted_memory, planted_memory_count);
    run_planted(planted_threads, planted_threads_count);
    run_planted(planted_traffic, planted_traffic_count);
    emu_case("shared memory begins as NaN", shared_memory_begins_as_nan);
    emu_case("guards show what was written beside an operand",
             guards_show_what_was_written_beside_an_operand);
    emu_case("every check has found something", every_check_has_found_something);
    return emu_end({"planted_fill", "planted_leave"});
}
