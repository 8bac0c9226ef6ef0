/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>

#include "base/log.h"
#include "cli/command.h"
#include "library/hub/import.h"
#include "report/answer.h"
#include "runtime/train/generate.h"
#include "spec/hub/families.h"

static void tell_notes(const struct weft_config *config)
{
    for (const char *line = config->notes; *line != '\0';) {
        const size_t length = strcspn(line, "\n");
        weft_log(WEFT_LOG_INFO, "%.*s", (int)length, line);
        line += length + (line[length] == '\n');
    }
}

static enum weft_status report_import(const struct weft_cli *cli, const struct weft_config *config,
                                      struct weft_error *err)
{
    struct weft_answer answer = {0};
    weft_answer_word(&answer, "run", cli->output);
    weft_answer_integer(&answer, "layers", config->model->n_layers);
    weft_answer_integer(&answer, "parameters", config->model->parameters);
    const bool generates =
        weft_model_reads_tokens(config->model) && weft_generate_sees_later(config->model) == NULL;
    weft_answer_say(&answer, NULL, "%s: %" PRId64 " parameters in %d layers. Go on with ",
                    cli->output, config->model->parameters, (int)config->model->n_layers);
    if (generates) weft_answer_say(&answer, NULL, "`weft generate %s`, or ", cli->output);
    weft_answer_say(&answer, NULL, "`weft train CONFIG --from %s`\n", cli->output);
    return weft_cli_print_answer(cli, &answer, err);
}

static enum weft_status run_import(const struct weft_cli *cli, struct weft_error *err)
{
    const struct weft_hub_import request = {cli->operands[0], cli->output, cli->overrides,
                                            cli->n_overrides};
    struct weft_config *config = NULL;
    if (cli->output == NULL || strcmp(cli->output, "-") == 0)
        return weft_fail(err, WEFT_E_USAGE, "import: give the run to make with -o RUN");
    enum weft_status status = weft_hub_import(&request, &config, err);
    if (status == WEFT_OK) tell_notes(config);
    if (status == WEFT_OK) status = report_import(cli, config, err);
    weft_config_destroy(config);
    return status;
}

const struct weft_command weft_command_import = {
    .name = "import",
    .usage = "DIR",
    .summary = "a model of Hugging Face as a run with a checkpoint",
    .details =
        "DIR has config.json and model.safetensors, or shards with their index, in F32, BF16 or\n"
        "F16 (" WEFT_HUB_TRAINED_TYPES "). -o RUN is made: config.json in Weft's keys,\n"
        "checkpoints/step-0 with the parameters, and hub/ with config.json and the tokenizer or\n"
        "the preparation of images as they were. `generate`, `export` and `train --from` take RUN "
        "as they take any run.\n"
        "A key whose computation no layer of Weft does is named and refused (exit 65), and so are\n"
        "tensors that are missing, left over, or of another shape. --set changes the keys of\n"
        "RUN/config.json besides the model's. docs/huggingface.md",
    .flags = "--set",
    .least_operands = 1,
    .most_operands = 1,
    .run = run_import,
};
