/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the emulated kernel for each name that nvcc's host code registers. */
#include "tests/emulation/doubles/launches.h"

#include <cstdlib>
#include <cstring>
#include <cxxabi.h>
#include <dlfcn.h>
#include <map>
#include <string>

#include "tests/emulation/emu.h"
#include "tests/emulation/run.h"

struct registered {
    std::string name; /* mangled */
    const void *code; /* NULL: not looked for yet, or not found */
    const struct emu_signature *signature;
};

static std::map<const void *, struct registered> &kernels(void)
{
    static auto *const all = new std::map<const void *, struct registered>();
    return *all;
}

/* Only one thread at a time may launch an emulated kernel. */
static std::mutex emulator;

static std::string demangled(const char *name)
{
    char *readable = abi::__cxa_demangle(name, NULL, NULL, NULL);
    const std::string text = readable != NULL ? readable : name;
    free(readable);
    return text;
}

/* Returns the parameters of a demangled function, "(float*, long)". */
static std::string parameters_of(const std::string &function)
{
    size_t at = function.size();
    for (int open = 0; at > 0;) {
        at--;
        open += (function[at] == ')') - (function[at] == '(');
        if (open == 0) break;
    }
    return function.substr(at);
}

static void *handle_of_this_library(void)
{
    Dl_info info;
    if (dladdr((const void *)handle_of_this_library, &info) == 0) return NULL;
    return dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
}

static void look_for_kernel(struct registered *kernel)
{
    static void *const library = handle_of_this_library();
    const std::string wanted = parameters_of(demangled(kernel->name.c_str()));
    kernel->code = library != NULL ? dlsym(library, kernel->name.c_str()) : NULL;
    for (const struct emu_signature *signature : emu_run_signatures()) {
        if (parameters_of(demangled(signature->type)) == wanted) kernel->signature = signature;
    }
    if (kernel->code == NULL || kernel->signature == NULL) {
        weft_double_find(DOUBLE_KERNEL, "there is no emulated kernel %s",
                         demangled(kernel->name.c_str()).c_str());
        kernel->code = NULL;
    }
}

static struct registered *kernel_of(const void *host)
{
    const auto found = kernels().find(host);
    if (found == kernels().end()) return NULL;
    if (found->second.code == NULL) look_for_kernel(&found->second);
    return found->second.code != NULL ? &found->second : NULL;
}

static const void *code_of(const void *host)
{
    const struct registered *kernel = kernel_of(host);
    return kernel != NULL ? kernel->code : host;
}

void double_kernel_add(const void *host, const char *name)
{
    const std::lock_guard<std::mutex> guard(emulator);
    const char *gpu = getenv("WEFT_DOUBLE_GPU");
    const struct emu_target *target = gpu != NULL ? emu_target_named(gpu) : NULL;
    if (kernels().empty() && target != NULL) emu_set_target(target);
    emu_hooks.code_of = code_of;
    kernels()[host] = {name, NULL, NULL};
}

static bool take_findings(void)
{
    bool any = false;
    for (const struct emu_finding &finding : emu_take_findings()) {
        weft_double_find(finding.check == EMU_LIMITS ? DOUBLE_GEOMETRY : DOUBLE_KERNEL, "%s",
                         finding.text.c_str());
        any = true;
    }
    return any;
}

cudaError_t double_kernel_prepare(const void *host, dim3 grid, dim3 block, size_t shared_bytes,
                                  void **arguments, std::string *name,
                                  std::function<void(uint32_t id)> *run)
{
    const std::lock_guard<std::mutex> guard(emulator);
    const struct registered *kernel = kernel_of(host);
    if (kernel == NULL) return cudaErrorInvalidDeviceFunction;
    const bool refused = emu_run_refuses(kernel->code, grid, block, shared_bytes);
    take_findings();
    if (refused) return cudaErrorInvalidConfiguration;
    const struct emu_signature *signature = kernel->signature;
    const std::shared_ptr<void> values(signature->copy(arguments), signature->drop);
    const void *code = kernel->code;
    *name = demangled(kernel->name.c_str());
    *run = [=](uint32_t id) {
        const std::lock_guard<std::mutex> running(emulator);
        const struct emu_kernel what = {code, signature->call, values.get(), signature->bytes};
        double_watch(id);
        const cudaError_t error = emu_launch(&what, grid, block, shared_bytes, NULL);
        double_watch(0);
        take_findings();
        if (error != cudaSuccess) double_break(cudaErrorLaunchFailure);
    };
    return cudaSuccess;
}
