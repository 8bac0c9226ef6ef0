/* SPDX-License-Identifier: Apache-2.0 */
#include "report/page/spans.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "program/op.h"
#include "program/trace.h"

enum kind_of_work {
    KIND_FORWARD,
    KIND_BACKWARD,
    KIND_UPDATE,
    KIND_OTHER,
    KIND_GATHER,
    KIND_REDUCE,
    KIND_DOWN,
    KIND_UP,
    KIND_HOST,
    KIND_AGREE,
    KIND_EXPOSED,
    N_KINDS
};

static const struct weft_span_kind kinds[N_KINDS] = {
    [KIND_FORWARD] = {"forward", WEFT_HUE_BLUE, false},
    [KIND_BACKWARD] = {"backward", WEFT_HUE_PURPLE, false},
    [KIND_UPDATE] = {"update", WEFT_HUE_GREEN, false},
    [KIND_OTHER] = {"other compute", WEFT_HUE_SLATE, false},
    [KIND_GATHER] = {"gather", WEFT_HUE_ORANGE, false},
    [KIND_REDUCE] = {"reduce", WEFT_HUE_ROSE, false},
    [KIND_DOWN] = {"copy down", WEFT_HUE_TEAL, false},
    [KIND_UP] = {"copy up", WEFT_HUE_AMBER, false},
    [KIND_HOST] = {"update on the host", WEFT_HUE_MAGENTA, false},
    [KIND_AGREE] = {"agree", WEFT_HUE_BROWN, false},
    [KIND_EXPOSED] = {"compute waits", WEFT_HUE_SLATE, true},
};

static enum kind_of_work kind_of_item(int32_t kind)
{
    const struct weft_item_kind *of = &weft_item_kinds[kind];
    if (kind == WEFT_HOST_UPDATE) return KIND_HOST;
    if (weft_item_kind_collective(kind) == WEFT_ALL_GATHER) return KIND_GATHER;
    if (of->family == WEFT_ITEM_COLLECTIVE || of->family == WEFT_ITEM_AVERAGE) return KIND_REDUCE;
    return of->role == WEFT_ROLE_DOWN || of->role == WEFT_ROLE_WRITES ? KIND_DOWN : KIND_UP;
}

static enum kind_of_work kind_of_slot(enum weft_slot_kind kind)
{
    if (kind == WEFT_SLOT_FORWARD) return KIND_FORWARD;
    if (kind == WEFT_SLOT_BACKWARD) return KIND_BACKWARD;
    return kind == WEFT_SLOT_UPDATE ? KIND_UPDATE : KIND_OTHER;
}

static enum kind_of_work kind_of_op(const char *op)
{
    static const struct {
        const char *op;
        enum kind_of_work kind;
    } compute[] = {{"forward", KIND_FORWARD}, {"backward", KIND_BACKWARD}, {"update", KIND_UPDATE},
                   {"moments", KIND_UPDATE},  {"exposed", KIND_EXPOSED},   {"agree", KIND_AGREE}};
    for (size_t i = 0; i < sizeof compute / sizeof *compute; i++)
        if (strcmp(op, compute[i].op) == 0) return compute[i].kind;
    for (int32_t k = 0; k < WEFT_ITEM_KIND_COUNT; k++)
        if (strcmp(op, weft_item_kinds[k].op_name) == 0) return kind_of_item(k);
    return KIND_OTHER;
}

static struct weft_spans *make_spans(struct weft_page *page, int32_t n_lanes, int64_t most)
{
    struct weft_spans *spans = weft_page_array(page, 1, sizeof *spans);
    if (spans == NULL) return NULL;
    spans->n_lanes = n_lanes;
    spans->lanes = weft_page_array(page, n_lanes, sizeof *spans->lanes);
    spans->n = weft_page_array(page, n_lanes, sizeof *spans->n);
    spans->spans = weft_page_array(page, n_lanes, sizeof *spans->spans);
    if (spans->lanes == NULL || spans->n == NULL || spans->spans == NULL) return NULL;
    for (int32_t lane = 0; lane < n_lanes; lane++) {
        spans->spans[lane] = weft_page_array(page, most, sizeof **spans->spans);
        if (spans->spans[lane] == NULL) return NULL;
    }
    return spans;
}

static void add_span(struct weft_spans *spans, int32_t lane, enum kind_of_work kind,
                     const char *name, int64_t from_ns, int64_t to_ns)
{
    if (to_ns <= from_ns) return;
    spans->spans[lane][spans->n[lane]++] =
        (struct weft_lane_span){(double)from_ns, (double)to_ns, &kinds[kind], name};
}

/* The layer or unit of "F2:h.3". */
static const char *name_slot(const char *slot)
{
    const char *colon = strchr(slot, ':');
    return colon != NULL ? colon + 1 : slot;
}

static void add_compute(struct weft_spans *spans, const struct weft_plan *plan,
                        const struct weft_plan_spans *times, int64_t agree_ns)
{
    int64_t end_ns = 0;
    for (int32_t s = 0; s < plan->problem->n_slots; s++) {
        const char *name = name_slot(plan->problem->slot_names[s]);
        add_span(spans, WEFT_LANE_COMPUTE, KIND_EXPOSED, "", end_ns, times->work_start_ns[s]);
        add_span(spans, WEFT_LANE_COMPUTE, kind_of_slot(plan->problem->slots[s].kind), name,
                 times->work_start_ns[s], times->work_end_ns[s]);
        end_ns = times->work_end_ns[s];
    }
    const int64_t step_ns = plan->prediction.step_ns;
    add_span(spans, WEFT_LANE_COMPUTE, KIND_EXPOSED, "", end_ns, step_ns);
    if (!plan->problem->period.agreed_updates)
        add_span(spans, weft_problem_agree_lane(plan->problem), KIND_AGREE, "", step_ns - agree_ns,
                 step_ns);
}

const struct weft_spans *weft_spans_of_plan(struct weft_page *page, const struct weft_plan *plan)
{
    const struct weft_problem *problem = plan->problem;
    const int64_t n_slots = problem->n_slots, n = plan->n_placements;
    struct weft_spans *spans = make_spans(page, problem->n_lanes, 2 * n_slots + n + 2);
    int64_t *words = weft_page_array(page, 3 * n_slots + 2 * n, sizeof *words);
    int64_t *scratch =
        weft_page_array(page, (int64_t)weft_simulate_words(problem), sizeof *scratch);
    if (spans == NULL || words == NULL || scratch == NULL) return NULL;
    struct weft_plan_spans times = {
        .times = {.slot_start_ns = words,
                  .start_ns = words + n_slots,
                  .end_ns = words + n_slots + n},
        .work_start_ns = words + n_slots + 2 * n,
        .work_end_ns = words + 2 * n_slots + 2 * n,
    };
    weft_simulate_plan_spans(plan, scratch, &times);
    for (int32_t lane = 0; lane < problem->n_lanes; lane++)
        spans->lanes[lane] = problem->lanes[lane].name;
    for (int32_t i = 0; i < n; i++) {
        const struct weft_problem_item *item = &problem->items[plan->placements[i].item];
        add_span(spans, item->lane, kind_of_item(item->item.kind),
                 problem->decisions[item->item.decision].name, times.times.start_ns[i],
                 times.times.end_ns[i]);
    }
    add_compute(spans, plan, &times, weft_problem_agreements_ns(problem));
    spans->step_ns = (double)plan->prediction.step_ns;
    spans->n_slots = problem->n_slots;
    spans->slot_ns = times.times.slot_start_ns;
    return spans;
}

/* The unit of "h.3 block 2", the layer of "F:h.3". */
static const char *name_event(struct weft_page *page, const struct weft_record_event *event)
{
    const char *block = strstr(event->name, " block ");
    if (block != NULL)
        return weft_page_format(page, "%.*s", (int)(block - event->name), event->name);
    return event->lane == WEFT_LANE_COMPUTE ? name_slot(event->name) : event->name;
}

const struct weft_spans *weft_spans_of_trace(struct weft_page *page,
                                             const struct weft_record_trace *trace)
{
    struct weft_spans *spans = make_spans(page, trace->n_lanes, trace->n_events);
    if (spans == NULL) return NULL;
    for (int32_t lane = 0; lane < trace->n_lanes; lane++)
        spans->lanes[lane] = trace->lanes[lane];
    for (int32_t i = 0; i < trace->n_events; i++) {
        const struct weft_record_event *event = &trace->events[i];
        add_span(spans, event->lane, kind_of_op(event->op),
                 event->exposed ? "" : name_event(page, event), event->from_ns, event->to_ns);
    }
    spans->step_ns = (double)trace->step_ns;
    return spans;
}

/* Pairs */

static int compare_names(const void *left, const void *right)
{
    const struct weft_span_pair *a = left, *b = right;
    if (a->kind != b->kind) return a->kind < b->kind ? -1 : 1;
    return strcmp(a->name, b->name);
}

static int compare_differences(const void *left, const void *right)
{
    const struct weft_span_pair *a = left, *b = right;
    const double x = fabs(a->right - a->left), y = fabs(b->right - b->left);
    if (x != y) return x > y ? -1 : 1;
    return compare_names(left, right);
}

static int32_t count_spans(const struct weft_spans *spans)
{
    int32_t n = 0;
    for (int32_t lane = 0; lane < spans->n_lanes; lane++)
        n += spans->n[lane];
    return n;
}

static int32_t put_pairs(const struct weft_spans *spans, bool is_right, bool named,
                         struct weft_span_pair *pairs)
{
    int32_t n = 0;
    for (int32_t lane = 0; lane < spans->n_lanes; lane++) {
        for (int32_t i = 0; i < spans->n[lane]; i++) {
            const struct weft_lane_span *span = &spans->spans[lane][i];
            const double ns = span->to_ns - span->from_ns;
            if (named && span->kind->hatched) continue;
            pairs[n++] = (struct weft_span_pair){.kind = span->kind,
                                                 .name = named ? span->name : "",
                                                 .left = is_right ? 0 : ns,
                                                 .right = is_right ? ns : 0,
                                                 .n_left = !is_right,
                                                 .n_right = is_right};
        }
    }
    return n;
}

static int32_t make_pairs(struct weft_page *page, const struct weft_spans *left,
                          const struct weft_spans *right, bool named, struct weft_span_pair **out)
{
    int32_t n = 0, n_pairs = 0;
    struct weft_span_pair *pairs =
        weft_page_array(page, (int64_t)count_spans(left) + count_spans(right), sizeof *pairs);
    *out = pairs;
    if (pairs == NULL) return 0;
    n = put_pairs(left, false, named, pairs);
    n += put_pairs(right, true, named, pairs + n);
    qsort(pairs, (size_t)n, sizeof *pairs, compare_names);
    for (int32_t i = 0; i < n; i++) {
        struct weft_span_pair *last = n_pairs > 0 ? &pairs[n_pairs - 1] : NULL;
        if (last == NULL || compare_names(last, &pairs[i]) != 0) {
            pairs[n_pairs++] = pairs[i];
            continue;
        }
        last->left += pairs[i].left;
        last->right += pairs[i].right;
        last->n_left += pairs[i].n_left;
        last->n_right += pairs[i].n_right;
    }
    return n_pairs;
}

int32_t weft_spans_by_kind(struct weft_page *page, const struct weft_spans *left,
                           const struct weft_spans *right, struct weft_span_pair **out)
{
    return make_pairs(page, left, right, false, out);
}

int32_t weft_spans_by_name(struct weft_page *page, const struct weft_spans *left,
                           const struct weft_spans *right, struct weft_span_pair **out)
{
    const int32_t n = make_pairs(page, left, right, true, out);
    if (n > 0) qsort(*out, (size_t)n, sizeof **out, compare_differences);
    return n;
}
