"""One Report value, computed once from a run; every renderer reads it and none recomputes.

model      the frozen values: Report, Cell, MetricValue
build      ReportBuilder: attempts and gradings in, one pair at a time; a Report out
tally      the counters behind it
metrics    the built-in metrics of a cell
notes      what a reader must know beside the numbers
scorecard  JSON (`scorecard.json`, and its published schema)
text       a table for people
sides      one arm of one run, by task; `differences`, `outcomes` and `compare` make a Comparison of two
gate       whether a run is not worse than a baseline; `comparison_words` says both in sentences
markdown, tabular, junit   the same for pages, spreadsheets and CI
"""
