"""The command line: one file per verb, imported when it is used. Here, and only here, values and errors become text.

main           the program: its verbs, its global options, and what happens whatever a verb does
render_errors  every error, in words and as JSON, with its exit code
output         the two streams; nothing foreign reaches a terminal uncleaned
session        what verbs share: the loaded plugins, and where runs are
execution      how run, resume and rerun ask, watch, report and end
"""
