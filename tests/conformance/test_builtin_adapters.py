"""The toy benchmarks keep the promises of adapters."""

from __future__ import annotations

from evalcore.testing import AdapterConformance


class Toy(AdapterConformance):
    """What the toys share."""

    plugins = ("evalcore.testing.toy",)
    made_up = True


class TestToyWeather(Toy):
    benchmark = "toy-weather"


class TestToyWeatherOfFewTasks(Toy):
    benchmark = "toy-weather:3"


class TestToyDialogues(Toy):
    benchmark = "toy-dialogues"


class TestToyOpen(Toy):
    benchmark = "toy-open"


class TestToySlow(Toy):
    benchmark = "toy-slow:1"


class TestToyLate(Toy):
    benchmark = "toy-late"


class TestToyUsers(Toy):
    benchmark = "toy-users"


class TestToyMemory(Toy):
    benchmark = "toy-memory"
