"""Ensembles of small models: member parameters, the compiled engine, the model built on them."""
