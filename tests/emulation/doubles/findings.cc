#include "tests/emulation/doubles/double.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <unistd.h>

static const char *const check_names[DOUBLE_CHECK_COUNT] = {
    "default-stream", "unpinned",  "never-recorded", "freed-twice", "freed-early", "leak",
    "geometry",       "kernel",    "blocking",       "bounds",      "order",       "behind",
    "collective",     "destroyed", "other-thread",   "misaligned",  "workspace",   "epilogue",
    "layout",         "tf32",      "algorithm",      "atomic",
};

enum { EXIT_OF_FINDINGS = 86 };

/* Never freed: the end of the program comes to it. */
struct found {
    std::mutex lock;
    uint32_t enabled = UINT32_MAX;
    int counts[DOUBLE_CHECK_COUNT] = {};
    std::string first[DOUBLE_CHECK_COUNT];
    std::map<std::string, int> calls;
    cudaError_t broken = cudaSuccess;
    struct {
        std::string function; /* empty: none */
        int n, code;
    } fails;
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
    if ((all->enabled >> check & 1) == 0) return;
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
    all->fails = {function != NULL ? function : "", n, code};
}

/* FUNCTION:N:CODE */
__attribute__((constructor)) static void ask_environment(void)
{
    const char *asked = getenv("WEFT_DOUBLE_FAIL");
    char function[64];
    int n, code;
    if (asked != NULL && sscanf(asked, "%63[^:]:%d:%d", function, &n, &code) == 3)
        weft_double_fail(function, n, code);
}

cudaError_t double_enter(const char *function)
{
    struct found *all = found();
    const std::lock_guard<std::mutex> guard(all->lock);
    const bool fails = ++all->calls[function] == all->fails.n && all->fails.function == function;
    return fails ? (cudaError_t)all->fails.code : all->broken;
}

void double_break(cudaError_t code)
{
    struct found *all = found();
    const std::lock_guard<std::mutex> guard(all->lock);
    if (all->broken == cudaSuccess) all->broken = code;
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
