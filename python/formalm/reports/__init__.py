"""Reports of suite runs: HTML, Markdown, JUnit XML, tables, and comparisons of two runs."""

from formalm.reports.compare_runs import RunComparison, compare_runs
from formalm.reports.junit import to_junit
from formalm.reports.markdown import to_markdown
from formalm.reports.page import to_html
from formalm.reports.report_contents import Contents, Part, contents_of
from formalm.reports.result_rows import Numbers, to_lm_eval, write_parquet
from formalm.reports.write_reports import FORMATS, write_report

__all__ = [
    "FORMATS",
    "Contents",
    "Numbers",
    "Part",
    "RunComparison",
    "compare_runs",
    "contents_of",
    "to_html",
    "to_junit",
    "to_lm_eval",
    "to_markdown",
    "write_parquet",
    "write_report",
]
