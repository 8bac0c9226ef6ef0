#include "scheduler/rounds/tight.h"
#include "scheduler/digest/digest.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#include "scheduler/schedule.h"
#include "tests/scheduler/tiny.h"

static struct weft_problem *problem_of(uint64_t seed)
{
    struct tiny_shape shape = {
        .n_units = 2 + (int32_t)(seed % 4), .most_blocks = 3, .policies = 15, .load = 0.5};
    struct weft_problem *problem = tiny_problem(&shape, seed);
    tiny_set_limit(problem, 0.1 * (double)(seed % 8));
    return problem;
}

static int64_t common_in(const struct weft_problem *problem, int32_t slot)
{
    int64_t bytes = 0;
    for (int32_t i = 0; i < problem->n_common; i++) {
        struct weft_life life = {problem->common[i].first, problem->common[i].last};
        if (weft_life_has(life, slot)) bytes += problem->common[i].bytes;
    }
    return bytes;
}

static void check_tight(const struct weft_problem *problem, const int64_t *room_bytes,
                        int64_t bytes)
{
    struct weft_tight tight;
    struct weft_error err = {0};
    cr_assert_eq(weft_tight_create(problem, room_bytes, bytes, &tight, &err), WEFT_OK);
    for (int32_t s = 0; s < problem->n_slots; s++) {
        int64_t more = room_bytes[s] < bytes ? room_bytes[s] : bytes;
        cr_assert_eq(common_in(&tight.problem, s), common_in(problem, s) + more);
    }
    if (bytes == 0) cr_assert_eq(tight.problem.n_common, problem->n_common);
    cr_assert_leq(weft_least_limit(&tight.problem, NULL), problem->memory_limit_bytes);
    weft_tight_finish(&tight);
}

/* However much is asked for, the leanest plan still fits; and no slot holds more than its room. */
Test(tight, leaves_the_leanest_plan_its_rows)
{
    int n_roomier = 0;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct weft_problem *problem = problem_of(seed);
        struct weft_digest *table = NULL;
        struct weft_error err = {0};
        cr_assert_eq(weft_digest_create(problem, &table, &err), WEFT_OK, "%s", err.text);
        int64_t *room_bytes = calloc((size_t)problem->n_slots, sizeof *room_bytes);
        cr_assert_not_null(room_bytes);
        int64_t most = weft_tight_room(table, room_bytes);
        int64_t alike = problem->memory_limit_bytes - table->least_bytes;
        cr_assert_eq(room_bytes[table->least_slot], alike);
        cr_assert_geq(most, alike);
        n_roomier += most > alike;
        const int64_t some[] = {0, 1, most / 2, most, INT64_MAX};
        for (size_t i = 0; i < sizeof some / sizeof *some; i++)
            check_tight(problem, room_bytes, some[i]);
        free(room_bytes);
        weft_digest_destroy(table);
        weft_problem_destroy(problem);
    }
    cr_assert_gt(n_roomier, 20, "of 40: there is more room than in the fullest slot");
}
