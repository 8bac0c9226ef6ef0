#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares encoders on samples of different lengths with transformers, which gets an attention mask:

    tests/judge_padding.py BUILD/cli/weft

BertForMaskedLM comes from transformers by `weft import`; BertForSequenceClassification gets the parameters that Weft
drew. examples/tokens.py writes the samples. Log-probabilities in f32 must agree within 1e-6 of the largest, the held-out
loss within 1e-6 of itself, and 20 losses of AdamW within 1e-5. Without the mask the losses must be others. WEFT_TORCH is
an interpreter with torch and transformers; without them the judge ends with 77."""
import json
import os
import subprocess
import sys
import tempfile

from judge_hub import ADAMW, BATCH, BERT, SEED, SEQ, STEPS, draw, hash_of, philox

SAMPLES, HELD_OUT, PADDING, MASK, SHARE, CLASSES = 64, 16, 0, 255, 0.3, 5
EXAMPLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "examples", "tokens.py")


def drawn(step):
    """The samples of a step, as the trainer draws them."""
    stream = (hash_of(b"data") + step) & ((1 << 64) - 1)
    for sample in range(BATCH):
        low, high = philox((sample, 0, stream & 0xffffffff, stream >> 32), (SEED, 0))
        yield (low | high << 32) * SAMPLES >> 64


def masked(name, step, sample, tokens):
    """A sample's input and targets, as the trainer masks it: no padding is chosen or put in."""
    stream, tokens, targets = (hash_of(name) + step) & ((1 << 64) - 1), tokens.tolist(), []
    for i, token in enumerate(tokens):
        place = 2 * (sample * SEQ + i)
        share = (draw(stream, place) >> 11) * 2.0 ** -53
        chosen = share < SHARE and token != PADDING
        targets.append(token if chosen else -100)
        if chosen and share < 0.8 * SHARE:
            tokens[i] = MASK
        elif chosen and share < 0.9 * SHARE:
            tokens[i] = 1 + (draw(stream, place + 1) * 255 >> 64)
    return tokens, targets


class Judge:
    def __init__(self, weft, directory):
        import numpy
        self.weft, self.directory = weft, directory
        rng = numpy.random.default_rng(int(os.environ.get("WEFT_TEST_SEED", 1)))
        self.tokens = rng.integers(1, 255, (SAMPLES + HELD_OUT, SEQ))
        for row in self.tokens:
            row[rng.integers(1, SEQ + 1):] = PADDING
        self.labels = rng.integers(0, CLASSES, len(self.tokens))
        for name, part in ("train", slice(0, SAMPLES)), ("held", slice(SAMPLES, None)):
            numpy.save(self.at("tokens.npy"), self.tokens[part])
            numpy.save(self.at("labels.npy"), self.labels[part])
            subprocess.run([sys.executable, EXAMPLE, self.at("tokens.npy"), "--labels", self.at("labels.npy"), "-o",
                            self.at(f"{name}.samples")], check=True)

    def at(self, name):
        return os.path.join(self.directory, name)

    def run(self, *words):
        subprocess.run([self.weft, *words], check=True, stdout=subprocess.DEVNULL, cwd=self.directory)

    def train(self, model, source, steps, run, lr, hidden=True):
        train = {"steps": steps, "micro_batch": BATCH, "seq_len": SEQ, "seed": SEED, "data": "train.samples",
                 "clip_norm": 1.0, "optimizer": {"type": "adamw", **ADAMW, "lr": lr},
                 "validation": {"data": "held.samples", "every": steps, "samples": HELD_OUT}, "checkpoint": {"at_end": True}}
        if self.is_masked or hidden:
            train["padding"] = {"token": PADDING, "hidden": hidden}
        if self.is_masked:
            train["masked"] = {"token": MASK, "share": SHARE}
        with open(self.at("run.json"), "w", encoding="utf-8") as file:
            json.dump({"version": 1, "model": model, "cluster": {"ranks": 1}, "train": train,
                       "plan": {"planner": "all-dp"}}, file)
        self.run("train", "run.json", *source, "--run", run, "-q", "--progress=none")
        with open(self.at(f"{run}/metrics.jsonl"), encoding="utf-8") as file:
            losses = [line["loss"] for line in map(json.loads, file) if "loss" in line]
        with open(self.at(f"{run}/result.json"), encoding="utf-8") as file:
            return losses, json.load(file)["validation_loss"]

    def batch(self, places, name, step):
        """Input, its attention mask, and targets."""
        import torch
        tokens = self.tokens[places]
        mask = torch.tensor(tokens != PADDING)
        if not self.is_masked:
            return torch.tensor(tokens), mask, torch.tensor(self.labels[places])
        pairs = [masked(name, step, i, row) for i, row in enumerate(tokens)]
        return torch.tensor([pair[0] for pair in pairs]), mask, torch.tensor([pair[1] for pair in pairs])

    def loss_of(self, model, batch, double=False):
        import torch
        tokens, mask, targets = batch
        logits = model(tokens, attention_mask=mask.long()).logits
        logits = logits.double() if double else logits
        return torch.nn.functional.cross_entropy(logits.flatten(0, -2), targets.flatten())

    def held_out(self, model):
        import torch
        with torch.no_grad():
            return self.loss_of(model, self.batch(slice(SAMPLES, None), b"heldmask", 0), True).item()

    def losses_of(self, model):
        """20 steps with torch's AdamW: matrices decay, and vectors do not."""
        import torch
        groups = [{"params": [p for p in model.parameters() if p.ndim > 1], "weight_decay": ADAMW["weight_decay"]},
                  {"params": [p for p in model.parameters() if p.ndim == 1], "weight_decay": 0.0}]
        optimizer = torch.optim.AdamW(groups, lr=ADAMW["lr"], betas=ADAMW["betas"], eps=ADAMW["eps"])
        losses = []
        model.train()
        for step in range(1, STEPS + 1):
            loss = self.loss_of(model, self.batch(list(drawn(step)), b"mask", step))
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            losses.append(loss.item())
        model.eval()
        return losses

    def probabilities(self, model, run):
        """The largest distance of log-probabilities in the first step, as a part of the largest. Weft's are those of the
        gradient of logits. At the label it is p - 1, which has lost digits, so the other classes are compared."""
        import numpy
        import torch
        self.run("replay", run, "--steps", "1..1", "--dump", "layer:head", "--into", "dump")
        tokens, mask, targets = self.batch(list(drawn(1)), b"mask", 1)
        with torch.no_grad():
            logits = model(tokens, attention_mask=mask.long()).logits.double().flatten(0, -2)
        theirs, targets = torch.log_softmax(logits, 1).numpy(), targets.flatten().numpy()
        ours = numpy.load(self.at("dump/step-1.micro-0.head.d_logits.npy")).astype("f8").reshape(theirs.shape)
        ours, theirs, targets = ours[targets >= 0], theirs[targets >= 0], targets[targets >= 0]
        other = targets[:, None] != numpy.arange(theirs.shape[1])
        return float(abs(numpy.log(ours[other]) - theirs[other]).max() / abs(theirs).max())

    def compare(self, model, of, source):
        """Distances of log-probabilities, of held-out losses, of 20 losses; and of these without the mask."""
        theirs = self.held_out(model)
        _, ours = self.train(of, source, 1, "still", 0.0)
        logits = self.probabilities(model, "still")
        losses, _ = self.train(of, source, STEPS, "trained", ADAMW["lr"])
        other, _ = self.train(of, source, STEPS, "seen", ADAMW["lr"], hidden=False)
        wanted = self.losses_of(model)
        assert len(losses) == STEPS, losses
        return (logits, abs(ours - theirs) / theirs, max(abs(a - b) / b for a, b in zip(losses, wanted)),
                max(abs(a - b) / b for a, b in zip(other, wanted)))

    def masked_tokens(self):
        from transformers import BertConfig, BertForMaskedLM
        self.is_masked = True
        model = BertForMaskedLM(BertConfig(**BERT, pad_token_id=PADDING)).float().eval()
        model.save_pretrained(self.at("hub"))
        self.run("import", "hub", "-o", "hub-run", "-q")
        return self.compare(model, self.at("hub/config.json"), ["--from", "hub-run"])

    def classes(self):
        from safetensors.torch import load_file
        from transformers import BertConfig, BertForSequenceClassification
        self.is_masked = False
        hidden, ffn = BERT["hidden_size"], BERT["intermediate_size"]
        layers = [
            {"name": "wte", "type": "embedding", "vocab": 256, "positions": 64, "hidden": hidden},
            {"name": "types", "type": "token_types", "hidden": hidden, "types": 2},
            {"name": "ln_e", "type": "layer_norm", "hidden": hidden, "eps": 1e-12},
            {"name": "h.{i}", "type": "encoder_block", "repeat": BERT["num_hidden_layers"], "hidden": hidden,
             "heads": BERT["num_attention_heads"], "ffn": ffn, "post_norm": True, "eps": 1e-12},
            {"name": "head", "type": "classifier", "hidden": hidden, "classes": CLASSES, "bias": True, "first": True,
             "pooler": True}]
        self.train({"layers": layers}, [], 1, "drawn", 0.0)
        model = BertForSequenceClassification(BertConfig(**BERT, pad_token_id=PADDING, num_labels=CLASSES)).float().eval()
        model.load_state_dict(names_of_bert(load_file(self.at("drawn/checkpoints/step-1/model.safetensors"))), strict=False)
        return self.compare(model, {"layers": layers}, ["--from", "drawn"])

    def judge(self, name):
        import torch
        torch.manual_seed(int(os.environ.get("WEFT_TEST_SEED", 1)))
        return {"masked tokens": self.masked_tokens, "classes": self.classes}[name]()


def names_of_bert(tensors):
    """Weft's tensors by the names of transformers."""
    of_layer = {"ln1": "attention.output.LayerNorm", "ln2": "output.LayerNorm", "attn.proj": "attention.output.dense",
                "mlp.fc": "intermediate.dense", "mlp.proj": "output.dense"}
    whole = {"wte.tokens": "bert.embeddings.word_embeddings.weight", "wte.positions": "bert.embeddings.position_embeddings.weight",
             "types.table": "bert.embeddings.token_type_embeddings.weight", "ln_e.weight": "bert.embeddings.LayerNorm.weight",
             "ln_e.bias": "bert.embeddings.LayerNorm.bias", "head.weight": "classifier.weight", "head.bias": "classifier.bias",
             "head.pooler.weight": "bert.pooler.dense.weight", "head.pooler.bias": "bert.pooler.dense.bias"}
    out = {}
    for name, tensor in tensors.items():
        if name in whole:
            out[whole[name]] = tensor
            continue
        _, layer, rest = name.split(".", 2)
        kind = rest.rsplit(".", 1)[1]
        stem, prefix = rest.rsplit(".", 1)[0], f"bert.encoder.layer.{layer}"
        if stem == "attn.qkv":
            for part, piece in zip(("query", "key", "value"), tensor.chunk(3)):
                out[f"{prefix}.attention.self.{part}.{kind}"] = piece
        else:
            out[f"{prefix}.{of_layer[stem]}.{kind}"] = tensor
    return out


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
    for name in "masked tokens", "classes":
        with tempfile.TemporaryDirectory() as directory:
            logits, loss, steps, other = Judge(os.path.abspath(sys.argv[1]), directory).judge(name)
        failed += not (logits <= 1e-6 and loss <= 1e-6 and steps <= 1e-5 and other > 1e-4)
        print(f"{name:16} log-probabilities {logits:.1e} apart, held-out loss {loss:.1e}, {STEPS} losses {steps:.1e}, "
              f"without the mask {other:.1e}", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
