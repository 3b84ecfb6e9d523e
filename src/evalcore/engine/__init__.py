"""Plan, schedule, trial, ledger: what turns a study into a run."""
