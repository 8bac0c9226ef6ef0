/* SPDX-License-Identifier: Apache-2.0 */
#include "proof/box.h"

#include <criterion/criterion.h>

#include "tests/problem/small_problem.h"

static struct weft_box *box_of(const struct weft_problem *problem, uint32_t a, uint32_t b)
{
    struct weft_box *box = NULL;
    uint64_t allowed[2] = {a, b};
    cr_assert_eq(weft_box_create(problem, &box, NULL), WEFT_OK);
    weft_box_restrict(box, &(struct weft_facts){.allowed = allowed});
    return box;
}

static void say(struct weft_box *box, uint32_t a, uint32_t b, int32_t n,
                const struct weft_milestone *milestones)
{
    uint64_t allowed[2] = {a, b};
    for (int32_t k = 0; k < n; k++)
        cr_assert(weft_milestone_is_of(&milestones[k], box->problem));
    weft_box_restrict(
        box, &(struct weft_facts){.allowed = allowed, .milestones = milestones, .n_milestones = n});
}

static void check_spans(const struct weft_box *box, int32_t item, int32_t n,
                        const struct weft_span *want)
{
    const struct weft_span *spans = box->spans + box->span_start[item];
    cr_assert_eq(box->n_spans[item], n, "item %d has %d", item, box->n_spans[item]);
    for (int32_t k = 0; k < n; k++) {
        cr_assert(spans[k].n_blocks == want[k].n_blocks && spans[k].first == want[k].first &&
                      spans[k].last == want[k].last && spans[k].hold == want[k].hold,
                  "span %d of item %d: %d blocks, %d to %d, held at %d", k, item, spans[k].n_blocks,
                  spans[k].first, spans[k].last, spans[k].hold);
    }
}

/* With sdp for both units, wherever the blocks are, slots hold 1200, 1100, 1000, 1200, 1400, 1600,
 * 1700, 1400 and 1200 bytes. */
Test(box, without_a_limit_windows_are_whole)
{
    struct weft_problem problem = small_problem();
    struct weft_box *box = box_of(&problem, SDP | DP, SDP);
    cr_assert(!box->empty);
    cr_assert_eq(box->allowed[0], SDP | DP);
    check_spans(box, A_GATHER, 1, &(struct weft_span){2, 1, 2, 3});
    check_spans(box, B_REDUCE, 1, &(struct weft_span){2, 6, 7, 6});
    check_spans(box, A_ALL_REDUCE, 1, &(struct weft_span){2, 7, 7, 7});
    check_spans(box, B_ALL_REDUCE, 0, NULL);
    weft_box_destroy(box);
}

Test(box, what_cannot_fit_is_ruled_out)
{
    struct weft_problem problem = small_problem();
    problem.tiers[0].limit_bytes = 1700;
    struct weft_box *box = box_of(&problem, SDP | DP, SDP);
    cr_assert_eq(box->allowed[0], SDP | DP);
    weft_box_destroy(box);
    problem.tiers[0].limit_bytes = 1699;
    box = box_of(&problem, SDP | DP, SDP);
    cr_assert(!box->empty);
    cr_assert_eq(box->allowed[0], DP, "a's sdp does not fit beside b's");
    cr_assert_eq(box->n_spans[A_GATHER], 0);
    weft_box_destroy(box);
    box = box_of(&problem, SDP | DP, SDP | DP);
    cr_assert_eq(box->allowed[0], SDP | DP, "but beside b's dp it does");
    weft_box_destroy(box);
    box = box_of(&problem, SDP, SDP);
    cr_assert(box->empty);
    weft_box_destroy(box);
}

/* Slot 3 (500 left) has room for one block of 300 bytes and slot 2 (700) for both; a block of 600
 * has none in slot 3, and one in slot 2 does not help it. */
Test(box, gathers_are_launched_when_all_their_slots_have_room)
{
    struct weft_problem problem = small_problem();
    problem.tiers[0].limit_bytes = 1700;
    problem.items[B_GATHER].item.stair_bytes = 300;
    struct weft_box *box = box_of(&problem, SDP, SDP);
    check_spans(box, B_GATHER, 2, (struct weft_span[]){{1, 4, 3, 4}, {1, 2, 3, 4}});
    weft_box_destroy(box);
    problem.items[B_GATHER].item.stair_bytes = 600;
    box = box_of(&problem, SDP, SDP);
    check_spans(box, B_GATHER, 1, &(struct weft_span){2, 4, 3, 4});
    weft_box_destroy(box);
    problem.items[B_GATHER].item.stair_bytes = 100;
    problem.items[A_GATHER].item.stair_bytes = 350; /* 600 in slot 1, 700 in slot 2 */
    box = box_of(&problem, SDP, SDP);
    check_spans(box, A_GATHER, 2, (struct weft_span[]){{1, 2, 2, 3}, {1, 1, 2, 3}});
    weft_box_destroy(box);
}

/* Blocks of 300 make slot 6 hold 2100; in slot 7, where a's reduction of 200 a block makes it 1600,
 * one of them may still be there. */
Test(box, reductions_are_complete_before_room_ends)
{
    struct weft_problem problem = small_problem();
    problem.tiers[0].limit_bytes = 2100;
    problem.items[B_REDUCE].item.stair_bytes = 300;
    problem.items[A_REDUCE].item.stair_bytes = 200;
    struct weft_box *box = box_of(&problem, SDP, SDP);
    cr_assert(!box->empty);
    check_spans(box, B_REDUCE, 2, (struct weft_span[]){{1, 6, 6, 6}, {1, 6, 7, 6}});
    check_spans(box, A_REDUCE, 1, &(struct weft_span){2, 7, 7, 7});
    weft_box_destroy(box);
    /* With a's dp there is room for both. */
    box = box_of(&problem, DP, SDP);
    check_spans(box, B_REDUCE, 1, &(struct weft_span){2, 6, 7, 6});
    weft_box_destroy(box);
}

/* One block of a's gather is launched in slot 1, the other is not before slot 2 and may not block.
 */
Test(box, milestones_make_windows)
{
    struct weft_problem problem = small_problem();
    struct weft_box *box = box_of(&problem, SDP | DP, SDP);
    say(box, SDP | DP, SDP, 3,
        (struct weft_milestone[]){{A_GATHER, 1, 1, true, WEFT_PLACED},
                                  {A_GATHER, 2, 1, false, WEFT_PLACED},
                                  {A_GATHER, 2, 2, true, WEFT_PLACED}});
    cr_assert(!box->empty);
    cr_assert_eq(box->allowed[0], SDP, "dp gathers nothing");
    check_spans(box, A_GATHER, 2, (struct weft_span[]){{1, 2, 2, 2}, {1, 1, 2, 1}});
    say(box, SDP | DP, SDP, 1, (struct weft_milestone[]){{A_GATHER, 1, 2, false, WEFT_PLACED}});
    cr_assert_eq(box->allowed[0], SDP | DP);
    check_spans(box, A_GATHER, 1, (struct weft_span[]){{2, 3, 2, 3}});
    say(box, SDP | DP, SDP, 1, (struct weft_milestone[]){{B_REDUCE, 1, 6, true, WEFT_PLACED}});
    check_spans(box, B_REDUCE, 2, (struct weft_span[]){{1, 6, 6, 6}, {1, 6, 7, 6}});
    say(box, SDP | DP, SDP, 1, (struct weft_milestone[]){{B_REDUCE, 2, 6, false, WEFT_PLACED}});
    check_spans(box, B_REDUCE, 2, (struct weft_span[]){{1, 6, 7, 6}, {1, 6, 7, 7}});
    say(box, SDP | DP, SDP, 0, NULL);
    check_spans(box, A_GATHER, 1, &(struct weft_span){2, 1, 2, 3});
    weft_box_destroy(box);
}

Test(box, milestones_that_contradict_each_other_leave_nothing)
{
    struct weft_problem problem = small_problem();
    struct weft_box *box = box_of(&problem, SDP | DP, SDP);
    struct weft_milestone both[] = {{A_GATHER, 1, 1, true, WEFT_PLACED},
                                    {A_GATHER, 1, 2, false, WEFT_PLACED}};
    say(box, SDP | DP, SDP, 2, both);
    cr_assert(box->empty);
    both[0] = (struct weft_milestone){B_REDUCE, 2, 6, true, WEFT_PLACED};
    both[1] = (struct weft_milestone){B_REDUCE, 2, 6, false, WEFT_PLACED};
    say(box, SDP | DP, SDP, 2, both);
    cr_assert(box->empty);
    /* Fewer than one block have moved where there are none. */
    both[1] = (struct weft_milestone){A_ALL_REDUCE, 1, 7, false, WEFT_PLACED};
    cr_assert(!weft_milestone_is_of(&both[1], &problem), "its window has no slot but the last");
    both[0] = (struct weft_milestone){A_GATHER, 2, 2, true, WEFT_PLACED};
    say(box, DP, SDP, 1, both);
    cr_assert(box->empty, "dp has no gather");
    weft_box_destroy(box);
}

/* Slot 2 has 700 of 1700 bytes left. With a's blocks of 350 there, b's gather of 100 a block has
 * no room in slots 1 and 2, but has room in slot 3. */
Test(box, milestones_take_room)
{
    struct weft_problem problem = small_problem();
    problem.tiers[0].limit_bytes = 1700;
    problem.items[A_GATHER].item.stair_bytes = 350;
    struct weft_box *box = box_of(&problem, SDP, SDP);
    check_spans(box, B_GATHER, 1, &(struct weft_span){2, 2, 3, 4});
    say(box, SDP, SDP, 1, (struct weft_milestone[]){{A_GATHER, 2, 2, true, WEFT_PLACED}});
    check_spans(box, B_GATHER, 1, &(struct weft_span){2, 3, 3, 4});
    check_spans(box, A_GATHER, 2, (struct weft_span[]){{1, 2, 2, 2}, {1, 1, 2, 2}});
    say(box, SDP, SDP, 0, NULL);
    check_spans(box, B_GATHER, 1, &(struct weft_span){2, 2, 3, 4});
    weft_box_destroy(box);
}

/* At least one of two units has dp, then both, then fewer than one. */
Test(box, counts_settle_units)
{
    struct weft_problem problem = small_problem();
    struct weft_box *box = box_of(&problem, SDP | DP, SDP | DP);
    const int32_t units[2] = {0, 1};
    const struct weft_group groups[2] = {{DP, 2, units}, {SDP, 2, units}};
    cr_assert_eq(weft_box_set_groups(box, groups, 2, NULL), WEFT_OK);
    uint64_t allowed[2] = {SDP | DP, SDP | DP};
    struct weft_count counts[2] = {{0, 1, true}, {1, 2, false}};
    struct weft_facts facts = {.allowed = allowed, .counts = counts, .n_counts = 2};
    weft_box_restrict(box, &facts);
    cr_assert(!box->empty);
    cr_assert_eq(box->allowed[0], SDP | DP);
    cr_assert_eq(box->least_count[0], 1);
    cr_assert_eq(box->most_count[0], 2);
    cr_assert_eq(box->most_count[1], 1);
    allowed[0] = SDP;
    weft_box_restrict(box, &facts);
    cr_assert_eq(box->allowed[1], DP, "it has to be the one");
    allowed[0] = SDP | DP;
    counts[0].n_decisions = 2;
    weft_box_restrict(box, &facts);
    cr_assert(box->allowed[0] == DP && box->allowed[1] == DP);
    counts[0] = (struct weft_count){0, 1, false};
    facts.n_counts = 1;
    weft_box_restrict(box, &facts);
    cr_assert(box->allowed[0] == SDP && box->allowed[1] == SDP);
    facts.n_counts = 2;
    weft_box_restrict(box, &facts);
    cr_assert(box->empty, "neither has dp, and fewer than two have sdp");
    counts[1] = (struct weft_count){0, 2, true};
    weft_box_restrict(box, &facts);
    cr_assert(box->empty, "fewer than one and at least two");
    weft_box_destroy(box);
}
