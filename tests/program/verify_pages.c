/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>

#include "program/lifetime.h"
#include "program/program.h"
#include "tests/program/random_model.h"

enum { PAGED_PROGRAMS = 120 };

struct paged_subject {
    struct random_case random;
    struct weft_plan *plan;
    struct weft_program *program;
    struct weft_paging *paging;
    struct weft_page_range *ranges;
    struct weft_page_stretch *stretches;
    struct weft_page_mapping *mappings;
};

static void paged_init(struct paged_subject *subject, uint64_t seed)
{
    random_case_init(&subject->random, seed);
    subject->plan = random_plan(&subject->random, 0);
    subject->program = random_program(&subject->random, subject->plan);
    subject->paging = subject->program->paging;
    subject->ranges = (struct weft_page_range *)subject->paging->ranges;
    subject->stretches = (struct weft_page_stretch *)subject->paging->stretches;
    subject->mappings = (struct weft_page_mapping *)subject->paging->mappings;
}

static void paged_finish(struct paged_subject *subject)
{
    weft_program_destroy(subject->program);
    weft_plan_destroy(subject->plan);
    random_case_finish(&subject->random);
}

static void paged_accept(const struct paged_subject *subject)
{
    struct weft_error err = {0};
    enum weft_status status = weft_program_verify(subject->program, INT64_MAX, &err);
    cr_assert_eq(status, WEFT_OK, "seed %d: %s", (int)subject->random.seed, err.text);
}

static void paged_refuse(const struct paged_subject *subject, const char *word)
{
    struct weft_error err = {0};
    enum weft_status status = weft_program_verify(subject->program, INT64_MAX, &err);
    cr_assert_eq(status, WEFT_E_DATA, "seed %d: not refused; expected: %s",
                 (int)subject->random.seed, word);
    cr_assert(strstr(err.text, word) != NULL, "seed %d: \"%s\" lacks \"%s\"",
              (int)subject->random.seed, err.text, word);
}

static void spoil_paged(int least, int (*spoiler)(struct paged_subject *subject))
{
    int spoilt = 0;
    for (uint64_t seed = 0; seed < PAGED_PROGRAMS; seed++) {
        struct paged_subject subject;
        paged_init(&subject, seed);
        paged_accept(&subject);
        spoilt += spoiler(&subject);
        paged_accept(&subject);
        paged_finish(&subject);
    }
    cr_assert_geq(spoilt, least, "the test found next to nothing to spoil");
}

/* The pages of a stretch, in the table of stretches and where they are mapped. */
static void set_stretch(struct paged_subject *subject, int32_t s, struct weft_page_stretch to)
{
    cr_assert_eq(subject->mappings[s].pages.first, subject->stretches[s].first);
    subject->stretches[s] = subject->mappings[s].pages = to;
}

/* Puts each stretch of a temporary buffer on the residents' first page. */
static int onto_residents(struct paged_subject *subject)
{
    int32_t n = subject->paging->n_stretches;
    for (int32_t s = 1; s < n; s++) {
        struct weft_page_stretch before = subject->stretches[s];
        struct weft_page_stretch to = {0, before.count};
        set_stretch(subject, s, to);
        paged_refuse(subject, "share page");
        set_stretch(subject, s, before);
    }
    return n > 1;
}

Test(verify_pages, a_page_of_residents_is_nobody_elses)
{
    spoil_paged(PAGED_PROGRAMS / 2, onto_residents);
}

/* A buffer that lives past the period's end has the same pages in both tables. Its last use is not
 * over when the next one begins. */
static int one_table_for_two(struct paged_subject *subject)
{
    const struct weft_program *program = subject->program;
    for (int32_t b = 0; b < program->n_buffers; b++) {
        struct weft_life life = program->buffers[b].lives[0];
        struct weft_page_range *range = &subject->ranges[subject->paging->places[b].range];
        bool two = range->offsets[0] != range->offsets[1];
        if (!two || life.first <= life.last || program->buffers[b].n_pieces > 1) continue;
        for (int32_t other = 0; other < program->n_buffers; other++) {
            struct weft_life its = program->buffers[other].lives[0];
            struct weft_page_range *from = &subject->ranges[subject->paging->places[other].range];
            if (other == b || from == range || from->offsets[0] == from->offsets[1] ||
                its.first <= its.last || program->buffers[other].n_pieces > 1)
                continue;
            int32_t s = range->first_stretch[1];
            struct weft_page_stretch before = subject->stretches[s];
            struct weft_page_stretch to = {subject->stretches[from->first_stretch[0]].first, 1};
            if (before.count != 1) continue;
            set_stretch(subject, s, to); /* across tables and the period's end */
            paged_refuse(subject, "share page");
            set_stretch(subject, s, before);
            return 1;
        }
    }
    return 0;
}

Test(verify_pages, a_page_of_the_other_table_is_still_in_use_behind_the_end)
{
    spoil_paged(1, one_table_for_two);
}

/* Two of one table that live in the same slot. */
static int onto_a_neighbour(struct paged_subject *subject)
{
    const struct weft_program *program = subject->program;
    int spoilt = 0;
    for (int32_t l = 1; l < subject->random.config->model->n_layers; l++) {
        int32_t a = weft_program_buffer(program, WEFT_BUFFER_OUTPUT, l - 1, 0);
        int32_t b = weft_program_buffer(program, WEFT_BUFFER_SAVED, l, 0);
        if (a < 0 || b < 0 || subject->paging->places[a].range == subject->paging->places[b].range)
            continue;
        for (int32_t t = 0; t < subject->paging->n_tables; t++) {
            int32_t s = subject->ranges[subject->paging->places[b].range].first_stretch[t];
            int32_t from = subject->ranges[subject->paging->places[a].range].first_stretch[t];
            struct weft_page_stretch before = subject->stretches[s];
            int32_t first = subject->stretches[from].first;
            if (first + before.count > subject->paging->n_pages) continue;
            set_stretch(subject, s, (struct weft_page_stretch){first, before.count});
            paged_refuse(subject, "share page");
            set_stretch(subject, s, before);
            spoilt = 1;
        }
    }
    return spoilt;
}

Test(verify_pages, neighbours_in_time_on_one_page)
{
    spoil_paged(PAGED_PROGRAMS / 4, onto_a_neighbour);
}

/* Two stretches of one range on the same pages. */
static int onto_itself(struct paged_subject *subject)
{
    for (int32_t r = 0; r < subject->paging->n_ranges; r++) {
        int32_t s = subject->ranges[r].first_stretch[0];
        if (subject->ranges[r].n_stretches[0] < 2) continue;
        struct weft_page_stretch before = subject->stretches[s + 1];
        struct weft_page_stretch to = {subject->stretches[s].first, before.count};
        if (to.first + to.count > subject->paging->n_pages) continue;
        set_stretch(subject, s + 1, to);
        paged_refuse(subject, "share page");
        set_stretch(subject, s + 1, before);
        return 1;
    }
    return 0;
}

Test(verify_pages, a_range_is_not_twice_on_one_page)
{
    spoil_paged(PAGED_PROGRAMS / 8, onto_itself);
}

static int out_of_the_file(struct paged_subject *subject)
{
    int32_t s = subject->paging->n_stretches - 1;
    struct weft_page_stretch before = subject->stretches[s];
    set_stretch(
        subject, s,
        (struct weft_page_stretch){subject->paging->n_pages - before.count + 1, before.count});
    paged_refuse(subject, "outside the arena");
    set_stretch(subject, s, (struct weft_page_stretch){-1, before.count});
    paged_refuse(subject, "outside the arena");
    set_stretch(subject, s, before);
    return 1;
}

Test(verify_pages, a_stretch_outside_the_file)
{
    spoil_paged(PAGED_PROGRAMS, out_of_the_file);
}

static int cover_twice_or_not(struct paged_subject *subject)
{
    int32_t last = subject->paging->n_mappings - 1;
    subject->paging->n_mappings--;
    paged_refuse(subject, "is not mapped once");
    subject->paging->n_mappings++;
    subject->mappings[last].at -= subject->paging->page_bytes;
    paged_refuse(subject, "is not mapped once");
    subject->mappings[last].at += subject->paging->page_bytes;
    struct weft_page_range *range = &subject->ranges[subject->paging->n_ranges - 1];
    range->n_pages++;
    subject->paging->span_bytes += subject->paging->page_bytes;
    paged_refuse(subject, range->offsets[0] == range->offsets[1] ? "all of its pages" : "range");
    subject->paging->span_bytes -= subject->paging->page_bytes;
    range->n_pages--;
    return 1;
}

Test(verify_pages, a_range_covered_twice_or_not_at_all)
{
    spoil_paged(PAGED_PROGRAMS, cover_twice_or_not);
}

static int wrong_page_size(struct paged_subject *subject)
{
    static const int64_t sizes[] = {0, 2048, 4097, 8192, 4 << 20};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        int64_t before = subject->paging->page_bytes;
        subject->paging->page_bytes = sizes[i];
        paged_refuse(subject, "are no arena of");
        subject->program->arena_bytes = subject->paging->n_pages * sizes[i];
        paged_refuse(subject, sizes[i] == 8192 ? "range" : "out of range");
        subject->paging->page_bytes = before;
        subject->program->arena_bytes = subject->paging->n_pages * before;
    }
    return 1;
}

Test(verify_pages, another_page_size)
{
    spoil_paged(PAGED_PROGRAMS, wrong_page_size);
}

static int a_table_too_few(struct paged_subject *subject)
{
    if (subject->paging->n_tables == 1) return 0;
    subject->paging->n_tables = 1;
    paged_refuse(subject, "has two tables where there is one");
    subject->paging->n_tables = 2;
    return 1;
}

Test(verify_pages, a_table_too_few)
{
    spoil_paged(1, a_table_too_few);
}

static int another_period(struct paged_subject *subject)
{
    struct weft_program *program = subject->program;
    const struct weft_instruction *last = &program->instructions[program->n_instructions - 1];
    bool crossed = false;
    for (int32_t o = 0; o < last->first_operand + last->n_operands; o++) {
        crossed |= program->operands[o].began_before;
        program->operands[o].began_before ^= 1;
        paged_refuse(subject, "another period");
        program->operands[o].began_before ^= 1;
    }
    return crossed;
}

Test(verify_pages, what_began_in_another_period)
{
    spoil_paged(PAGED_PROGRAMS / 2, another_period);
}

/* Buffers that share a range, one on the other; and one that leaves its range. */
static int move_in_range(struct paged_subject *subject)
{
    struct weft_page_place *places = (struct weft_page_place *)subject->paging->places;
    for (int32_t b = 1; b < subject->program->n_buffers; b++) {
        if (places[b].range != places[0].range) continue;
        struct weft_page_place before = places[b];
        places[b] = places[0];
        paged_refuse(subject, "lies on another");
        places[b] = before;
        places[b].offsets[0] += 256;
        paged_refuse(subject, "lies");
        places[b] = before;
        return 1;
    }
    return 0;
}

Test(verify_pages, buffers_lie_apart_in_their_range)
{
    spoil_paged(PAGED_PROGRAMS / 2, move_in_range);
}
