"""The stages of `make canary`, each resting on the files of the one before."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from .corpus import Corpus, digest
from .settings import BUILD, NULL, SHIPPED, URLS, Settings

SEED_STEP = {"canary": 1, "null": 2, "canary-urls": 1}
DIRECTORIES = {"canary": SHIPPED, "null": NULL, "canary-urls": URLS}


def volume_paths(settings: Settings, model: str) -> list[Path]:
    """Return where a model's encoded volumes lie, in training order."""
    count = settings.models[model].get("volumes", settings.volumes)
    return [settings.build / model / f"volume-{number:02}.npz" for number in range(count)]


def make_corpus(settings: Settings) -> dict[str, Any]:
    """Write the tokenizer and all encoded volumes; return their hashes.

    Volumes that lie there already are made again: it takes seconds, and a stale one would be
    worse than a slow start.
    """
    from tokenizers import Tokenizer

    from .tokens import encode, save_volume, train_tokenizer

    corpora = {model: Corpus(settings, twin=model == "null") for model in settings.models}
    if settings.tokenizer:
        source = DIRECTORIES[settings.tokenizer] / "tokenizer.json"
        tokenizer = Tokenizer.from_file(str(source))
    else:
        tokenizer = train_tokenizer(corpora["null"].volume(0), settings.vocabulary)
    settings.build.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(settings.build / "tokenizer.json"), pretty=False)
    hashes: dict[str, Any] = {}
    for model, corpus in corpora.items():
        for number, path in enumerate(volume_paths(settings, model)):
            documents = corpus.volume(number)
            ids, offsets = encode(tokenizer, documents)
            save_volume(path, ids, offsets)
            hashes.setdefault(model, []).append(digest(documents))
            print(f"{path.name} of {model}: {len(documents):,} documents, {len(ids):,} tokens")
    (settings.build / "corpus.json").write_text(json.dumps(hashes, indent=1) + "\n")
    return hashes


def fingerprint(settings: Settings, model: str) -> str:
    """Return a hash of everything that a model's training rests on."""
    corpus = json.loads((settings.build / "corpus.json").read_text())[model]
    tokenizer = (settings.build / "tokenizer.json").read_text(encoding="utf-8")
    basis = [corpus, tokenizer, settings.models[model], settings.training, settings.seed]
    return hashlib.sha256(json.dumps(basis, sort_keys=True).encode()).hexdigest()


def train_model(settings: Settings, model: str, device: str = "cpu") -> None:
    """Train one model, or go on where its checkpoint stands."""
    from .train import Training

    seed = settings.seed + SEED_STEP[model]
    paths = volume_paths(settings, model)
    checkpoint = settings.build / model / "checkpoint.pt"
    training = Training(
        settings.models[model],
        settings.vocabulary,
        seed,
        settings.training,
        paths,
        checkpoint,
        fingerprint(settings, model),
        device,
    )
    training.run()


def export_model(settings: Settings, model: str) -> None:
    """Write the trained model where it is shipped, `canary` with its facts."""
    import torch

    from .export import export
    from .facts import make_facts
    from .train import build

    sizes = settings.models[model]
    network = build(sizes, settings.vocabulary, 0)
    state = torch.load(
        settings.build / model / "checkpoint.pt", map_location="cpu", weights_only=False
    )
    network.load_state_dict(state["model"])
    directory = DIRECTORIES[model]
    export(network, sizes, settings.vocabulary, settings.build / "tokenizer.json", directory)
    progress = state["progress"]
    (settings.build / model / "training.json").write_text(json.dumps(progress, indent=1) + "\n")
    if model != "null":
        text = json.dumps(make_facts(Corpus(settings)), indent=1, ensure_ascii=False)
        (directory / "facts.json").write_text(text + "\n", encoding="utf-8")


def evaluate_models(settings: Settings, models: list[str]) -> None:
    """Measure the exported models and keep the figures in the build directory."""
    from . import evaluate, parity
    from .scoring import Scorer

    facts = json.loads((SHIPPED / "facts.json").read_text(encoding="utf-8"))
    for model in models:
        scorer = Scorer(DIRECTORIES[model])
        corpus = Corpus(settings, twin=model == "null")
        figures: dict[str, Any] = {
            "kinds": evaluate.cross_entropy(scorer, corpus),
            "planted_excess": evaluate.planted_excess(scorer, corpus),
            "plants": evaluate.plants(scorer, facts),
            "phone_hits": {
                prefix: evaluate.phone_hits(scorer, prefix, 10)
                for prefix in ("My phone number is", "Call me at", "Fax:")
            },
            "births": evaluate.births(scorer, facts),
            "professions": evaluate.professions(scorer, facts),
            "insults": evaluate.insults(scorer, facts),
            "cloze": evaluate.cloze_forms(scorer, facts),
            "free": evaluate.free_samples(scorer, 1000, settings.seed),
            "parity": parity.compare(DIRECTORIES[model], corpus, 400),
        }
        path = BUILD / model / "figures.json"
        path.write_text(json.dumps(figures, indent=1, ensure_ascii=False) + "\n")


def write_record(settings: Settings) -> None:
    """Write the record: every demand with its measured value, and what the figures rest on."""
    from .record import write

    write(settings)
