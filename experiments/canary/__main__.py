"""Make the embedded model: all stages, or one of corpus, train, export, evaluate, record."""

from __future__ import annotations

import argparse

from . import stages
from .settings import CONFIGURATIONS, load_settings


def main() -> None:
    """Run the stages asked for."""
    parser = argparse.ArgumentParser(prog="experiments.canary", description=__doc__)
    parser.add_argument(
        "stage",
        nargs="?",
        default="all",
        choices=("all", "corpus", "train", "export", "evaluate", "record"),
    )
    parser.add_argument("--config", default="canary", choices=CONFIGURATIONS, help="what to make")
    parser.add_argument("--model", help="only this model of the configuration")
    parser.add_argument("--device", default="cpu", help="torch device to train on")
    arguments = parser.parse_args()
    settings = load_settings(arguments.config)
    models = [arguments.model] if arguments.model else list(settings.models)
    if unknown := set(models) - set(settings.models):
        parser.error(f"--model must be one of {', '.join(settings.models)}, got {unknown.pop()}")
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
