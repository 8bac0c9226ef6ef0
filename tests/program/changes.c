/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/program/changes.h"

#include <criterion/criterion.h>
#include <string.h>

#include "program/verify.h"
#include "tests/program/random_model.h"

int32_t find_op(const struct weft_program *program, enum weft_op op, int32_t from)
{
    for (int32_t i = from; i < program->n_instructions; i++)
        if (program->instructions[i].op == op) return i;
    return -1;
}

void drop_wait(struct weft_program *program, const struct weft_instruction *at, int32_t before)
{
    for (int32_t d = 0; d < at->n_dependencies; d++)
        if (program->dependencies[at->first_dependency + d] == before)
            program->dependencies[at->first_dependency + d] = 0;
}

bool leave_chain(struct weft_program *program, struct weft_instruction *at)
{
    drop_wait(program, at, at->after);
    at->after = 0;
    return true;
}

int32_t check_programs(int32_t n_seeds, program_filter *filter)
{
    return check_programs_of(tiers_case_init, n_seeds, filter);
}

int32_t check_programs_of(case_init *init, int32_t n_seeds, program_filter *filter)
{
    int32_t n_seen = 0;
    for (int32_t seed = 1; seed <= n_seeds; seed++) {
        struct tiers_case c;
        struct weft_error err = {0};
        init(&c, (uint64_t)seed);
        if (filter(c.program)) {
            n_seen++;
            tiers_case_check(&c);
            cr_assert_eq(weft_program_verify(c.program, INT64_MAX, &err), WEFT_OK, "seed %d: %s",
                         seed, err.text);
        }
        tiers_case_finish(&c);
    }
    return n_seen;
}

/* Makes a change in the program of a seed. Returns whether the refusal names it. `passes` receives
 * whether the program passes the filter. */
static bool check_refusal(case_init *init, int32_t seed, program_filter *filter,
                          const struct program_change *change, bool *passes)
{
    struct tiers_case c;
    struct weft_error err = {0};
    bool named = false;
    init(&c, (uint64_t)seed);
    *passes = filter(c.program);
    if (*passes && change->make(c.program)) {
        const enum weft_status status = weft_program_verify(c.program, INT64_MAX, &err);
        cr_assert(status == WEFT_E_DATA || (status == WEFT_OK && change->may_hold),
                  "seed %d, change that says \"%s\": %s", seed, change->says, err.text);
        named = status != WEFT_OK && strstr(err.text, change->says) != NULL;
    }
    tiers_case_finish(&c);
    return named;
}

void check_refusals(int32_t n_seeds, program_filter *filter, const struct program_change *changes,
                    int32_t n)
{
    check_refusals_of(tiers_case_init, n_seeds, filter, changes, n);
}

void check_refusals_of(case_init *init, int32_t n_seeds, program_filter *filter,
                       const struct program_change *changes, int32_t n)
{
    enum { MOST = 16 };
    int32_t n_named[MOST] = {0};
    cr_assert_leq(n, MOST);
    for (int32_t seed = 1; seed <= n_seeds; seed++) {
        bool passes = true;
        for (int32_t i = 0; i < n && passes; i++)
            n_named[i] += check_refusal(init, seed, filter, &changes[i], &passes);
    }
    for (int32_t i = 0; i < n; i++)
        cr_assert_gt(n_named[i], 0, "no refusal names change %d: %s", i, changes[i].says);
}
