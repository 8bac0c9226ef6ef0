/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/emulation/runs/machine.h"

#include <cstdio>
#include <cstdlib>

#include "tests/emulation/emulator.h"

void emu_machine_begin(void)
{
    const char *gpu = getenv("WEFT_EMULATION_GPU"), *seed = getenv("WEFT_EMULATION_SEED");
    const struct emu_target *target = emu_target_named(gpu != NULL ? gpu : "sm_80");
    if (target == NULL) {
        fprintf(stderr, "there is no GPU \"%s\" to emulate\n", gpu);
        abort();
    }
    emu_set_target(target);
    if (seed != NULL) emu_set_order(EMU_SHUFFLED, strtoull(seed, NULL, 10));
}

int emu_machine_findings(void)
{
    const std::vector<struct emu_finding> findings = emu_take_findings();
    for (const struct emu_finding &finding : findings) {
        fprintf(stderr, "emulation: %s: %s\n", emu_check_name(finding.check), finding.text.c_str());
    }
    return (int)findings.size();
}

long emu_machine_launches(void)
{
    return (long)emu_counted().launches;
}
