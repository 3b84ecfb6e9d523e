"""One Report value, computed once from a run; every renderer reads it and none recomputes.

model      the frozen values: Report, Cell; `values` a number, `detail` what is behind a cell, `analysis` several arms
build      ReportBuilder: attempts and gradings in, one pair at a time; a Report out
tally      the counters behind it
metrics    the built-in metrics of a cell
together   arms of one benchmark side by side: the front of accuracy and cost, one score from several dimensions
contrasts  what the study declared (`claims`), decided together; `looks` tells of peeks and of other runs of the plan
notes      what a reader must know beside the numbers
scorecard  JSON (`scorecard.json`, and its published schema)
text       a table for people
sides      one arm of one run, by task; `differences`, `measures`, `outcomes`, `deciding`, `compare`: two of them
gate       whether a run is not worse than a baseline; `comparison_words` says both in sentences
markdown, tabular, junit   the same for pages, spreadsheets and CI
"""
