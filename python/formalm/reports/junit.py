"""JUnit XML of verdicts, for continuous-integration servers."""

from __future__ import annotations

import re
from xml.etree import ElementTree as Tree

from formalm.reports.report_contents import Contents

__all__ = ["to_junit"]

# Characters that XML 1.0 excludes.
REFUSED = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def to_junit(contents: Contents) -> str:
    """Returns one test case per assertion. Inconclusive ones are errors: neither passed nor failed.

    A run without assertions, or with items missing, has another case that says so.
    """
    cases: list[tuple[str, str, str]] = []
    for outcome in contents.evaluation.outcomes:
        name = str(outcome.assertion.metric or outcome.assertion.comparison)
        bounds = (outcome.assertion.minimum, outcome.assertion.maximum)
        if outcome.assertion.metric is not None:
            name += "".join(
                f" {sign} {bound:g}"
                for sign, bound in zip("≥≤", bounds, strict=True)
                if bound is not None
            )
        cases.append((name, outcome.verdict, outcome.why))
    if contents.answered < contents.total:
        missing = contents.total - contents.answered
        cases.append(("all items", "inconclusive", f"{missing:,} items have no answer yet"))
    if contents.manifest.suite_as_run != contents.suite:
        cases.append(("all draws", "inconclusive", contents.extent))
    verdicts = [verdict for _, verdict, _ in cases]
    suite = Tree.Element(
        "testsuite",
        name=contents.suite.name,
        tests=str(len(cases)),
        failures=str(verdicts.count("fail")),
        errors=str(verdicts.count("inconclusive")),
        time=f"{contents.seconds:.3f}",
    )
    for name, verdict, why in cases:
        case = Tree.SubElement(suite, "testcase", classname=contents.suite.name, name=_clean(name))
        if verdict != "pass":
            tag = "failure" if verdict == "fail" else "error"
            Tree.SubElement(case, tag, message=_clean(why), type=verdict).text = _clean(why)
    Tree.indent(suite)
    text = Tree.tostring(suite, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _clean(text: str) -> str:
    return REFUSED.sub("\ufffd", text)
