/* SPDX-License-Identifier: Apache-2.0 */
#include "problem/names.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "problem/unit_layers.h"

enum { MOST_SHOWN = 6 };

/* The last number of a name: "h.", 12 and ".ffn" of "h.12.ffn". */
struct numbered {
    size_t prefix, digits; /* digits 0: no number */
    int64_t number;
};

/* Names of consecutive layers, while they are listed. */
struct listing {
    const char **names; /* [n_layers], by layer */
    int32_t n_layers;
    int32_t from, to; /* layers still to append; from > to: none */
    int32_t n_shown;
    struct weft_text *out;
};

static struct numbered find_number(const char *name)
{
    size_t end = strlen(name);
    while (end > 0 && (name[end - 1] < '0' || name[end - 1] > '9'))
        end--;
    size_t begin = end;
    while (begin > 0 && end - begin < 9 && name[begin - 1] >= '0' && name[begin - 1] <= '9')
        begin--;
    return (struct numbered){begin, end - begin, begin < end ? atoll(name + begin) : 0};
}

/* True if `b` is `a` with the next number. */
static bool has_next_number(const char *a, const char *b)
{
    const struct numbered x = find_number(a), y = find_number(b);
    return x.digits > 0 && y.digits > 0 && x.prefix == y.prefix && y.number == x.number + 1 &&
           memcmp(a, b, x.prefix) == 0 &&
           strcmp(a + x.prefix + x.digits, b + y.prefix + y.digits) == 0;
}

static void add_part(struct listing *listing, const char *from, const char *to)
{
    const struct numbered x = find_number(from), y = find_number(to);
    if (listing->n_shown++ > 0) weft_text_add(listing->out, "+");
    if (from == to)
        weft_text_add(listing->out, from);
    else
        weft_text_addf(listing->out, "%.*s-%lld%s", (int)(x.prefix + x.digits), from,
                       (long long)y.number, from + x.prefix + x.digits);
}

/* Appends the pending layers; of many without numbers only the first and the last. */
static void flush_layers(struct listing *listing)
{
    int32_t starts[MOST_SHOWN], n = 0;
    for (int32_t l = listing->from; l <= listing->to; l++) {
        if (l > listing->from && has_next_number(listing->names[l - 1], listing->names[l]))
            continue;
        if (n < MOST_SHOWN) starts[n] = l;
        n++;
    }
    if (n > MOST_SHOWN) {
        add_part(listing, listing->names[listing->from], listing->names[listing->from]);
        weft_text_add(listing->out, "+..");
        add_part(listing, listing->names[listing->to], listing->names[listing->to]);
    }
    for (int32_t i = 0; i < n && n <= MOST_SHOWN; i++) {
        const int32_t end = i + 1 < n ? starts[i + 1] - 1 : listing->to;
        add_part(listing, listing->names[starts[i]], listing->names[end]);
    }
    listing->from = 0;
    listing->to = -1;
}

/* Finds the layers of a decision; false for a shared tensor, and in plans that do not have them. */
static bool find_layers(const struct weft_problem *problem, int32_t d, int32_t *from, int32_t *to)
{
    const struct weft_problem_decision *decision = &problem->decisions[d];
    const struct weft_unit_layers *layers = weft_problem_unit_layers(problem, d);
    if (layers == NULL && !decision->is_of_layer) return false;
    if (layers != NULL && layers->n_tied > 0) return false;
    *from = decision->is_of_layer ? decision->layer : layers->first;
    *to = decision->is_of_layer ? decision->layer : layers->last;
    return true;
}

/* Lists names of layers from the forward slots of the first micro-step: "F:wte", "F1:wte". */
static int32_t list_layers(const struct weft_problem *problem, const char **names)
{
    int32_t n = 0;
    for (int32_t s = 0; s < problem->n_slots; s++) {
        if (problem->slots[s].kind != WEFT_SLOT_FORWARD || problem->slots[s].micro != 0) continue;
        const char *colon = strchr(problem->slot_names[s], ':');
        names[n++] = colon ? colon + 1 : problem->slot_names[s];
    }
    return n;
}

static const char *name_of(const struct weft_problem *problem, int32_t decision)
{
    const struct weft_problem_decision *of = &problem->decisions[decision];
    const size_t skip = sizeof WEFT_SAVED_PREFIX - 1;
    return of->is_of_layer && strncmp(of->name, WEFT_SAVED_PREFIX, skip) == 0 ? of->name + skip
                                                                              : of->name;
}

void weft_problem_show_names(const struct weft_problem *problem, int32_t first, int32_t last,
                             struct weft_text *out)
{
    struct listing listing = {.to = -1, .out = out};
    listing.names = calloc((size_t)problem->n_slots + 1, sizeof *listing.names);
    if (listing.names == NULL) {
        out->failed = true;
        return;
    }
    listing.n_layers = list_layers(problem, listing.names);
    for (int32_t d = first; d <= last; d++) {
        int32_t from, to;
        const char *name = name_of(problem, d);
        if (!find_layers(problem, d, &from, &to) || to >= listing.n_layers) {
            flush_layers(&listing);
            add_part(&listing, name, name);
            continue;
        }
        if (listing.to >= listing.from && from != listing.to + 1) flush_layers(&listing);
        if (listing.to < listing.from) listing.from = from;
        listing.to = to;
    }
    flush_layers(&listing);
    free(listing.names);
}

const char *weft_problem_show_name(const struct weft_problem *problem, int32_t decision,
                                   char text[WEFT_NAMES_BYTES])
{
    struct weft_text names;
    weft_text_init(&names);
    /* A layer's unit and its saved activations are in the same tables. */
    if (name_of(problem, decision) != problem->decisions[decision].name)
        weft_text_add(&names, WEFT_SAVED_PREFIX);
    weft_problem_show_names(problem, decision, decision, &names);
    /* A name without numbers only gets longer, so columns keep the short form of files. */
    const bool fits = weft_text_ok(&names) && names.length < WEFT_NAMES_BYTES &&
                      names.length <= strlen(problem->decisions[decision].name);
    if (fits) memcpy(text, weft_text_chars(&names), names.length + 1);
    weft_text_finish(&names);
    return fits ? text : problem->decisions[decision].name;
}
