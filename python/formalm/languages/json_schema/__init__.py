"""JSON Schemas as languages: options, notes, checks, comparison, explanation, partial JSON."""
