/* SPDX-License-Identifier: Apache-2.0 */
/* Random programs that verify accepts, and changes of them that it refuses. */
#ifndef WEFT_TESTS_PROGRAM_CHANGES_H
#define WEFT_TESTS_PROGRAM_CHANGES_H

#include <stdbool.h>
#include <stdint.h>

#include "program/inputs.h"
#include "program/program.h"

/* Whether a test is about a program. */
typedef bool program_filter(const struct weft_program *program);

/* Checks tiers_case_check and verify for the programs of seeds 1 to n_seeds that pass the filter.
 * Returns their number. */
int32_t check_programs(int32_t n_seeds, program_filter *filter);

/* The same for cases of another sort. */
struct tiers_case;
typedef void case_init(struct tiers_case *c, uint64_t seed);
int32_t check_programs_of(case_init *init, int32_t n_seeds, program_filter *filter);

/* A change that breaks a program. */
struct program_change {
    bool (*make)(struct weft_program *program); /* false: not possible in this program */
    const char *says;                           /* part of at least one refusal */
    bool may_hold;                              /* another wait may keep the order */
};
/* Checks that verify refuses each of n changes in the programs of seeds 1 to n_seeds that pass the
 * filter, and that its message names each change at least once. */
void check_refusals(int32_t n_seeds, program_filter *filter, const struct program_change *changes,
                    int32_t n);

void check_refusals_of(case_init *init, int32_t n_seeds, program_filter *filter,
                       const struct program_change *changes, int32_t n);

/* The first instruction of an op at or after `from`. -1: none. */
int32_t find_op(const struct weft_program *program, enum weft_op op, int32_t from);

/* Removes the instruction's wait for instruction `before`. */
void drop_wait(struct weft_program *program, const struct weft_instruction *at, int32_t before);
/* Takes the instruction out of its chain, with its wait. Returns true. */
bool leave_chain(struct weft_program *program, struct weft_instruction *at);

#endif
