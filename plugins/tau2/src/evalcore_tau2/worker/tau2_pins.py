# ruff: noqa: E501 - a path and its digest stay on one line
"""The data of τ²-bench 1.0.1 by name below `data/tau2`, with the sha256 of each file. Plain data: both sides read it."""

import functools
from pathlib import Path

VERSION = "1.0.1"

DATA = {
    "domains/airline/db.json": "1af9fea6e03ca7ca15a22bb3fcaf3e351393e3fc9070b6777947da8996f7531b",
    "domains/airline/policy.md": "10dc0525421521208be39cee235bba84a16e2bcba9899eb93d92cd81d2f62fc4",
    "domains/airline/split_tasks.json": "b22ced4d9a9850ac9aea31c53bdcb6d6009058140bd9acc7db37c1d36222ba8b",
    "domains/airline/tasks.json": "ccd8ba737b4cc371415af70151187788f728d6108d0916e73bb4317b40542052",
    "domains/mock/db.json": "8661f80b4c693bb15ef2fe6781d24a5765240d61fc74387c770133953f9113ea",
    "domains/mock/policy.md": "50ccbefac7c9ba77ce54131d61cfc6882f74b88ace66771115f9d867ec098203",
    "domains/mock/policy_solo.md": "2608375977bdeedd9cf34ab437b213403c8e97e9929d5094338355a994ac0c86",
    "domains/mock/split_tasks.json": "613c3298e6fd3cf03f71f848ecee519068eb4df54a1ceb28596f5aa443ee6581",
    "domains/mock/tasks.json": "0d8bcd14798bf2e6e082432147f62570c57b0897b4e4e388c95bb02ecbe5d8cf",
    "domains/mock/user_db.json": "78d424b5177e430b7f483787a956ad3a6a0880e8e5b312be8e373b15c876d51f",
    "domains/retail/db.json": "413a65160adbdb5fde0ffc0015c49b6d70250b10c18128de169b597af7766765",
    "domains/retail/policy.md": "2c9652afbce57d6e087768d37cda64d31c53d50b3e3225cfdb791bac66466467",
    "domains/retail/split_tasks.json": "ed0580ec52575b63fbf76568af42490da6ee7783ecb4aa81af46961291358f20",
    "domains/retail/tasks.json": "8e03ebce7901bd6218e7a7dc3105faa9324091a68058f7fe61c65262868812e8",
    "domains/telecom/db.toml": "562d647ef9d7df8df91eafd8ee76036e707c8f9e32aaedc4a7fde06975aea2c0",
    "domains/telecom/main_policy.md": "95943844a0cf11fdf0e2842b483b81d9f9338aa53235712ed131db075d086ed7",
    "domains/telecom/main_policy_solo.md": "781296ae5419169cb64aac0c4fa2aa6129c78f3c1592f64abd80df6fbabb7042",
    "domains/telecom/split_tasks.json": "605b488bb9a6acb3c7f4505240a855fdc8681d09aadb16a8f38b2efcfc5c3aec",
    "domains/telecom/tasks.json": "37e562e1ae3242577407e1303b1548bc64e7ea68e37d36173e6747990ceaf8a4",
    "domains/telecom/tech_support_manual.md": "015a3ee49ec8c199c5e1a059c922081937b92cf3a5ea74fedbc4357816f389ba",
    "domains/telecom/tech_support_workflow.md": "64f3ccd13875d14f358b21b9af221dab09e0e7bf5690d0e4322fb91855a43a4d",
    "domains/telecom/tech_support_workflow_solo.md": "b174d1f9705b5d7df49468daf99560a5633f86d23e10499a1166a7753706a412",
    "domains/telecom/user_db.toml": "4886107ea0c16f8e16d74bef91cfb557de61822afe9361f5a9b241806aea2e4c",
    "user_simulator/simulation_guidelines.md": "740a29dfa64d7bc08eea3bf7493575b914a63f744acbaf7f199ee07eddaf72d3",
    "user_simulator/simulation_guidelines_tools.md": "cbf3d8a4d8642fd04e559862f1afef55d7dd4e6a7e727ca49e239023c599de0c",
}


LISTED = "banking_knowledge"
"""The domain of 800 files: their digests stand in a list of their own, in the format of `sha256sum`."""


@functools.cache
def listed() -> dict[str, str]:
    """The files of that domain, by name, with their digests."""
    lines = Path(__file__).with_name(f"{LISTED}.sha256").read_text(encoding="ascii").splitlines()
    return {name: digest for digest, name in (line.split(maxsplit=1) for line in lines)}


def digest_of(name: str) -> str:
    """The sha256 that a file has to have."""
    return DATA[name] if name in DATA else listed()[name]


def files_of(domain: str) -> list[str]:
    """The files that a domain's environments are made of; its tasks are read apart from these."""
    if domain == LISTED:
        return [name for name in listed() if "/tasks/" not in name]
    return [n for n in DATA if n.startswith(f"domains/{domain}/") and n not in task_files(domain)]


def task_files(domain: str) -> tuple[str, ...]:
    """Where a domain's tasks are, and after them its splits, where it has such a file."""
    if domain == LISTED:
        return tuple(name for name in listed() if "/tasks/" in name)
    return f"domains/{domain}/tasks.json", f"domains/{domain}/split_tasks.json"
