/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/checkpoint/safetensors_header.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "base/checked.h"
#include "base/utf8.h"

enum { SHOWN_BYTES = 80 };

static const struct {
    const char *name;
    int64_t bytes;
} types[WEFT_TENSOR_TYPE_COUNT] = {
#define TYPE_ROW(name, text, bytes) [WEFT_TENSOR_##name] = {text, bytes},
    WEFT_TENSOR_TYPE_MAP(TYPE_ROW)
#undef TYPE_ROW
};

const char *weft_tensor_type_name(enum weft_tensor_type type)
{
    return types[type].name;
}

int64_t weft_tensor_type_bytes(enum weft_tensor_type type)
{
    return types[type].bytes;
}

/* The header is read twice: to check and count with out == NULL, then to keep. */
struct reader {
    const unsigned char *begin, *at, *end;
    const char *path;
    struct weft_safetensors *out;
    int32_t n_tensors, n_metadata;
    char tensor[SHOWN_BYTES]; /* name of the current entry, for errors; "" between entries */
    struct weft_error *err;
};

/* A string of the header, still escaped. */
struct token {
    const unsigned char *at;
    size_t raw_bytes, bytes; /* escaped; unescaped */
};

static enum weft_status fail_header(struct reader *r, const char *what)
{
    return weft_fail(r->err, WEFT_E_DATA, "%s: header byte %zu%s%s: %s", r->path,
                     (size_t)(r->at - r->begin), r->tensor[0] == '\0' ? "" : ", tensor ", r->tensor,
                     what);
}

static void skip_blanks(struct reader *r)
{
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r'))
        r->at++;
}

/* Skips blanks and the character. If another character comes, stops there and returns false. */
static bool take_character(struct reader *r, char wanted)
{
    skip_blanks(r);
    if (r->at == r->end || *r->at != (unsigned char)wanted) return false;
    r->at++;
    return true;
}

static enum weft_status need_character(struct reader *r, char wanted, const char *what)
{
    return take_character(r, wanted) ? WEFT_OK : fail_header(r, what);
}

static int hex_digit(unsigned char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

/* The four digits of \uXXXX, or -1. */
static int32_t hex_unit(const unsigned char *at, const unsigned char *end)
{
    int32_t unit = 0;
    if (end - at < 4) return -1;
    for (int i = 0; i < 4; i++) {
        int digit = hex_digit(at[i]);
        if (digit < 0) return -1;
        unit = unit << 4 | digit;
    }
    return unit;
}

static size_t put_utf8(int32_t c, char out[4])
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i > 0; i--, c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3F));
    out[0] = (char)((n == 2 ? 0xC0 : n == 3 ? 0xE0 : 0xF0) | c);
    return n;
}

/* Reads one character of a string, escaped or not. Returns the bytes used; 0: invalid. */
static size_t read_character(const unsigned char *at, const unsigned char *end, char out[4],
                             size_t *n_out)
{
    static const char escapes[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    if (*at != '\\') {
        size_t n = *at < 0x20 ? 0 : weft_utf8_sequence(at, (size_t)(end - at));
        memcpy(out, at, n);
        *n_out = n;
        return n;
    }
    if (end - at < 2) return 0;
    const char *found = at[1] == '\0' ? NULL : strchr(escapes, at[1]);
    if (found != NULL) {
        out[0] = meanings[found - escapes];
        *n_out = 1;
        return 2;
    }
    int32_t unit = at[1] == 'u' ? hex_unit(at + 2, end) : -1;
    if (unit < 0 || (unit >= 0xDC00 && unit <= 0xDFFF)) return 0;
    if (unit < 0xD800 || unit > 0xDBFF) {
        *n_out = put_utf8(unit, out);
        return 6;
    }
    if (end - at < 12 || at[6] != '\\' || at[7] != 'u') return 0;
    int32_t low = hex_unit(at + 8, end);
    if (low < 0xDC00 || low > 0xDFFF) return 0;
    *n_out = put_utf8(0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00), out);
    return 12;
}

static enum weft_status read_string(struct reader *r, const char *what, struct token *out)
{
    WEFT_TRY(need_character(r, '"', what));
    *out = (struct token){.at = r->at};
    while (r->at < r->end && *r->at != '"') {
        char character[4];
        size_t n = 0, used = read_character(r->at, r->end, character, &n);
        if (used == 0) {
            return fail_header(
                r, "a string with a control character, a bad escape, a lone surrogate or "
                   "bytes that are not UTF-8");
        }
        if (character[0] == '\0') return fail_header(r, "a string with a NUL in it");
        out->bytes += n;
        r->at += used;
    }
    out->raw_bytes = (size_t)(r->at - out->at);
    return need_character(r, '"', "a string that does not end");
}

/* `out` has room for token->bytes + 1. */
static void decode_token(const struct token *token, char *out)
{
    const unsigned char *at = token->at, *end = at + token->raw_bytes;
    while (at < end) {
        char character[4];
        size_t n = 0;
        at += read_character(at, end, character, &n);
        memcpy(out, character, n);
        out += n;
    }
    *out = '\0';
}

static bool equals_text(const struct token *token, const char *text)
{
    char out[SHOWN_BYTES];
    if (token->bytes != strlen(text)) return false;
    decode_token(token, out);
    return strcmp(out, text) == 0;
}

static enum weft_status keep_token(struct reader *r, const struct token *token, const char **out)
{
    char *copy = weft_pool_array(&r->out->pool, token->bytes + 1, 1);
    if (copy == NULL) return weft_fail_memory(r->err, r->path);
    decode_token(token, copy);
    *out = copy;
    return WEFT_OK;
}

static enum weft_status read_integer(struct reader *r, const char *what, int64_t *out)
{
    int64_t value = 0;
    skip_blanks(r);
    const unsigned char *first = r->at;
    for (; r->at < r->end && *r->at >= '0' && *r->at <= '9'; r->at++) {
        if (!weft_checked_mul(value, 10, &value) ||
            !weft_checked_add(value, *r->at - '0', &value) || (*first == '0' && r->at > first))
            return fail_header(r, what);
    }
    bool more = r->at < r->end && (*r->at == '.' || *r->at == 'e' || *r->at == 'E');
    if (r->at == first || more) return fail_header(r, what);
    *out = value;
    return WEFT_OK;
}

static enum weft_status read_shape(struct reader *r, struct weft_safetensors_tensor *tensor,
                                   int64_t dims[WEFT_SAFETENSORS_MOST_DIMS])
{
    WEFT_TRY(need_character(r, '[', "a shape is an array of lengths"));
    tensor->n_dims = 0;
    tensor->elements = 1;
    bool empty = false, fits = true;
    if (!take_character(r, ']')) {
        do {
            int64_t length = 0;
            if (tensor->n_dims == WEFT_SAFETENSORS_MOST_DIMS)
                return fail_header(r, "a shape of more than 16 lengths");
            WEFT_TRY(read_integer(r,
                                  "a length in a shape is an integer from 0 to 2^63 - 1, without "
                                  "sign, fraction, exponent or leading zero",
                                  &length));
            dims[tensor->n_dims++] = length;
            empty = empty || length == 0;
            /* Only lengths above zero are multiplied, so a zero hides no overflow. */
            if (length > 0)
                fits = fits && weft_checked_mul(tensor->elements, length, &tensor->elements);
        } while (take_character(r, ','));
        WEFT_TRY(need_character(r, ']', "a comma or the end of the shape is wanted"));
    }
    if (!fits) return fail_header(r, "the product of its shape does not fit");
    if (empty) tensor->elements = 0;
    return WEFT_OK;
}

static enum weft_status read_type(struct reader *r, struct weft_safetensors_tensor *tensor)
{
    struct token token;
    WEFT_TRY(read_string(r, "a dtype is a string", &token));
    for (int i = 0; i < WEFT_TENSOR_TYPE_COUNT; i++) {
        if (!equals_text(&token, types[i].name)) continue;
        tensor->type = (enum weft_tensor_type)i;
        return WEFT_OK;
    }
    return fail_header(r,
                       "no such dtype; one of BOOL, U8, I8, F8_E4M3, F8_E5M2, I16, U16, F16, BF16, "
                       "I32, U32, F32, F64, I64, U64 is wanted, in capitals");
}

static enum weft_status read_offsets(struct reader *r, struct weft_safetensors_tensor *tensor)
{
    static const char what[] = "an offset is an integer from 0 to 2^63 - 1";
    int64_t end = 0;
    WEFT_TRY(need_character(r, '[', "data_offsets is an array of begin and end"));
    WEFT_TRY(read_integer(r, what, &tensor->begin));
    WEFT_TRY(need_character(r, ',', "data_offsets has two numbers"));
    WEFT_TRY(read_integer(r, what, &end));
    WEFT_TRY(need_character(r, ']', "data_offsets has two numbers"));
    if (end < tensor->begin) return fail_header(r, "its data end before they begin");
    tensor->bytes = end - tensor->begin;
    return WEFT_OK;
}

static enum weft_status read_member(struct reader *r, struct weft_safetensors_tensor *tensor,
                                    int64_t dims[WEFT_SAFETENSORS_MOST_DIMS], unsigned *seen)
{
    static const char *const keys[] = {"dtype", "shape", "data_offsets"};
    struct token key;
    unsigned which = 0;
    WEFT_TRY(read_string(r, "a key is wanted", &key));
    while (which < 3 && !equals_text(&key, keys[which]))
        which++;
    if (which == 3) return fail_header(r, "a key that is not dtype, shape or data_offsets");
    if ((*seen & 1u << which) != 0) return fail_header(r, "a key that stands twice");
    *seen |= 1u << which;
    WEFT_TRY(need_character(r, ':', "a colon is wanted"));
    if (which == 0) return read_type(r, tensor);
    return which == 1 ? read_shape(r, tensor, dims) : read_offsets(r, tensor);
}

static enum weft_status keep_tensor(struct reader *r, const struct token *name,
                                    const struct weft_safetensors_tensor *tensor,
                                    const int64_t *dims)
{
    struct weft_safetensors_tensor *out = &r->out->tensors[r->n_tensors];
    int64_t *copy = weft_pool_array(&r->out->pool, (size_t)tensor->n_dims, sizeof *copy);
    if (copy == NULL) return weft_fail_memory(r->err, r->path);
    if (tensor->n_dims > 0) memcpy(copy, dims, (size_t)tensor->n_dims * sizeof *copy);
    *out = *tensor;
    out->dims = copy;
    return keep_token(r, name, &out->name);
}

static enum weft_status read_tensor(struct reader *r, const struct token *name)
{
    struct weft_safetensors_tensor tensor = {0};
    int64_t dims[WEFT_SAFETENSORS_MOST_DIMS], bytes = 0;
    unsigned seen = 0;
    if (r->n_tensors == WEFT_SAFETENSORS_MOST_TENSORS)
        return fail_header(r, "more tensors than any model has that is read here");
    WEFT_TRY(need_character(r, '{', "a tensor is an object"));
    do {
        WEFT_TRY(read_member(r, &tensor, dims, &seen));
    } while (take_character(r, ','));
    WEFT_TRY(need_character(r, '}', "a comma or the end of the tensor is wanted"));
    if (seen != 7) return fail_header(r, "dtype, shape and data_offsets are wanted");
    if (!weft_checked_mul(tensor.elements, types[tensor.type].bytes, &bytes))
        return fail_header(r, "the product of its shape does not fit");
    if (bytes != tensor.bytes)
        return fail_header(r, "its offsets are not as far apart as its shape says");
    if (r->out != NULL) WEFT_TRY(keep_tensor(r, name, &tensor, dims));
    r->n_tensors++;
    return WEFT_OK;
}

static enum weft_status read_metadata(struct reader *r)
{
    WEFT_TRY(need_character(r, '{', "__metadata__ is an object"));
    if (take_character(r, '}')) return WEFT_OK;
    do {
        struct token key, value;
        WEFT_TRY(read_string(r, "a key is wanted", &key));
        WEFT_TRY(need_character(r, ':', "a colon is wanted"));
        WEFT_TRY(read_string(r, "values of __metadata__ are strings", &value));
        if (r->n_metadata == WEFT_SAFETENSORS_MOST_METADATA)
            return fail_header(r, "more than 1000 entries of __metadata__");
        if (r->out != NULL) {
            struct weft_safetensors_metadata *out = &r->out->metadata[r->n_metadata];
            WEFT_TRY(keep_token(r, &key, &out->key));
            WEFT_TRY(keep_token(r, &value, &out->value));
        }
        r->n_metadata++;
    } while (take_character(r, ','));
    return need_character(r, '}', "a comma or the end of __metadata__ is wanted");
}

/* Names appear in messages, and in paths of other programs. */
static enum weft_status check_name(struct reader *r, const struct token *token)
{
    char name[WEFT_SAFETENSORS_MOST_NAME_BYTES + 1];
    if (token->bytes == 0) return fail_header(r, "a tensor without a name");
    if (token->bytes > WEFT_SAFETENSORS_MOST_NAME_BYTES)
        return fail_header(r, "a tensor's name of more than 1024 bytes");
    decode_token(token, name);
    if (strchr(name, '/') != NULL || strchr(name, '\\') != NULL || strstr(name, "..") != NULL)
        return fail_header(r, "a tensor's name with a slash or \"..\" in it");
    for (size_t i = 0; i < token->bytes; i++) {
        if ((unsigned char)name[i] < 0x20 || name[i] == 0x7F)
            return fail_header(r, "a tensor's name with a control character in it");
    }
    size_t shown = token->bytes < SHOWN_BYTES - 1 ? token->bytes : SHOWN_BYTES - 1;
    memcpy(r->tensor, name, shown);
    r->tensor[shown] = '\0';
    return WEFT_OK;
}

static enum weft_status read_entries(struct reader *r)
{
    bool metadata = false;
    do {
        struct token name;
        WEFT_TRY(read_string(r, "a tensor's name is wanted", &name));
        bool is_metadata = equals_text(&name, "__metadata__");
        if (is_metadata && metadata) return fail_header(r, "__metadata__ stands twice");
        metadata = metadata || is_metadata;
        if (!is_metadata) WEFT_TRY(check_name(r, &name));
        WEFT_TRY(need_character(r, ':', "a colon is wanted"));
        WEFT_TRY(is_metadata ? read_metadata(r) : read_tensor(r, &name));
        r->tensor[0] = '\0';
    } while (take_character(r, ','));
    return WEFT_OK;
}

static enum weft_status read_all(struct reader *r)
{
    if (r->at == r->end || *r->at != '{') return fail_header(r, "a header begins with {");
    r->at++;
    if (!take_character(r, '}')) {
        WEFT_TRY(read_entries(r));
        WEFT_TRY(need_character(r, '}', "a comma or the end of the header is wanted"));
    }
    skip_blanks(r);
    return r->at == r->end ? WEFT_OK
                           : fail_header(r, "something stands after the end of the header");
}

enum weft_status weft_safetensors_header(const char *bytes, size_t length,
                                         struct weft_safetensors *out, struct weft_error *err)
{
    const unsigned char *begin = (const unsigned char *)bytes;
    struct reader r = {
        .begin = begin, .at = begin, .end = begin + length, .path = out->path, .err = err};
    WEFT_TRY(read_all(&r));
    out->tensors = weft_pool_array(&out->pool, (size_t)r.n_tensors, sizeof *out->tensors);
    out->metadata = weft_pool_array(&out->pool, (size_t)r.n_metadata, sizeof *out->metadata);
    if (out->tensors == NULL || out->metadata == NULL) return weft_fail_memory(err, out->path);
    struct reader again = {.begin = begin,
                           .at = begin,
                           .end = begin + length,
                           .path = out->path,
                           .out = out,
                           .err = err};
    WEFT_TRY(read_all(&again));
    out->n_tensors = again.n_tensors;
    out->n_metadata = again.n_metadata;
    return WEFT_OK;
}
