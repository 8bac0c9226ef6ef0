/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/emulation/doubles/double.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <map>
#include <set>
#include <string>
#include <unistd.h>

static const char *const check_names[DOUBLE_CHECK_COUNT] = {
    "default-stream", "unpinned",  "never-recorded", "freed-twice", "freed-early", "leak",
    "geometry",       "kernel",    "blocking",       "bounds",      "order",       "behind",
    "collective",     "destroyed", "other-thread",   "misaligned",  "workspace",   "epilogue",
    "layout",         "tf32",      "algorithm",      "atomic",
};

enum { EXIT_OF_FINDINGS = 86 };

/* Never freed: it is used at the program's end. */
struct found {
    std::mutex lock;
    uint32_t enabled = UINT32_MAX;
    int counts[DOUBLE_CHECK_COUNT] = {};
    std::string first[DOUBLE_CHECK_COUNT];
    std::map<std::string, int> calls;
    int dropped = 0; /* candidates so far for WEFT_DOUBLE_DROP */
    std::set<std::pair<std::string, uintptr_t>> places;
    cudaError_t broken = cudaSuccess;
    struct {
        std::string function; /* empty: none */
        int n, code;
        uintptr_t place; /* 0: any */
        std::string how; /* "", "sticky" or "late" */
    } fails;
    bool frees_failed = false; /* freeing failed or became impossible, so leaks mean nothing */
};

static struct found *found(void)
{
    static struct found *const all = new struct found();
    return all;
}

const char *weft_double_check_name(enum double_check check)
{
    return check_names[check];
}

void weft_double_enable(uint32_t checks)
{
    found()->enabled = checks;
}

void weft_double_find(enum double_check check, const char *format, ...)
{
    struct found *all = found();
    char text[512];
    va_list arguments;
    const bool of_frees =
        check == DOUBLE_LEAK || check == DOUBLE_FREED_TWICE || check == DOUBLE_FREED_EARLY;
    if ((all->enabled >> check & 1) == 0 || (of_frees && all->frees_failed)) return;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    const std::lock_guard<std::mutex> guard(all->lock);
    if (all->counts[check]++ == 0) all->first[check] = text;
    if (getenv("WEFT_DOUBLE_STOP") == NULL) return;
    fprintf(stderr, "double: %s: %s\n", check_names[check], text);
    abort();
}

int weft_double_take(enum double_check check, char *text, size_t text_bytes)
{
    struct found *all = found();
    const std::lock_guard<std::mutex> guard(all->lock);
    const int count = all->counts[check];
    snprintf(text, text_bytes, "%s", all->first[check].c_str());
    all->counts[check] = 0;
    all->first[check].clear();
    return count;
}

void weft_double_fail(const char *function, int n, int code)
{
    struct found *all = found();
    const std::lock_guard<std::mutex> guard(all->lock);
    all->calls.clear();
    all->fails = {function != NULL ? function : "", n, code, 0, ""};
}

void weft_double_lose(const char *function, int n, int code)
{
    weft_double_fail(function, n, code);
    found()->fails.how = "sticky";
}

static bool is_for_this_rank(void)
{
    const char *asked = getenv("WEFT_DOUBLE_FAIL_RANK"), *rank = getenv("LOCAL_RANK");
    return asked == NULL || strcmp(asked, rank != NULL ? rank : "") == 0;
}

/* FUNCTION[@PLACE]:N:CODE[:sticky|late] */
__attribute__((constructor)) static void ask_environment(void)
{
    const char *asked = getenv("WEFT_DOUBLE_FAIL");
    char function[64], how[8] = "";
    int n, code;
    if (asked == NULL || !is_for_this_rank() ||
        sscanf(asked, "%63[^:]:%d:%d:%7s", function, &n, &code, how) < 3)
        return;
    char *at = strchr(function, '@');
    if (at != NULL) *at++ = '\0';
    weft_double_fail(function, n, code);
    found()->fails.place = at != NULL ? strtoull(at, NULL, 16) : 0;
    found()->fails.how = how;
}

/* Returns the call's offset in its file, and writes a line for each new place. */
static uintptr_t find_place(struct found *all, const char *function, const void *place)
{
    const char *file = getenv("WEFT_DOUBLE_SITES"), *rank = getenv("LOCAL_RANK");
    Dl_info info = {};
    if (file == NULL && all->fails.place == 0) return 0;
    if (dladdr(place, &info) == 0) return 0;
    const uintptr_t offset = (uintptr_t)place - (uintptr_t)info.dli_fbase;
    if (file == NULL || !all->places.insert({function, offset}).second) return offset;
    FILE *out = fopen(file, "a");
    if (out == NULL) abort();
    fprintf(out, "%s %s %lx %s\n", rank != NULL ? rank : "-", function, (unsigned long)offset,
            info.dli_fname);
    fclose(out);
    return offset;
}

static bool frees(const std::string &function)
{
    static const char *const words[] = {"Free",    "Unmap", "Release",
                                        "Destroy", "Abort", "Unregister"};
    for (const char *word : words) {
        if (function.find(word) != std::string::npos) return true;
    }
    return false;
}

/* Returns the requested code, or 0. Call with the lock held. */
static int look_for_fault(struct found *all, const char *function, const void *place)
{
    const uintptr_t at = find_place(all, function, place);
    const auto &fails = all->fails;
    if (fails.function != function || (fails.place != 0 && fails.place != at)) return 0;
    if (++all->calls[function] != fails.n) return 0;
    if (!fails.how.empty()) {
        all->broken = (cudaError_t)fails.code;
        double_moved.notify_all();
    }
    all->frees_failed = all->frees_failed || frees(fails.function) || !fails.how.empty();
    return fails.how == "late" ? 0 : fails.code;
}

std::shared_mutex &double_running(void)
{
    static std::shared_mutex *const one = new std::shared_mutex();
    return *one;
}

static cudaError_t code_of_call(const char *function, const void *place)
{
    struct found *all = found();
    const std::lock_guard<std::mutex> guard(all->lock);
    const cudaError_t before = all->broken;
    const int code = look_for_fault(all, function, place);
    return code != 0 ? (cudaError_t)code : before;
}

cudaError_t double_enter(const char *function, const void *place)
{
    const cudaError_t code = code_of_call(function, place);
    if (code != cudaSuccess && double_is_broken()) {
        const std::lock_guard<std::shared_mutex> none_runs(double_running());
    }
    return code;
}

int double_asked(const char *function, const void *place)
{
    struct found *all = found();
    const std::lock_guard<std::mutex> guard(all->lock);
    return look_for_fault(all, function, place);
}

bool double_drops(const std::string &what)
{
    static const char *const asked = getenv("WEFT_DOUBLE_DROP");
    struct found *all = found();
    const char *colon = asked != NULL ? strrchr(asked, ':') : NULL;
    if (colon == NULL || what != std::string(asked, (size_t)(colon - asked))) return false;
    const std::lock_guard<std::mutex> guard(all->lock);
    return ++all->dropped == atoi(colon + 1);
}

void double_break(cudaError_t code)
{
    struct found *all = found();
    const std::lock_guard<std::mutex> guard(all->lock);
    if (all->broken == cudaSuccess) all->broken = code;
}

bool double_is_broken(void)
{
    struct found *all = found();
    const std::lock_guard<std::mutex> guard(all->lock);
    return all->broken != cudaSuccess;
}

__attribute__((destructor)) static void tell_findings(void)
{
    struct found *all = found();
    bool any = false;
    weft_double_look_for_leaks();
    for (int i = 0; i < DOUBLE_CHECK_COUNT; i++) {
        if (all->counts[i] == 0) continue;
        any = true;
        fprintf(stderr, "double: %s: %s (%d in all)\n", check_names[i], all->first[i].c_str(),
                all->counts[i]);
    }
    if (!any) return;
    fflush(NULL);
    _exit(EXIT_OF_FINDINGS);
}
