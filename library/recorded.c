#include "library/recorded.h"

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

/* Reads a line of a step; false for other lines. */
static bool read_line(const char *line, size_t length, struct weft_recorded_step *out)
{
    struct weft_json *document = NULL;
    const char *kind = NULL;
    if (weft_json_parse(line, length, "metrics", &document, NULL) != WEFT_OK) return false;
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
    weft_json_destroy(document);
    return is_step;
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
        if (n > 0 && steps[n - 1].step == steps[i].step) n--;
        steps[n++] = steps[i];
    }
    recorded->n = n;
    recorded->first = steps[0].step;
    recorded->last = steps[n - 1].step;
}

/* Memory follows the lines of the file, never a step number in one of them. */
static enum weft_status read_lines(const char *bytes, size_t length, struct weft_recorded *to,
                                   struct weft_error *err)
{
    const char *at = bytes, *last = bytes + length, *end;
    int64_t room = 0;
    while (at < last && (end = memchr(at, '\n', (size_t)(last - at))) != NULL) {
        struct weft_recorded_step line;
        if (read_line(at, (size_t)(end - at), &line)) {
            line.place = to->n;
            struct weft_recorded_step *record = add_record(to, &room);
            if (record == NULL) return weft_fail_memory(err, "the recorded steps");
            *record = line;
        }
        at = end + 1;
    }
    order_records(to);
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
        free(recorded.steps);
        return status;
    }
    *out = recorded;
    return WEFT_OK;
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

int32_t weft_recorded_compare(const struct weft_recorded_step *recorded,
                              const struct weft_recorded_step *replayed, struct weft_text *out)
{
    int32_t n = 0;
    for (int i = 0; i < N_NUMBERS; i++) {
        const double a = *number_of(recorded, i), b = *number_of(replayed, i);
        if (a == b || (isnan(a) && isnan(b))) continue;
        weft_text_addf(out, "%s%s ", n++ > 0 ? ", " : "", numbers[i].name);
        add_number(out, a);
        weft_text_add(out, ", replayed ");
        add_number(out, b);
    }
    const struct weft_hash none = {0};
    if (!weft_hash_equal(recorded->parameters, replayed->parameters) &&
        !weft_hash_equal(recorded->parameters, none) &&
        !weft_hash_equal(replayed->parameters, none)) {
        char a[WEFT_HASH_TEXT_BYTES], b[WEFT_HASH_TEXT_BYTES];
        weft_text_addf(out, "%sparameters before it %s, replayed %s", n++ > 0 ? ", " : "",
                       weft_hash_show(recorded->parameters, a),
                       weft_hash_show(replayed->parameters, b));
    }
    return n;
}
