"""Statistics: pure functions on numbers already in memory. Nothing here reads a file.

passk          pass@k and pass^k, exact
clusters       means over tasks with cluster-robust standard errors
intervals      Wilson intervals, plain and for clustered, repeated trials
distributions  quantiles of the normal and of Student's t
quantiles      sample quantiles
costs          cost per solved task
"""
