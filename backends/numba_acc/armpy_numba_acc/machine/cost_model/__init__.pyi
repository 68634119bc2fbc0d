from armpy_numba_acc.machine.cost_model.figures import typical as typical
