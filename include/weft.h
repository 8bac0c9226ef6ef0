/* SPDX-License-Identifier: Apache-2.0 */
/* libweft plans and trains models within a memory limit. This is its only header.
 *
 * A struct weft holds one run: the caller's layer kinds, a config, a plan, a rank's share of the
 * machine. One process is one rank. `weft launch -n N PROGRAM` starts N ranks that find each other.
 * A program that is started alone is rank 0 of 1. Every rank calls the functions marked collective,
 * in the same order and with the same arguments.
 *
 * A function that fails returns a status other than WEFT_OK. It writes the fault, its place and a
 * cure to *error, which may be NULL. The library prints nothing, starts no process, takes no signal
 * and never exits. Only one thread at a time may use a struct weft, except for weft_stop. */
#ifndef WEFT_H
#define WEFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_VERSION       "0.2.0"
#define WEFT_VERSION_MAJOR 0
#define WEFT_VERSION_MINOR 2
#define WEFT_VERSION_PATCH 0

#if defined(__GNUC__)
#define WEFT_API                 __attribute__((visibility("default")))
#define WEFT_PRINTF(form, first) __attribute__((format(printf, form, first)))
#else
#define WEFT_API
#define WEFT_PRINTF(form, first)
#endif

/* X(enumerator, exit code, short text). Exit codes follow sysexits.h if it has a fitting one. */
#define WEFT_STATUS_MAP(X)                                                                         \
    X(OK, 0, "ok")                                                                                 \
    X(E_ENVIRONMENT, 1, "failed check of the environment")                                         \
    X(E_USAGE, 64, "wrong usage")                                                                  \
    X(E_DATA, 65, "bad data")                                                                      \
    X(E_NO_INPUT, 66, "input missing")                                                             \
    X(E_LOST, 69, "rank or peer lost")                                                             \
    X(E_INTERNAL, 70, "internal error")                                                            \
    X(E_SYSTEM, 71, "system limit")                                                                \
    X(E_CREATE, 73, "cannot create")                                                               \
    X(E_IO, 74, "input/output error")                                                              \
    X(E_STOPPED, 75, "stopped")                                                                    \
    X(E_DISAGREE, 76, "ranks disagree")                                                            \
    X(E_PERMISSION, 77, "no permission")                                                           \
    X(E_INFEASIBLE, 78, "no plan fits")                                                            \
    X(E_NUMERIC, 79, "numeric failure")                                                            \
    X(E_HANG, 80, "hang")

enum weft_status {
#define WEFT_STATUS_ENUMERATOR(name, code, text) WEFT_##name,
    WEFT_STATUS_MAP(WEFT_STATUS_ENUMERATOR)
#undef WEFT_STATUS_ENUMERATOR
        WEFT_STATUS_COUNT
};

/* The typed reason of a plan that was refused. */
enum weft_lack {
    WEFT_LACK_NONE,
    WEFT_LACK_TIMES,  /* the profile has no times of it */
    WEFT_LACK_MEMORY, /* nothing fits the limit */
    WEFT_LACK_COUNT
};

enum { WEFT_ERROR_TEXT_BYTES = 4092 };

struct weft_error {
    enum weft_status status;
    int exit_code;                    /* of the status, for the program's end */
    char text[WEFT_ERROR_TEXT_BYTES]; /* empty while status is WEFT_OK */
    int of_rank; /* 1 + the rank where an error of all ranks began, also in the text; 0: none */
    enum weft_lack lacks;
    int64_t needs_bytes; /* with WEFT_LACK_MEMORY: the least limit of a rank; 0: not known */
};

WEFT_API int weft_status_exit_code(enum weft_status status);
WEFT_API const char *weft_status_text(enum weft_status status); /* never NULL */

/* Fills *error, unless it is NULL or holds one already, and returns `status`: for callbacks. */
WEFT_API enum weft_status weft_fail(struct weft_error *error, enum weft_status status,
                                    const char *format, ...) WEFT_PRINTF(3, 4);

/* The sink of progress and warnings; without one (NULL) they are dropped. It is called from any
 * thread. A process has one sink. */
enum weft_log_level { WEFT_LOG_DEBUG, WEFT_LOG_INFO, WEFT_LOG_WARNING, WEFT_LOG_LEVEL_COUNT };
typedef void weft_log_fn(void *context, enum weft_log_level level, const char *text);
WEFT_API void weft_log_set_sink(weft_log_fn *sink, void *context);

/* The caller's layers. A kind defines {"type": ..., "hidden": ...} of a config. It reads rows of
 * `hidden` numbers and writes rows of `outputs` numbers: T = samples * seq_len rows in a micro-step
 * of a rank. It is neither the first layer nor the last one, which computes the loss. */

enum weft_dtype { WEFT_F32, WEFT_BF16, WEFT_F16, WEFT_DTYPE_COUNT };
enum weft_init { WEFT_INIT_ZERO, WEFT_INIT_ONE, WEFT_INIT_NORMAL, WEFT_INIT_COUNT };
enum { WEFT_LAYER_TENSORS = 12, WEFT_KIND_KEYS = 8 }; /* at most per layer */

struct weft_layer_facts { /* the layer in question */
    const char *name;     /* "h.3" */
    int64_t hidden;
    const int64_t *keys; /* values of the kind's own keys, in its order */
    int64_t samples, seq_len;
    enum weft_dtype dtype; /* of rows, of weights and of input and output gradients */
    bool frozen;           /* its parameters are not trained */
};

struct weft_layer_tensor {
    const char *name;      /* "weight"; in checkpoints it is LAYER.weight. Copied */
    int64_t rows, columns; /* row-major [rows, columns]; columns 0: a vector [rows] */
    enum weft_init init;
    double init_std; /* of WEFT_INIT_NORMAL, with mean 0 */
    bool decays;     /* weight decay applies */
};

struct weft_layer_shape { /* zeroed before each call */
    int64_t outputs;      /* 0: hidden */
    int32_t n_tensors;
    struct weft_layer_tensor tensors[WEFT_LAYER_TENSORS];
};

struct weft_layer_needs { /* of one micro-step on one rank; zeroed before each call */
    int64_t saved_bytes;  /* forward writes, backward reads */
    int64_t forward_temporary_bytes, backward_temporary_bytes;
    bool backward_reads_input, backward_reads_output; /* kept until then; otherwise NULL */
    double forward_flops, backward_flops;             /* a multiply-add counts 2 */
};

/* Tensors and gradients are aligned to their elements, all other pointers to 64 bytes. A function
 * must write every element of its outputs, and nothing more. */
struct weft_layer_call {
    struct weft_layer_facts facts;
    int64_t rows, outputs;                   /* T, and the width of output rows */
    const void *tensors[WEFT_LAYER_TENSORS]; /* dtype, in the order of the shape */
    const void *input;                       /* [T, hidden] */
    void *output;                            /* [T, outputs]: forward writes it */
    void *saved, *temporary;                 /* of the needed bytes; NULL: 0 bytes */
    const void *output_gradient;             /* backward: [T, outputs] */
    void *input_gradient;                    /* backward: [T, hidden], written */
    enum weft_dtype gradient_dtype;          /* of gradients: f32 or dtype */
    void *gradients[WEFT_LAYER_TENSORS];     /* backward; NULL: frozen, not computed */
    bool accumulate[WEFT_LAYER_TENSORS];     /* true: added to, false: written */
};

struct weft_kind_key {       /* an integer key of a layer in the config */
    const char *name, *text; /* "group", "channels that share a gain" */
    int64_t least, most;     /* both within +-2^53 */
    bool optional;
    int64_t fallback; /* default of an optional key */
};

struct weft_layer_kind {
    const char *type; /* letters, digits, "_"; no type of Weft's */
    const struct weft_kind_key *keys;
    int32_t n_keys;
    uint32_t dtypes; /* 1u << WEFT_F32 ...: dtypes that it computes in */
    void *context;   /* passed to the functions; any thread may call them */
    /* Results depend on the arguments alone, and calls may be repeated. For `shape` the facts'
     * samples, seq_len and dtype are 0. */
    enum weft_status (*shape)(void *context, const struct weft_layer_facts *facts,
                              struct weft_layer_shape *out, struct weft_error *error);
    enum weft_status (*needs)(void *context, const struct weft_layer_facts *facts,
                              struct weft_layer_needs *out, struct weft_error *error);
    enum weft_status (*forward)(void *context, const struct weft_layer_call *call,
                                struct weft_error *error);
    enum weft_status (*backward)(void *context, const struct weft_layer_call *call,
                                 struct weft_error *error);
};

/* A shared object for `weft train --layers FILE` and the other commands that read a config. It
 * exports one symbol:
 *
 *     static const struct weft_layer_kind *const kinds[] = {&gate};
 *     const struct weft_layers weft_layers = {WEFT_LAYERS_ABI, 1, kinds};
 *
 * `weft` opens the object in the planning process and in every rank, and closes it at their end. Of
 * the functions in this header, such an object may call weft_fail, weft_status_text and
 * weft_status_exit_code, which `weft` exports to it. */
enum { WEFT_LAYERS_ABI = 1 }; /* version of the structs above */

struct weft_layers {
    int32_t abi; /* WEFT_LAYERS_ABI */
    int32_t n;   /* kinds, at least 1 */
    const struct weft_layer_kind *const *kinds;
};

/* Defined by the shared object, never by libweft. */
extern WEFT_API const struct weft_layers weft_layers;

/* A run. */

struct weft;

/* The version of the loaded library. WEFT_VERSION is the version of this header. */
WEFT_API const char *weft_version(void);
/* Opens a handle for this process's rank. WEFT_E_ENVIRONMENT under another launcher than Weft's. */
WEFT_API enum weft_status weft_open(struct weft **out, struct weft_error *error);
WEFT_API void weft_close(struct weft *weft); /* accepts NULL */
WEFT_API int32_t weft_rank(const struct weft *weft);
WEFT_API int32_t weft_ranks(const struct weft *weft);

/* Call it before the config is read. `weft` refers to the kind and its strings, so they must
 * outlive it. WEFT_E_USAGE if the kind is incomplete or its type is taken. */
WEFT_API enum weft_status weft_add_kind(struct weft *weft, const struct weft_layer_kind *kind,
                                        struct weft_error *error);

/* A solver for the planner `ilp`. It gets the standard input of weft-solve, a whole program each
 * time, and returns the standard output in memory from malloc. Without a solver the planner uses
 * dual ascent alone, which proves a little less. */
typedef enum weft_status weft_solve_text_fn(void *context, const char *question, size_t length,
                                            char **answer, struct weft_error *error);
WEFT_API void weft_set_solver(struct weft *weft, weft_solve_text_fn *solve, void *context);

/* Reads the config from a file, or from JSON text with paths relative to `directory` (NULL: the
 * working directory). `overrides` are n strings "path.key=value". The number of launched ranks
 * replaces cluster.ranks. The plan and profile of an earlier config are dropped. WEFT_E_NO_INPUT,
 * WEFT_E_DATA with all faults, WEFT_E_USAGE for an override. */
WEFT_API enum weft_status weft_read_config(struct weft *weft, const char *path,
                                           const char *const *overrides, int32_t n,
                                           struct weft_error *error);
WEFT_API enum weft_status weft_take_config(struct weft *weft, const char *json,
                                           const char *directory, const char *const *overrides,
                                           int32_t n, struct weft_error *error);

/* Checks the caller's layers of the config. Compares backward with differences of forward, on
 * random f32 numbers, for up to 256 elements of the input and of each tensor. Checks that all
 * outputs are written and nothing more, and that gradients are accumulated on request. Calls the
 * layers' functions some thousand times, on this rank alone, with the batch of the config; a small
 * one is enough. WEFT_E_NUMERIC names the layer, the tensor and the worst element. */
WEFT_API enum weft_status weft_check_layers(struct weft *weft, struct weft_error *error);

/* Collective: measures this machine. Later plans use the new profile. */
WEFT_API enum weft_status weft_measure_machine(struct weft *weft, struct weft_error *error);

/* Collective: rank 0 plans and shares the plan with all ranks. Measures first if the config has
 * neither cluster.profile nor figures of the device. WEFT_E_INFEASIBLE names a limit that fits. */
WEFT_API enum weft_status weft_make_plan(struct weft *weft, struct weft_error *error);
/* Takes a plan for this config and its profile, made here or by `weft plan`. WEFT_E_DATA for any
 * other. The plan's memory limit counts unless an override gives one. Every rank calls it. It is
 * collective if the machine must be measured first. */
WEFT_API enum weft_status weft_take_plan(struct weft *weft, const char *json,
                                         struct weft_error *error);

/* JSON of the resolved config, of the plan's profile, and of the plan. NULL if there is none, or no
 * memory. `weft` owns the text, which is valid until the next call with it. */
WEFT_API const char *weft_config_json(struct weft *weft);
WEFT_API const char *weft_profile_json(struct weft *weft);
WEFT_API const char *weft_plan_json(struct weft *weft);

struct weft_step { /* result of a step; only the times differ between ranks */
    int64_t step, steps, tokens;
    double loss, norm, lr; /* norm: of the gradient before clipping; negative: not needed */
    int64_t step_ns, exposed_ns;
};

struct weft_run_settings { /* zero selects the defaults */
    /* The run directory, as with `weft train --run`. Rank 0 writes config, plan, profile,
     * metrics.jsonl (a line for each step, evaluation and checkpoint) and result.json. checkpoints/
     * holds the checkpoints by train.checkpoint; the run resumes from the latest one. A run that
     * has ended keeps its files. WEFT_E_CREATE if files of these names do not belong to a run, or
     * if a run has ended there and left no checkpoint, so that its parameters are gone.
     * NULL: nothing is written. */
    const char *directory;
    const char *resume; /* RUN/checkpoints/step-N to start from if there is none yet; or NULL */
    /* The origin, as with `weft train --from`: a run, a checkpoint or a safetensors file. A run
     * without a checkpoint begins with its parameters alone. NULL for none; not together with
     * `resume`. */
    const char *from;
    /* A status other than WEFT_OK ends the run with that status. */
    enum weft_status (*on_step)(void *context, const struct weft_step *step,
                                struct weft_error *error);
    void *context;
};

struct weft_run_result {
    int64_t steps_done, saved_step;      /* -1: none was saved */
    bool stopped;                        /* by weft_stop on any rank, before the last step */
    double first_loss, last_loss;        /* of this call's steps; NaN without steps */
    int64_t step_ns, predicted_step_ns;  /* a median, 0 without steps; the plan's */
    int64_t memory_bytes, planned_bytes; /* of this rank, 0 without steps; the plan's */
    char fingerprint[33];                /* of all parameters; equal runs have equal ones */
};

/* Collective: trains the config's steps by the plan. Makes a plan first if there is none, with the
 * checkpoint's split and order of micro-steps, as `weft train --resume` does. A plan that was made
 * before is kept. */
WEFT_API enum weft_status weft_run(struct weft *weft, const struct weft_run_settings *settings,
                                   struct weft_run_result *out, struct weft_error *error);
/* Asks the current or the next run to end after its step with a checkpoint. A signal handler may
 * call it. All calls until the run has ended are one request, and one rank's call is enough. */
WEFT_API void weft_stop(struct weft *weft);

#ifdef __cplusplus
}
#endif

#endif
