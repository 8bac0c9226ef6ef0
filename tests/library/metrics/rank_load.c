/* SPDX-License-Identifier: Apache-2.0 */
#include "library/metrics/rank_load.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

enum { RANKS = 4, SECONDS = 10 };

/* A rank on a host that has used `own_s`, while all programs of its machine used 30 s. */
static struct weft_rank_part part_of(int32_t host, const char *machine, double own_s)
{
    struct weft_rank_part part = {
        .machine = weft_hash_bytes(machine, 1),
        .spent = {.known = true, .passed_s = SECONDS, .busy_s = 30, .own_s = own_s, .cores = 8},
        .times = {.host = host, .compute_ns = host + 1},
    };
    snprintf(part.host, sizeof part.host, "host-%d", (int)host);
    return part;
}

static bool is_as_asked(double a, double b)
{
    return fabs(a - b) < 1e-9;
}

/* Cores of other programs on both hosts of two ranks each. */
static void check_others(const char *machine, double first, double second)
{
    const struct weft_rank_part parts[RANKS] = {part_of(0, "a", 4), part_of(1, machine, 5),
                                                part_of(0, "a", 6), part_of(1, machine, 7)};
    struct weft_run_hosts hosts;
    struct weft_error err = {0};
    struct weft_pool pool;
    weft_pool_init(&pool);
    cr_assert_eq(weft_rank_load_join(parts, RANKS, &pool, &hosts, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(hosts.n_hosts, 2);
    cr_assert_eq(hosts.n_ranks, RANKS);
    for (int32_t h = 0; h < hosts.n_hosts; h++) {
        cr_assert_eq(hosts.hosts[h].ranks, 2);
        cr_assert_eq(hosts.hosts[h].cores, 8);
        cr_assert_str_eq(hosts.hosts[h].name, h == 0 ? "host-0" : "host-1");
    }
    for (int32_t r = 0; r < RANKS; r++)
        cr_assert_eq(hosts.ranks[r].compute_ns, hosts.ranks[r].host + 1);
    cr_assert(is_as_asked(hosts.hosts[0].others_cores, first), "%g", hosts.hosts[0].others_cores);
    cr_assert(is_as_asked(hosts.hosts[1].others_cores, second), "%g", hosts.hosts[1].others_cores);
    weft_pool_finish(&pool);
}

Test(rank_load, ranks_are_no_other_programs_on_their_machine)
{
    check_others("b", 2.0, 1.8); /* 30 - 4 - 6, 30 - 5 - 7 */
    check_others("a", 0.8, 0.8); /* 30 - 4 - 5 - 6 - 7 */
}
