"""CSS of reports; series differ in colorblind-safe colors and in marks."""

from __future__ import annotations

__all__ = ["STYLE"]

STYLE = """
:root {
  color-scheme: light dark;
  --ink: #1c2128; --soft: #57606a; --paper: #ffffff; --card: #f6f7f9; --grid: #d8dde3;
  --pass: #0b6b3a; --fail: #a4262c; --inconclusive: #7a5200; --link: #0b5cad;
  --s1: #0072b2; --s2: #c2560a; --s3: #00805f; --s4: #9b4f84; --s5: #57606a; --s6: #8a6d00;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ink: #e6e9ed; --soft: #a3acb8; --paper: #14171b; --card: #1d2127; --grid: #3a414a;
    --pass: #5fd08f; --fail: #ff8f8a; --inconclusive: #f0c05a; --link: #7db8f5;
    --s1: #56b4e9; --s2: #f0944d; --s3: #3fcf9f; --s4: #dd9bc6; --s5: #b3bcc7; --s6: #e8d04a;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", sans-serif; }
main { max-width: 60rem; margin: 0 auto; padding: 1.25rem 1rem 3rem; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: .1rem 0 .6rem; }
h2 { font-size: 1.2rem; margin: 0 0 .4rem; }
h3 { font-size: 1rem; margin: 1.1rem 0 .3rem; }
h4 { font-size: .9rem; margin: .9rem 0 .2rem; color: var(--soft); overflow-wrap: anywhere; }
section { border-top: 1px solid var(--grid); padding-top: 1.1rem; margin-top: 1.6rem; }
.name, .facts, .how { color: var(--soft); font-size: .875rem; margin: .2rem 0 .5rem; }
.warning { border-left: 4px solid var(--inconclusive); padding-left: .7rem; }
.badge { display: inline-block; padding: .05rem .6rem; border: 1.5px solid currentColor;
  border-radius: 1rem; font-weight: 600; font-size: .9rem; white-space: nowrap; }
.pass { color: var(--pass); } .fail { color: var(--fail); }
.inconclusive { color: var(--inconclusive); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .875rem; }
th, td { text-align: left; padding: .28rem .7rem .28rem 0; vertical-align: top;
  border-bottom: 1px solid var(--grid); overflow-wrap: break-word; }
th { white-space: nowrap; } td:has(.text), td:has(.token) { min-width: 16rem; }
th { color: var(--soft); font-weight: 600; }
.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
figure { margin: .8rem 0; overflow-x: auto; }
figure svg { width: 100%; height: auto; min-width: 29rem; max-width: 46rem; }
code, pre, .token, .text { font-family: ui-monospace, "DejaVu Sans Mono", monospace;
  font-size: .8125rem; }
code { display: block; background: var(--card); padding: .4rem .6rem; margin: .3rem 0;
  overflow-wrap: anywhere; }
pre { background: var(--card); padding: .7rem; overflow-x: auto; }
.token { white-space: pre-wrap; background: var(--card); border-bottom: 2px solid var(--s1);
  margin-right: 2px; padding: 0 1px; }
.token:nth-child(even) { border-color: var(--s2); }
.text, .token { overflow-wrap: anywhere; } .text { white-space: pre-wrap; }
summary { cursor: pointer; color: var(--link); margin: .4rem 0; }
.pair { display: grid; grid-template-columns: 1fr 1fr; gap: 1rem; }
@media (max-width: 34rem) {
  body { font-size: 15px; } .pair { grid-template-columns: 1fr; } th, th.n { white-space: normal; }
}
@media print {
  :root { --paper: #fff; --ink: #000; --card: #f3f3f3; --grid: #bbb; --soft: #444; }
  main { max-width: none; padding: 0; } section { break-inside: auto; }
  tr, figure { break-inside: avoid; } .wide { overflow: visible; }
}
"""
