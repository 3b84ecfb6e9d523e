"""Statistics: pure functions on numbers already in memory. Nothing here reads a file; a seed is always an argument.

A value that does not exist is None with a reason, or a ValueError; never 0, NaN, infinity or an interval of one point.
`docs/statistics.md` says in plain words what is computed, when it is refused, and where each formula is from.

One arm
passk            pass@k and pass^k, exact
reliability      the same over a benchmark, with intervals
clusters         means over tasks with cluster-robust standard errors
intervals        the default intervals of a rate: Wilson, plain and for clustered, repeated trials
binomial         exact and Bayesian intervals for single independent trials
hierarchical     a Bayesian interval for repeated trials
means            intervals of means that are no rates
bootstrap        resampling of whole clusters
standard_errors  errors over single runs, as others print them
variance         what tasks and what repeats contribute to an error
flakiness        how often repeats of a task disagree
quantiles        sample quantiles and the ranks that bound them
latency          quantiles of times, some of which were cut off at a limit

Two arms
paired           differences on the same tasks
signflip         the sign-flip test
mcnemar          single trials of pass or fail
unpaired         where the tasks are not the same: exploratory only
margins          equivalence and non-inferiority
multiplicity     several comparisons at once
verdicts         what may be said: one word and why

Planning and stopping
power            what a design can find
power_mcnemar    the same for single trials
settle           what more data would settle a contrast
spending         planned looks
anytime          looks at any time

Money, and several dimensions
costs            cost per solved task
incremental      whether a dearer arm is worth it
pareto           which arms nobody beats
composite        one score, and what other weights say

distributions    quantiles and tails
checks           what arguments must be
"""
