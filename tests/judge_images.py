#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares Weft's ViT with transformers over files in both directions, for small models:

    tests/judge_images.py BUILD/cli/weft [--large]

As judge_hub.py, for ViTForImageClassification: transformers saves a model, `weft import` reads it, and examples/images.py
writes the images. Log-probabilities in f32 must agree within 1e-5 of the largest, the held-out loss within 1e-6 of itself,
and 20 losses of AdamW within 1e-5. `weft export --to hf` must give transformers' own file byte for byte after the import,
and after training a model with Weft's held-out loss within 1e-5. --large adds the shape of ViT-B/16. WEFT_TORCH is an
interpreter with torch and transformers; without them the judge ends with 77."""
import json
import os
import subprocess
import sys
import tempfile

from judge_hub import ADAMW, BATCH, SEED, STEPS, hash_of, philox

IMAGES, HELD_OUT = 96, 16
SMALL = {"hidden_size": 64, "intermediate_size": 176, "num_hidden_layers": 3, "num_attention_heads": 4, "image_size": 32,
         "patch_size": 8, "num_channels": 3, "num_labels": 10}
MODELS = {
    "vit": SMALL,
    "gray, 49 patches": {**SMALL, "num_channels": 1, "image_size": 28, "patch_size": 4, "num_labels": 3},
    "two labels, eps": {**SMALL, "num_labels": 2, "layer_norm_eps": 1e-5, "patch_size": 16},
}
LARGE = {"vit-b/16": {"num_labels": 1000}}
EXAMPLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "examples", "images.py")


def drawn(step, samples):
    """The images of a step, as the trainer draws them."""
    stream = (hash_of(b"data") + step) & ((1 << 64) - 1)
    for sample in range(BATCH):
        low, high = philox((sample, 0, stream & 0xffffffff, stream >> 32), (SEED, 0))
        yield (low | high << 32) * samples >> 64


class Judge:
    def __init__(self, weft, directory, keys):
        import numpy
        import transformers
        self.weft, self.directory = weft, directory
        self.config = transformers.ViTConfig(**keys)
        rng = numpy.random.default_rng(int(os.environ.get("WEFT_TEST_SEED", 1)))
        shape = (IMAGES + HELD_OUT, self.config.num_channels, self.config.image_size, self.config.image_size)
        self.images = rng.integers(0, 256, shape, numpy.uint8)
        self.labels = rng.integers(0, self.config.num_labels, len(self.images))
        for name, first, end in ("train", 0, IMAGES), ("held", IMAGES, IMAGES + HELD_OUT):
            numpy.save(self.at("images.npy"), self.images[first:end])
            numpy.save(self.at("labels.npy"), self.labels[first:end])
            subprocess.run([sys.executable, EXAMPLE, self.at("images.npy"), self.at("labels.npy"), "--patch",
                            str(self.config.patch_size), "-o", self.at(f"{name}.samples")], check=True)

    def at(self, name):
        return os.path.join(self.directory, name)

    def run(self, *words):
        subprocess.run([self.weft, *words], check=True, stdout=subprocess.DEVNULL, cwd=self.directory)

    def batch(self, places):
        """Prepared images, as google/vit's preparation makes them, and labels."""
        import torch
        images = torch.tensor(self.images[places]).float() / 127.5 - 1
        return images, torch.tensor(self.labels[places])

    def train(self, steps, run, lr):
        rows = (self.config.image_size // self.config.patch_size) ** 2 + 1
        config = {"version": 1, "model": self.at("hub/config.json"), "cluster": {"ranks": 1},
                  "train": {"steps": steps, "micro_batch": BATCH, "seq_len": rows, "seed": SEED, "data": "train.samples",
                            "clip_norm": 1.0, "optimizer": {"type": "adamw", **ADAMW, "lr": lr},
                            "validation": {"data": "held.samples", "every": steps, "samples": HELD_OUT},
                            "checkpoint": {"at_end": True}},
                  "plan": {"planner": "all-dp"}}
        with open(self.at("run.json"), "w", encoding="utf-8") as file:
            json.dump(config, file)
        self.run("train", "run.json", "--from", "hub-run", "--run", run, "-q", "--progress=none")
        with open(self.at(f"{run}/metrics.jsonl"), encoding="utf-8") as file:
            losses = [line["loss"] for line in map(json.loads, file) if "loss" in line]
        with open(self.at(f"{run}/result.json"), encoding="utf-8") as file:
            return losses, json.load(file)["validation_loss"]

    def probabilities(self, model):
        """The largest distance of log-probabilities in the first step, as a part of the largest. Weft's are those of the
        gradient of logits, p - 1 at the label, which is divided by the batch later."""
        import numpy
        import torch
        self.run("replay", "still", "--steps", "1..1", "--dump", "layer:head", "--into", "dump")
        images, labels = self.batch(list(drawn(1, IMAGES)))
        with torch.no_grad():
            theirs = torch.log_softmax(model(images).logits.double(), 1).numpy()
        ours = numpy.load(self.at("dump/step-1.micro-0.head.d_logits.npy")).astype("f8")
        ours[numpy.arange(BATCH), labels] += 1
        return float(abs(numpy.log(ours) - theirs).max() / abs(theirs).max())

    def loss_on(self, model):
        import torch
        images, labels = self.batch(slice(IMAGES, None))
        with torch.no_grad():
            return torch.nn.functional.cross_entropy(model(images).logits.double(), labels).item()

    def losses_of(self, model):
        """20 steps with torch's AdamW: matrices decay; vectors and the class token do not."""
        import torch
        vectors = [p for name, p in model.named_parameters() if p.ndim == 1 or name.endswith("cls_token")]
        kept = {id(p) for p in vectors}
        groups = [{"params": [p for p in model.parameters() if id(p) not in kept], "weight_decay": ADAMW["weight_decay"]},
                  {"params": vectors, "weight_decay": 0.0}]
        optimizer = torch.optim.AdamW(groups, lr=ADAMW["lr"], betas=ADAMW["betas"], eps=ADAMW["eps"])
        losses = []
        model.train()
        for step in range(1, STEPS + 1):
            images, labels = self.batch(list(drawn(step, IMAGES)))
            loss = torch.nn.functional.cross_entropy(model(images).logits, labels)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            losses.append(loss.item())
        model.eval()
        return losses

    def judge(self, name):
        """Returns the distances of log-probabilities, of held-out losses, of 20 losses, and of the trained model's."""
        import torch
        from transformers import ViTForImageClassification as Model
        torch.manual_seed(int(os.environ.get("WEFT_TEST_SEED", 1)))
        self.config._attn_implementation = "eager"
        model = Model(self.config).float().eval()
        model.save_pretrained(self.at("hub"))
        self.run("import", "hub", "-o", "hub-run", "-q")
        self.run("export", "hub-run", "--to", "hf", "-o", "back")
        for file in "model.safetensors", "config.json":
            with open(self.at(f"hub/{file}"), "rb") as one, open(self.at(f"back/{file}"), "rb") as other:
                assert one.read() == other.read(), f"{name}: {file} differs"
        theirs = self.loss_on(model)
        _, ours = self.train(1, "still", 0.0)
        logits = self.probabilities(model)
        our_losses, trained = self.train(STEPS, "trained", ADAMW["lr"])
        their_losses = self.losses_of(model)
        self.run("export", "trained", "--to", "hf", "-o", "out")
        again = Model.from_pretrained(self.at("out"), dtype=torch.float32, attn_implementation="eager").eval()
        assert list(again.state_dict()) == list(model.state_dict()), f"{name}: other names"
        # Made without a source, config.json describes the same model.
        os.rename(self.at("hub-run/hub"), self.at("gone"))
        self.run("export", "hub-run", "--to", "hf", "-o", "made")
        made = Model.from_pretrained(self.at("made"), dtype=torch.float32, attn_implementation="eager").eval()
        assert abs(self.loss_on(made) - theirs) < 1e-9, f"{name}: config.json made from the model is another's"
        assert len(our_losses) == STEPS, our_losses
        return (logits, abs(ours - theirs) / theirs,
                max(abs(a - b) / b for a, b in zip(our_losses, their_losses)),
                abs(self.loss_on(again) - trained) / trained)


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
    for name, keys in {**MODELS, **(LARGE if "--large" in sys.argv else {})}.items():
        with tempfile.TemporaryDirectory() as directory:
            logits, loss, steps, out = Judge(os.path.abspath(sys.argv[1]), directory, keys).judge(name)
        failed += not (logits <= 1e-5 and loss <= 1e-6 and steps <= 1e-5 and out <= 1e-5)
        print(f"{name:16} log-probabilities {logits:.1e} apart, held-out loss {loss:.1e}, {STEPS} losses {steps:.1e}, "
              f"exported {out:.1e}", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
