/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/solver/lp_words.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORD_BYTES = 64 };

/* Printing numbers would take most of a question's time. So whole numbers are written digit by
 * digit, and others in hexadecimal, which is exact and much faster than 17 digits. */
void weft_lp_add_integer(struct weft_text *out, int64_t value)
{
    char word[24], *at = word + sizeof word;
    uint64_t left = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    do {
        *--at = (char)('0' + left % 10);
        left /= 10;
    } while (left > 0);
    if (value < 0) *--at = '-';
    *--at = ' ';
    weft_text_append(out, at, (size_t)(word + sizeof word - at));
}

void weft_lp_add_number(struct weft_text *out, double value)
{
    char word[WORD_BYTES];
    if (fabs(value) < 1e15 && value == floor(value)) {
        weft_lp_add_integer(out, (int64_t)value);
    } else {
        snprintf(word, sizeof word, " %a", value);
        weft_text_add(out, word);
    }
}

void weft_lp_add_numbers(struct weft_text *out, const double *values, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        weft_lp_add_number(out, values[i]);
    weft_text_add(out, "\n");
}

void weft_lp_add_limits(struct weft_text *out, const struct weft_lp_limits *limits)
{
    weft_text_addf(out, "limits %lld\n", (long long)limits->iterations);
}

void weft_lp_add_rows(struct weft_text *out, const char *letter, const struct weft_lp_rows *rows)
{
    for (int32_t i = 0; i < rows->n; i++) {
        weft_text_add(out, letter);
        weft_lp_add_number(out, rows->lower[i]);
        weft_lp_add_number(out, rows->upper[i]);
        weft_lp_add_integer(out, rows->start[i + 1] - rows->start[i]);
        for (int64_t k = rows->start[i]; k < rows->start[i + 1]; k++) {
            weft_lp_add_integer(out, rows->column[k]);
            weft_lp_add_number(out, rows->value[k]);
        }
        weft_text_add(out, "\n");
    }
}

struct weft_lp_reader weft_lp_reader(const char *bytes, size_t length, struct weft_error *err)
{
    return (struct weft_lp_reader){.at = bytes, .end = bytes + length, .line = 1, .err = err};
}

void weft_lp_read_fail(struct weft_lp_reader *in, const char *what)
{
    if (!in->failed) {
        weft_fail(in->err, WEFT_E_DATA, "solver protocol, line %lld: expected %s",
                  (long long)in->line, what);
    }
    in->failed = true;
}

/* Copies the next word of the line, with its NUL, into `word`. */
static const char *next_word(struct weft_lp_reader *in, char word[WORD_BYTES], const char *what)
{
    word[0] = '\0';
    if (in->failed) return word;
    while (in->at < in->end && (*in->at == ' ' || *in->at == '\n')) {
        if (*in->at == '\n') in->line++;
        in->at++;
    }
    size_t length = 0;
    while (in->at < in->end && *in->at != ' ' && *in->at != '\n' && length < WORD_BYTES - 1)
        word[length++] = *in->at++;
    word[length] = '\0';
    if (length == 0) weft_lp_read_fail(in, what);
    return word;
}

void weft_lp_need_word(struct weft_lp_reader *in, const char *wanted)
{
    char word[WORD_BYTES];
    if (strcmp(next_word(in, word, wanted), wanted) != 0) weft_lp_read_fail(in, wanted);
}

int weft_lp_read_name(struct weft_lp_reader *in, const char *const *names, int n, const char *what)
{
    char word[WORD_BYTES];
    next_word(in, word, what);
    for (int i = 0; i < n; i++)
        if (strcmp(word, names[i]) == 0) return i;
    weft_lp_read_fail(in, what);
    return 0;
}

int64_t weft_lp_read_integer(struct weft_lp_reader *in, int64_t least, int64_t most,
                             const char *what)
{
    char word[WORD_BYTES], *rest = NULL;
    next_word(in, word, what);
    if (in->failed) return 0;
    long long value = strtoll(word, &rest, 10);
    if (*rest != '\0' || value < least || value > most) {
        weft_lp_read_fail(in, what);
        return 0;
    }
    return value;
}

double weft_lp_read_number(struct weft_lp_reader *in, const char *what)
{
    char word[WORD_BYTES], *rest = NULL;
    next_word(in, word, what);
    if (in->failed) return 0;
    double value = strtod(word, &rest);
    if (*rest != '\0' || isnan(value)) {
        weft_lp_read_fail(in, what);
        return 0;
    }
    return value;
}

void weft_lp_read_numbers(struct weft_lp_reader *in, double *values, int32_t n, const char *what)
{
    for (int32_t i = 0; i < n && !in->failed; i++)
        values[i] = weft_lp_read_number(in, what);
}

struct weft_lp_limits weft_lp_read_limits(struct weft_lp_reader *in)
{
    struct weft_lp_limits limits = {0};
    weft_lp_need_word(in, "limits");
    limits.iterations = weft_lp_read_integer(in, 0, INT64_MAX, "a limit of iterations");
    return limits;
}

void weft_lp_read_rows(struct weft_lp_reader *in, const char *letter, int32_t n_columns,
                       int64_t n_entries, struct weft_lp_rows *rows)
{
    int64_t n_read = 0;
    rows->start[0] = 0;
    for (int32_t i = 0; i < rows->n && !in->failed; i++) {
        weft_lp_need_word(in, letter);
        rows->lower[i] = weft_lp_read_number(in, "a row's lower bound");
        rows->upper[i] = weft_lp_read_number(in, "a row's upper bound");
        int64_t n = weft_lp_read_integer(in, 0, n_entries - n_read, "a row's number of entries");
        for (int64_t k = n_read; k < n_read + n && !in->failed; k++) {
            rows->column[k] =
                (int32_t)weft_lp_read_integer(in, 0, (int64_t)n_columns - 1, "a column's number");
            rows->value[k] = weft_lp_read_number(in, "a coefficient");
            if (!in->failed && !isfinite(rows->value[k]))
                weft_lp_read_fail(in, "a finite coefficient");
        }
        n_read += n;
        rows->start[i + 1] = n_read;
    }
    if (!in->failed && n_read != n_entries) weft_lp_read_fail(in, "as many entries as `size` says");
}

int32_t weft_lp_most_words(const struct weft_lp_reader *in)
{
    int64_t most = (in->end - in->at) / 2 + 1;
    return most < INT32_MAX ? (int32_t)most : INT32_MAX - 1;
}
