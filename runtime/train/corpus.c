/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/corpus.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "runtime/train/corpus_kind.h"
#include "runtime/train/folder.h"
#include "runtime/train/token_width.h"

enum {
    BYTE_VALUES = 256,
    BEYOND_ASCII = 128,
    HEADER_BYTES = 1024,        /* 256 int32 */
    QUESTIONS_MAGIC = 20240522, /* llm.c's multiple-choice questions: no text, no stream */
    /* llm.c's magics are days. The fourth byte of one is 1, so no text begins with it. */
    FIRST_DAY = 20230101,
    LAST_DAY = 20391231
};

/* Forms of token files: GPT-2's and Llama 3's tokens. */
static const struct form {
    int64_t magic, version;
    int32_t token_bytes;
} forms[] = {{20240520, 1, 2}, {20240801, 7, 4}};
enum { N_FORMS = sizeof forms / sizeof *forms };

static enum weft_status fail_file(const char *path, const char *key, int error,
                                  struct weft_error *err)
{
    if (error == ENOENT || error == ENOTDIR) {
        return weft_fail(err, WEFT_E_NO_INPUT,
                         "%s: no such file. %s must be the path of a text or of a token file", path,
                         key);
    }
    if (error == EMFILE || error == ENFILE) {
        return weft_fail(err, WEFT_E_SYSTEM,
                         "%s: cannot be opened: %s. Raise the limit of open files (ulimit -n)",
                         path, strerror(error));
    }
    enum weft_status status = error == EACCES ? WEFT_E_PERMISSION : WEFT_E_IO;
    return weft_fail(err, status, "%s: cannot read the data: %s", path, strerror(error));
}

/* Reads `n` bytes at `at`. If the file ends before, *got tells the bytes read, and the caller
 * explains. */
static enum weft_status read_bytes(const struct weft_corpus *corpus, int64_t at, int64_t n,
                                   unsigned char *out, int64_t *got, struct weft_error *err)
{
    for (*got = 0; *got < n;) {
        ssize_t read = pread(corpus->fd, out + *got, (size_t)(n - *got), (off_t)(at + *got));
        if (read < 0 && errno == EINTR) continue;
        if (read < 0) {
            return weft_fail(err, WEFT_E_IO, "%s: cannot be read at byte %" PRId64 ": %s",
                             corpus->path, at + *got, strerror(errno));
        }
        if (read == 0) break;
        *got += read;
    }
    return WEFT_OK;
}

static int64_t read_int32(const unsigned char *bytes)
{
    uint32_t value =
        bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
    return value <= INT32_MAX ? (int64_t)value : (int64_t)value - (INT64_C(1) << 32);
}

/* Fails for tokens that do not fit the file's form: "...: WHY. To mend it, write its tokens, ...".
 */
static enum weft_status fail_form(const struct weft_corpus *corpus, const char *why,
                                  struct weft_error *err)
{
    struct weft_text cure;
    weft_text_init(&cure);
    weft_token_advise(corpus->vocab, &cure);
    enum weft_status status = weft_text_ok(&cure)
                                  ? weft_fail(err, WEFT_E_DATA, "%s: %s. To mend it, %s",
                                              corpus->path, why, weft_text_chars(&cure))
                                  : weft_fail_memory(err, corpus->path);
    weft_text_finish(&cure);
    return status;
}

/* Whether the bytes are the header's number of tokens in the other form. */
static bool is_other_form(const struct form *form, uint32_t said, int64_t bytes)
{
    const int64_t other = form->token_bytes == 2 ? 4 : 2;
    return said > 0 && bytes == other * (int64_t)said;
}

static enum weft_status check_width(const struct weft_corpus *corpus, const struct form *form,
                                    uint32_t said, int64_t bytes, struct weft_error *err)
{
    if (is_other_form(form, said, bytes))
        return fail_form(corpus,
                         form->token_bytes == 2
                             ? "its header is of 16-bit tokens, and its length is of 32-bit ones"
                             : "its header is of 32-bit tokens, and its length is of 16-bit ones",
                         err);
    /* A model that reads numbers has no vocabulary. */
    const bool has_vocab = corpus->vocab <= INT32_MAX;
    if (form->token_bytes == 2 && has_vocab && corpus->vocab > WEFT_TOKEN_16_BITS)
        return fail_form(corpus,
                         "has tokens of 16 bits, which cannot tell a token from 65536 on from one "
                         "below it, and the vocabulary of the model is larger",
                         err);
    return WEFT_OK;
}

/* The length gives the number of tokens; the header has its lower 32 bits. */
static enum weft_status read_header(struct weft_corpus *corpus, const struct form *form,
                                    const unsigned char *header, int64_t length,
                                    struct weft_error *err)
{
    int64_t version = read_int32(header + 4);
    uint32_t said = (uint32_t)read_int32(header + 8);
    int64_t bytes = length - HEADER_BYTES, tokens = bytes / form->token_bytes;
    if (version != form->version) {
        return weft_fail(err, WEFT_E_DATA,
                         "%s: a token file of magic %" PRId64 " and version %" PRId64
                         ": version %" PRId64 " (%d-bit tokens) is what can be read",
                         corpus->path, form->magic, version, form->version, 8 * form->token_bytes);
    }
    WEFT_TRY(check_width(corpus, form, said, bytes, err));
    if (bytes % form->token_bytes != 0 || (uint32_t)tokens != said) {
        return weft_fail(err, WEFT_E_DATA,
                         "%s: its header says %" PRIu32 " tokens%s, which is %" PRId64
                         " bytes with the header, but the file has %" PRId64
                         ": it was cut short or damaged, so make it again",
                         corpus->path, said, tokens > UINT32_MAX ? " (modulo 2^32)" : "",
                         HEADER_BYTES + form->token_bytes * (int64_t)said, length);
    }
    corpus->tokens = tokens;
    corpus->first_byte = HEADER_BYTES;
    corpus->token_bytes = form->token_bytes;
    return WEFT_OK;
}

static enum weft_status read_as_bytes(struct weft_corpus *corpus, int64_t length,
                                      struct weft_error *err)
{
    corpus->text = true;
    corpus->tokens = length;
    corpus->token_bytes = 1;
    if (corpus->vocab >= BYTE_VALUES) return WEFT_OK;
    return weft_fail(err, WEFT_E_DATA,
                     "%s is a text, which is read as bytes, and the model has a vocabulary of "
                     "%" PRId64 ": set vocab to 256 or more, or give a token file",
                     corpus->path, corpus->vocab);
}

static enum weft_status check_text(const struct weft_corpus *corpus, const char *key,
                                   struct weft_error *err)
{
    struct weft_corpus_look look;
    unsigned char *piece = malloc(WEFT_CORPUS_PIECE_BYTES);
    if (piece == NULL) return weft_fail_memory(err, "a look at the data");
    enum weft_status status = WEFT_OK;
    bool goes_on = true;
    weft_corpus_look_init(&look, corpus->path, corpus->vocab);
    for (int64_t at = 0, got = WEFT_CORPUS_PIECE_BYTES; goes_on && got == WEFT_CORPUS_PIECE_BYTES;
         at += got) {
        status = read_bytes(corpus, at, WEFT_CORPUS_PIECE_BYTES, piece, &got, err);
        goes_on = status == WEFT_OK && weft_corpus_look_add(&look, piece, (size_t)got);
    }
    if (status == WEFT_OK) status = weft_corpus_look_end(&look, key, err);
    free(piece);
    return status;
}

static enum weft_status find_form(struct weft_corpus *corpus, const char *key, int64_t length,
                                  struct weft_error *err)
{
    unsigned char header[HEADER_BYTES] = {0};
    int64_t got;
    WEFT_TRY(read_bytes(corpus, 0, HEADER_BYTES, header, &got, err));
    int64_t magic = got >= 4 ? read_int32(header) : 0;
    if (magic == QUESTIONS_MAGIC) {
        return weft_fail(err, WEFT_E_DATA,
                         "%s: questions with several answers (magic %d), which are no training "
                         "data: give a token file or a text",
                         corpus->path, QUESTIONS_MAGIC);
    }
    for (int f = 0; f < N_FORMS; f++) {
        if (magic != forms[f].magic) continue;
        if (got == HEADER_BYTES) return read_header(corpus, &forms[f], header, length, err);
        return weft_fail(err, WEFT_E_DATA,
                         "%s: a token file of %" PRId64 " bytes, shorter than its header of %d",
                         corpus->path, length, HEADER_BYTES);
    }
    if (weft_sample_file_are(header, got)) {
        WEFT_TRY(
            weft_sample_file_read_header(corpus->path, header, got, length, &corpus->samples, err));
        corpus->tokens = corpus->samples.n * weft_sample_file_words(&corpus->samples);
        corpus->first_byte = HEADER_BYTES;
        corpus->token_bytes = corpus->samples.number_bytes;
        return WEFT_OK;
    }
    if (magic >= FIRST_DAY && magic <= LAST_DAY) {
        return weft_fail(err, WEFT_E_DATA,
                         "%s: begins with %" PRId64
                         ", as a file of llm.c's does, but token files that can be read begin "
                         "with %" PRId64 " or %" PRId64 ": give one of those or a text",
                         corpus->path, magic, forms[0].magic, forms[1].magic);
    }
    WEFT_TRY(check_text(corpus, key, err));
    return read_as_bytes(corpus, length, err);
}

enum weft_status weft_corpus_check_unpacked(const char *path, const unsigned char *head, size_t n,
                                            struct weft_error *err)
{
    struct weft_corpus_look look;
    const int64_t magic = n >= 4 ? read_int32(head) : 0;
    for (int f = 0; f < N_FORMS; f++) {
        if (magic == forms[f].magic)
            return weft_fail(err, WEFT_E_DATA,
                             "%s: is a token file, so it is packed already. Set train.data to it, "
                             "or give the text that it was made from",
                             path);
    }
    if (weft_sample_file_are(head, (int64_t)n))
        return weft_fail(err, WEFT_E_DATA,
                         "%s: is a file of samples, and only texts can be packed. Set train.data "
                         "to it as it is, or give a text",
                         path);
    if (magic >= FIRST_DAY && magic <= LAST_DAY)
        return weft_fail(err, WEFT_E_DATA,
                         "%s: begins with %" PRId64
                         ", as a file of llm.c's does, and only texts can be packed. Give the text "
                         "that it was made from",
                         path, magic);
    weft_corpus_look_init(&look, path, INT32_MAX);
    (void)weft_corpus_look_add(&look, head,
                               n < WEFT_CORPUS_PIECE_BYTES ? n : WEFT_CORPUS_PIECE_BYTES);
    /* Documents such as SVG are texts too. */
    const bool binary =
        look.kind != NULL && (memchr(head, 0, n) != NULL || head[0] >= BEYOND_ASCII);
    return binary ? weft_corpus_look_end(&look, NULL, err) : WEFT_OK;
}

static enum weft_status fail_special(const char *path, const char *key, mode_t mode,
                                     struct weft_error *err)
{
    struct weft_text pattern;
    if (!S_ISDIR(mode))
        return weft_fail(err, WEFT_E_DATA,
                         "%s is not a plain file: samples are read from all over it, so write the "
                         "data to one",
                         path);
    weft_text_init(&pattern);
    const bool has_files = weft_folder_pattern(path, &pattern);
    enum weft_status status =
        has_files ? weft_fail(err, WEFT_E_DATA,
                              "%s is a folder: give its files by a pattern, set %s to %s", path,
                              key, weft_text_chars(&pattern))
                  : weft_fail(err, WEFT_E_DATA,
                              "%s is a folder: set %s to the path of a text or of a token file",
                              path, key);
    weft_text_finish(&pattern);
    return status;
}

static enum weft_status open_file(struct weft_corpus *corpus, const char *key, struct stat *status,
                                  struct weft_error *err)
{
    /* With O_NONBLOCK, since opening a pipe would wait for a writer. */
    corpus->fd = open(corpus->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (corpus->fd < 0) return fail_file(corpus->path, key, errno, err);
    if (fstat(corpus->fd, status) != 0) return fail_file(corpus->path, key, errno, err);
    if (S_ISREG(status->st_mode)) return WEFT_OK;
    return fail_special(corpus->path, key, status->st_mode, err);
}

enum weft_status weft_corpus_open(const char *path, const char *key, enum weft_data_format format,
                                  int64_t vocab, struct weft_corpus *out, struct weft_error *err)
{
    struct weft_corpus corpus = {.path = path, .vocab = vocab};
    struct stat status;
    enum weft_status result = open_file(&corpus, key, &status, err);
    if (result == WEFT_OK) {
        corpus.device = status.st_dev;
        corpus.inode = status.st_ino;
        result = format == WEFT_DATA_BYTES ? read_as_bytes(&corpus, status.st_size, err)
                                           : find_form(&corpus, key, status.st_size, err);
    }
    if (result != WEFT_OK) {
        weft_corpus_close(&corpus);
        return result;
    }
    *out = corpus;
    return WEFT_OK;
}

enum weft_status weft_corpus_reopen(struct weft_corpus *corpus, const char *key,
                                    struct weft_error *err)
{
    struct stat status;
    enum weft_status result = open_file(corpus, key, &status, err);
    int64_t length = corpus->first_byte + corpus->tokens * corpus->token_bytes;
    if (result == WEFT_OK && (status.st_dev != corpus->device || status.st_ino != corpus->inode ||
                              status.st_size != length)) {
        result = weft_fail(err, WEFT_E_DATA,
                           "%s is another file than when the run began, or has another length "
                           "(%" PRId64 " bytes, not %" PRId64 "). Put it back",
                           corpus->path, (int64_t)status.st_size, length);
    }
    if (result != WEFT_OK) weft_corpus_close(corpus);
    return result;
}

void weft_corpus_close(struct weft_corpus *corpus)
{
    if (corpus->fd >= 0) close(corpus->fd);
    corpus->fd = -1;
}

/* No tokenizer has as many tokens: such a number is no token. */
enum { MOST_VOCAB = 1 << 24 };

static enum weft_status fail_token(const struct weft_corpus *corpus, int64_t at, int64_t token,
                                   struct weft_error *err)
{
    return weft_fail(
        err, WEFT_E_DATA,
        "%s: token %" PRId64 " is %" PRId64 ", at byte %" PRId64
        ", and the model has a vocabulary of %" PRId64 ": %s",
        corpus->path, at, token, corpus->first_byte + at * corpus->token_bytes, corpus->vocab,
        token < MOST_VOCAB ? "set vocab to more than the largest token, or use the tokenizer that "
                             "the model is for"
                           : "no tokenizer has such a token, so the file is damaged or its tokens "
                             "have 16 bits; make it again");
}

enum weft_status weft_corpus_read(const struct weft_corpus *corpus, int64_t at, int64_t n,
                                  int32_t *out, struct weft_error *err)
{
    /* The file's bytes are read to the end of `out` and widened from the front. So a token is never
     * written over bytes that are still to be read. */
    int64_t width = corpus->token_bytes, got;
    unsigned char *bytes = (unsigned char *)out + n * ((int64_t)sizeof *out - width);
    WEFT_TRY(read_bytes(corpus, corpus->first_byte + at * width, n * width, bytes, &got, err));
    if (got < n * width) {
        return weft_fail(err, WEFT_E_DATA,
                         "%s ends at byte %" PRId64 ", and had %" PRId64
                         " when the run began: it was cut short meanwhile. Put it back and start "
                         "again",
                         corpus->path, corpus->first_byte + at * width + got,
                         corpus->first_byte + corpus->tokens * width);
    }
    for (int64_t i = 0; i < n; i++) {
        int64_t token = 0;
        for (int64_t b = 0; b < width; b++)
            token |= (int64_t)bytes[i * width + b] << (8 * b);
        if (token >= corpus->vocab && corpus->samples.n == 0)
            return fail_token(corpus, at + i, token, err);
        out[i] = (int32_t)token;
    }
    return WEFT_OK;
}

/* Index of piece i of `n` among `all`, evenly spaced from the first to the last. */
static int64_t find_piece(int64_t i, int64_t n, int64_t all)
{
    return n == all || n == 1 ? i : i * (all - 1) / (n - 1);
}

enum weft_status weft_corpus_check(const struct weft_corpus *corpus, int64_t pieces,
                                   struct weft_error *err)
{
    int64_t count = WEFT_CORPUS_CHECKED_BYTES / corpus->token_bytes;
    int64_t all = (corpus->tokens + count - 1) / count, n = pieces < all ? pieces : all;
    if (corpus->text || corpus->samples.n > 0) return WEFT_OK;
    int32_t *tokens = malloc((size_t)count * sizeof *tokens);
    if (tokens == NULL) return weft_fail_memory(err, "a look at the data");
    enum weft_status status = WEFT_OK;
    for (int64_t i = 0; i < n && status == WEFT_OK; i++) {
        int64_t at = find_piece(i, n, all) * count, left = corpus->tokens - at;
        const int64_t part = left < count ? left : count;
        status = weft_corpus_read(corpus, at, part, tokens, err);
        if (status == WEFT_OK && weft_token_halves(tokens, part))
            status = fail_form(corpus,
                               corpus->token_bytes == 2
                                   ? "every second token is 0, so it has tokens of 32 bits after a "
                                     "header of 16-bit ones"
                                   : "every second token is 0, so it has tokens of 64 bits after a "
                                     "header of 32-bit ones",
                               err);
    }
    free(tokens);
    return status;
}

/* Hashes the hash so far and the piece. */
static enum weft_status hash_piece(const struct weft_corpus *corpus, int64_t at, int64_t n,
                                   unsigned char *buffer, struct weft_hash *hash,
                                   struct weft_error *err)
{
    int64_t got;
    memcpy(buffer, hash, sizeof *hash);
    WEFT_TRY(read_bytes(corpus, at, n, buffer + sizeof *hash, &got, err));
    *hash = weft_hash_bytes(buffer, sizeof *hash + (size_t)got);
    return WEFT_OK;
}

enum weft_status weft_corpus_hash(const struct weft_corpus *corpus, int64_t pieces,
                                  struct weft_hash *out, struct weft_error *err)
{
    enum { PIECE = WEFT_CORPUS_HASHED_BYTES };
    int64_t bytes = corpus->first_byte + corpus->tokens * corpus->token_bytes;
    int64_t all = (bytes + PIECE - 1) / PIECE, n = pieces < all ? pieces : all;
    struct weft_hash hash = {(uint64_t)bytes, (uint64_t)corpus->token_bytes};
    unsigned char *buffer = malloc(sizeof hash + PIECE);
    if (buffer == NULL) return weft_fail_memory(err, "the hash of the data");
    enum weft_status status = WEFT_OK;
    for (int64_t i = 0; i < n && status == WEFT_OK; i++) {
        int64_t at = find_piece(i, n, all) * PIECE, left = bytes - at;
        status = hash_piece(corpus, at, left < PIECE ? left : PIECE, buffer, &hash, err);
    }
    free(buffer);
    if (status == WEFT_OK) *out = hash;
    return status;
}
