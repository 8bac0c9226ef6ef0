/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/emulation/cases.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <map>
#include <string>
#include <vector>

extern "C" {
#include "base/hash.h"
#include "base/rng.h"
}

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, bytes)
#define ASAN_UNPOISON_MEMORY_REGION(address, bytes)
#endif

enum { ALIGN_BYTES = 256, GUARD_BYTES = 256, GUARD = 0xa5, EMPTY = 0xff };

struct block {
    unsigned char *memory; /* guard, operand, guard */
    size_t data_at, bytes, all_bytes;
    enum emu_mode mode;
    enum emu_type type;
};

static struct emu_options options;
static int n_tests, n_failed_tests, n_failures, n_cases;
static const char *case_name;
static uint64_t seed, draws;
static double worst_error; /* error over its bound */
static std::map<const void *, struct block> *memory_blocks;
static bool hashes; /* the running case is hashed */
static struct weft_hash hashed, hashed_operands;
struct bits {
    std::string results, operands;
};
static std::map<std::string, struct bits> *stored_bits; /* by case */
static std::vector<std::string> *bits_lines;            /* to be written */

static void read_bits(void)
{
    enum { LINE = 256 };
    char line[LINE];
    FILE *file = fopen(options.bits, "r");
    if (file == NULL) {
        fprintf(stderr, "%s cannot be read\n", options.bits);
        exit(66);
    }
    while (fgets(line, LINE, file) != NULL) {
        const std::string text(line, strcspn(line, "\n"));
        const size_t first = text.find(' '), second = text.find(' ', first + 1);
        if (first == std::string::npos || second == std::string::npos) continue;
        (*stored_bits)[text.substr(second + 1)] = {text.substr(0, first),
                                                   text.substr(first + 1, second - first - 1)};
    }
    fclose(file);
}

void emu_begin(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const bool more = i + 1 < argc;
        if (strcmp(argv[i], "--all") == 0) {
            options.thorough = true;
        } else if (strcmp(argv[i], "--table") == 0 && more) {
            options.table = argv[++i];
        } else if (strcmp(argv[i], "--bits") == 0 && more) {
            options.bits = argv[++i];
        } else if (strcmp(argv[i], "--write-bits") == 0 && more) {
            options.new_bits = argv[++i];
        } else {
            fprintf(stderr, "usage: %s [--all] [--table FILE] [--bits FILE] [--write-bits FILE]\n",
                    argv[0]);
            exit(64);
        }
    }
    memory_blocks = new std::map<const void *, struct block>();
    stored_bits = new std::map<std::string, struct bits>();
    bits_lines = new std::vector<std::string>();
    if (options.thorough) options.bits = options.new_bits = NULL;
    if (options.bits != NULL) read_bits();
    emu_runner_open();
}

const struct emu_options *emu_given(void)
{
    return &options;
}

bool emu_thorough(void)
{
    return options.thorough;
}

bool emu_expect(bool is, const char *format, ...)
{
    enum { MOST_LINES = 20 };
    if (is) return true;
    n_failures++;
    if (n_failures > MOST_LINES) return false;
    va_list arguments;
    va_start(arguments, format);
    printf("# %s: ", case_name);
    vprintf(format, arguments);
    printf("\n");
    va_end(arguments);
    return false;
}

bool emu_near(const char *what, double is, double wanted, double most)
{
    const double error = fabs(is - wanted);
    if (error > worst_error * most) worst_error = error / most;
    return emu_expect(error <= most, "%s: %.9g, not %.9g within %.3g", what, is, wanted, most);
}

double emu_uniform(void)
{
    return weft_rng_uniform(seed, 0, draws++);
}

double emu_normal(void)
{
    return weft_rng_normal(seed, 1, draws++);
}

int64_t emu_below(int64_t below)
{
    return (int64_t)weft_rng_below(seed, 2, draws++, (uint64_t)below);
}

static size_t size_of_type(enum emu_type type)
{
    switch (type) {
    case EMU_BYTES:
        break;
    case EMU_F32:
        return 4;
    case EMU_F64:
        return 8;
    case EMU_BF16:
    case EMU_F16:
        return 2;
    }
    return 1;
}

/* An exponent of ones and a mantissa that is not 0. */
static bool is_nan(enum emu_type type, const void *element)
{
    uint64_t bits = 0, infinity = UINT64_MAX;
    switch (type) {
    case EMU_BYTES:
        return false;
    case EMU_F32:
        infinity = UINT64_C(0x7f800000);
        break;
    case EMU_F64:
        infinity = UINT64_C(0x7ff0000000000000);
        break;
    case EMU_BF16:
        infinity = 0x7f80;
        break;
    case EMU_F16:
        infinity = 0x7c00;
        break;
    }
    memcpy(&bits, element, size_of_type(type)); /* processors here are little-endian */
    const uint64_t sign = UINT64_C(1) << (8 * size_of_type(type) - 1);
    return (bits & ~sign) > infinity;
}

bool emu_same_elements(enum emu_type type, size_t bytes, const void *a, const void *b)
{
    const size_t each = size_of_type(type);
    for (size_t i = 0; i < bytes; i += each) {
        const char *x = (const char *)a + i, *y = (const char *)b + i;
        if (memcmp(x, y, each) != 0 && !(is_nan(type, x) && is_nan(type, y))) return false;
    }
    return true;
}

enum emu_type emu_type_at(const void *address)
{
    const auto next = memory_blocks->upper_bound(address);
    if (next == memory_blocks->begin()) return EMU_BYTES;
    const auto block = std::prev(next);
    const bool inside = (const char *)address < (const char *)block->first + block->second.bytes;
    return inside ? block->second.type : EMU_BYTES;
}

void *emu_allocate(const char *name, size_t bytes, size_t shift_bytes, enum emu_mode mode,
                   enum emu_type type)
{
    const size_t data_at = GUARD_BYTES + shift_bytes;
    const size_t all =
        (data_at + bytes + GUARD_BYTES + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES;
    unsigned char *memory = (unsigned char *)emu_runner_allocate(ALIGN_BYTES, all);
    if (memory == NULL) abort();
    memset(memory, GUARD, all);
    memset(memory + data_at, EMPTY, bytes);
    (*memory_blocks)[memory + data_at] = {memory, data_at, bytes, all, mode, type};
    ASAN_POISON_MEMORY_REGION(memory, data_at);
    ASAN_POISON_MEMORY_REGION(memory + data_at + bytes, all - data_at - bytes);
    emu_watch_operand(name, memory + data_at, bytes, mode);
    return memory + data_at;
}

bool emu_guards_hold(const void *data)
{
    const struct block block = memory_blocks->at(data);
    ASAN_UNPOISON_MEMORY_REGION(block.memory, block.all_bytes);
    bool hold = true;
    for (size_t i = 0; i < block.all_bytes; i++) {
        const bool inside = i >= block.data_at && i < block.data_at + block.bytes;
        hold = hold && (inside || block.memory[i] == GUARD);
    }
    return hold;
}

/* All NaNs have one hash. */
struct weft_hash emu_hash(const void *data)
{
    enum { ALL_ONES = 0xff };
    const struct block block = memory_blocks->at(data);
    const size_t each = size_of_type(block.type);
    std::vector<unsigned char> bytes((const unsigned char *)data,
                                     (const unsigned char *)data + block.bytes);
    for (size_t i = 0; i < block.bytes; i += each) {
        if (is_nan(block.type, &bytes[i])) memset(&bytes[i], ALL_ONES, each);
    }
    return weft_hash_bytes(bytes.data(), block.bytes);
}

/* Hashes operands from the last to the first. Random operands use the C library's logarithm and
 * cosine, so another library may change them. */
static void hash_operand(const void *data, const struct block *block)
{
    if (!hashes || block->mode == EMU_SCRATCH) return;
    struct weft_hash *to = block->mode == EMU_READ ? &hashed_operands : &hashed;
    const struct weft_hash two[] = {*to, emu_hash(data)};
    *to = weft_hash_bytes(two, sizeof(two));
}

void emu_release(void *data)
{
    const struct block block = memory_blocks->at(data);
    emu_watch_release(data);
    emu_expect(emu_guards_hold(data), "memory beside an operand of %zu bytes was written",
               block.bytes);
    hash_operand(data, &block);
    memory_blocks->erase(data);
    emu_runner_free(block.memory);
}

void emu_attempt_begin(const char *name, int attempt, bool has_bits)
{
    n_cases += attempt == 0;
    case_name = name;
    n_failures = 0;
    seed = weft_rng_u64(1, (uint64_t)n_cases, (uint64_t)attempt);
    draws = 0;
    hashes = has_bits && attempt == 0;
    hashed = hashed_operands = {};
}

uint64_t emu_attempt_seed(void)
{
    return seed;
}

static std::string shown(struct weft_hash hash)
{
    char text[WEFT_HASH_TEXT_BYTES];
    return weft_hash_show(hash, text);
}

static void compare_bits(void)
{
    if (!hashes) return;
    const struct bits is = {shown(hashed), shown(hashed_operands)};
    const auto stored = stored_bits->find(case_name);
    if (options.new_bits != NULL)
        bits_lines->push_back(is.results + " " + is.operands + " " + case_name);
    if (options.bits == NULL) return;
    if (stored == stored_bits->end()) {
        emu_expect(false, "%s has no bits of this case", options.bits);
        return;
    }
    emu_expect(stored->second.results == is.results, "its results have the hash %s, not %s of %s%s",
               is.results.c_str(), stored->second.results.c_str(), options.bits,
               stored->second.operands == is.operands
                   ? ""
                   : "; and its operands are others than there (the C library's functions)");
}

void emu_attempt_end(const char *where)
{
    compare_bits();
    emu_told(n_failures == 0, "%s (%s)", case_name, where);
}

void emu_told(bool good, const char *format, ...)
{
    va_list arguments;
    n_tests++;
    n_failed_tests += !good;
    printf("%sok %d - ", good ? "" : "not ", n_tests);
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    printf("\n");
    fflush(stdout);
}

static void write_bits(void)
{
    FILE *file = fopen(options.new_bits, "w");
    for (const std::string &line : *bits_lines) {
        if (file != NULL) fprintf(file, "%s\n", line.c_str());
    }
    const bool failed = file == NULL || fclose(file) != 0;
    emu_told(!failed, "%s was written", options.new_bits);
}

int emu_end(std::initializer_list<const char *> kernels)
{
    emu_runner_close(kernels);
    if (options.new_bits != NULL) write_bits();
    if (worst_error > 0) printf("# the worst error is %.2f of its bound\n", worst_error);
    printf("1..%d\n", n_tests);
    printf("# %d tests, %d failed; %s\n", n_tests, n_failed_tests, emu_runner_counts().c_str());
    return n_failed_tests > 0 || n_tests == 0;
}
