/* SPDX-License-Identifier: Apache-2.0 */
/* Kinds of a config: each fault gives one error, with its place. */
#include <stdio.h>
#include <stdlib.h>

#include "base/rng.h"
#include "tests/effort.h"
#include "tests/layers/recipe/random.h"
#include "tests/spec/config_text.h"

/* Llama's block, short. */
static const char block_keys[] =
    "{\"name\":\"hidden\"},{\"name\":\"heads\"},{\"name\":\"kv_heads\",\"default\":\"heads\"},"
    "{\"name\":\"ffn\"},{\"name\":\"eps\",\"type\":\"number\",\"default\":1e-05}";
static const char block_steps[] =
    "{\"op\":\"norm\",\"kind\":\"rms\",\"in\":\"x\",\"out\":\"norm1\",\"epsilon\":\"eps\","
    "\"name\":\"input_norm\"},\n"
    "{\"op\":\"product\",\"in\":\"norm1\",\"out\":\"qkv\",\"columns\":\"v\",\"name\":\"attn.qkv\"},"
    "\n"
    "{\"op\":\"rope\",\"in\":\"qkv[0:k]\",\"out\":\"turned\",\"head_dim\":\"d\",\"base\":100},\n"
    "{\"op\":\"attend\",\"in\":[\"turned[0:hidden]\",\"turned[hidden:k]\",\"turned[k:v]\"],"
    "\"out\":\"attention\",\"causal\":1,\"heads\":\"heads\",\"kv_heads\":\"kv_heads\","
    "\"head_dim\":\"d\"},\n"
    "{\"op\":\"product\",\"in\":\"attention\",\"out\":\"residual\",\"columns\":\"hidden\","
    "\"add\":\"x\",\"name\":\"attn.o\"},\n"
    "{\"op\":\"norm\",\"kind\":\"rms\",\"in\":\"residual\",\"out\":\"norm2\",\"epsilon\":\"eps\","
    "\"name\":\"post_norm\"},\n"
    "{\"op\":\"product\",\"in\":\"norm2\",\"out\":\"gate_up\",\"columns\":\"2*ffn\","
    "\"name\":\"mlp.gate_up\"},\n"
    "{\"op\":\"gate\",\"kind\":\"silu\",\"in\":[\"gate_up[0:ffn]\",\"gate_up[ffn:2*ffn]\"],"
    "\"out\":\"inner\"},\n"
    "{\"op\":\"product\",\"in\":\"inner\",\"out\":\"y\",\"columns\":\"hidden\",\"add\":"
    "\"residual\","
    "\"name\":\"mlp.down\"}";

enum { TEXT_BYTES = 1 << 17 };

static const char *kinds_config(const char *keys, const char *steps)
{
    static char text[TEXT_BYTES];
    snprintf(
        text, sizeof text,
        "{\"version\":1,\"model\":{\"kinds\":[{\"kind\":\"block\",\"keys\":[%.8000s],\n"
        "\"define\":{\"d\":\"hidden/heads\",\"k\":\"hidden+kv_heads*d\",\"v\":\"k+kv_heads*d\"},\n"
        "\"demands\":[\"heads %% kv_heads == 0\"],\n\"steps\":[%.60000s]}],\n"
        "\"layers\":[{\"name\":\"e\",\"type\":\"embedding\",\"vocab\":64,\"hidden\":16},\n"
        "{\"name\":\"b.{i}\",\"type\":\"block\",\"repeat\":2,\"hidden\":16,\"heads\":4,\"kv_"
        "heads\":"
        "2,\"ffn\":20},\n"
        "{\"name\":\"h\",\"type\":\"lm_head\",\"vocab\":64,\"hidden\":16}]},\n"
        "\"cluster\":{\"ranks\":2},\"train\":{\"micro_batch\":2,\"seq_len\":5}}",
        keys, steps);
    return text;
}

/* The config with the first `from` replaced. */
static const char *changed_config(const char *from, const char *to)
{
    static char text[TEXT_BYTES];
    const char *whole = kinds_config(block_keys, block_steps), *at = strstr(whole, from);
    cr_assert(at != NULL, "no %s", from);
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - whole), whole, to, at + strlen(from));
    return text;
}

static enum weft_status parse_text(const char *text, struct weft_error *err)
{
    struct weft_config *config = NULL;
    const enum weft_status status = parse(text, NULL, &config, err);
    weft_config_destroy(config);
    return status;
}

static void check_refused(const char *text, const char *name, const char *says)
{
    struct weft_error err = {0};
    cr_expect_eq(parse_text(text, &err), WEFT_E_DATA, "%s is not refused", name);
    cr_expect(strstr(err.text, says) != NULL, "%s: %s\nand not: %s", name, err.text, says);
    cr_expect(strchr(err.text, '\n') == NULL, "%s has several errors: %s", name, err.text);
}

Test(kind_read, gives_each_fault_one_error)
{
    static const struct {
        const char *from, *to, *says;
    } cases[] = {
        {"\"op\":\"norm\"", "\"op\":\"normal\"", "steps[0].op: \"normal\""},
        {"\"columns\":\"v\"", "\"columns\":\"widht\"", "no key or definition \"widht\""},
        {"\"in\":\"norm1\"", "\"in\":\"nrom1\"", "makes \"nrom1\"; did you mean \"norm1\"?"},
        {"\"in\":\"norm1\"", "\"in\":\"zzz\"", "makes \"zzz\"; there are x, norm1"},
        {"qkv[0:k]", "qkv[0:k+99]", "\"qkv[0:k+99]\" is columns 0 to 123 of 32"},
        {"qkv[0:k]", "qkv[0;k]", "is no value[from:to]"},
        {"\"columns\":\"hidden\",\"add\":\"x\"", "\"columns\":\"2*hidden\",\"add\":\"x\"",
         "a whole value of 32 columns"},
        {"\"mlp.gate_up\"", "\"attn.qkv\"", "another tensor is named \"attn.qkv.weight\""},
        {"gate_up[ffn:2*ffn]", "gate_up[ffn:2*ffn-1]", "not 20 and 19"},
        {"\"2*ffn\"", "\"ffn/3\"", "20 / 3 leaves a rest"},
        {"\"columns\":\"v\"", "\"columns\":\"__import__('os')\"", "__import__"},
        {"\"out\":\"attention\"", "\"out\":\"qkv\"", "another step makes \"qkv\""},
        {"\"out\":\"y\"", "\"out\":\"z\"", "no step makes \"y\""},
        {"\"in\":\"inner\"", "\"in\":\"norm2\"", "no step reads \"inner\""},
        {"\"out\":\"gate_up\"", "\"out\":[\"gate_up\",\"b\"]", "no second value \"b\""},
        {"\"epsilon\":\"eps\"", "\"epsilon\":\"eps\",\"parts\":3", "3 parts do not divide 16"},
        {"\"kind\":\"rms\",\"in\":\"x\",\"out\":\"norm1\",\"epsilon\":\"eps\"",
         "\"kind\":\"layer\",\"in\":\"x\",\"out\":\"norm1\",\"epsilon\":0",
         "\"epsilon\" is 0; in kind layer it must be above 0"},
        {"\"heads\":\"heads\"", "\"heads\":\"heads+1\"", "5 heads of 4 need another number"},
        {"\"heads\":4", "\"heads\":3",
         "layers[1]: \"heads % kv_heads == 0\" must hold: heads is 3, "
         "kv_heads is 2"},
        {",\"ffn\":20", "", "the key \"ffn\" is missing"},
        {"\"kv_heads\":2", "\"kv_heads\":3", "\"heads % kv_heads == 0\" must hold"},
        {"\"hidden\":16,\"heads\"", "\"hidden\":18,\"heads\"", "18 / 4 leaves a rest"},
        /* Limits and attributes */
        {"\"2*ffn\"", "\"ffn*9223372036854775807\"", "does not fit in 63 bits"},
        {"\"columns\":\"v\"", "\"columns\":\"v\",\"window\":4",
         "steps[1].window: product has no such attribute; it has: op, in, out"},
        {"\"columns\":\"v\"", "\"columns\":\"v\",\"base\":4",
         "steps[1].base: product has no such attribute; did you mean"},
        {"\"columns\":\"v\"", "\"colums\":\"v\"", "unknown key; did you mean \"columns\"?"},
        {"\"columns\":\"v\"", "\"columns\":-1",
         "steps[1].columns: must be an integer of at least 0"},
        {"\"columns\":\"v\"", "\"columns\":[1]", "steps[1].columns: must be"},
        {"\"columns\":\"v\",", "", "\"columns\" is missing"},
        {"\"kind\":\"rms\",", "", "it has a \"kind\": layer, rms"},
        {"\"kind\":\"rms\"", "\"kind\":\"gelu\"", "it has a \"kind\": layer, rms"},
        {"\"kind\":\"rms\"", "\"kind\":\"rsm\"", "\"rsm\""},
        {"\"base\":100", "\"base\":\"heads\"", "no key that is one"},
        {"\"base\":100", "\"base\":0.5", "it must be at least 1"},
        {"\"causal\":1,", "\"window\":4,", "a \"window\" needs \"causal\": 1"},
        {"\"kind\":\"block\"", "\"kind\":\"llama_block\"",
         "kinds[0].kind: there is a type \"llama_block\""},
        {"\"kind\":\"block\"", "\"kind\":\"a-b\"", "kinds[0].kind: \"a-b\" cannot be a type"},
        {"\"type\":\"block\",\"repeat\":2,\"hidden\":16,\"heads\":4,\"kv_heads\":2,\"ffn\":20",
         "\"type\":\"layer_norm\",\"hidden\":16", "kinds[0].kind: no layer has the type \"block\""},
        {"\"name\":\"heads\"}", "\"name\":\"hidden\"}", "two keys are named \"hidden\""},
        {"\"name\":\"ffn\"", "\"name\":\"rows\"", "keys[3].name: every layer or expression has"},
        {"\"name\":\"ffn\"", "\"name\":\"f n\"", "keys[3].name: \"f n\" cannot be a name"},
        {"{\"name\":\"hidden\"},", "", "have no \"hidden\""},
        {"\"default\":\"heads\"", "\"default\":\"haeds\"", "no kv_heads is given, and its default"},
        {"\"default\":1e-05", "\"default\":\"x\"",
         "keys[4].default: is no value of the key's type"},
        {"\"default\":\"heads\"", "\"least\":5", "layers[1].kv_heads: 2 is out of range"},
        {"\"define\":{\"d\"", "\"define\":{\"heads\"",
         "define.heads: two keys are named \"heads\""},
        {"\"out\":\"norm1\"", "\"out\":\"norm-1\"", "steps[0].out: \"norm-1\" cannot be a name"},
        {"\"name\":\"attn.qkv\"", "\"name\":\"../x\"", "steps[1].name: \"../x\" cannot be a name"},
        {"\"in\":\"x\"", "\"in\":[\"x\",\"x\",\"x\",\"x\"]", "steps[0].in: must be a text"},
        {"\"op\":\"norm\",\"kind\":\"rms\",\"in\":\"x\"",
         "\"op\":\"embed\",\"vocab\":9,\"columns\":16,\"in\":\"x\"", "embed has no such attribute"},
    };
    struct weft_error err = {0};
    cr_assert_eq(parse_text(kinds_config(block_keys, block_steps), &err), WEFT_OK, "%s", err.text);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *from = cases[i].from, *to = cases[i].to;
        const bool of_default =
            strstr(cases[i].says, "is given") != NULL || strstr(cases[i].says, "18 / 4") != NULL;
        if (!of_default) {
            check_refused(changed_config(from, to), to, cases[i].says);
            continue;
        }
        /* A default counts if the layer leaves the key out. */
        char text[TEXT_BYTES];
        snprintf(text, sizeof text, "%s", changed_config(from, to));
        char *given = strstr(text, "\"kv_heads\":2,");
        memmove(given, given + strlen("\"kv_heads\":2,"), strlen(given) - 12);
        check_refused(text, to, cases[i].says);
    }
}

/* A chain of `n` steps from x to y, each with the attributes; "#" in them is the step's number. */
static const char *many_steps(const char *attributes, int32_t n)
{
    static char text[TEXT_BYTES];
    const char *number = strchr(attributes, '#');
    size_t used = 0;
    for (int32_t i = 0; i < n; i++) {
        char in[16] = "x", out[16] = "y";
        if (i > 0) snprintf(in, sizeof in, "v%d", (int)i - 1);
        if (i < n - 1) snprintf(out, sizeof out, "v%d", (int)i);
        used += (size_t)snprintf(text + used, sizeof text - used,
                                 "%s{\"in\":\"%s\",\"out\":\"%s\",%.*s%d%s}", i == 0 ? "" : ",", in,
                                 out, (int)(number - attributes), attributes, (int)i, number + 1);
    }
    return text;
}

Test(kind_read, refuses_more_than_its_limits)
{
    static const char product[] = "\"op\":\"product\",\"columns\":\"hidden\",\"name\":\"w#\"";
    static const char norm[] = "\"op\":\"norm\",\"kind\":\"layer\",\"name\":\"n#\"";
    static const char rope[] = "\"op\":\"rope\",\"head_dim\":2,\"base\":1#";
    static const char keys[] = "{\"name\":\"hidden\"},{\"name\":\"heads\"},"
                               "{\"name\":\"kv_heads\",\"default\":\"heads\"},{\"name\":\"ffn\"}";
    struct weft_error err = {0};
    cr_assert_eq(parse_text(kinds_config(keys, many_steps(product, 12)), &err), WEFT_OK, "%s",
                 err.text);
    cr_assert_eq(parse_text(kinds_config(keys, many_steps(rope, 32)), &err), WEFT_OK, "%s",
                 err.text);
    check_refused(kinds_config(keys, many_steps(rope, 33)), "33 steps",
                  "kinds[0].steps: has 33 elements; a recipe has 1 to 32 steps");
    check_refused(kinds_config(keys, many_steps(norm, 7)), "14 tensors", "more than 12 tensors");
    check_refused(kinds_config(keys, ""), "no step", "has 0 elements");
    char many[4000] = "";
    for (int i = 0; i < 16; i++)
        snprintf(many + strlen(many), sizeof many - strlen(many),
                 ",{\"name\":\"k%d\",\"default\":1}", i);
    char all[TEXT_BYTES];
    snprintf(all, sizeof all, "%s%s", keys, many);
    check_refused(kinds_config(all, block_steps), "20 keys",
                  "has 20 elements; a kind has at most 16");
}

/* Texts with random bytes changed: read, or refused with a text. */
Test(kind_read, survives_changed_bytes)
{
    static const char letters[] = "\"{}[]:,0129.-*/%()=ex nykv\\";
    const int32_t cases = TEST_CASES(4000, 400);
    const char *whole = kinds_config(block_keys, block_steps);
    const size_t length = strlen(whole), first = (size_t)(strstr(whole, "kinds") - whole);
    int32_t refused = 0;
    for (int32_t i = 0; i < cases; i++) {
        char text[TEXT_BYTES];
        struct weft_error err = {0};
        memcpy(text, whole, length + 1);
        for (uint64_t k = 0; k <= weft_rng_below(5, 1, (uint64_t)i, 3); k++) {
            const size_t at =
                first + (size_t)weft_rng_below(5, 2 + k, (uint64_t)i, (uint64_t)(length - first));
            text[at] = letters[weft_rng_below(5, 9 + k, (uint64_t)i, sizeof letters - 1)];
        }
        const enum weft_status status = parse_text(text, &err);
        cr_assert(status == WEFT_OK || (status == WEFT_E_DATA && err.text[0] != '\0'), "%s", text);
        refused += status != WEFT_OK;
    }
    cr_assert(refused > cases / 2 && refused < cases, "%d of %d", (int)refused, (int)cases);
}
