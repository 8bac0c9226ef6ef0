# SPDX-License-Identifier: Apache-2.0
"""Trainer of transformers: torchrun --nproc-per-node 2 with_trainer.py

The plan wraps the model first, and `prepare_model` leaves it so: without FSDP in its arguments Trainer would add DDP.
"""
import tempfile

import torch
from common import SYMBOLS, TOKENS, begin, end, find_device
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainerCallback, TrainingArguments

import weft

arguments = TrainingArguments(tempfile.mkdtemp(), max_steps=3, per_device_train_batch_size=4, use_cpu=not torch.cuda.is_available(),
                              ddp_backend=None if torch.cuda.is_available() else "gloo", report_to=[], save_strategy="no",
                              logging_strategy="no", optim="adamw_torch", disable_tqdm=True)
begin()
model = LlamaForCausalLM(LlamaConfig(vocab_size=SYMBOLS, hidden_size=128, intermediate_size=352, num_hidden_layers=4,
                                     num_attention_heads=4)).to(find_device())
data = [{"input_ids": tokens, "labels": tokens} for tokens in torch.randint(0, SYMBOLS, (64, TOKENS))]
batch = {key: torch.stack([row[key] for row in data[:4]]).to(find_device()) for key in data[0]}
plan = weft.plan(model, batch, lambda outputs: outputs.loss, memory_limit="64MiB")
plan.apply(model)


class Watch(TrainerCallback):
    """Records the last step."""

    def on_step_begin(self, args, state, control, optimizer=None, **_):
        if state.global_step == 2:
            self.context = weft.record(model, optimizer.optimizer)
            self.seen = self.context.__enter__()

    def on_step_end(self, args, state, control, **_):
        if state.global_step == 3:
            self.context.__exit__(None, None, None)


watch = Watch()
trainer = Trainer(model, arguments, train_dataset=data, callbacks=[watch])
trainer.accelerator.prepare_model = lambda model, **_: model
trainer.train()
end(plan, watch.seen)
