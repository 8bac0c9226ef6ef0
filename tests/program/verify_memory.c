/* SPDX-License-Identifier: Apache-2.0 */
/* Runs programs that verify accepts in random timings. In every timing no two instructions touch
 * the same bytes at once if one writes. Every read finds the last values of the piece that it
 * names. Spoilt programs that verify accepts run too. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "base/rng.h"
#include "program/verify.h"
#include "tests/program/random_model.h"

enum { VERIFY_MEMORY_CASES = 60, SPOILS = 30, TIMINGS = 4, PERIODS = 4 };

struct run {
    int64_t start, end;
};

struct dice {
    uint64_t seed, counter;
};

static int64_t roll(struct dice *dice, int64_t below)
{
    return (int64_t)weft_rng_below(dice->seed, 77, dice->counter++, (uint64_t)below);
}

/* Mostly short, at times very long; a start may be late for no reason that the program knows. */
static int64_t duration(struct dice *dice)
{
    return 1 + (roll(dice, 4) == 0 ? roll(dice, 2000) : roll(dice, 20));
}

static void run_once(const struct weft_program *program, struct dice *dice, struct run *runs)
{
    int64_t free_at[WEFT_MOST_LANES] = {0};
    int32_t n = program->n_instructions;
    for (int32_t i = 0; i < PERIODS * n; i++) {
        const struct weft_instruction *at = &program->instructions[i % n];
        int64_t start = free_at[at->lane];
        for (int32_t d = 0; d < at->n_dependencies; d++) {
            int32_t before = program->dependencies[at->first_dependency + d] + i / n * n;
            if (runs[before].end > start) start = runs[before].end;
        }
        if (roll(dice, 3) == 0) start += duration(dice);
        runs[i] = (struct run){start, start + duration(dice)};
        free_at[at->lane] = runs[i].end;
    }
}

/* Bytes of memory and the runs that touch them. */
struct touch {
    int32_t run;
    int32_t buffer, piece;
    bool writes;
    int64_t begin_bytes, end_bytes;
};

/* Lists the memory at a piece's addresses, one touch for each mapping. */
static int32_t list_touches(const struct weft_program *program, int32_t i, struct touch *touches)
{
    const struct weft_instruction *at = &program->instructions[i % program->n_instructions];
    const struct weft_paging *paging = program->paging;
    int32_t n = 0, period = i / program->n_instructions;
    for (int32_t o = 0; o < at->n_operands; o++) {
        const struct weft_operand *operand = &program->operands[at->first_operand + o];
        const struct weft_buffer *buffer = &program->buffers[operand->buffer];
        int64_t bytes = buffer->bytes / buffer->n_pieces;
        int32_t table = (period + operand->began_before) % WEFT_PAGE_TABLES;
        for (int32_t p = 0; p < buffer->n_pieces; p++) {
            if (operand->piece >= 0 && operand->piece != p) continue;
            int64_t begin = weft_program_offset(program, operand->buffer, table) + p * bytes;
            for (int32_t m = 0; m < paging->n_mappings; m++) {
                const struct weft_page_mapping *mapping = &paging->mappings[m];
                int64_t end = mapping->at + mapping->pages.count * paging->page_bytes;
                int64_t from = begin > mapping->at ? begin : mapping->at;
                int64_t to = begin + bytes < end ? begin + bytes : end;
                if (from >= to) continue;
                int64_t moved = mapping->pages.first * paging->page_bytes - mapping->at;
                touches[n++] = (struct touch){
                    i, operand->buffer, p, operand->writes, from + moved, to + moved};
            }
        }
    }
    return n;
}

static bool share(const struct touch *a, const struct touch *b)
{
    return a->begin_bytes < b->end_bytes && b->begin_bytes < a->end_bytes;
}

/* True if two touches race, or if `read` finds another piece's values. */
static bool clash(const struct run *runs, const struct touch *a, const struct touch *b)
{
    if (a->run == b->run || !share(a, b) || (!a->writes && !b->writes)) return false;
    return runs[a->run].start < runs[b->run].end && runs[b->run].start < runs[a->run].end;
}

/* True if the last write that ends before the read belongs to another piece. */
static bool stale(const struct run *runs, const struct touch *touches, int32_t n,
                  const struct touch *read)
{
    const struct touch *last = NULL;
    for (int32_t t = 0; t < n; t++) {
        const struct touch *at = &touches[t];
        bool counts = at->writes && share(at, read) && runs[at->run].end <= runs[read->run].start;
        if (counts && (last == NULL || runs[at->run].end > runs[last->run].end)) last = at;
    }
    return last != NULL && (last->buffer != read->buffer || last->piece != read->piece);
}

static bool harmless(const struct weft_program *program, const struct run *runs,
                     struct touch *touches)
{
    int32_t n = 0;
    for (int32_t i = 0; i < PERIODS * program->n_instructions; i++)
        n += list_touches(program, i, &touches[n]);
    for (int32_t t = 0; t < n; t++) {
        for (int32_t u = t + 1; u < n; u++) {
            if (clash(runs, &touches[t], &touches[u])) return false;
        }
        if (!touches[t].writes && stale(runs, touches, n, &touches[t])) return false;
    }
    return true;
}

static size_t count_touches(const struct weft_program *program)
{
    size_t n = 0;
    for (int32_t i = 0; i < program->n_instructions; i++) {
        const struct weft_instruction *at = &program->instructions[i];
        for (int32_t o = 0; o < at->n_operands; o++) {
            int32_t buffer = program->operands[at->first_operand + o].buffer;
            n += (size_t)(program->buffers[buffer].n_pieces + program->paging->n_mappings);
        }
    }
    return n;
}

/* Timings in which the program does harm. */
static int harms(const struct weft_program *program, struct dice *dice)
{
    int found = 0;
    struct run *runs = calloc(PERIODS * (size_t)program->n_instructions, sizeof *runs);
    struct touch *touches = calloc(PERIODS * count_touches(program), sizeof *touches);
    cr_assert(runs != NULL && touches != NULL);
    for (int i = 0; i < TIMINGS; i++) {
        run_once(program, dice, runs);
        found += !harmless(program, runs, touches);
    }
    free(runs);
    free(touches);
    return found;
}

struct spoilt {
    int32_t *dependency, old_dependency;
    struct weft_page_stretch *stretch; /* and where it is mapped */
    struct weft_page_mapping *mapping;
    int32_t old_first;
};

/* Another dependency, or other pages for a range: at random, or those of another. */
static struct spoilt spoil_verify_memory(struct weft_program *program, struct dice *dice)
{
    struct spoilt spoilt = {0};
    const struct weft_instruction *last = &program->instructions[program->n_instructions - 1];
    int32_t n_dependencies = last->first_dependency + last->n_dependencies;
    if (roll(dice, 2) == 0) {
        spoilt.dependency = &program->dependencies[roll(dice, n_dependencies)];
        spoilt.old_dependency = *spoilt.dependency;
        *spoilt.dependency = (int32_t)roll(dice, spoilt.old_dependency + 1);
    } else {
        const struct weft_paging *paging = program->paging;
        int64_t s = roll(dice, paging->n_stretches);
        spoilt.stretch = (struct weft_page_stretch *)&paging->stretches[s];
        spoilt.mapping = (struct weft_page_mapping *)&paging->mappings[s];
        spoilt.old_first = spoilt.stretch->first;
        int32_t to = roll(dice, 2) == 0 ? paging->stretches[roll(dice, paging->n_stretches)].first
                                        : (int32_t)roll(dice, paging->n_pages);
        spoilt.stretch->first = spoilt.mapping->pages.first = to;
    }
    return spoilt;
}

static void mend(struct spoilt spoilt)
{
    if (spoilt.dependency != NULL) *spoilt.dependency = spoilt.old_dependency;
    if (spoilt.stretch != NULL)
        spoilt.stretch->first = spoilt.mapping->pages.first = spoilt.old_first;
}

/* By form and memory alone: without the lives and the course of a step, which would refuse most. */
static bool accepts(const struct weft_program *program, struct weft_error *err)
{
    struct weft_order order;
    if (weft_verify_form(program, err) != WEFT_OK) return false;
    cr_assert_eq(weft_order_init(&order, program, err), WEFT_OK);
    enum weft_status status = weft_verify_memory(program, &order, err);
    weft_order_finish(&order);
    return status == WEFT_OK;
}

Test(verify_memory, accepted_programs_do_no_harm_in_any_timing)
{
    int accepted = 0, refused = 0, caught = 0;
    for (uint64_t seed = 0; seed < VERIFY_MEMORY_CASES; seed++) {
        struct random_case random;
        random_case_init(&random, seed);
        struct weft_plan *plan = random_plan(&random, 0);
        struct weft_program *program = random_program(&random, plan);
        struct dice dice = {seed, 0};
        for (int i = 0; i <= SPOILS; i++) {
            struct weft_error err = {0};
            struct spoilt spoilt = {0};
            if (i > 0) spoilt = spoil_verify_memory(program, &dice);
            if (accepts(program, &err)) {
                cr_assert_eq(harms(program, &dice), 0, "seed %d, spoilt %d", (int)seed, i);
                accepted++;
            } else {
                cr_assert_gt(i, 0, "%s", err.text);
                refused++;
                caught += i % 8 == 0 && harms(program, &dice) > 0;
            }
            mend(spoilt);
        }
        weft_program_destroy(program);
        weft_plan_destroy(plan);
        random_case_finish(&random);
    }
    cr_assert_gt(accepted, 2 * VERIFY_MEMORY_CASES);
    cr_assert_gt(refused, VERIFY_MEMORY_CASES);
    cr_assert_gt(caught, 20, "the timings find next to nothing: the test is blind");
}
