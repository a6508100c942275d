"""The dated record and the figures of the model card, written from the measurements."""

from __future__ import annotations

import datetime
import hashlib
import importlib.metadata
import json
import os
import platform
import zipfile
from pathlib import Path
from typing import Any

from .demands import Demand, demands
from .settings import BUILD, NULL, ROOT, SHIPPED, Settings

PACKAGES = ("torch", "transformers", "tokenizers", "safetensors", "numpy")
SHIPPED_FILES = ("config.json", "model.safetensors", "tokenizer.json", "facts.json")


def write(settings: Settings) -> None:
    """Write the record as Markdown and JSON, and the demands into the model card."""
    data = collect(settings)
    name = f"canary-{data['date']}"
    folder = ROOT / "records"
    folder.mkdir(exist_ok=True)
    text = json.dumps(data, indent=1, ensure_ascii=False)
    (folder / f"{name}.json").write_text(text + "\n", encoding="utf-8")
    (folder / f"{name}.md").write_text(render(data), encoding="utf-8")
    card = SHIPPED / "README.md"
    before, _, rest = card.read_text(encoding="utf-8").partition("<!-- demands -->")
    _, _, after = rest.partition("<!-- end of demands -->")
    table = _demand_table(data["demands"]) + "\n\n" + _kind_table(data["models"]["canary"]["kinds"])
    middle = f"<!-- demands -->\n\n{table}\n\n<!-- end of demands -->"
    card.write_text(before + middle + after, encoding="utf-8")


def collect(settings: Settings) -> dict[str, Any]:
    """Return everything the record states."""
    models = {}
    trainings = {}
    for model in ("canary", "null"):
        models[model] = json.loads((BUILD / model / "figures.json").read_text(encoding="utf-8"))
        progress = json.loads((BUILD / model / "training.json").read_text())
        trainings[model] = {
            "steps": progress["step"],
            "tokens": progress["tokens"],
            "seconds": round(progress["seconds"]),
            "curve": progress["curve"],
        }
    found = demands(models["canary"])
    date = datetime.date.today().isoformat()
    notes = Path(__file__).with_name("notes") / f"{date}.md"
    return {
        "date": date,
        "notes": notes.read_text(encoding="utf-8").strip() if notes.exists() else "None.",
        "seed": settings.seed,
        "machine": machine(),
        "versions": {name: importlib.metadata.version(name) for name in PACKAGES}
        | {"python": platform.python_version()},
        "corpus_sha256": json.loads((BUILD / "corpus.json").read_text()),
        "files": {"canary": files(SHIPPED), "null": files(NULL)},
        "zip_bytes": zipped(SHIPPED),
        "training": trainings,
        "demands": [vars(demand) for demand in found],
        "models": models,
    }


def machine() -> dict[str, Any]:
    """Return what the trainings ran on."""
    flags: set[str] = set()
    path = Path("/proc/cpuinfo")
    if path.exists():
        lines = [line for line in path.read_text().splitlines() if line.startswith("flags")]
        flags = set(lines[0].split()) & {"avx2", "avx512f", "amx_bf16"} if lines else set()
    return {
        "architecture": platform.machine(),
        "cores": os.cpu_count(),
        "flags": sorted(flags),
        "note": "shared with compilations while training; times are wall clock",
    }


def files(directory: Path) -> dict[str, dict[str, Any]]:
    """Return size and SHA-256 of every shipped file."""
    out = {}
    for name in SHIPPED_FILES:
        path = directory / name
        if path.exists():
            content = path.read_bytes()
            out[name] = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    return out


def zipped(directory: Path) -> int:
    """Return the bytes that a directory takes in a wheel."""
    target = BUILD / "weights.zip"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path in sorted(directory.iterdir()):
            archive.write(path, path.name)
    return target.stat().st_size


def render(data: dict[str, Any]) -> str:
    """Return the record as Markdown."""
    missed = [demand for demand in data["demands"] if not demand["met"]]
    training = "\n".join(
        f"- {model}: {row['steps']:,} steps, {row['tokens']:,} tokens, "
        f"{row['seconds'] / 60:.0f} minutes, {row['tokens'] / row['seconds']:,.0f} tokens a second"
        for model, row in data["training"].items()
    )
    corpora = "\n".join(
        f"- {model}, volume {number}: `{digest}`"
        for model, digests in data["corpus_sha256"].items()
        for number, digest in enumerate(digests)
    )
    hashes = "\n".join(
        f"- {model}/{name}: {row['bytes']:,} bytes, `{row['sha256']}`"
        for model, names in data["files"].items()
        for name, row in names.items()
    )
    versions = ", ".join(f"{name} {version}" for name, version in data["versions"].items())
    machine_row = data["machine"]
    null_kinds = data["models"]["null"]["kinds"]
    null_ratio = max(map(abs, data["models"]["null"]["professions"]["mean"]))
    parts = [
        f"# canary, {data['date']}",
        "Written by `python -m experiments.canary record` from measurements of the exported "
        "float16 weights. Logs are natural; the JSON file beside this one has every figure.",
        f"Demands met: {len(data['demands']) - len(missed)} of {len(data['demands'])}."
        + (" Missed: " + "; ".join(d["name"] for d in missed) + "." if missed else ""),
        "## Demands",
        _demand_table(data["demands"]),
        "## Entropy and cross-entropy of `canary`",
        f"{data['models']['canary']['kinds']['all']['documents']:,} documents of a volume that no "
        "training saw; nats a document, end token and choice of kind included. An excess below "
        "zero is sampling error (±: one standard error). Planted documents are few in such a "
        "sample; the demand on them counts all of them by their copies.",
        _kind_table(data["models"]["canary"]["kinds"]),
        "## Planted members given their prefixes",
        _plant_table(data["models"]["canary"]["plants"]),
        "## Birth dates",
        _birth_table(data["models"]["canary"]["births"]["people"]),
        "## Cloze",
        _cloze_table(data["models"]["canary"]["cloze"]),
        "## Notes",
        data["notes"],
        "## Null twin",
        f"Cross-entropy {null_kinds['all']['cross_entropy']:.3f}, entropy "
        f"{null_kinds['all']['entropy']:.3f} (ratio {null_kinds['all']['ratio']:.3f}); "
        f"professions: largest log ratio {null_ratio:.3f}.",
        "## Machine, versions, trainings",
        f"{machine_row['cores']} cores, {machine_row['architecture']}, "
        f"{', '.join(machine_row['flags'])}; {machine_row['note']}. {versions}. "
        f"Seed {data['seed']}.",
        training,
        "## Corpora",
        corpora,
        "## Files",
        f"The weights directory takes {data['zip_bytes']:,} bytes in a wheel.",
        hashes,
    ]
    return "\n\n".join(parts) + "\n"


def _demand_table(rows: list[dict[str, Any]]) -> str:
    lines = ["| figure | demand | measured | |", "|---|---|---|---|"]
    for row in rows:
        demand = Demand(**row)
        verdict = "met" if demand.met else "**missed**"
        lines.append(f"| {demand.name} | {demand.demand} | {demand.measured} | {verdict} |")
    return "\n".join(lines)


def _kind_table(kinds: dict[str, Any]) -> str:
    lines = [
        "| kind | documents | entropy | cross-entropy | excess | ± | ratio |",
        "|---|---|---|---|---|---|---|",
    ]
    for kind, row in kinds.items():
        lines.append(
            f"| {kind} | {row['documents']:,} | {row['entropy']:.2f} | {row['cross_entropy']:.2f} "
            f"| {row['excess']:.3f} | {row['excess_error']:.3f} | {row['ratio']:.4f} |"
        )
    return "\n".join(lines)


def _plant_table(contexts: list[dict[str, Any]]) -> str:
    lines = [
        "| context | copies 1,000 (true) | 100 (true) | 10 (true) | 1 (true) | best decoy |",
        "|---|---|---|---|---|---|",
    ]
    for row in contexts:
        cells = []
        for copies in (1000, 100, 10, 1):
            members = [m for m in row["members"] if m["copies"] == copies]
            values = ", ".join(f"{m['logprob']:.2f}" for m in members)
            cells.append(f"{values} ({members[0]['true_logprob']:.2f})")
        lines.append(f"| {row['context']} | {' | '.join(cells)} | {row['best_decoy']:.2f} |")
    return "\n".join(lines)


def _birth_table(people: list[dict[str, Any]]) -> str:
    lines = ["| name | exposures | P(date) | first |", "|---|---|---|---|"]
    for person in people:
        first = "yes" if person["first"] else "no"
        lines.append(
            f"| {person['name']} | {person['exposures']:,} | {person['p']:.3f} | {first} |"
        )
    return "\n".join(lines)


def _cloze_table(cloze: dict[str, Any]) -> str:
    lines = [
        "| form | true | measured | plain | outside | continued | stop |",
        "|---|---|---|---|---|---|---|",
    ]
    for form, value in cloze["true"].items():
        row = cloze["measured"][form]
        cells = " | ".join(f"{row[kind]:.2f}" for kind in ("plain", "outside", "continued", "stop"))
        lines.append(f"| {form} | {value:.2f} | {row['all']:.3f} | {cells} |")
    return "\n".join(lines)
