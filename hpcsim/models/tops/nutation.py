def nutation_figures(model, run): return {}
