/* SPDX-License-Identifier: Apache-2.0 */
#include "text/tokenizer.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "base/utf8.h"
#include "text/split.h"
#include "text/vocabulary.h"

/* GPT-2's pattern, which the pre-tokenizer ByteLevel means. */
static const char byte_level_pattern[] =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

struct added {
    const char *text;
    size_t length;
    int32_t number;
};

struct weft_tokenizer {
    struct weft_pool pool;
    const char *source;
    struct weft_vocabulary vocabulary;
    struct weft_merges merges;
    int32_t of_bytes[256]; /* the token of each byte */
    struct weft_split *split;
    struct added *added; /* [n_added], the longest first */
    int32_t n_added, size, end;
    bool begins_added[256]; /* whether the byte begins one of them */
    bool ignores_merges;    /* a piece that is a token is not split */
    bool wants_nfc;
};

/* Reading */

WEFT_PRINTF(3, 4)
static enum weft_status refuse_file(const struct weft_tokenizer *t, struct weft_error *err,
                                    const char *format, ...)
{
    va_list arguments;
    char text[256];
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return weft_fail(err, WEFT_E_DATA, "%s: %s", t->source, text);
}

/* A member that is absent or null is NULL. */
static const struct weft_json_value *find_member(const struct weft_json_value *object,
                                                 const char *name)
{
    const struct weft_json_value *member = weft_json_member(object, name);
    return member == NULL || weft_json_kind(member) == WEFT_JSON_NULL ? NULL : member;
}

static bool has_flag(const struct weft_json_value *object, const char *name)
{
    bool flag = false;
    (void)weft_json_bool(weft_json_member(object, name), &flag);
    return flag;
}

static const char *type_of(const struct weft_json_value *object)
{
    const char *type = "";
    (void)weft_json_string(weft_json_member(object, "type"), &type);
    return type;
}

static enum weft_status read_number(const struct weft_tokenizer *t,
                                    const struct weft_json_value *value, const char *of,
                                    int32_t *out, struct weft_error *err)
{
    int64_t number = -1;
    if (!weft_json_integer(value, &number) || number < 0 || number >= WEFT_MOST_TOKENS)
        return refuse_file(t, err, "the number of token \"%.60s\" must be from 0 to %d", of,
                           WEFT_MOST_TOKENS - 1);
    *out = (int32_t)number;
    return WEFT_OK;
}

/* Counts tokens, and sets the size. */
static enum weft_status count_tokens(struct weft_tokenizer *t, const struct weft_json_value *vocab,
                                     const struct weft_json_value *added, size_t *count,
                                     struct weft_error *err)
{
    int32_t number = 0;
    const struct weft_json_value *at;
    for (at = weft_json_first(vocab); at != NULL; at = weft_json_next(at), (*count)++) {
        WEFT_TRY(read_number(t, at, weft_json_name(at), &number, err));
        if (number >= t->size) t->size = number + 1;
    }
    for (at = weft_json_first(added); at != NULL; at = weft_json_next(at), t->n_added++) {
        WEFT_TRY(read_number(t, weft_json_member(at, "id"), "added_tokens", &number, err));
        if (number >= t->size) t->size = number + 1;
    }
    *count += (size_t)t->n_added;
    return t->size > 0 ? WEFT_OK : refuse_file(t, err, "its vocabulary is empty");
}

/* Adds a token of the vocabulary, if its characters are bytes. Others are added tokens. */
static enum weft_status add_token(struct weft_tokenizer *t, const struct weft_json_value *entry,
                                  struct weft_error *err)
{
    const char *name = weft_json_name(entry);
    const size_t room = strlen(name);
    int32_t number = 0;
    unsigned char *bytes = weft_pool_array(&t->pool, room + 1, 1);
    if (bytes == NULL) return weft_fail_memory(err, "a vocabulary");
    WEFT_TRY(read_number(t, entry, name, &number, err));
    const int64_t length = weft_alphabet_read(name, bytes, room);
    if (length <= 0) return WEFT_OK;
    if (weft_vocabulary_add(&t->vocabulary, number, bytes, (size_t)length)) return WEFT_OK;
    return refuse_file(t, err, "token %d (\"%.60s\") is there twice", number, name);
}

static enum weft_status read_vocabulary(struct weft_tokenizer *t,
                                        const struct weft_json_value *vocab, struct weft_error *err)
{
    for (const struct weft_json_value *at = weft_json_first(vocab); at != NULL;
         at = weft_json_next(at))
        WEFT_TRY(add_token(t, at, err));
    for (int byte = 0; byte < 256; byte++) {
        const unsigned char one = (unsigned char)byte;
        t->of_bytes[byte] = weft_vocabulary_find(&t->vocabulary, &one, 1);
        if (t->of_bytes[byte] < 0)
            return refuse_file(t, err,
                               "byte %d is no token, so not every text can be encoded: give "
                               "a tokenizer over bytes",
                               byte);
    }
    return WEFT_OK;
}

/* Reads both sides of "a b", or of ["a", "b"], one after the other. */
static bool read_pair(const struct weft_json_value *merge, struct weft_text *text,
                      const char *sides[2])
{
    const char *whole = NULL;
    if (weft_json_string(merge, &whole)) {
        const char *space = strchr(whole, ' ');
        if (space == NULL) return false;
        text->length = 0;
        weft_text_append(text, whole, (size_t)(space - whole));
        sides[0] = weft_text_chars(text);
        sides[1] = space + 1;
        return weft_text_ok(text);
    }
    const struct weft_json_value *first = weft_json_first(merge);
    return weft_json_kind(merge) == WEFT_JSON_ARRAY && weft_json_string(first, &sides[0]) &&
           weft_json_string(weft_json_next(first), &sides[1]);
}

static int32_t find_name(const struct weft_tokenizer *t, const char *name, unsigned char *bytes,
                         size_t room, int64_t *length)
{
    *length = weft_alphabet_read(name, bytes, room);
    return *length > 0 ? weft_vocabulary_find(&t->vocabulary, bytes, (size_t)*length) : -1;
}

static enum weft_status add_merge(struct weft_tokenizer *t, const struct weft_json_value *value,
                                  int32_t rank, struct weft_text *text, struct weft_error *err)
{
    enum { MOST_BYTES = 4096 };
    unsigned char bytes[2 * MOST_BYTES];
    const char *sides[2];
    int64_t left = 0, right = 0;
    if (!read_pair(value, text, sides))
        return refuse_file(t, err, "merge %d must be two tokens", rank);
    struct weft_merge merge = {.rank = rank};
    merge.left = find_name(t, sides[0], bytes, MOST_BYTES, &left);
    merge.right = merge.left < 0 ? -1 : find_name(t, sides[1], bytes + left, MOST_BYTES, &right);
    merge.token =
        merge.right < 0 ? -1 : weft_vocabulary_find(&t->vocabulary, bytes, (size_t)(left + right));
    if (merge.token < 0)
        return refuse_file(t, err,
                           "merge %d is of \"%.40s\" and \"%.40s\", and one of them or both "
                           "together are no token",
                           rank, sides[0], sides[1]);
    weft_merges_add(&t->merges, &merge);
    return WEFT_OK;
}

static enum weft_status read_merges(struct weft_tokenizer *t, const struct weft_json_value *list,
                                    struct weft_error *err)
{
    struct weft_text text;
    enum weft_status status;
    int32_t rank = 0;
    if (list == NULL || weft_json_kind(list) != WEFT_JSON_ARRAY)
        return refuse_file(t, err, "model.merges must be a list");
    WEFT_TRY(weft_merges_init(&t->merges, weft_json_count(list), &t->pool, err));
    weft_text_init(&text);
    status = WEFT_OK;
    for (const struct weft_json_value *at = weft_json_first(list); at != NULL && status == WEFT_OK;
         at = weft_json_next(at))
        status = add_merge(t, at, rank++, &text, err);
    weft_text_finish(&text);
    return status;
}

static int compare_added(const void *a, const void *b)
{
    const struct added *first = a, *second = b;
    return first->length != second->length ? (first->length < second->length ? 1 : -1)
                                           : strcmp(first->text, second->text);
}

static enum weft_status read_added(struct weft_tokenizer *t, const struct weft_json_value *list,
                                   struct weft_error *err)
{
    static const char *const ways[] = {"lstrip", "rstrip", "single_word", "normalized"};
    static const char *const ends[] = {"<|endoftext|>", "<|end_of_text|>"};
    int32_t n = 0;
    t->added = weft_pool_array(&t->pool, (size_t)t->n_added, sizeof *t->added);
    if (t->added == NULL) return weft_fail_memory(err, "added tokens");
    for (const struct weft_json_value *at = weft_json_first(list); at != NULL;
         at = weft_json_next(at), n++) {
        const char *text = "";
        if (!weft_json_string(weft_json_member(at, "content"), &text) || *text == '\0')
            return refuse_file(t, err, "added token %d has no content", n);
        WEFT_TRY(read_number(t, weft_json_member(at, "id"), text, &t->added[n].number, err));
        for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
            if (has_flag(at, ways[i]) && (i < 3 || t->wants_nfc))
                return refuse_file(t, err,
                                   "added token \"%.60s\" is found by %s, which is missing "
                                   "here",
                                   text, ways[i]);
        text = weft_pool_string(&t->pool, text);
        if (text == NULL) return weft_fail_memory(err, "added tokens");
        t->added[n].text = text;
        t->added[n].length = strlen(text);
        t->begins_added[(unsigned char)text[0]] = true;
        for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
            if (strcmp(text, ends[i]) == 0) t->end = t->added[n].number;
    }
    qsort(t->added, (size_t)n, sizeof *t->added, compare_added);
    return WEFT_OK;
}

/* Takes the pattern of a Split, or of a ByteLevel that splits. */
static enum weft_status take_pattern(struct weft_tokenizer *t, const struct weft_json_value *step,
                                     const char **pattern, struct weft_error *err)
{
    const char *type = type_of(step), *behavior = "";
    const bool is_bytes = strcmp(type, "ByteLevel") == 0, is_split = strcmp(type, "Split") == 0;
    bool splits = true;
    if (!is_bytes && !is_split)
        return refuse_file(t, err,
                           "there is no pre-tokenizer \"%.40s\" here: Split by a pattern and "
                           "ByteLevel can be read",
                           type);
    if (is_bytes && has_flag(step, "add_prefix_space"))
        return refuse_file(t, err,
                           "its ByteLevel adds a space before a text, which is missing here");
    if (is_bytes) (void)weft_json_bool(weft_json_member(step, "use_regex"), &splits);
    if (!splits) return WEFT_OK;
    const char *next = is_bytes ? byte_level_pattern : NULL;
    if (is_split) {
        (void)weft_json_string(weft_json_member(step, "behavior"), &behavior);
        if (strcmp(behavior, "Isolated") != 0 || has_flag(step, "invert"))
            return refuse_file(t, err, "its Split must be Isolated and not inverted");
        if (!weft_json_string(weft_json_member(weft_json_member(step, "pattern"), "Regex"), &next))
            return refuse_file(t, err, "its Split has no pattern.Regex");
    }
    if (*pattern != NULL) return refuse_file(t, err, "it splits twice, which is missing here");
    *pattern = next;
    return WEFT_OK;
}

static enum weft_status read_pattern(struct weft_tokenizer *t, const struct weft_json_value *root,
                                     struct weft_error *err)
{
    const struct weft_json_value *pre = find_member(root, "pre_tokenizer");
    const char *pattern = NULL;
    if (pre == NULL) return refuse_file(t, err, "it has no pre_tokenizer");
    if (strcmp(type_of(pre), "Sequence") != 0) {
        WEFT_TRY(take_pattern(t, pre, &pattern, err));
    } else {
        for (const struct weft_json_value *at =
                 weft_json_first(weft_json_member(pre, "pretokenizers"));
             at != NULL; at = weft_json_next(at))
            WEFT_TRY(take_pattern(t, at, &pattern, err));
    }
    if (pattern == NULL) return refuse_file(t, err, "its pre_tokenizer does not split texts");
    return weft_split_create(pattern, t->source, &t->split, err);
}

static enum weft_status check_model(struct weft_tokenizer *t, const struct weft_json_value *root,
                                    struct weft_error *err)
{
    const struct weft_json_value *model = find_member(root, "model"),
                                 *normalizer = find_member(root, "normalizer");
    static const char *const missing[] = {"byte_fallback", "fuse_unk"};
    static const char *const given[] = {"dropout", "continuing_subword_prefix",
                                        "end_of_word_suffix"};
    if (model == NULL || strcmp(type_of(model), "BPE") != 0)
        return refuse_file(t, err, "its model is \"%.40s\": byte-pair encoding (BPE) can be read",
                           model == NULL ? "" : type_of(model));
    for (size_t i = 0; i < sizeof missing / sizeof *missing; i++)
        if (has_flag(model, missing[i]))
            return refuse_file(t, err, "model.%s is missing here", missing[i]);
    for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
        const struct weft_json_value *value = find_member(model, given[i]);
        const char *text = NULL;
        if (value != NULL && !(weft_json_string(value, &text) && *text == '\0'))
            return refuse_file(t, err, "model.%s is missing here", given[i]);
    }
    t->ignores_merges = has_flag(model, "ignore_merges");
    t->wants_nfc = normalizer != NULL && strcmp(type_of(normalizer), "NFC") == 0;
    if (normalizer != NULL && !t->wants_nfc)
        return refuse_file(t, err, "there is no normalizer \"%.40s\" here", type_of(normalizer));
    return WEFT_OK;
}

static enum weft_status read_parts(struct weft_tokenizer *t, const struct weft_json_value *root,
                                   struct weft_error *err)
{
    size_t count = 0;
    WEFT_TRY(check_model(t, root, err));
    const struct weft_json_value *model = weft_json_member(root, "model"),
                                 *vocab = find_member(model, "vocab"),
                                 *added = find_member(root, "added_tokens");
    if (vocab == NULL || weft_json_kind(vocab) != WEFT_JSON_OBJECT)
        return refuse_file(t, err, "model.vocab must be an object of tokens and numbers");
    WEFT_TRY(count_tokens(t, vocab, added, &count, err));
    WEFT_TRY(weft_vocabulary_init(&t->vocabulary, t->size, count, &t->pool, err));
    WEFT_TRY(read_vocabulary(t, vocab, err));
    WEFT_TRY(read_merges(t, weft_json_member(model, "merges"), err));
    WEFT_TRY(read_added(t, added, err));
    return read_pattern(t, root, err);
}

static enum weft_status read_document(const struct weft_json *document, const char *source,
                                      struct weft_tokenizer **out, struct weft_error *err)
{
    struct weft_tokenizer *t = calloc(1, sizeof *t);
    if (t == NULL) return weft_fail_memory(err, "a tokenizer");
    t->end = -1;
    t->source = weft_pool_string(&t->pool, source);
    enum weft_status status = t->source == NULL ? weft_fail_memory(err, "a tokenizer")
                                                : read_parts(t, weft_json_root(document), err);
    if (status == WEFT_OK)
        *out = t;
    else
        weft_tokenizer_destroy(t);
    return status;
}

enum weft_status weft_tokenizer_read(const char *path, struct weft_tokenizer **out,
                                     struct weft_error *err)
{
    struct weft_json *document = NULL;
    WEFT_TRY(weft_json_read(path, &document, err));
    const enum weft_status status = read_document(document, path, out, err);
    weft_json_destroy(document);
    return status;
}

enum weft_status weft_tokenizer_parse(const char *bytes, size_t length, const char *source,
                                      struct weft_tokenizer **out, struct weft_error *err)
{
    struct weft_json *document = NULL;
    WEFT_TRY(weft_json_parse(bytes, length, source, &document, err));
    const enum weft_status status = read_document(document, source, out, err);
    weft_json_destroy(document);
    return status;
}

void weft_tokenizer_destroy(struct weft_tokenizer *t)
{
    if (t == NULL) return;
    weft_split_destroy(t->split);
    weft_pool_finish(&t->pool);
    free(t);
}

int32_t weft_tokenizer_size(const struct weft_tokenizer *t)
{
    return t->size;
}

int32_t weft_tokenizer_end(const struct weft_tokenizer *t)
{
    return t->end;
}

/* Encoding */

struct encoding {
    const struct weft_tokenizer *tokenizer;
    const char *source; /* of the text */
    struct weft_tokens *out;
};

static enum weft_status encode_piece(void *context, const unsigned char *piece, size_t length,
                                     struct weft_error *err)
{
    const struct encoding *encoding = context;
    const struct weft_tokenizer *t = encoding->tokenizer;
    const int32_t whole =
        t->ignores_merges ? weft_vocabulary_find(&t->vocabulary, piece, length) : -1;
    if (length > INT32_MAX / 4)
        return weft_fail(err, WEFT_E_DATA, "%s: a piece of %zu bytes is too long", encoding->source,
                         length);
    if (whole >= 0) return weft_tokens_add(encoding->out, whole, err);
    return weft_merges_apply(&t->merges, t->of_bytes, piece, length, encoding->out, err);
}

/* Ranges that NFC leaves as they are, in any neighbourhood of such characters. */
static const struct {
    uint32_t first, last;
} stable[] = {{0, 0x2ff},         {0x400, 0x482},    {0x48a, 0x52f},   {0x1e00, 0x1e99},
              {0x1e9e, 0x1eff},   {0x2010, 0x2027},  {0x2030, 0x205e}, {0x20a0, 0x20c0},
              {0x2190, 0x2328},   {0x232b, 0x2adb},  {0x3000, 0x3029}, {0x3030, 0x3096},
              {0x309b, 0x30ff},   {0x3400, 0x9fff},  {0xac00, 0xd7a3}, {0xff00, 0xffef},
              {0x1f300, 0x1faff}, {0x20000, 0x2ebe0}};

static bool is_stable(uint32_t code)
{
    for (size_t i = 0; i < sizeof stable / sizeof *stable; i++)
        if (stable[i].first <= code && code <= stable[i].last) return true;
    return false;
}

static enum weft_status check_text(const struct encoding *encoding, const unsigned char *text,
                                   size_t length, bool is_nfc, struct weft_error *err)
{
    const struct weft_tokenizer *t = encoding->tokenizer;
    for (size_t at = 0; at < length;) {
        const size_t taken = weft_utf8_sequence(text + at, length - at);
        if (taken == 0)
            return weft_fail(
                err, WEFT_E_DATA,
                "%s: byte %zu is no UTF-8, and a tokenizer reads text: convert it, or pack bytes",
                encoding->source, at);
        const uint32_t code = weft_utf8_code(text + at, taken);
        if (t->wants_nfc && !is_nfc && !is_stable(code))
            return weft_fail(err, WEFT_E_DATA,
                             "%s: U+%04" PRIX32
                             " at byte %zu may change in the form NFC, which %s asks "
                             "for and Weft does not make: convert the text (Python: "
                             "unicodedata.normalize), and say so with --nfc",
                             encoding->source, code, at, t->source);
        at += taken;
    }
    return WEFT_OK;
}

/* The longest added token at the begin of a text; NULL: none. */
static const struct added *find_added(const struct weft_tokenizer *t, const unsigned char *text,
                                      size_t length)
{
    if (!t->begins_added[text[0]]) return NULL;
    for (int32_t i = 0; i < t->n_added; i++)
        if (t->added[i].length <= length && memcmp(t->added[i].text, text, t->added[i].length) == 0)
            return &t->added[i];
    return NULL;
}

enum weft_status weft_tokenizer_encode(const struct weft_tokenizer *t, const char *text,
                                       size_t length, const char *source, bool is_nfc,
                                       struct weft_tokens *out, struct weft_error *err)
{
    const unsigned char *bytes = (const unsigned char *)text;
    struct encoding encoding = {t, source, out};
    size_t done = 0;
    WEFT_TRY(check_text(&encoding, bytes, length, is_nfc, err));
    for (size_t at = 0; at < length;) {
        const struct added *added = find_added(t, bytes + at, length - at);
        if (added == NULL) {
            at++;
            continue;
        }
        WEFT_TRY(weft_split_text(t->split, bytes + done, at - done, source, encode_piece, &encoding,
                                 err));
        WEFT_TRY(weft_tokens_add(out, added->number, err));
        at += added->length;
        done = at;
    }
    return weft_split_text(t->split, bytes + done, length - done, source, encode_piece, &encoding,
                           err);
}

bool weft_tokenizer_decode(const struct weft_tokenizer *t, int32_t token, struct weft_text *out)
{
    for (int32_t i = 0; i < t->n_added; i++)
        if (t->added[i].number == token) {
            weft_text_append(out, t->added[i].text, t->added[i].length);
            return true;
        }
    if (token < 0 || token >= t->size || t->vocabulary.tokens[token].bytes == NULL) return false;
    const struct weft_token *found = &t->vocabulary.tokens[token];
    weft_text_append(out, (const char *)found->bytes, found->length);
    return true;
}
