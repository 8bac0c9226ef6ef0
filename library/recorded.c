/* SPDX-License-Identifier: Apache-2.0 */
#include "library/recorded.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json/json.h"
#include "base/json/json_keys.h"

/* The numbers of a line that a replay must have too. */
static const struct number {
    const char *name;
    size_t offset;
} numbers[] = {
    {"loss", offsetof(struct weft_recorded_step, loss)},
    {"norm", offsetof(struct weft_recorded_step, norm)},
    {"clip", offsetof(struct weft_recorded_step, clip)},
    {"lr", offsetof(struct weft_recorded_step, lr)},
    {"loss_scale", offsetof(struct weft_recorded_step, loss_scale)},
};
enum { N_NUMBERS = sizeof numbers / sizeof *numbers };

static double *number_of(const struct weft_recorded_step *step, int i)
{
    return (double *)((char *)step + numbers[i].offset);
}

/* A line of the file: of a step, another or torn one, or no memory for it. */
enum read_line { LINE_OF_STEP, OTHER_LINE, NO_MEMORY };

/* OTHER_LINE if the member is there and is not as metrics.c writes it. */
static enum read_line read_gradients(const struct weft_json_value *root,
                                     struct weft_group_hashes **out)
{
    const struct weft_json_value *object = weft_json_member(root, "gradients"), *item;
    struct weft_group_hashes read = {0};
    int64_t ranks = 0, n = 0;
    if (object == NULL) return LINE_OF_STEP;
    if (!weft_json_integer(weft_json_member(object, "step"), &read.step) ||
        !weft_json_integer(weft_json_member(object, "groups"), &read.n) ||
        !weft_json_integer(weft_json_member(object, "ranks"), &ranks) || read.step < 1 ||
        ranks < 1 || ranks > read.n || ranks > INT32_MAX)
        return OTHER_LINE;
    read.ranks = (int32_t)ranks;
    item = weft_json_first(weft_json_member(object, "hashes"));
    for (; item != NULL && n < WEFT_GROUP_HASHES; item = weft_json_next(item), n++) {
        const char *text = NULL;
        char *end = NULL;
        if (!weft_json_string(item, &text) || strlen(text) != 16) return OTHER_LINE;
        read.hashes[n] = strtoull(text, &end, 16);
        if (*end != '\0') return OTHER_LINE;
    }
    if (item != NULL || n != (read.n < WEFT_GROUP_HASHES ? read.n : WEFT_GROUP_HASHES))
        return OTHER_LINE;
    *out = malloc(sizeof **out);
    if (*out != NULL) **out = read;
    return *out != NULL ? LINE_OF_STEP : NO_MEMORY;
}

static enum read_line read_line(const char *line, size_t length, struct weft_recorded_step *out)
{
    struct weft_json *document = NULL;
    const char *kind = NULL;
    if (weft_json_parse(line, length, "metrics", &document, NULL) != WEFT_OK) return OTHER_LINE;
    const struct weft_json_value *root = weft_json_root(document);
    *out = (struct weft_recorded_step){0};
    bool is_step = weft_json_string(weft_json_member(root, "kind"), &kind) &&
                   strcmp(kind, "step") == 0 &&
                   weft_json_integer(weft_json_member(root, "step"), &out->step) && out->step > 0;
    for (int i = 0; i < N_NUMBERS; i++)
        if (!weft_json_number(weft_json_member(root, numbers[i].name), number_of(out, i)))
            *number_of(out, i) = NAN;
    if (weft_json_member(root, "parameters") != NULL &&
        weft_keys_hash(root, "metrics", "parameters", &out->parameters, NULL) != WEFT_OK)
        is_step = false;
    const enum read_line read = is_step ? read_gradients(root, &out->gradients) : OTHER_LINE;
    weft_json_destroy(document);
    return read;
}

/* Makes room for one more record; NULL without memory. */
static struct weft_recorded_step *add_record(struct weft_recorded *to, int64_t *room)
{
    if (to->n == *room) {
        const int64_t more = *room > 0 ? 2 * *room : 64;
        struct weft_recorded_step *steps = realloc(to->steps, (size_t)more * sizeof *steps);
        if (steps == NULL) return NULL;
        to->steps = steps;
        *room = more;
    }
    return &to->steps[to->n++];
}

/* The number of records before the first one of `step` or later. */
static int64_t count_before(const struct weft_recorded *recorded, int64_t step)
{
    int64_t low = 0, high = recorded->n;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (recorded->steps[middle].step < step)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int compare_records(const void *a, const void *b)
{
    const struct weft_recorded_step *x = a, *y = b;
    if (x->step != y->step) return x->step < y->step ? -1 : 1;
    return (x->place > y->place) - (x->place < y->place);
}

/* Orders the records by step, and keeps the last one of each. */
static void order_records(struct weft_recorded *recorded)
{
    struct weft_recorded_step *const steps = recorded->steps;
    int64_t n = 0;
    if (recorded->n == 0) return;
    qsort(steps, (size_t)recorded->n, sizeof *steps, compare_records);
    for (int64_t i = 0; i < recorded->n; i++) {
        if (n > 0 && steps[n - 1].step == steps[i].step) free(steps[--n].gradients);
        steps[n++] = steps[i];
    }
    recorded->n = n;
    recorded->first = steps[0].step;
    recorded->last = steps[n - 1].step;
}

/* A line has gradients of its own step or of an earlier one; gives each to its own step. */
static void place_gradients(struct weft_recorded *recorded)
{
    for (int64_t i = 0; i < recorded->n; i++) {
        struct weft_group_hashes *gradients = recorded->steps[i].gradients;
        if (gradients == NULL || gradients->step == recorded->steps[i].step) continue;
        const int64_t at = count_before(recorded, gradients->step);
        recorded->steps[i].gradients = NULL;
        if (at < i && recorded->steps[at].step == gradients->step) {
            free(recorded->steps[at].gradients);
            recorded->steps[at].gradients = gradients;
        } else {
            free(gradients);
        }
    }
}

/* Memory follows the lines of the file, never a step number in one of them. */
static enum weft_status read_lines(const char *bytes, size_t length, struct weft_recorded *to,
                                   struct weft_error *err)
{
    const char *at = bytes, *last = bytes + length, *end;
    int64_t room = 0;
    while (at < last && (end = memchr(at, '\n', (size_t)(last - at))) != NULL) {
        struct weft_recorded_step line;
        const enum read_line read = read_line(at, (size_t)(end - at), &line);
        if (read == NO_MEMORY) return weft_fail_memory(err, "the recorded steps");
        if (read == LINE_OF_STEP) {
            line.place = to->n;
            struct weft_recorded_step *record = add_record(to, &room);
            if (record == NULL) {
                free(line.gradients);
                return weft_fail_memory(err, "the recorded steps");
            }
            *record = line;
        }
        at = end + 1;
    }
    order_records(to);
    place_gradients(to);
    return WEFT_OK;
}

enum weft_status weft_recorded_read(const char *path, struct weft_recorded *out,
                                    struct weft_error *err)
{
    const int64_t most_bytes = INT64_C(1) << 40;
    char *bytes = NULL;
    size_t length = 0;
    struct weft_recorded recorded = {0};
    WEFT_TRY(weft_file_read(path, most_bytes, &bytes, &length, err));
    enum weft_status status = read_lines(bytes, length, &recorded, err);
    free(bytes);
    if (status == WEFT_OK && recorded.n == 0)
        status = weft_fail(err, WEFT_E_DATA, "%s: has no line of a step", path);
    if (status != WEFT_OK) {
        weft_recorded_finish(&recorded);
        return status;
    }
    *out = recorded;
    return WEFT_OK;
}

void weft_recorded_finish(struct weft_recorded *recorded)
{
    for (int64_t i = 0; i < recorded->n; i++)
        free(recorded->steps[i].gradients);
    free(recorded->steps);
    *recorded = (struct weft_recorded){0};
}

const struct weft_recorded_step *weft_recorded_find(const struct weft_recorded *recorded,
                                                    int64_t step)
{
    const int64_t at = count_before(recorded, step);
    return at < recorded->n && recorded->steps[at].step == step ? &recorded->steps[at] : NULL;
}

static void add_number(struct weft_text *out, double number)
{
    if (isnan(number))
        weft_text_add(out, "null");
    else
        weft_text_addf(out, "%.17g", number);
}

/* Groups with a hash in both steps; 0 if the steps have different groups. */
static int64_t count_groups(const struct weft_recorded_step *a, const struct weft_recorded_step *b)
{
    if (a->gradients == NULL || b->gradients == NULL || a->gradients->n != b->gradients->n)
        return 0;
    return a->gradients->n < WEFT_GROUP_HASHES ? a->gradients->n : WEFT_GROUP_HASHES;
}

static int64_t count_others(const struct weft_recorded_step *a, const struct weft_recorded_step *b)
{
    int64_t others = 0;
    for (int64_t g = 0; g < count_groups(a, b); g++)
        others += a->gradients->hashes[g] != b->gradients->hashes[g];
    return others;
}

/* Appends "gradient of group 5 (rank 1)" for the groups that differ, at most a few. */
static int32_t compare_groups(const struct weft_recorded_step *a,
                              const struct weft_recorded_step *b, const char *before,
                              struct weft_text *out)
{
    enum { MOST_NAMED = 4 };
    const int64_t n = count_groups(a, b), others = count_others(a, b);
    int64_t named = 0;
    if (others == 0) return 0;
    if (others == n && n > 1) {
        weft_text_addf(out, "%sgradients of all groups", before);
        return 1;
    }
    weft_text_addf(out, "%sgradient%s of group", before, others > 1 ? "s" : "");
    for (int64_t g = 0; g < n && named < MOST_NAMED; g++) {
        if (a->gradients->hashes[g] == b->gradients->hashes[g]) continue;
        weft_text_addf(out, "%s %" PRId64, named++ > 0 ? "," : "", g);
        for (int64_t more = g + n; more < a->gradients->n; more += n)
            weft_text_addf(out, " or %" PRId64, more);
        const int32_t ranks = a->gradients->ranks;
        if (n == a->gradients->n || n % ranks == 0)
            weft_text_addf(out, " (rank %d)", (int32_t)(g % ranks));
    }
    if (others > named) weft_text_addf(out, " and %" PRId64 " more", others - named);
    return 1;
}

static bool parameters_differ(const struct weft_recorded_step *a,
                              const struct weft_recorded_step *b)
{
    const struct weft_hash none = {0};
    return !weft_hash_equal(a->parameters, b->parameters) &&
           !weft_hash_equal(a->parameters, none) && !weft_hash_equal(b->parameters, none);
}

int32_t weft_recorded_rank(const struct weft_recorded_step *recorded,
                           const struct weft_recorded_step *replayed)
{
    const int64_t n = count_groups(recorded, replayed), others = count_others(recorded, replayed);
    int32_t rank = -1;
    /* Other parameters give other gradients on a rank that computes them rightly. */
    if (others == 0 || parameters_differ(recorded, replayed)) return -1;
    const struct weft_group_hashes *a = recorded->gradients, *b = replayed->gradients;
    if ((others == n && a->ranks > 1) || (n < a->n && n % a->ranks != 0)) return -1;
    for (int64_t g = 0; g < n; g++) {
        const int32_t of = (int32_t)(g % a->ranks);
        if (a->hashes[g] == b->hashes[g]) continue;
        if (rank >= 0 && rank != of) return -1;
        rank = of;
    }
    return rank;
}

int32_t weft_recorded_compare(const struct weft_recorded_step *recorded,
                              const struct weft_recorded_step *replayed, const char *word,
                              struct weft_text *out)
{
    int32_t n = 0;
    for (int i = 0; i < N_NUMBERS; i++) {
        const double a = *number_of(recorded, i), b = *number_of(replayed, i);
        if (a == b || (isnan(a) && isnan(b))) continue;
        weft_text_addf(out, "%s%s ", n++ > 0 ? ", " : "", numbers[i].name);
        add_number(out, a);
        weft_text_addf(out, ", %s ", word);
        add_number(out, b);
    }
    if (parameters_differ(recorded, replayed)) {
        char a[WEFT_HASH_TEXT_BYTES], b[WEFT_HASH_TEXT_BYTES];
        weft_text_addf(out, "%sparameters before it %s, %s %s", n++ > 0 ? ", " : "",
                       weft_hash_show(recorded->parameters, a), word,
                       weft_hash_show(replayed->parameters, b));
    }
    return n + compare_groups(recorded, replayed, n > 0 ? ", " : "", out);
}
