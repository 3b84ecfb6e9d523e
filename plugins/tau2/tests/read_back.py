"""Upstream's own reading of a results file, in the toolkit's environment: read_back.py WORKER_FILE RESULTS_FILE.

Prints what its loader and its metrics make of it. Its table of trials is a pandas frame, which this environment leaves
out: trials are counted here, by upstream's definition, and handed to its `pass_hat_k`.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any


def main(worker_file: str, results_file: str) -> None:
    sys.path.append(str(Path(worker_file).parent))
    import serve  # type: ignore[import-not-found]  # the toolkit's worker, with upstream set up as it needs it

    native: Any = serve.upstream()
    import tau2.metrics.agent_metrics as metrics  # type: ignore[import-not-found]

    results = native.simulations.Results.load(Path(results_file))
    successes: dict[str, list[bool]] = defaultdict(list)
    for simulation in results.simulations:
        successes[simulation.task_id].append(bool(metrics.is_successful(simulation.reward_info.reward)))
    most = min(map(len, successes.values()))
    hats = {
        k: sum(metrics.pass_hat_k(len(s), sum(s), k) for s in successes.values()) / len(successes)
        for k in range(1, most + 1)
    }
    again = [
        serve.verdict(
            {
                "domain": results.info.environment_info.domain_name,
                "task": json.loads(next(t for t in results.tasks if t.id == s.task_id).model_dump_json()),
                "simulation": json.loads(s.model_dump_json()),
                "judge": None,
            }
        )["reward"]
        for s in results.simulations
    ]
    rewards = [s.reward_info.reward for s in results.simulations]
    roles = [[m.role for m in s.messages] for s in results.simulations]
    policy = results.info.environment_info.policy
    print(json.dumps({"pass_hat": hats, "rewards": rewards, "again": again, "roles": roles, "policy": policy}))


if __name__ == "__main__":
    main(*sys.argv[1:])
