/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/runtime/comm/machines.h"

#include "base/machine/cores.h"
#include "runtime/comm/claims.h"
#include "runtime/comm/host.h"

struct fake_machine fake_machine;
int32_t fake_cores;

int32_t __real_weft_memory_limits(struct weft_memory_limit *out);
int32_t __wrap_weft_memory_limits(struct weft_memory_limit *out);
int32_t __wrap_weft_memory_limits(struct weft_memory_limit *out)
{
    const struct fake_machine *said = &fake_machine;
    if (said->machine == 0) return __real_weft_memory_limits(out);
    out[0] = (struct weft_memory_limit){.left_bytes = said->left_bytes, .name = "the machine"};
    out[1] = (struct weft_memory_limit){.device = 7,
                                        .inode = said->group,
                                        .left_bytes = said->in_group_bytes,
                                        .name = "memory.max of /group"};
    return said->group == 0 ? 1 : 2;
}

struct weft_hash __real_weft_host_of_memory(void);
struct weft_hash __wrap_weft_host_of_memory(void);
struct weft_hash __wrap_weft_host_of_memory(void)
{
    if (fake_machine.machine == 0) return __real_weft_host_of_memory();
    return weft_hash_bytes(&fake_machine.machine, sizeof fake_machine.machine);
}

void __real_weft_core_limits_read(const struct weft_cgroup_files *groups,
                                  struct weft_core_limits *out);
void __wrap_weft_core_limits_read(const struct weft_cgroup_files *groups,
                                  struct weft_core_limits *out);
void __wrap_weft_core_limits_read(const struct weft_cgroup_files *groups,
                                  struct weft_core_limits *out)
{
    __real_weft_core_limits_read(groups, out);
    if (fake_cores > 0) out->allowed = fake_cores;
}

int32_t __real_weft_core_quotas_read(const struct weft_cgroup_files *groups,
                                     struct weft_core_quota out[WEFT_CORE_QUOTAS]);
int32_t __wrap_weft_core_quotas_read(const struct weft_cgroup_files *groups,
                                     struct weft_core_quota out[WEFT_CORE_QUOTAS]);
int32_t __wrap_weft_core_quotas_read(const struct weft_cgroup_files *groups,
                                     struct weft_core_quota out[WEFT_CORE_QUOTAS])
{
    return fake_cores > 0 ? 0 : __real_weft_core_quotas_read(groups, out);
}
