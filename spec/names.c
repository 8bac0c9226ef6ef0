/* SPDX-License-Identifier: Apache-2.0 */
#include "spec/names.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* The layer or tensor with a name. Of two equal names the error blames the later one. */
struct holder {
    const char *name;
    int32_t index;
};

static const char *const state_suffixes[WEFT_STATE_COUNT] = {
#define STATE_SUFFIX(name, text) text,
    WEFT_STATE_MAP(STATE_SUFFIX)
#undef STATE_SUFFIX
};

bool weft_name_is_good(const char *name, size_t most_bytes)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
    size_t length = strspn(name, letters);
    return length > 0 && length <= most_bytes && name[length] == '\0' && name[0] != '.' &&
           name[length - 1] != '.' && strstr(name, "..") == NULL;
}

/* Words separated by spaces, in lower case, "-" for "_". A name that contains one is refused. */
static const struct refused {
    const char *words, *text;
} refused[] = {
    {"async asgd hogwild stale",
     "an asynchronous parameter server applies gradients in the order of their arrival, so a run "
     "depends on timing and cannot be repeated. Weft has train.delay 1 in its place: no step waits "
     "for its own reductions, and every run has the same bits"},
    {"gossip d-psgd adpsgd sgp",
     "gossip averages each rank with its neighbours alone, so ranks have different parameters. "
     "Weft "
     "sums gradients over all ranks, and train.delay 1 takes the wait for them out of the step"},
    {"1bit 1-bit onebit one-bit signsgd sign-sgd 0/1",
     "1-bit compression changes gradients, and with them results. train.precision.reduce \"bf16\" "
     "halves the bytes of reductions, and the planner hides the rest where it can"},
    {"powersgd power-sgd low-rank lowrank",
     "low-rank compression changes gradients, and with them results. train.precision.reduce "
     "\"bf16\" halves the bytes of reductions, and the planner hides the rest where it can"},
};

static bool contains_word(const char *name, const char *words)
{
    while (*words != '\0') {
        const size_t length = strcspn(words, " ");
        for (const char *at = name; strlen(at) >= length; at++)
            if (memcmp(at, words, length) == 0) return true;
        words += length;
        words += *words == ' ';
    }
    return false;
}

const char *weft_name_refused(const char *name)
{
    char lower[64];
    size_t n = 0;
    for (; name[n] != '\0' && n + 1 < sizeof lower; n++)
        lower[n] = name[n] == '_' ? '-' : (char)tolower((unsigned char)name[n]);
    lower[n] = '\0';
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (contains_word(lower, refused[i].words)) return refused[i].text;
    return NULL;
}

static int by_name(const void *a, const void *b)
{
    const struct holder *first = a, *second = b;
    int order = strcmp(first->name, second->name);
    return order != 0 ? order : (first->index > second->index) - (first->index < second->index);
}

static enum weft_status sort_holders(struct holder *holders, int32_t n, struct weft_error *err)
{
    if (holders == NULL) return weft_fail_memory(err, "a model's names");
    qsort(holders, (size_t)n, sizeof *holders, by_name);
    return WEFT_OK;
}

enum weft_status weft_names_check_layers(const struct weft_model *model, struct weft_error *err)
{
    int32_t n = model->n_layers;
    struct holder *sorted = calloc((size_t)n + 1, sizeof *sorted);
    for (int32_t i = 0; sorted != NULL && i < n; i++)
        sorted[i] = (struct holder){model->layers[i].name, i};
    enum weft_status status = sort_holders(sorted, n, err);
    for (int32_t i = 1; i < n && status == WEFT_OK; i++) {
        if (strcmp(sorted[i - 1].name, sorted[i].name) != 0) continue;
        status = weft_fail(err, WEFT_E_DATA,
                           "layer \"%s\" (%s): another layer has this name; names must differ "
                           "(\"h.{i}\" with repeat numbers them)",
                           sorted[i].name, weft_layer_type_of(&model->layers[sorted[i].index]));
    }
    free(sorted);
    return status;
}

static enum weft_status fail_alike(const struct weft_model *model, int32_t tensor, int32_t other,
                                   const char *suffix, struct weft_error *err)
{
    const struct weft_tensor *mine = &model->tensors[tensor], *theirs = &model->tensors[other];
    const struct weft_layer *layer = &model->layers[mine->layer];
    const struct weft_layer *owner = &model->layers[theirs->layer];
    return weft_fail(err, WEFT_E_DATA,
                     "layer \"%s\" (%s): its tensor %s has the name of %s of layer \"%s\" (%s), "
                     "and values are saved, read and drawn by name: rename one of the layers",
                     layer->name, weft_layer_type_of(layer), mine->name,
                     suffix[0] == '\0' ? "one" : "the state of one", owner->name,
                     weft_layer_type_of(owner));
}

/* The tensor with `name` as its own name plus suffix; -1: none. */
static int32_t find_owner(const struct holder *sorted, int32_t n, const char *name,
                          const char *suffix)
{
    size_t length = strlen(name), end = strlen(suffix);
    int32_t low = 0, high = n;
    if (length <= end || strcmp(name + length - end, suffix) != 0) return -1;
    length -= end;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        int order = strncmp(sorted[middle].name, name, length);
        if (order == 0) order = sorted[middle].name[length] != '\0';
        if (order == 0) return sorted[middle].index;
        if (order < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return -1;
}

static enum weft_status check_tensor(const struct weft_model *model, const struct holder *sorted,
                                     int32_t at, struct weft_error *err)
{
    const struct holder *holder = &sorted[at];
    if (at > 0 && strcmp(sorted[at - 1].name, holder->name) == 0)
        return fail_alike(model, holder->index, sorted[at - 1].index, "", err);
    for (int state = 0; state < WEFT_STATE_COUNT; state++) {
        const char *suffix = state_suffixes[state];
        if (suffix[0] == '\0') continue;
        int32_t owner = find_owner(sorted, model->n_tensors, holder->name, suffix);
        if (owner >= 0) return fail_alike(model, holder->index, owner, suffix, err);
    }
    return WEFT_OK;
}

enum weft_status weft_names_check_tensors(const struct weft_model *model, struct weft_error *err)
{
    int32_t n = model->n_tensors;
    struct holder *sorted = calloc((size_t)n + 1, sizeof *sorted);
    for (int32_t i = 0; sorted != NULL && i < n; i++)
        sorted[i] = (struct holder){model->tensors[i].name, i};
    enum weft_status status = sort_holders(sorted, n, err);
    for (int32_t i = 0; i < n && status == WEFT_OK; i++)
        status = check_tensor(model, sorted, i, err);
    free(sorted);
    return status;
}
