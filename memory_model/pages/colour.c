/* SPDX-License-Identifier: Apache-2.0 */
#include "memory_model/pages/colour.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { WORK_UNITS_ARC = 20, WORK_UNITS_STRETCH = 3 };

/* Arcs of all walks, about, after which no other seam is tried. A step of many micro-steps and
 * layers has thousands of seams and of arcs, and seams of little load come first. */
enum { MOST_ARCS = 4000000 };

/* Free pages that are due in one slot, by number; no two stretches adjoin. */
struct free_list {
    struct weft_page_stretch *stretches;
    int32_t n, room;
};

/* Pages of an arc, and the slot in which they are due. */
struct turn {
    struct weft_page_grant grant;
    int32_t due;
    int32_t next; /* next turn that ends in the same slot, or -1 */
};

/* One walk around the circle, from the seam on; slots count from there. Pages of an arc that
 * crosses the seam are due when that arc is born again. Others are due at n_slots, that is, never.
 */
struct walk {
    const struct weft_circle *circle;
    const int32_t *births; /* arcs by first slot; of equal ones the longest first */
    int32_t seam;
    struct free_list *free; /* by due slot */
    uint64_t *any_free;     /* one bit a slot: its list is not empty */
    int32_t *ends;          /* by slot: the first turn that ends before it, or -1 */
    struct turn *turns;
    int32_t n_turns, room;
    int32_t n_pages;
    int64_t looked_at; /* stretches */
};

static int32_t slot_from_seam(const struct walk *walk, int32_t slot)
{
    int32_t after = slot - walk->seam;
    return after < 0 ? after + walk->circle->n_slots : after;
}

static bool grow_array(void **array, int32_t n, int32_t *room, size_t size)
{
    if (n < *room) return true;
    if (*room > INT32_MAX / 2) return false;
    int32_t more = *room == 0 ? 16 : 2 * *room;
    void *grown = realloc(*array, (size_t)more * size);
    if (grown == NULL) return false;
    *array = grown;
    *room = more;
    return true;
}

static bool insert_stretch(struct free_list *list, int32_t at, struct weft_page_stretch stretch)
{
    void *stretches = list->stretches;
    if (!grow_array(&stretches, list->n, &list->room, sizeof *list->stretches)) return false;
    list->stretches = stretches;
    memmove(&list->stretches[at + 1], &list->stretches[at],
            (size_t)(list->n - at) * sizeof *list->stretches);
    list->stretches[at] = stretch;
    list->n++;
    return true;
}

static void remove_stretch(struct free_list *list, int32_t at)
{
    list->n--;
    memmove(&list->stretches[at], &list->stretches[at + 1],
            (size_t)(list->n - at) * sizeof *list->stretches);
}

/* Frees pages that are due in slot `due`. False without memory. */
static bool release_pages(struct walk *walk, struct weft_page_stretch stretch, int32_t due)
{
    struct free_list *list = &walk->free[due];
    int32_t low = 0, high = list->n;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (list->stretches[middle].first < stretch.first) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    walk->any_free[due / 64] |= UINT64_C(1) << due % 64;
    struct weft_page_stretch *before = low > 0 ? &list->stretches[low - 1] : NULL;
    struct weft_page_stretch *behind = low < list->n ? &list->stretches[low] : NULL;
    bool joins_before = before != NULL && before->first + before->count == stretch.first;
    bool joins_behind = behind != NULL && stretch.first + stretch.count == behind->first;
    if (joins_before) {
        before->count += stretch.count + (joins_behind ? behind->count : 0);
        if (joins_behind) remove_stretch(list, low);
        return true;
    }
    if (!joins_behind) return insert_stretch(list, low, stretch);
    behind->first = stretch.first;
    behind->count += stretch.count;
    return true;
}

/* Gives an arc pages until slot `end`, which may be past the walk's end. False without memory. */
static bool give_pages(struct walk *walk, int32_t arc, struct weft_page_stretch pages, int32_t due,
                       int32_t end)
{
    void *turns = walk->turns;
    if (!grow_array(&turns, walk->n_turns, &walk->room, sizeof *walk->turns)) return false;
    walk->turns = turns;
    struct turn *turn = &walk->turns[walk->n_turns];
    *turn = (struct turn){{arc, pages}, due, -1};
    if (end < walk->circle->n_slots) {
        turn->next = walk->ends[end];
        walk->ends[end] = walk->n_turns;
    }
    walk->n_turns++;
    return true;
}

static struct weft_page_stretch new_pages(struct walk *walk, int32_t n_pages)
{
    struct weft_page_stretch pages = {walk->n_pages, n_pages};
    walk->n_pages += n_pages;
    return pages;
}

/* The first slot from `slot` on with free pages that are due in it; -1: none. */
static int32_t next_due(const struct walk *walk, int32_t slot)
{
    int32_t n_words = walk->circle->n_slots / 64 + 1;
    uint64_t word = walk->any_free[slot / 64] & (UINT64_MAX << slot % 64);
    for (int32_t w = slot / 64;;) {
        if (word != 0) {
            int32_t bit = 0;
            for (int32_t half = 32; half > 0; half /= 2)
                if (word << (64 - half - bit) == 0) bit += half;
            return w * 64 + bit;
        }
        if (++w == n_words) return -1;
        word = walk->any_free[w];
    }
}

/* The smallest stretch with at least n_pages; without one, the largest. */
static int32_t fitting_stretch(const struct free_list *list, int32_t n_pages)
{
    int32_t best = 0;
    for (int32_t i = 1; i < list->n; i++) {
        int32_t count = list->stretches[i].count, best_count = list->stretches[best].count;
        bool fits = count >= n_pages;
        if (best_count >= n_pages ? fits && count < best_count : count > best_count) best = i;
    }
    return best;
}

/* Gives pages to an arc born now that dies before `end`. False without memory. */
static bool bear_arc(struct walk *walk, int32_t arc, int32_t end)
{
    int32_t wanted = walk->circle->arcs[arc].n_pages;
    while (wanted > 0) {
        int32_t due = next_due(walk, end);
        if (due < 0) {
            return give_pages(walk, arc, new_pages(walk, wanted), walk->circle->n_slots, end);
        }
        struct free_list *list = &walk->free[due];
        int32_t at = fitting_stretch(list, wanted);
        struct weft_page_stretch *found = &list->stretches[at];
        walk->looked_at += list->n;
        struct weft_page_stretch taken = *found;
        if (taken.count > wanted) taken.count = wanted;
        found->first += taken.count;
        found->count -= taken.count;
        if (found->count == 0) remove_stretch(list, at);
        if (list->n == 0) walk->any_free[due / 64] &= ~(UINT64_C(1) << due % 64);
        if (!give_pages(walk, arc, taken, due, end)) return false;
        wanted -= taken.count;
    }
    return true;
}

/* True for an arc that is alive on both sides of the seam. */
static bool crosses_seam(const struct walk *walk, const struct weft_page_arc *arc)
{
    return slot_from_seam(walk, arc->first) + arc->length > walk->circle->n_slots ||
           arc->length == walk->circle->n_slots;
}

/* Starts a walk: gives pages to the arcs alive at the seam. False without memory. */
static bool begin_walk(struct walk *walk, int32_t seam)
{
    const struct weft_circle *circle = walk->circle;
    walk->seam = seam;
    walk->n_pages = walk->n_turns = 0;
    for (int32_t s = 0; s <= circle->n_slots; s++) {
        walk->free[s].n = 0;
        walk->ends[s] = -1;
    }
    memset(walk->any_free, 0, ((size_t)circle->n_slots / 64 + 1) * sizeof *walk->any_free);
    for (int32_t a = 0; a < circle->n_arcs; a++) {
        const struct weft_page_arc *arc = &circle->arcs[a];
        if (!crosses_seam(walk, arc)) continue;
        int32_t born = slot_from_seam(walk, arc->first);
        bool dies = arc->length < circle->n_slots;
        int32_t end = dies ? born + arc->length - circle->n_slots : circle->n_slots;
        if (!give_pages(walk, a, new_pages(walk, arc->n_pages), born, end)) return false;
    }
    return true;
}

/* Frees the pages of turns that end, and removes pages that are due, since their arc has them
 * again. False without memory. */
static bool begin_slot(struct walk *walk, int32_t slot)
{
    for (int32_t t = walk->ends[slot]; t >= 0; t = walk->turns[t].next) {
        if (!release_pages(walk, walk->turns[t].grant.pages, walk->turns[t].due)) return false;
    }
    walk->free[slot].n = 0;
    walk->any_free[slot / 64] &= ~(UINT64_C(1) << slot % 64);
    return true;
}

static enum weft_status walk_round(struct walk *walk, int32_t seam, struct weft_error *err)
{
    const struct weft_circle *circle = walk->circle;
    if (!begin_walk(walk, seam)) return weft_fail_memory(err, "paging");
    int32_t next = 0, slot = -1;
    while (next < circle->n_arcs && circle->arcs[walk->births[next]].first < seam)
        next++;
    for (int32_t i = 0; i < circle->n_arcs; i++, next++) {
        if (next == circle->n_arcs) next = 0;
        int32_t a = walk->births[next];
        const struct weft_page_arc *arc = &circle->arcs[a];
        int32_t born = slot_from_seam(walk, arc->first);
        while (slot < born) {
            if (!begin_slot(walk, ++slot)) return weft_fail_memory(err, "paging");
        }
        if (crosses_seam(walk, arc)) continue;
        if (!bear_arc(walk, a, born + arc->length)) return weft_fail_memory(err, "paging");
    }
    return WEFT_OK;
}

static int compare_grants(const void *a, const void *b)
{
    const struct weft_page_grant *x = a, *y = b;
    if (x->arc != y->arc) return (x->arc > y->arc) - (x->arc < y->arc);
    return (x->pages.first > y->pages.first) - (x->pages.first < y->pages.first);
}

static enum weft_status keep_walk(const struct walk *walk, struct weft_colouring *out,
                                  struct weft_error *err)
{
    struct weft_page_grant *grants = calloc((size_t)walk->n_turns + 1, sizeof *grants);
    if (grants == NULL) return weft_fail_memory(err, "paging");
    for (int32_t t = 0; t < walk->n_turns; t++)
        grants[t] = walk->turns[t].grant;
    qsort(grants, (size_t)walk->n_turns, sizeof *grants, compare_grants);
    int32_t n = 0;
    for (int32_t t = 0; t < walk->n_turns; t++) {
        struct weft_page_grant *before = n > 0 ? &grants[n - 1] : NULL;
        if (before != NULL && before->arc == grants[t].arc &&
            before->pages.first + before->pages.count == grants[t].pages.first) {
            before->pages.count += grants[t].pages.count;
        } else {
            grants[n++] = grants[t];
        }
    }
    weft_colouring_finish(out);
    *out = (struct weft_colouring){walk->n_pages, grants, n};
    return WEFT_OK;
}

/* Pages alive in each slot, and those of them alive in the slot before. */
struct loads {
    int64_t *alive, *crossing;
};

static void find_loads(const struct weft_circle *circle, struct loads *loads)
{
    int64_t load = 0;
    for (int32_t a = 0; a < circle->n_arcs; a++) {
        const struct weft_page_arc *arc = &circle->arcs[a];
        int64_t end = (int64_t)arc->first + arc->length;
        loads->alive[arc->first] += arc->n_pages;
        if (arc->length < circle->n_slots) loads->crossing[arc->first] -= arc->n_pages;
        if (end > circle->n_slots) {
            load += arc->n_pages;
            end -= circle->n_slots;
        }
        if (end < circle->n_slots) loads->alive[end] -= arc->n_pages;
    }
    for (int32_t s = 0; s < circle->n_slots; s++) {
        load += loads->alive[s];
        loads->alive[s] = load;
        loads->crossing[s] += load;
    }
}

static enum weft_status create_loads(const struct weft_circle *circle, struct loads *loads,
                                     struct weft_error *err)
{
    size_t n = (size_t)circle->n_slots + 1;
    *loads = (struct loads){calloc(n, sizeof(int64_t)), calloc(n, sizeof(int64_t))};
    if (loads->alive == NULL || loads->crossing == NULL) return weft_fail_memory(err, "paging");
    find_loads(circle, loads);
    return WEFT_OK;
}

static void destroy_loads(struct loads *loads)
{
    free(loads->alive);
    free(loads->crossing);
}

enum weft_status weft_circle_row(const struct weft_circle *circle, int32_t *row,
                                 struct weft_error *err)
{
    struct loads loads;
    enum weft_status status = create_loads(circle, &loads, err);
    int64_t most = 0;
    for (int32_t s = 0; status == WEFT_OK && s < circle->n_slots; s++)
        if (loads.alive[s] > most) most = loads.alive[s];
    *row = most > INT32_MAX ? -1 : (int32_t)most;
    destroy_loads(&loads);
    return status;
}

/* A key for qsort, because it passes no other argument. */
struct birth {
    int32_t arc, first, length;
};

static int compare_births(const void *a, const void *b)
{
    const struct birth *x = a, *y = b;
    if (x->first != y->first) return (x->first > y->first) - (x->first < y->first);
    if (x->length != y->length) return (x->length < y->length) - (x->length > y->length);
    return (x->arc > y->arc) - (x->arc < y->arc);
}

struct seam {
    int64_t crossing;
    int32_t slot;
};

static int compare_seams(const void *a, const void *b)
{
    const struct seam *x = a, *y = b;
    if (x->crossing != y->crossing)
        return (x->crossing > y->crossing) - (x->crossing < y->crossing);
    return (x->slot > y->slot) - (x->slot < y->slot);
}

static enum weft_status list_births(const struct weft_circle *circle, int32_t **out,
                                    struct weft_error *err)
{
    size_t n = (size_t)circle->n_arcs;
    struct birth *births = calloc(n + 1, sizeof *births);
    *out = calloc(n + 1, sizeof **out);
    if (births == NULL || *out == NULL) {
        free(births);
        return weft_fail_memory(err, "paging");
    }
    for (int32_t a = 0; a < circle->n_arcs; a++)
        births[a] = (struct birth){a, circle->arcs[a].first, circle->arcs[a].length};
    qsort(births, n, sizeof *births, compare_births);
    for (size_t a = 0; a < n; a++)
        (*out)[a] = births[a].arc;
    free(births);
    return WEFT_OK;
}

/* Lists the slots that may be the seam, the least load first. */
static enum weft_status list_seams(const struct weft_circle *circle, struct seam **out,
                                   struct weft_error *err)
{
    struct loads loads;
    enum weft_status status;
    *out = calloc((size_t)circle->n_seams + 1, sizeof **out);
    WEFT_TRY_GOTO(done, create_loads(circle, &loads, err));
    if (*out == NULL) {
        status = weft_fail_memory(err, "paging");
        goto done;
    }
    for (int32_t s = 0; s < circle->n_seams; s++)
        (*out)[s] = (struct seam){loads.crossing[s], s};
    qsort(*out, (size_t)circle->n_seams, sizeof **out, compare_seams);
done:
    destroy_loads(&loads);
    return status;
}

static enum weft_status walk_all(struct walk *walk, const struct seam *seams, int32_t least,
                                 struct weft_work *work, struct weft_colouring *out,
                                 struct weft_error *err)
{
    const struct weft_circle *circle = walk->circle;
    const int64_t most = MOST_ARCS / (circle->n_arcs + 1) + 1;
    for (int32_t s = 0; s < circle->n_seams && s < most; s++) {
        WEFT_TRY(walk_round(walk, seams[s].slot, err));
        weft_work_spend(work, (int64_t)(circle->n_arcs + walk->n_turns) * WORK_UNITS_ARC +
                                  walk->looked_at * WORK_UNITS_STRETCH);
        walk->looked_at = 0;
        if (s == 0 || walk->n_pages < out->n_pages) WEFT_TRY(keep_walk(walk, out, err));
        if (out->n_pages <= least || weft_work_is_late(work)) break;
    }
    return WEFT_OK;
}

enum weft_status weft_colour(const struct weft_circle *circle, int32_t least,
                             struct weft_work *work, struct weft_colouring *out,
                             struct weft_error *err)
{
    enum weft_status status;
    size_t n_slots = (size_t)circle->n_slots;
    int32_t *births = NULL;
    struct seam *seams = NULL;
    struct walk walk = {
        .circle = circle,
        .free = calloc(n_slots + 1, sizeof *walk.free),
        .any_free = calloc(n_slots / 64 + 1, sizeof *walk.any_free),
        .ends = calloc(n_slots + 1, sizeof *walk.ends),
    };
    *out = (struct weft_colouring){0};
    if (walk.free == NULL || walk.any_free == NULL || walk.ends == NULL) {
        status = weft_fail_memory(err, "paging");
        goto done;
    }
    WEFT_TRY_GOTO(done, list_births(circle, &births, err));
    WEFT_TRY_GOTO(done, list_seams(circle, &seams, err));
    walk.births = births;
    status = walk_all(&walk, seams, least, work, out, err);
done:
    if (status != WEFT_OK) weft_colouring_finish(out);
    for (size_t s = 0; walk.free != NULL && s <= n_slots; s++)
        free(walk.free[s].stretches);
    free(walk.free);
    free(walk.any_free);
    free(walk.ends);
    free(walk.turns);
    free(births);
    free(seams);
    return status;
}

void weft_colouring_finish(struct weft_colouring *colouring)
{
    free(colouring->grants);
    *colouring = (struct weft_colouring){0};
}
