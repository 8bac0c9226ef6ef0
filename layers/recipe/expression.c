/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/recipe/expression.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/status.h"

enum { MOST_DEPTH = 16 };

struct reader {
    const char *text, *at, *end;
    const struct weft_names *names;
    struct weft_expression_fault *fault;
    int depth; /* of parentheses */
};

WEFT_PRINTF(2, 3)
static bool refuse_text(struct reader *reader, const char *format, ...)
{
    char said[160];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(said, sizeof said, format, arguments);
    va_end(arguments);
    reader->fault->overflowed = false;
    snprintf(reader->fault->text, sizeof reader->fault->text, "\"%.*s\": %s",
             (int)(reader->end - reader->text), reader->text, said);
    return false;
}

static bool refuse_size(struct reader *reader)
{
    refuse_text(reader, "a number does not fit in 63 bits");
    reader->fault->overflowed = true;
    return false;
}

static void skip_spaces(struct reader *reader)
{
    while (reader->at < reader->end && *reader->at == ' ')
        reader->at++;
}

/* Takes `sign` if it comes next. */
static bool take_sign(struct reader *reader, const char *sign)
{
    const size_t length = strlen(sign);
    skip_spaces(reader);
    if ((size_t)(reader->end - reader->at) < length || memcmp(reader->at, sign, length) != 0)
        return false;
    reader->at += length;
    return true;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool read_digits(struct reader *reader, int64_t *out)
{
    int64_t value = 0;
    for (; reader->at < reader->end && is_digit(*reader->at); reader->at++)
        if (!weft_checked_mul(value, 10, &value) ||
            !weft_checked_add(value, *reader->at - '0', &value))
            return refuse_size(reader);
    *out = value;
    return true;
}

static bool read_name(struct reader *reader, int64_t *out)
{
    const char *name = reader->at;
    while (reader->at < reader->end && (is_letter(*reader->at) || is_digit(*reader->at)))
        reader->at++;
    const size_t length = (size_t)(reader->at - name);
    if (reader->names->find(reader->names->context, name, length, out)) return true;
    return refuse_text(reader, "there is no key or definition \"%.*s\"", (int)length, name);
}

static bool read_sum(struct reader *reader, int64_t *out);

static bool read_operand(struct reader *reader, int64_t *out)
{
    if (take_sign(reader, "(")) {
        if (++reader->depth > MOST_DEPTH)
            return refuse_text(reader, "more than %d parentheses", MOST_DEPTH);
        if (!read_sum(reader, out)) return false;
        reader->depth--;
        return take_sign(reader, ")") || refuse_text(reader, "a \")\" is missing");
    }
    if (reader->at < reader->end && is_digit(*reader->at)) return read_digits(reader, out);
    if (reader->at < reader->end && is_letter(*reader->at)) return read_name(reader, out);
    return refuse_text(reader, "a number or name is missing at character %d",
                       (int)(reader->at - reader->text) + 1);
}

static bool divide_size(struct reader *reader, char sign, int64_t a, int64_t b, int64_t *out)
{
    if (b == 0) return refuse_text(reader, "%lld %c 0", (long long)a, sign);
    if (sign == '/' && a % b != 0)
        return refuse_text(reader, "%lld / %lld leaves a rest", (long long)a, (long long)b);
    *out = sign == '/' ? a / b : a % b;
    return true;
}

static bool read_product(struct reader *reader, int64_t *out)
{
    int64_t left, right;
    if (!read_operand(reader, &left)) return false;
    for (;;) {
        const char sign = take_sign(reader, "*")   ? '*'
                          : take_sign(reader, "/") ? '/'
                          : take_sign(reader, "%") ? '%'
                                                   : '\0';
        if (sign == '\0') break;
        if (!read_operand(reader, &right)) return false;
        if (sign == '*') {
            if (!weft_checked_mul(left, right, &left)) return refuse_size(reader);
        } else if (!divide_size(reader, sign, left, right, &left)) {
            return false;
        }
    }
    *out = left;
    return true;
}

static bool read_sum(struct reader *reader, int64_t *out)
{
    int64_t left, right;
    if (!read_product(reader, &left)) return false;
    for (;;) {
        const bool plus = take_sign(reader, "+");
        if (!plus && !take_sign(reader, "-")) break;
        if (!read_product(reader, &right)) return false;
        if (plus && !weft_checked_add(left, right, &left)) return refuse_size(reader);
        if (!plus && right > left)
            return refuse_text(reader, "%lld - %lld is negative", (long long)left,
                               (long long)right);
        if (!plus) left -= right;
    }
    *out = left;
    return true;
}

/* The comparison that comes next, as its index in the signs, or -1. */
static int take_comparison(struct reader *reader)
{
    static const char *const signs[] = {"==", "!=", "<=", ">"};
    for (int i = 0; i < 4; i++)
        if (take_sign(reader, signs[i])) return i;
    return -1;
}

bool weft_expression(const char *text, size_t length, const struct weft_names *names, int64_t *out,
                     struct weft_expression_fault *fault)
{
    struct reader reader = {text, text, text + length, names, fault, 0};
    int64_t left, right;
    if (!read_sum(&reader, &left)) return false;
    const int comparison = take_comparison(&reader);
    if (comparison >= 0) {
        if (!read_sum(&reader, &right)) return false;
        const bool holds[] = {left == right, left != right, left <= right, left > right};
        left = holds[comparison];
    }
    skip_spaces(&reader);
    if (reader.at < reader.end)
        return refuse_text(&reader, "\"%.*s\" is no part of an expression",
                           (int)(reader.end - reader.at), reader.at);
    *out = left;
    return true;
}
