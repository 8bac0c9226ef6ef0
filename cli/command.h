/* SPDX-License-Identifier: Apache-2.0 */
/* A command is one verb of the program: a row of the table in main.c and one file. Commands return
 * a status and fill an error. Only main.c prints the error and picks the exit code. */
#ifndef WEFT_CLI_COMMAND_H
#define WEFT_CLI_COMMAND_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "base/text.h"

enum { WEFT_CLI_OVERRIDES = 64, WEFT_CLI_OPERANDS = 4096, WEFT_CLI_LAYERS = 16 };

enum weft_progress_choice { WEFT_PROGRESS_AUTO, WEFT_PROGRESS_PLAIN, WEFT_PROGRESS_NONE };
enum weft_color { WEFT_COLOR_AUTO, WEFT_COLOR_ALWAYS, WEFT_COLOR_NEVER };

struct weft_answer;
struct weft_kinds;
struct weft_profile;
struct weft_watch;
struct weft_session;
struct weft_solver_process;

/* How a verb ends besides its status. */
struct weft_cli_ending {
    bool told_elsewhere; /* another process prints the error */
    /* Called after the error is printed; NULL: nothing to do. Returns false if exit handlers may
     * hang: then the process ends without them. */
    bool (*finish)(void);
};

/* The parsed command line; strings are argv's. Parsing refuses a flag that the verb does not
 * take. */
struct weft_cli {
    const char *program; /* argv[0] */
    const char *verb;
    int32_t n_operands;
    const char *operands[WEFT_CLI_OPERANDS];
    int32_t n_overrides;
    const char *overrides[WEFT_CLI_OVERRIDES]; /* --set path.key=value, in order */
    int32_t n_layers;
    const char *layers[WEFT_CLI_LAYERS]; /* --layers FILE, as given */
    const struct weft_kinds *kinds;      /* kinds of these files; NULL without --layers */
    const char *output;                  /* -o */
    int64_t ranks;                       /* -n, --ranks; 0: not given */
    int64_t last_ranks;                  /* of plan: --ranks FIRST..LAST; 0: one number */
    const char *elastic;                 /* --elastic MIN:MAX */
    bool json, quiet, verbose;
    enum weft_progress_choice progress_choice; /* --progress */
    bool progress_given;                       /* --progress also counts with --quiet */
    struct weft_watch *watch;                  /* progress of all work; never NULL */
    enum weft_color color;                     /* --color */
    struct weft_cli_ending *ending;            /* never NULL */
    bool *emitted;                             /* set once stdout has output; never NULL */
    bool *noted;                               /* set once a model's notes are told; never NULL */
    struct weft_solver_process *solver;        /* for all sessions; never NULL */
    const char *memory_limit;                  /* --memory-limit */
    const char *planner;
    const char *target; /* --for */
    const char *work_limit, *time_limit;
    const char *gap;
    const char *profile;  /* --profile, as given */
    const char *model;    /* --model, as given */
    const char *cluster;  /* --cluster, as given */
    const char *clusters; /* --clusters FILE,FILE, of best */
    const char *hf;       /* --hf: the model of a config that Weft makes */
    const char *plan;     /* --plan */
    const char *start;    /* --start, a plan file */
    const char *config;   /* --config */
    const char *trace, *trace_steps, *tensorboard, *report; /* of train; simulate: trace */
    const char *run_directory;                              /* --run */
    const char *resume;                                     /* --resume, "" if bare */
    const char *from;                                       /* --from */
    const char *steps;                                      /* --steps A..B, of replay */
    bool groups;                                            /* --groups, of replay */
    const char *dump, *into; /* --dump layer:NAME and --into DIR, of replay */
    const char *part, *draw; /* of audit */
    const char *disk;        /* --disk */
    const char *clock;       /* --clock wall|virtual */
    const char *sweeps[2];   /* --sweep key=a,b,c */
    int32_t n_sweeps;
    const char *largest, *least;                               /* --largest KEY, --least KEY */
    const char *prompt, *tokens;                               /* --prompt TEXT, --tokens N */
    const char *temperature;                                   /* --temperature T */
    const char *top_k;                                         /* --top-k K */
    bool no_cache, nfc;                                        /* --no-cache, --nfc */
    const char *logits;                                        /* --logits FILE */
    const char *tokenizer;                                     /* --tokenizer FILE */
    const char *field, *kind;                                  /* --field, --kind NAME */
    bool all, list;                                            /* --all, --list */
    const char *data;                                          /* --data FILE */
    bool raw;                                                  /* --raw */
    const char *planners, *points, *limits, *jobs, *csv, *svg; /* of sweep */
    const char *networks, *rival, *to; /* factors; FILE,FILE; of sweep: "all"; of export: target */
    const char *as;                    /* of simulate: the target that runs the plan */
    const char *jitter, *jitter_seed, *jitter_steps; /* of simulate */
    const char *host_points, *host_limits, *repeat;  /* of sweep */
    bool split, measure;                             /* of sweep */
    bool print, program_dump, poison, contention;
    bool snippet, force;            /* of export; force of simulate too */
    const char *dtype, *shard_size; /* of export */
    char settings[8][256];          /* overrides that flags above set */
};

struct weft_command {
    const char *name;
    const char *usage;   /* operands: "CONFIG", "FILE...", "bash|zsh"; "" for none */
    const char *summary; /* one line */
    const char *details; /* paragraphs of `weft help VERB` */
    const char *flags;   /* names of its own flags, separated by spaces */
    int32_t least_operands, most_operands;
    bool starts_ranks; /* starts local ranks. Another launcher's process refuses it */
    bool serves_hosts, measures_hosts; /* always, with --measure: it calls weft_hosts_run. Of other
                                        * verbs an MPI launcher's first task runs alone. */
    bool starts_program; /* all words after the first operand belong to that program */
    bool told_elsewhere; /* the process that started it prints its error */
    enum weft_status (*run)(const struct weft_cli *cli, struct weft_error *err);
};

extern const struct weft_command weft_command_demo, weft_command_init, weft_command_check,
    weft_command_estimate, weft_command_profile, weft_command_plan, weft_command_explain,
    weft_command_verify, weft_command_simulate, weft_command_train, weft_command_replay,
    weft_command_audit, weft_command_sweep, weft_command_best, weft_command_export,
    weft_command_import, weft_command_doctor, weft_command_schema, weft_command_version,
    weft_command_generate, weft_command_data, weft_command_launch, weft_command_completion,
    weft_command_man, weft_command_help, weft_command_rank, weft_command_report,
    weft_command_compare, weft_command_study;

/* Appends the usage, "weft plan CONFIG [flags]". */
void weft_command_add_usage(const struct weft_command *command, struct weft_text *out);

/* All verbs in the order of `weft help`, hidden ones last; NULL at the end. */
extern const struct weft_command *const weft_commands[];

/* Fills *cli from argv, except `emitted`, `noted` and `solver`. WEFT_E_USAGE names a bad flag and
 * the nearest valid one. After an error json is still set if argv has --json anywhere. */
WEFT_MUST_USE enum weft_status weft_cli_parse(int argc, char **argv, struct weft_cli *cli,
                                              const struct weft_command **command,
                                              struct weft_error *err);

/* Copies the command line for a verb that needs no CONFIG: without one, the model of --hf or of
 * --model makes the config, and is operands[0], for messages. WEFT_E_USAGE if there are both, or
 * none. */
WEFT_MUST_USE enum weft_status weft_cli_make_config(const struct weft_cli *cli,
                                                    struct weft_cli *out, struct weft_error *err);

/* WEFT_E_USAGE if flags change a config that the verb did not get (cli->config is NULL). */
WEFT_MUST_USE enum weft_status weft_cli_need_config(const struct weft_cli *cli,
                                                    struct weft_error *err);

/* Opens a session: the config at `path` with the command line's overrides (-n becomes
 * cluster.ranks, --profile cluster.profile), and weft-solve as its solver. The caller closes the
 * session, also after a failure. Errors of weft_config_read. */
WEFT_MUST_USE enum weft_status weft_cli_read_config(const struct weft_cli *cli, const char *path,
                                                    struct weft_session *session,
                                                    struct weft_error *err);

/* Appends "plan.profile.json" for "plan.json": the profile that `weft plan -o` writes. */
void weft_cli_name_profile(const char *plan, struct weft_text *out);
/* Fails for a plan with a config without times: WEFT_E_USAGE. Names that profile if it exists. */
enum weft_status weft_cli_refuse_plan(const char *plan, const char *config, struct weft_error *err);

/* True if times are those of this machine: one node with neither profile nor device figures. */
bool weft_cli_measures(const struct weft_session *session);
/* Measures this machine and logs that. Fails first if the planner is unknown. */
WEFT_MUST_USE enum weft_status weft_cli_measure(const struct weft_session *session,
                                                struct weft_profile **out, struct weft_error *err);

/* Writes `text`, escaped by base/shown.h, to stdout or cli->output. Lines of a report are wrapped
 * for the width of weft_cli_report_init (cli/terminal.h). WEFT_E_IO, WEFT_E_CREATE. */
WEFT_MUST_USE enum weft_status weft_cli_emit(const struct weft_cli *cli,
                                             const struct weft_text *text, struct weft_error *err);

/* weft_cli_emit for verbs with a text as result; --json writes {"text": ...}. */
WEFT_MUST_USE enum weft_status weft_cli_emit_text(const struct weft_cli *cli,
                                                  const struct weft_text *text,
                                                  struct weft_error *err);

/* weft_cli_emit for an answer, as text or with --json as JSON. It finishes the answer. */
WEFT_MUST_USE enum weft_status weft_cli_emit_answer(const struct weft_cli *cli,
                                                    struct weft_answer *answer,
                                                    struct weft_error *err);
/* The same, whatever -o names. */
WEFT_MUST_USE enum weft_status weft_cli_print_answer(const struct weft_cli *cli,
                                                     struct weft_answer *answer,
                                                     struct weft_error *err);

/* weft_cli_emit without escapes, byte for byte. */
WEFT_MUST_USE enum weft_status weft_cli_emit_bytes(const struct weft_cli *cli,
                                                   const struct weft_text *bytes,
                                                   struct weft_error *err);

/* For verbs that make a file: writes `file` to -o, and `report` to stdout. With -o "-" only `file`
 * is written. */
WEFT_MUST_USE enum weft_status weft_cli_emit_file(const struct weft_cli *cli,
                                                  const struct weft_text *file,
                                                  const struct weft_text *report,
                                                  struct weft_error *err);

#endif
