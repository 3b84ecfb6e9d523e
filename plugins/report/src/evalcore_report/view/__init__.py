"""The live view: the page of every run of a directory, its transcripts, and a search over them.

library    the runs of a directory, read when they have changed
search     a text in transcripts
pages      what a request gets, as HTML
server     who may ask, and for what
"""
