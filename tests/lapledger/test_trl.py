"""TRL's own trainer takes its rewards from a ledger: a tiny model that was never trained, three steps, on the CPU."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.lap import sql, well
from tests.support.packages import PROGRAMS, make_package

TRAIN = """
import json
import sys

import torch
from datasets import Dataset
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from trl import GRPOConfig, GRPOTrainer

from lapledger.trainers import Rewards, trl_rewards

ledger, out = sys.argv[1:]
bytes_ = Tokenizer(models.BPE())
bytes_.pre_tokenizer, bytes_.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
words = trainers.BpeTrainer(special_tokens=["<eos>", "<pad>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
bytes_.train_from_iterator(["Add up."], words)
tokenizer = PreTrainedTokenizerFast(tokenizer_object=bytes_, eos_token="<eos>", pad_token="<pad>")
torch.manual_seed(0)
size = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2}
ends = {"eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id}
model = LlamaForCausalLM(LlamaConfig(vocab_size=len(tokenizer), num_key_value_heads=2, **size, **ends))
args = GRPOConfig(
    output_dir=out, num_generations=4, per_device_train_batch_size=4, max_completion_length=16, max_steps=3,
    logging_steps=1, save_strategy="no", report_to=[], use_cpu=True, bf16=False, disable_tqdm=True,
)
asked = Rewards(
    training="run1", ledger=ledger, criterion="rlvr-added-tests", model="tiny", references=3, settings={"slots": 2}
)
trainer = GRPOTrainer(
    model=model,
    processing_class=tokenizer,
    reward_funcs=[trl_rewards(asked, num_generations=args.num_generations)],
    train_dataset=Dataset.from_list([{"prompt": f"Add up {n}.", "problem": "sums"} for n in range(4)]),
    args=args,
)
trainer.train()
logged = [row["rewards/lapledger/mean"] for row in trainer.state.log_history if "rewards/lapledger/mean" in row]
print("told", json.dumps({"means": logged}))
"""
GIVEN = """
SELECT g.policy, avg(r.value), count(*) FROM group_opened g JOIN rollout_sampled s USING (group_id)
JOIN program p ON p.rollout_id = s.rollout_id JOIN reward r USING (program_id) GROUP BY g.policy ORDER BY g.policy
"""


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """The ledger and what the trainer logged."""
    home = tmp_path_factory.mktemp("trl")
    ledger = home / "ledger"
    well("ledger", "init", "--ledger", ledger)
    well("import", "icpc", make_package(home / "sums", PROGRAMS, small=1, large=1), "--ledger", ledger)
    offline = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(home / "hub"), "CUDA_VISIBLE_DEVICES": ""}
    command = [sys.executable, "-c", TRAIN, str(ledger), str(home / "out")]
    done = subprocess.run(command, env=offline, cwd=home, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    seen = [line for line in done.stdout.splitlines() if line.startswith("told ")]
    return ledger, json.loads(seen[0].removeprefix("told "))


def test_a_trainer_learns_from_what_the_ledger_holds(trained: tuple[Path, dict[str, Any]]) -> None:
    """At each step the mean that TRL logs is that of the group's four rewards in the ledger: noise prints no sum."""
    ledger, seen = trained
    assert sql(ledger, GIVEN) == [[step, seen["means"][step], 4] for step in range(3)]
    assert seen["means"] == [-1.0, -1.0, -1.0]


def test_its_groups_are_complete_and_the_ledger_is_sound(trained: tuple[Path, dict[str, Any]]) -> None:
    """A group of four a step; every reward, and that of the reference run beside each group, is computed again."""
    ledger, _ = trained
    assert sql(ledger, "SELECT policy, size FROM group_opened ORDER BY policy") == [[0, 4], [1, 4], [2, 4]]
    assert "15 rewards" in well("verify", "--ledger", ledger).out
