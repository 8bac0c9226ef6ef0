/* SPDX-License-Identifier: Apache-2.0 */
/* Random cases for tests of problem/ to scheduler/: a random chain model on random ranks with
 * random times, its stages, and random legal plans of its problem. All from a seed. */
#ifndef WEFT_TESTS_PROGRAM_RANDOM_MODEL_H
#define WEFT_TESTS_PROGRAM_RANDOM_MODEL_H

#include "base/text.h"
#include "plan/plan.h"
#include "problem/stages.h"
#include "program/program.h"

struct random_case {
    uint64_t seed;
    struct weft_config *config;
    struct weft_profile *profile;
    struct weft_stages stages;
    struct weft_lower_inputs inputs; /* refers to the others */
};

/* A profile of random curves and layer times for any config. The caller destroys it. */
struct weft_profile *random_profile(const struct weft_config *config, uint64_t seed);

/* Fails the test that runs when any of it fails. */
void random_case_init(struct random_case *random, uint64_t seed);
/* The same of a plain config. */
void random_case_init_plain(struct random_case *random, uint64_t seed);
/* The same with updates that are delayed by a step, and no micro-step's reductions or LAMB. */
void random_case_init_delayed(struct random_case *random, uint64_t seed);
/* The same for a config in a file, with its analytic profile. */
void random_case_read(struct random_case *random, const char *path);
/* The same with host memory, a disk or both as further tiers for state. */
void random_case_init_tiers(struct random_case *random, uint64_t seed);
/* Cases with tiers, and some with hsdp, or hsdp and nodes, or central. */
void random_case_init_nodes(struct random_case *random, uint64_t seed);
/* Cases of random_case_init_nodes, or cases with delayed updates alone, in two to four micro-steps
 * that take turns by layers. A model of one layer has no turns. */
void random_case_init_turns(struct random_case *random, uint64_t seed);
/* The same of tiers, nodes and turns, updated in backward without clipping. */
void random_case_init_backward(struct random_case *random, uint64_t seed);
void random_case_finish(struct random_case *random);

/* A plan of random strategies and a random legal order of its blocks, predicted. The caller
 * destroys it before the case. */
struct weft_plan *random_plan(const struct random_case *random, uint64_t seed);

/* The same with given strategies. */
struct weft_plan *random_placements(const struct random_case *random, const int32_t *strategies,
                                    uint64_t seed);

/* The program of a plan of the case. The caller destroys it. */
struct weft_program *random_program(const struct random_case *random, const struct weft_plan *plan);

/* A case with tiers, a random plan of it and its program. */
struct tiers_case {
    struct random_case random;
    struct weft_plan *plan;
    struct weft_program *program;
};
void tiers_case_init(struct tiers_case *c, uint64_t seed);
/* Units may be nodes with parameters on the host. */
void cached_case_init(struct tiers_case *c, uint64_t seed);
/* Nodes step on their own, with or without delayed updates. */
void averaged_case_init(struct tiers_case *c, uint64_t seed);
void tiers_case_finish(struct tiers_case *c);
/* Checks that the plan's bytes on the device, by category and slot, and its time equal the
 * program's. Otherwise the running test fails. */
void tiers_case_check(const struct tiers_case *c);

#endif
