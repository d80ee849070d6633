"""Formulas that users write in cases: parsed, differentiated, and evaluated by one kernel."""

from hpcsim.formula.language import Formula, FormulaError

__all__ = ["Formula", "FormulaError"]
