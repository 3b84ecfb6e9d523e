"""The worker of the toolkit in `test_toolkits.py`: it does whatever an upstream may do."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import sibling
import upstream

STATE = {}


def echo(params):
    return params


def shout(params):
    return upstream.shout(params["text"])


def raises(params):
    raise LookupError("no \ud800 such " + params["what"])


def leaves(params):
    sys.exit("upstream gave up")


def hang(params):
    if "flag" in params:
        child = subprocess.Popen(["sleep", "600"], start_new_session=True)
        Path(params["flag"]).write_text(str(child.pid))
    time.sleep(600)


def nap(params):
    Path(params["begun"]).touch()
    while not Path(params["until"]).exists():
        time.sleep(0.005)
    return "rested"


def die(params):
    print("last words", file=sys.stderr)
    sys.stderr.flush()
    os._exit(7)


def fork_and_die(params):
    if os.fork() == 0:
        time.sleep(600)
    os._exit(7)


def shell(params):
    subprocess.run(["echo", "upstream starts a program"], check=True)
    return subprocess.run(["cat"], capture_output=True, check=True).stdout.decode()


def large(params):
    return "x" * params["size"]


def big_integer(params):
    return 10 ** params["digits"]


def raw_big_integer(params):
    sys.set_int_max_str_digits(0)
    return 10 ** params["digits"]


def deep(params):
    value = []
    for _ in range(params["depth"]):
        value = [value]
    return value


def foreign(params):
    return {1, 2}


def odd(params):
    return ["\udc80", float("nan"), float("-inf"), 2**100, 5.0, {"\ud800": None}]


def pid(params):
    return os.getpid()


def environment(params):
    return dict(os.environ)


def here(params):
    return [str(Path.cwd()), [path.name for path in Path().iterdir()], sys.argv, sibling.NAME]


def count(params, call):
    STATE[call.session] = STATE.get(call.session, 0) + 1
    return STATE[call.session]


def sessions(params):
    return sorted(STATE)


def ask(params, call):
    return call("model.complete", params)


def ask_in_threads(params, call):
    answers = []
    threads = [threading.Thread(target=lambda n=n: answers.append(call("model.complete", {"n": n}))) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(answers)


def swallow(params, call):
    with contextlib.suppress(Exception):
        call("model.complete", params)
    return "score: 0"


def swallow_everything(params, call):
    with contextlib.suppress(BaseException):
        call("model.complete", params)
    return "score: 0"


def ask_later(params, call):
    def later():
        try:
            time.sleep(0.05)
            call("model.complete", {})
        except RuntimeError as error:
            STATE["late"] = str(error)

    threading.Thread(target=later).start()


def late(params):
    while "late" not in STATE:
        time.sleep(0.005)
    return STATE.pop("late")


def forget(params):
    STATE.pop(params["session"], None)


def handlers():
    functions = [echo, shout, raises, leaves, hang, nap, die, fork_and_die, shell, large, big_integer, raw_big_integer]
    functions += [deep, foreign, odd, pid, environment, here, count, sessions, ask, ask_in_threads, swallow]
    functions += [swallow_everything, ask_later, late]
    return {**{f.__name__: f for f in functions}, "session.close": forget}


def stamp():
    return {"upstream": upstream.VERSION}
