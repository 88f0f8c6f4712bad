"""Make one development model: a Llama with random weights and a tokenizer trained on text generated here, so nothing is downloaded.

Runs under the engine environment's Python: `python development_model.py SPECIFICATION_JSON FOLDER`.
Every number comes from an integer generator and every file is written in a fixed order, so equal specifications give equal bytes.
"""

import json
import random
import sys
from pathlib import Path

import numpy  # pyright: ignore[reportMissingImports]
import torch  # pyright: ignore[reportMissingImports]
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers  # pyright: ignore[reportMissingImports]
from transformers import (  # pyright: ignore[reportMissingImports]
    GenerationConfig,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
)

BEGIN, END = "<|begin|>", "<|end|>"
ROLES = ("system", "user", "assistant", "tool")
SPECIAL_TOKENS = [BEGIN, END, *(f"<|{role}|>" for role in ROLES)]
VOCABULARY_LIMIT = 2048
CHAT_TEMPLATE = (
    "{{ bos_token }}"
    "{% for message in messages %}"
    "<|{{ message['role'] }}|>"
    "{% if message['content'] is string %}{{ message['content'] }}"
    "{% else %}{% for part in message['content'] %}{{ part['text'] }}{% endfor %}{% endif %}"
    "{{ eos_token }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
WORDS = """
a about after again all also an and answer any are as ask at back be because been before best between block both
brief but by cache call can change check chip cluster colour come could count day decode describe different do does
down each engine even every example explain few find first for from gateway get give good great group hand has have
he head help here hold how if image in into is it its just keep key know large last layer learn left less let life
light like limit line list little load long look machine made make many measure memory message mind model more most
move much name need never new next night no node not now number of off old on once one only open or order other our
out over own page part people place plan point pool prefill prefix problem program prompt question queue read reason
replica request return right round route run same say scale second see sentence serve server set share short should
show side small so some start state still stop store story such system take tell text than that the their them then
there these they thing think this three through time to token too turn two under until up use user very wait want
warm was water way we weight well what when where which while who why will with without word work world would write
year yes you your
"""

# Gains on the usual 1/sqrt(fan-in) scale. Sharp attention with large values makes every answer depend on the whole prompt, as a
# trained model's does; large output logits keep the best two tokens far further apart than float32 rounding moves them.
ATTENTION_GAIN = 2.0
VALUE_GAIN = 3.0
LOGIT_GAIN = 4.0
DEFAULT_ANSWER_TOKENS = 256


def corpus(sentences: int = 5000) -> list[str]:
    """Sentences for the tokenizer, the same on every machine: `random.Random(0)` picks words and numbers."""
    pick, words = random.Random(0), WORDS.split()
    return [f"{' '.join(pick.choices(words, k=8)).capitalize()}: {pick.randrange(100)}." for _ in range(sentences)]


def make_tokenizer() -> PreTrainedTokenizerFast:
    """A byte-level BPE tokenizer, so that any text can be encoded, with a chat template."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY_LIMIT, special_tokens=SPECIAL_TOKENS, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(corpus(), trainer)
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token=BEGIN, eos_token=END, pad_token=END)
    fast.chat_template = CHAT_TEMPLATE
    return fast


def silent_tokens(tokenizer: PreTrainedTokenizerFast) -> list[int]:
    """Tokens that greedy decoding must never choose: special ones and those that are not printable ASCII."""
    pieces = (tokenizer.decode([token]) for token in range(len(tokenizer)))
    return [
        token
        for token, text in enumerate(pieces)
        if token < len(SPECIAL_TOKENS) or not (text.isascii() and text.isprintable())
    ]


def make_model(specification: dict, tokenizer: PreTrainedTokenizerFast) -> LlamaForCausalLM:
    """A Llama of the specified shape with uniform random weights drawn from the specified seed, in bfloat16."""
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        tie_word_embeddings=False,
        **specification["shape"],
    )
    with torch.device("meta"):
        model = LlamaForCausalLM(config)
    model = model.to_empty(device="cpu")
    draw = numpy.random.Generator(numpy.random.PCG64(specification["seed"]))
    with torch.no_grad():
        for name, parameter in sorted(model.named_parameters()):
            parameter.copy_(_weights(draw, name, parameter.shape))
        model.lm_head.weight[silent_tokens(tokenizer)] = 0
    model.generation_config = GenerationConfig(
        bos_token_id=tokenizer.bos_token_id, eos_token_id=tokenizer.eos_token_id, max_new_tokens=DEFAULT_ANSWER_TOKENS
    )
    return model.to(torch.bfloat16)


def _weights(draw: numpy.random.Generator, name: str, shape: torch.Size) -> torch.Tensor:
    if len(shape) == 1:
        return torch.ones(shape)
    gains = {"q_proj": ATTENTION_GAIN, "k_proj": ATTENTION_GAIN, "v_proj": VALUE_GAIN, "lm_head": LOGIT_GAIN}
    gain = next((gain for part, gain in gains.items() if part in name), 1.0)
    deviation = 1.0 if "embed_tokens" in name else gain / shape[-1] ** 0.5
    uniform = torch.from_numpy(draw.random(tuple(shape), dtype=numpy.float32))
    return (uniform - 0.5) * (12**0.5 * deviation)


def main(specification: str, folder: str) -> None:
    """Write configuration, weights, tokenizer and chat template to the folder."""
    tokenizer = make_tokenizer()
    model = make_model(json.loads(specification), tokenizer)
    tokenizer.save_pretrained(folder)
    model.save_pretrained(folder)
    for path in Path(folder).iterdir():
        path.chmod(0o644)


if __name__ == "__main__":
    main(*sys.argv[1:])
