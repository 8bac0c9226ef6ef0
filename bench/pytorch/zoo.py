#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plans for public models at tiny sizes, trained on gloo ranks: bits, order and peak.

    PYTHONPATH=python WEFT=build/cli/weft bench/pytorch/zoo.py [--models gpt2,llama] [--seed 7] [--ranks 2] [--steps 3]

Each model trains by FSDP2's default on the units of the plan, and by a plan at the default's measured peak, 1.02 of it if no
plan is below. A line says whether losses and parameters are the default's to the bit, whether the order is the planned one, the
measured peak over the plan's, and Weft's figure of FSDP2's own rule over the default's measured peak. Models with dropout run
with it: seeds are set before each step. Exit code 1 if bits or an order differ or a peak is above its plan.
"""
import argparse
import hashlib
import os
import random
import subprocess
import sys
import tempfile
import warnings
from contextlib import nullcontext
from pathlib import Path

import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard

import weft

SYMBOLS, TOKENS, BATCH = 256, 48, 2


def make_tokens(**more):
    tokens = torch.randint(3, SYMBOLS, (BATCH, TOKENS))
    return {"input_ids": tokens, "labels": tokens, **more}


def language(name, **changes):
    """A causal or masked model of transformers, by the names of its config and of its class."""
    def make():
        import transformers
        config = getattr(transformers, f"{name[0]}Config")(vocab_size=SYMBOLS, **changes)
        return getattr(transformers, name[1])(config)
    return make, make_tokens


def picture(name, **changes):
    def make():
        import torchvision
        return getattr(torchvision.models, name)(num_classes=10, **changes)
    return make, lambda: (torch.randn(4, 3, 64, 64), torch.randint(0, 10, (4,)))


def adapters():
    import peft
    make, batch = MODELS["llama"]
    return (lambda: peft.get_peft_model(make(), peft.LoraConfig(r=4, target_modules=["q_proj", "v_proj"]))), batch


LLAMA = {"hidden_size": 128, "intermediate_size": 352, "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2}
BERT = {"hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4}
MODELS = {
    "gpt2": language(("GPT2", "GPT2LMHeadModel"), n_embd=128, n_layer=4, n_head=4, n_positions=64),
    "llama": language(("Llama", "LlamaForCausalLM"), **LLAMA),
    "qwen2": language(("Qwen2", "Qwen2ForCausalLM"), **LLAMA, tie_word_embeddings=True),
    "mistral": language(("Mistral", "MistralForCausalLM"), **LLAMA),
    "gemma": language(("Gemma", "GemmaForCausalLM"), **LLAMA, head_dim=32, pad_token_id=0),
    "phi3": language(("Phi3", "Phi3ForCausalLM"), **LLAMA, pad_token_id=0),
    "opt": language(("OPT", "OPTForCausalLM"), hidden_size=128, ffn_dim=256, num_hidden_layers=4, num_attention_heads=4,
                    word_embed_proj_dim=128, max_position_embeddings=64),
    "gpt-neox": language(("GPTNeoX", "GPTNeoXForCausalLM"), **BERT),
    "bert": language(("Bert", "BertForMaskedLM"), **BERT),
    "roberta": language(("Roberta", "RobertaForMaskedLM"), **BERT, max_position_embeddings=64),
    "electra": language(("Electra", "ElectraForMaskedLM"), **BERT, embedding_size=128),
    "distilbert": language(("DistilBert", "DistilBertForMaskedLM"), dim=128, hidden_dim=256, n_layers=4, n_heads=4),
    "t5": language(("T5", "T5ForConditionalGeneration"), d_model=128, d_ff=256, d_kv=32, num_layers=3, num_heads=4,
                   decoder_start_token_id=0, pad_token_id=0),
    "bart": language(("Bart", "BartForConditionalGeneration"), d_model=128, encoder_ffn_dim=256, decoder_ffn_dim=256,
                     encoder_layers=3, decoder_layers=3, encoder_attention_heads=4, decoder_attention_heads=4),
    "lora": None,
    "resnet18": picture("resnet18"), "resnet50": picture("resnet50"), "vgg11": picture("vgg11_bn"),
    "mobilenet": picture("mobilenet_v3_small"), "densenet": picture("densenet121"), "convnext": picture("convnext_tiny"),
    "efficientnet": picture("efficientnet_b0"), "vit": picture("vit_b_32", image_size=64), "swin": picture("swin_t"),
}


def loss_of(outputs, targets=None):
    return outputs.loss if targets is None else torch.nn.functional.cross_entropy(outputs, targets)


def run_forward(model, batch):
    if isinstance(batch, dict):
        return loss_of(model(**batch))
    return loss_of(model(batch[0]), batch[1])


class Run:
    """Losses, a hash of parameters, and the record of the last step."""

    def __init__(self, name, options, wrap):
        make, make_batch = MODELS[name]
        torch.manual_seed(options.seed)
        model = make()
        model.train()
        wrap(model)
        optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-3)
        self.losses = []
        for step in range(options.steps + 1):
            torch.manual_seed(1000 * options.seed + 10 * step + dist.get_rank())
            with weft.record(model, optimizer, memory=True) if step == options.steps else nullcontext() as self.seen:
                loss = run_forward(model, make_batch())
                loss.backward()
                torch.nn.utils.clip_grad_norm_([p for p in model.parameters() if p.requires_grad], 1.0)
                optimizer.step()
                optimizer.zero_grad()
            self.losses.append(loss.item().hex())
        digest = hashlib.sha256()
        for _, parameter in sorted(model.named_parameters()):
            full = parameter.full_tensor() if hasattr(parameter, "full_tensor") else parameter
            digest.update(full.detach().contiguous().view(torch.uint8).numpy().tobytes())
        self.hash, self.peak = digest.hexdigest(), self.seen.peak_bytes


def run_model(name, options, say):
    """Returns whether a check fails."""
    make, make_batch = MODELS[name]
    torch.manual_seed(options.seed)
    model = make()
    model.train()
    torch.manual_seed(options.seed + 1 + dist.get_rank())
    measured = weft.measure(model, make_batch(), loss_of)
    free = weft.plan(measured, None, None)

    def wrap_default(model):
        for modules in free.find_modules(model).values():
            fully_shard(modules if len(modules) > 1 else modules[0])
        fully_shard(model)
    default = Run(name, options, wrap_default)
    for share in (1.0, 1.02, 1.1):
        try:
            plan = weft.plan(measured, None, None, memory_limit=f"{int(share * default.peak)}B")
            break
        except weft.WeftError:
            plan, share = free, 0
    run = Run(name, options, plan.apply)
    bits = run.losses == default.losses and run.hash == default.hash
    order = run.seen.compare(plan)
    told = plan.said["predicted"]["peak_bytes"]
    order = [words for words in order if not words.startswith("the peak")]
    failed = not bits or order or run.peak > told
    say(f"{name:13}{len(plan.units):4} units{share:5.2f}  bits {'same' if bits else 'DIFFER'}  order {'same' if not order else order[0]}"
        f"  peak/plan {run.peak / told:.3f}  default's peak/rule {default.peak / plan.rule['peak_bytes']:.3f}"
        f"  plan's step {plan.said['predicted']['step_ns'] / plan.rule['step_ns'] - 1:+.1%}")
    return bool(failed)


def run_rank(rank, options):
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    dist.init_process_group("gloo", init_method=f"file://{options.meet}", rank=rank, world_size=options.ranks)

    def say(text):
        if rank == 0:
            print(text, flush=True)
    MODELS["lora"] = adapters()
    names = options.models.split(",") if options.models else list(MODELS)
    if options.sample:
        names = random.Random(options.seed).sample(names, options.sample)
    failed = 0
    for name in names:
        try:
            failed += run_model(name, options, say)
        except weft.WeftError as error:
            say(f"{name:13}refused: {error}")
    say(f"{failed} of {len(names)} models fail a check")
    os._exit(failed > 0)  # threads of PyTorch abort some interpreters that end under load


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", help=f"of {', '.join(MODELS)}; left out: all")
    parser.add_argument("--sample", type=int, default=0, help="draw so many of them")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--meet", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.rank is not None:
        run_rank(options.rank, options)
    with tempfile.TemporaryDirectory() as directory:
        ranks = [subprocess.Popen([sys.executable, str(Path(__file__)), *sys.argv[1:], "--rank", str(rank), "--meet",
                                   f"{directory}/meet"]) for rank in range(options.ranks)]
        return max(rank.wait() for rank in ranks)


if __name__ == "__main__":
    sys.exit(main())
