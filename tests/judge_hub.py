#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares Weft with transformers over files in both directions, for small models of each family:

    tests/judge_hub.py BUILD/cli/weft [--large]

transformers saves a model, `weft import` reads it. Logits in f32 must agree within 1e-5 of the largest, the held-out loss
within 1e-6 of itself, and 20 steps of AdamW from the same parameters on the same samples within 1e-5. `weft export --to
hf` must give transformers' own file byte for byte after the import, and after training a model with Weft's held-out
loss within 1e-5: training makes logits larger and the loss smaller, so rounding is a larger part of it. --large adds GPT-2's shape of 124M, and logits of Qwen 2.5's of 0.5B. WEFT_TORCH is an interpreter with torch and
transformers; without them the judge ends with 77."""
import json
import os
import subprocess
import sys
import tempfile

SEQ, SAMPLES, STEPS, BATCH, SEED = 48, 16, 20, 4, 7
MASK, SHARE = 255, 0.3
ADAMW = {"lr": 1e-3, "betas": [0.9, 0.95], "eps": 1e-8, "weight_decay": 0.1}
TEXT, HELD_OUT = "/usr/share/common-licenses/GPL-3", "/usr/share/common-licenses/Apache-2.0"
SIZES = {"vocab_size": 256, "hidden_size": 64, "intermediate_size": 176, "num_hidden_layers": 3,
         "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64}
DEFAULT = {"rope_type": "default", "rope_theta": 10000.0}
SCALED = {"rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 32}
BERT = {**SIZES, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
MODELS = {
    "bert": ("Bert", BERT),
    "gpt2": ("GPT2", {"vocab_size": 256, "n_embd": 64, "n_head": 4, "n_layer": 3, "n_positions": 64, "attn_pdrop": 0.0,
                      "embd_pdrop": 0.0, "resid_pdrop": 0.0}),
    "llama": ("Llama", {**SIZES, "rope_parameters": DEFAULT}),
    "llama 3, tied": ("Llama", {**SIZES, "rope_parameters": SCALED, "tie_word_embeddings": True, "rms_norm_eps": 1e-5}),
    "mistral": ("Mistral", {**SIZES, "rope_parameters": DEFAULT, "sliding_window": 64}),
    "qwen 2.5": ("Qwen2", {**SIZES, "rope_parameters": {**DEFAULT, "rope_theta": 1e6}, "tie_word_embeddings": True}),
    "olmo 2": ("Olmo2", {**SIZES, "rope_parameters": {**DEFAULT, "rope_theta": 500000.0}}),
    "phi 3": ("Phi3", {**SIZES, "rope_parameters": DEFAULT, "sliding_window": 64, "pad_token_id": None}),
    "gemma": ("Gemma", {**SIZES, "head_dim": 32, "num_key_value_heads": 1, "rope_parameters": DEFAULT}),
    "gemma 2": ("Gemma2", {**SIZES, "head_dim": 32, "num_hidden_layers": 4, "rope_parameters": DEFAULT, "sliding_window": 8,
                           "query_pre_attn_scalar": 24, "attn_logit_softcapping": 2.0, "final_logit_softcapping": 1.5}),
    "gemma 3": ("Gemma3", {**SIZES, "head_dim": 32, "num_hidden_layers": 4, "sliding_window": 8, "query_pre_attn_scalar": 24,
                           "sliding_window_pattern": 2}),
    "mistral, windows": ("Mistral", {**SIZES, "rope_parameters": DEFAULT, "sliding_window": 8}),
    "qwen 3": ("Qwen3", {**SIZES, "rope_parameters": {**DEFAULT, "rope_theta": 1e6}, "head_dim": 24}),
}
LARGE = {"gpt2 124M": ("GPT2", {"attn_pdrop": 0.0, "embd_pdrop": 0.0, "resid_pdrop": 0.0})}
UNTRAINED = {"qwen 2.5 0.5B": ("Qwen2", {
    "vocab_size": 151936, "hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 24,
    "num_attention_heads": 14, "num_key_value_heads": 2, "max_position_embeddings": 64, "rms_norm_eps": 1e-6,
    "rope_parameters": {**DEFAULT, "rope_theta": 1e6}, "tie_word_embeddings": True})}


def philox(counter, key):
    """Philox4x32-10."""
    a, b, c, d = counter
    k, m = key
    for _ in range(10):
        even, odd = 0xD2511F53 * a, 0xCD9E8D57 * c
        a, b, c, d = odd >> 32 ^ b ^ k, odd & 0xffffffff, even >> 32 ^ d ^ m, even & 0xffffffff
        k, m = (k + 0x9E3779B9) & 0xffffffff, (m + 0xBB67AE85) & 0xffffffff
    return a, b


def hash_of(word):
    """The upper half of MurmurHash3_x64_128 of up to eight bytes."""
    mask = (1 << 64) - 1

    def mix(k):
        k = (k ^ k >> 33) * 0xff51afd7ed558ccd & mask
        k = (k ^ k >> 33) * 0xc4ceb9fe1a85ec53 & mask
        return k ^ k >> 33

    k = int.from_bytes(word, "little") * 0x87c37b91114253d5 & mask
    one = ((k << 31 | k >> 33) & mask) * 0x4cf5ad432745937f & mask
    one, two = one ^ len(word), len(word)
    one = (one + two) & mask
    two = (two + one) & mask
    return (mix(one) + mix(two)) & mask


def places_of(step, length):
    """The first tokens of a step's samples, as the trainer draws them."""
    stream = (hash_of(b"data") + step) & ((1 << 64) - 1)
    for sample in range(BATCH):
        low, high = philox((sample, 0, stream & 0xffffffff, stream >> 32), (SEED, 0))
        yield (low | high << 32) * (length - SEQ) >> 64


def draw(stream, counter):
    """64 random bits of the trainer."""
    low, high = philox((counter, 0, stream & 0xffffffff, stream >> 32), (SEED, 0))
    return low | high << 32


def masked(name, step, sample, tokens):
    """A sample's input and targets, as the trainer masks it."""
    stream, tokens, targets = (hash_of(name) + step) & ((1 << 64) - 1), tokens.tolist(), []
    for i, token in enumerate(tokens):
        place = 2 * (sample * SEQ + i)
        drawn = (draw(stream, place) >> 11) * 2.0 ** -53
        targets.append(token if drawn < SHARE else -100)
        if drawn < 0.8 * SHARE:
            tokens[i] = MASK
        elif drawn < 0.9 * SHARE:
            tokens[i] = draw(stream, place + 1) * 256 >> 64
    return tokens, targets


def tokens_of(path):
    import torch
    with open(path, "rb") as file:
        return torch.tensor(list(file.read()))


def batch_of(model, samples, name, step):
    """Input and targets: the next tokens, or for BERT the masked ones."""
    import torch
    if model.config.model_type != "bert":
        return torch.stack([sample[:-1] for sample in samples]), torch.stack([sample[1:] for sample in samples])
    pairs = [masked(name, step, i, sample[:-1]) for i, sample in enumerate(samples)]
    return torch.tensor([pair[0] for pair in pairs]), torch.tensor([pair[1] for pair in pairs])


def loss_on(model, samples):
    """The mean loss of a token, in double precision from f32 logits."""
    import torch
    inputs, targets = batch_of(model, samples, b"heldmask", 0)
    total = 0.0
    with torch.no_grad():
        for x, y in zip(inputs, targets):
            logits = model(x[None]).logits[0].double()
            total += torch.nn.functional.cross_entropy(logits, y, reduction="sum").item()
    return total / (targets != -100).sum().item()


def held_out(path):
    tokens = tokens_of(path)
    places = (int(s / (SAMPLES - 1) * (len(tokens) - SEQ - 1)) for s in range(SAMPLES))
    return [tokens[at:at + SEQ + 1] for at in places]


def losses_of(model):
    """20 steps with torch's AdamW: matrices decay, and vectors do not."""
    import torch
    tokens, losses = tokens_of(TEXT), []
    groups = [{"params": [p for p in model.parameters() if p.ndim > 1], "weight_decay": ADAMW["weight_decay"]},
              {"params": [p for p in model.parameters() if p.ndim == 1], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=ADAMW["lr"], betas=ADAMW["betas"], eps=ADAMW["eps"])
    model.train()
    for step in range(1, STEPS + 1):
        samples = [tokens[at:at + SEQ + 1] for at in places_of(step, len(tokens))]
        x, y = batch_of(model, samples, b"mask", step)
        loss = torch.nn.functional.cross_entropy(model(x).logits.flatten(0, 1), y.flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    return losses


def class_of(kind):
    """The class of transformers with a head on the vocabulary."""
    import transformers
    head = {"GPT2": "LMHeadModel", "Bert": "ForMaskedLM"}.get(kind, "ForCausalLM")
    return getattr(transformers, kind + head)


class Judge:
    def __init__(self, weft, directory):
        self.weft, self.directory = weft, directory

    def at(self, name):
        return os.path.join(self.directory, name)

    def run(self, *words):
        subprocess.run([self.weft, *words], check=True, stdout=subprocess.DEVNULL, cwd=self.directory)

    def train(self, model, steps, run, lr):
        config = {"version": 1, "model": self.at(f"{model}/config.json"), "cluster": {"ranks": 1},
                  "train": {"steps": steps, "micro_batch": BATCH, "seq_len": SEQ, "seed": SEED, "data": TEXT,
                            "clip_norm": 1.0, "optimizer": {"type": "adamw", **ADAMW, "lr": lr},
                            "validation": {"data": HELD_OUT, "every": steps, "samples": SAMPLES},
                            "checkpoint": {"at_end": True}},
                  "plan": {"planner": "all-dp"}}
        with open(config["model"], encoding="utf-8") as file:
            if json.load(file)["model_type"] == "bert":
                config["train"]["masked"] = {"token": MASK, "share": SHARE}
        with open(self.at("run.json"), "w", encoding="utf-8") as file:
            json.dump(config, file)
        self.run("train", "run.json", "--from", f"{model}-run", "--run", run, "-q", "--progress=none")
        with open(self.at(f"{run}/metrics.jsonl"), encoding="utf-8") as file:
            losses = [line["loss"] for line in map(json.loads, file) if "loss" in line]
        with open(self.at(f"{run}/result.json"), encoding="utf-8") as file:
            return losses, json.load(file)["validation_loss"]

    def logits(self, model, vocab, sample):
        """The largest distance of a sample's logits, as a part of the largest logit. BERT's do not generate."""
        import numpy
        import torch
        if model.config.model_type == "bert":
            return 0.0
        text = bytes(sample.tolist()).decode() if vocab == 256 else ",".join(map(str, sample.tolist()))
        self.run("generate", "hub-run", "--prompt", text, "--tokens", "1", "--logits", "logits.npy", "-q")
        with torch.no_grad():
            theirs = model(sample[None]).logits[0].numpy()
        ours = numpy.load(self.at("logits.npy"))[:len(sample)]
        assert ours.shape == theirs.shape, (ours.shape, theirs.shape)
        return float(abs(ours - theirs).max() / abs(theirs).max())

    def begin(self, kind, keys):
        """Makes a model, imports it, and returns it with the distance of logits."""
        import torch
        import transformers
        torch.manual_seed(int(os.environ.get("WEFT_TEST_SEED", 1)))
        config = getattr(transformers, f"{kind}{'Text' if kind == 'Gemma3' else ''}Config")(**keys)
        config._attn_implementation = "eager"  # others have no cap of scores
        model = class_of(kind)(config).float().eval()
        model.save_pretrained(self.at("hub"))
        self.run("import", "hub", "-o", "hub-run", "-q")
        return model, self.logits(model, config.vocab_size, held_out(HELD_OUT)[3][:SEQ])

    def judge(self, name, kind, keys):
        """Returns the distances of logits, of held-out losses, of 20 losses, and of the trained model's held-out loss."""
        import torch
        samples = held_out(HELD_OUT)
        model, logits = self.begin(kind, keys)
        self.run("export", "hub-run", "--to", "hf", "-o", "back")
        for file in "model.safetensors", "config.json":
            with open(self.at(f"hub/{file}"), "rb") as one, open(self.at(f"back/{file}"), "rb") as other:
                assert one.read() == other.read(), f"{name}: {file} differs"
        theirs = loss_on(model, samples)
        _, ours = self.train("hub", 1, "still", 0.0)
        our_losses, trained = self.train("hub", STEPS, "trained", ADAMW["lr"])
        their_losses = losses_of(model)
        self.run("export", "trained", "--to", "hf", "-o", "out")
        again = class_of(kind).from_pretrained(self.at("out"), dtype=torch.float32, attn_implementation="eager").eval()
        state, other = again.state_dict(), model.state_dict()
        assert list(state) == list(other), f"{name}: other names"
        # Made without a source, config.json describes the same model.
        os.rename(self.at("hub-run/hub"), self.at("gone"))
        self.run("export", "hub-run", "--to", "hf", "-o", "made")
        made = class_of(kind).from_pretrained(self.at("made"), dtype=torch.float32, attn_implementation="eager").eval()
        assert abs(loss_on(made, samples) - theirs) < 1e-9, f"{name}: config.json made from the model is another's"
        assert len(our_losses) == STEPS, our_losses
        return (logits, abs(ours - theirs) / theirs,
                max(abs(a - b) / b for a, b in zip(our_losses, their_losses)),
                abs(loss_on(again, samples) - trained) / trained)


def main():
    torch = os.environ.get("WEFT_TORCH")
    if torch and os.environ.get("WEFT_JUDGES") is None:
        os.execve(torch, [torch, "-W", "ignore", os.path.abspath(__file__), *sys.argv[1:]],
                  {**os.environ, "WEFT_JUDGES": "1"})
    try:
        import transformers  # noqa: F401
    except ImportError:
        print("skipped: WEFT_TORCH names no interpreter with torch and transformers")
        sys.exit(77)
    failed = 0
    large = "--large" in sys.argv
    for name, (kind, keys) in {**MODELS, **(LARGE if large else {})}.items():
        with tempfile.TemporaryDirectory() as directory:
            logits, loss, steps, out = Judge(os.path.abspath(sys.argv[1]), directory).judge(name, kind, keys)
        failed += not (logits <= 1e-5 and loss <= 1e-6 and steps <= 1e-5 and out <= 1e-5)
        print(f"{name:14} logits {logits:.1e} apart, held-out loss {loss:.1e}, {STEPS} losses {steps:.1e}, "
              f"exported {out:.1e}", flush=True)
    for name, (kind, keys) in UNTRAINED.items() if large else ():
        with tempfile.TemporaryDirectory() as directory:
            _, logits = Judge(os.path.abspath(sys.argv[1]), directory).begin(kind, keys)
        failed += not logits <= 1e-5
        print(f"{name:14} logits {logits:.1e} apart", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
