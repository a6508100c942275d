"""Make the embedded model: all stages, or one of corpus, train, export, evaluate, record."""

from __future__ import annotations

import argparse

from . import stages
from .settings import load_settings


def main() -> None:
    """Run the stages asked for."""
    parser = argparse.ArgumentParser(prog="experiments.canary", description=__doc__)
    parser.add_argument(
        "stage",
        nargs="?",
        default="all",
        choices=("all", "corpus", "train", "export", "evaluate", "record"),
    )
    parser.add_argument("--model", choices=stages.MODELS, help="only this model")
    parser.add_argument("--device", default="cpu", help="torch device to train on")
    arguments = parser.parse_args()
    settings = load_settings()
    models = [arguments.model] if arguments.model else list(stages.MODELS)
    if arguments.stage in ("all", "corpus"):
        stages.make_corpus(settings)
    if arguments.stage in ("all", "train"):
        for model in models:
            stages.train_model(settings, model, arguments.device)
    if arguments.stage in ("all", "export"):
        for model in models:
            stages.export_model(settings, model)
    if arguments.stage in ("all", "evaluate"):
        stages.evaluate_models(settings, models)
    if arguments.stage in ("all", "record"):
        stages.write_record(settings)


if __name__ == "__main__":
    main()
