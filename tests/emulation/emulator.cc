/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/emulation/emulator.h"

#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "tests/emulation/run.h"

static const char *const check_names[EMU_CHECK_COUNT] = {
    "limits",       "barrier",       "meeting",   "bounds",       "read-only",
    "alignment",    "uninitialised", "unwritten", "race-threads", "race-blocks",
    "race-streams", "sectors",       "banks",     "traffic",
};

/* Shared memory: 163, 99, 99, 227, 227 and 99 KiB a block. */
const struct emu_target emu_targets[] = {
    {"sm_80", 166912, 167936, 2048, 32, 65536},  {"sm_86", 101376, 102400, 1536, 16, 65536},
    {"sm_89", 101376, 102400, 1536, 24, 65536},  {"sm_90", 232448, 233472, 2048, 32, 65536},
    {"sm_100", 232448, 233472, 2048, 32, 65536}, {"sm_120", 101376, 102400, 1536, 24, 65536},
};
const int emu_target_count = sizeof(emu_targets) / sizeof(emu_targets[0]);

static uint32_t enabled_checks = UINT32_MAX;
static std::vector<struct emu_finding> findings;
static uint32_t last_launch[EMU_CHECK_COUNT];
static size_t last_place[EMU_CHECK_COUNT];
static int64_t repeated[EMU_CHECK_COUNT];

const char *emu_check_name(enum emu_check check)
{
    return check_names[check];
}

const struct emu_target *emu_target_named(const char *name)
{
    for (const struct emu_target &target : emu_targets) {
        if (strcmp(target.name, name) == 0) return &target;
    }
    return NULL;
}

void emu_enable(uint32_t checks)
{
    enabled_checks = checks;
}

bool emu_enabled(enum emu_check check)
{
    return (enabled_checks >> check & 1) != 0;
}

/* Returns the prefix "adamw, block 3, thread 17: ". */
static std::string place_of_finding(void)
{
    char text[256] = "";
    if (emu_now.kernel != NULL) {
        snprintf(text, sizeof(text), "%.150s, block %u, thread %u: ", emu_now.kernel, emu_now.block,
                 emu_now.thread);
    }
    return text;
}

static void add_finding(enum emu_check check, const char *format, va_list arguments)
{
    char text[512];
    if (!emu_enabled(check)) return;
    const uint32_t launch = emu_run_launches();
    if (!findings.empty() && last_launch[check] == launch && last_place[check] < findings.size() &&
        findings[last_place[check]].check == check) {
        repeated[check]++;
        return;
    }
    vsnprintf(text, sizeof(text), format, arguments);
    last_launch[check] = launch;
    last_place[check] = findings.size();
    findings.push_back({check, place_of_finding() + text});
}

void emu_find(enum emu_check check, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    add_finding(check, format, arguments);
    va_end(arguments);
}

void emu_stop(enum emu_check check, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    add_finding(check, format, arguments);
    va_end(arguments);
    emu_run_abandon();
}

std::vector<struct emu_finding> emu_take_findings(void)
{
    std::vector<struct emu_finding> taken;
    taken.swap(findings);
    for (struct emu_finding &finding : taken) {
        if (repeated[finding.check] == 0) continue;
        finding.text += " (and " + std::to_string(repeated[finding.check]) + " more)";
        repeated[finding.check] = 0;
    }
    memset(repeated, 0, sizeof(repeated));
    memset(last_launch, 0, sizeof(last_launch));
    return taken;
}
