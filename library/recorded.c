#include "library/recorded.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json/json.h"
#include "base/json/json_keys.h"

enum { MOST_STEPS = 1 << 28 };

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
static bool read_line(const char *line, size_t length, int64_t *step,
                      struct weft_recorded_step *out)
{
    struct weft_json *document = NULL;
    const char *kind = NULL;
    if (weft_json_parse(line, length, "metrics", &document, NULL) != WEFT_OK) return false;
    const struct weft_json_value *root = weft_json_root(document);
    bool is_step =
        weft_json_string(weft_json_member(root, "kind"), &kind) && strcmp(kind, "step") == 0 &&
        weft_json_integer(weft_json_member(root, "step"), step) && *step > 0 && *step < MOST_STEPS;
    *out = (struct weft_recorded_step){.known = is_step};
    for (int i = 0; i < N_NUMBERS; i++)
        if (!weft_json_number(weft_json_member(root, numbers[i].name), number_of(out, i)))
            *number_of(out, i) = NAN;
    if (weft_json_member(root, "parameters") != NULL &&
        weft_keys_hash(root, "metrics", "parameters", &out->parameters, NULL) != WEFT_OK)
        is_step = false;
    weft_json_destroy(document);
    return is_step;
}

/* Makes room up to `step`, and returns its record; NULL without memory. */
static struct weft_recorded_step *reach_step(struct weft_recorded *to, int64_t step)
{
    if (to->n == 0) to->first = step;
    if (step < to->first) return NULL;
    const int64_t n = step - to->first + 1;
    if (n > to->n) {
        struct weft_recorded_step *steps = realloc(to->steps, (size_t)n * sizeof *steps);
        if (steps == NULL) return NULL;
        memset(steps + to->n, 0, (size_t)(n - to->n) * sizeof *steps);
        to->steps = steps;
        to->n = n;
    }
    return &to->steps[step - to->first];
}

static enum weft_status read_lines(const char *bytes, size_t length, struct weft_recorded *to,
                                   struct weft_error *err)
{
    const char *at = bytes, *last = bytes + length, *end;
    while (at < last && (end = memchr(at, '\n', (size_t)(last - at))) != NULL) {
        struct weft_recorded_step line;
        int64_t step = 0;
        if (read_line(at, (size_t)(end - at), &step, &line) && (to->n == 0 || step >= to->first)) {
            struct weft_recorded_step *slot = reach_step(to, step);
            if (slot == NULL) return weft_fail_memory(err, "the recorded steps");
            *slot = line;
        }
        at = end + 1;
    }
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
    const int64_t at = step - recorded->first;
    return at >= 0 && at < recorded->n && recorded->steps[at].known ? &recorded->steps[at] : NULL;
}

int32_t weft_recorded_compare(const struct weft_recorded_step *recorded,
                              const struct weft_recorded_step *replayed, struct weft_text *out)
{
    int32_t n = 0;
    for (int i = 0; i < N_NUMBERS; i++) {
        const double a = *number_of(recorded, i), b = *number_of(replayed, i);
        if (a == b || isnan(a) || isnan(b)) continue;
        weft_text_addf(out, "%s%s %.17g, replayed %.17g", n++ > 0 ? ", " : "", numbers[i].name, a,
                       b);
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
