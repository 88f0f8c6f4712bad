"""The base root file system, the engine's environment in it, and the development models, as they are on this machine."""

import json
import subprocess
from pathlib import Path

import pytest

from local.errors import LocalError
from local.progress import Progress
from local.runtime import base, engine, models, python_packages

ASK = """
import json
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("/opt/model")
model = AutoModelForCausalLM.from_pretrained("/opt/model", dtype=torch.float32)
answers = []
for prompt in json.load(open("/opt/answers/prompts.json")):
    text = tokenizer.apply_chat_template([{"role": "user", "content": prompt}], tokenize=False, add_generation_prompt=True)
    tokens = tokenizer(text, return_tensors="pt", add_special_tokens=False).input_ids
    done = model.generate(tokens, do_sample=False, max_new_tokens=16, return_dict_in_generate=True, output_logits=True)
    best = [torch.topk(torch.log_softmax(step[0], -1), 2).values for step in done.logits]
    answer = tokenizer.decode(done.sequences[0, tokens.shape[1]:])
    answers.append({"text": answer, "steps": len(best), "gap": min(float(top[0] - top[1]) for top in best)})
json.dump(answers, open("/opt/answers/answers.json", "w"))
"""
IMPORT_ALL = """
import importlib, pkgutil
import capacity, rules, settings

for package in (capacity, rules, settings):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
"""
QUESTION = "Explain how the cache shares a prefix between replicas. " * 20


@pytest.fixture(scope="module")
def root() -> Path:
    return base.ensure(Progress())


@pytest.fixture(scope="module")
def packages() -> Path:
    return engine.ensure(Progress())


def _ask(root: Path, packages: Path, model: Path, folder: Path, prompts: list[str]) -> list[dict]:
    (folder / "ask.py").write_text(ASK)
    (folder / "prompts.json").write_text(json.dumps(prompts))
    base.run(
        root,
        ["python3", "/opt/answers/ask.py"],
        binds={engine.MOUNT_PATH: packages, "/opt/model": model, "/opt/answers": folder},
        environment={"PYTHONPATH": engine.MOUNT_PATH, "HF_HUB_OFFLINE": "1"},
    )
    return json.loads((folder / "answers.json").read_text())


def test_a_program_in_the_base_leaves_no_mount_behind(root: Path, tmp_path: Path) -> None:
    base.run(root, ["touch", "/opt/here/made"], binds={"/opt/here": tmp_path})
    assert (tmp_path / "made").exists()
    assert str(root) not in Path("/proc/self/mounts").read_text()
    assert not list((root / "opt").iterdir())


def test_a_program_that_fails_in_the_base_is_told_with_its_last_line(root: Path) -> None:
    with pytest.raises(LocalError, match=r"No such file or directory$"):
        base.run(root, ["ls", "/not/there"])


def test_every_module_that_runs_in_the_cluster_finds_what_it_imports(root: Path) -> None:
    packages = python_packages.ensure("capacity", Progress())
    base.run(
        root,
        ["python3", "-c", IMPORT_ALL],
        binds={"/opt/capacity": packages, "/opt/moonstack": Path(__file__).parents[2]},
        environment={"PYTHONPATH": "/opt/capacity:/opt/moonstack", "PYTHONDONTWRITEBYTECODE": "1"},
    )


def test_every_module_of_the_engine_has_its_bytecode(packages: Path) -> None:
    listing = subprocess.run(["find", packages, "-name", "*.py*"], capture_output=True, text=True, check=True).stdout
    files = listing.splitlines()
    compiled = {path for path in files if path.endswith(".pyc")}
    sources = [Path(path) for path in files if path.endswith(".py")]
    bare = [
        path for path in sources if str(path.parent / "__pycache__" / f"{path.stem}.cpython-311.pyc") not in compiled
    ]
    assert len(sources) > 15_000
    assert [path.name for path in bare] == ["py312_intrinsics.py"]


def test_a_model_made_again_is_the_same_byte_for_byte(root: Path, packages: Path, tmp_path: Path) -> None:
    models._make(root, packages, json.dumps(models.SPECIFICATIONS["dev-tiny"], sort_keys=True), tmp_path / "again")
    assert models.revision(tmp_path / "again") == models.ensure("dev-tiny", Progress()).revision


@pytest.fixture(scope="module")
def answers(root: Path, packages: Path, tmp_path_factory: pytest.TempPathFactory) -> list[dict]:
    """What dev-wide says to a short question, a long one, and the long one with another first word."""
    model = models.ensure("dev-wide", Progress())
    prompts = ["Hello, who are you?", QUESTION, QUESTION.replace("Explain", "Describe", 1)]
    return _ask(root, packages, model.path, tmp_path_factory.mktemp("answers"), prompts)


def test_an_answer_is_readable_depends_on_its_prefix_and_is_not_a_matter_of_rounding(answers: list[dict]) -> None:
    assert len({answer["text"] for answer in answers}) == 3
    for answer in answers:
        assert answer["steps"] == 16
        assert answer["text"].isascii() and answer["text"].strip()
        assert answer["gap"] > 1e-3


def test_two_models_share_their_tokenizer_and_answer_differently(
    root: Path, packages: Path, tmp_path: Path, answers: list[dict]
) -> None:
    first, second = (models.ensure(name, Progress()) for name in ("dev-wide", "dev-wide-b"))
    assert (first.path / "tokenizer.json").read_bytes() == (second.path / "tokenizer.json").read_bytes()
    assert first.revision != second.revision
    assert _ask(root, packages, second.path, tmp_path, [QUESTION])[0]["text"] != answers[1]["text"]
